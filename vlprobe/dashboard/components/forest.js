// A forest plot: a group a kind of edit, in it a row a model. Each row is a button that shows its pictures; the plot is
// one stop of the Tab key, arrows move inside.
//
// data: label, less and more (what the two sides mean), zero (per cent), ticks [{at, text, zero}], groups [{title, count,
// rows}], totals {legend, count, label, marks [{at, label}]} or null. row: subtype, model, name, path, color, at, ends,
// beyond, clear, uncorrected, text, tone, label, pressed.
// Trigger: row, [group, row] by number.


function mark(row, hollow) {
  const image = drawing(row.path, "", "-1 -1 16 16", hollow ? "var(--vp-bg)" : row.color);
  image.firstChild.style.stroke = hollow ? row.color : "var(--vp-bg)";
  image.firstChild.style.strokeWidth = hollow ? "1.9" : "1";
  return image;
}

function plot(row) {
  const track = make("span", "plot");
  if (row.at === null) return track;
  const [from, to] = row.ends;
  const line = make("span", `line${row.clear ? " clear" : ""}${row.uncorrected ? " dashed" : ""}`);
  line.style.left = `${from}%`;
  line.style.width = `${Math.max(to - from, 0)}%`;
  line.style.color = row.color;
  const place = make("span", "place");
  place.style.left = `${row.at}%`;
  place.append(mark(row, !row.clear));
  track.append(line, place);
  if (row.beyond) track.append(make("span", `beyond ${row.beyond}`, row.beyond === "left" ? "‹" : "›"));
  return track;
}

function button(row, group, place) {
  const button = make("button", row.clear ? "row clear" : "row");
  button.type = "button";
  button.tabIndex = -1;
  button.dataset.place = `${group}:${place}`;
  button.style.setProperty("--place", place + 1);
  button.title = row.label;
  button.setAttribute("aria-label", row.label);
  button.setAttribute("aria-pressed", String(row.pressed));
  const name = make("span", "name");
  const word = make("span", "word", row.name);
  word.dir = "auto";
  name.append(mark(row, false), word);
  button.append(plot(row), name, make("span", `text ${row.tone}`, row.text));
  return button;
}

function head(data) {
  const top = make("div", "grid head");
  const scale = make("div", "plot sides small");
  const less = make("span", "less", `← ${data.less}`);
  const more = make("span", "more", `${data.more} →`);
  less.style.right = `calc(${100 - data.zero}% + 16px)`;
  more.style.left = `calc(${data.zero}% + 16px)`;
  // A side without room for its words says them below the other.
  top.classList.toggle("narrow-left", data.zero < 30);
  top.classList.toggle("narrow-right", data.zero > 82);
  scale.append(less, more);
  top.append(scale);
  return top;
}

function axis(data) {
  const bottom = make("div", "grid axis tiny quiet");
  const scale = make("div", "plot");
  for (const tick of data.ticks) {
    const text = make("span", tick.zero ? "tick zero" : "tick", tick.text);
    text.style.left = `${tick.at}%`;
    if (tick.zero) text.style.transform = `translateX(-${tick.at}%)`; // a long name stays on the page
    scale.append(text);
  }
  bottom.append(scale);
  bottom.setAttribute("aria-hidden", "true");
  return bottom;
}

class Forest {
  constructor(root) {
    this.root = root;
    this.current = "";
    root.addEventListener("click", (event) => this.click(event));
    root.addEventListener("keydown", (event) => this.key(event));
    root.addEventListener("focusin", (event) => this.visit(event.target.closest("button.row")));
  }

  draw(data, send) {
    this.send = send;
    const hadFocus = this.root.contains(this.root.getRootNode().activeElement);
    const list = make("ul", "groups");
    list.setAttribute("aria-label", data.label);
    data.groups.forEach((group, index) => list.append(this.group(group, index)));
    this.root.style.setProperty("--zero", `${data.zero}%`);
    this.root.replaceChildren(head(data), list, ...(data.totals ? [this.totals(data.totals)] : []), axis(data));
    this.buttons = [...list.querySelectorAll("button.row")];
    const pressed = this.buttons.find((button) => button.getAttribute("aria-pressed") === "true");
    const kept = this.buttons.find((button) => button.dataset.place === this.current) || pressed || this.buttons[0];
    if (kept) kept.tabIndex = 0;
    if (hadFocus && kept) kept.focus();
  }

  group(group, index) {
    const item = make("li", "grid group");
    item.style.setProperty("--rows", group.rows.length);
    const what = make("div", "what");
    const title = make("span", "title", group.title);
    title.dir = "auto";
    what.append(title, make("span", "small quiet", group.count));
    const zero = make("span", "plot zero");
    zero.setAttribute("aria-hidden", "true");
    item.append(what, zero);
    group.rows.forEach((row, place) => item.append(button(row, index, place)));
    return item;
  }

  // Hollow marks of published totals, on the axis of the rows of all lies; a press on the button hides them.
  totals(totals) {
    const strip = make("div", "grid totals");
    const scale = make("span", "plot");
    scale.setAttribute("role", "img");
    scale.setAttribute("aria-label", totals.label);
    for (const mark of totals.marks) {
      const ring = make("span", "ring");
      ring.style.left = `${mark.at}%`;
      ring.title = mark.label;
      scale.append(ring);
    }
    const legend = make("span", "legend small quiet", make("span", "ring"), make("span", "", totals.legend));
    const button = make("button", "switch small");
    button.type = "button";
    const show = (hidden) => {
      this.hidesTotals = hidden;
      strip.classList.toggle("off", hidden);
      button.textContent = hidden ? "Show" : "Hide";
      button.setAttribute("aria-label", `${button.textContent} ${totals.legend}`);
    };
    button.addEventListener("click", () => show(!this.hidesTotals));
    show(this.hidesTotals === true);
    strip.append(legend, scale, make("span", "name small quiet", totals.count), button);
    return strip;
  }

  click(event) {
    const button = event.target.closest("button.row") || this.near(event.target.closest(".group"));
    if (!button) return;
    this.visit(button);
    button.focus();
    this.send(button.dataset.place.split(":").map(Number));
  }

  // A press beside the rows is one on the model that is shown already, else on the first.
  near(group) {
    if (!group) return null;
    const rows = [...group.querySelectorAll("button.row")];
    const shown = this.buttons.find((button) => button.getAttribute("aria-pressed") === "true");
    const place = shown ? Number(shown.dataset.place.split(":")[1]) : 0;
    return rows[place] || rows[0];
  }

  visit(button) {
    if (!button) return;
    for (const each of this.buttons) each.tabIndex = each === button ? 0 : -1;
    this.current = button.dataset.place;
  }

  key(event) {
    const button = event.target.closest("button.row");
    if (!button || event.ctrlKey || event.metaKey || event.altKey) return;
    const place = this.buttons.indexOf(button);
    const goals = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: this.buttons.length - 1 };
    const goal = this.buttons[goals[event.key]];
    if (!goal) return;
    this.visit(goal);
    goal.focus();
    event.preventDefault();
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  part(parentElement, Forest).draw(data, (place) => setTriggerValue("row", place));
}
