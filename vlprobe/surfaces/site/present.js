"use strict";
// Present: the slides of a kind. Nothing of what is shown goes anywhere.

let talk = null;

open("present", async (main, subject, index, redraw) => {
  const values = await table(subject.name);
  if (!talk) {
    talk = { bar: make("div", "sentence"), place: make("div") };
    main.replaceChildren(talk.bar, talk.place);
  }
  talk.bar.replaceChildren(make("span", "quiet", "Slides about"), ...choices(subject, redraw));
  const shown = await pictured(values);
  const pictures = Object.fromEntries(Object.entries(shown.pictures).map(([name, { source }]) => [name, source]));
  await mount(talk.place, "slides", { ...shown, pictures });
});
