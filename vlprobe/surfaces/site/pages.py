"""The HTML pages of a site. They contain no data; their scripts fill them. The same pages can also be joined into one
file.

The content security policy of a page allows only scripts and style sheets from the same folder, and pictures inside
these scripts. The pages load no external content and send no forms.
"""

import base64
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import htpy
from plotly.offline import get_plotlyjs

import vlprobe
from vlprobe import __version__
from vlprobe.render.html.style import SHEET
from vlprobe.surfaces.page import CLOSED, document, json_text, self_contained

# Plotly sets style attributes. A report loads Plotly from a blob that its own script creates.
POLICY = f"{CLOSED}; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'"
PLOTLY = "plotly"
DASHBOARD = Path(vlprobe.__file__).parent / "dashboard"
COMPONENTS = DASHBOARD / "components"
HERE = Path(__file__).parent
EXPORT = re.compile(r"^export default\b", re.MULTILINE)
MODULE = re.compile(r"^\s*(import|export)\b", re.MULTILINE)
NUMBERS = "numbers"  # the page of a report that needs no script


@dataclass(frozen=True)
class Page:
    """A page of a site: its file name, its title, and the components on it."""

    name: str
    title: str
    components: tuple[str, ...]


PAGES = (
    Page("index", "Home", ("home", "figures")),
    Page("explore", "Explore", ("wall",)),
    Page("compare", "Compare", ("wall",)),
    Page("tradeoff", "Trade-off", ()),
    Page("present", "Present", ("slides",)),
)


def files(title: str, pages: Sequence[Page]) -> dict[str, str]:
    """Return the content of every page, script and style sheet in the site, except the data, by
    path.

    Args:
        title: Title of the site as plain text.
        pages: The pages of the site.
    """
    written = _scripts(pages) | {"site.css": style()}
    if _has_figures(pages):
        written[f"scripts/{PLOTLY}.js"] = get_plotlyjs()
    for page in pages:
        sources = ["scripts/base.js", "scripts/site.js", "data/index.js"]
        sources += [f"components/{name}.js" for name in page.components]
        body = htpy.body(data_page=page.name)[
            _header(title, {linked.name: linked.title for linked in pages}),
            htpy.main[
                htpy.noscript[
                    "This page needs JavaScript. All of its scripts are in the same folder."
                ]
            ],
            _footer(),
            (htpy.script(src=source) for source in sources),
        ]
        sheet = htpy.link(rel="stylesheet", href="site.css")
        written[f"{page.name}.html"] = document(f"{page.title} · {title}", POLICY, sheet, body)
    return written


def one_file(
    title: str,
    pages: Sequence[Page],
    tables: Mapping[str, Mapping[str, object] | Sequence[str]],
    numbers: htpy.Node,
    start: str = "",
) -> str:
    """Return all pages of a site as a single HTML file, with an additional page that needs no scripts and is used for
    printing.

    Args:
        title: Title of the file as plain text.
        pages: The pages of the site.
        tables: The data for the pages and pictures, by script name.
        numbers: Content of the additional page.
        start: Address of the view that opens first, such as "page=compare&kind=text"; "" for Home.
    """
    links = {page.name: page.title for page in pages} | {NUMBERS: "Numbers"}
    note = "This page needs JavaScript; without it, the page shows only the numbers."
    nodes = [
        _header("vlprobe", links, "#page={}"),
        htpy.main(data_start=start)[htpy.noscript[note]],
        htpy.section(".numbers")[numbers],
        _footer(),
    ]
    values = {name: packed(table) for name, table in tables.items()}
    if _has_figures(pages):
        values[PLOTLY] = _compressed(get_plotlyjs())
    code = "\n".join(_scripts(pages).values())
    return self_contained(title, style(), nodes, code, values, "blob:")


def _has_figures(pages: Sequence[Page]) -> bool:
    return bool({"compare", "tradeoff"} & {page.name for page in pages})


def _header(title: str, links: Mapping[str, str], address: str = "{}.html") -> htpy.Element:
    anchors = (
        htpy.a(data_page=name, href=address.format(name))[text] for name, text in links.items()
    )
    return htpy.header[
        htpy.a(".brand", href=address.format("index"))[title], htpy.nav(aria_label="Pages")[anchors]
    ]


def _footer() -> htpy.Element:
    made = f"Made by vlprobe {__version__}. These pages load no external content."
    return htpy.footer[htpy.p(".about.vp-quiet.small"), htpy.p(".vp-quiet.small")[made]]


def style() -> str:
    """Return the style sheet for pages in files, with the dashboard's colors, tables and cases, and the frame."""
    sheets = (DASHBOARD / "cases.css", DASHBOARD / "compare.css", HERE / "site.css")
    return "\n".join([SHEET, *(sheet.read_text(encoding="utf-8") for sheet in sheets)])


def _scripts(pages: Sequence[Page]) -> dict[str, str]:
    """Return every script, by path in the site. Each script comes after the scripts that it needs."""
    components = dict.fromkeys(name for page in pages for name in page.components)
    return {
        "scripts/base.js": _read("base.js"),
        "scripts/site.js": (HERE / "site.js").read_text(encoding="utf-8"),
        **{f"components/{name}.js": component(name) for name in components},
    }


def component(name: str) -> str:
    """Return a dashboard component as a classic script, because browsers do not load modules from local files.

    The script defines a function in `vlprobe.components`, which takes the same argument as the module's default export,
    and the component's style sheets.
    """
    key = json.dumps(name)
    script = classic(_read(f"{name}.js"))
    sheets = json_text([_read(f"{stem}.css") for stem in ("base", name)])
    return (
        f"window.vlprobe.components[{key}] = (() => {{\n{script}\n}})();\n"
        f'window.vlprobe.sheets[{key}] = {sheets}.join("\\n");\n'
    )


def _read(name: str) -> str:
    return (COMPONENTS / name).read_text(encoding="utf-8")


def classic(text: str) -> str:
    """Convert a script module to the body of a function that returns the module's default export.

    Raises ValueError if the module imports something, or exports anything else.

    >>> classic("export default function ({ data }) {}")
    '"use strict";\\nconst exported = function ({ data }) {}\\nreturn exported;'
    """
    body, n_exports = EXPORT.subn("const exported =", text)
    if n_exports != 1 or MODULE.search(body):
        raise ValueError("A component must have one default export, a function, and no imports.")
    return f'"use strict";\n{body}\nreturn exported;'


def table(name: str, values: Mapping[str, object] | Sequence[str]) -> str:
    """Return values as a classic script that assigns them: `vlprobe.tables[name] = ...`."""
    return f"window.vlprobe.tables[{json.dumps(name)}] = {json.dumps(packed(values))};\n"


def packed(values: Mapping[str, object] | Sequence[str]) -> str | Sequence[str]:
    """Return values as compressed JSON in base64 (a fifth of the size). Lists of pictures are returned unchanged."""
    if not isinstance(values, Mapping):
        return values
    return _compressed(json_text(values))


def _compressed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
