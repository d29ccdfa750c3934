// One failure: a heading, the picture, framed captions with the marks of the fooled models, and buttons. *Guess first*
// hides the answer until a caption is chosen, with a click or with the keys 1 and 2.
//
// data: kicker, only (whether there is no other case), cases (those in the browser; the shown one is first).
// case: id, place, heading [line, line], pictures [{source, name, alt, label, credit}], boxes [{line [[text, style], ...], label,
// style}], marks [{name, path, color}], more, verdict, right {marks, more, verdict} (models that chose the true caption), href, why (whether the words and parts that decided can be computed), present (address of the slides about the case; absent on a site).
// State: place, the number of the shown case. Triggers: go (the address of the clicked link).

const GUESS = "vlprobe-guess";
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
    this.guesses = kept("localStorage", GUESS) === "yes";
    tellLinks(root, (href) => this.send("go", href));
    this.listen = (event) => this.key(event);
  }

  draw(data, send, keep) {
    document.addEventListener("keydown", this.listen); // again after `leave`
    [this.send, this.keep] = [send, keep];
    this.data = data;
    this.cases = data.cases;
    const same = this.shown && this.cases.find((one) => one.id === this.shown.id && one.place === this.shown.place);
    if (this.shown && !same) this.root.scrollIntoView(); // the links to other datasets are at the end of the page
    if (!same || JSON.stringify(same) !== JSON.stringify(this.shown)) this.show(this.cases[0]);
  }

  // Draw a failure. `outcome` says whether a guess was right; without one, *Guess first* hides the answer.
  show(shown, outcome = "") {
    this.shown = shown;
    const isChoice = shown.boxes.map((entry) => entry.style).join() === "true,lie";
    this.isAsked = isChoice && this.guesses && !outcome;
    const lines = this.isAsked ? ["Your guess: 1 or 2?"] : shown.heading;
    const heading = make("h1", "", ...lines.flatMap((line) => [written("span", "sentence", line), " "]));
    const shots = this.isAsked ? shown.pictures.map((shot) => ({ ...shot, alt: "The picture of this question" })) : shown.pictures;
    const pictures = make("div", shots.length > 1 ? "pictures two" : "pictures", ...shots.map(picture));
    const frames = this.isAsked ? shown.boxes.map((entry) => this.choice(entry)) : shown.boxes.map(box);
    const boxes = make("div", "boxes", ...frames);
    if (!this.isAsked) {
      const first = frames.find((frame) => frame.classList.contains("is-true"));
      if (first && shown.right?.marks.length) first.append(votes(shown.right, "right"));
      const last = frames.at(-1);
      (last?.classList.contains("is-lie") ? last : boxes).append(votes(shown));
    }
    // The true caption comes first, which would give it away
    if (isChoice && this.guesses && [...shown.id].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % 2) boxes.prepend(frames[1]);
    [...boxes.querySelectorAll(".key")].forEach((key, place) => (key.textContent = String(place + 1)));
    const words = make("div", "words", boxes, this.buttons(shown));
    const kicker = make("p", outcome ? "kicker" : "kicker quiet", outcome || this.data.kicker);
    const top = make("div", "top", make("div", "line-above", kicker, isChoice && this.mode()), heading);
    const isPictured = shots.length > 0;
    const hero = make("section", isPictured ? "hero" : "hero bare", top, isPictured && pictures, words);
    this.root.replaceChildren(hero, this.told);
  }

  // Make a caption to choose, without a sign whether it is true.
  choice(entry) {
    const line = written("span", "line", entry.line.map(([text]) => [text, ""]));
    return press("box choice", "", () => this.reveal(entry.style === "true"), make("span", "key"), line);
  }

  // Make the button that turns guessing on and off. The browser remembers it.
  mode() {
    const button = press("guess", "", () => {
      this.guesses = !this.guesses;
      kept("localStorage", GUESS, this.guesses ? "yes" : "no");
      this.show(this.shown);
      this.root.querySelector(".guess").focus();
    }, "Guess first");
    button.ariaPressed = String(this.guesses);
    button.title = "Hides the answer until you choose a caption";
    return button;
  }

  reveal(isRight) {
    const outcome = isRight ? "You are right." : "You chose the lie.";
    this.show(this.shown, outcome);
    this.told.textContent = [outcome, ...this.shown.heading].join(" ");
    this.root.querySelector(this.data.only ? ".primary" : ".another").focus({ preventScroll: true });
  }

  key(event) {
    if (!this.isAsked || isChord(event) || isTyping() || document.querySelector("[role=dialog]")) return;
    this.root.querySelectorAll(".choice")["12".indexOf(event.key)]?.click();
  }

  leave() {
    document.removeEventListener("keydown", this.listen);
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
      this.told.textContent = this.root.querySelector("h1").textContent;
      this.root.querySelector(".another").focus();
    }
    this.keep("place", this.shown.place + (next ? 0 : 1));
  }
}

export default componentOf(Hero);
