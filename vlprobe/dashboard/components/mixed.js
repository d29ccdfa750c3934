// One search among mixed pictures: right + partner = mixture, a slider, both galleries, and the share at which each model changes its answer.
//
// data: id, query, sources [address, ...], right, partner {source, alt}, alt, steps [{share, heading, stays, part, right, own,
// style, order}], start, boxes [[left, top, right, bottom], ...] of a patch, strips {clean, whole}, chart, note, pending.
// A source is an index into `sources`, or -1 if the picture is missing. A step's `right` is a list of runs [text, style].
// Triggers: ask (the case's id), once for each case that is pending. Z or a click enlarges the pictures of the sum around the pointer.

const OWN = -1; // in an order: the mixture of the right picture
const TRIES = 3; // maximum number of requests
const AGAIN = 12000; // milliseconds between requests
const MOVES = /^(Arrow|Page|Home|End)/; // keys of a slider
const ICONS = {
  tick: "M3 8.5 6.5 12 13 4.5",
  cross: "M4 4 12 12 M12 4 4 12",
  drop: "M8 2.5 C11 6.5 12.5 8 12.5 10 a4.5 4 0 0 1 -9 0 C3.5 8 5 6.5 8 2.5",
  lens: "M7 2.5 a4.5 4.5 0 1 0 .01 0 M10.5 10.5 14 14",
};

function icon(name) {
  return drawing(ICONS[name], `icon ${name}`, "0 0 16 16");
}

class Mixed {
  constructor(root) {
    this.root = root;
    this.id = "";
    this.asked = "";
    this.step = 0;
    this.zoom = (event) => {
      if (isChord(event) || isTyping()) return;
      if (event.key.toUpperCase() === "Z") root.classList.toggle("near");
      else if (event.key === "Escape" && root.classList.contains("near")) {
        root.classList.remove("near");
        event.stopPropagation(); // the next one closes the drawer
      }
    };
    root.addEventListener("click", (event) => event.target.closest(".sum .square") && root.classList.toggle("near"));
    root.addEventListener("pointermove", (event) => this.follow(event));
  }

  // All three pictures show the same part.
  follow({ target, clientX, clientY }) {
    const place = target.closest(".sum .square")?.getBoundingClientRect();
    if (!place) return;
    const share = (distance, length) => `${(100 * distance) / length}%`;
    this.root.style.setProperty("--near", `${share(clientX - place.left, place.width)} ${share(clientY - place.top, place.height)}`);
  }

  leave() {
    document.removeEventListener("keydown", this.zoom, true);
    clearTimeout(this.timer);
  }

  draw(data, send) {
    document.addEventListener("keydown", this.zoom, true); // again after `leave`
    const share = this.data && this.id === data.id ? this.data.steps[this.step].share : null;
    const focused = this.root.contains(this.root.getRootNode().activeElement);
    this.data = data;
    if (this.id !== data.id) {
      this.tries = 0;
      this.root.classList.remove("near");
    }
    this.id = data.id;
    const kept = data.steps.findIndex((step) => step.share === share);
    this.step = kept < 0 ? data.start : kept;
    this.overlays = [];
    const top = make("div", "top", this.sum(), this.chart(data.chart));
    this.heading = make("h2", "heading");
    this.root.replaceChildren(this.heading, this.query(), top, this.strips());
    this.show();
    if (focused) this.slider.focus();
    clearTimeout(this.timer);
    if (data.pending) this.ask(data.id, send);
  }

  // A page that is still being drawn may miss the trigger, so it is sent a few times.
  ask(id, send) {
    if (this.asked !== id) {
      this.asked = id;
      send("ask", id);
    }
    this.timer = setTimeout(() => {
      if (!this.root.isConnected || ++this.tries > TRIES) return;
      this.asked = "";
      this.ask(id, send);
    }, AGAIN);
  }

  query() {
    return make("p", "query", icon("lens"), written("span", "", this.data.query));
  }

  // Make a square with a whole picture. `over` shines through it, or is pasted at the place of the patch.
  picture(source, alt, style, over = -1) {
    const square = make("span", `square ${style}`);
    const address = this.data.sources[source] || "";
    if (!isPicture(address)) {
      square.append(make("span", "missing", alt || "This picture is not available."));
      return { square, layer: null };
    }
    const frame = make("span", "frame");
    const below = Object.assign(make("img"), { alt, decoding: "async" });
    below.addEventListener("load", () => {
      frame.style.aspectRatio = `${below.naturalWidth} / ${below.naturalHeight}`;
      frame.classList.toggle("tall", below.naturalHeight > below.naturalWidth);
    });
    below.src = address;
    frame.append(below);
    square.append(frame);
    const partner = this.data.sources[over] || "";
    if (!isPicture(partner)) return { square, layer: null };
    const layer = Object.assign(make("img", "over"), { alt: "", src: partner });
    frame.append(layer);
    return { square, layer };
  }

  sum() {
    const { data } = this;
    const right = this.figure(this.picture(data.right.source, data.right.alt, "right").square, "true", "tick");
    right.label.textContent = "The right picture";
    this.found = make("p", "small");
    right.text.append(this.found);
    const partner = this.figure(this.picture(data.partner.source, data.partner.alt, "").square, "quiet", "drop");
    this.part = partner.label;
    partner.text.append(make("p", "small quiet", "another picture, picked at random"));
    const mixture = this.picture(data.right.source, data.alt, "mixture", data.partner.source);
    this.layer = mixture.layer;
    const own = this.figure(mixture.square, "lie", "cross");
    this.own = own;
    this.stays = make("span", "small number stays");
    own.line.append(this.stays);
    own.text.append(this.range());
    return make("div", "sum", right.figure, make("span", "sign", "+"), partner.figure, make("span", "sign", "="), own.figure);
  }

  figure(square, style, name) {
    const label = make("span", "label"), mark = make("span", `mark ${style}`, icon(name), label);
    const line = make("p", "line", mark), text = make("figcaption", "", line);
    return { figure: make("figure", "", square, text), text, line, label, mark };
  }

  range() {
    const max = this.data.steps.length - 1;
    const slider = Object.assign(make("input", "slider"), { type: "range", min: 0, max, step: 1, disabled: max < 1,
      ariaLabel: "Share of the right picture that remains" });
    slider.addEventListener("input", () => {
      this.step = Number(slider.value);
      this.show();
    });
    slider.addEventListener("keydown", (event) => MOVES.test(event.key) && event.stopPropagation()); // the arrows turn to the next case
    slider.addEventListener("pointerup", () => { // the keys of the drawer work again
      slider.blur();
      this.root.getRootNode().host?.closest("[role=dialog]")?.focus({ preventScroll: true });
    });
    this.slider = slider;
    this.live = make("p", "hidden");
    this.live.setAttribute("aria-live", "polite");
    return make("div", "", slider, this.live);
  }

  strips() {
    const { clean, whole } = this.data.strips;
    const both = make("div", "strips");
    if (clean) {
      both.append(this.strip(clean, clean.frames), this.strip(whole, []));
      this.whole = both.lastChild.querySelector("ol");
      this.frames = whole.frames.map((frame) => this.candidate(frame));
      this.ownFrame = this.candidate(whole.own, true);
    }
    both.append(make("p", "small quiet note", this.data.note));
    return both;
  }

  strip(strip, frames) {
    const list = make("ol", "", ...frames.map((frame) => this.candidate(frame)));
    list.ariaLabel = strip.label;
    return make("section", "", make("h2", "", strip.label), list);
  }

  candidate(frame, isOwn = false) {
    const style = { true: "right", lie: "mixture" }[frame.style] || "";
    const { square, layer } = this.picture(frame.source, frame.name, style, frame.over);
    if (layer && isOwn) this.overlays.push(layer);
    else if (layer) layer.style.opacity = String(1 - frame.stays / 100);
    square.title = frame.name;
    return make("li", "", square);
  }

  chart(chart) {
    this.line = make("span", "now");
    const plot = make("div", "plot", ...chart.ticks.map(([share]) => this.at(make("span", "grid"), share)), this.line,
      make("ul", "", ...chart.rows.map((row) => this.row(row))));
    plot.style.setProperty("--rows", String(chart.rows.length));
    const axis = make("div", "axis", ...chart.ticks.map(([share, text]) => this.at(make("span", "share", text), share)));
    axis.ariaHidden = "true";
    const remarks = [chart.more, this.data.pending && "Testing all mixtures …"].filter(Boolean);
    return make("section", "chart", make("h2", "", chart.title), make("p", "small quiet", chart.note), plot, axis,
      ...remarks.map((remark) => make("p", "small quiet", remark)));
  }

  at(element, share) {
    element.style.left = `${2 * (100 - share)}%`;
    return element;
  }

  row(row) {
    const name = make("span", "name", row.name, row.remark && make("span", "remark quiet", row.remark));
    const track = make("span", "track");
    for (const [from, to] of row.segments) {
      const bar = this.at(make("span", "bar"), from);
      bar.style.width = `max(4px, ${2 * (from - to)}%)`;
      track.append(bar);
    }
    for (const [share, won] of row.dots) track.append(this.at(make("span", won ? "dot won" : "dot"), share));
    const mark = row.at >= 0 && drawing(row.path, "model", "0 0 14 14", row.color);
    if (mark) track.append(this.at(make("span", "value", mark, make("span", "number", row.text)), row.at));
    return make("li", "row", name, track);
  }

  // Update everything that depends on the slider.
  show() {
    const { data, step } = this;
    const now = data.steps[step];
    this.slider.value = String(step);
    this.slider.style.setProperty("--done", `${(100 * step) / Math.max(1, data.steps.length - 1)}%`);
    this.slider.setAttribute("aria-valuetext", `${now.stays} stays. ${now.own}`);
    this.heading.textContent = now.heading;
    this.part.textContent = now.part;
    this.own.label.textContent = now.own;
    this.own.mark.className = `mark ${now.style}`;
    this.own.mark.firstChild.replaceWith(icon({ lie: "cross", true: "tick" }[now.style] || "drop"));
    this.stays.replaceChildren(...spans([[now.stays, "strong"], [" stays", ""]]));
    this.found.replaceChildren(...spans(now.right));
    this.live.textContent = `${now.stays} stays. ${now.own}`;
    this.at(this.line, now.share);
    for (const layer of [this.layer, ...this.overlays]) if (layer) this.mix(layer, now.share, data.boxes[step]);
    if (this.whole) {
      const frames = now.order.map((place) => (place === OWN ? this.ownFrame : this.frames[place]));
      this.whole.replaceChildren(...frames);
      if (!frames.length) this.whole.append(make("li", "unknown small quiet", "Unknown at this share."));
    }
  }

  mix(layer, share, box) {
    if (!box) {
      layer.style.opacity = String(1 - share / 100);
      return;
    }
    const [left, top, right, bottom] = box.map((edge) => 100 * edge);
    layer.style.clipPath = `inset(${top}% ${100 - right}% ${100 - bottom}% ${left}%)`;
  }
}

export default componentOf(Mixed);
