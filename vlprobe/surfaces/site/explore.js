"use strict";
// Explore: the wall of one model and kind, with the filters of the dashboard that a page can do alone.

const PAGE = 60; // cards at once

function outcome(margin) {
  if (margin === null) return ["unknown"];
  if (margin > 0) return ["held"];
  return margin === 0 ? ["fooled", "tied"] : ["fooled"];
}

// A case as this model answered it.
function caseOf(entry, model) {
  return { ...entry.case, ...(entry.models[model.key] || {}) };
}

function passing(values, filter) {
  const words = filter.words.toLowerCase();
  const chips = filter.patterns.map((place) => values.patterns[filter.model.key]?.[place]).filter(Boolean);
  const members = new Set(chips.flatMap((chip) => chip.cases));
  return values.cases
    .map((entry, place) => ({ entry, place, margin: entry.margins[filter.number] }))
    .filter(({ entry, margin }) => values.movement || filter.outcome === "all" || outcome(margin).includes(filter.outcome))
    .filter(({ entry }) => filter.type === "" || entry.type === Number(filter.type))
    .filter(({ entry }) => !words || entry.texts.join("\n").toLowerCase().includes(words))
    .filter(({ place }) => !chips.length || members.has(place))
    .sort((one, other) => (one.margin ?? Infinity) - (other.margin ?? Infinity));
}

// One card a picture: the first of its cases, and how many others pass.
function grouped(rows) {
  const heads = new Map();
  for (const row of rows) {
    const head = heads.get(row.entry.picture);
    if (head) head.others.push(row);
    else heads.set(row.entry.picture, { ...row, others: [] });
  }
  return [...heads.values()];
}

function search(value, act) {
  const input = make("input", "search");
  input.type = "search";
  input.value = value;
  input.maxLength = 200;
  input.placeholder = "Caption contains";
  input.setAttribute("aria-label", "Caption contains");
  input.addEventListener("input", () => act(input.value.trim()));
  return input;
}

function switches(options, value, act) {
  const row = make("span", "switches");
  row.setAttribute("role", "group");
  row.setAttribute("aria-label", "Outcome");
  for (const [key, text] of options) {
    const button = make("button", "switch", text);
    button.type = "button";
    button.setAttribute("aria-pressed", String(key === value));
    button.addEventListener("click", () => act(key));
    row.append(button);
  }
  return row;
}

function filterOf(subject, values) {
  const { said, set, model } = subject;
  const outcomes = values.outcomes.map(([key]) => key);
  return {
    model,
    number: set.models.indexOf(model),
    outcome: outcomes.includes(said.outcome) ? said.outcome : outcomes.length ? "fooled" : "all",
    type: values.types.some(([key]) => String(key) === said.type) ? said.type : "",
    words: (said.words || "").slice(0, 200),
    patterns: (said.pattern || "").split(",").filter(Boolean).map(Number),
  };
}

// How many there are in all, and how many of them are here.
function headings(values, filter, rows, cards) {
  const [heading, rate, total] = values.lines[filter.model.key][`${filter.type}:${filter.outcome}`] || ["", "", 0];
  const isNarrow = filter.words || filter.patterns.length;
  const here = rows.length === total ? "all of them are here" : `${rows.length.toLocaleString("en")} of them are on this site`;
  const narrow = !rows.length ? `None of the ${values.lies} on this site pass` : `${rows.length.toLocaleString("en")} ${values.lies} of this site pass`;
  return [isNarrow ? narrow : heading, [rate, "grouped by picture, the worst first", isNarrow ? "" : here].filter(Boolean).join(" · ")];
}

class Wall {
  constructor(main, redraw) {
    Object.assign(this, { main, redraw, limit: PAGE });
    this.sentence = make("div", "sentence");
    this.chips = make("div", "chips");
    this.place = make("div", "wall-place");
    this.more = make("button", "more");
    this.more.type = "button";
    this.more.addEventListener("click", () => {
      this.limit += PAGE;
      this.draw(this.subject, this.values);
    });
    document.addEventListener("pointerdown", (event) => {
      const fold = this.sentence.querySelector("details[open]");
      if (fold && !fold.contains(event.target)) fold.open = false;
    });
    this.drawer = new Drawer(() => say({ case: "" }));
    main.replaceChildren(this.sentence, this.chips, this.place, this.more);
  }

  change(changes) {
    say({ case: "", ...changes });
    this.limit = PAGE;
    this.redraw();
  }

  async draw(subject, values) {
    Object.assign(this, { subject, values });
    const filter = filterOf(subject, values);
    this.rows = passing(values, filter);
    this.cards = grouped(this.rows);
    this.bar(subject, values, filter);
    const [heading, note] = headings(values, filter, this.rows, this.cards);
    const shown = this.cards.slice(0, this.limit);
    const cards = shown.map((row) => ({ ...caseOf(row.entry, filter.model), badge: row.others.length ? `+${row.others.length}` : "" }));
    const data = { label: heading, heading: heading || "No case is here.", note, strip: false, legend: values.legend, cards };
    await mount(this.place, "wall", data, (_, id) => this.open(id));
    this.more.hidden = this.cards.length <= this.limit;
    this.more.textContent = `Show more (${(this.cards.length - this.limit).toLocaleString("en")})`;
    const chips = (values.patterns[filter.model.key] || []).map((chip, place) => ({ ...chip, key: place, on: filter.patterns.includes(place) }));
    this.chips.hidden = !chips.length;
    if (chips.length) await mount(this.chips, "patterns", { title: "Patterns", nothing: "", patterns: chips }, (_, place) => this.toggle(filter, place));
    if (subject.said.case) await this.open(subject.said.case);
  }

  bar(subject, values, filter) {
    const focused = document.activeElement;
    if (this.sentence.contains(focused) && focused.type === "search") return; // somebody types
    const label = this.sentence.contains(focused) && (focused.getAttribute("aria-label") || focused.textContent);
    const models = subject.set.models.map((one) => [one.key, one.name]);
    const parts = [chooser("Model", models, filter.model.key, (key) => this.change({ model: key, pattern: "" }))];
    parts.push(make("span", "quiet between", values.movement ? "is moved by" : "is fooled by"), ...choices(subject, this.redraw));
    parts.push(make("span", "stretch"), this.filters(values, filter));
    this.sentence.replaceChildren(...parts);
    // Who chose by keys stays where they were.
    const again = [...this.sentence.querySelectorAll("select, button")].find((one) => (one.getAttribute("aria-label") || one.textContent) === label);
    if (again) again.focus();
  }

  // What narrows the wall, behind a press: the sentence stays one row.
  filters(values, filter) {
    const fold = make("details", "filters");
    fold.open = Boolean(this.sentence.querySelector("details[open]"));
    const nActive = [filter.outcome !== "fooled" && values.outcomes.length, filter.type !== "", filter.words].filter(Boolean).length;
    const panel = make("div", "panel");
    if (values.outcomes.length) panel.append(switches(values.outcomes, filter.outcome, (key) => this.change({ outcome: key })));
    if (values.types.length > 1) panel.append(chooser("Type", [["", "Any type"], ...values.types], filter.type, (key) => this.change({ type: key })));
    panel.append(search(filter.words, (words) => this.change({ words })));
    fold.append(make("summary", "", nActive ? `Filters (${nActive})` : "Filters"), panel);
    fold.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !fold.open) return;
      event.preventDefault(); // else it empties the search
      fold.open = false;
      fold.firstChild.focus();
    });
    return fold;
  }

  toggle(filter, place) {
    const others = filter.patterns.filter((each) => each !== place);
    this.change({ pattern: (others.length < filter.patterns.length ? others : [...others, place]).join(",") });
  }

  // The case of this id, whether or not it passes the filter.
  async open(id) {
    const { subject, values } = this;
    const entry = values.cases.find((one) => one.case.id === id);
    if (!entry) return;
    say({ case: id });
    const at = this.cards.findIndex((row) => row.entry === entry || row.others.some((other) => other.entry === entry));
    const to = (place) => this.cards[place] && (() => this.open(this.cards[place].entry.case.id));
    const head = this.cards[at];
    const others = head ? [head, ...head.others].filter((row) => row.entry !== entry) : [];
    this.drawer.show({
      values: await pictured(caseOf(entry, subject.model)),
      models: subject.set.models,
      where: head ? `${at + 1} of ${this.cards.length} here` : "Not among the cases that pass the filters",
      previous: at > 0 ? to(at - 1) : null,
      next: head ? to(at + 1) || null : null,
      others: others.map((row) => [caseOf(row.entry, subject.model).name, () => this.open(row.entry.case.id)]),
    });
  }
}

let wall = null;

open("explore", async (main, subject, index, redraw) => {
  const values = await table(subject.name);
  wall ||= new Wall(main, redraw);
  await wall.draw(subject, values);
});
