// What every component has in common; its script stands before theirs.

const SVG = "http://www.w3.org/2000/svg";
const ADDRESS = /^data:image\/(webp|jpeg|png);base64,[A-Za-z0-9+/=]*$/;
const TICK = "M2.5 7.5 L5.7 10.7 L11.8 3.6";
const CROSS = "M3 3 L11 11 M11 3 L3 11";
const TYPING = "input, textarea, select, [contenteditable=true], [role=combobox], [role=slider]";

// An element; children are elements and texts, an empty one is none.
function make(name, style = "", ...children) {
  const element = document.createElement(name);
  if (style) element.className = style;
  element.append(...children.filter(Boolean));
  return element;
}

// A button. A screen reader reads the label, or else what is in it.
function press(style, label, act, ...children) {
  const button = Object.assign(make("button", style, ...children), { type: "button" });
  if (label) button.ariaLabel = label;
  button.addEventListener("click", act);
  return button;
}

// A link that the page follows itself (`followed`), which is told its key.
function linkTo(style, key, href, ...children) {
  const link = Object.assign(make("a", style, ...children), { href });
  link.dataset.go = key;
  return link;
}

// A part with a name that scrolls by the keyboard, too.
function region(style, label, child) {
  return Object.assign(make("div", style, child), { tabIndex: 0, role: "region", ariaLabel: label });
}

// Pieces of a line [[text, style], ...]; those without a style are plain text.
function spans(line) {
  return line.map(([text, style]) => (style ? make("span", style, text) : text));
}

// An element with a text or a line that somebody wrote, which may run from right to left.
function written(name, style, text) {
  return Object.assign(make(name, style, ...(typeof text === "string" ? [text] : spans(text))), { dir: "auto" });
}

// An element of a drawing.
function vector(name, values, style = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(values)) element.setAttribute(key, value);
  if (style) element.setAttribute("class", style);
  return element;
}

// A drawing of one path that says nothing to a screen reader.
function drawing(path, style = "", box = "0 0 14 14", color = "") {
  const image = vector("svg", { viewBox: box, "aria-hidden": "true" }, style);
  image.append(vector("path", { d: path }));
  if (color) image.firstChild.style.fill = color;
  return image;
}

// The same path as a line in a color.
function outline(path, style, color = "currentColor", width = 1.8) {
  const image = drawing(path, style);
  Object.assign(image.firstChild.style, { fill: "none", stroke: color, strokeWidth: String(width) });
  return image;
}

// A model's mark, the same as in the figures.
function markOf({ path, color }, style = "mark") {
  return drawing(path, style, "0 0 14 14", color);
}

// Whether this is a picture's own bytes; no other address is ever asked for.
function isPicture(source) {
  return ADDRESS.test(source);
}

// A picture, or what `absent` makes where there is none or it is broken.
function imageOf(source, alt, style, absent) {
  if (!isPicture(source)) return absent();
  const image = Object.assign(make("img", style), { src: source, alt, decoding: "async" });
  image.addEventListener("error", () => image.replaceWith(absent()), { once: true });
  return image;
}

// A link to a secure address, which opens in a tab of its own; the text without one.
function outside(address, text) {
  if (!address.startsWith("https://")) return text;
  const link = make("a", "", text);
  Object.assign(link, { href: address, target: "_blank", rel: "noopener noreferrer" });
  return link;
}

// Whose a photograph is: its author's page and its license; or that it is not bundled. Nothing without a credit.
function creditOf(credit) {
  if (!credit) return "";
  const license = credit.license && outside(credit.licenseUrl, credit.license);
  return make("p", "credit tiny quiet", outside(credit.page, credit.label), license && " · ", license);
}

// The pressed link that the page follows itself; null where the press opens a tab or a window.
function followed(event, selector) {
  const link = event.target instanceof Element && event.target.closest(selector);
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0) return null;
  event.preventDefault();
  return link;
}

// Whether a key belongs to the browser, because another one is held.
function isChord(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

// Whether somebody types where the keyboard is.
function isTyping() {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return Boolean(element?.matches(TYPING));
}

// Reads or writes what this browser keeps under a name; null where there is nothing or it keeps nothing.
function kept(storage, name, value) {
  try {
    if (value !== undefined) window[storage].setItem(name, value);
    return window[storage].getItem(name);
  } catch {
    return null;
  }
}

const drawn = new WeakMap();

// What draws into this place: one that was there before, else a new one of this class.
function part(parent, Kind) {
  let root = parent.querySelector(".root");
  if (!root) parent.append((root = make("div", "root")));
  if (!drawn.has(root)) drawn.set(root, new Kind(root));
  parent.getRootNode().host?.setAttribute("data-drawn", ""); // what follows may be shown: see render/html/style.py
  return drawn.get(root);
}
