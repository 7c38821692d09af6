// The suite: what is searched and filtered is all scenarios; what is drawn is what stands open.
const texts = DATA.texts, order = new Map(DATA.releases.map((release, index) => [release, index]));
const words = { query: [] };
const acts = { log: "log", stdout: "log", stderr: "log", sleep: "quiet" };
const MOST_EVENTS = 300, OPEN_UP_TO = 25;

const scenarios = [];
DATA.features.forEach((feature) => feature.rules.forEach((rule) => rule.scenarios.forEach((scenario) => {
  scenario.feature = feature;
  scenario.rule = rule;
  scenario.id = [feature.file, scenario.line, ...Object.values(scenario.row)].join(":");
  scenario.said = [feature.name, feature.file, rule.name, scenario.name, scenario.about, ...Object.values(scenario.row),
    ...scenario.tags.map((tag) => "@" + tag), ...scenario.steps.map((step) => step[0] + " " + texts[step[1]])].join("\n").toLowerCase();
  scenarios.push(scenario);
})));
const seen = new Map(); // course -> the numbers of its texts
function textsOf(trace) {
  const course = DATA.traces[trace][3];
  if (!seen.has(course)) seen.set(course, new Set(DATA.courses[course].filter((_, index) => index % 2 === 0).map((event) => DATA.events[event][1])));
  return seen.get(course);
}
function eventsOf(trace) {
  const course = DATA.courses[DATA.traces[trace][3]], out = [];
  for (let index = 0, now = 0; index < course.length; index += 2) {
    now += course[index + 1];
    out.push([now / 1000, ...DATA.events[course[index]].map((text) => texts[text])]);
  }
  return out;
}

// --- what is known of a scenario ------------------------------------------------------------------------------------
const outcomeOf = (scenario) => scenario.ran.some((ran) => ran.outcome === "failed") ? "failed"
  : scenario.ran.some((ran) => ran.outcome === "passed") ? "passed" : "skipped";
const inContainer = (scenario) => scenario.ran.filter((ran) => DATA.runs[ran.run].runner === "container" && ran.outcome === "passed");
const holds = (scenario, release) => order.get(scenario.since) <= order.get(release) && order.get(release) <= order.get(scenario.until);
function rangeOf(scenario) {
  const last = DATA.releases[DATA.releases.length - 1];
  return scenario.since === scenario.until ? scenario.since : scenario.until === last ? "from " + scenario.since : scenario.since + " to " + scenario.until;
}

function matches(scenario, wanted) {
  if (wanted.outcome && !scenario.ran.some((ran) => ran.outcome === wanted.outcome)) return false;
  if (wanted.release && !holds(scenario, wanted.release)) return false;
  if (wanted.tag && !scenario.tags.includes(wanted.tag)) return false;
  if (wanted.verified === "recording" && !scenario.recordings.length) return false;
  if (wanted.verified === "container" && !inContainer(scenario).length) return false;
  if (wanted.verified === "no" && (scenario.recordings.length || inContainer(scenario).length)) return false;
  return wanted.words.every(({ word, numbers }) => scenario.said.includes(word)
    || scenario.ran.some((ran) => ran.traces.some((trace) => { for (const number of textsOf(trace)) if (numbers.has(number)) return true; return false; })));
}
function wantedNow() {
  const query = $("query").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  return {
    outcome: $("outcome").value, release: $("release").value, verified: $("verified").value, tag: $("tag").value,
    words: query.map((word) => ({ word, numbers: new Set(texts.flatMap((text, number) => text.toLowerCase().includes(word) ? [number] : [])) })),
  };
}

// --- drawing --------------------------------------------------------------------------------------------------------
const chip = (parent, text, kind = "") => make("span", ("chip " + kind).trim(), parent, text);
function lazily(details, draw) {
  const drawn = () => { if (details.open && !details.dataset.drawn) { details.dataset.drawn = "yes"; draw(details); } };
  details.addEventListener("toggle", drawn);
  details.draw = drawn;
}
function counted(parent, list) {
  const failed = list.filter((scenario) => outcomeOf(scenario) === "failed").length;
  const counts = make("span", "counts", parent, `${list.length} ${list.length === 1 ? "scenario" : "scenarios"}`);
  if (failed) { counts.append(", "); make("span", "failed", counts, `${failed} failed`); }
}

function drawFeature(feature, found, open) {
  const details = make("details", "feature card", $("features")), summary = make("summary", "", details);
  details.open = open;
  say(make("h2", "", summary), feature.name, words.query);
  make("span", "file mono", summary, feature.file);
  counted(summary, found);
  lazily(details, () => {
    const inside = make("div", "inside", details);
    if (feature.about) say(make("p", "about", inside), feature.about, words.query);
    for (const rule of feature.rules) {
      const list = found.filter((scenario) => scenario.rule === rule);
      if (!list.length) continue;
      const section = make("section", "rule", inside);
      if (rule.name) say(make("h3", "", section), rule.name, words.query);
      if (rule.about) say(make("p", "about", section), rule.about, words.query);
      list.forEach((scenario) => drawScenario(scenario, section));
    }
  });
  details.draw();
  return details;
}

function drawScenario(scenario, parent) {
  const details = make("details", "scenario", parent), summary = make("summary", "", details);
  details.dataset.id = scenario.id;
  make("span", "dot " + outcomeOf(scenario), summary).title = outcomeOf(scenario);
  const name = say(make("span", "name", summary), scenario.name, words.query);
  const row = Object.values(scenario.row).filter((value) => !scenario.name.includes(value)).join(", ");
  if (row) { name.append(" "); say(make("span", "row", name), row, words.query); }
  if (scenario.tags.includes("quirk")) chip(summary, "quirk", "warn");
  if (scenario.recordings.length) chip(summary, "recorded", "good");
  if (inContainer(scenario).length) chip(summary, "container", "good");
  chip(summary, rangeOf(scenario));
  lazily(details, () => drawDetail(scenario, make("div", "detail", details)));
}

function drawDetail(scenario, parent) {
  if (scenario.about) say(make("p", "about", parent), scenario.about, words.query);
  const failed = scenario.ran.find((ran) => ran.outcome === "failed");
  const steps = make("ol", "steps", parent);
  scenario.steps.forEach(([keyword, text, more], index) => {
    const item = make("li", failed && index === failed.done ? "failed" : failed && index > failed.done ? "undone" : "", steps);
    make("span", "word", item, keyword);
    say(make("span", "what", item), texts[text], words.query);
    if (Array.isArray(more)) {
      const table = make("table", "", make("div", "scroll", item));
      more.forEach((row, number) => { const line = make("tr", "", table); row.forEach((cell) => say(make(number ? "td" : "th", "", line), cell, words.query)); });
    } else if (more !== undefined) say(make("pre", "block", item), texts[more], words.query);
  });
  for (const ran of scenario.ran) if (ran.why) make("pre", "why " + ran.outcome, parent, `${ran.release}: ${ran.why}`);
  const facts = make("dl", "facts", parent);
  const fact = (name) => { make("dt", "", facts, name); return make("dd", "", facts); };
  fact("where").append(`${scenario.feature.file}:${scenario.line}`);
  fact("tagged for").append(rangeOf(scenario));
  const outcomes = fact("run");
  for (const ran of scenario.ran) {
    const run = DATA.runs[ran.run];
    chip(outcomes, `${ran.release} ${run.runner === "container" ? "in a container " : ""}${{ passed: "passed", failed: "failed", skipped: "left out" }[ran.outcome]}`, { passed: "good", failed: "bad" }[ran.outcome] || "");
  }
  const proofs = fact("verified");
  if (scenario.recordings.length) proofs.append(`by ${scenario.recordings.length === 1 ? "the recording" : "the recordings"} ${scenario.recordings.join(", ")} of the real program (${DATA.recorded})`);
  for (const ran of inContainer(scenario)) {
    if (proofs.childNodes.length) proofs.append("; ");
    proofs.append(`by the image ${DATA.runs[ran.run].image} in a container (${DATA.runs[ran.run].started.slice(0, 10)})`);
  }
  if (!proofs.childNodes.length) proofs.append("by no recording of its own; how many go through each upstream function stands below the trace");
  if (scenario.tags.length) { const tags = fact("tags"); scenario.tags.forEach((tag) => chip(tags, "@" + tag)); }
  drawTraces(scenario, parent);
}

function drawTraces(scenario, parent) {
  const shown = scenario.ran.flatMap((ran) => ran.traces.map((trace) => ({ trace, ran })));
  if (!shown.length) return;
  const box = make("div", "trace", parent), head = make("div", "trace-head", box);
  let at = 0, kind = "all";
  if (shown.length > 1) {
    const choose = make("select", "", head);
    choose.setAttribute("aria-label", "which run");
    shown.forEach(({ trace, ran }, index) => make("option", "", choose, `${DATA.traces[trace][0]}: ${DATA.traces[trace][1]}${DATA.runs[ran.run].runner === "container" ? ", container" : ""}`).value = index);
    choose.onchange = () => { at = Number(choose.value); draw(); };
  } else make("h4", "", head, `${DATA.traces[shown[0].trace][1]} ${DATA.traces[shown[0].trace][0]}`);
  const buttons = ["all", "log", "acts"].map((name) => {
    const button = make("button", "", head, { all: "Everything", log: "Log", acts: "Acts" }[name]);
    button.type = "button";
    button.onclick = () => { kind = name; draw(); };
    return [name, button];
  });
  const ended = make("span", "ended", head), place = make("div", "", box);
  function draw(most = MOST_EVENTS) {
    const [release, , end] = DATA.traces[shown[at].trace], functions = DATA.functions[release] || {};
    ended.textContent = end;
    buttons.forEach(([name, button]) => button.setAttribute("aria-pressed", String(name === kind)));
    place.replaceChildren();
    const met = new Map(), rows = [];
    for (const [when, what, text, step] of eventsOf(shown[at].trace)) {
      if (step) met.set(step, true);
      const reads = what === "sleep" || (what === "request" && text.startsWith("GET "));
      if (kind === "all" || (kind === "log") === (acts[what] === "log") && !reads) rows.push([when, what, text, step, reads]);
    }
    const table = make("table", "events", place);
    rows.slice(0, most).forEach(([when, what, text, step, reads], index) => {
      const level = what === "log" ? " log-" + text.split(":")[0] : "", line = make("tr", (reads ? "quiet" : "") + level, table);
      make("td", "at", line, when.toFixed(1) + " s");
      say(make("td", "what", line), text, words.query);
      make("td", "fn", line, step && (index === 0 || rows[index - 1][3] !== step) ? (functions[step] || { name: step }).name : "");
    });
    if (rows.length > most) { const more = make("button", "more", place, `Show all ${rows.length} events`); more.type = "button"; more.onclick = () => draw(Infinity); }
    if (!rows.length) make("p", "soft small", place, "Nothing of this kind.");
    if (met.size) {
      const list = make("dl", "facts", place);
      make("dt", "", list, "upstream functions");
      const names = make("dd", "", list);
      for (const step of met.keys()) {
        const known = functions[step] || { name: step, recordings: 0 };
        chip(names, `${known.name} ${known.recordings}`, known.recordings ? "good" : "").title = known.recordings
          ? `${known.recordings} recordings of ${release} go through it and replay without a mismatch (${DATA.recorded})` : "no recording goes through it";
      }
    }
  }
  draw();
}

// --- searching ------------------------------------------------------------------------------------------------------
function show() {
  const wanted = wantedNow(), isWanted = Boolean(wanted.outcome || wanted.release || wanted.verified || wanted.tag || wanted.words.length);
  words.query = wanted.words.map(({ word }) => word);
  const found = scenarios.filter((scenario) => matches(scenario, wanted));
  $("features").replaceChildren();
  for (const feature of DATA.features) {
    const list = found.filter((scenario) => scenario.feature === feature);
    if (list.length) drawFeature(feature, list, isWanted && found.length <= OPEN_UP_TO);
  }
  if (!found.length) make("p", "none", $("features"), "No scenario is like this.");
  $("found").textContent = isWanted ? `${found.length} of ${scenarios.length} scenarios` : `${scenarios.length} scenarios in ${DATA.features.length} features`;
  $("clear").hidden = !isWanted;
  $("features").dataset.shown = $("query").value;
}
function open(id) {
  const scenario = scenarios.find((one) => one.id === id);
  if (!scenario) return;
  const feature = [...document.querySelectorAll(".feature")][DATA.features.indexOf(scenario.feature)];
  feature.open = true;
  feature.draw();
  const details = [...feature.querySelectorAll(".scenario")].find((one) => one.dataset.id === id);
  details.open = true;
  details.draw();
  details.scrollIntoView();
}

let waiting = 0;
$("query").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(show, 120); });
for (const name of ["outcome", "release", "verified", "tag"]) $(name).addEventListener("change", show);
$("clear").onclick = () => { for (const name of ["query", "outcome", "release", "verified", "tag"]) $(name).value = ""; show(); $("query").focus(); };
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) { event.preventDefault(); $("query").focus(); }
});
$("features").addEventListener("toggle", (event) => {
  if (event.target.matches(".scenario") && event.target.open) history.replaceState(null, "", "#" + encodeURIComponent(event.target.dataset.id));
}, true);
let folded = [];
window.addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll(".feature:not([open])")];
  folded.forEach((details) => { details.open = true; details.draw(); });
});
window.addEventListener("afterprint", () => folded.forEach((details) => { details.open = false; }));

// --- the head -------------------------------------------------------------------------------------------------------
$("title").textContent = DATA.title;
const recorded = scenarios.filter((scenario) => scenario.recordings.length).length, contained = scenarios.filter((scenario) => inContainer(scenario).length).length;
$("about").textContent = `What driver-manager does to a node, as ${scenarios.length} scenarios that were run. `
  + [recorded && `${recorded} show what a recording of the real program shows too`, contained && `${contained} passed on a real image in a container`].filter(Boolean).join("; ")
  + (recorded || contained ? "." : "");
for (const run of DATA.runs) {
  const box = make("div", "run card", $("runs")), meter = make("div", "meter");
  make("b", "", box, run.name);
  const parts = [["passed", "passed"], ["failed", "failed"], ["skipped", "left out"]].filter(([outcome]) => run[outcome]);
  make("span", "soft", box, parts.map(([outcome, word]) => `${run[outcome]} ${word}`).join(", ") || "nothing was run");
  parts.forEach(([outcome]) => { make("i", outcome, meter).style.flex = run[outcome]; });
  box.append(meter);
}
DATA.releases.filter((release) => scenarios.some((scenario) => holds(scenario, release))).forEach((release) => { make("option", "", $("release"), release).value = release; });
[...new Set(scenarios.flatMap((scenario) => scenario.tags))].filter((tag) => !/^(since|until)-/.test(tag)).sort().forEach((tag) => { make("option", "", $("tag"), "@" + tag).value = tag; });
$("foot").textContent = `Made by dmsim report from ${DATA.runs.map((run) => run.started.slice(0, 16).replace("T", " ") + " UTC").join(", ")} (dmsim ${[...new Set(DATA.runs.map((run) => run.dmsim))].join(", ")}).`;
show();
if (location.hash) open(decodeURIComponent(location.hash.slice(1)));
