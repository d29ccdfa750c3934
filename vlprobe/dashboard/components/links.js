// Links in tables that Python drew (`a.vp-go`), and in figures, open without reloading the page.
//
// Triggers: go (the link's address).

// Show the cases of a row of the differences while the page is drawn, until the user does something. They are below a plot.
// If an address is given, wait until the page has another one.
function showCases(before) {
  const show = () => location.search !== before && document.querySelector(".st-key-facing")?.scrollIntoView();
  const timer = setInterval(show, 100);
  setTimeout(() => clearInterval(timer), 10_000);
  for (const act of ["wheel", "touchstart", "pointerdown", "keydown"]) addEventListener(act, () => clearInterval(timer), { once: true, capture: true });
}

export default function ({ parentElement, setTriggerValue }) {
  parentElement.getRootNode().host?.setAttribute("data-drawn", "");
  const follow = (event) => {
    const link = followed(event, "a.vp-go, .js-plotly-plot a, .st-key-forest .nsewdrag");
    const isTouch = link?.matches(".nsewdrag") && matchMedia("(hover: none)").matches; // the first one selects no row
    if (link?.matches(".vp-scorecard td a:not(.vp-count), .st-key-forest *")) showCases(isTouch && location.search);
    if (!link?.matches("a")) return;
    event.stopPropagation();
    // Plotly encodes addresses once more
    setTriggerValue("go", link.getAttribute("href") ?? link.getAttribute("xlink:href").replaceAll("%25", "%"));
  };
  document.addEventListener("click", follow, true);
  return () => document.removeEventListener("click", follow, true);
}
