// Zoom for a case's pictures: the wheel and Z enlarge, Escape ends it, dragging moves, the last button fills the window.
//
// data: case (its id; a new case starts at full view). It moves all pictures next to it together; the page draws them.

const MOST = 8;
const STEP = 1.5;
const CORNERS = "M1 5V1h4M9 1h4v4M13 9v4H9M5 13H1V9";
const BUTTONS = [["+", "Larger (wheel)", "in"], ["−", "Smaller (wheel)", "out"], [drawing(CORNERS), "Full window", "full"]];

class Zoom {
  constructor(root) {
    this.root = root;
    this.box = root.getRootNode().host.closest(".st-key-case_pictures");
    this.stop = new AbortController();
    const listen = (target, name, act) => target.addEventListener(name, act, { signal: this.stop.signal, passive: false, capture: true });
    listen(document, "keydown", (event) => this.key(event));
    listen(this.box, "wheel", (event) => this.wheel(event));
    listen(this.box, "pointerdown", (event) => this.hold(event));
    listen(this.box, "pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) listen(this.box, name, () => (this.held = null));
    for (const [sign, label, act] of BUTTONS) {
      root.append(Object.assign(press("", label, () => this[act](), sign), { title: label }));
    }
    this.reset();
  }

  draw({ case: id }) {
    if (this.id !== id) this.reset();
    this.id = id;
  }

  get images() {
    return [...this.box.querySelectorAll("img")];
  }

  reset() {
    [this.scale, this.x, this.y] = [1, 0, 0];
    this.show();
  }

  show() {
    for (const image of this.images) {
      const limit = (length) => ((this.scale - 1) * length) / 2;
      const within = (value, length) => Math.max(-limit(length), Math.min(limit(length), value));
      [this.x, this.y] = [within(this.x, image.offsetWidth), within(this.y, image.offsetHeight)];
      image.style.transform = this.scale > 1 ? `translate(${this.x}px, ${this.y}px) scale(${this.scale})` : "";
    }
    this.box.style.touchAction = this.scale > 1 ? "none" : "";
    this.box.style.cursor = this.scale > 1 ? "grab" : "";
  }

  // Enlarge around a fixed point of the window, by default the center of the first picture.
  by(factor, point) {
    const image = this.images[0]?.parentElement;
    if (!image) return;
    const scale = Math.max(1, Math.min(MOST, this.scale * factor));
    const place = image.getBoundingClientRect();
    const x = point ? point.clientX - place.x - place.width / 2 : 0;
    const y = point ? point.clientY - place.y - place.height / 2 : 0;
    const grown = scale / this.scale;
    [this.x, this.y, this.scale] = [x - (x - this.x) * grown, y - (y - this.y) * grown, scale];
    this.show();
  }

  in() {
    this.by(STEP);
  }

  out() {
    this.by(1 / STEP);
  }

  full() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.box.requestFullscreen?.();
  }

  key(event) {
    const isZoomed = this.scale > 1;
    if (isChord(event) || isTyping() || !(event.key.toUpperCase() === "Z" || (isZoomed && event.key === "Escape"))) return;
    if (isZoomed) this.reset();
    else this.by(2 * STEP);
    event.preventDefault();
    event.stopPropagation(); // Escape closes the drawer only at full view
  }

  // Only above a picture. At full view, scrolling down still scrolls the drawer.
  wheel(event) {
    if (event.target.tagName !== "IMG" || (this.scale === 1 && event.deltaY > 0)) return;
    this.by(event.deltaY < 0 ? STEP : 1 / STEP, event);
    event.preventDefault();
  }

  hold(event) {
    if (this.scale === 1 || event.target.tagName !== "IMG") return;
    this.held = [event.clientX - this.x, event.clientY - this.y];
    event.preventDefault(); // otherwise the browser drags a copy of the picture
  }

  move(event) {
    if (!this.held) return;
    [this.x, this.y] = [event.clientX - this.held[0], event.clientY - this.held[1]];
    this.show();
  }

  leave() {
    this.stop.abort();
  }
}

export default componentOf(Zoom);
