"""The dashboard's pages, their addresses, and the navigation bar at the top.

To add a page, create a file in `pages/` and an entry in ROW or, if another page links to it, in BELOW.
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import unquote, urlencode, urlsplit

import streamlit as st

from vlprobe.errors import NotFound, printable
from vlprobe.render.html.elements import tag
from vlprobe.storage import access

# No groups, because group headings inside the menu break the list structure for screen readers
ROW = {
    "home": "Home",
    "explore": "Explore",
    "compare": "Compare",
    "tradeoff": "Trade-off",
    "try": "Try it",
    "present": "Present",
    "run": "Run",
    "lab": "Lab",
}
# Pages that Lab links to, with the title used for the link, the way back and the browser tab
BELOW = {
    "models": "Model checks",
    "breakdown": "Breakdown",
    "repair": "Repair",
    "retrieval": "Decoys in search (RoCOCO)",
    "pairs": "Near-identical pairs (EqBen)",
    "triplets": "Paraphrase or lookalike (VISLA)",
    "rankings": "Rephrased search (PRSM)",
    "series": "Video changes and human order (EqBen)",
    "published": "Printed numbers",
    "suspects": "Suspect labels",
    "docs": "Documentation",
}
# URL parameters of the former first page
OVERVIEW_PARAMETERS = ("unit", "average", "up", "printed")
MOVED = {  # former addresses
    "overview": "tradeoff",
    "failures": "explore",
    "play": "present",
    "playground": "try",
    "verdicts": "lab",
}
# URL parameters of Try it; a link to the former Play page with one of these leads there
TRY_PARAMETERS = {
    *("text", "caption", "item", "models", "from", "draw", "for"),
    *("lam", "edit", "word", "show", "k"),
}
HOME = "home"
# The name that Streamlit reserves for the default page, so that /home leads to it too
ROOT = "start"
NAMED = 80  # maximum characters of an unknown address in a message
PAGE_SIZE = 60  # cards per page on the wall
OLD_PAGE_SIZE = 12  # cards per page on the former list of failures
# Colors of the logo: two frames, one true and one wrong
LIGHT = {"true": "#00696b", "lie": "#b1360b"}
DARK = {"true": "#6fd0cf", "lie": "#ffa883"}
LOGO = """<svg xmlns="http://www.w3.org/2000/svg" width="26" height="22" viewBox="0 0 26 22">
<rect x="1.2" y="1.2" width="15" height="15" rx="3.5" fill="none" stroke="{true}" stroke-width="2.4"/>
<rect x="9.8" y="5.8" width="15" height="15" rx="3.5" fill="none" stroke="{lie}" stroke-width="2.4"
 stroke-dasharray="3.6 2.6"/></svg>"""


def page_file(name: str) -> str:
    """Return the file for a page, as links and redirects need it. A former address gives the file that replaced it."""
    return f"pages/{MOVED.get(name, name)}.py"


def address(name: str, query: Mapping[str, object] = MappingProxyType({})) -> str:
    """Return the relative URL of a page with URL parameters. The path of the first page is empty."""
    name = MOVED.get(name, name)
    path = "" if name == HOME else name
    return f"{path}?{urlencode(query, doseq=True)}" if query else path


def current_page() -> st.Page:
    """Draw the navigation bar and return the page for the URL, or a "not found" page. Read-only demos omit Run."""
    pages = _pages(access.read_only())
    name = _current_name()
    if name and name not in {ROOT, *(page.url_path for page in pages)}:
        say = functools.partial(_say_unknown, name)
        pages.append(st.Page(say, title="Page not found", url_path=name, visibility="hidden"))
    return st.navigation(pages, position="top")


def _current_name() -> str:
    """Return the last part of the URL's path: the name of a page, or "" for the first one."""
    return unquote(urlsplit(st.context.url or "").path.rstrip("/").rpartition("/")[2])


def is_current(name: str) -> bool:
    """Return whether the URL, if there is one, is that of a page. A former address counts as the page that replaced
    it.
    """
    name = MOVED.get(name, name)
    return bool(st.context.url) and _current_name() in (("", ROOT) if name == HOME else (name,))


def _say_unknown(name: str) -> None:
    """Draw a message that no page has the given address, with a suggestion of a similar name."""
    st.html(tag("h1", "This page does not exist.", class_="vp-nothing"))
    st.html(tag("p", str(NotFound("page", printable(name[:NAMED]), [*ROW, *BELOW]))))
    st.page_link(page_file(HOME), label="Home", icon=":material/home:")


def _pages(is_read_only: bool) -> list[st.Page]:
    """Return all pages. The navigation bar hides former addresses and pages that Lab links to."""
    in_row = {name: title for name, title in ROW.items() if name != "run" or not is_read_only}
    pages = [
        st.Page(
            page_file(name),
            title=title,
            default=name == HOME,
            url_path=ROOT if name == HOME else name,
            visibility="visible" if name in in_row else "hidden",
        )
        for name, title in {**ROW, **BELOW}.items()
    ]
    titles = {**ROW, **BELOW}
    # Each former address has a file: Streamlit looks for it when the first page of a server opens
    pages += [
        st.Page(f"pages/{old}.py", title=titles[name], url_path=old, visibility="hidden")
        for old, name in {**MOVED, HOME: HOME}.items()
    ]
    return pages


def lead_on(old: str) -> None:
    """Redirect from a former address to the page that replaced it, with all parameters from the link."""
    query = {parameter: st.query_params.get_all(parameter) for parameter in st.query_params}
    if old == "failures" and query:  # the wall has more cards per page
        page = st.query_params.get("page", "1")
        number = int(page) if page.isdecimal() and len(page) < 9 else 1
        n_before = OLD_PAGE_SIZE * max(number - 1, 0)
        query |= {"cards": ["every"], "page": [str(1 + n_before // PAGE_SIZE)]}
    elif old == "overview":
        query |= {"open": ["numbers"]}
    elif old == "play":
        if query.pop("game", None) == ["playground"] or query.keys() & TRY_PARAMETERS:
            old = "playground"
        else:
            query |= {"tab": ["quiz"]}
    st.switch_page(page_file(old), query_params=query)
