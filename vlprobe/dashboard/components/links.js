// Links in tables that Python drew (`a.vp-go`) open without reloading the page.
//
// Triggers: go (the link's address).

export default function ({ parentElement, setTriggerValue }) {
  parentElement.getRootNode().host?.setAttribute("data-drawn", "");
  const follow = (event) => {
    const link = followed(event, "a.vp-go");
    if (!link) return;
    event.stopPropagation();
    setTriggerValue("go", link.getAttribute("href"));
  };
  document.addEventListener("click", follow, true);
  return () => document.removeEventListener("click", follow, true);
}
