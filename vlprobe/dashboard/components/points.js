// The picture of the mark under the pointer on a map, and clicks on marks. Streamlit reports no click while a lasso is active.
//
// data: chart (the map's key), mark (number of the previewed mark, or -1), source (its picture).
// Triggers: show (the mark on which the pointer rests), open (the clicked mark).

const REST_MS = 100;
const SIDE = 168; // pixels of the picture with its margin

class Points {
  constructor(root) {
    this.root = root;
    this.mark = -1;
  }

  draw({ chart, mark, source }, send) {
    document.addEventListener("mousemove", this.follow); // again after `leave`
    document.addEventListener("click", this.open);
    if (chart !== this.chart) this.sources = new Map();
    this.chart = chart;
    this.send = send;
    if (mark >= 0) this.sources.set(mark, source);
    this.asked = -1;
    this.show(this.mark);
  }

  // Plotly keeps the mark under the pointer in its element. A listener of plotly_hover that is added when the pointer comes
  // misses the first mark.
  markOf(target) {
    const plot = target.closest?.(`.st-key-${this.chart} .js-plotly-plot`);
    return plot?._hoverdata?.[0]?.customdata?.[0] ?? -1;
  }

  follow = ({ target }) => {
    if (this.markOf(target) !== this.mark) this.show(this.markOf(target));
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { // Plotly may find the mark up to 50 ms after the last move
      const mark = this.markOf(target);
      this.show(mark);
      if (mark >= 0 && mark !== this.asked && !this.sources.has(mark)) this.send("show", (this.asked = mark));
    }, REST_MS);
  };

  open = ({ target }) => {
    const mark = this.markOf(target);
    if (mark < 0) return;
    clearTimeout(this.timer);
    this.show(-1);
    this.send("open", mark);
  };

  // Draw the picture of a mark, if it is known, below the caption that Plotly draws, or above it at the window's end.
  show(mark) {
    this.mark = mark;
    const source = this.sources.get(mark) || "";
    const caption = document.querySelector(`.st-key-${this.chart} .hoverlayer`)?.getBoundingClientRect();
    const top = caption?.bottom + SIDE > innerHeight ? caption.top - SIDE : caption?.bottom + 4;
    this.root.style.translate = `${Math.min(caption?.left, innerWidth - SIDE)}px ${top}px`;
    this.root.replaceChildren(...(isPicture(source) ? [Object.assign(make("img"), { src: source, alt: "" })] : []));
  }

  leave() {
    document.removeEventListener("mousemove", this.follow);
    document.removeEventListener("click", this.open);
    clearTimeout(this.timer);
  }
}

export default componentOf(Points);
