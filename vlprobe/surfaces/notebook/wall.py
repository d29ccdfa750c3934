"""A notebook widget that shows failures as cards and returns the selected cases and tags as a
table.

The widget is the same as the wall of cards in the dashboard. The optional package `anywidget`
connects it to Python.
"""

import functools
import importlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from vlprobe.case import json
from vlprobe.case.card import CaseCard
from vlprobe.errors import MissingDependency
from vlprobe.render.html.style import SHEET
from vlprobe.scoring import thumbnails
from vlprobe.surfaces.site.pages import COMPONENTS, classic

SELECTED = """
:host { display: block; padding: 6px; color-scheme: light; font-family: system-ui, sans-serif; }
:host-context([data-jp-theme-light="false"]), :host-context(.vscode-dark) { color-scheme: dark; }
.card[aria-pressed="true"] .frames { outline: 3px solid var(--vp-press); outline-offset: 2px; }
"""


class CaseWall:
    """Failures as cards in a notebook. A click selects a case, and Enter in the text field tags all selected cases.

    Args:
        cases: The cases, in the form of `Failures.table`.
        cards: The same cases as cards, in the same order.
        root: Folder of the cache, which has the thumbnails.

    Attributes:
        widget: The widget, which any Jupyter front end can display. It has the traits `selected` and `tags`.
    """

    def __init__(self, cases: pd.DataFrame, cards: Sequence[CaseCard], root: Path) -> None:
        self._cases = cases
        names = [name for card in cards for name in json.picture_names(card)]
        sources = thumbnails.addresses(root, names)
        values = {
            "label": "Failures",
            "bare": True,
            "strip": False,
            "cards": [
                json.wall_card(card, lambda name: sources.get(name, ""), badge=False)
                for card in cards
            ],
        }
        self.widget = _widget_type()(wall=values)

    @property
    def table(self) -> pd.DataFrame:
        """The cases as in `Failures.table`, with additional columns `selected` (bool) and `tags` (tuple of str)."""
        ids, tags = self._cases["id"], self.widget.tags
        return self._cases.assign(
            selected=ids.isin(self.widget.selected),
            tags=[tuple(tags.get(case_id, ())) for case_id in ids],
        )

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget._repr_mimebundle_(**options)


@functools.cache  # a second class would carry a second copy of the script
def _widget_type() -> Any:
    if find_spec("anywidget") is None:
        raise MissingDependency("Failures.wall()", "anywidget", "'vlprobe[notebook]'")
    anywidget, traitlets = (importlib.import_module(name) for name in ("anywidget", "traitlets"))
    base, wall, rules, common = (
        (COMPONENTS / name).read_text(encoding="utf-8")
        for name in ("base.js", "wall.js", "wall.css", "base.css")
    )
    widget = Path(__file__).with_name("wall.js").read_text(encoding="utf-8")
    colors = SHEET.replace(":root {", ":host {", 1)
    traits = {
        "_esm": f"{base}\nconst wall = (() => {{\n{classic(wall)}\n}})();\n{widget}",
        "wall": traitlets.Dict().tag(sync=True),
        "sheet": traitlets.Unicode(f"{colors}\n{common}\n{rules}{SELECTED}").tag(sync=True),
        "selected": traitlets.List(traitlets.Unicode()).tag(sync=True),
        "tags": traitlets.Dict().tag(sync=True),
    }
    return type("WallWidget", (anywidget.AnyWidget,), traits)
