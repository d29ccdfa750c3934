// The keys of the drawer, as a line of buttons: T opens the tags, Z zooms, D adds the case to the deck, L copies the link, P opens
// Try it, ? lists all keys. J and K open the next and the previous case, as the arrows do.
//
// data: ways (which of zoom, deck and play this case has), opened (a key while words and parts are shown). Keys click the drawer's buttons. Letters do nothing while the user types.

const FRAMES = 90; // a second and a half
const SETTLED = 3; // frames for which a field keeps the focus before letters are typed into it
const KEYS = [["T", "tags, note", "tag"], ["Z", "zoom", "zoom"], ["D", "deck", "deck"], ["L", "link", "copy"], ["P", "try it", "play"],
  ["?", "all keys", "list"]];

const CLICKED = { deck: ".st-key-case_deck button", play: ".st-key-case_try a", list: ".st-key-lookup button",
  J: ".st-key-case_next button", K: ".st-key-case_previous button" };

class Line {
  constructor(root) {
    this.root = root;
    this.typed = null; // letters typed after T, until the field has the focus
    const { signal } = (this.stop = new AbortController());
    // On the window, so that letters for the tags reach no other key handler
    window.addEventListener("keydown", (event) => this.key(event), { capture: true, signal });
    document.addEventListener("click", (event) => this.releaseTab(event), { capture: true, signal });
  }

  draw({ ways, opened }) {
    if (opened && opened !== this.opened) document.querySelector(".st-key-case_why")?.scrollIntoView();
    this.opened = opened;
    this.shown = KEYS.filter(([, , act]) => !["zoom", "deck", "play"].includes(act) || ways.includes(act));
    this.notice = make("span", "notice");
    this.notice.setAttribute("role", "status");
    const row = make("div", "line tiny quiet");
    for (const [signs, label] of [[["←", "→"], "next"], [["1", "–", "4"], "tag"]]) {
      row.append(make("span", "pair", ...signs.map((sign) => make(sign === "–" ? "span" : "kbd", "", sign)), make("span", "", label)));
    }
    for (const [key, label, act] of this.shown) {
      row.append(press(`pair ${act}`, "", () => this.run(act), make("kbd", "", key), make("span", "", label)));
    }
    row.append(this.notice);
    this.root.replaceChildren(row);
  }

  run(act) {
    if (act in CLICKED) document.querySelector(CLICKED[act])?.click();
    else this[act]();
  }

  key(event) {
    // Escape leaves a field, which stores a note, and only then closes the drawer.
    const field = event.key === "Escape" && document.activeElement?.closest(".st-key-case_tags :is(input, textarea)");
    if (field) {
      field.closest("[role=dialog]").focus({ preventScroll: true });
      event.stopImmediatePropagation();
      return;
    }
    if (isChord(event)) return;
    if (this.typed !== null) return this.wait(event);
    if (isTyping()) return;
    const pressed = event.key.toUpperCase();
    const act = pressed in CLICKED ? pressed : this.shown.find(([key]) => key === pressed)?.[2];
    if (!act || ["zoom", "list"].includes(act)) return; // keys of the picture and the page
    this.run(act);
    event.preventDefault();
  }

  // A tab uses the arrow keys if it was reached with Tab. After a mouse click, they lead to the next picture again.
  releaseTab(event) {
    const isPointed = event.detail > 0; // 0 for a click by keyboard or by this script
    const tab = isPointed && event.target.closest?.(".st-key-case_tab [role=tab]");
    if (tab) tab.closest("[role=dialog]")?.focus({ preventScroll: true });
  }

  // The tag field opens and moves for some frames, in which it would drop letters. They are typed into it afterwards.
  wait(event) {
    if (event.key.length === 1) {
      this.typed += event.key;
      event.preventDefault();
      event.stopPropagation();
    } else this.type();
  }

  type() {
    const text = this.typed;
    this.typed = null;
    if (text) document.execCommand("insertText", false, text);
  }

  tag() {
    [...document.querySelectorAll(".st-key-case_tab [role=tab]")].at(-1)?.click();
    this.typed = "";
    this.focus(FRAMES, 0);
  }

  focus(frames, nSettled) {
    const field = document.querySelector(".st-key-case_tags input");
    if (isTyping() && document.activeElement !== field) return (this.typed = null); // the user went to another field, such as the note
    if (field && document.activeElement !== field) {
      field.scrollIntoView({ block: "center" });
      field.focus({ preventScroll: true });
      nSettled = 0;
    }
    if (this.typed === null) return;
    if (!frames || nSettled === SETTLED) this.type();
    else requestAnimationFrame(() => this.focus(frames - 1, nSettled + Boolean(field)));
  }

  async copy() {
    const failed = "Cannot copy. Copy the link from the address bar.";
    this.say((await navigator.clipboard?.writeText(location.href).then(() => "Link copied", () => failed)) ?? failed);
  }

  zoom() {
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "z" })); // to the picture
  }

  say(text) {
    this.notice.replaceChildren(make("span", "", text));
  }

  leave() {
    this.stop.abort();
  }
}

export default componentOf(Line);
