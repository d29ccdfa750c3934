// The picture of the mark under the pointer on a map, and clicks on marks. Streamlit reports no click while a lasso is active.
//
// data: chart (the map's key), mark (number of the previewed mark, or -1), source (its picture).
// Triggers: show (the mark on which the pointer rests), open (the clicked mark).

const REST_MS = 100;

class Points {
  constructor(root) {
    this.root = root;
    this.mark = -1;
    this.moved = (event) => this.follow(event);
    this.clicked = ({ target }) => this.open(this.markOf(target));
  }

  draw({ chart, mark, source }, send) {
    document.addEventListener("mousemove", this.moved); // again after `leave`
    document.addEventListener("click", this.clicked);
    if (chart !== this.chart) this.sources = new Map();
    this.chart = chart;
    this.send = send;
    if (mark >= 0) this.sources.set(mark, source);
    this.show();
  }

  // Plotly keeps the mark under the pointer in its element. A listener of plotly_hover that is added when the pointer comes
  // misses the first mark.
  markOf(target) {
    const plot = target.closest?.(`.st-key-${this.chart} .js-plotly-plot`);
    return plot?._hoverdata?.[0]?.customdata?.[0] ?? -1;
  }

  follow({ target, clientX, clientY }) {
    const mark = this.markOf(target);
    const isRight = clientX > innerWidth / 2;
    this.root.style.translate = `${clientX + (isRight ? -176 : 16)}px ${Math.min(clientY + 28, innerHeight - 176)}px`;
    if (mark === this.mark) return;
    this.mark = mark;
    clearTimeout(this.timer);
    if (mark >= 0 && !this.sources.has(mark)) this.timer = setTimeout(() => this.send("show", mark), REST_MS);
    this.show();
  }

  open(mark) {
    if (mark < 0) return;
    this.mark = -1;
    this.show();
    this.send("open", mark);
  }

  show() {
    const source = this.sources.get(this.mark) || "";
    this.root.replaceChildren(...(isPicture(source) ? [Object.assign(make("img"), { src: source, alt: "" })] : []));
  }

  leave() {
    document.removeEventListener("mousemove", this.moved);
    document.removeEventListener("click", this.clicked);
    clearTimeout(this.timer);
  }
}

export default componentOf(Points);
