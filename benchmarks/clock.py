"""Time from a click or an address to the picture: `python benchmarks/clock.py [--small] [--kept FOLDER] [--only PAGE]`.

The pages are timed on three stores: the bundled results over an empty cache; the store from `benchmarks/wall.py` (eight
models x 1.5 million cases, 20,000 distinct JPEGs of 640 x 480, with the thumbnails that a run writes); and eight models
x 15,000 cases with 60 JPEGs of 24 megapixels. With --small, the second store has 15,000 cases per model and 200
pictures. With --kept, both generated stores are filled once and kept. Times are in milliseconds by Chromium's clock:

    at once     the page's address is entered as soon as a fresh server answers
    first       the page is chosen in the top row after a look at Home, for the first time in the server's process
    again       the page is chosen once more in the same tab
    changed     another model, or another control of the page, is chosen: the median and the slowest of three

Each time ends when the first new picture is decoded (`img.decode()`), including pictures in shadow roots. If the page
shows no new picture, the time ends when its text is shown and its script has ended (marked *); "none" means that the
page has ended and shows nothing new. On Explore, there is also

    a case      a card is clicked, until its large picture is decoded

and on the bundled results:

    facets      a row in a facet is clicked, until the first new picture is decoded
    slider      the strength of a mixture is changed by a key, until the frame with the new mixture is drawn; the demo
                models are loaded
    next case   the next mixture is chosen, until its picture is decoded, and until the models have answered for every
                share

A look at Home takes five seconds. Chromium has loaded Streamlit's own files once before. The machine must be otherwise
idle, because Chromium, the server and this script share it. CPU is the server's CPU time during the wait. Times above
their goals are listed at the end.
"""

import argparse
import contextlib
import math
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Error as PressError
from playwright.sync_api import sync_playwright
from startup import serving
from store import fill
from wall import photographs

PORT = 8599
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
PATIENCE = 60_000  # milliseconds
PRESSES = 15_000  # milliseconds to wait for an element to click
GIVES_UP = 20_000  # milliseconds to wait for a new picture after a page has ended
GOALS = {"at once": 1500, "first": 1000, "again": 300, "changed": 300}
FACETS_GOAL, SLIDER_GOAL = 400, 300
BIG, SMALL, LARGE = (1_500_000, 20_000), (15_000, 200), (15_000, 60)  # cases, pictures
PHOTOGRAPH, LARGE_PHOTOGRAPH = (640, 480), (6000, 4000)  # pixels
PAGES = {
    "Home": "",
    "Explore": "explore",
    "Compare": "compare",
    "Trade-off": "tradeoff",
    "Try it": "try",
    "Present": "present",
    "Run": "run",
    "Lab": "lab",
}
LARGE_PAGES = ("Home", "Explore", "Compare", "Try it", "Present")  # pages that show large pictures
CHANGES = 3
LOOK = 5_000  # milliseconds of a look at Home
late: list[str] = []  # measurements above their goals
presses: dict[str, float] = {}  # the clock time of each press on a page that was seen before
N_DRAWN = 20  # distinct drawings in the JPEGs of `photographs`
# Script for timing in the page. Times are milliseconds since 1970, so that they match those of this process.
WATCH = """
(() => {
  const now = () => performance.timeOrigin + performance.now();
  const roots = new Set([document]);  // noted as they are made: to look for them again and again would slow the page
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options);
    roots.add(root);
    return root;
  };
  const shown = () => [...roots].filter((root) => root === document || root.host.isConnected);
  const all = (selector) => shown().flatMap((root) => [...root.querySelectorAll(selector)]);
  const main = () => document.querySelector("[data-testid=stMain]")?.innerText || "";
  const text = () => main() + shown().slice(1).map((root) => root.textContent).join("");
  const visible = (element) => {
    const box = element.getBoundingClientRect();
    return box.width >= 60 && box.height >= 40 && box.top < innerHeight && box.bottom > 0 && box.right > 0;
  };
  const pictures = () => all("img").filter(visible);
  const state = () => {
    const app = document.querySelector("[data-testid=stApp]");
    return app ? app.getAttribute("data-test-script-state") : "";
  };
  const idle = () => state() === "notRunning"
    && !document.querySelector("[data-testid=stSkeleton], [data-stale=true]");
  const turn = () => new Promise((resolve) => setTimeout(resolve, 8));
  const clock = { pressed: 0, seen: new Map() };
  for (const name of ["pointerup", "keydown"])
    addEventListener(name, (event) => { clock.pressed = performance.timeOrigin + event.timeStamp; }, true);
  clock.mark = (selector) => {
    clock.seen = new Map(all("img").map((image) => [image, image.src]));
    clock.old = new Set(selector ? all(selector) : []);
    clock.text = text();
  };
  // The time at which the first new picture was decoded; negative where the page has ended without one, but with
  // other text; 0 where nothing is new.
  clock.picture = async (patience, givesUp) => {
    const until = now() + patience;
    let quiet = 0, still = 0;
    while (now() < until) {
      for (const image of pictures()) {
        if (clock.seen.get(image) === image.src || !image.src || image.closest("[data-stale=true]")) continue;
        if (image.decoding_of !== image.src) {  // not awaited: that of a picture that is taken away may never end
          image.decoding_of = image.src;
          image.decode().then(() => { image.decoded_at = now(); image.decoded_of = image.src; }, () => {});
        }
        if (image.decoded_of === image.src && image.naturalWidth > 1) return image.decoded_at;
      }
      still = idle() ? still || now() : 0;
      quiet = still && main().length > 40 && text() !== clock.text ? quiet || now() : 0;
      if (quiet && now() - quiet > 1500) return -quiet;
      if (still && now() - still > givesUp) return 0;
      await turn();
    }
    return 0;
  };
  clock.made = async (selector, patience) => {
    const until = now() + patience;
    while (now() < until) {
      if (all(selector).some((element) => !clock.old.has(element))) return now();
      await turn();
    }
    return 0;
  };
  clock.asked = async (patience) => {
    const until = now() + patience;
    while (now() < until) {
      const [chart] = all("section.chart");
      if (chart && !/Asking at every share/.test(chart.innerText)) return now();
      await turn();
    }
    return 0;
  };
  clock.drawn = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(now()), 0)));
  clock.idle = idle;
  window.clock = clock;
})();
"""
PICTURE = f"clock.picture({PATIENCE}, {GIVES_UP})"


@dataclass(frozen=True)
class Took:
    """Duration of one wait in milliseconds: clock time, and CPU time of the server."""

    clock: float  # infinite if nothing new was shown
    cpu: float
    pictured: bool = True

    @property
    def text(self) -> str:
        """The clock time as printed, with a star if no picture was shown."""
        return milliseconds(self.clock) + ("" if self.pictured else "*")


def milliseconds(clock: float) -> str:
    """Format a clock time in milliseconds for printing."""
    return "none" if math.isinf(clock) else f"{clock:,.0f}"


def middle(took: Sequence[Took]) -> Took:
    """Compute the medians of several waits."""
    return Took(
        statistics.median(each.clock for each in took),
        statistics.median(each.cpu for each in took),
        all(each.pictured for each in took),
    )


@dataclass
class Tab:
    """A Chromium tab, and the process of the server that it shows."""

    page: Any
    server: psutil.Process

    def _worked(self) -> float:
        times = self.server.cpu_times()
        return 1000 * (times.user + times.system)

    def _took(self, began: float, ended: float, worked: float) -> Took:
        worked = self._worked() - worked
        return Took(abs(ended) - began, worked, ended > 0) if ended else Took(math.inf, worked)

    def enter(self, address: str) -> Took:
        """Open an address, and time the wait for the first new picture."""
        worked, began = self._worked(), 1000 * time.time()
        self.page.goto(f"http://127.0.0.1:{PORT}/{address}", wait_until="commit")
        self.page.evaluate("clock.mark()")
        return self._took(began, self.page.evaluate(PICTURE), worked)

    def press(self, action: Callable[[], object], until: str = "", selector: str = "") -> Took:
        """Run an action, and time the wait from its last click or key press until the first new picture.

        If `until` is given, this JavaScript expression returns the end of the wait instead.
        """
        worked = self._worked()
        self.page.evaluate("selector => clock.mark(selector)", selector)
        try:
            action()
        except PressError:  # the element to click is missing
            return Took(math.inf, self._worked() - worked)
        ended = self.page.evaluate(until or PICTURE)
        return self._took(self.page.evaluate("clock.pressed"), ended, worked)

    def settle(self) -> None:
        """Wait until the script has ended and the page has stopped drawing."""
        self.page.wait_for_function("window.clock && clock.idle()", timeout=PATIENCE)
        self.page.wait_for_timeout(400)
        self.page.wait_for_function("window.clock && clock.idle()", timeout=PATIENCE)

    def link(self, title: str) -> Callable[[], None]:
        """Return a function that clicks a page's link in the top row."""
        entry = self.page.locator("[data-testid=stTopNavLink]")
        return entry.filter(has_text=re.compile(f"{title}$")).first.click

    def option(self, key: str, index: int) -> Callable[[], None]:
        """Open a picker, and return a function that clicks the option with this index."""
        self.page.locator(f".st-key-{key} button").first.click()
        options = self.page.locator("[role=option]")
        options.first.wait_for()
        return options.nth(index % options.count()).click


def changes(tab: Tab, title: str) -> list[Took]:
    """Time three changes on a page, such as another model; the list is empty if the page has no such control."""
    page, took = tab.page, []
    for number in range(1, 1 + CHANGES):
        tab.settle()
        if title in ("Explore", "Compare"):
            action = tab.option("model", number)
        elif title in ("Home", "Present"):
            action = page.get_by_role("button", name="Another one").first.click
        elif title == "Trade-off":
            others = page.locator(".st-key-pinned button:not([aria-checked=true])")
            action = others.nth(number % max(others.count(), 1)).click
        elif title == "Try it":
            action = page.locator(".st-key-samples button").nth(number).click
        else:
            return []
        took.append(tab.press(action))
    return took


def told(title: str, times: dict[str, Took], changed: list[Took]) -> None:
    """Print a line with the times for one page."""
    line = "".join(
        f"{times[name].text:>9}{times[name].cpu:7.0f}" for name in ("at once", "first", "again")
    )
    if changed:
        median = middle(changed)
        longest = milliseconds(max(each.clock for each in changed))
        line += f"{median.text:>9}{longest:>8}{median.cpu:7.0f}"
    print(f"{title:11}{line}", flush=True)


def pages(browser: Any, cache: Path, titles: list[str]) -> None:
    """Time each page on fresh servers, and print a table."""
    print(f"{'':11}{'at once':>9}{'cpu':>7}{'first':>9}{'cpu':>7}{'again':>9}{'cpu':>7}", end="")
    print(f"{'changed':>9}{'slowest':>8}{'cpu':>7}")
    goals = [f"{GOALS[name]:>9,}{'':7}" for name in GOALS]
    print(f"{'goal':11}{''.join(goals)}")
    for title in titles:
        times = {}
        with serving(cache, PORT) as server, tab_of(browser, server) as tab:
            times["at once"] = tab.enter(PAGES[title])
        with serving(cache, PORT) as server, tab_of(browser, server) as tab:
            other = "Explore" if title == "Home" else "Home"
            tab.enter(PAGES[other])
            tab.settle()
            tab.page.wait_for_timeout(LOOK)
            if title == "Home":  # Home's first time is that of a fresh server
                times["first"] = times["at once"]
            else:
                times["first"] = tab.press(tab.link(title))
                tab.settle()
                tab.press(tab.link(other))
            tab.settle()
            times["again"] = tab.press(tab.link(title))
            changed, opened = [], []
            try:
                changed = changes(tab, title)
                opened = cases(tab) if title == "Explore" else []
            except PressError as error:  # an element did not appear or disappear
                late.append(f"{title}: {str(error).partition(chr(10))[0]}")
        told(title, times, changed)
        if opened:
            line("  a case", opened)
        if title == "Home":
            del times["first"]
        if changed:
            times["changed"] = middle(changed)
        presses.update(
            {
                f"{title}, {name}": times[name].clock
                for name in ("again", "changed")
                if name in times
            }
        )
        late.extend(
            f"{title}, {name}: {milliseconds(each.clock)} for {GOALS[name]:,}"
            for name, each in times.items()
            if each.clock > GOALS[name]
        )


def cases(tab: Tab) -> list[Took]:
    """Open several cards on Explore, and time each until the large picture of its case is decoded."""
    took = []
    for number in range(CHANGES):
        tab.settle()
        took.append(tab.press(tab.page.locator("button.card").nth(number).click))
        tab.settle()
        tab.page.keyboard.press("Escape")
        tab.page.locator("[role=dialog]").first.wait_for(state="hidden")
    return took


def facets(tab: Tab) -> list[Took]:
    """Click several rows of a facet on Explore, and time each until the wall has its first new picture."""
    tab.enter(PAGES["Explore"])
    took = []
    for number in range(CHANGES):
        tab.settle()
        row = tab.page.locator(".st-key-facet_subtype button").nth(number)
        took.append(tab.press(row.click))
    return took


def mixtures(tab: Tab) -> dict[str, list[Took]]:
    """Time the slider of a mixture, and the button for the next case."""
    page, took = tab.page, {"slider": [], "next case": [], "its models asked": []}
    tab.enter(f"{PAGES['Explore']}?kind=t2i")
    tab.settle()
    page.locator("button.card").first.click()
    asked = f"clock.asked({PATIENCE})"
    page.evaluate(asked)
    tab.settle()
    for _ in range(CHANGES):
        page.locator("input.slider").focus()
        took["slider"].append(tab.press(lambda: page.keyboard.press("ArrowRight"), "clock.drawn()"))
        next_case = page.locator(".st-key-case_next button")
        took["next case"].append(tab.press(next_case.click))
        ended = page.evaluate(asked)
        pressed = page.evaluate("clock.pressed")
        took["its models asked"].append(Took(ended - pressed, 0))
        tab.settle()
    return took


@contextlib.contextmanager
def tab_of(browser: Any, server: psutil.Process) -> Iterator[Tab]:
    """Open a tab for timing, and close it at the end."""
    page = browser.new_page()
    page.set_default_timeout(PRESSES)
    yield Tab(page, server)
    page.close()


def line(name: str, took: list[Took], goal: int | None = None) -> None:
    """Print the median and the slowest of several waits."""
    median, longest = middle(took), max(each.clock for each in took)
    said = f"{milliseconds(median.clock):>9}{milliseconds(longest):>9}{median.cpu:7.0f}"
    print(f"{name:24}{said}{goal or '':>7}", flush=True)
    presses[name.strip()] = median.clock
    if goal and median.clock > goal:
        late.append(f"{name}: {milliseconds(median.clock)} for {goal:,}")


def filled(root: Path, n_cases: int, n_pictures: int, size: tuple[int, int]) -> Path:
    """Return the cache with the store from `benchmarks/wall.py` in a folder, after filling it if it is empty."""
    if not (root / "question-set").exists():
        key = fill(root, n_cases, n_pictures)
        photographs(root / "data", n_pictures, size, "")
        (root / "question-set").write_text(key)
    if not (root / "thumbnails").exists():
        leave_thumbnails(root, n_pictures)
        (root / "thumbnails").touch()
    return root / "cache"


def leave_thumbnails(root: Path, n_pictures: int) -> None:
    """Write digests and thumbnails for all pictures, as a run does. Identical drawings are scaled down only once."""
    from vlprobe.scoring import thumbnails
    from vlprobe.storage import thumbnails as stored
    from vlprobe.types import Picture

    cache = root / "cache"
    paths = [root / "data" / f"{number:05}.jpg" for number in range(n_pictures)]
    drawn: list[bytes] = []
    for number, digest in enumerate(thumbnails.digests_of(cache, paths)):
        if number < N_DRAWN:
            path = paths[number]
            drawn.append(thumbnails.make(Picture(path), (path.read_bytes(),)))
        stored.write(cache, digest, drawn[number % N_DRAWN])


def extras(browser: Any, empty: Path, chosen: Sequence[str]) -> None:
    """Time the interactions that are measured only on the bundled results."""
    with serving(empty, PORT) as server, tab_of(browser, server) as tab:
        print(f"Home, chromium's cache empty, a fresh server: {tab.enter('').text} ms")
        tab.settle()
        print(f"{'':24}{'median':>9}{'slowest':>9}{'cpu':>7}{'goal':>7}")
        if "facets" in chosen:
            line("facets", facets(tab), FACETS_GOAL)
        if "mixtures" in chosen:
            for name, took in mixtures(tab).items():
                line(name, took, SLIDER_GOAL if name != "its models asked" else None)


def main() -> None:
    """Print a table for each store."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server ends, too
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a quick try: 15,000 cases a model")
    parser.add_argument("--kept", type=Path, help="a folder to fill once and keep")
    parts = [*PAGES, "facets", "mixtures"]
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, metavar="PAGE")
    stores = ["shipped", "big", "large"]
    parser.add_argument("--stores", nargs="+", choices=stores, default=stores)
    given = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("There is no chromium here: apt-get install chromium")
    titles = [title for title in PAGES if title in given.only]
    n_cases, n_pictures = SMALL if given.small else BIG
    with (
        tempfile.TemporaryDirectory(prefix="vlprobe-clock-") as folder,
        sync_playwright() as driver,
    ):
        kept = given.kept or Path(folder) / "kept"
        empty = Path(folder) / "empty"
        browser = driver.chromium.launch_persistent_context(
            f"{folder}/profile",
            executable_path=chromium,
            args=FLAGS,
            viewport={"width": 1280, "height": 900},
        )
        browser.add_init_script(WATCH)
        extras(browser, empty, given.only if "shipped" in given.stores else ())
        if "shipped" in given.stores:
            print("\nThe results that come with vlprobe, over an empty cache")
            pages(browser, empty, titles)
        if "big" in given.stores:
            cache = filled(kept, n_cases, n_pictures, PHOTOGRAPH)
            print(f"\n8 models x {n_cases:,} cases, {n_pictures:,} pictures")
            pages(browser, cache, titles)
        if "large" in given.stores:
            cache = filled(kept / "large", *LARGE, LARGE_PHOTOGRAPH)
            print(f"\n8 models x {LARGE[0]:,} cases, {LARGE[1]} pictures of 24 megapixels")
            pages(browser, cache, [title for title in titles if title in LARGE_PAGES])
        browser.close()
    print("\nAbove its goal: " + ("; ".join(late) or "nothing"))
    if presses:
        median = milliseconds(statistics.median(presses.values()))
        print(f"Median of {len(presses)} presses: {median} ms")


if __name__ == "__main__":
    main()
