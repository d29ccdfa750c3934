// Below the failure: numbers, a strip of models with bars, doors. All of them are links.
//
// data: numbers [{key, href, big, sentence, strong, exact}], strip {label, of, guess (a rate, or null), models [{key, href, name, stored, mark {path,
// color}, value, width, remark}], more, more_href}, doors [{key, href, title, sentence, pictures [{source, alt}]}]; the three pictures
// of a door are one, what is mixed into it, and the mixture.
// Triggers: go (the key of what was pressed; "more" for the models that have no place).

function link(style, key, href) {
  const element = make("a", style);
  element.href = href;
  element.dataset.go = key;
  return element;
}

// A sentence in which the words that it begins with are set off.
function sentence(text, strong) {
  const line = make("span", "sentence small quiet");
  line.append(make("b", "", strong), text.slice(strong.length));
  return line;
}

function number(entry) {
  const cell = link("number", entry.key, entry.href);
  cell.append(make("span", "big", entry.big), sentence(entry.sentence, entry.strong));
  cell.append(make("span", "exact small quiet", entry.exact));
  return cell;
}

function model(entry, guess) {
  const cell = link("model", entry.key, entry.href);
  cell.title = entry.stored === entry.name ? entry.name : `${entry.name} (${entry.stored})`;
  const mark = markOf(entry.mark);
  const head = make("span", "head", mark, written("span", "name", entry.name), make("span", "value", entry.value));
  const full = make("span", "full");
  const bar = make("span", "bar", full);
  full.style.width = `${100 * entry.width}%`;
  if (typeof guess === "number") {
    const tick = make("span", "tick");
    tick.style.left = `${100 * guess}%`;
    bar.append(tick);
  }
  cell.append(head, bar);
  if (entry.remark) cell.append(make("span", "remark small quiet", entry.remark));
  return cell;
}

function strip(data) {
  const row = make("section", "strip");
  row.setAttribute("aria-label", "Models");
  const label = make("p", "about small quiet", make("b", "", data.label), data.of && make("span", "of", data.of));
  if (typeof data.guess === "number") label.append(make("span", "guess", `guessing, ${Math.round(100 * data.guess)} %`));
  const models = make("div", "models", ...data.models.map((entry) => model(entry, data.guess)));
  if (data.more) {
    const more = link("model more small", "more", data.more_href);
    more.textContent = data.more;
    models.append(more);
  }
  row.append(label, models);
  return row;
}

// One picture, a second one, and what they make together.
function sum(pictures) {
  const row = make("span", "sum");
  pictures.forEach((shown, place) => {
    if (!isPicture(shown.source)) return;
    if (place) row.append(make("span", "sign", place === 1 ? "+" : "="));
    const image = make("img", place === 2 ? "thumbnail mixture" : "thumbnail");
    image.src = shown.source;
    image.alt = shown.alt;
    row.append(image);
  });
  return row;
}

function door(entry) {
  const pictures = entry.pictures || [];
  const cell = link(pictures.length ? "door pictured" : "door", entry.key, entry.href);
  if (pictures.length) cell.append(sum(pictures));
  cell.append(make("span", "title", entry.title), drawing("M3 8h10M9 4l4 4-4 4", "arrow", "0 0 16 16"));
  cell.append(make("span", "behind small quiet", entry.sentence));
  return cell;
}

function section(style, entries, draw) {
  return make("section", style, ...entries.map(draw));
}

class Figures {
  constructor(root) {
    this.root = root;
    root.addEventListener("click", (event) => this.press(event));
  }

  draw({ numbers, strip: models, doors }, send) {
    this.send = send;
    const parts = [strip(models), section("doors", doors, door)];
    if (numbers.length) parts.push(section("numbers", numbers, number));
    this.root.replaceChildren(...parts);
  }

  press(event) {
    const link = followed(event, "a[data-go]");
    if (link) this.send(link.dataset.go);
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  part(parentElement, Figures).draw(data, (key) => setTriggerValue("go", key));
}
