// Try it: a row for each kind of edit with the verdict of each model, and a field for a wrong caption of one's own.
//
// data: models [{name, path, color}], rows [{kind, label, runs [[text, style]], verdicts [{state, text}], more}],
// chips [{kind, label}], beat {text, verdicts, count}. A state is "right", "fooled", "moved" or "unknown".
// Triggers: renew (a kind), add (a kind), claim (the text, while one types).

const SIGNS = { right: "M2.5 7.5 L5.7 10.7 L11.8 3.6", fooled: "M3 3 L11 11 M11 3 L3 11" };
const AGAIN = "M11.5 4.5 A5 5 0 1 0 12 8 M11.8 1.5 V4.8 H8.5";
const PAUSE = 250; // milliseconds

function line(path) {
  const image = drawing(path, "line", "0 0 14 14");
  Object.assign(image.firstChild.style, { fill: "none", stroke: "currentColor", strokeWidth: "1.7" });
  return image;
}

function verdict({ state, text }) {
  return make("span", `says ${state}`, SIGNS[state] && line(SIGNS[state]), text);
}

function press(style, label, act, ...children) {
  const button = make("button", style, ...children);
  button.type = "button";
  if (label) button.setAttribute("aria-label", label);
  button.addEventListener("click", act);
  return button;
}

class Trial {
  constructor(root) {
    this.field = make("input", "claim");
    this.field.maxLength = 300;
    this.field.placeholder = "Type a wrong caption";
    this.field.title = "Nothing checks that the caption is wrong: you are the judge.";
    this.field.setAttribute("aria-label", "Your wrong caption");
    this.field.dir = "auto";
    this.field.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.send("claim", this.field.value), PAUSE);
    });
    this.table = make("div", "edits");
    this.count = make("b", "count number");
    this.whom = make("p", "whom");
    this.whom.setAttribute("role", "status");
    this.task = make("span", "quiet");
    root.replaceChildren(this.table, make("section", "beat",
      make("p", "head", make("strong", "", "Beat the models"), this.task, this.count), this.field, this.whom));
  }

  draw({ models, rows, chips, beat }, send) {
    this.send = send;
    const focused = this.table.getRootNode().activeElement?.dataset?.kind;
    const heads = models.map((model) => make("th", "", drawing(model.path, "shape", "0 0 14 14", model.color), model.name));
    heads.forEach((head) => (head.scope = "col"));
    const body = rows.map((row) => {
      const name = make("th", "", row.label);
      name.scope = "row";
      const words = make("td", "words");
      words.dir = "auto";
      for (const [text, style] of row.runs) words.append(style ? make("span", style, text) : text);
      const again = row.more ? press("again", `Another edit: ${row.label}`, () => send("renew", row.kind), line(AGAIN)) : "";
      if (again) again.dataset.kind = row.kind;
      const cells = row.verdicts.map((one) => make("td", "answer", verdict(one)));
      return make("tr", "", name, words, ...cells, make("td", "", again));
    });
    const table = make("table", "", make("thead", "", make("tr", "", make("td"), make("td"), ...heads, make("td"))),
      make("tbody", "", ...body));
    const more = make("p", "chips", ...chips.map((chip) => press("chip", "", () => send("add", chip.kind), `+ ${chip.label}`)));
    const scroll = make("div", "scroll", table);
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "One edit of each kind, and the verdict of each model");
    this.table.replaceChildren(scroll, more);
    if (focused) this.table.querySelector(`[data-kind="${CSS.escape(focused)}"]`)?.focus();
    this.task.textContent = `Write something false that fools all ${models.length}.`;
    this.count.textContent = beat.count;
    if (this.field.getRootNode().activeElement !== this.field) this.field.value = beat.text;
    this.whom.replaceChildren(...beat.verdicts.map((one, place) => make("span", "one",
      drawing(models[place].path, "shape", "0 0 14 14", models[place].color), models[place].name, verdict(one))));
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const trial = part(parentElement, Trial);
  trial.draw(data, setTriggerValue);
  return () => clearTimeout(trial.typing);
}
