"use strict";
// Home: a failure and another one, figures, the way to the other pages.

open("index", async (main, subject, index, redraw) => {
  const values = await table(subject.name);
  const [hero, figures] = [make("div", "hero-place"), make("div")];
  const bar = make("p", "sentence", ...choices(subject, redraw));
  main.replaceChildren(bar, hero, figures);
  let first = 0;
  const shown = () => {
    const { cases } = values.hero;
    const window_ = [0, 1, 2].slice(0, cases.length).map((step) => first + step);
    return { ...values.hero, cases: window_.map((place) => ({ ...cases[place % cases.length], place })) };
  };
  const press = (name, value) => {
    if (name === "place") {
      first = value;
      mount(hero, "home", shown(), press);
    } else location.href = values.hero.cases.find((one) => one.id === value).href;
  };
  if (values.hero.cases.length) await mount(hero, "home", shown(), press);
  else hero.replaceWith(make("h1", "", values.nothing));
  const entries = [...values.figures.numbers, ...values.figures.strip.models, ...values.figures.doors];
  await mount(figures, "figures", values.figures, (_, key) => {
    location.href = entries.find((entry) => entry.key === key).href;
  });
});
