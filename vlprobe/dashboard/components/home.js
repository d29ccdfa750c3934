// One failure: a heading, the picture, framed captions with the marks of the fooled models, and two buttons.
//
// data: kicker, only (whether there is no other case), cases (those in the browser; the shown one is first).
// case: id, place, heading [line, line], pictures [{source, name, alt, label, credit}], boxes [{line [[text, style], ...], label,
// style}], marks [{name, path, color}], more, verdict, right {marks, more, verdict} (models that chose the true caption), href, why (whether the words and parts that decided can be computed), present (address of the slides about the case; absent on a site).
// State: place, the number of the shown case. Triggers: go (the address of the clicked link).

const ICONS = {
  true: "M3 8.5 6.5 12 13 4.5",
  lie: "M4 4l8 8M12 4l-8 8",
  arrow: "M3 8h10M9 4l4 4-4 4",
  dice: "M2.5 2.5h11v11h-11z",
};
const PIPS = [[5.2, 5.2], [10.8, 5.2], [8, 8], [5.2, 10.8], [10.8, 10.8]];

function icon(name) {
  const image = drawing(ICONS[name], "icon", "0 0 16 16");
  if (name === "dice") image.append(...PIPS.map(([cx, cy]) => vector("circle", { cx, cy, r: 0.9 })));
  return image;
}

function mark(model) {
  const image = markOf(model);
  image.removeAttribute("aria-hidden");
  image.setAttribute("role", "img");
  image.setAttribute("aria-label", model.name);
  const title = vector("title", {});
  title.textContent = model.name;
  image.prepend(title);
  return image;
}

function picture(shot) {
  const image = imageOf(shot.source, shot.alt, "picture", () => make("span", "picture missing", shot.name));
  return make("figure", "shot", image, shot.label && make("figcaption", "small quiet", shot.label), creditOf(shot.credit));
}

function box(entry) {
  const label = make("span", "label", entry.style in ICONS && icon(entry.style), make("span", "", entry.label));
  return make("div", `box is-${entry.style}`, written("p", "line", entry.line), label);
}

function votes(shown, style = "") {
  return make("div", `votes ${style}`, ...shown.marks.map(mark), shown.more && make("span", "small quiet", `+${shown.more}`),
    make("span", "verdict-text", shown.verdict));
}

class Hero {
  constructor(root) {
    this.root = root;
    this.cases = [];
    this.shown = null;
    this.told = make("span", "hidden"); // a screen reader reads it after a change of case
    this.told.setAttribute("aria-live", "polite");
    tellLinks(root, (href) => this.send("go", href));
  }

  draw(data, send, keep) {
    [this.send, this.keep] = [send, keep];
    this.data = data;
    this.cases = data.cases;
    const same = this.shown && this.cases.find((one) => one.id === this.shown.id && one.place === this.shown.place);
    if (!same || JSON.stringify(same) !== JSON.stringify(this.shown)) this.show(this.cases[0]);
  }

  show(shown) {
    this.shown = shown;
    const heading = make("h1", "", ...shown.heading.flatMap((line) => [written("span", "sentence", line), " "]));
    const pictures = make("div", shown.pictures.length > 1 ? "pictures two" : "pictures", ...shown.pictures.map(picture));
    const frames = shown.boxes.map(box);
    const boxes = make("div", "boxes", ...frames);
    const first = frames.find((frame) => frame.classList.contains("is-true"));
    if (first && shown.right?.marks.length) first.append(votes(shown.right, "right"));
    const last = frames.at(-1);
    (last?.classList.contains("is-lie") ? last : boxes).append(votes(shown));
    const words = make("div", "words", boxes, this.buttons(shown));
    const top = make("div", "top", this.data.kicker && make("p", "kicker quiet", this.data.kicker), heading);
    const isPictured = shown.pictures.length > 0;
    const hero = make("section", isPictured ? "hero" : "hero bare", top, isPictured && pictures, words);
    this.root.replaceChildren(hero, this.told);
  }

  buttons(shown) {
    const why = shown.why && make("span", "wide", "Why? ");
    const label = [make("span", "", "Another"), make("span", "wide", " one")];
    return make("div", "buttons", linkTo("button primary", shown.href, why, make("span", "", "Open this case"), icon("arrow")),
      !this.data.only && press("button another", "", () => this.another(), icon("dice"), ...label),
      shown.present && linkTo("button", shown.present, "Present this case"));
  }

  another() {
    const at = this.cases.findIndex((one) => one.place === this.shown.place);
    const next = this.cases[at + 1];
    if (next) {
      this.show(next);
      this.told.textContent = next.heading.join(" ");
      this.root.querySelector(".another").focus();
    }
    this.keep("place", this.shown.place + (next ? 0 : 1));
  }
}

export default componentOf(Hero);
