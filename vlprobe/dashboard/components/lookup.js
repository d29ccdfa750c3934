// The keys "/" and "?" open the search above the page, unless the user types or a dialog is open. "/" and a press on the
// button also focus its field; "?" shows the list of keys.
//
// data: n_opened, the number of pages that the search opened. The search closes when it opens one.

const FRAMES = 60; // a second
let nOpened = 0;
let isMoved = false; // whether the last key was an arrow

// After each choice, Streamlit highlights the first option of a list. Enter in the empty field would choose it, too.
function guard(event) {
  const field = event.target.closest?.("[data-testid=stMultiSelect] input");
  if (event.key === "Enter" && field && !field.value && !isMoved) event.stopPropagation();
  isMoved = Boolean(event.key?.startsWith("Arrow")); // autofill sends events without a key
}

function listen(event) {
  if (isChord(event) || !["/", "?"].includes(event.key)) return;
  if (isTyping() || document.querySelector("[role=dialog][aria-modal=true], dialog[open]")) return;
  event.preventDefault();
  show(true);
  if (event.key === "/") focusField(FRAMES);
}

// A click of this script, such as that of "?", is not trusted.
function open(event) {
  const button = event.isTrusted && event.target.closest?.(".st-key-lookup button");
  if (button && button.getAttribute("aria-expanded") !== "true") focusField(FRAMES);
}

function show(isOpen) {
  const button = document.querySelector(".st-key-lookup button");
  if ((button?.getAttribute("aria-expanded") === "true") !== isOpen) button?.click();
}

function focusField(frames) {
  const field = document.querySelector(".st-key-lookup_field input");
  field?.focus();
  // A field that is not yet visible takes no focus
  if (frames && (!field || document.activeElement !== field)) requestAnimationFrame(() => focusField(frames - 1));
}

export default function ({ data, parentElement }) {
  if (data.n_opened !== nOpened) show(false);
  nOpened = data.n_opened;
  parentElement.getRootNode().host?.setAttribute("data-drawn", "");
  const listeners = new AbortController();
  document.addEventListener("keydown", guard, { capture: true, signal: listeners.signal });
  document.addEventListener("keydown", listen, { signal: listeners.signal });
  document.addEventListener("click", open, { capture: true, signal: listeners.signal });
  return () => listeners.abort();
}
