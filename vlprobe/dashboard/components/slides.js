// Slides: an editor with a filmstrip, and a show in the whole window. Also the script of the exported offline file.
//
// data: heading, detail, pictures {key: data address}, slides [slide, ...]; `whole` (only the slides); deck (its name: another one opens with its first slide);
// `editable`; opened (id of the slide that a link names, or ""); saved (message after a change is stored); suggestions [{id, source, alt, label}] of cases to add.
// slide: id, key (of the user's title and note, which also belong to the slide's case), case, layout, tag [text, style], heading [run, ...], detail, pictures [{key, alt, label, style, name, credit}],
// on (whether it is shown), lacks (whether its photograph is not on this computer), titled and noted (texts of the user, or null), options [{caption, style, marks}],
// marks [{path, color, name, exact (on other pages), state, word}], figures [{figure, label, detail}], bars [{path, color, name, exact, start, end, low, high,
// text, style, remark}], limit (share of a track at which a line is, 0: none), limitLabel (what it stands for), note, notes, spoken, question (a slide before
// this one, or null). A run is [text, style].
// near [id]: slides with large pictures, if the others have thumbnails.
// kept {name, text}: a visitor's deck, which this browser keeps; null for a stored deck.
// State: near, the id of the open slide if it has a thumbnail. Triggers: kept (the deck that this browser kept), deck {order [id], included {id: bool}, titles {key: text}, notes {key: text},
// known [id] (all slides that the page sent)}, after each change.

const KEYS = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, Enter: 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };
const MOST_NAMED = 8;
const VALUE_ROOM = 0.16; // share of a track that a value next to a bar takes
const SIZES = [0.8, 0.9, 1, 1.15, 1.3, 1.5, 1.75, 2]; // of type
// Steps in which a slide shrinks until it fits: its scale, and whether details are left out.
const FITS = [[1, false], [.93, false], [.86, false], [.8, false], [.86, true], [.78, true], [.7, true], [.62, true], [.54, true],
  [.46, true], [.4, true]];
const IN_A_ROW = 5; // pictures
const PAUSE = 500; // milliseconds without a key after which typed text is stored
const SETTLED = 60; // milliseconds in which a click follows where a finger was lifted
const EMPTY = "Empty: not shown";
const HOW_TO_VOTE = "To count votes, press 1 or 2 or click an answer. 0 clears.";
const TITLE = "text:title"; // start of the id of a title slide
const BLANK = { case: "", layout: "stacked", tag: ["", ""], detail: "", pictures: [], marks: [], options: [],
  figures: [], bars: [], limit: 0, limitLabel: "", note: "", notes: [], on: true };

const textOf = (runs) => runs.map(([words]) => words).join("");

// A text slide is shown once it has a title.
const isShown = (slide) => slide.on && (slide.titled?.trim() || !slide.id.startsWith("text:"));

// Return the slides of the show: a question comes before its answer, with which it is one slide in the editor.
const withQuestions = (slides) => slides.flatMap((slide) => (slide.question ? [slide.question, slide] : [slide]));
const inShow = (slides) => withQuestions(slides.filter(isShown));

// A question has captions or pictures to vote for.
const isVote = ({ options, pictures }) => [...options, ...pictures].some(({ style, caption }) => (caption ? !style : style === "vote"));

// Return how many of all votes an answer has, if there are any.
function votesOf(votes, index) {
  const nVotes = votes ? votes[0] + votes[1] : 0;
  return nVotes && index < 2 ? make("span", "votes", `${votes[index]} of ${nVotes} ${nVotes === 1 ? "vote" : "votes"}`) : "";
}

// Draw a picture with its label and its votes.
function picture(shown, pictures, count = "") {
  const source = pictures[shown.key] || "";
  const figure = make("figure", shown.style && `as-${shown.style}`);
  const image = imageOf(source, shown.alt, "image", () => make("span", "image missing", `${shown.name && `${shown.name} is missing. `}${shown.alt}`));
  image.addEventListener("load", () => {
    image.style.setProperty("--ratio", image.naturalWidth / image.naturalHeight || 1);
    const slide = image.closest(":is(.large, .stage) .slide");
    if (slide?.isConnected) fit([slide]); // it was fitted as a square
  });
  const label = shown.style === "vote" ? make("figcaption", "", make("span", "sign", shown.label)) : written("figcaption", "", shown.label);
  label.append(count);
  figure.append(image, shown.label.length ? label : "", creditOf(shown.credit));
  return figure;
}

function list(style, rows, draw) {
  return rows.length ? make("ul", style, ...rows.map((row) => make("li", row.style ? `as-${row.style}` : "", ...draw(row, rows.indexOf(row), rows)))) : "";
}

// Draw a model's answer with its name, or only a symbol if there are many models.
function drawMark(mark, place, all) {
  const isNamed = all.length <= MOST_NAMED;
  const word = mark.word && (!isNamed || mark.state === "tied") ? `${mark.name}: ${mark.word}` : mark.name;
  const box = make("span", `${isNamed ? "chip" : "answer"} ${mark.state}`, markOf(mark), make("span", isNamed ? "named" : "hidden", word));
  box.title = mark.exact === mark.name ? word : `${word} (${mark.exact})`;
  return [box];
}

function drawOption(option, index, votes, nModels) {
  const sign = option.style ? { true: "✓", lie: "✕" }[option.style] : String(index + 1);
  const count = votes?.ofPictures ? "" : votesOf(votes, index);
  const nChose = option.marks.filter((mark) => mark.state !== "tied").length; // counted as in the heading
  const tally = nChose ? make("span", "tally", `${nChose} of ${nModels} models`) : "";
  const words = make("div", "choice", written("p", "", option.caption), list("marks", option.marks, drawMark), tally, count);
  return [option.style === "plain" ? "" : make("span", "sign", sign), words];
}

const percent = (share) => `${Math.min(Math.max(share, 0), 1) * 100}%`;

const reachOf = (bar) => Math.max(bar.end, bar.high ?? 0);

// Values are next to their bars, or in one column behind the line at the limit if it would run through one of them.
function drawBars({ bars, limit, limitLabel }) {
  const crosses = bars.some((bar) => reachOf(bar) < limit && limit < reachOf(bar) + VALUE_ROOM);
  const column = crosses ? Math.max(limit, ...bars.map(reachOf)) : 0;
  return list("bars", bars, (bar) => drawBar(bar, limit, limitLabel, column));
}

function drawBar(bar, limit, label, column) {
  const fill = make("i", "fill");
  fill.style.left = percent(bar.start);
  fill.style.width = percent(bar.end - bar.start);
  if (bar.style === "best") fill.style.background = bar.color;
  const track = make("span", "track", fill);
  if (limit) {
    const line = make("i", "limit");
    line.style.left = percent(limit);
    line.dataset.label = label;
    track.append(line);
  }
  if (bar.low !== null && bar.high !== null) {
    const line = make("i", "interval");
    line.style.left = percent(bar.low);
    line.style.width = percent(bar.high - bar.low);
    track.append(line);
  }
  const value = make("span", "value", bar.text);
  if (!bar.sided) value.style.left = `calc(${percent(column || reachOf(bar))} + .6em)`;
  track.append(value);
  const name = make("span", "name", bar.path && markOf(bar), written("span", "called", bar.name));
  name.title = bar.exact;
  if (bar.remark) name.append(make("span", "quiet", bar.remark));
  return [name, track];
}

function draw(slide, pictures, level, votes) {
  const words = make("div", "words");
  const title = written(level, "title", slide.heading);
  title.dataset.length = title.textContent.length > 280 ? "very" : title.textContent.length > 110 ? "long" : "";
  if (slide.tag[0]) words.append(make("p", `tag ${slide.tag[1] && `is-${slide.tag[1]}`}`, slide.tag[0]));
  words.append(title, slide.detail && written("p", "detail", slide.detail.replace(/^[-*] /gm, "• ")));
  words.append(list("marks", slide.marks, drawMark));
  const nModels = slide.options.reduce((sum, option) => sum + option.marks.length, 0);
  words.append(list("options", slide.options, (option, index) => drawOption(option, index, votes, nModels)));
  const ofPictures = votes?.ofPictures ? votes : null;
  // A picture belongs to each number, if there are numbers
  const frames = slide.pictures.length && !slide.figures.length ? make("div", `frames ${slide.pictures.length > IN_A_ROW ? "in-rows" : ""}`, ...slide.pictures.map((one, index) => picture(one, pictures, votesOf(ofPictures, index)))) : "";
  const figures = list("figures", slide.figures, (one, index) =>
    [slide.pictures[index] ? picture(slide.pictures[index], pictures) : "", make("b", "", one.figure), make("span", "label", one.label), make("span", "quiet", one.detail)]);
  const parts = [figures, drawBars(slide)];
  parts.push(slide.note && written("p", "note quiet", slide.note));
  if (figures) figures.style.setProperty("--count", slide.figures.length);
  const body = make("div", `slide ${slide.layout} is-${slide.id}`);
  body.style.setProperty("--pictures", Math.max(slide.pictures.length, 1));
  if (slide.layout === "beside" && frames) body.append(frames, words, ...parts);
  else body.append(words, frames, ...parts);
  return body;
}

// Shrink slides until nothing is cut off: first type and pictures; then symbols replace the names of models, and
// hints are left out. Type has a minimum size. A slide that is still too high scrolls on the screen and is zoomed elsewhere.
function fit(elements) {
  let slides = [...elements];
  for (const [size, isShort] of FITS) {
    for (const slide of slides) {
      slide.style.zoom = "";
      slide.style.setProperty("--fit", size);
      slide.classList.toggle("is-short", isShort);
      for (const name of slide.querySelectorAll(".named")) name.classList.toggle("hidden", isShort);
    }
    slides = slides.filter((slide) => slide.offsetHeight > slide.parentElement.clientHeight + 1);
    if (!slides.length) return;
  }
  for (const slide of slides) {
    if (!slide.closest(".whole")) slide.style.zoom = slide.parentElement.clientHeight / slide.offsetHeight;
  }
}

class Show {
  constructor(root) {
    this.root = root;
    this.place = 0;
    this.dialog = make("dialog", "show");
    this.dialog.setAttribute("aria-label", "Slides");
    this.pressed = (event) => this.key(event);
    this.dialog.addEventListener("keydown", this.pressed);
    this.dialog.addEventListener("cancel", (event) => (event.preventDefault(), this.end()));
    this.dialog.addEventListener("close", () => this.ended());
    this.full = () => {
      if (!document.fullscreenElement && this.wasFull) this.end();
      this.wasFull = Boolean(document.fullscreenElement);
    };
    this.votes = {};
    this.size = SIZES.indexOf(1);
    this.saved = make("span", "tiny quiet");
    this.saved.setAttribute("role", "status");
    this.page = make("div", "page");
    this.page.addEventListener("pointerdown", () => (this.isHeld = true));
    this.page.addEventListener("focusout", () => this.later());
    this.release = () => {
      this.isHeld = false;
      this.later();
    };
    this.stage = make("div", "stage");
    this.stage.tabIndex = -1;
    this.stage.addEventListener("click", (event) => this.tap(event));
    this.speaker = make("aside", "speaker");
    this.speaker.hidden = true;
    this.speaker.setAttribute("aria-label", "Speaker notes");
    this.status = make("p", "hidden");
    this.status.setAttribute("role", "status");
    this.black = make("div", "black");
    this.black.hidden = true;
    this.black.addEventListener("click", () => this.darken());
    this.whole = make("div", "whole", this.stage, this.speaker, this.foot(), this.status, this.black);
    this.whole.addEventListener("pointermove", () => this.wake());
    this.starts = (event) => {
      if (event.key !== "F5" || event.ctrlKey || event.shiftKey || this.dialog.open) return;
      event.preventDefault();
      this.start();
    };
    this.dialog.append(this.whole);
    root.replaceChildren(this.page, this.dialog);
    // Decoded pictures, votes, notes and the window change the available space; a change of size in the callback would loop
    this.sizes = new ResizeObserver((changes) => requestAnimationFrame(() =>
      fit(changes.map(({ target }) => target).filter((slide) => slide.isConnected))));
  }

  // Fit all slides of a part: large ones now, and each when its size changes. Thumbnails have a size once they are in view,
  // because the layout of 240 takes seconds.
  fit(part) {
    fit(part.querySelectorAll(":is(.large, .stage) .slide"));
    part.querySelectorAll(".slide").forEach((slide) => this.sizes.observe(slide));
  }

  foot() {
    this.dots = make("span", "dots");
    this.count = make("span", "count");
    const key = (letter) => make("kbd", "", letter);
    this.noted = press("pair", "", () => this.note(), key("N"), "notes");
    this.noted.setAttribute("aria-pressed", "false");
    this.keys = make("span", "keys",
      press("arrow", "Slide before", () => this.go(this.place - 1), key("←")),
      press("arrow", "Next slide", () => this.go(this.place + 1), key("→")),
      this.noted,
      press("pair wide", "", () => this.openNotes(), key("W"), "notes window"),
      press("pair wide", "", () => this.darken(), key("B"), "black"),
      press("pair wide", "", () => this.fill(), key("F"), "full screen"),
      press("arrow wide", "Smaller type", () => this.resize(-1), key("−")),
      press("arrow wide", "Larger type", () => this.resize(1), key("+")),
      press("pair", "", () => this.end(), key("Esc"), "end"));
    return make("div", "foot", this.dots, this.count, this.keys);
  }

  take(data, send, keep) {
    this.leave();
    const { signal } = (this.listening = new AbortController());
    document.addEventListener("fullscreenchange", this.full, { signal });
    document.addEventListener("keydown", this.starts, { signal });
    if (!data.whole) addEventListener("beforeprint", () => this.fillPaper(), { signal });
    addEventListener("afterprint", () => this.paper?.remove(), { signal });
    for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, this.release, { capture: true, signal });
    this.send = send;
    this.keep = keep;
    const same = JSON.stringify(data);
    if (same === this.same) return;
    if (this.unsaved && same !== this.unsaved) [this.saved.textContent, this.unsaved] = [data.saved || "", ""];
    this.same = same;
    this.data = data;
    if (data.kept && !data.whole) this.recall(data.kept);
    this.known = data.slides.map((slide) => slide.id);
    this.slides = inShow(data.slides);
    this.place = Math.min(this.place, Math.max(this.slides.length - 1, 0));
    this.dots.replaceChildren(...this.slides.map((slide, place) =>
      press("dot", `Slide ${place + 1}: ${slide.spoken.slice(0, 80)}`, () => this.go(place))));
    const begun = this.openers().indexOf(this.from);
    if (data.deck !== this.deck) [this.deck, this.chosen] = [data.deck, ""];
    if (data.opened !== this.opened) [this.opened, this.chosen] = [data.opened, data.opened || this.chosen];
    if (data.slides.some((slide) => slide.id === this.wanted)) [this.chosen, this.wanted] = [this.wanted, ""];
    if (!data.slides.some((slide) => slide.id === this.chosen)) this.chosen = (data.slides.find(isShown) ?? data.slides[0])?.id;
    this.edit();
    const openers = this.openers();
    if (begun >= 0) this.from = openers[begun] || openers[0];
    if (data.whole) this.begin(0, false);
    else if (this.dialog.open) this.go(this.place);
  }

  // The server forgets a visitor's deck when the session ends, so the browser keeps it. After that, a new session has no
  // text for the deck; a deck that the user reset has a text.
  recall({ name, text }) {
    const key = `vlprobe-deck ${name}`, isLost = this.recalled === name && this.had && !text;
    const before = this.recalled === name && !isLost ? "" : kept("localStorage", key);
    [this.recalled, this.had] = [name, text];
    if (before && before !== text) this.send("kept", JSON.parse(before));
    else if (text) kept("localStorage", key, text);
  }

  // Return whether new elements would interrupt a click or typing.
  isBusy() {
    const active = this.root.getRootNode().activeElement;
    return this.isHeld || this.isLeft || (active?.matches(".field *") && active.value !== active.defaultValue);
  }

  later() {
    setTimeout(() => this.waits && this.edit(), SETTLED);
  }

  // Draw the page again. The focus stays on the control in the same place.
  edit() {
    this.waits = this.isBusy();
    if (this.waits) return;
    const parts = () => [...this.page.querySelectorAll("button, input, textarea")];
    const focused = parts().indexOf(this.root.getRootNode().activeElement);
    this.draw();
    if (focused >= 0) (parts()[focused] || parts()[0])?.focus();
  }

  // Draw the filmstrip, the chosen slide, and its properties.
  draw() {
    const { data } = this, { scrollLeft = 0, scrollTop = 0 } = this.strip || {};
    const slide = data.slides.find((one) => one.id === this.chosen);
    const start = press("start", "", () => this.start(), "Start the slides", make("kbd", "", "F5"));
    start.disabled = !this.slides.length;
    const head = make("div", "head", make("div", "", written("h1", "page-title", data.heading), data.detail && written("p", "quiet", data.detail)),
      press("print", "", () => print(), "Print / PDF"), start);
    if (!slide) return this.page.replaceChildren(head);
    const large = press("large", `Show slide: ${slide.spoken}`, () => this.begin(this.slides.indexOf(slide), true),
      make("span", "frame", this.small(slide)));
    large.disabled = !isShown(slide);
    this.strip = make("ol", "strip", ...data.slides.map((one, place) => this.cell(one, place)));
    const middle = make("div", "middle", large);
    const side = make("div", "properties");
    if (data.editable) {
      const isText = slide.id.startsWith("text:");  // its first line is the title
      const parts = slide.question ? [[slide.question, "the question"], [slide, "the answer"]] : [[slide, "this slide"]];
      for (const [one, name] of parts) {
        middle.append(this.field("textarea", slide.question ? `Speaker notes for ${name}` : "Speaker notes", one.notes.join("\n"),
          (value) => Object.assign(this.current(one), { noted: value, notes: value.split("\n") })));
        side.append(this.field(isText ? "textarea" : "input", isText ? "Title, and text below it" : `Title of ${name}`,
          isText ? one.titled || "" : textOf(one.heading), (value) => {
            const [first, ...lines] = value.trim().split("\n");
            Object.assign(this.current(one), { heading: [[first, ""]], titled: value }, isText && { detail: lines.join("\n") });
          }, true));
      }
      side.append(this.actions(slide));
    }
    const more = data.editable && this.additions();
    this.page.replaceChildren(head, make("div", "editor", this.strip, middle, side, more));
    this.fit(this.page);
    // Scroll the filmstrip, but not the page, if the slide is out of view
    const { clientWidth, clientHeight, children } = this.strip, item = children[data.slides.indexOf(slide)];
    const near = (scrolled, start, size, space) => scrolled <= start && start + size <= scrolled + space ? scrolled : start - (space - size) / 2;
    this.strip.scrollTo(near(scrollLeft, item.offsetLeft, item.offsetWidth, clientWidth), near(scrollTop, item.offsetTop, item.offsetHeight, clientHeight));
  }

  // Draw the chosen slide again, but not its fields: someone types in one.
  preview() {
    const { slides } = this.data;
    const place = slides.findIndex((one) => one.id === this.chosen), large = this.page.querySelector(".large");
    large.disabled = !isShown(slides[place]);
    large.querySelector(".frame").replaceChildren(this.small(slides[place]));
    const item = this.strip.children[place];
    if (item.classList.contains("off") === !isShown(slides[place])) item.replaceWith(this.cell(slides[place], place));
    else this.strip.replaceChildren(...slides.map((one, at) => this.cell(one, at))); // all numbers change
    this.page.querySelector(".actions").replaceWith(this.actions(slides[place]));
    this.fit(this.page);
  }

  // Return this slide in the newest data, which may have arrived after the page was drawn.
  current(slide) {
    return withQuestions(this.data.slides).find((one) => one.key === slide.key) ?? slide;
  }

  small(slide) {
    const small = draw(slide, this.data.pictures, "p", this.votes[slide.case]);
    small.inert = true;
    small.setAttribute("aria-hidden", "true");
    return small;
  }

  cell(slide, place) {
    const { slides, editable } = this.data;
    // The true caption names answers that share a title
    const isShared = slides.some((one) => one !== slide && textOf(one.heading) === textOf(slide.heading));
    const truth = isShared && !slide.titled && slide.options.find((option) => option.style === "true");
    const name = textOf(truth ? truth.caption : slide.heading);
    const show = inShow(slides), last = show.indexOf(slide) + 1;
    const number = last && (slide.question ? `${last - 1}–${last}` : `${last}`); // in the show
    const frames = [slide.question, slide].filter(Boolean).map((one) => make("span", "frame", make("span", "scaled", this.small(one))));
    const open = press("small", `${number ? `Slide ${number} of ${show.length}` : "Left out"}: ${slide.spoken}`, () => this.choose(slide.id),
      ...frames, make("span", "tiny called", slide.lacks && make("b", "", "No picture · "), `${number || ""} ${slide.on && !number ? EMPTY : name}`.trim()));
    open.setAttribute("aria-pressed", String(slide.id === this.chosen));
    open.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      if (event.altKey) editable && this.move(slide.id, place + step);
      else this.choose(slides[Math.max(0, Math.min(slides.length - 1, place + step))].id);
    });
    const item = make("li", isShown(slide) ? "" : "off", open);
    if (!editable) return item;
    const tick = make("input", "tick");
    const isEmpty = slide.on && !isShown(slide);
    Object.assign(tick, { type: "checkbox", checked: isShown(slide), disabled: isEmpty });
    tick.setAttribute("aria-label", `Include ${number ? `slide ${number}` : "this slide"}: ${isEmpty ? EMPTY : name.slice(0, 80)}`);
    tick.addEventListener("change", () => ((this.current(slide).on = tick.checked), this.save()));
    item.addEventListener("pointerdown", (event) => event.button === 0 && this.drag(slide.id, event.clientY));
    item.append(tick);
    return item;
  }

  // Drag a slide in the filmstrip. The slide under the pointer marks the target.
  drag(id, start) {
    const under = ({ clientX, clientY }) =>
      Math.abs(clientY - start) < 8 ? -1 : [...this.strip.children].findIndex((item) => {
        const box = item.getBoundingClientRect();
        return clientX >= box.left && clientX <= box.right && clientY >= box.top && clientY <= box.bottom;
      });
    const show = (event) => [...this.strip.children].forEach((item, place) => item.classList.toggle("over", place === under(event)));
    const dragging = new AbortController(), { signal } = dragging;
    document.addEventListener("pointermove", show, { signal });
    document.addEventListener("pointercancel", () => dragging.abort(), { signal });  // a touch that scrolls
    document.addEventListener("pointerup", (event) => {
      dragging.abort();
      const place = under(event);
      if (place >= 0) this.move(id, place);
    }, { signal });
  }

  field(name, label, value, act, isShownAtOnce = false) {
    const input = Object.assign(make(name), { value, defaultValue: value, dir: "auto", maxLength: isShownAtOnce ? 300 : 4000 });
    const save = () => {
      clearTimeout(this.typing);
      act(input.value);
      this.save();
    };
    input.addEventListener("input", () => {
      act(input.value);
      if (isShownAtOnce) this.preview();
      this.saved.textContent = "";
      clearTimeout(this.typing);
      this.typing = setTimeout(save, PAUSE);
    });
    input.addEventListener("change", () => {
      input.defaultValue = input.value;
      this.isLeft = true; // Tab has not yet moved the focus
      save();
      this.isLeft = false;
      this.later();
    });
    return make("label", "field", make("span", "label", label), input);
  }

  actions(slide) {
    const place = () => this.data.slides.findIndex((one) => one.id === slide.id);
    const row = make("div", "actions",
      press("act", "Move this slide up", () => this.move(slide.id, place() - 1), "↑"),
      press("act", "Move this slide down", () => this.move(slide.id, place() + 1), "↓"));
    for (const [label, hint, isFirst] of [["+ Title", "Add a title slide before all others", true], ["+ Text", "Add a slide with text after this one", false]]) {
      row.append(press("act", hint, () => {
        this.add(`${isFirst ? TITLE : "text:"}${Date.now()}`, "Title", isFirst);
        this.page.querySelector(".properties textarea").focus();
      }, label));
    }
    if (/^(case|figure|text):/.test(slide.id)) {
      row.append(press("act", "", () => {
        this.chosen = this.data.slides[place() ? place() - 1 : 1]?.id;
        this.data.slides = this.data.slides.filter((one) => one.id !== slide.id);
        this.save();
      }, "Remove"));
    }
    if (slide.on && !isShown(slide)) row.append(make("p", "tiny quiet", `${EMPTY} until you type a title.`));
    else row.append(slide.question ? make("p", "tiny quiet", "The show asks the question first.") : "", this.saved);
    if (isVote(slide.question || slide)) row.append(make("p", "tiny quiet", HOW_TO_VOTE));
    return row;
  }

  additions() {
    const { suggestions = [] } = this.data;
    if (!suggestions.length) return "";
    const cards = suggestions.map((one) => {
      const add = press("add", `Add this case: ${one.alt}`, () => this.add(one.id, one.alt), make("span", "sign", "+"),
        isPicture(one.source) ? Object.assign(make("img"), { src: one.source, alt: "" }) : make("span", "none", one.alt),
        make("span", "tiny quiet", one.label));
      return make("li", "", add);
    });
    return make("section", "additions", make("h2", "label", "Add a case"), make("ul", "", ...cards));
  }

  // Ask for the large pictures of the open slide and the next ones.
  ask(id) {
    const { near } = this.data;
    if (near?.length && !near.includes(id)) this.keep?.("near", id);
  }

  choose(id) {
    this.chosen = id;
    this.saved.textContent = "";
    this.ask(id);
    this.edit();
    this.strip.querySelector("[aria-pressed=true]").focus();
  }

  move(id, place) {
    const { slides } = this.data;
    const from = slides.findIndex((slide) => slide.id === id);
    if (from < 0 || place < 0 || place >= slides.length) return;
    slides.splice(place, 0, ...slides.splice(from, 1));
    this.chosen = id;
    this.save();
    this.strip.querySelector("[aria-pressed=true]").focus();
  }

  // The new slide is inserted at once, so that the next one follows it. The server then sends its content.
  add(id, title, isFirst = false) {
    const { slides } = this.data;
    if (slides.some((one) => one.id === id)) return;
    const isText = id.startsWith("text:") && !isFirst;
    const slide = { ...BLANK, id, key: id, heading: [[title, ""]], spoken: title, layout: isFirst ? "cover" : "stacked", detail: isText ? "Text" : "" };
    let place = isFirst ? 0 : slides.findIndex((one) => one.id === this.chosen) + 1;
    const question = slides[place - 1];
    // Nothing comes between a question and its answer; a case there would get the question's votes
    if (question && /^(vote|truth)$/.test(question.id) && slides[place]?.case === question.case) place += 1;
    slides.splice(place, 0, slide);
    this.chosen = this.wanted = id;
    this.known.push(id);
    this.save();
  }

  // The page shows the change at once; the server answers with the same slides.
  save() {
    const { slides } = this.data;
    this.slides = inShow(slides);
    const order = slides.map((slide) => slide.id);
    const of = (key, value, all = withQuestions(slides)) => Object.fromEntries(all.filter((one) => value(one) !== undefined).map((one) => [one[key], value(one)]));
    [this.unsaved, this.same, this.saved.textContent] = [this.same || this.unsaved, "", ""];
    this.edit();
    this.send?.("deck", { order, included: of("id", (one) => one.on, slides), titles: of("key", (one) => one.titled || undefined),
      notes: of("key", (one) => one.noted ?? undefined), known: this.known });
  }

  sheets() {
    return make("div", "sheets", ...this.slides.map((slide) => make("div", "stage", draw(slide, this.data.pictures, "h2"))));
  }

  // Make the pages that the browser prints instead of the page (see streamlit.css): one slide per sheet.
  fillPaper() {
    if (!this.slides.length) return;
    this.paper = make("div", "vp-sheets");
    const styles = [...this.root.getRootNode().querySelectorAll("style")].map((one) => one.cloneNode(true));
    const root = make("div", "root", this.sheets());
    this.paper.attachShadow({ mode: "open" }).append(...styles, root);
    document.body.append(this.paper);
    root.querySelectorAll("img").forEach((image) => {
      image.decoding = "sync";
      if (image.naturalWidth) image.style.setProperty("--ratio", image.naturalWidth / image.naturalHeight);
    });
    fit(root.querySelectorAll(".slide"));
  }

  // Return the buttons that start the show, in an order that new data does not change.
  openers() {
    return ["start", "large", "small"].flatMap((style) => [...this.page.querySelectorAll(`button.${style}`)]);
  }

  // Start at the first slide, without the votes of a rehearsal.
  start() {
    this.votes = {};
    this.begin(0, true);
  }

  begin(place, fills) {
    if (!this.slides.length) return;
    place = Math.max(place, 0);
    this.from = this.root.getRootNode().activeElement;
    if (!this.dialog.open) this.dialog.showModal();
    if (fills) this.fill(true);
    this.go(place);
    this.stage.focus();
  }

  fill(isStart = false) {
    if (document.fullscreenElement) return isStart || document.exitFullscreen();
    this.whole.requestFullscreen?.().catch(() => {});  // if it is not allowed, the show fills the window
  }

  go(place) {
    if (place < 0 || place >= this.slides.length) return;
    this.place = place;
    const slide = this.slides[place];
    this.ask(slide.id);
    this.stage.replaceChildren(draw(slide, this.data.pictures, "h2", this.votes[slide.case]));
    this.fit(this.whole);
    this.wake();
    this.stage.scrollTop = 0;
    this.count.textContent = `${place + 1} of ${this.slides.length}`;
    this.status.textContent = `Slide ${place + 1} of ${this.slides.length}. ${slide.spoken}`;
    this.tell();
    [...this.dots.children].forEach((dot, each) => (dot.ariaCurrent = each === place ? "step" : null));
  }

  // Show the notes of the open slide below it and, with the next slide's title, in the notes window.
  tell() {
    const [slide, next] = this.slides.slice(this.place);
    const notes = () => [...slide.notes, isVote(slide) ? HOW_TO_VOTE : ""].map((line) => written("p", "", line));
    this.speaker.replaceChildren(make("h3", "tiny quiet", "Notes"), ...notes());
    if (!this.second?.document?.body) return;
    const clock = make("span"), place = `Slide ${this.place + 1} of ${this.slides.length}`;
    clock.style.float = "right";
    const show = () => (clock.textContent = new Date().toLocaleTimeString([], { timeStyle: "short" }));
    show();
    clearInterval(this.ticking);
    this.ticking = setInterval(show, 1000);
    const following = make("footer", "", make("hr"), make("p", "", next ? `Next: ${next.titled ?? next.heading.map(([text]) => text).join("")}` : "The last slide"), ...(next ? this.images(next) : []));
    following.style = "position: sticky; bottom: 0; padding-bottom: 8px; background: inherit"; // in view below long notes
    this.second.document.title = `Speaker notes: ${place}`;
    this.second.document.body.replaceChildren(clock, make("b", "", place), make("p", "", slide.spoken.replace(/([.?!:]) - /, "$1\n- ")), ...notes(), ...this.images(slide), following);
  }

  // Return the pictures of a slide for the notes window, which has no styles.
  images({ pictures }) {
    return pictures.map(({ key, alt }) => Object.assign(imageOf(this.data.pictures[key] || "", alt, "", () => make("span")),
      { style: "height: 120px; margin-right: 8px" }));
  }

  // Open a notes window for a second screen. Its keys turn the slides, too.
  openNotes() {
    this.wasFull = false; // some browsers leave full screen for a new window; the show goes on
    this.second = open("", "vlprobe-notes", "width=800,height=720");
    if (!this.second) return; // blocked by the browser
    const { color, backgroundColor } = getComputedStyle(this.whole); // a white window would be too bright in a dark hall
    Object.assign(this.second.document.body.style, { font: "24px/1.4 system-ui, sans-serif", whiteSpace: "pre-line", color, backgroundColor });
    this.second.addEventListener("keydown", this.pressed); // added once, even if the window is already open
    this.tell();
  }

  // Show the line of keys. It fades after 3 seconds without a key or pointer movement.
  wake() {
    this.whole.classList.remove("still");
    clearTimeout(this.fading);
    this.fading = setTimeout(() => this.whole.classList.add("still"), 3000);
  }

  // Count a vote for a caption or a picture; -1 clears the votes.
  vote(index) {
    const slide = this.slides[this.place], id = slide.case;
    const counts = this.votes[id] || [0, 0];
    if (index >= 0 && isVote(slide)) {
      this.votes[id] = counts.map((count, place) => count + (place === index));
      this.votes[id].ofPictures = slide.pictures.some(({ style }) => style === "vote");
    }
    if (index < 0) delete this.votes[id];
    this.go(this.place);
  }

  resize(step) {
    this.size = Math.max(0, Math.min(SIZES.length - 1, this.size + step));
    this.stage.style.setProperty("--size", SIZES[this.size]);
    fit(this.stage.children);
    this.status.textContent = `Type at ${Math.round(100 * SIZES[this.size])} %`;
  }

  // Turn slides with a tap on the left or right half, for phones without keys.
  tap({ clientX, target }) {
    if (target.closest("a")) return;
    const answer = [...this.stage.querySelectorAll(".options > li:not([class^=as-]), .as-vote")].indexOf(target.closest("li, figure"));
    if (answer >= 0) return this.vote(answer);
    this.go(this.place + (clientX < this.stage.clientWidth / 2 ? -1 : 1));
  }

  note() {
    this.speaker.hidden = !this.speaker.hidden;
    this.noted.setAttribute("aria-pressed", String(!this.speaker.hidden));
  }

  darken() {
    this.black.hidden = !this.black.hidden;
    this.status.textContent = this.black.hidden ? this.slides[this.place].spoken : "The screen is black.";
  }

  key(event) {
    if (isChord(event)) return;
    const pressed = event.composedPath()[0];
    if (["Enter", " "].includes(event.key) && pressed.tagName === "BUTTON") return;
    this.wake();
    const letters = { 0: () => this.vote(-1), 1: () => this.vote(0), 2: () => this.vote(1), n: () => this.note(), w: () => this.openNotes(), b: () => this.darken(), ".": () => this.darken(), f: () => this.fill(),
      "+": () => this.resize(1), "=": () => this.resize(1), "-": () => this.resize(-1),
      "?": () => this.wake(), "/": () => this.wake() };  // otherwise the page's search would open behind the slide
    const letter = letters[event.key.toLowerCase()];
    if (!this.black.hidden && event.key !== "Escape") this.darken();
    else if (event.key in KEYS) this.go(this.place + KEYS[event.key]);
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.slides.length - 1);
    else if (event.key === "Escape") this.end();
    else if (letter) letter();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The dialog is closed last: an element outside of the full-screen part would lose the focus when full screen ends.
  async end() {
    if (document.fullscreenElement) {
      this.wasFull = false;
      await document.exitFullscreen().catch(() => {});
    }
    if (this.dialog.open) this.dialog.close();
  }

  // The editor shows the slide that the show ended with.
  ended() {
    this.black.hidden = true;
    this.from?.focus?.();
    this.chosen = this.slides[this.place]?.id ?? this.chosen;
    this.edit();
    if (this.from?.matches?.(".small")) this.page.querySelector(".small[aria-pressed=true]")?.focus();
  }

  leave() {
    this.listening?.abort();
    if (this.root.isConnected) return; // the page is drawn again
    clearInterval(this.ticking);
    if (document.fullscreenElement) document.exitFullscreen();
  }
}

export default function present({ data, parentElement, setTriggerValue, setStateValue }) {
  const show = part(parentElement, Show);
  show.take(data, setTriggerValue, setStateValue);
  if (data.whole) {  // for the browser's print function
    show.root.append(show.sheets());
    const fitAll = () => fit(show.root.querySelectorAll(":is(.sheets, .show) .slide"));
    addEventListener("beforeprint", fitAll);
    document.fonts.ready.then(fitAll);
  }
  return () => show.leave();
}
