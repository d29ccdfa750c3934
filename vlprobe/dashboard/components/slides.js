// Slides: a strip of them on the page, and the same over the whole window. Also the script of the file for offline use.
//
// data: heading, detail, start (label), pictures {key: data address}, slides [slide, ...]; `whole`: nothing but the slides.
// slide: id, layout, tag [text, style], heading [run, ...], detail, verdict, pictures [{key, alt, label, style, name, credit}],
// marks [{path, color, name, state, word}], figures [{figure, label, detail}], bars [{path, color, name, start, end, low, high,
// text, style, remark}], points, note, notes, spoken. A run is [text, style].
// No triggers: what is shown is nobody's business but this window's.

const KEYS = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, Enter: 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };

function button(style, label, act, ...children) {
  const element = make("button", style, ...children);
  element.type = "button";
  if (label) element.setAttribute("aria-label", label);
  element.addEventListener("click", act);
  return element;
}

function text(name, style, words) {
  if (!words) return "";
  const element = make(name, style, words);
  element.dir = "auto";
  return element;
}

function runs(name, style, line) {
  const element = make(name, style);
  element.dir = "auto";
  for (const [words, kind] of line) element.append(kind ? make("span", kind, words) : words);
  return element;
}

function shape({ path, color }) {
  return drawing(path, "mark", "0 0 14 14", color);
}

function picture(shown, pictures) {
  const source = pictures[shown.key] || "";
  const figure = make("figure", shown.style && `as-${shown.style}`);
  const absent = () => make("span", "image missing", `${shown.name} is missing. ${shown.alt}`);
  if (isPicture(source)) {
    const image = make("img", "image");
    image.alt = shown.alt;
    image.src = source;
    image.addEventListener("load", () => image.style.setProperty("--ratio", image.naturalWidth / image.naturalHeight || 1));
    image.addEventListener("error", () => image.replaceWith(absent()), { once: true });
    figure.append(image);
  } else figure.append(absent());
  if (shown.label) figure.append(make("figcaption", "", shown.label));
  figure.append(creditOf(shown.credit));
  return figure;
}

function list(style, rows, draw) {
  return rows.length ? make("ul", style, ...rows.map((row) => make("li", row.style ? `as-${row.style}` : "", ...draw(row)))) : "";
}

function drawMark(mark) {
  const word = mark.word ? `${mark.name}: ${mark.word}` : mark.name;
  const box = make("span", `answer ${mark.state}`, shape(mark), make("span", "hidden", word));
  box.title = word;
  return [box];
}

function drawFigure(one) {
  return [make("b", "", one.figure), make("span", "label", one.label), make("span", "quiet", one.detail)];
}

function percent(share) {
  return `${Math.min(Math.max(share, 0), 1) * 100}%`;
}

function drawBar(bar) {
  const fill = make("i", "fill");
  fill.style.left = percent(bar.start);
  fill.style.width = percent(bar.end - bar.start);
  if (bar.style === "best") fill.style.background = bar.color;
  const track = make("span", "track", fill);
  let reach = bar.end;
  if (bar.low !== null && bar.high !== null) {
    const line = make("i", "interval");
    line.style.left = percent(bar.low);
    line.style.width = percent(bar.high - bar.low);
    track.append(line);
    reach = Math.max(reach, bar.high);
  }
  const value = make("span", "value", bar.text);
  if (!bar.sided) value.style.left = `calc(${percent(reach)} + .6em)`;
  track.append(value);
  const name = make("span", "name", shape(bar), text("span", "called", bar.name));
  name.title = bar.name;
  if (bar.remark) name.append(make("span", "quiet", bar.remark));
  return [name, track];
}

function draw(slide, pictures, level) {
  const words = make("div", "words");
  const title = runs(level, "title", slide.heading);
  title.dataset.length = title.textContent.length > 280 ? "very" : title.textContent.length > 110 ? "long" : "";
  if (slide.tag[0]) words.append(make("p", `tag ${slide.tag[1] && `is-${slide.tag[1]}`}`, slide.tag[0]));
  words.append(title, text("p", "detail", slide.detail));
  if (slide.verdict) words.append(make("p", "verdict-line", slide.verdict));
  words.append(list("marks", slide.marks, drawMark));
  const frames = slide.pictures.length ? make("div", "frames", ...slide.pictures.map((one) => picture(one, pictures))) : "";
  const parts = [list("figures", slide.figures, drawFigure), list("bars", slide.bars, drawBar)];
  parts.push(list("points", slide.points.map((point) => ({ point })), ({ point }) => [text("span", "", point)]));
  parts.push(text("p", "note quiet", slide.note));
  const body = make("div", `slide ${slide.layout} is-${slide.id}`);
  if (slide.layout === "beside" && frames) body.append(frames, words, ...parts);
  else body.append(words, frames, ...parts);
  return body;
}

class Show {
  constructor(root) {
    this.root = root;
    this.place = 0;
    this.dialog = make("dialog", "show");
    this.dialog.setAttribute("aria-label", "Slides");
    this.dialog.addEventListener("keydown", (event) => this.key(event));
    this.dialog.addEventListener("cancel", (event) => (event.preventDefault(), this.end()));
    this.dialog.addEventListener("close", () => this.ended());
    this.full = () => {
      if (!document.fullscreenElement && this.wasFull) this.end();
      this.wasFull = Boolean(document.fullscreenElement);
    };
    this.page = make("div", "page");
    this.stage = make("div", "stage");
    this.stage.tabIndex = -1;
    this.speaker = make("aside", "speaker");
    this.speaker.hidden = true;
    this.speaker.setAttribute("aria-label", "Speaker notes");
    this.status = make("p", "hidden");
    this.status.setAttribute("role", "status");
    this.black = make("div", "black");
    this.black.hidden = true;
    this.black.addEventListener("click", () => this.darken());
    this.whole = make("div", "whole", this.stage, this.speaker, this.foot(), this.status, this.black);
    this.dialog.append(this.whole);
    root.replaceChildren(this.page, this.dialog);
  }

  foot() {
    this.dots = make("span", "dots");
    this.count = make("span", "count");
    const key = (letter) => make("kbd", "", letter);
    this.noted = button("pair", "", () => this.note(), key("N"), "notes");
    this.noted.setAttribute("aria-pressed", "false");
    this.keys = make("span", "keys",
      button("arrow", "Slide before", () => this.go(this.place - 1), key("←")),
      button("arrow", "Next slide", () => this.go(this.place + 1), key("→")),
      this.noted,
      button("pair wide", "", () => this.darken(), key("B"), "black"),
      button("pair wide", "", () => this.fill(), key("F"), "full screen"),
      button("pair", "", () => this.end(), key("Esc"), "end"));
    return make("div", "foot", this.dots, this.count, this.keys);
  }

  take(data) {
    document.addEventListener("fullscreenchange", this.full);
    this.data = data;
    this.place = Math.min(this.place, data.slides.length - 1);
    this.dots.replaceChildren(...data.slides.map((slide, place) =>
      button("dot", `Slide ${place + 1}: ${slide.spoken.slice(0, 80)}`, () => this.go(place))));
    const focused = this.openers().indexOf(this.root.getRootNode().activeElement);
    const begun = this.openers().indexOf(this.from);
    const start = button("start", "", () => this.begin(0, true), data.start);
    const strip = make("ol", "strip", ...data.slides.map((slide, place) => {
      const small = draw(slide, data.pictures, "p");
      small.inert = true;
      small.setAttribute("aria-hidden", "true");
      const open = button("small", `Slide ${place + 1} of ${data.slides.length}: ${slide.spoken}`,
        () => this.begin(place, true), make("span", "frame", small), make("span", "tiny quiet", `${place + 1}`));
      return make("li", "", open);
    }));
    this.page.replaceChildren(text("h1", "page-title", data.heading), text("p", "quiet", data.detail), start, strip);
    const openers = this.openers();
    if (begun >= 0) this.from = openers[begun] || start;
    if (focused >= 0) (openers[focused] || start).focus();
    if (data.whole) this.begin(0, false);
    else if (this.dialog.open) this.go(this.place);
  }

  // What slides are begun with: their places stay where new data come.
  openers() {
    return [...this.page.querySelectorAll("button")];
  }

  begin(place, fills) {
    this.from = this.root.getRootNode().activeElement;
    if (!this.dialog.open) this.dialog.showModal();
    if (fills) this.fill(true);
    this.go(place);
    this.stage.focus();
  }

  fill(isStart = false) {
    if (document.fullscreenElement) return isStart || document.exitFullscreen();
    this.whole.requestFullscreen?.().catch(() => {});  // where it is not allowed, the window is enough
  }

  go(place) {
    if (place < 0 || place >= this.data.slides.length) return;
    this.place = place;
    const slide = this.data.slides[place];
    this.stage.replaceChildren(draw(slide, this.data.pictures, "h2"));
    this.stage.scrollTop = 0;
    this.count.textContent = `${place + 1} of ${this.data.slides.length}`;
    this.status.textContent = `Slide ${place + 1} of ${this.data.slides.length}. ${slide.spoken}`;
    this.speaker.replaceChildren(make("h3", "tiny quiet", "Notes"), ...slide.notes.map((line) => text("p", "", line)));
    [...this.dots.children].forEach((dot, each) => {
      dot.classList.toggle("on", each === place);
      each === place ? dot.setAttribute("aria-current", "step") : dot.removeAttribute("aria-current");
    });
  }

  note() {
    this.speaker.hidden = !this.speaker.hidden;
    this.noted.setAttribute("aria-pressed", String(!this.speaker.hidden));
  }

  darken() {
    this.black.hidden = !this.black.hidden;
    this.status.textContent = this.black.hidden ? this.data.slides[this.place].spoken : "The screen is black.";
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pressed = event.composedPath()[0];
    if (["Enter", " "].includes(event.key) && pressed.tagName === "BUTTON") return;
    const letters = { n: () => this.note(), b: () => this.darken(), ".": () => this.darken(), f: () => this.fill() };
    const letter = letters[event.key.toLowerCase()];
    if (!this.black.hidden && event.key !== "Escape") this.darken();
    else if (event.key in KEYS) this.go(this.place + KEYS[event.key]);
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.data.slides.length - 1);
    else if (event.key === "Escape") this.end();
    else if (letter) letter();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The dialog is closed last: what has the focus outside of the whole screen would lose it when that ends.
  async end() {
    if (document.fullscreenElement) {
      this.wasFull = false;
      await document.exitFullscreen().catch(() => {});
    }
    if (this.dialog.open) this.dialog.close();
  }

  ended() {
    this.black.hidden = true;
    this.from?.focus?.();
  }

  leave() {
    document.removeEventListener("fullscreenchange", this.full);
    if (document.fullscreenElement && !this.root.isConnected) document.exitFullscreen();
  }
}

export default function present({ data, parentElement }) {
  const show = part(parentElement, Show);
  show.take(data);
  return () => show.leave();
}
