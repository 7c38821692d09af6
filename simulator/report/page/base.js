// What all pages share: elements, the page's data, the choice of colours (a button with the id "colours", if there is one).
const $ = (id) => document.getElementById(id);
const DATA = JSON.parse($("data").textContent);

function make(tag, name, parent, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

// A text into an element, with what was searched for marked.
function say(element, text, words = []) {
  const found = words.filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!found.length) { element.append(text); return element; }
  text.split(new RegExp(`(${found.join("|")})`, "i")).forEach((piece, index) => {
    if (index % 2) make("mark", "", element, piece); else if (piece) element.append(piece);
  });
  return element;
}

const colours = {
  system: window.matchMedia("(prefers-color-scheme: dark)"),
  chosen: null,
  show() {
    const dark = this.chosen ? this.chosen === "dark" : this.system.matches;
    document.documentElement.dataset.colours = dark ? "dark" : "light";
    const button = $("colours");
    if (button) { button.textContent = dark ? "Light" : "Dark"; button.setAttribute("aria-label", dark ? "light colours" : "dark colours"); }
  },
  turn() {
    this.chosen = document.documentElement.dataset.colours === "dark" ? "light" : "dark";
    try { localStorage.setItem("dmsim-colours", this.chosen); } catch { /* a page from a file may have no storage */ }
    this.show();
  },
};
try { colours.chosen = localStorage.getItem("dmsim-colours"); } catch { /* likewise */ }
colours.system.addEventListener("change", () => colours.show());
if ($("colours")) $("colours").onclick = () => colours.turn();
colours.show();
