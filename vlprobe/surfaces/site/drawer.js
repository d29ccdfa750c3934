"use strict";
// One case in a drawer: pictures, texts with the changed words marked, a bar a model, what else is known, the way to others.

function shot(entry) {
  const figure = make("figure", entry.style && `is-${entry.style}`);
  if (isPicture(entry.source)) {
    const image = make("img", "picture");
    image.src = entry.source;
    image.alt = entry.alt;
    figure.append(image);
  } else figure.append(make("span", "missing", `The picture ${entry.name} is not part of this site.`));
  if (entry.label) figure.append(make("figcaption", "small quiet", entry.label));
  figure.append(creditOf(entry.credit));
  return figure;
}

function captionLine([style, label, icon, runs]) {
  const role = make("span", `role role-${style}`);
  const sign = make("span", "", icon);
  sign.setAttribute("aria-hidden", "true");
  role.append(sign, ` ${label}`);
  const text = make("span", "told");
  text.dir = "auto";
  for (const [words, kind] of runs) text.append(kind ? make("span", `word-${kind}`, words) : words);
  return make("p", "caption", role, text);
}

function stripOf([label, note, pictures, credits]) {
  const row = make("div", "strip");
  for (const shown of pictures) {
    const image = make("img", shown.style);
    if (isPicture(shown.source)) image.src = shown.source;
    image.alt = image.title = shown.alt;
    row.append(image);
  }
  return make("div", "", label && make("p", "small quiet", label), row, note && make("p", "small quiet", note), ...credits.map(creditOf));
}

function barsOf(bars, models) {
  const title = make("p", "bars-title small quiet", make("span", "", bars.title));
  title.style.setProperty("--at", `${bars.titleAt}%`);
  const list = make("ul", "");
  bars.lines.forEach(([begin, width, isLie, style, icon, word, size], place) => {
    const model = models[place];
    const track = make("span", "track");
    track.setAttribute("aria-hidden", "true");
    if (size) {
      track.append(make("b"), make("i", isLie ? "lie-bar" : "true-bar"));
      track.firstChild.style.left = `${bars.zero}%`;
      Object.assign(track.lastChild.style, { left: `${begin}%`, width: `${width}%` });
    }
    const name = make("span", "model", drawing(model.path, "mark", "0 0 14 14", model.color), make("bdi", "", model.name));
    const line = make("li", "", name, track, make("span", `role role-${style}`, `${icon} ${word}`));
    line.title = [`${model.name}: ${word}`, size].filter(Boolean).join(", ");
    list.append(line);
  });
  return make("div", "bars", bars.title && title, list);
}

function factsOf(facts) {
  const list = make("dl", "facts");
  for (const [name, value] of facts) {
    const text = make("dd", "", value);
    text.dir = "auto";
    list.append(make("dt", "quiet", name), text);
  }
  return make("details", "", make("summary", "", "Details"), list);
}

function step(label, sign, act) {
  const button = make("button", "step", sign);
  button.type = "button";
  button.setAttribute("aria-label", label);
  button.title = label;
  button.disabled = !act;
  if (act) button.addEventListener("click", act);
  return button;
}

class Drawer {
  constructor(leave) {
    this.leave = leave;
    this.dialog = null;
  }

  close() {
    this.dialog?.close();
  }

  // shown: {values, models, where, previous, next, others [[label, act], ...]}
  show(shown) {
    const isNew = !this.dialog;
    if (isNew) {
      this.dialog = make("dialog", "drawer");
      this.dialog.setAttribute("role", "dialog");
      this.dialog.setAttribute("aria-label", "One case");
      this.dialog.addEventListener("close", () => {
        this.dialog.remove();
        this.dialog = null;
        this.leave();
      });
      this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
      this.dialog.addEventListener("keydown", (event) => this.key(event));
    }
    this.shown = shown;
    const { values } = shown;
    const steps = make("p", "steps", make("span", "small quiet", shown.where),
      step("Previous case", "‹", shown.previous), step("Next case", "›", shown.next), step("Close", "✕", () => this.close()));
    const pictures = make("div", values.shots.length > 1 ? "shots two" : "shots", ...values.shots.map(shot));
    const others = make("details", "", make("summary", "", `${shown.others.length} more on it`));
    for (const [label, act] of shown.others) {
      const button = make("button", "other", label);
      button.type = "button";
      button.dir = "auto";
      button.addEventListener("click", act);
      others.append(button);
    }
    this.dialog.replaceChildren(make("div", "case", steps, values.shots.length && pictures,
      make("div", "captions", ...values.captions.map(captionLine)), ...values.strips.map(stripOf),
      barsOf(values.bars, shown.models), values.note && make("p", "note", values.note),
      shown.others.length && others,
      values.credit && make("p", "credit small quiet", values.credit), factsOf(values.facts)));
    if (!isNew) return;
    document.body.append(this.dialog);
    this.dialog.showModal();
  }

  key(event) {
    const act = { ArrowLeft: this.shown.previous, ArrowRight: this.shown.next }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }
}
