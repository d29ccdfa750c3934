"""Display results in a notebook, with the same HTML as on the dashboard pages and an included style
sheet.

All outside text is escaped. The display loads no external content and runs no code.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import htpy

from vlprobe.case import html
from vlprobe.case.card import CaseCard, verdict_word
from vlprobe.case.json import picture_names
from vlprobe.render.html.elements import embed
from vlprobe.render.html.style import SHEET
from vlprobe.render.sentences import LONGEST
from vlprobe.render.words import model_name
from vlprobe.scoring import thumbnails
from vlprobe.types import Picture
from vlprobe.views.wall import WallCard

STYLE = f"""@scope (.vp-nb) {{
{SHEET.replace(":root {", ":scope {")}
:scope {{ color-scheme: light; color: var(--vp-ink); font-family: system-ui, sans-serif; line-height: 1.4; }}
h4 {{ margin: 1rem 0 .4rem; font-size: 1.15rem; }}
p {{ margin: 0 0 .3rem; overflow-wrap: anywhere; }}
table {{ color: inherit; }}
.cards {{ display: grid; gap: .8rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 12.5rem), 1fr)); }}
.cards > div {{ border: 1px solid var(--vp-line); border-radius: .5rem; padding: .6rem; min-width: 0; }}
.cards img {{ width: 100%; aspect-ratio: 4 / 3; object-fit: contain; background: var(--vp-mat); margin: 0 0 .4rem; }}
.shots {{ display: flex; gap: .3rem; }} .shots > * {{ flex: 1; min-width: 0; margin: 0; }}
.is-wrong img {{ outline: 3px dashed var(--vp-lie); outline-offset: -3px; }}
.is-right img {{ outline: 3px solid var(--vp-true); outline-offset: -3px; }}
.vp-captions p {{ grid-template-columns: 1fr; font-size: 1rem; }}
}}
[data-jp-theme-light="false"] .vp-nb, .vscode-dark .vp-nb, [theme="dark"] .vp-nb {{ color-scheme: dark; }}
"""


def frame(*nodes: htpy.Node) -> str:
    """Join HTML nodes and add their style sheet, for use in `_repr_html_`."""
    return "".join(htpy.div(".vp-nb")[htpy.style[embed(STYLE)], *nodes])


def heading(text: str, below: str = "") -> htpy.Node:
    """Return a heading with an optional gray line of text below it."""
    return [htpy.h4[text], htpy.p(".vp-quiet")[below] if below else None]


def grid(cards: Iterable[htpy.Node]) -> htpy.Element:
    """Arrange cards side by side, as many per row as fit."""
    return htpy.div(".cards")[(htpy.div[card] for card in cards)]


def case_grid(cards: Sequence[CaseCard], root: Path, models: Sequence[str] = ()) -> htpy.Element:
    """Arrange cases side by side, as `case_card` returns them, with thumbnails from the cache in the folder `root`."""
    sources = thumbnails.addresses(root, [name for card in cards for name in picture_names(card)])
    return grid(case_card(card, sources, models) for card in cards)


def case_card(
    card: CaseCard, sources: Mapping[str, str], models: Sequence[str] = ()
) -> list[htpy.Node]:
    """Return a case as HTML: its pictures, its texts with their roles, and the models that it fooled.

    If `models` are given, each one's margin is shown instead of the fooled models.
    """

    def source(name: str) -> str:
        return sources.get(name, "")

    return [
        html.shots(card, source, missing),
        html.captions(card.texts, LONGEST),
        # A notebook stores every copy of a picture: strips would repeat those above, 10 kB each.
        None if card.has_large_pictures else html.strips(card.strips(), source),
        htpy.p(".vp-quiet")[_margins(card.case, models) if models else _verdict(card)],
    ]


def missing(name: str) -> str:
    """Return the text to show instead of a picture that cannot be shown."""
    return f"No picture here: {Picture.from_name(name).path.name}"


def _margins(card: WallCard, models: Sequence[str]) -> str:
    by_model = {verdict.model: verdict for verdict in card.verdicts}
    return "; ".join(
        f"{model_name(model)}: {verdict_word(by_model[model])}"
        + (f", {by_model[model].margin:+.3f}" if by_model[model].is_scored else "")
        for model in models
    )


def _verdict(card: CaseCard) -> str:
    margin = "-" if math.isnan(card.case.margin) else f"{card.case.margin:+.3f}"
    has_margin = card.case.is_scored and not card.kind.is_movement
    return f"{card.verdict_text}; margin {margin}" if has_margin else card.verdict_text
