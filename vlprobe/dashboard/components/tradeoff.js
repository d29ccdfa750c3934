// Steady against alert: a mark a model, a list of the models, and the worst mistake of the one that is looked at. The list
// is one stop of the Tab key, arrows move inside; a press on a mark or in the list pins that model.
//
// data: label, up and right ([bold, words]), corner, xTicks and yTicks [{at, text}], guess, front [[x, y]], rings [{name, place,
// label}], edges [{side, text}], legend [text], list (its name), pinned, marks [{model, name, path, color, value, label, named,
// place, across, along}], examples {model: {note, source, picture, alt, lines [[style, runs]], press}}. Places are per cent.
// Triggers: pin and open, each a model.

const MANY = 16; // models from which on their list scrolls
const MARK = 11; // half of a mark with the air around it, in pixels
const PINNED = 20; // of the one with a ring

function shape(mark) {
  return drawing(mark.path, "shape", "-1 -1 16 16", mark.color);
}

function line([x1, y1], [x2, y2], style, color) {
  const element = vector("line", { x1: `${x1}%`, y1: `${y1}%`, x2: `${x2}%`, y2: `${y2}%` }, style);
  if (color) element.style.stroke = color;
  return element;
}

function at(element, [x, y]) {
  element.style.left = `${x}%`;
  element.style.top = `${y}%`;
  return element;
}

class Picture {
  constructor(root) {
    this.root = root;
    this.current = "";
    this.observer = new ResizeObserver(() => this.layout());
  }

  draw(data, send) {
    Object.assign(this, { data, send });
    const hadFocus = this.root.contains(this.root.getRootNode().activeElement);
    const chart = make("div", "chart");
    chart.append(this.plot(), ...this.notes(), this.list(), this.legend());
    this.example = make("section", "example");
    this.example.setAttribute("aria-live", "polite");
    const scrolled = this.root.querySelector(".models")?.scrollTop || 0;
    this.root.replaceChildren(chart, this.example);
    this.show(data.pinned);
    const kept = [this.current, data.pinned].map((name) => this.buttons.find((one) => one.dataset.model === name)).find(Boolean) || this.buttons[0];
    if (kept) kept.tabIndex = 0;
    this.scroll(chart.querySelector(".models"), scrolled, hadFocus ? kept : this.buttons.find((one) => one.dataset.model === data.pinned));
    if (hadFocus && kept) kept.focus();
    this.observer.disconnect();
    this.observer.observe(this.area);
    this.layout();
  }

  plot() {
    const { data } = this;
    const area = make("div", "area");
    area.setAttribute("role", "img");
    area.setAttribute("aria-label", data.label);
    this.lines = vector("svg", { "aria-hidden": "true" }, "lines");
    for (const tick of data.yTicks) {
      this.lines.append(line([0, tick.at], [100, tick.at], "grid"));
      area.append(at(make("span", "tick y number", tick.text), [0, tick.at]));
    }
    for (const tick of data.xTicks) area.append(at(make("span", "tick x number", tick.text), [tick.at, 100]));
    if (data.guess !== null) {
      this.lines.append(line([0, data.guess], [100, data.guess], "guess"));
      area.append(at(make("span", "guessing", "guessing"), [100, data.guess]));
    }
    data.front.slice(1).forEach((end, index) => this.lines.append(line(data.front[index], end, "front")));
    for (const mark of data.marks.filter((one) => one.place)) {
      this.lines.append(line([mark.across[0], mark.place[1]], [mark.across[1], mark.place[1]], "arm", mark.color));
      this.lines.append(line([mark.place[0], mark.along[0]], [mark.place[0], mark.along[1]], "arm", mark.color));
    }
    this.leaders = vector("g", {});
    this.lines.append(this.leaders);
    const up = this.words("up", "↑ ", data.up);
    const corner = make("span", "corner", `${data.corner} ↗`);
    area.append(this.lines, up, corner);
    this.items = [...data.rings.map((ring) => this.ring(ring, area)), ...data.marks.filter((one) => one.place).map((mark) => this.mark(mark, area))];
    Object.assign(this, { area, fixedWords: [up, corner] });
    const plot = make("div", "plot");
    plot.append(area);
    return plot;
  }

  words(style, arrow, [bold, rest]) {
    const words = make("span", `words ${style}`);
    words.append(arrow, make("b", "", bold), ` ${rest}`);
    return words;
  }

  ring(ring, area) {
    const spot = at(make("span", "spot ring"), ring.place);
    const name = make("span", "name ring-name", ring.name);
    spot.title = name.title = ring.label;
    area.append(spot, name);
    return { element: name, place: ring.place, half: 6, isRing: true };
  }

  mark(mark, area) {
    const spot = at(make("span", "spot mark"), mark.place);
    const name = make("span", "name", mark.named ? mark.name : "");
    name.dir = "auto";
    spot.append(shape(mark));
    for (const element of [spot, name]) {
      element.title = mark.label;
      element.dataset.model = mark.model;
      element.addEventListener("pointerenter", () => this.point(mark.model));
      element.addEventListener("pointerleave", () => this.point());
      element.addEventListener("click", () => this.pin(mark.model));
    }
    area.append(spot, name);
    return { element: name, spot, mark, place: mark.place, half: mark.model === this.data.pinned ? PINNED : MARK, isRing: false };
  }

  notes() {
    const notes = make("ul", "edges small quiet");
    for (const edge of this.data.edges) {
      const item = make("li", edge.side, edge.text);
      item.dir = "auto";
      notes.append(item);
    }
    return [this.words("right", "", [`${this.data.right[0]} →`, this.data.right[1]]), ...(this.data.edges.length ? [notes] : [])];
  }

  list() {
    const list = make("ul", this.data.marks.length > MANY ? "models many" : "models");
    list.setAttribute("aria-label", this.data.list);
    this.buttons = this.data.marks.map((mark) => {
      const button = make("button", "model");
      button.type = "button";
      button.tabIndex = -1;
      button.dataset.model = mark.model;
      button.title = mark.label;
      button.setAttribute("aria-label", mark.label);
      button.setAttribute("aria-pressed", String(mark.model === this.data.pinned));
      const word = make("span", "word", mark.name);
      word.dir = "auto";
      button.append(shape(mark), word, make("span", "quiet number", mark.value));
      const item = make("li");
      item.append(button);
      list.append(item);
      return button;
    });
    list.addEventListener("click", (event) => this.pin(event.target.closest("button")?.dataset.model));
    list.addEventListener("keydown", (event) => this.key(event));
    list.addEventListener("focusin", (event) => this.visit(event.target.closest("button")));
    list.addEventListener("focusout", ({ relatedTarget }) => this.example.contains(relatedTarget) || this.show(this.data.pinned));
    list.addEventListener("pointerover", (event) => this.point(event.target.closest("button")?.dataset.model));
    list.addEventListener("pointerleave", () => this.point());
    return list;
  }

  legend() {
    const row = make("p", "legend tiny quiet");
    for (const [style, text] of this.data.legend) {
      const entry = make("span", "entry");
      if (style) entry.append(make("span", `sign ${style}`));
      entry.append(make("span", "", text));
      row.append(entry);
    }
    return row;
  }

  // A list that is drawn again stays where it was, unless its button would be out of sight.
  scroll(list, scrolled, button) {
    list.scrollTop = scrolled;
    const top = button ? button.offsetTop - list.offsetTop : scrolled;
    if (top < scrolled || top + 34 > scrolled + list.clientHeight) list.scrollTop = top - list.clientHeight / 2;
  }

  pin(model) {
    if (model) this.send("pin", model);
  }

  visit(button) {
    if (!button) return;
    for (const each of this.buttons) each.tabIndex = each === button ? 0 : -1;
    this.current = button.dataset.model;
    this.show(this.current);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const place = this.buttons.indexOf(event.target.closest("button"));
    const [next, before] = [place + 1, place - 1];
    const goals = { ArrowRight: next, ArrowDown: next, ArrowLeft: before, ArrowUp: before, Home: 0, End: this.buttons.length - 1 };
    const goal = this.buttons[goals[event.key]];
    if (!goal) return;
    event.preventDefault();
    this.visit(goal);
    goal.focus();
  }

  // The pointer came to a model, or left (no model). What the keyboard is in stays: browsers tell of a resting pointer, too.
  point(model) {
    const focused = this.root.getRootNode().activeElement;
    if (this.example.contains(focused)) return;
    this.show(model || focused?.dataset?.model || this.data.pinned);
  }

  // The worst mistake of a model, as a picture with both captions.
  show(model) {
    if (this.shown === model && this.example.childElementCount) return;
    this.shown = model;
    for (const item of this.items) item.spot?.classList.toggle("shown", item.mark.model === model);
    const mark = this.data.marks.find((one) => one.model === model);
    const example = this.data.examples[model];
    if (!mark) return this.example.replaceChildren();
    const title = make("h2", "title");
    title.append(shape(mark), make("bdi", "", mark.name));
    if (!example) return this.example.replaceChildren(title, make("p", "quiet", "Press its mark to see its worst mistake."));
    const parts = [title, this.image(example), creditOf(example.credit), make("p", "small quiet", example.note), ...example.lines.map(caption)];
    if (example.press) {
      const press = make("button", "press", `${example.press} →`);
      press.type = "button";
      press.addEventListener("click", () => this.send("open", model));
      parts.push(press);
    }
    this.example.replaceChildren(...parts.filter(Boolean));
  }

  image(example) {
    if (!example.picture) return null;
    if (!isPicture(example.source)) return make("span", "picture missing", example.picture);
    const image = make("img", "picture");
    image.src = example.source;
    image.alt = example.alt;
    return image;
  }

  // Names where nothing is in their way; those of printed models only where there is room.
  layout() {
    const size = { wide: this.area.clientWidth, high: this.area.clientHeight };
    if (!size.wide) return;
    const fixed = this.fixedWords.map((element) => within(element, this.area));
    for (const item of this.items) item.element.hidden = false; // what is hidden has no size
    for (const item of this.items) {
      const [x, y] = [(item.place[0] / 100) * size.wide, (item.place[1] / 100) * size.high];
      Object.assign(item, { x, y, wide: item.element.offsetWidth + 4, high: item.element.offsetHeight, box: null });
      fixed.push({ ...around(x, y, item.half), kind: item.isRing ? "ring" : "mark", owner: null });
      if (!item.isRing) fixed.push(...crossed(item, item.mark, size));
    }
    const named = this.items.filter((item) => !item.isRing && item.element.textContent);
    arrange(named, fixed, size);
    const taken = [...fixed, ...named.map((item) => ({ ...item.box, kind: "name", owner: item }))];
    this.leaders.replaceChildren();
    for (const item of named) {
      this.put(item);
      const values = leader(item);
      if (!values) continue;
      this.leaders.append(vector("line", values, "leader"));
      this.leaders.lastChild.style.stroke = item.mark.color;
    }
    for (const item of this.items.filter((one) => one.isRing)) {
      arrange([item], taken, size);
      item.element.hidden = !isFree(item, taken);
      this.put(item);
      if (!item.element.hidden) taken.push({ ...item.box, kind: "name", owner: item });
    }
  }

  put({ element, box }) {
    element.style.left = `${box.left + 2}px`;
    element.style.top = `${box.top}px`;
  }
}

function caption([style, runs]) {
  const row = make("p", `caption ${style}-line`);
  const text = make("span");
  text.dir = "auto";
  for (const [words, kind] of runs) text.append(make("span", kind, words));
  const [sign_, word] = style === "true" ? ["✓", "True: "] : ["✕", "Preferred: "];
  const sign = make("span", "sign-of", sign_);
  sign.setAttribute("aria-hidden", "true");
  row.append(sign, make("span", "hidden", word), text);
  return row;
}

export default function ({ data, parentElement, setTriggerValue }) {
  part(parentElement, Picture).draw(data, setTriggerValue);
}
