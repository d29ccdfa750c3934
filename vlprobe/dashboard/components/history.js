// One press, one step Back. Streamlit adds an entry to the browser's history for every parameter that a page writes to its address:
// four for one press on Explore, and one with the parameters of the next page at the address of the page before. Here the first entry
// after a press or a key is added; what follows replaces it. A drawer (`case`) is one entry: Back closes it, wherever it was led to.

function watchHistory() {
  if (history.isWatched) return; // every component has this script
  history.isWatched = true;
  const add = history.pushState.bind(history);
  let isPressed = false;
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, () => (isPressed = true), true);
  addEventListener("popstate", () => (isPressed = false), true);
  history.pushState = (state, title, url) => {
    const [from, to] = [new URL(location.href), new URL(url, location.href)];
    const [wasOpen, isOpen] = [from.searchParams.has("case"), to.searchParams.has("case")];
    const isSamePage = from.pathname === to.pathname;
    const isClosed = isSamePage && wasOpen && !isOpen && others(from) === others(to);
    const isReopened = isSamePage && isOpen && (wasOpen || history.state?.isClosed);
    if (isPressed && !isClosed && !isReopened) add(state, title, url);
    else history.replaceState({ ...state, isClosed }, title, url);
    isPressed = false;
  };
}

// The parameters of an address but those that a drawer changes.
function others(address) {
  const names = [...address.searchParams].filter(([name]) => name !== "case" && name !== "page");
  return JSON.stringify(names);
}

watchHistory();
