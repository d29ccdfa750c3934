"use strict";
// What every page of a site stands on. The address behind the number sign says what is shown; values and pictures are plain
// scripts, which a browser loads from a file too. Texts reach the page as text, never as markup.

window.vlprobe = { components: {}, tables: {} };

const loading = new Map();
const TABLE = /^[a-z0-9-]+$/;
const PICTURE = /^(\d+)\/(\d+)$/;

// The values of a name, from its script.
function table(name) {
  if (!TABLE.test(name)) return Promise.reject(new Error("no such table"));
  if (!loading.has(name)) {
    loading.set(name, new Promise((resolve, reject) => {
      if (window.vlprobe.tables[name]) return resolve(window.vlprobe.tables[name]);
      const script = document.createElement("script");
      script.src = `data/${name}.js`;
      script.addEventListener("load", () => resolve(window.vlprobe.tables[name]));
      script.addEventListener("error", () => reject(new Error(`${name} is missing`)));
      document.head.append(script);
    }));
  }
  return loading.get(name);
}

function sources(value, found = new Set()) {
  if (Array.isArray(value)) for (const each of value) sources(each, found);
  else if (value && typeof value === "object") {
    if (PICTURE.test(value.source)) found.add(value.source.match(PICTURE)[1]);
    for (const each of Object.values(value)) sources(each, found);
  }
  return found;
}

function replaced(value) {
  if (Array.isArray(value)) return value.map(replaced);
  if (!value || typeof value !== "object") return value;
  const copy = {};
  for (const [name, each] of Object.entries(value)) copy[name] = replaced(each);
  const place = typeof value.source === "string" && value.source.match(PICTURE);
  if (place) copy.source = window.vlprobe.tables[`pictures-${place[1]}`]?.[Number(place[2])] || "";
  return copy;
}

// The same values with pictures in the place of their keys; only the scripts of these pictures are loaded.
async function pictured(value) {
  await Promise.all([...sources(value)].map((chunk) => table(`pictures-${chunk}`)));
  return replaced(value);
}

// What the address says.
function address() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

// Changes what the address says; what is empty goes.
function say(changes) {
  const query = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of Object.entries(changes)) value === "" ? query.delete(name) : query.set(name, value);
  try {
    history.replaceState(null, "", `#${query}`);
  } catch {
    location.hash = String(query); // where a file may not change its address
  }
}

function link(page, query) {
  return `${page}.html#${new URLSearchParams(query)}`;
}

// A component of the dashboard in a place of the page, with its style sheets around it alone.
async function mount(host, name, data, send = () => {}) {
  let root = host.shadowRoot;
  if (!root) {
    root = host.attachShadow({ mode: "open" });
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = `components/${name}.css`;
    await new Promise((resolve) => {
      sheet.addEventListener("load", resolve);
      sheet.addEventListener("error", resolve);
      root.append(sheet);
    });
  }
  const triggers = { setTriggerValue: send, setStateValue: send };
  host.leave = window.vlprobe.components[name]({ data: await pictured(data), parentElement: root, ...triggers });
}

// A list to choose from, with a label that stands beside it or is for screen readers alone.
function chooser(label, options, value, act, bare = true) {
  const select = make("select", "choice");
  for (const [key, text] of options) {
    const option = make("option", "", text);
    option.value = key;
    option.selected = String(key) === String(value);
    select.append(option);
  }
  select.setAttribute("aria-label", label);
  select.addEventListener("change", () => act(select.value));
  return bare ? select : make("label", "labelled", make("span", "quiet small", label), select);
}

// What the page is about: a question set and a kind that the site has this page of, and a model.
function about(index, page) {
  const said = address();
  const sets = index.sets.filter((set) => set.kinds.some((kind) => kind.pages.includes(page)));
  const set = sets.find((one) => one.key === said.set) || sets[0];
  const kinds = set.kinds.filter((kind) => kind.pages.includes(page));
  const kind = kinds.find((one) => one.key === said.kind) || kinds[0];
  const model = set.models.find((one) => one.key === said.model) || set.models[0];
  const number = set.kinds.indexOf(kind);
  return { said, sets, set, kinds, kind, model, name: `${set.key}-${page}-${number}` };
}

// The choices that pages share: question set and kind.
function choices(subject, redraw) {
  const { sets, set, kinds, kind } = subject;
  const parts = [];
  const go = (changes) => {
    say({ type: "", pattern: "", case: "", row: "", ...changes });
    redraw();
  };
  if (kinds.length > 1) {
    parts.push(chooser("Kind of question", kinds.map((one) => [one.key, one.label]), kind.key, (key) => go({ kind: key })));
  }
  if (sets.length > 1) {
    const options = sets.map((one) => [one.key, one.label]);
    parts.push(make("span", "quiet between", "in"), chooser("Question set", options, set.key, (key) => go({ set: key, kind: "", model: "" })));
  } else parts.push(make("span", "quiet", `in ${set.label}`));
  return parts;
}

// The page: the way to the others, and what is drawn again whenever the address changes.
async function open(page, draw) {
  const index = await table("index");
  const main = document.querySelector("main");
  const redraw = async () => {
    const subject = about(index, page);
    for (const anchor of document.querySelectorAll("nav a")) {
      anchor.href = link(anchor.dataset.page, { set: subject.set.key, kind: subject.kind.key, model: subject.model.key });
    }
    document.querySelector("footer .about").textContent = subject.set.about;
    try {
      await draw(main, subject, index, redraw);
      main.dataset.ready = String(Number(main.dataset.ready || 0) + 1);
    } catch (error) {
      main.replaceChildren(make("p", "quiet", "Something is missing here: the whole folder of this site belongs together."));
      throw error;
    }
  };
  window.addEventListener("hashchange", redraw);
  await redraw();
}
