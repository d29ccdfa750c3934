"use strict";
// The pages of a site. The address after the number sign selects the content. Data and pictures are plain scripts, which a browser
// can also load from files; a report contains all of them. Names and captions are set as text. Python makes the markup of a case and
// escapes every text in it, and the page's policy does not run scripts in it.

const values = document.getElementById("values"); // only in a report
window.vlprobe = { components: {}, sheets: {}, tables: values ? JSON.parse(values.textContent) : {} };

const PICTURE = /^(\d+)\/(\d+)$/;
const MOST_CARDS = 60; // shown at first
const PAGES = {}; // page name: function of (page, values, isNew)
const loading = {};

// Load the data with a name, from the page or from its script.
function table(name) {
  loading[name] ||= Object.hasOwn(window.vlprobe.tables, name) ? unpacked(name) : loaded(name).then(unpacked);
  return loading[name];
}

function loaded(name, src = `data/${encodeURIComponent(name)}.js`) {
  return new Promise((resolve, reject) => {
    const script = Object.assign(make("script"), { src });
    script.addEventListener("load", () => resolve(name));
    script.addEventListener("error", () => reject(new Error(`${name} is missing`)));
    document.head.append(script);
  });
}

async function unpacked(name) {
  const packed = window.vlprobe.tables[name];
  return typeof packed === "string" ? inflated(packed).json() : packed; // pictures
}

function inflated(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

// Load Plotly, which only pages with a figure need. Its styles are in the style sheet, because the policy forbids others.
async function plotly() {
  // Plotly adds no styles if elements with these ids exist.
  for (const id of ["plotly.js-style-global", "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53"])
    document.head.append(Object.assign(make("meta", "no-inline-styles"), { id }));
  if (!values) return loaded("plotly", "scripts/plotly.js");
  const code = await inflated(window.vlprobe.tables.plotly).text();
  return loaded("plotly", URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
}

async function pictureOf(key) {
  const place = PICTURE.exec(key);
  return place ? (await table(`pictures-${place[1]}`))[place[2]] || "" : key;
}

// Replace the keys of pictures by pictures. Only the scripts of these pictures are loaded.
async function pictured(value) {
  if (Array.isArray(value)) return Promise.all(value.map(pictured));
  if (!value || typeof value !== "object") return value;
  const entries = Object.entries(value).map(async ([name, each]) => {
    if (name === "href") return [name, local(each)];
    return [name, await (name === "source" ? pictureOf(each) : pictured(each))];
  });
  return Object.fromEntries(await Promise.all(entries));
}

// Turn markup made by Python into elements.
async function elements(markup) {
  const template = document.createElement("template");
  template.innerHTML = markup;
  const pictures = [...template.content.querySelectorAll("img")];
  await Promise.all(pictures.map(async (image) => (image.src = await pictureOf(image.dataset.src))));
  for (const each of template.content.querySelectorAll("a[href]")) each.setAttribute("href", local(each.getAttribute("href")));
  return template.content;
}

function address() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

// Change parameters of the address. Empty ones are removed.
function say(changes) {
  const query = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of Object.entries(changes)) value === "" ? query.delete(name) : query.set(name, value);
  try {
    history.replaceState(null, "", `#${query}`);
  } catch {
    location.hash = String(query); // if a file may not change its address
  }
}

function link(page, query) {
  return local(`${page}.html#${new URLSearchParams(query)}`);
}

// Return the address of a page. All pages of a report are in one file.
function local(href) {
  return values ? href.replace(/^(\w+)\.html#/, "#page=$1&") : href;
}

// Mount a dashboard component in an element, with its own style sheets.
async function mount(host, name, data, send = () => {}) {
  const { components, sheets } = window.vlprobe;
  const root = host.shadowRoot || host.attachShadow({ mode: "open" });
  if (!root.adoptedStyleSheets.length) {
    root.adoptedStyleSheets = [new CSSStyleSheet()];
    root.adoptedStyleSheets[0].replaceSync(sheets[name]);
  }
  host.leave = components[name]({ data: await pictured(data), parentElement: root, setTriggerValue: send, setStateValue: send });
}

// Draw a Plotly figure in an element. Clicking a mark makes a choice on this page.
async function plot(host, figure, chosen, change) {
  await (loading.plotly ||= plotly());
  const { data, layout } = figure[matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"];
  const traces = data.map((trace) => ({ ...trace, selectedpoints: trace.customdata?.flatMap((choice, at) => (choice === chosen ? [at] : [])) }));
  const config = { displayModeBar: false, responsive: true };
  const isNew = !host.data;
  const annotations = layout.annotations?.filter(({ name }) => name !== "wide only" || host.clientWidth > 600);
  await window.Plotly.react(host, traces.map((trace) => ({ ...trace, selected: { marker: { size: 17 } } })), { ...layout, annotations }, config);
  host.setAttribute("role", "img");
  host.ariaLabel = figure.alternative;
  host.change = change;
  if (isNew) host.on("plotly_click", ({ points: [{ customdata }] }) => customdata && host.change(Object.fromEntries(new URLSearchParams(customdata))));
}

// Show tables made by Python in an element. Their links that start with a number sign are choices on this page.
async function show(host, markup, chosen, change) {
  if (host.markup !== markup) {
    host.markup = markup;
    host.replaceChildren(await elements(markup));
    for (const anchor of host.querySelectorAll("a[href^='#']:not([href^='#page='])")) anchor.dataset.choice = anchor.getAttribute("href").slice(1);
  }
  for (const anchor of host.querySelectorAll("[data-choice]")) {
    const choice = Object.fromEntries(new URLSearchParams(anchor.dataset.choice));
    anchor.setAttribute("href", `#${new URLSearchParams({ ...address(), ...choice })}`);
    anchor.setAttribute("aria-current", anchor.dataset.choice === chosen);
  }
  host.onclick = (event) => {
    const { choice } = event.target.closest("[data-choice]")?.dataset || {};
    if (!choice || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    change(Object.fromEntries(new URLSearchParams(choice)));
  };
}

function chooser(label, options, chosen, act) {
  const select = make("select", "choice");
  for (const [key, text] of options) select.append(new Option(text, key, false, String(key) === String(chosen)));
  select.setAttribute("aria-label", label);
  select.addEventListener("change", () => act(select.value));
  return select;
}

function button(text, label, act, style) {
  const made = Object.assign(make("button", style, text), { type: "button", disabled: !act });
  if (label) Object.assign(made, { title: label, ariaLabel: label });
  if (act) made.addEventListener("click", act);
  return made;
}

// Return the page's subject: a question set and a kind for which the site has this page, and a model.
function about(index, name) {
  const said = address();
  const sets = index.sets.filter((one) => one.kinds.some((kind) => kind.pages.includes(name)));
  const set = sets.find((one) => one.key === said.set) || sets[0];
  const kinds = set.kinds.filter((one) => one.pages.includes(name));
  const kind = kinds.find((one) => one.key === said.kind) || kinds[0];
  const model = set.models.find((one) => one.key === said.model) || set.models[0];
  const number = set.kinds.indexOf(kind);
  return { said, sets, set, kinds, kind, model, name: `${set.key}-${name}-${number}`, cases: `${set.key}-explore-${number}` };
}

// Make the pickers that pages share: kind and question set. If there is only one kind, `isNamed` shows its name.
function choices({ sets, set, kinds, kind }, isNamed = false) {
  const go = (changes) => {
    say({ type: "", pattern: "", case: "", row: "", ...changes });
    draw();
  };
  return [
    kinds.length > 1 ? chooser("Kind of question", named(kinds), kind.key, (key) => go({ kind: key })) : isNamed && make("b", "", kind.label),
    sets.length > 1 ? "in" : `in ${set.label}`,
    sets.length > 1 && chooser("Question set", named(sets), set.key, (key) => go({ set: key, kind: "", model: "" })),
  ].filter(Boolean);
}

// Return the element with this name. It is made at the first call.
function place(name) {
  const main = document.querySelector("main");
  return main.querySelector(`:scope > .${name}`) || main.appendChild(make("div", name));
}

function named(entries) {
  return entries.map(({ key, name, label }) => [key, name || label]);
}

// Replace an element's content. The focus stays on the same picker.
function fill(host, ...children) {
  const label = host.contains(document.activeElement) && document.activeElement.ariaLabel;
  host.replaceChildren(...children);
  if (label) host.querySelector(`[aria-label="${CSS.escape(label)}"]`)?.focus();
}

// Make a toggle for each pattern, with its words and how often they fool the model.
function switches(patterns, chosen, act) {
  return patterns.map(({ source, target, rate, counts, tip }, at) => {
    const words = [make("bdi", "", source), target && " → ", target && make("bdi", "", target)];
    const pressed = chosen.includes(at);
    const others = chosen.filter((one) => one !== at);
    const made = button("", `${source}${target && ` → ${target}`} ${counts}: ${tip}`, () => act((pressed ? others : [...chosen, at]).join(",")), "chip");
    made.append(make("b", "", ...words), make("span", "quiet", ` ${counts}`));
    made.style.setProperty("--rate", `${Math.round(100 * rate)}%`);
    made.ariaPressed = String(pressed);
    return made;
  });
}

// Fill the first row of a page: words and pickers.
function sentence(...parts) {
  fill(place("sentence"), ...parts.map((part) => (typeof part === "string" ? make("span", "quiet between", part) : part)));
}

// Draw the page of the address, from scratch if `isNew`, otherwise after a choice on it.
async function draw(isNew = true) {
  const index = await table("index");
  const [main, numbers] = [document.querySelector("main"), document.querySelector(".numbers")];
  const said = document.body.dataset.page || address().page;
  const name = Object.hasOwn(PAGES, said) ? said : "index";
  const page = about(index, name);
  for (const anchor of document.querySelectorAll("nav a")) {
    anchor.href = link(anchor.dataset.page, { set: page.set.key, kind: page.kind.key, model: page.model.key });
    anchor.ariaCurrent = anchor.dataset.page === (said === "numbers" ? said : name) ? "page" : null;
  }
  document.querySelector("footer .about").textContent = page.set.about;
  if (numbers) [main.hidden, numbers.hidden] = [said === "numbers", said !== "numbers"];
  if (isNew) {
    for (const host of main.querySelectorAll("*")) host.leave?.();
    main.replaceChildren();
  }
  try {
    if (!main.hidden) await PAGES[name](page, await table(page.name), isNew);
    main.dataset.ready = String(Number(main.dataset.ready || 0) + 1);
  } catch (error) {
    main.replaceChildren(make("p", "quiet", "A file is missing. Keep all files of this site together in one folder."));
    throw error;
  }
}

addEventListener("hashchange", () => draw());
addEventListener("load", () => {
  if (!location.hash) say(Object.fromEntries(new URLSearchParams(document.querySelector("main").dataset.start)));
  draw();
});

// Return a case with a model's answers.
function caseOf(entry, model) {
  return { ...entry.case, ...entry.models[model.key] };
}

// Show one case in a drawer: its data, its position, functions for the previous and the next case, and others [[label, act], ...].
async function showCase({ case: { pictures, captions, bars, rest }, where, previous, next, others }) {
  const steps = make("p", "steps", make("span", "small quiet", where), button("‹", "Previous case", previous, "step"),
    button("›", "Next case", next, "step"), button("✕", "Close", () => dialog.close(), "step"));
  const list = make("details", "", make("summary", "", `${others.length} more on it`));
  list.append(...others.map(([text, act]) => button(text, "", act, "other")));
  const content = make("div", "case", steps, await elements(pictures + captions + bars), others.length && list, await elements(rest));
  const dialog = document.querySelector("dialog") || make("dialog", "drawer");
  dialog.replaceChildren(content);
  dialog.onkeydown = (event) => {
    const act = { ArrowLeft: previous, ArrowRight: next }[event.key];
    if (act && !event.ctrlKey && !event.metaKey && !event.altKey) act();
  };
  if (dialog.open) return;
  dialog.setAttribute("role", "dialog"); // the wall takes the focus back when it closes
  dialog.ariaLabel = "One case";
  dialog.onclick = (event) => event.target === dialog && dialog.close();
  dialog.onclose = () => {
    dialog.remove();
    say({ case: "" });
  };
  document.body.append(dialog);
  dialog.showModal();
}

PAGES.index = async (page, values) => {
  sentence(...choices(page));
  const { cases } = values.hero;
  const show = (first) => {
    const near = [first, first + 1, first + 2].slice(0, cases.length).map((at) => ({ ...cases[at % cases.length], place: at }));
    return mount(place("hero-place"), "home", { ...values.hero, cases: near }, (name, value) => {
      if (name === "place") show(value);
      else location.href = local(value);
    });
  };
  if (cases.length) await show(0);
  else place("hero-place").append(make("h1", "", values.nothing));
  await mount(place("figures-place"), "figures", values.figures, (_, href) => (location.href = local(href)));
};

PAGES.present = async (page, values) => {
  sentence("Slides about", ...choices(page, true));
  const { pictures, ...talk } = await pictured(values);
  const sources = Object.fromEntries(Object.entries(pictures).map(([name, { source }]) => [name, source]));
  await mount(place("talk"), "slides", { ...talk, pictures: sources });
};

// Return a regular expression for each word, and each phrase in double quotes, of a caption search, as in the dashboard
// (`views.filter`): whole words, except in scripts without upper and lower case, or beginnings of words with a star.
function patterns(search) {
  const letter = String.raw`[\p{Lu}\p{Ll}\p{Lt}\p{M}\p{N}_]`;
  const isBounded = (character) => /[\p{L}\p{N}]/u.test(character) && !/[\p{Lo}\p{Lm}]/u.test(character);
  return [...search.matchAll(/"([^"]+)"|([^\s,;]+)/g)].map(([, phrase, word]) => {
    const text = phrase || word;
    const part = [...(text.replace(/\*+$/, "") || text)];
    const isWhole = part.length === [...text].length && isBounded(part.at(-1));
    const [begin, end] = [isBounded(part[0]) ? `(?<!${letter})` : "", isWhole ? `(?!${letter})` : ""];
    return new RegExp(begin + part.join("").replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&") + end, "iu");
  });
}

function outcomeOf(margin) {
  if (margin === null) return ["unknown"];
  return margin > 0 ? ["held"] : margin === 0 ? ["fooled", "tied"] : ["fooled"];
}

// Sort keys of a case (ascending) from its margin, the number of models that it fools, and its position in the dataset.
const ORDERS = {
  worst: (margin) => margin,
  closest: (margin) => Math.abs(margin),
  best: (margin) => -margin,
  models: (margin, fooled) => -fooled,
  dataset: (margin, fooled, number) => number,
};

let limit = MOST_CARDS;
PAGES.explore = async (page, values, isNew) => {
  const { said, set, model } = page;
  const change = (changes) => {
    say({ case: "", ...changes });
    limit = MOST_CARDS;
    draw(false);
  };
  const outcomes = values.outcomes.map(([key]) => key);
  const outcome = outcomes.includes(said.outcome) ? said.outcome : outcomes[0] || "all";
  const type = values.types.some(([key]) => key === said.type) ? said.type : "";
  const words = (said.words || "").slice(0, 200);
  const finds = patterns(words);
  const chips = values.patterns[model.key] || [];
  const chosen = (said.pattern || "none").split(",").map(Number).filter((at) => chips[at]);
  const members = new Set(chosen.flatMap((at) => chips[at].cases));
  if (isNew) {
    const label = "Caption contains";
    const search = Object.assign(make("input", "choice"), { type: "search", maxLength: 200, placeholder: label, ariaLabel: label });
    search.value = said.words || "";
    search.addEventListener("input", () => change({ words: search.value.trim() }));
    const filters = make("details", "filters", make("summary"));
    if (outcomes.length) filters.append(chooser("Outcome", values.outcomes, outcome, (key) => change({ outcome: key })));
    const types = [["", "Any type or slice"], ...values.types];
    if (types.length > 2) filters.append(chooser("Type", types, type, (key) => change({ type: key })));
    filters.append(search);
    filters.append(make("span", "order"));
    const happens = values.movement ? "is moved by" : "is fooled by";
    sentence(chooser("Model", named(set.models), model.key, (key) => change({ model: key, pattern: "" })), happens, ...choices(page, true), filters);
  }
  const nActive = [outcomes.length && outcome !== "fooled", type !== "", words].filter(Boolean).length;
  place("sentence").querySelector("summary").textContent = nActive ? `Filters (${nActive})` : "Filters";

  const number = set.models.indexOf(model);
  const possible = values.orders[model.key].map(([key]) => key);
  const order = possible.includes(said.sort) ? said.sort : possible[0];
  fill(place("sentence").querySelector(".order"), chooser("Order", values.orders[model.key], order, (key) => change({ sort: key })));
  const nFooled = ({ margins }) => margins.filter((margin, at) => margin !== null && margin <= 0 && set.models[at].counts).length;
  const sortKey = ({ entry, margin }) =>
    margin === null ? Infinity : ORDERS[order](margin, nFooled(entry), Number(entry.case.id.slice(1)));
  const rows = values.cases.map((entry, at) => ({ entry, at, margin: entry.margins[number] }))
    .filter(({ margin }) => outcome === "all" || outcomeOf(margin).includes(outcome))
    .filter(({ entry }) => type === "" || entry.types.includes(type))
    .filter(({ entry }) => finds.every((each) => each.test(entry.texts.join("\n"))))
    .filter(({ at }) => !chosen.length || members.has(at))
    .map((row) => ({ ...row, key: sortKey(row) }))
    .sort((one, other) => (one.key === other.key ? 0 : one.key - other.key));
  const pictures = new Map(rows.map((row) => [row.entry.picture, []])); // one card per picture, for its worst case
  for (const row of rows) pictures.get(row.entry.picture).push(row);
  const groups = [...pictures.values()];

  const [heading, rate, total] = values.lines[model.key][`${type}:${outcome}`] || ["", "", 0];
  const count = rows.length.toLocaleString("en");
  const isNarrow = words || chosen.length;
  const narrow = `${rows.length ? count : "None"} of the ${values.lies} on this site pass the filters`;
  const orderText = new Map(values.orders[model.key]).get(order).replace(/^\w/, (letter) => letter.toLowerCase());
  const here = rows.length === total ? "all of them are here" : `${count} of them are on this site`;
  const note = [rate, `grouped by picture, ${orderText}`, !isNarrow && here].filter(Boolean).join(" · ");
  const title = isNarrow ? narrow : heading || "No cases here.";
  place("chips").hidden = !chips.length;
  fill(place("chips"), make("span", "quiet small", "Patterns"), ...switches(chips, chosen, (pattern) => change({ pattern })));
  const card = ([row, ...more]) => ({ ...caseOf(row.entry, model), badge: more.length ? `+${more.length}` : "" });
  const cards = groups.slice(0, limit).map(card);
  const open = async (id) => {
    const entry = values.cases.find((one) => one.case.id === id);
    if (!entry) return;
    say({ case: id });
    const at = groups.findIndex((group) => group.some((row) => row.entry === entry));
    const to = (next) => groups[next] && (() => open(groups[next][0].entry.case.id));
    const same = (groups[at] || []).filter((row) => row.entry !== entry);
    const others = same.map((row) => [caseOf(row.entry, model).name, () => open(row.entry.case.id)]);
    const where = at < 0 ? "Not among the cases that pass the filters" : `${at + 1} of ${groups.length} here`;
    await showCase({ case: caseOf(entry, model), where, previous: to(at - 1), next: at >= 0 && to(at + 1), others });
  };
  const wall = { label: title, heading: title, note, strip: false, legend: values.legend, cards };
  await mount(place("wall-place"), "wall", wall, (_, id) => open(id));
  const more = () => {
    limit += MOST_CARDS;
    draw(false);
  };
  const text = `Show more (${(groups.length - limit).toLocaleString("en")})`;
  place("more").replaceChildren(...(groups.length > limit ? [button(text, "", more, "choice")] : []));
  if (isNew && said.case) await open(said.case);
};

PAGES.compare = async (page, values) => {
  const { set, said } = page;
  const models = Object.fromEntries(set.models.map((one) => [one.key, one]));
  const bases = [...new Set(values.contests.map((one) => one.models[0]))];
  const base = bases.includes(said.model) ? said.model : bases[0];
  const contests = values.contests.filter((one) => one.models[0] === base);
  const contest = contests[Number(said.group)] || contests[0];
  const row = Object.hasOwn(contest.rows, said.row) ? said.row : contest.first;
  const [rival, type] = row.split(":");
  const change = (changes) => {
    say({ row: "", case: "", ...changes });
    draw(false);
  };
  const groups = contests.map((one, at) => [at, one.models.slice(1).map((key) => models[key].name).join(", ")]);
  const others = chooser("Compared with it", groups, contests.indexOf(contest), (group) => change({ group }));
  const baselines = named(bases.map((key) => models[key]));
  sentence("Compare", chooser("Model", baselines, base, (model) => change({ model, group: "" })), "with",
    groups.length > 1 ? others : make("b", "", groups[0][1]), "on", ...choices(page, true));
  const notes = contest.notes.map((text) => make("p", "quiet small", text));
  const mark = ({ path, color, name }) => make("span", "entry", drawing(path, "mark", "0 0 14 14", color), make("bdi", "", name));
  place("finding").replaceChildren(make("h1", "", contest.heading), make("p", "quiet", contest.detail), ...notes);
  place("legend").replaceChildren(...contest.models.map((key) => mark(models[key])));
  place("forest").hidden = !contest.figure;
  if (contest.figure) await plot(place("forest"), contest.figure, `row=${row}`, change);
  place("how").replaceChildren(make("p", "quiet small", contest.figure ? contest.how : ""));
  place("parting").replaceChildren(make("h2", "", `Where they disagree: ${values.titles[type]}`));
  const [inFull, rest] = contest.rows[row];
  const types = [...new Set(Object.keys(contest.rows).map((key) => key.split(":")[1]))];
  const typeOfEdit = chooser("Type of edit", types.map((at) => [at, values.titles[at]]), type, (at) => change({ row: `${rival}:${at}` }));
  const rivals = named(contest.models.slice(1).map((key) => models[key]));
  const comparedWith = chooser("Compared with", rivals, rival, (key) => change({ row: `${key}:${type}` }));
  fill(place("row"), typeOfEdit, comparedWith, make("span", "quiet small", inFull));

  const explore = await table(page.cases);
  const order = contest.models.map((key) => values.models.indexOf(key));
  const columns = [[base, rival], [rival, base]].map((keys) => [...keys, ...(values.columns[`${keys.join(">")}:${type}`] || [0, [], 0])]);
  const shown = columns.flatMap(([key, , , places]) => places.map((at) => [key, values.cards[at].id]));
  const open = (at) => {
    const [key, id] = shown[at];
    const to = (next) => shown[next] && (() => open(next));
    const entry = explore.cases.find((one) => one.case.id === id);
    const where = `${at + 1} of ${shown.length} shown here`;
    return showCase({ case: caseOf(entry, models[key]), where, previous: to(at - 1), next: to(at + 1), others: [] });
  };
  const column = () => make("section", "", make("p", "side"), make("div", "wall-place"));
  if (!place("facing").firstChild) place("facing").append(column(), column());
  for (const [side, [key, other, count, places, nHalves]] of columns.entries()) {
    const [head, wall] = place("facing").children[side].children;
    const [begin, end] = values.movement ? [" move ", " more than "] : [" fooled ", ", not "];
    const words = make("span", "", begin, make("b", "", models[key].name), end + models[other].name);
    const half = nHalves.toLocaleString("en");
    if (nHalves) words.append(`: ${(count - nHalves).toLocaleString("en")} in both orders, ${half} in only one (counted as half above)`);
    head.replaceChildren(make("b", "big", count.toLocaleString("en")), words);
    const cards = places.map((at) => ({ ...values.cards[at], boxes: order.map((model) => values.cards[at].boxes[model]) }));
    wall.hidden = !cards.length;
    const label = `Only ${models[key].name}, not ${models[other].name}`;
    const at = (id) => shown.findIndex((one) => one[0] === key && one[1] === id);
    await mount(wall, "wall", { label, bare: true, facing: true, strip: false, cards }, (_, id) => open(at(id)));
  }
  place("rest").replaceChildren(make("p", "quiet small", rest));
};

PAGES.tradeoff = async (page, values) => {
  const model = Object.hasOwn(values.examples, page.said.model) ? page.said.model : values.pinned;
  sentence("Trade-offs for all models", ...choices(page));
  place("finding").replaceChildren(make("h1", "", values.heading), make("p", "quiet", values.detail));
  if (!place("sides").firstChild) place("sides").append(make("div"), make("section", "example"));
  const [sides, example] = place("sides").children;
  if (!sides.firstChild) sides.append(make("div"), make("div"));
  const [figure, numbers] = sides.children;
  const change = (choice) => {
    say(choice);
    draw(false);
  };
  await plot(figure, values.figure, `model=${model}`, change);
  await show(numbers, values.numbers, `model=${model}`, change);
  example.replaceChildren(await elements(values.examples[model]));
};
