"""A talk as one self-contained web page: it runs the script of the slides and fetches nothing."""

import re
from collections.abc import Mapping

import htpy

from vlprobe.render.html.style import STYLE
from vlprobe.surfaces.page import self_contained

SHEET = """:root { color-scheme: light dark; }
body { margin: 0; background: var(--vp-bg); color: var(--vp-ink); padding: 24px; }
.root { font: 400 16px/1.5 "Source Sans 3", "Source Sans", system-ui, sans-serif; }
.show { font: inherit; }
"""
BEGIN = """
const values = JSON.parse(document.getElementById("values").textContent);
present({ data: values, parentElement: document.getElementById("slides") });
"""


def slides_file(values: Mapping[str, object], script: str, sheets: str, title: str) -> str:
    """The page.

    Args:
        values: The input of the component `slides`.
        script: The component's module, whose default export is called `present`.
        sheets: Its style sheets.
        title: Plain text.
    """
    colors = re.search(r":root \{.*?\n\}", STYLE, re.DOTALL)
    style = f"{colors[0] if colors else ''}\n{SHEET}{sheets}"
    nodes = htpy.main(id="slides")
    return self_contained(title, style, nodes, script + BEGIN, {**values, "whole": True})
