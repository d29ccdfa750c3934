// Patterns as switches in a row: words, a bar of the rate, counts. Those that do not fit are behind one button.
//
// data: title, nothing (said instead of patterns), patterns: [{key, source, target, rate, counts, tip, on}].
// Triggers: toggle (a pattern's key).

function words(pattern) {
  const element = make("b", "words");
  element.dir = "auto";
  element.append(make("span", "", pattern.source));
  if (pattern.target) {
    const arrow = make("span", "arrow", "→");
    arrow.setAttribute("aria-label", "became");
    arrow.setAttribute("role", "img");
    element.append(arrow, make("span", "", pattern.target));
  }
  return element;
}

function chip(pattern, send) {
  const button = make("button", "chip");
  button.type = "button";
  button.title = pattern.tip;
  button.setAttribute("aria-pressed", String(pattern.on));
  const bar = make("span", "rate");
  bar.style.setProperty("--rate", `${Math.round(100 * pattern.rate)}%`);
  button.append(words(pattern), bar, make("span", "counts", pattern.counts));
  button.addEventListener("click", () => send(pattern.key));
  return button;
}

class Row {
  constructor(root) {
    this.root = root;
    this.isOpen = false;
    this.resizes = new ResizeObserver(() => this.fit());
    this.resizes.observe(root);
  }

  draw(data, send) {
    this.list = make("div", "list");
    this.list.setAttribute("role", "group");
    this.list.setAttribute("aria-label", data.title);
    const chosen = data.patterns.filter((pattern) => pattern.on);
    const others = data.patterns.filter((pattern) => !pattern.on);
    for (const pattern of [...chosen, ...others]) this.list.append(chip(pattern, send));
    if (!data.patterns.length) this.list.append(make("span", "quiet small", data.nothing));
    this.all = make("button", "all quiet small", `All ${data.patterns.length}`);
    this.all.type = "button";
    this.all.addEventListener("click", () => {
      this.isOpen = !this.isOpen;
      this.fit();
    });
    this.root.replaceChildren(make("span", "title quiet small", data.title), this.list, this.all);
    this.fit();
  }

  fit() {
    if (!this.list) return;
    this.root.classList.toggle("open", this.isOpen);
    this.root.classList.toggle("none", !this.list.querySelector(".chip"));
    const chips = [...this.list.children];
    for (const each of chips) each.hidden = false;
    const top = this.list.getBoundingClientRect().top;
    const height = this.list.clientHeight;
    const below = chips.filter((each) => each.getBoundingClientRect().top - top >= height - 4);
    this.all.hidden = !this.isOpen && !below.length;
    this.all.setAttribute("aria-expanded", String(this.isOpen));
    if (!this.isOpen) for (const each of below) each.hidden = true;
  }

  leave() {
    this.resizes.disconnect();
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const row = part(parentElement, Row);
  row.draw(data, (key) => setTriggerValue("toggle", key));
  return () => row.leave();
}
