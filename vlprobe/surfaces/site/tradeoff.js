"use strict";
// Trade-off: the finding, a mark a model, and the worst mistake of the one that is pinned.

PAGES.tradeoff = async (page, values) => {
  const { said, set, kind } = page;
  sentence("How steady and how alert are all models", ...choices(page));
  place("finding").replaceChildren(make("h1", "", values.heading), make("p", "quiet", values.detail));
  const pinned = said.model in values.picture.examples ? said.model : values.picture.pinned;
  await mount(place("plane"), "tradeoff", { ...values.picture, pinned }, (name, model) => {
    if (name === "open") location.href = link("explore", { set: set.key, kind: kind.key, model });
    else {
      say({ model });
      draw(false);
    }
  });
};
