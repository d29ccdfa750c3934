// Links in tables that Python drew (`a.vp-go`), and in figures, open without reloading the page.
//
// Triggers: go (the link's address).

export default function ({ parentElement, setTriggerValue }) {
  parentElement.getRootNode().host?.setAttribute("data-drawn", "");
  const follow = (event) => {
    const link = followed(event, "a.vp-go, .js-plotly-plot a");
    if (!link) return;
    event.stopPropagation();
    // Plotly encodes addresses once more
    setTriggerValue("go", link.getAttribute("href") ?? link.getAttribute("xlink:href").replaceAll("%25", "%"));
  };
  document.addEventListener("click", follow, true);
  return () => document.removeEventListener("click", follow, true);
}
