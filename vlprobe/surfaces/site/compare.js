"use strict";
// Compare: a model with up to three others, the forest of their differences, and two columns of pictures on which two of them part.

const comparing = new Map(); // what each name of a page has on it

function heads(column, model, rival, values) {
  const words = values.movement ? [" move ", model.name, ` more than ${rival.name}`] : [" believed by ", model.name, `, not by ${rival.name}`];
  const line = make("p", "side", make("b", "big", column[0].toLocaleString("en")));
  line.append(make("span", "", words[0], make("b", "", words[1]), words[2]));
  return line;
}

class Comparing {
  constructor(main, subject, values, redraw) {
    Object.assign(this, { subject, values, redraw });
    this.bar = make("div", "sentence");
    this.finding = make("div", "finding");
    this.plot = make("div", "forest-place");
    this.how = make("p", "quiet small");
    this.title = make("h2");
    this.legend = make("p", "legend small quiet");
    this.sides = ["left", "right"].map((name) => make("section", name, make("div", "head"), make("div", "wall-place"), make("p", "quiet none")));
    this.rest = make("p", "quiet small");
    this.drawer = new Drawer(() => say({ case: "" }));
    const parting = make("div", "parting", this.title, this.legend);
    main.replaceChildren(this.bar, this.finding, this.plot, this.how, parting, make("div", "facing", ...this.sides), this.rest);
  }

  model(key) {
    return this.subject.set.models.find((one) => one.key === key);
  }

  // The comparison that the address names: a baseline, and which of its groups of others.
  contest() {
    const said = address();
    const own = this.values.contests.filter((one) => one.models[0] === said.model);
    const groups = own.length ? own : this.values.contests.filter((one) => one.models[0] === this.values.contests[0].models[0]);
    return { groups, contest: groups[Number(said.group)] || groups[0] };
  }

  async draw() {
    const { groups, contest } = this.contest();
    this.now = contest;
    const [rival, type] = this.row(contest);
    this.choose(groups, contest);
    this.finding.replaceChildren(make("h1", "", contest.heading), make("p", "quiet", contest.detail));
    if (contest.forest) {
      const pressed = (row) => ({ ...row, pressed: row.model === rival && row.type === type });
      const list = contest.forest.groups.map((group) => ({ ...group, rows: group.rows.map(pressed) }));
      await mount(this.plot, "forest", { ...contest.forest, groups: list }, (_, [group, place]) => {
        const row = contest.forest.groups[group].rows[place];
        say({ row: `${row.model}:${row.type}`, case: "" });
        this.draw();
      });
    }
    this.plot.hidden = !contest.forest;
    this.how.textContent = contest.forest ? contest.how : "";
    this.title.textContent = `Where they disagree: ${this.values.titles[type]}`;
    this.legend.replaceChildren(...contest.models.map((key) => {
      const model = this.model(key);
      return make("span", "entry", drawing(model.path, "mark", "0 0 14 14", model.color), make("bdi", "", model.name));
    }));
    this.shown = [];
    await this.column(this.sides[0], contest.models[0], rival, type);
    await this.column(this.sides[1], rival, contest.models[0], type);
    this.rest.textContent = contest.rest[`${rival}:${type}`] || "";
  }

  row(contest) {
    const [rival, type] = (address().row || "").split(":");
    return `${rival}:${type}` in contest.rest ? [rival, Number(type)] : contest.first;
  }

  choose(groups, contest) {
    const again = (changes) => {
      say({ row: "", case: "", ...changes });
      this.draw();
    };
    const bases = [...new Set(this.values.contests.map((one) => one.models[0]))].map((key) => [key, this.model(key).name]);
    const parts = [make("span", "quiet", "Compare"), chooser("Model", bases, contest.models[0], (model) => again({ model, group: "" }))];
    const named = groups.map((one, place) => [place, one.models.slice(1).map((key) => this.model(key).name).join(", ")]);
    parts.push(make("span", "quiet", "with"));
    if (named.length > 1) parts.push(chooser("Compared with it", named, groups.indexOf(contest), (group) => again({ group })));
    else parts.push(make("b", "", named[0][1]));
    this.bar.replaceChildren(...parts, make("span", "quiet", "on"), ...choices(this.subject, this.redraw));
  }

  async column(side, model, rival, type) {
    const [head, place, none] = side.children;
    const column = this.values.columns[`${model}>${rival}:${type}`] || [0, []];
    head.replaceChildren(heads(column, this.model(model), this.model(rival), this.values));
    none.textContent = column[1].length ? "" : "None.";
    const order = this.now.models.map((key) => this.subject.set.models.findIndex((one) => one.key === key));
    const cards = column[1].map((at) => this.values.cards[at]).map((card) => ({ ...card, boxes: order.map((at) => card.boxes[at]) }));
    const entries = cards.map((card) => ({ id: card.id, model }));
    this.shown.push(...entries);
    const data = { label: `Only ${this.model(model).name}, not ${this.model(rival).name}`, bare: true, facing: true, strip: false, cards };
    place.hidden = !cards.length;
    await mount(place, "wall", data, (_, id) => this.open(entries.findIndex((one) => one.id === id), entries));
  }

  // The drawer of a card; what is in it comes with Explore's values, which have every case that stands here.
  async open(at, entries) {
    const { subject } = this;
    const explore = await table(`${subject.set.key}-explore-${subject.set.kinds.indexOf(subject.kind)}`);
    const entry = explore.cases.find((one) => one.case.id === entries[at].id);
    if (!entry) return;
    const to = (place) => entries[place] && (() => this.open(place, entries));
    this.drawer.show({
      values: await pictured({ ...entry.case, ...(entry.models[entries[at].model] || {}) }),
      models: subject.set.models,
      where: `${at + 1} of ${entries.length} shown here`,
      previous: at > 0 ? to(at - 1) : null,
      next: to(at + 1) || null,
      others: [],
    });
  }
}

open("compare", async (main, subject, index, redraw) => {
  const values = await table(subject.name);
  if (comparing.get("name") !== subject.name) {
    comparing.set("name", subject.name);
    comparing.set("page", new Comparing(main, subject, values, redraw));
  }
  await comparing.get("page").draw();
});
