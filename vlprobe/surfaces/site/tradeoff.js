"use strict";
// Trade-off: the finding, a mark a model, and the worst mistake of the one that is pinned.

let field = null;

open("tradeoff", async (main, subject, index, redraw) => {
  const values = await table(subject.name);
  if (!field) {
    field = { bar: make("div", "sentence"), finding: make("div", "finding"), place: make("div") };
    main.replaceChildren(field.bar, field.finding, field.place);
  }
  field.bar.replaceChildren(make("span", "quiet", "How steady and how alert are all models"), ...choices(subject, redraw));
  field.finding.replaceChildren(make("h1", "", values.heading), make("p", "quiet", values.detail));
  const pinned = address().model in values.picture.examples ? address().model : values.picture.pinned;
  await mount(field.place, "tradeoff", { ...values.picture, pinned }, (name, model) => {
    if (name === "open") location.href = link("explore", { set: subject.set.key, kind: subject.kind.key, model });
    else {
      say({ model });
      redraw();
    }
  });
});
