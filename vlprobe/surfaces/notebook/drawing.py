"""The display of results in a notebook: self-contained HTML, with its style in it. All outside text is escaped; nothing
is fetched and nothing runs.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import htpy

from vlprobe.case import html
from vlprobe.case.card import CaseCard, verdict_word
from vlprobe.render.html.elements import embed
from vlprobe.render.sentences import LONGEST, shorten
from vlprobe.render.words import model_name
from vlprobe.types import Picture
from vlprobe.views.wall import WallCard

STYLE = """
.vp-nb { color-scheme: light; color: light-dark(#1c2330, #e6e9ef); font-family: system-ui, sans-serif; line-height: 1.4;
  --true: light-dark(#00696b, #6fd0cf); --true-tint: light-dark(#dcf1f0, #12393b);
  --lie: light-dark(#b1360b, #ffa883); --lie-tint: light-dark(#fde7dc, #4a2314);
  --quiet: light-dark(#566173, #a7b1c0); --line: light-dark(#dde2e9, #2f3844); --mat: light-dark(#eef1f5, #0c0f14); }
[data-jp-theme-light="false"] .vp-nb, .vscode-dark .vp-nb, [theme="dark"] .vp-nb { color-scheme: dark; }
.vp-nb p { margin: 0 0 .3rem; overflow-wrap: anywhere; } .vp-nb h4 { margin: 1rem 0 .4rem; font-size: 1.15rem; }
.vp-nb .quiet, .vp-nb .vp-quiet { color: var(--quiet); font-size: .9em; }
.vp-nb .vp-quiet a { color: inherit; }
.vp-nb .cards { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 12.5rem), 1fr)); }
.vp-nb .cards > div { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem; min-width: 0; }
.vp-nb .shots { display: flex; gap: .3rem; } .vp-nb .shots > * { flex: 1; min-width: 0; margin: 0; }
.vp-nb .vp-strip { display: grid; grid-template-columns: repeat(5, 1fr); gap: 2px; }
.vp-nb img { width: 100%; aspect-ratio: 4 / 3; object-fit: contain; background: var(--mat); margin: 0 0 .4rem; }
.vp-nb .is-wrong img { outline: 3px dashed var(--lie); outline-offset: -3px; }
.vp-nb .is-right img, .vp-nb img.vp-right { outline: 3px solid var(--true); outline-offset: -3px; }
.vp-nb .vp-missing { aspect-ratio: 4 / 3; display: grid; place-items: center; background: var(--mat); padding: .5rem; }
.vp-nb .vp-role { display: block; font-size: .85em; font-weight: 600; color: var(--quiet); }
.vp-nb .vp-role-true, .vp-nb .vp-role-same { color: var(--true); } .vp-nb .vp-role-lie { color: var(--lie); }
.vp-nb .vp-t, .vp-nb .vp-l, .vp-nb .vp-changed { padding: 0 .25em; border-radius: .2em; font-weight: 600; }
.vp-nb .vp-changed { background: var(--mat); }
.vp-nb .vp-t { color: var(--true); background: var(--true-tint); }
.vp-nb .vp-l { color: var(--lie); background: var(--lie-tint); text-decoration: underline wavy 1.5px;
  text-underline-offset: .2em; }
.vp-nb .sign { font-weight: 700; } .vp-nb .sign.t { color: var(--true); } .vp-nb .sign.l { color: var(--lie); }
.vp-nb .scroll { overflow-x: auto; max-width: 100%; }
.vp-nb table { border-collapse: collapse; margin: .6rem 0 0; font-size: .92em; color: inherit; }
.vp-nb th, .vp-nb td { text-align: left; padding: .3rem 1rem .3rem 0; border-top: 1px solid var(--line); }
.vp-nb td { font-variant-numeric: tabular-nums; }
"""
MOST_ROWS = 40


def frame(*nodes: htpy.Node) -> str:
    """The parts with their style, as `_repr_html_` returns them."""
    return "".join(htpy.div(".vp-nb")[htpy.style[embed(STYLE)], *nodes])


def heading(text: str, below: str = "") -> htpy.Node:
    """A sentence, and a quiet one below it."""
    return [htpy.h4[text], htpy.p(".quiet")[below] if below else None]


def picture(source: str, alt: str) -> htpy.Node:
    """A picture by its data address; its words where there is none."""
    if not source:
        return htpy.div(".vp-missing.quiet")[f"No picture here: {shorten(alt, 120)}"]
    return htpy.img(src=source, alt=shorten(alt, 160))


def true(text: str) -> htpy.Element:
    """A text that is true, with a tick."""
    return htpy.p[htpy.span(".sign.t")["✓ "], shorten(text)]


def lie(text: str) -> htpy.Element:
    """A text that is not, with a cross."""
    return htpy.p[htpy.span(".sign.l")["✗ "], shorten(text)]


def grid(cards: Iterable[htpy.Node]) -> htpy.Element:
    """Cards side by side, as many as fit."""
    return htpy.div(".cards")[(htpy.div[card] for card in cards)]


def case_card(
    card: CaseCard, sources: Mapping[str, str], models: Sequence[str] = ()
) -> list[htpy.Node]:
    """A case: its pictures, its texts with their roles, and the models that they fooled; with `models`, the margin of
    each of these.
    """

    def source(name: str) -> str:
        return sources.get(name, "")

    return [
        html.shots(card, source, _absence),
        html.captions(card.texts, LONGEST),
        # A notebook keeps a copy of a picture for each place: rows repeat those above, at 10 kB each.
        None if card.has_large_pictures else html.strips(card.strips(), source),
        htpy.p(".quiet")[_margins(card.case, models) if models else _verdict(card)],
    ]


def _absence(name: str) -> str:
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


def edit_line(caption: str, text: str, source: str, target: str, is_lie: bool) -> htpy.Element:
    """An edited caption with the inserted words marked."""
    before, put_in, after = text.partition(target) if target else (text, "", "")
    marked: htpy.Node = [
        before,
        htpy.span(".vp-l" if is_lie else ".quiet")[put_in] if put_in else None,
        after,
    ]
    was = f"  instead of {source}" if source and put_in else ""
    sign = htpy.span(".sign.l")["✗ "] if is_lie else "↻ "
    return htpy.p[sign, marked, htpy.span(".quiet")[was]]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> htpy.Element:
    """A table of texts; of very many rows the first."""
    more = len(rows) - MOST_ROWS
    return htpy.div(".scroll")[
        htpy.table[
            htpy.thead[htpy.tr[(htpy.th(scope="col")[head] for head in heads)]],
            htpy.tbody[
                (
                    htpy.tr[htpy.th(scope="row")[row[0]], (htpy.td[cell] for cell in row[1:])]
                    for row in rows[:MOST_ROWS]
                )
            ],
        ],
        htpy.p(".quiet")[f"and {more:,} rows more"] if more > 0 else None,
    ]


def names(models: Iterable[str], renamed: Callable[[str], str] = model_name) -> list[str]:
    """Return the names of models in a heading of a table."""
    return [renamed(model) for model in models]
