// Sends what the user types into the search above the page, so that the page can look it up in captions.
//
// Triggers: typed (the text, after a pause).

const PAUSE_MS = 300;
let timer = 0;
let send = () => {}; // of the latest drawing, which may be later than the last letter

function type(event) {
  const field = event.target;
  if (!field.closest?.(".st-key-lookup_field")) return;
  clearTimeout(timer);
  timer = setTimeout(() => send("typed", field.value), PAUSE_MS);
}

export default function ({ parentElement, setTriggerValue }) {
  send = setTriggerValue;
  parentElement.getRootNode().host?.setAttribute("data-drawn", "");
  document.addEventListener("input", type);
  return () => document.removeEventListener("input", type);
}
