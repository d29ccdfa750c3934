// A wall of cards. Each card is one button with a picture, the change, and one square per model. Tab stops once.
//
// data: label, cards; for a whole wall also heading, note, place (for phones), legend and total (cases on all pages and behind cards); `strip` is a row of pictures only, `open` is the id of the framed card, `bare` a wall without its bar.
// card: id, name (read by screen readers), tip, frames [{source, name, style, text, credit}], badge, texts and lines (each a list of runs
// [text, style]), verdicts [[state, title], ...], count, word, notes [text, ...]; on Compare boxes [{path, color, state, text, source, label}];
// with `selects`, cases (the number of cases on the card).
// With `selects`, cards are selected as in a file manager: Ctrl+click selects one more, Shift+click and Shift+arrows a range.
// `offered` has the tags for them, none if tags cannot be stored.
// Triggers: open (a card's id), chosen ({ids, act, tag, every, front}; every: all cases; front: of each card only the case in front, not the
// cases behind it; act is "show", "deck", "export", "tag" or "slice").

const SIZES = [120, 150, 240];
const KEPT = "vlprobe-wall-size";
const ARROWS = { arrow: "→", swap: "⇄" };

function runs(line, style) {
  const element = make("span", style);
  element.dir = "auto";
  // Text after an arrow moves to the next line as a whole before one of its words is broken.
  for (const [text, kind] of line) element.append(...(ARROWS[kind] ? [arrow(text, kind), make("wbr")] : [make("span", kind, text)]));
  return element;
}

function arrow(text, kind) {
  const element = make("span", "arrow", ARROWS[kind]);
  element.title = text;
  return element;
}

function frame(shown) {
  return imageOf(shown.source, "", `picture ${shown.style}`, () => missing(shown));
}

function missing({ text }) {
  return make("span", "picture missing", runs([[text, ""]], "line"));
}

function texts(lines) {
  return make("span", "picture sheet", ...lines.map((line) => runs(line, "line")));
}

function verdicts(card) {
  const squares = make("span", "verdicts", ...card.verdicts.map(([state, title]) => Object.assign(make("span", `verdict ${state}`), { title })));
  return make("span", "row", squares, make("span", "count", card.count), make("span", "word", card.word));
}

const TICKS = { fooled: "✕", tied: "=", held: "✓", unknown: "?", moved: "" };
// Draw one small box per model: its mark, a tick or a cross and, in a search, its first result.
function boxes(entries) {
  const style = entries.some((entry) => entry.source) ? "seen" : entries.some((entry) => entry.text) ? "told" : "";
  const row = make("span", `boxes ${style}`);
  const columns = { seen: 2, told: 1 }[style] ?? Math.ceil(entries.length / Math.ceil(entries.length / 5));
  row.style.setProperty("--columns", columns);
  for (const entry of entries) {
    const box = make("span", `box ${entry.state}`);
    box.append(markOf(entry, ""), make("span", "tick", TICKS[entry.state] ?? ""));
    if (entry.source) box.append(frame({ source: entry.source, name: "", style: "first" }));
    if (entry.text) box.append(runs([[entry.text, ""]], "winner"));
    row.append(Object.assign(box, { title: entry.label }));
  }
  return row;
}

// Place the number of other cases inside the last picture: a portrait or a landscape fills only part of its square.
function badge(text, image, pictures) {
  const sign = make("span", "badge", text);
  image?.addEventListener("load", () => {
    const longest = Math.max(image.naturalWidth, image.naturalHeight);
    const inset = (length, parts) => `calc(7px + ${(50 * (1 - length / longest)) / parts}%)`;
    sign.style.right = inset(image.naturalWidth, pictures);
    sign.style.top = inset(image.naturalHeight, 1);
  });
  return sign;
}

function pressed(card, strip) {
  const button = Object.assign(make("button", "card"), { type: "button", tabIndex: -1, ariaLabel: card.name, title: card.tip || card.name });
  button.dataset.id = card.id;
  const top = make("span", card.frames.length > 1 ? "frames" : "frames single");
  for (const picture of card.frames) top.append(frame(picture));
  if (!card.frames.length) top.append(texts(card.texts));
  if (card.badge) top.append(badge(card.badge, top.querySelector("img:last-of-type"), card.frames.length));
  button.append(top);
  if (strip) return button;
  for (const line of card.lines) button.append(runs(line, "change"));
  if (card.count) button.append(verdicts(card));
  if (card.boxes) button.append(boxes(card.boxes));
  for (const note of card.notes) button.append(Object.assign(make("span", "note", note), { title: note }));
  return button;
}

function legend(entries) {
  return make("p", "legend tiny quiet", ...entries.map(([state, text]) =>
    make("span", "entry", state && make("span", `verdict ${state}`), make("span", "", text))));
}

// The wall keeps its size, the focused card and the open card when the page sends new data.
class Wall {
  constructor(root) {
    this.root = root;
    const size = Number(kept("sessionStorage", KEPT));
    this.size = SIZES.includes(size) ? size : 150;
    this.chosen = new Set();
    this.front = false; // whether only the cases in front count
    this.name = ""; // the last tag
    this.anchor = ""; // the card at which a range starts
    this.before = []; // the cards that were selected before this range
    const { signal } = (this.stop = new AbortController());
    document.addEventListener("click", (event) => (this.isTurned = event.target.closest?.(".st-key-page") !== null), { signal });
    document.addEventListener("click", (event) => this.showTop(event), { signal, capture: true }); // facets stop the event
    document.addEventListener("keydown", (event) => this.toggleRail(event), { signal });
    document.addEventListener("keydown", (event) => this.chooseAll(event), { signal });
    root.addEventListener("mousedown", (event) => this.selects && event.shiftKey && event.preventDefault()); // otherwise Shift+click selects text
    root.addEventListener("click", (event) => this.click(event));
    root.addEventListener("keydown", (event) => this.key(event));
    root.addEventListener("focusin", (event) => this.visit(event));
  }

  draw(data, send) {
    this.send = send;
    this.selects = data.selects;
    this.offered = data.offered ?? [];
    const stay = ["tag", "export"].includes(this.act) ? [...this.chosen] : []; // for another tag, a file or a slice
    this.act = this.anchor = ""; // the action on the others is complete
    const hadFocus = this.root.contains(this.root.getRootNode().activeElement);
    const parts = [];
    if (!data.strip && !data.bare) parts.push(this.bar(data));
    const isWide = data.cards.some((card) => card.frames.length > 1) && !data.cards.some((card) => card.boxes);
    this.list = make("ul", data.strip ? "strip" : isWide ? "wall wide" : data.facing ? "wall facing" : "wall");
    this.list.setAttribute("aria-label", data.label);
    for (const card of data.cards) {
      const item = make("li");
      item.append(pressed(card, data.strip), ...card.frames.map((shown) => (shown.source ? creditOf(shown.credit) : ""))); // above the wall: where the others are
      if (data.selects) item.append(this.picker(card));
      this.list.append(item);
    }
    this.buttons = [...this.list.querySelectorAll("button")];
    this.tally = make("p", "tally small");
    this.tally.setAttribute("role", "status");
    this.root.replaceChildren(...parts, this.list, this.tally);
    this.resize(0);
    const isEvery = this.isEvery;
    this.total = data.total;
    this.casesOf = new Map(data.cards.map((card) => [card.id, card.cases ?? 1]));
    this.choose(stay.filter((id) => data.cards.some((card) => card.id === id)), isEvery);
    const current = this.buttons.find((button) => button.dataset.id === this.current) || this.buttons[0];
    if (current) current.tabIndex = 0;
    if (hadFocus && current) current.focus();
    if (!data.strip) this.follow();
    this.opened = data.open ?? this.opened;
    this.mark();
    // The page numbers are below the wall; a new page starts at its top.
    const first = data.cards[0]?.id;
    if (this.isTurned && first !== this.first && !data.strip) {
      this.root.scrollIntoView({ block: "start" });
      this.isTurned = false;
    }
    this.first = first;
  }

  bar(data) {
    this.smaller = this.sizer("−", "Smaller pictures", -1);
    this.larger = this.sizer("+", "Larger pictures", 1);
    const note = make("p", "small quiet", data.place && make("span", "place", `${data.place} · `), data.note);
    return make("div", "bar", make("div", "heading", make("h1", "", data.heading), note),
      make("div", "end", legend(data.legend), this.smaller, this.larger));
  }

  sizer(text, label, step) {
    return Object.assign(press("sizer", label, () => this.resize(step), text), { title: `${label} (key ${text})` });
  }

  resize(step) {
    const place = Math.min(Math.max(SIZES.indexOf(this.size) + step, 0), SIZES.length - 1);
    this.size = SIZES[place];
    if (step) kept("sessionStorage", KEPT, String(this.size));
    this.list.style.setProperty("--size", `${this.size}px`);
    if (this.smaller) this.smaller.disabled = place === 0;
    if (this.larger) this.larger.disabled = place === SIZES.length - 1;
  }

  click(event) {
    const button = event.target.closest("button.card");
    if (!button) return;
    this.focus(button);
    if (this.selects && (event.shiftKey || event.ctrlKey || event.metaKey)) {
      this.pick(button.dataset.id, event.shiftKey);
      return;
    }
    this.opened = button.dataset.id;
    this.mark();
    this.watch();
    this.send("open", button.dataset.id);
  }

  // Make a card's check box. Tab skips it: X selects the focused card.
  picker(card) {
    const box = Object.assign(make("input", "picker"), { type: "checkbox", tabIndex: -1, ariaLabel: `Select: ${card.name}` });
    box.title = "Select (X or Ctrl+click); Shift+click selects a range";
    box.addEventListener("click", (event) => this.pick(card.id, event.shiftKey));
    return box;
  }

  // Select or release one card, or select all cards from the last such card to this one instead of its previous range.
  pick(id, isRange) {
    const places = [this.anchor, id].map((name) => this.buttons.findIndex((button) => button.dataset.id === name));
    if (isRange && places[0] >= 0) {
      const range = this.buttons.slice(Math.min(...places), Math.max(...places) + 1);
      return this.choose([...this.before, ...range.map((button) => button.dataset.id)]);
    }
    const isChosen = this.chosen.has(id);
    this.start(id);
    this.choose(isChosen ? this.before : [...this.before, id]);
  }

  start(id) {
    this.anchor = id;
    this.before = [...this.chosen].filter((name) => name !== id);
  }

  choose(ids, isEvery = false) {
    this.chosen = new Set(ids);
    this.isEvery = isEvery && this.chosen.size > 0;
    for (const button of this.buttons) {
      const isChosen = this.chosen.has(button.dataset.id);
      if (isChosen) button.setAttribute("aria-pressed", "true");
      else button.removeAttribute("aria-pressed");
      const box = button.parentElement.querySelector(".picker");
      if (box) box.checked = isChosen;
    }
    this.list.classList.toggle("choosing", this.chosen.size > 0);
    if (!this.chosen.size) this.anchor = "";
    if (!this.chosen.size) this.front = false;
    const count = this.isEvery ? make("span", "", `All ${this.total.toLocaleString("en")} cases selected`) : this.count();
    if (!this.isEvery && this.total > this.chosen.size) count.append(" ", press("", "", () => this.choose(this.chosen, true), `Select all ${this.total.toLocaleString("en")} cases`));
    if (!this.chosen.size) this.tally.replaceChildren();
    else if (this.tally.firstChild) this.tally.firstChild.replaceWith(count);
    else this.tally.replaceChildren(count, ...this.acts());
  }

  // Say how many cases are selected. The cases behind a card belong to it, unless the user wants only those in front.
  count() {
    const number = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
    const n = this.chosen.size;
    const all = [...this.chosen].reduce((sum, id) => sum + this.casesOf.get(id), 0);
    const text = make("span", "", `${number(this.front ? n : all, "case")} selected${all > n ? `, on ${number(n, "card")}` : ""}`);
    const other = this.front ? `Include the ${number(all - n, "case")} behind` : `Only the ${n === 1 ? "case" : number(n, "case")} in front`;
    if (all > n) text.append(" · ", press("", "", () => ((this.front = !this.front), this.choose(this.chosen)), other));
    return text;
  }

  // Show the actions for selected cards. They stay, with the typed text, while more cards are selected.
  acts() {
    const send = (act, tag = "") => this.send("chosen", { ids: [...this.chosen], act: (this.act = act), tag, every: this.isEvery, front: this.front });
    const tag = Object.assign(make("input"), { placeholder: "Tag or slice name", maxLength: 30, ariaLabel: "Tag or slice name", value: this.name });
    const name = (act) => (tag.value.trim() ? send(act, tag.value, (this.name = act === "tag" ? tag.value : "")) : tag.focus());
    tag.addEventListener("keydown", (event) => {
      if (event.key === "Enter") name("tag");
    });
    return [
      press("", "", () => send("show"), "Show only these"),
      press("", "", () => send("deck"), "Add to the slides"),
      press("", "", () => send("export"), "Export"),
      ...this.offered.map((name) => press("", "", () => send("tag", name), `# ${name}`)),
      ...(this.offered.length
        ? [tag, press("", "", () => name("tag"), "Tag"), press("", "", () => name("slice"), "Save as a slice")] : []),
      press("", "", () => this.choose([]), "Clear"),
    ];
  }

  // Ctrl+A selects the cards of a whole wall, wherever the focus is.
  chooseAll(event) {
    const isAsked = this.selects && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "a";
    const isInField = isTyping() && event.composedPath()[0].type !== "checkbox";
    if (!isAsked || isInField || document.querySelector("[role=dialog]")) return;
    this.choose(this.buttons.map((button) => button.dataset.id));
    event.preventDefault();
  }

  // "[" shows and hides the facets next to a whole wall.
  toggleRail(event) {
    if (!this.selects || event.key !== "[" || event.ctrlKey || event.metaKey || isTyping()) return;
    document.querySelector(".st-key-rail_toggle button")?.click();
  }

  // The facets stay in view while the wall scrolls. After a press on one, the new cards are in view, too.
  showTop(event) {
    const wall = document.querySelector(".st-key-explore_wall");
    const isFacet = event.target.closest?.(".st-key-rail :is([role=toolbar], [role=radiogroup])");
    if (this.selects && isFacet && wall.getBoundingClientRect().top < 0) wall.scrollIntoView();
  }

  visit(event) {
    const button = event.target.closest("button.card");
    if (!button) return;
    for (const each of this.buttons) each.tabIndex = each === button ? 0 : -1;
    this.current = button.dataset.id;
  }

  focus(button) {
    button.focus();
    button.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    const isWhole = this.selects && event.target.closest("button.card");
    if (isChord(event)) return;
    if (isWhole && event.key === "Escape") this.choose([]);
    if (event.key === "-" || event.key === "+") {
      this.resize(event.key === "+" ? 1 : -1);
      event.preventDefault();
      return;
    }
    const button = event.target.closest("button.card");
    if (button && this.selects && event.key.toUpperCase() === "X") {
      this.pick(button.dataset.id, false);
      event.preventDefault();
      return;
    }
    const to = button && this.next(this.buttons.indexOf(button), event.key);
    if (!to) return;
    if (this.selects && event.shiftKey) {
      if (!this.anchor || !this.chosen.has(button.dataset.id)) this.start(button.dataset.id);
      this.pick(to.dataset.id, true);
    }
    this.focus(to);
    event.preventDefault();
  }

  next(place, key) {
    const rtl = getComputedStyle(this.list).direction === "rtl" ? -1 : 1;
    const cells = this.buttons.map((button) => button.parentElement);
    const columns = cells.filter((cell) => cell.offsetTop === cells[0].offsetTop).length;
    const steps = { ArrowRight: rtl, ArrowLeft: -rtl, ArrowDown: columns, ArrowUp: -columns };
    if (key === "Home") return this.buttons[0];
    if (key === "End") return this.buttons.at(-1);
    if (!(key in steps)) return null;
    const last = this.buttons.length - 1;
    const goal = place + steps[key];
    if (key === "ArrowDown" && goal > last && Math.floor(place / columns) < Math.floor(last / columns)) {
      return this.buttons[last]; // the last row is shorter
    }
    return this.buttons[goal] || null;
  }

  mark() {
    for (const button of this.buttons) button.classList.toggle("open", button.dataset.id === this.opened);
  }

  // The drawer goes from case to case without drawing the wall again; the address has its case.
  follow() {
    const id = new URLSearchParams(location.search).get("case");
    if (!id || id === this.opened || !this.buttons.some((button) => button.dataset.id === id)) return;
    if (!this.opened) this.watch();
    this.opened = id;
    this.mark();
  }

  // The page's drawer cannot return the focus into this component.
  watch() {
    this.observer?.disconnect();
    let seen = false;
    this.observer = new MutationObserver(() => {
      const isOpen = document.querySelector('[role="dialog"]') !== null;
      seen ||= isOpen;
      if (isOpen) this.follow();
      if (seen && !isOpen) this.back();
    });
    this.observer.observe(document.body, { childList: true, subtree: true });
  }

  back() {
    this.observer.disconnect();
    const id = this.opened;
    this.opened = "";
    this.mark();
    const button = this.buttons.find((each) => each.dataset.id === id);
    if (!button) return;
    for (const wait of [0, 120]) setTimeout(() => this.root.isConnected && this.take(button), wait);
  }

  take(button) {
    const active = document.activeElement;
    if (!active || active === document.body || active === this.root.getRootNode().host) button.focus();
  }

  leave() {
    this.observer?.disconnect();
    this.stop.abort();
  }
}

export default componentOf(Wall);
