// One question of Spot the lie: a picture, two captions to click and, after the vote, everyone's answers.
//
// data: place, heading (read out when it changes), picture, credit, ahead (a picture to have ready), alt, captions [{runs [[text, style]],
// state, label, own, models [{name, path, color}], more, votes {share, count} (of a room)}], question (number that votes are about), open (votes are taken), next
// (the button's label, "" without one), skip (whether the question may be left out), scores [{name, path, color, total, unit, pips [state]}],
// join {code, address ("": only this computer reaches it), picture} (of the room, on its host's screen),
// end {back (whether it leads to the slides), detail, others (where other photographs come from), pictures [source], rows [score], models (what they are), credits, source} (the last screen; the other values of a question are absent), note, voter (a secret of this browser; "": none is kept).
// Triggers: vote {question, caption}, next (the question's number), skip (its number), voter (the secret that this browser had before),
// slides (the last screen's way back to the slides).

const KEPT = "vlprobe-voter";
const SIZES = ["fullscreenchange", "resize"]; // events of the window
const [EDGE, BELOW, NARROW] = [16, 64, 860]; // pixels: above and below the quiz in full screen; a window with one column
const HEADER = 60; // height in pixels of the bar above the page
const PERSON = "M7 7.2 a2.9 2.9 0 1 0 0 -5.8 a2.9 2.9 0 0 0 0 5.8 Z M1.8 13 c0 -3 2.3 -4.6 5.2 -4.6 s5.2 1.6 5.2 4.6 Z";
const ARROW = "M2 7 H11.5 M7.5 3 L11.5 7 L7.5 11";

// For each state of an answer: the path of its mark or "", its sign in text, its words and its tone.
const STATES = {
  right: [TICK, "✓", "right", "true"],
  wrong: [CROSS, "✕", "wrong", "lie"],
  tied: ["", "½", "right in one order only", "tie"],
  none: ["", "?", "no answer", "quiet"],
  skipped: ["", "–", "skipped", "quiet"],
};

// Return a text as lines that fit a width.
function wrapped(draw, text, width) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && draw.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return text ? lines : [];
}

// Return whether a photograph is the last of a series with the same license, which is named once.
const ends = (credits, place) => credits[place].license !== credits[place + 1]?.license;

const sign = (path) => outline(path, "shape");

// Make the label of a person or a model.
function named({ path, color, name }) {
  return [markOf({ path: path || PERSON, color: color || "currentColor" }, "shape"), make("span", "", name)];
}

function option(caption, index, data, act) {
  const button = press(`option ${caption.state}`, "", () => act.vote(index), make("span", "key", String(index + 1)),
    written("span", "words", caption.runs), 
    caption.label && make("span", "label", sign(caption.state === "was-true" ? TICK : CROSS), make("span", "", caption.label)));
  button.disabled = !data.open || Boolean(data.join); // a host leads and does not vote
  const chips = [caption.own && make("span", "chip own", ...named({ name: caption.own })),
    ...caption.models.map((model) => make("span", "chip", ...named(model))), caption.more && make("span", "chip", caption.more)];
  if (caption.votes) button.append(bar(caption.votes));
  if (chips.some(Boolean)) button.append(make("span", "who", ...chips));
  return button;
}

// Draw a room's votes for a caption.
function bar({ share, count }) {
  const filled = make("i");
  filled.style.width = share.replace(" ", "");
  return make("span", "votes", make("span", "track", filled), make("b", "number", share), make("span", "number", count));
}

function score(entry) {
  const pips = make("span", "pips", ...entry.pips.map((state) => make("i", state)));
  pips.ariaHidden = "true";
  const total = make("b", "number", entry.total, entry.unit && make("small", "", ` ${entry.unit}`));
  return make("li", `score ${entry.path ? "" : "you"}`, make("span", "name", ...named(entry)), total, pips);
}

// Enter or leave full screen.
function fullScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen?.().catch(() => {}); // a browser may refuse
}

class Quiz {
  constructor(root) {
    this.root = root;
    this.status = make("p", "hidden");
    this.status.setAttribute("role", "status");
    this.body = make("div");
    root.replaceChildren(this.status, this.body);
    this.listen = (event) => this.key(event);
    this.fitted = () => this.fit();
  }

  draw(data, send) {
    document.addEventListener("keydown", this.listen); // again after `leave`
    for (const event of SIZES) window.addEventListener(event, this.fitted);
    [this.send, this.sent] = [send, false];
    const told = JSON.stringify(data);
    if (told === this.told) return;
    const moved = this.data?.question !== data.question || !this.data.end !== !data.end;
    const opened = this.data?.open !== data.open;
    const turned = this.data && (moved || opened);
    const focus = this.focused() || (this.isKeyed && ".next");
    this.isKeyed = false;
    this.told = told;
    this.data = data;
    this.body.replaceChildren(...(data.end ? this.end(data) : [this.question(data), ...this.scores(data)]));
    this.fit();
    if (focus) this.focus(moved || opened ? "" : focus);
    // An answer and the next question begin with the picture, also on a phone that was scrolled down to the captions
    if (turned && this.root.getBoundingClientRect().top < HEADER) this.root.scrollIntoView();
    if (this.status.textContent !== data.heading) this.status.textContent = data.heading;
    if (data.ahead) new Image().src = data.ahead;
    if (data.voter) {
      const voter = kept("localStorage", KEPT) || data.voter; // otherwise the secret lasts as long as the page is open
      if (voter === data.voter) kept("localStorage", KEPT, voter);
      else send("voter", voter);
    }
  }

  // Make everything smaller until it fits on the screen, except on phones.
  fit() {
    const isFull = Boolean(document.fullscreenElement);
    this.root.classList.toggle("full", isFull);
    const least = isFull ? 0.4 : innerWidth > NARROW ? 0.7 : 1;
    for (let scale = 1; scale >= least; scale -= 0.05) {
      this.root.style.setProperty("--fit", scale);
      const { top, height } = this.root.getBoundingClientRect();
      if (Math.max(top, EDGE) + height <= innerHeight - BELOW * isFull) break;
    }
  }

  // Return a selector for the focused element, or "" if the focus is elsewhere.
  focused() {
    const element = this.root.getRootNode().activeElement;
    if (!element || !this.body.contains(element)) return "";
    const place = [...this.body.querySelectorAll(".option")].indexOf(element);
    if (place >= 0) return `.option:nth-of-type(${place + 1})`;
    return element.matches(".next") ? ".next" : ".heading";
  }

  focus(selector) {
    // Not the first caption of an open question, which would look chosen, nor the button that ends the last screen
    const first = this.data.open || this.data.end ? ".heading" : ".next";
    (this.body.querySelector(selector || first) || this.heading).focus({ preventScroll: true });
  }

  // Draw the last screen: a column for each question, a row for each person and model.
  end(data) {
    const { rows, pictures, detail, credits } = data.end;
    this.heading = Object.assign(make("h1", "heading", data.heading), { tabIndex: -1 });
    const cell = (state) => {
      const [path, letter, word] = STATES[state];
      return Object.assign(make("td", state, path ? sign(path) : letter, make("span", "hidden", word)), { title: word });
    };
    const heads = pictures.map((source, place) => {
      const image = isPicture(source) && Object.assign(make("img"), { src: source, alt: "" });
      return Object.assign(make("th", "", image, make("span", "hidden", `Question ${place + 1}`)), { scope: "col" });
    });
    const lines = rows.map((row) => {
      const name = Object.assign(make("th", "", ...named(row)), { scope: "row" });
      const total = make("td", "total number", row.total, row.unit && make("small", "", ` ${row.unit}`));
      return make("tr", row.path ? "" : "you", name, total, ...row.pips.map(cell));
    });
    const table = make("table", "", make("thead", "", make("tr", "", make("td"), make("td"), ...heads)), make("tbody", "", ...lines));
    const buttons = [data.next && press("next", "", () => this.next(), data.next),
      press("save", "", () => this.download(data, table), "Save as a picture"),
      data.end.back && press("save", "", () => this.send("slides", true), "Back to the slides")];
    return [this.heading, make("p", "detail quiet", detail), region("scroll", "Answers by question", table),
      make("div", "foot", ...buttons), make("p", "note quiet", data.note, ` ${data.end.others}`),
      make("details", "note small quiet", make("summary", "", "Models and photographs"), make("p", "", data.end.models),
        make("p", "credit", ...credits.flatMap((credit, place) => [place ? ", " : "Photos: ",
          outside(credit.page, String(place + 1)), ...ends(credits, place) ? [" ", outside(credit.licenseUrl, credit.license)] : []])))];
  }

  // Save the last screen as a PNG file in the page's colors.
  download(data, table) {
    const { rows, credits, source } = data.end;
    const [left, step, high, line] = [400, 92, 56, 22];
    const sheet = Object.assign(make("canvas"), { width: left + step * rows[0].pips.length + 40 });
    const draw = sheet.getContext("2d");
    const values = getComputedStyle(this.root);
    const probe = make("i");  // a canvas reads computed colors only
    this.body.append(probe);
    const color = (value) => {
      probe.style.color = value;
      return getComputedStyle(probe).color;
    };
    const write = (words, x, y, size, tone, weight = 400) => {
      draw.font = `${weight} ${size}px ${values.fontFamily}`;
      draw.fillStyle = color(`var(--vp-${tone})`);
      draw.fillText(words, x, y);
    };
    write("", 0, 0, 15, "quiet");
    const photos = credits.map(({ page, license }, place) => `${place ? "" : "Photos: "}${page} ${ends(credits, place) ? license : ""}`.trim());
    const fine = [data.note, data.end.models, source, photos.join(", ")].flatMap((text) => wrapped(draw, text, sheet.width - 80));
    sheet.height = 270 + high * rows.length + line * fine.length;
    draw.fillStyle = color("var(--vp-bg)");
    draw.fillRect(0, 0, sheet.width, sheet.height);
    write(data.heading, 40, 70, 40, "ink", 700);
    write(data.end.detail, 40, 106, 21, "quiet");
    [...table.querySelectorAll("thead th")].forEach((head, place) => {
      const image = head.querySelector("img");
      if (image?.naturalWidth) {
        const share = Math.min(80 / image.naturalWidth, 64 / image.naturalHeight);
        draw.drawImage(image, left + step * place, 130, image.naturalWidth * share, image.naturalHeight * share);
      }
    });
    rows.forEach((row, place) => {
      const y = 240 + high * place;
      draw.setTransform(1.2, 0, 0, 1.2, 40, y - 16);
      draw.fillStyle = color(row.color || "var(--vp-ink)");
      draw.fill(new Path2D(row.path || PERSON));
      draw.resetTransform();
      write(row.name, 68, y, 20, "ink", 600);
      write(`${row.total} ${row.unit}`, left - 100, y, 22, "ink", 700);
      row.pips.forEach((state, question) => {
        const [, sign, , tone] = STATES[state];
        write(sign, left + 28 + step * question, y, 22, tone, 600);
      });
    });
    fine.forEach((words, place) => write(words, 40, 244 + high * rows.length + line * place, 15, "quiet"));
    probe.remove();
    const link = Object.assign(make("a"), { href: sheet.toDataURL("image/png"), download: "vlprobe_quiz.png" });
    link.click();
  }

  question(data) {
    this.heading = Object.assign(make("h1", "heading", data.heading), { tabIndex: -1 });
    const next = data.next && press("next", "", () => this.next(), make("span", "", data.next), sign(ARROW));
    const side = make("div", "side", make("p", "place small quiet", data.place), this.heading,
      ...data.captions.map((caption, index) => option(caption, index, data, this)),
      make("div", "foot", next, data.skip && press("save", "", () => this.send("skip", data.question), "Both right? Skip"), this.keys(data)), data.join && this.join(data.join));
    return make("div", data.captions.some((caption) => caption.state) ? "grid told" : "grid", make("figure", "", this.photo(data), creditOf(data.credit)), side);
  }

  // Make the lines that say how people join the room, with a QR code if phones can.
  join({ code, address, picture }) {
    const image = isPicture(picture) && Object.assign(make("img"), { src: picture, alt: "QR code of the room" });
    return make("p", "join", image, make("span", "", make("span", "quiet", "Room "), make("b", "", code), make("span", "", address)));
  }

  // Keep the element while the picture is the same, so that it does not flicker.
  photo(data) {
    const absent = () => make("span", "photo missing", data.alt);
    if (this.source !== data.picture || !this.shown) this.shown = imageOf(data.picture, data.alt, "photo", absent);
    this.source = data.picture;
    if (this.shown.alt !== undefined) this.shown.alt = data.alt;
    return this.shown;
  }

  keys(data) {
    const line = make("span", "keys tiny quiet", make("kbd", "", "→"), make("span", "", "next"));
    if (!data.join) line.prepend(make("kbd", "", "1"), make("kbd", "", "2"), make("span", "", "vote"));
    if (data.skip) line.append(make("kbd", "", "S"), make("span", "", "skip"));
    line.append(make("kbd", "", "F"), make("span", "", "full screen"));
    return line;
  }

  scores(data) {
    return [data.scores.length && make("ul", "scores", ...data.scores.map(score)),
      data.note && make("p", "note small quiet", data.note)].filter(Boolean);
  }

  vote(caption) {
    if (!this.data.open || this.data.join || this.sent || this.data.captions[caption]?.own) return;
    this.sent = true;
    this.body.querySelectorAll(".option")[caption]?.classList.add("pressed");
    this.send("vote", { question: this.data.question, caption });
  }

  next() {
    if (this.data.next) this.send("next", this.data.question);
  }

  key(event) {
    if (event.repeat || isChord(event) || isTyping()) return; // a held S would skip every question
    if (document.querySelector("[role=dialog]")) return;
    if (event.key === "1" || event.key === "2") this.vote(Number(event.key) - 1);
    else if (event.key === "ArrowRight" && !this.data.end) this.next(); // the result stays until someone presses the button
    else if (event.key.toLowerCase() === "s" && this.data.skip) this.send("skip", this.data.question);
    else if (event.key.toLowerCase() === "f") fullScreen();
    else return;
    this.isKeyed = true;
    event.preventDefault();
  }

  leave() {
    document.removeEventListener("keydown", this.listen);
    for (const event of SIZES) window.removeEventListener(event, this.fitted);
  }
}

export default componentOf(Quiz);
