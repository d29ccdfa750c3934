// Functions shared by all components. This script runs before theirs.

const SVG = "http://www.w3.org/2000/svg";
const ADDRESS = /^data:image\/(webp|jpeg|png);base64,[A-Za-z0-9+/=]*$/;
const TICK = "M2.5 7.5 L5.7 10.7 L11.8 3.6";
const CROSS = "M3 3 L11 11 M11 3 L3 11";
const TYPING = "input:not([type=range]), textarea, select, [contenteditable=true], [role=combobox], [role=slider]";

// Make an element. Children are elements or texts; empty ones are left out.
function make(name, style = "", ...children) {
  const element = document.createElement(name);
  if (style) element.className = style;
  element.append(...children.filter(Boolean));
  return element;
}

// Make a button. A screen reader reads the label or, without one, the content.
function press(style, label, act, ...children) {
  const button = Object.assign(make("button", style, ...children), { type: "button" });
  if (label) button.ariaLabel = label;
  button.addEventListener("click", act);
  return button;
}

// Make a link that the page follows itself (see `tellLinks`).
function linkTo(style, href, ...children) {
  return Object.assign(make("a", style, ...children), { href });
}

// Make a named region that also scrolls with the keyboard.
function region(style, label, child) {
  return Object.assign(make("div", style, child), { tabIndex: 0, role: "region", ariaLabel: label });
}

// Make spans from the runs of a line, [[text, style], ...]. Runs without a style are plain text.
function spans(line) {
  return line.map(([text, style]) => (style ? make("span", style, text) : text));
}

// Make an element with user-written text, which may run from right to left.
function written(name, style, text) {
  return Object.assign(make(name, style, ...(typeof text === "string" ? [text] : spans(text))), { dir: "auto" });
}

// Make an SVG element.
function vector(name, values, style = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(values)) element.setAttribute(key, value);
  if (style) element.setAttribute("class", style);
  return element;
}

// Make an SVG image of one path, hidden from screen readers.
function drawing(path, style = "", box = "0 0 14 14", color = "") {
  const image = vector("svg", { viewBox: box, "aria-hidden": "true" }, style);
  image.append(vector("path", { d: path }));
  if (color) image.firstChild.style.fill = color;
  return image;
}

// Make an SVG image of a path drawn as a colored line.
function outline(path, style, color = "currentColor", width = 1.8) {
  const image = drawing(path, style);
  Object.assign(image.firstChild.style, { fill: "none", stroke: color, strokeWidth: String(width) });
  return image;
}

// Make a model's mark, as in the figures.
function markOf({ path, color }, style = "mark") {
  return drawing(path, style, "0 0 14 14", color);
}

// Return whether a source is a data address with a picture. No other address is ever loaded.
function isPicture(source) {
  return ADDRESS.test(source);
}

// Make an image element, or call `absent` if the picture is missing or broken.
function imageOf(source, alt, style, absent) {
  if (!isPicture(source)) return absent();
  const image = Object.assign(make("img", style), { src: source, alt, decoding: "async" });
  image.addEventListener("error", () => image.replaceWith(absent()), { once: true });
  return image;
}

// Make a link that opens a secure address in a new tab. Return the text for other addresses.
function outside(address, text) {
  if (!address.startsWith("https://")) return text;
  const link = make("a", "", text);
  Object.assign(link, { href: address, target: "_blank", rel: "noopener noreferrer" });
  return link;
}

// Make the credit line of a photograph: author, license, or a note that it is not bundled. Return "" without a credit.
function creditOf(credit) {
  if (!credit) return "";
  const license = credit.license && outside(credit.licenseUrl, credit.license);
  return make("p", "credit tiny quiet", outside(credit.page, credit.label), license && " · ", license);
}

// Return the clicked link if the page follows it itself, or null if the click opens a tab or a window.
function followed(event, selector) {
  const link = event.target instanceof Element && event.target.closest(selector);
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0) return null;
  event.preventDefault();
  return link;
}

// Pass the address of each pressed link in a component to `tell`.
function tellLinks(root, tell) {
  root.addEventListener("click", (event) => {
    const link = followed(event, "a:not([target])");
    if (link) tell(link.getAttribute("href"));
  });
}

// Return whether a modifier is held, so that the key belongs to the browser.
function isChord(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

// Return whether the focused element takes typed text.
function isTyping() {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return Boolean(element?.matches(TYPING));
}

// Write a value to the browser's storage if one is given, and return the stored value, or null if there is none.
function kept(storage, name, value) {
  try {
    if (value !== undefined) window[storage].setItem(name, value);
    return window[storage].getItem(name);
  } catch {
    return null;
  }
}

const drawn = new WeakMap();

// Return the object that draws into this element. It is made at the first call.
function part(parent, Kind) {
  let root = parent.querySelector(".root");
  if (!root) parent.append((root = make("div", "root")));
  if (!drawn.has(root)) drawn.set(root, new Kind(root));
  parent.getRootNode().host?.setAttribute("data-drawn", ""); // following elements may be shown: see render/html/style.py
  return drawn.get(root);
}

// Make the function of a component whose data an object of this class draws. A method `leave`, if any, ends it.
function componentOf(Kind) {
  return ({ data, parentElement, setTriggerValue, setStateValue }) => {
    const shown = part(parentElement, Kind);
    shown.draw(data, setTriggerValue, setStateValue);
    return () => shown.leave?.();
  };
}
