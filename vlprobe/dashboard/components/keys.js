// The keys of the drawer, as a line to read and to press: T opens the tags, L copies the link, P leads to the Playground.
//
// data: words (whether there is a way to the Playground). It presses what the drawer has. Letters do nothing while somebody types.

const NOTICE_MS = 4000;
const FRAMES = 30; // half a second
const KEYS = [["T", "tag", tag], ["L", "copy link", copy], ["P", "try words", play]];

function tag() {
  const fold = document.querySelector(".st-key-case_details details");
  if (!fold) return "";
  if (!fold.open) fold.querySelector("summary").click();
  focusFirst(fold, FRAMES);
  return "";
}

// At once, and without the fold's animation: a letter typed before the focus would be a key of the drawer, and a field that moves
// drops what is typed.
function focusFirst(fold, frames, isDone = false) {
  for (const opening of fold.getAnimations({ subtree: true })) opening.finish();
  const field = fold.querySelector("input") ?? fold.querySelector("button");
  if (field && !isDone) {
    field.scrollIntoView({ block: "center" });
    field.focus({ preventScroll: true });
  }
  if (frames) requestAnimationFrame(() => focusFirst(fold, frames - 1, isDone || document.activeElement === field));
}

function copy() {
  const failed = "Cannot copy. Copy the link from the address bar.";
  return navigator.clipboard?.writeText(location.href).then(() => "Link copied", () => failed) ?? failed;
}

function play() {
  document.querySelector(".st-key-case_ways a")?.click();
  return "";
}

class Line {
  constructor(root) {
    this.root = root;
    this.listen = (event) => this.key(event);
    document.addEventListener("keydown", this.listen, true);
  }

  draw({ words }) {
    if (this.words === words) return;
    this.words = words;
    this.keys = KEYS.filter(([, , act]) => act !== play || words);
    this.notice = make("span", "notice");
    this.notice.setAttribute("role", "status");
    const arrows = make("span", "pair");
    arrows.append(make("kbd", "", "←"), make("kbd", "", "→"), make("span", "", "next picture"));
    const row = make("div", "line tiny quiet");
    row.append(arrows);
    for (const [key, label, act] of this.keys) {
      const button = make("button", "pair");
      button.type = "button";
      button.append(make("kbd", "", key), make("span", "", label));
      button.addEventListener("click", () => this.act(act));
      row.append(button);
    }
    const close = make("span", "pair");
    close.append(make("kbd", "", "Esc"), make("span", "", "close"));
    row.append(close, this.notice);
    this.root.replaceChildren(row);
  }

  key(event) {
    // The drawer closes on Escape before a field loses the focus; what is typed in a note is stored when it does.
    if (event.key === "Escape") document.activeElement?.closest(".st-key-case_tags textarea")?.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping()) return;
    const found = this.keys.find(([key]) => key === event.key.toUpperCase());
    if (!found) return;
    this.act(found[2]);
    event.preventDefault();
  }

  async act(action) {
    this.notice.textContent = await action();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.notice.textContent = ""), NOTICE_MS);
  }

  leave() {
    document.removeEventListener("keydown", this.listen, true);
    clearTimeout(this.timer);
  }
}

export default function ({ data, parentElement }) {
  const line = part(parentElement, Line);
  line.draw(data);
  return () => line.leave();
}
