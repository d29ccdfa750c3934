// Home, below the failure: numbers, a strip of models with bars, and doors to pages. All of them are links.
//
// data: numbers [{href, big, sentence, strong, exact}], strip {label, of, guess (a rate, or null), models [{href, name, stored, mark {path,
// color}, value, width, remark}], more, more_href}, doors [{href, title, sentence, pictures [{source, alt}]}]; the three pictures
// of a door are a picture, the one mixed into it, and the mixture.
// Triggers: go (the address of the clicked link).

function number({ href, big, sentence, strong, exact }) {
  const words = make("span", "sentence small quiet", make("b", "", strong), sentence.slice(strong.length));
  return linkTo("number", href, make("span", "big", big), words, make("span", "exact small quiet", exact));
}

// Make a span at a share of the width of its bar.
function placed(name, side, share) {
  const element = make("span", name);
  element.style[side] = `${100 * share}%`;
  return element;
}

function model(entry, guess) {
  const head = make("span", "head", markOf(entry.mark), written("span", "name", entry.name), make("span", "value", entry.value));
  const bar = make("span", "bar", placed("full", "width", entry.width), guess !== null && placed("tick", "left", guess));
  const cell = linkTo("model", entry.href, head, bar, entry.remark && make("span", "remark small quiet", entry.remark));
  cell.title = entry.stored === entry.name ? entry.name : `${entry.name} (${entry.stored})`;
  return cell;
}

function strip({ label, of, guess, models, more, more_href: href }) {
  const about = make("p", "about small quiet", make("b", "", label), of && make("span", "of", of),
    guess !== null && make("span", "guess", `guessing, ${Math.round(100 * guess)} %`));
  const row = make("section", "strip", about, make("div", "models", ...models.map((entry) => model(entry, guess)),
    more && linkTo("model more small", href, more)));
  row.ariaLabel = "Models";
  return row;
}

// Make three pictures: one, a second one, and their mixture.
function sum(pictures) {
  const parts = pictures.filter(({ source }) => isPicture(source)).map(({ source, alt }, place) => [
    place > 0 && make("span", "sign", place === 1 ? "+" : "="),
    Object.assign(make("img", place === 2 ? "thumbnail mixture" : "thumbnail"), { src: source, alt })]);
  return make("span", "sum", ...parts.flat());
}

function door({ href, pictures = [], title, sentence }) {
  return linkTo(pictures.length ? "door pictured" : "door", href, pictures.length > 0 && sum(pictures),
    make("span", "title", title), drawing("M3 8h10M9 4l4 4-4 4", "arrow", "0 0 16 16"), make("span", "behind small quiet", sentence));
}

class Figures {
  constructor(root) {
    this.root = root;
    tellLinks(root, (href) => this.send("go", href));
  }

  draw({ numbers, strip: models, doors }, send) {
    this.send = send;
    this.root.replaceChildren(strip(models), make("section", "doors", ...doors.map(door)),
      ...(numbers.length ? [make("section", "numbers", ...numbers.map(number))] : []));
  }
}

export default componentOf(Figures);
