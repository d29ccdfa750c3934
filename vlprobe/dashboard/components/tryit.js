// Try it: a row for each kind of edit with each model's verdict, and a field for the user's wrong caption.
//
// data: models [{name, path, color}], rows [{kind, label, runs [[text, style]], verdicts [{state, text}], more}],
// chips [{kind, label}], all {label, id, scale} (link to all edits, in a fold; what a share means), beat {text, verdicts, count, note}. A state is "right", "fooled", "tie", "moved" or "unknown".
// Triggers: renew (a kind), add (a kind), claim (the text, while the user types).

const SIGNS = { right: TICK, fooled: CROSS };
const AGAIN = "M11.5 4.5 A5 5 0 1 0 12 8 M11.8 1.5 V4.8 H8.5";
const PAUSE = 250; // milliseconds

const line = (path) => outline(path, "line");

function verdict({ state, text }) {
  return make("span", `says ${state}`, SIGNS[state] && line(SIGNS[state]), text);
}

// Open the fold around an element, and scroll to it.
function open(id) {
  const element = document.getElementById(id);
  const fold = element?.closest("details");
  if (fold && !fold.open) fold.querySelector("summary").click();
  element?.scrollIntoView();
}

class Trial {
  constructor(root) {
    this.field = Object.assign(make("input", "claim"), { maxLength: 300, placeholder: "Type a wrong caption", dir: "auto",
      ariaLabel: "Your wrong caption" });
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

  draw({ models, rows, chips, all, beat }, send) {
    this.send = send;
    const focused = this.table.getRootNode().activeElement?.dataset?.kind;
    const heads = models.map((model) => Object.assign(make("th", "", markOf(model, "shape"), model.name), { scope: "col" }));
    const body = rows.map((row) => {
      const name = Object.assign(make("th", "", row.label), { scope: "row" });
      const again = row.more ? press("again", `Another edit: ${row.label}`, () => send("renew", row.kind), line(AGAIN)) : "";
      if (again) again.dataset.kind = row.kind;
      const cells = row.verdicts.map((one) => make("td", "answer", verdict(one)));
      return make("tr", "", name, written("td", "words", row.runs), ...cells, make("td", "", again));
    });
    const table = make("table", "", make("thead", "", make("tr", "", make("td"), make("td"), ...heads, make("td"))),
      make("tbody", "", ...body));
    const more = make("p", "chips", ...chips.map((chip) => press("chip", "", () => send("add", chip.kind), `+ ${chip.label}`)));
    const label = "One edit of each kind, with each model's verdict";
    table.style.setProperty("--n", models.length);
    if (all.label) more.prepend(press("all small quiet", "", () => open(all.id), all.label));
    const scale = all.scale && make("p", "small quiet", all.scale);
    this.table.replaceChildren(region("scroll", label, table), ...[scale, more].filter(Boolean));
    if (focused) this.table.querySelector(`[data-kind="${CSS.escape(focused)}"]`)?.focus();
    this.task.textContent = "Write a wrong caption that fools every model.";
    this.count.textContent = beat.count;
    if (this.field.getRootNode().activeElement !== this.field) this.field.value = beat.text;
    this.whom.replaceChildren(...beat.verdicts.map((one, place) => make("span", "one",
      markOf(models[place], "shape"), models[place].name, verdict(one))), make("span", "note small quiet", beat.note));
  }

  leave() {
    clearTimeout(this.typing);
  }
}

export default componentOf(Trial);
