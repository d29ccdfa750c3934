// Make one click one step of Back. Streamlit adds a history entry for each parameter that a page writes to its address:
// four for one click on Explore, and one with the next page's parameters at the previous page's address. This script adds the first
// entry after a click or a key; later ones replace it. A drawer (`case`) is one entry: Back closes it, whichever case it shows, and
// Back from a wall that the drawer opened leads to the drawer.

function watchHistory() {
  if (history.isWatched) return; // every component includes this script
  history.isWatched = true;
  const add = history.pushState.bind(history);
  let isPressed = false;
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, () => (isPressed = true), true);
  addEventListener("popstate", () => (isPressed = false), true);
  history.pushState = (state, title, url) => {
    const [from, to] = [new URL(location.href), new URL(url, location.href)];
    const [wasOpen, isOpen] = [from.searchParams.has("case"), to.searchParams.has("case")];
    const isSameWall = from.pathname === to.pathname && others(from) === others(to);
    const hasWall = from.pathname === to.pathname && history.state?.hasWall; // the address of the entry before, if it is the drawer's wall
    const isDrawer = isSameWall && (wasOpen || (isOpen && hasWall));
    if (wasOpen && hasWall === to.href) history.back(); // otherwise the next Back would change nothing
    else if (isPressed && !isDrawer) add({ ...state, hasWall: isSameWall && isOpen && from.href }, title, url);
    else history.replaceState({ ...state, hasWall: hasWall && isSameWall }, title, url);
    isPressed = false;
  };
}

// Return the parameters of an address, without those that a drawer changes.
function others(address) {
  const names = [...address.searchParams].filter(([name]) => name !== "case" && name !== "page");
  return JSON.stringify(names);
}

watchHistory();
