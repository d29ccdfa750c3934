"""The frame of a web page that stands alone: its style is in it, it fetches nothing and runs nothing.

The first line of its head forbids both, so that not even a mistake in what follows could.
"""

import html
from collections.abc import Sequence

from vlprobe import __version__
from vlprobe.render.html.elements import tag
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


def page(title: str, body: Sequence[str]) -> str:
    """A whole page.

    Args:
        title: Plain text.
        body: HTML, escaped where it is data.
    """
    made = tag("p", f"Made by vlprobe {__version__}. This page fetches and runs nothing.", class_="vp-quiet")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{tag('title', title)}\n{STYLE}\n{PAPER}\n</head>\n<body>\n<main>\n{tag('h1', title)}\n"
        + "\n".join(body)
        + f"\n</main>\n<footer>{made}</footer>\n</body>\n</html>\n"
    )
