// The atlas: outcomes that are filtered, places that are searched, a witness's path that is marked.
const order = new Map(); // places on the chosen witness's path -> when; edges as "from>to"
let chosen = null;
const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
const kind = (ends) => ends === "exit 0" ? "good" : ends === "exit 1" ? "bad" : "warn";

$("title").textContent = `Atlas of driver-manager ${DATA.release}`;
$("about").textContent = `${count(DATA.walks, "walk")} through ${count(DATA.nodes, "node")} end in ${count(DATA.outcomes.length, "outcome")}, the worst first. The model was run ${count(DATA.runs, "time")} for it, within ${DATA.options}.`;

for (const column of DATA.columns) {
  const select = make("select", "", $("filters")), name = column;
  select.id = "filter-" + name;
  select.setAttribute("aria-label", name);
  make("option", "", select, `Any ${name}`).value = "";
  [...new Set(DATA.outcomes.map((outcome) => outcome[name]))].sort().forEach((value) => { make("option", "", select, value).value = value; });
  select.onchange = drawOutcomes;
}

function lazily(details, draw) {
  details.draw = () => { if (details.open && !details.dataset.drawn) { details.dataset.drawn = "yes"; draw(make("div", "inside", details)); } };
  details.addEventListener("toggle", details.draw);
}

function drawOutcomes() {
  const list = DATA.outcomes.filter((outcome) => DATA.columns.every((name) => !$("filter-" + name).value || outcome[name] === $("filter-" + name).value));
  $("found").textContent = `${list.length} of ${count(DATA.outcomes.length, "outcome")}`;
  $("outcomes").replaceChildren();
  for (const outcome of list) {
    const details = make("details", "outcome card", $("outcomes")), summary = make("summary", "", details);
    details.dataset.id = outcome.id;
    make("span", "chip " + kind(outcome.ends), summary, outcome.ends);
    make("span", "", summary, `labels ${outcome.labels}, cordon ${outcome.cordon}, modules ${outcome.modules}, mounts ${outcome.mounts}, pods ${outcome.pods}`);
    if (outcome.failed === "something failed") make("span", "chip warn", summary, "something failed");
    make("span", "walks tabular", summary, count(outcome.walks, "walk"));
    lazily(details, (inside) => {
      make("h3", "", inside, "Answers that all of its walks give");
      const answers = make("ul", "", inside);
      for (const { file, function: name, text, answer } of outcome.decisions) {
        const item = make("li", "", answers);
        make("b", "", item, name);
        item.append(` (${file}): `);
        make("code", "", item, text);
        item.append(` ${answer}`);
      }
      if (!outcome.decisions.length) make("li", "soft", answers, "none of its own");
      make("h3", "", inside, "The log ends with");
      make("pre", "", inside, outcome.last_lines.join("\n"));
      make("h3", "", inside, `Witness ${outcome.id}`);
      make("pre", "", inside, `dmsim explore --release ${DATA.release} ${DATA.options} --witness ${outcome.id} --write witness.yaml\ndmsim run --release ${DATA.release} --world witness.yaml`);
      make("p", "", inside, outcome.witness.functions.join(" → ") + " → " + outcome.ends);
      make("h3", "", inside, "The witness's log");
      make("pre", "", inside, outcome.witness.log.join("\n"));
    });
    details.addEventListener("toggle", () => { if (details.open) choose(outcome); });
  }
  if (!list.length) make("p", "soft", $("outcomes"), "No outcome is like this.");
}

function choose(outcome) {
  chosen = outcome;
  order.clear();
  outcome.path.forEach((place, index) => {
    if (!order.has(place)) order.set(place, index + 1);
    if (index) order.set(`${outcome.path[index - 1]}>${place}`, index);
  });
  drawPlaces();
}

const nameOf = (to) => typeof to === "string" ? to : DATA.places[to].name;
DATA.places.forEach((place) => { place.said = [place.name, place.file, ...place.calls, ...place.log, ...place.edges.flatMap((edge) => [nameOf(edge.to), ...edge.answers.flat()])].join("\n").toLowerCase(); });

function drawPlaces() {
  const words = $("query").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  $("places").replaceChildren();
  DATA.places.forEach((place, number) => {
    if (!words.every((word) => place.said.includes(word))) return;
    const details = make("details", "place card" + (order.has(number) ? " on" : ""), $("places")), summary = make("summary", "", details);
    details.id = "place-" + number;
    if (order.has(number)) make("span", "chip wait order", summary, String(order.get(number)));
    say(make("b", "", summary), place.name, words);
    make("span", "soft small", summary, (place.calls.length ? `in ${place.calls.join(" → ")}, ` : "") + (place.edges.length === 1 ? "one way on" : `${place.edges.length} ways on`));
    make("span", "file mono", summary, `${place.file}:${place.name}`);
    lazily(details, (inside) => {
      for (const edge of place.edges) {
        const row = make("div", "edge" + (order.has(`${number}>${edge.to}`) ? " on" : ""), inside), to = make("div", "", row);
        if (typeof edge.to === "string") make("span", "chip " + kind(edge.to), to, edge.to);
        else { const link = make("a", "", to, nameOf(edge.to)); link.href = "#place-" + edge.to; link.onclick = () => { const there = $("place-" + edge.to); if (there) { there.open = true; there.draw(); } }; }
        make("div", "soft small tabular", to, edge.stretches === 1 ? "1 stretch" : `${edge.stretches.toLocaleString("en")} stretches`);
        const answers = make("div", "answers", row);
        for (const [name, text, answer] of edge.answers) { const line = make("div", "", answers, name + ": "); say(make("code", "", line), text, words); line.append(" " + answer); }
        if (!edge.answers.length) make("span", "soft", answers, place.edges.length === 1 ? "always" : "by more than one set of answers");
      }
      if (place.log.length) { make("h3", "", inside, "It logs, among others"); say(make("pre", "", inside), place.log.join("\n"), words); }
    });
    details.open = Boolean(words.length) || (chosen !== null && order.has(number)) || number === 0;
    details.draw();
  });
  if (!$("places").childNodes.length) make("p", "soft", $("places"), "No function is like this.");
  $("places").dataset.shown = $("query").value;
}

function openAll() { document.querySelectorAll(".place").forEach((details) => { details.open = true; details.draw(); }); }
let waiting = 0;
$("query").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(drawPlaces, 120); });
$("open").onclick = openAll;
window.addEventListener("beforeprint", openAll);
drawOutcomes();
drawPlaces();
