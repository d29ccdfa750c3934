"""The frame of a self-contained web page: its style is in it, it fetches nothing and runs
nothing.

The first line of its head forbids both, so that not even a mistake in what follows could.
"""

import htpy

from vlprobe import __version__
from vlprobe.render.html.embed import embed
from vlprobe.render.html.style import STYLE

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
PAPER = """<style>
:root { color-scheme: light dark; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1rem 4rem; line-height: 1.5;
  font-family: system-ui, sans-serif; background: light-dark(#ffffff, #12161d); color: light-dark(#1c2330, #e6e9ef); }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; margin: 2.5rem 0 .6rem; border-bottom: 1px solid var(--vp-line); padding-bottom: .3rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .5rem; }
pre { background: var(--vp-mat); padding: .7rem .9rem; border-radius: .4rem; white-space: pre-wrap;
  overflow-wrap: anywhere; font-size: .85rem; }
figure { margin: 0; min-width: 0; flex: 1 1 0; }
.vp-grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); }
.vp-wide { grid-template-columns: repeat(auto-fill, minmax(min(100%, 23rem), 1fr)); }
.vp-thirds { grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
.vp-grid > article { border: 1px solid var(--vp-line); border-radius: .5rem; padding: .8rem; min-width: 0;
  break-inside: avoid; }
.vp-one-case { max-width: 44rem; margin-top: .8rem; }
.vp-shots { display: flex; gap: .6rem; margin-bottom: .6rem; }
.vp-shots img { width: 100%; aspect-ratio: 4 / 3; object-fit: contain; background: var(--vp-mat); display: block; }
.vp-one-case .vp-shots img { aspect-ratio: auto; max-height: 70vh; }
figure.vp-wrong img { outline: 3px solid light-dark(#a61b29, #ff9d9d); outline-offset: -3px; }
.vp-facts dt { grid-column: 1; }
.vp-figure { width: 100%; height: auto; max-width: 46rem; display: block; margin: .5rem 0 1rem; }
.vp-figure text { fill: currentColor; font: 13px system-ui, sans-serif; }
.vp-figures { display: grid; gap: 0 2rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 32rem), 1fr)); }
.vp-figure .strong { font-weight: 600; }
.vp-figure .quiet { fill: var(--vp-quiet); }
.vp-figure .rule { stroke: var(--vp-line); }
.vp-figure .guess { stroke: #8a94a3; stroke-dasharray: 2 4; stroke-width: 1.5; }
@media (max-width: 30rem) { .vp-facts { grid-template-columns: 1fr; } .vp-facts dd { margin-bottom: .4rem; } }
@media print { body { max-width: none; padding: 0; } .vp-scroll { overflow: visible; } }
</style>"""


def page(title: str, body: htpy.Node) -> str:
    """A whole page.

    Args:
        title: Plain text.
        body: Nodes below the heading.
    """
    footer = f"Made by vlprobe {__version__}. This page fetches and runs nothing."
    document = htpy.html(lang="en")[
        htpy.head[
            htpy.meta(charset="utf-8"),
            htpy.meta(http_equiv="Content-Security-Policy", content=POLICY),
            htpy.meta(name="viewport", content="width=device-width, initial-scale=1"),
            htpy.title[title],
            embed(STYLE),
            embed(PAPER),
        ],
        htpy.body[
            htpy.main[htpy.h1[title], body],
            htpy.footer[htpy.p(".vp-quiet")[footer]],
        ],
    ]
    return "".join(document.iter_chunks())


def remark(text: str) -> htpy.Element:
    """A remark in smaller, greyer letters."""
    return htpy.p(".vp-quiet.vp-small")[text]


def commands(lines: str) -> list[htpy.Node]:
    """Commands for a terminal, on lines of their own in the source of the page, too."""
    return ["\n", htpy.pre[lines], "\n"]


def table(name: str, headings: list[str], rows: list[htpy.Element]) -> htpy.Element:
    """A table with a name for those who do not see it; narrow screens scroll it."""
    head = htpy.tr[(htpy.th(scope="col")[heading] for heading in headings)]
    return htpy.div(".vp-scroll", role="region", tabindex="0", aria_label=name)[
        htpy.table(".vp-table")[htpy.thead[head], htpy.tbody[rows]]
    ]
