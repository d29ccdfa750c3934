// Links in tables that Python drew (`a.vp-go`) open in this page, without loading all of it again.
//
// Trigger: go (the address of the link).

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
