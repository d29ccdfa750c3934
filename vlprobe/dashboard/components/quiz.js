// One question of Spot the lie: a picture, two captions to press, and after the vote who believed what.
//
// data: place, heading, status (read out when it changes), picture, credit, ahead (a picture to have ready), alt, captions [{runs [[text, style]],
// state, label, own, models [{name, path, color}], more}], question (number that votes are about), open (votes are taken), next
// (label of the button, "" without one), clock (seconds, 0: none), keys, scores [{name, path, color, total, unit, pips [state]}],
// end {detail, pictures [source], rows [score]} (the last screen; the other values of a question are absent), note, voter (a secret of this browser; "": none is kept).
// Triggers: vote {question, caption}, next (the question's number), voter (the secret that this browser had before),
// slides (the last screen's way back to the slides).

const KEPT = "vlprobe-voter";
const PERSON = "M7 7.2 a2.9 2.9 0 1 0 0 -5.8 a2.9 2.9 0 0 0 0 5.8 Z M1.8 13 c0 -3 2.3 -4.6 5.2 -4.6 s5.2 1.6 5.2 4.6 Z";
const TICK = "M2.5 7.5 L5.7 10.7 L11.8 3.6";
const CROSS = "M3 3 L11 11 M11 3 L3 11";
const ARROW = "M2 7 H11.5 M7.5 3 L11.5 7 L7.5 11";

function shape(path, color, line = false) {
  const image = drawing(path, "shape", "0 0 14 14", line ? "none" : color);
  if (line) Object.assign(image.firstChild.style, { stroke: color, strokeWidth: "1.8" });
  return image;
}

function picture(data) {
  if (!isPicture(data.picture)) return make("span", "photo missing", data.alt);
  const image = make("img", "photo");
  image.src = data.picture;
  image.alt = data.alt;
  return image;
}

function chip(entry, own = false) {
  const element = make("span", own ? "chip own" : "chip");
  element.append(shape(entry.path, entry.color), make("span", "", entry.name));
  return element;
}

function option(caption, index, data, act) {
  const button = make("button", `option ${caption.state}`);
  button.type = "button";
  button.disabled = !data.open;
  const words = make("span", "words");
  words.dir = "auto";
  for (const [text, style] of caption.runs) words.append(make("span", style, text));
  button.append(make("span", "key", String(index + 1)), words);
  if (caption.label) {
    const label = make("span", "label");
    label.append(shape(caption.state === "was-true" ? TICK : CROSS, "currentColor", true), make("span", "", caption.label));
    button.append(label);
  }
  const who = make("span", "who");
  if (caption.own) who.append(chip({ name: caption.own, path: PERSON, color: "currentColor" }, true));
  for (const model of caption.models) who.append(chip(model));
  if (caption.more) who.append(make("span", "chip", caption.more));
  if (who.childNodes.length) button.append(who);
  button.addEventListener("click", () => act.vote(index));
  return button;
}

function score(entry) {
  const cell = make("li", `score ${entry.path ? "" : "you"}`);
  const name = make("span", "name");
  name.append(shape(entry.path || PERSON, entry.color || "currentColor"), make("span", "", entry.name));
  const pips = make("span", "pips");
  pips.setAttribute("aria-hidden", "true");
  for (const state of entry.pips) pips.append(make("i", state));
  const total = make("b", "number", entry.total);
  if (entry.unit) total.append(make("small", "", entry.unit));
  cell.append(name, total, pips);
  return cell;
}

function kept(voter) {
  try {
    const known = localStorage.getItem(KEPT);
    if (known && known !== voter) return known;
    localStorage.setItem(KEPT, voter);
  } catch {
    // a browser that keeps nothing: it has a secret for as long as the page is open
  }
  return voter;
}

class Quiz {
  constructor(root) {
    this.root = root;
    this.status = make("p", "hidden");
    this.status.setAttribute("role", "status");
    this.body = make("div");
    root.replaceChildren(this.status, this.body);
    this.listen = (event) => this.key(event);
  }

  draw(data, send) {
    this.send = send;
    const told = JSON.stringify(data);
    if (told === this.told) return;
    const moved = this.data?.question !== data.question;
    const opened = this.data?.open !== data.open;
    const focus = this.focused();
    this.told = told;
    this.data = data;
    if (moved || opened) this.sent = false;
    this.body.replaceChildren(...(data.end ? this.end(data) : [this.question(data), ...this.scores(data)]));
    if (focus) this.focus(moved || opened ? "" : focus);
    if (this.status.textContent !== data.status) this.status.textContent = data.status;
    if (data.ahead) new Image().src = data.ahead;
    this.tick(moved);
    if (data.voter) {
      const voter = kept(data.voter);
      if (voter !== data.voter) send("voter", voter);
    }
  }

  // What has the focus, as a selector; "" where it is elsewhere.
  focused() {
    const element = this.root.getRootNode().activeElement;
    if (!element || !this.body.contains(element)) return "";
    const place = [...this.body.querySelectorAll(".option")].indexOf(element);
    if (place >= 0) return `.option:nth-of-type(${place + 1})`;
    return element.matches(".next") ? ".next" : ".heading";
  }

  focus(selector) {
    const first = this.data.open ? ".option" : ".next";
    (this.body.querySelector(selector || first) || this.heading).focus();
  }

  // The last screen: a column for each question, a row for each person and model.
  end(data) {
    const { rows, pictures, detail } = data.end;
    this.heading = make("h1", "heading", data.heading);
    this.heading.tabIndex = -1;
    const cell = (state) => {
      const mark = { right: TICK, wrong: CROSS }[state];
      const box = make("td", state, mark ? shape(mark, "currentColor", true) : "?", make("span", "hidden", state));
      return box;
    };
    const heads = pictures.map((source, place) => {
      const head = make("th", "", isPicture(source) ? Object.assign(make("img"), { src: source, alt: "" }) : "",
        make("span", "hidden", `Question ${place + 1}`));
      head.scope = "col";
      return head;
    });
    const lines = rows.map((row) => {
      const name = make("th", "", shape(row.path || PERSON, row.color || "currentColor"), make("span", "", row.name));
      name.scope = "row";
      return make("tr", row.path ? "" : "you", name, ...row.pips.map(cell), make("td", "total number", [row.total, row.unit].filter(Boolean).join(" ")));
    });
    const table = make("table", "", make("thead", "", make("tr", "", make("td"), ...heads, make("td"))), make("tbody", "", ...lines));
    const scroll = make("div", "scroll", table);
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Answers by question");
    this.button = make("button", "next", data.next);
    this.button.addEventListener("click", () => this.next());
    const save = make("button", "save", "Save as a picture");
    save.addEventListener("click", () => this.download(data, table));
    const back = make("button", "save", "Back to the slides");
    back.addEventListener("click", () => this.send("slides", true));
    return [this.heading, make("p", "detail quiet", detail), scroll, make("div", "foot", data.next && this.button, save, back),
      make("p", "note small quiet", data.note)];
  }

  // The last screen as a PNG file, drawn in the colors of the page.
  download(data, table) {
    const { rows } = data.end;
    const [left, step, high] = [300, 92, 56];
    const sheet = Object.assign(make("canvas"), { width: left + step * rows[0].pips.length + 140, height: 300 + high * rows.length });
    const draw = sheet.getContext("2d");
    const values = getComputedStyle(this.root);
    const probe = make("i");  // a canvas reads computed colors only
    this.body.append(probe);
    const color = (name) => {
      probe.style.color = `var(--vp-${name})`;
      return getComputedStyle(probe).color;
    };
    const write = (words, x, y, size, fill, weight = 400) => {
      draw.font = `${weight} ${size}px ${values.fontFamily}`;
      draw.fillStyle = fill;
      draw.fillText(words, x, y);
    };
    draw.fillStyle = color("bg");
    draw.fillRect(0, 0, sheet.width, sheet.height);
    write(data.heading, 40, 70, 40, color("ink"), 700);
    write(data.end.detail, 40, 106, 21, color("quiet"));
    [...table.querySelectorAll("thead th")].forEach((head, place) => {
      const image = head.querySelector("img");
      if (image?.naturalWidth) {
        const share = Math.min(80 / image.naturalWidth, 64 / image.naturalHeight);
        draw.drawImage(image, left + step * place, 130, image.naturalWidth * share, image.naturalHeight * share);
      }
    });
    rows.forEach((row, line) => {
      const y = 240 + high * line;
      write(row.name, 40, y, 20, color("ink"), 600);
      row.pips.forEach((state, place) => {
        const [sign, tone] = { right: ["✓", "true"], wrong: ["✕", "lie"] }[state] || ["?", "quiet"];
        write(sign, left + 28 + step * place, y, 22, color(tone), 600);
      });
      write([row.total, row.unit].filter(Boolean).join(" "), left + 30 + step * row.pips.length, y, 26, color("ink"), 700);
    });
    write(data.note, 40, sheet.height - 24, 15, color("quiet"));
    probe.remove();
    const link = Object.assign(make("a"), { href: sheet.toDataURL("image/png"), download: "vlprobe_quiz.png" });
    link.click();
  }

  question(data) {
    const grid = make("div", "grid");
    const side = make("div", "side");
    this.heading = make("h1", "heading", data.heading);
    this.heading.tabIndex = -1;
    side.append(make("p", "place small quiet", data.place), this.heading);
    data.captions.forEach((caption, index) => side.append(option(caption, index, data, this)));
    const foot = make("div", "foot");
    if (data.next) {
      this.button = make("button", "next");
      this.button.type = "button";
      this.button.append(make("span", "", data.next), shape(ARROW, "currentColor", true));
      this.button.addEventListener("click", () => this.next());
      foot.append(this.button);
    }
    this.clock = make("span", "clock number");
    foot.append(this.clock);
    if (data.keys) foot.append(this.keys(data));
    side.append(foot);
    grid.append(make("figure", "", this.photo(data), creditOf(data.credit)), side);
    return grid;
  }

  // The same element as long as it is the same picture, so that it does not flicker.
  photo(data) {
    if (this.source !== data.picture || !this.shown) this.shown = picture(data);
    this.source = data.picture;
    if (this.shown.alt !== undefined) this.shown.alt = data.alt;
    return this.shown;
  }

  keys(data) {
    const line = make("span", "keys tiny quiet");
    if (data.captions.length) line.append(make("kbd", "", "1"), make("kbd", "", "2"), make("span", "", "vote"));
    line.append(make("kbd", "", "→"), make("span", "", "next"));
    return line;
  }

  scores(data) {
    const parts = [];
    if (data.scores.length) {
      const list = make("ul", "scores");
      list.append(...data.scores.map(score));
      parts.push(list);
    }
    if (data.note) parts.push(make("p", "note small quiet", data.note));
    return parts;
  }

  vote(caption) {
    if (!this.data.open || this.sent) return;
    this.sent = true;
    this.body.querySelectorAll(".option")[caption]?.classList.add("pressed");
    this.send("vote", { question: this.data.question, caption });
  }

  next() {
    if (this.data.next) this.send("next", this.data.question);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping()) return;
    if (document.querySelector("[role=dialog]")) return;
    if (event.key === "1" || event.key === "2") this.vote(Number(event.key) - 1);
    else if (event.key === "ArrowRight") this.next();
    else return;
    event.preventDefault();
  }

  tick(moved) {
    if (moved || !this.data.clock || !this.data.open) {
      clearInterval(this.timer);
      this.timer = 0;
    }
    if (!this.data.clock || !this.data.open) return;
    if (!this.timer) {
      this.left = this.data.clock;
      this.timer = setInterval(() => this.second(), 1000);
    }
    this.clock.textContent = `${this.left} s`;
  }

  second() {
    this.left -= 1;
    this.clock.textContent = `${this.left} s`;
    if (this.left > 0) return;
    clearInterval(this.timer);
    this.timer = 0;
    this.vote(-1);
  }

  leave() {
    clearInterval(this.timer);
    this.timer = 0;
    document.removeEventListener("keydown", this.listen);
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const quiz = part(parentElement, Quiz);
  document.removeEventListener("keydown", quiz.listen);
  document.addEventListener("keydown", quiz.listen);
  quiz.draw(data, setTriggerValue);
  return () => quiz.leave();
}
