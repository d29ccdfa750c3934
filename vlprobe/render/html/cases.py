"""What a case of each kind is, as HTML: its pictures, its texts, and the comparisons that a model should win.

A model's `top` is what it put first: a text (RoCOCO), a mixed picture's name, or lists of names (PRSM).
"""

import difflib
import html
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vlprobe.render.html.elements import marked, tag
from vlprobe.render.words import value_label
from vlprobe.types.presentation import KindPresentation, Presentation
from vlprobe.views.changes import in_step

BEFORE = "Reworded, before it was made wrong"
HIGHER = ' <span class="vp-higher">▲ scores higher</span>'
HIGHEST = ' <span class="vp-higher">▲ highest</span>'
NOT_FIRST = "Ranked 1st, should not win"


@dataclass(frozen=True)
class Shot:
    """A picture of a case, what to say above it, and whether it is framed as a wrong winner."""

    name: str
    label: str = ""
    wrong: bool = False


def shots(row: object, kind: KindPresentation, mine: Mapping) -> list[Shot]:
    """The pictures that stand above the texts of a case."""
    if kind.body == "picture_search":
        wrong = bool(mine["top_altered"])
        own = (
            json.loads(mine["top"])["path"] == row.images[0]
            if mine["top"].startswith("{")
            else False
        )
        source = "made of the right one" if own else "made of another picture"
        told = NOT_FIRST if wrong else "Best of the mixed"
        return [
            Shot(row.images[0], f"The right picture: {_rank_text(mine)}"),
            Shot(mine["top"], f"{told} ({source})", wrong),
        ]
    if kind.body == "pair":
        return [Shot(name, f"Picture {place}") for place, name in enumerate(row.images, 1)]
    if kind.body == "rankings":
        return []
    return [Shot(name) for name in row.images]


def _rank_text(mine: Mapping) -> str:
    after, before = (rank(mine, name) for name in ("rank", "rank_clean"))
    return f"rank {after}" if after == before else f"rank {after}; in the clean gallery {before}"


def rank(mine: Mapping, name: str) -> str:
    """The rank; one that an approximate search does not know is beyond all that it looked up."""
    return (
        f"more than {int(mine['looked_up']):,}" if _unknown(mine[name]) else f"{int(mine[name]):,}"
    )


def body(
    row: object,
    presentation: Presentation,
    mine: Mapping,
    picture: Callable[[str], str],
    everything: bool,
) -> list[str]:
    """The texts of a case and what the model made of them, as HTML.

    Args:
        row: The case.
        presentation: Of its probe.
        mine: What the model said to it.
        picture: Gives the `src` of a small picture by its name.
        everything: All there is, for the details; else what a card has room for.
    """
    kind = presentation.kind(row.kind)
    bodies = {
        "caption_search": lambda: _searched(row, mine, everything),
        "picture_search": lambda: [_text("Asked for", html.escape(row.texts[0]))],
        "pair": lambda: _pair(row, mine["scores"]),
        "triplet": lambda: _triplet(row, mine),
        "rankings": lambda: _rankings(row, mine, picture, everything),
        "edit": lambda: _captions(row, presentation, mine["scores"], everything),
        "captions": lambda: _captions(row, presentation, mine["scores"], everything),
    }
    return bodies[kind.body]()


def _unknown(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _text(label: str, marked: str, more: str = "", css: str = "") -> str:
    given = f"vp-caption {css}".strip()
    return f'<p class="{given}"><small>{html.escape(label)}{more}</small><br>{marked}</p>'


def _searched(row: object, mine: Mapping, everything: bool) -> list[str]:
    """RoCOCO, picture to caption: what came first, and what it was made from where that is one of the case's own."""
    own = [text for text, role in zip(row.texts, row.roles, strict=True) if role != "different"]
    altered = [text for text, role in zip(row.texts, row.roles, strict=True) if role == "different"]
    wrong, top = bool(mine["top_altered"]), mine["top"]
    label = NOT_FIRST if wrong else "Best of the altered captions"
    found = [_text(f"Best of its {len(own)} true captions", _rank_text(mine).capitalize())]
    if top in altered:
        source = max(
            own, key=lambda text: difflib.SequenceMatcher(None, text.split(), top.split()).ratio()
        )
        before, after = diff(source, top)
        found += [
            _text("True caption", before),
            _text(label, after, css="vp-wrong" if wrong else ""),
        ]
    else:
        found += [_text("One of them", html.escape(own[0]))]
        found += [
            _text(
                f"{label}, made of another picture's",
                html.escape(top),
                css="vp-wrong" if wrong else "",
            )
        ]
        source = own[0]
    if everything:
        found += [_text("True caption", html.escape(text)) for text in own if text != source]
        found += [
            _text("Altered, was in the gallery", html.escape(text))
            for text in altered
            if text != top
        ]
    return found


def _pair(row: object, scores: Sequence[float]) -> list[str]:
    """EqBen: the 2 x 2 scores, and beside each row and under each column whether its comparison held."""
    before, after = diff(*row.texts)
    s11, s12, s21, s22 = (float(score) for score in scores)
    rows = [("Picture 1", s11, s12, s11 - s12), ("Picture 2", s21, s22, s22 - s21)]
    head = "".join(
        tag("th", text, scope="col") for text in ("Scores", "Caption 1", "Caption 2", "own caption")
    )
    lines = [
        f"<tr>{tag('th', name, scope='row')}"
        f"{tag('td', f'{one:.3f}', **_own(place == 0))}{tag('td', f'{two:.3f}', **_own(place == 1))}{_held(gap)}</tr>"
        for place, (name, one, two, gap) in enumerate(rows)
    ]
    lines.append(
        f"<tr>{tag('th', 'own picture', scope='row')}{_held(s11 - s21)}{_held(s22 - s12)}<td></td></tr>"
    )
    table = f'<table class="vp-scores vp-matrix"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    return [
        _text("Caption 1, true of picture 1", before),
        _text("Caption 2, true of picture 2", after),
        table,
    ]


def _own(diagonal: bool) -> dict[str, str]:
    return {"class_": "vp-own"} if diagonal else {}


def _held(gap: float) -> str:
    """Whether what belongs together scores higher."""
    icon, word, css = (
        ("✓", "held", "held")
        if gap > 0
        else ("✗", "failed", "fooled")
        if gap < 0
        else ("=", "tied", "tied")
    )
    return tag("td", f"{icon} {word}", class_=f"vp-{css}")


def _triplet(row: object, mine: Mapping) -> list[str]:
    """VISLA, texts alone: three captions and their three cosines."""
    near, far, wrong = row.texts
    names = ("P1, true", "P2, means the same", "N, does not")
    found = [_text(names[0], html.escape(near)), _text(names[1], html.escape(far))]
    found.append(_text(names[2], diff(near, wrong)[1]))
    one, two, three = (float(mine["text_scores"][place]) for place in range(3))
    shared = [mine.get(f"overlap_{pair}", math.nan) for pair in ("01", "02", "12")]
    head = "".join(
        tag("th", text, scope="col") for text in ("Scores", "cosine", "same words", "is lower")
    )
    lines = []
    for name, value, words, gap in zip(
        ("P1, P2", "P1, N", "P2, N"),
        (one, two, three),
        shared,
        (None, one - two, one - three),
        strict=True,
    ):
        words = "-" if _unknown(words) else f"{100 * words:.0f} %"
        mark = "<td></td>" if gap is None else _held(gap)
        own = {"class_": "vp-own"} if gap is None else {}
        cells = f"{tag('td', f'{value:.3f}', **own)}{tag('td', words)}{mark}"
        lines.append(f"<tr>{tag('th', name, scope='row')}{cells}</tr>")
    found.append(
        f'<table class="vp-scores vp-matrix"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    )
    return found


def _rankings(
    row: object, mine: Mapping, picture: Callable[[str], str], everything: bool
) -> list[str]:
    """PRSM: what came first for each wording; pictures that the first wording does not have are framed."""
    tops = json.loads(mine["top"])
    least = min(range(1, len(tops)), key=lambda place: len(set(tops[0]) & set(tops[place])))
    places = range(len(tops)) if everything else (0, least)
    own = row.images[0] if row.images else ""
    found = []
    for place in places:
        label = (
            "Query" if place == 0 else "Reworded" if everything else "The wording that shares least"
        )
        kept = len(set(tops[0]) & set(tops[place]))
        more = "" if place == 0 else f" <span>· {kept} of {len(tops[0])} are the same</span>"
        found.append(_text(label, html.escape(row.texts[place]), more))
        pictures = []
        for rank, name in enumerate(tops[place], 1):
            new = place > 0 and name not in tops[0]
            told = f"Rank {rank}" + (
                ", the query's own picture" if name == own else ", new" if new else ""
            )
            css = "vp-right" if name == own else "vp-new" if new else ""
            pictures.append(
                f'<img src="{picture(name)}" alt="{told}" title="{told}" class="{css}">'
            )
        found.append(f'<div class="vp-strip">{"".join(pictures)}</div>')
    if len(places) < len(tops):
        found.append(
            tag("p", f"{len(tops) - 2} more wordings in the details.", class_="vp-quiet vp-small")
        )
    return found


def _captions(
    row: object, presentation: Presentation, scores: Sequence[float], everything: bool
) -> list[str]:
    """The original, then other texts with what was changed: one on a card of an edit, all of them in the details."""
    kind = presentation.kind(row.kind)
    edited = kind.body == "edit"
    shown = len(row.texts) if everything else 2 if edited else 4
    scored = list(scores[:2] if edited else scores) if aligned(row, scores) else []
    highest = max(scored, default=0.0) if len(set(scored)) > 1 else None
    found = []
    for place, (text, role) in enumerate(zip(row.texts[:shown], row.roles[:shown], strict=True)):
        label = presentation.role_labels[role]
        if place and edited:
            label = (
                f"{kind.edit_label}: {value_label(row.subtype).lower()}" if place == 1 else BEFORE
            )
        elif not edited and place < len(scored):
            label = f"{label} · {scored[place]:.3f}"
        chip = ""
        if place < len(scored) and scored[place] == highest:
            chip = HIGHER if len(scored) == 2 else HIGHEST
        against = row.texts[1] if len(row.texts) == 2 or edited else text
        marked = diff(text, against)[0] if place == 0 else diff(row.texts[0], text)[1]
        if role == "same" and not edited:
            marked = html.escape(text)
        found.append(_text(label, marked, chip))
    return found


def aligned(row: object, scores: Sequence[float]) -> bool:
    """Whether the scores are those of one picture with each text, in order."""
    return len(row.images) == 1 and len(scores) == len(row.texts)


def columns(row: object, kind: KindPresentation) -> dict[str, Callable[[Mapping], str]]:
    """What the table of models says beside the margin, by heading."""
    if kind.body == "edit" or (kind.body == "captions" and len(row.texts) == 2):
        return {
            "true": lambda answer: _score(answer, 0),
            kind.edit_column: lambda answer: _score(answer, 1),
        }
    if kind.body in ("caption_search", "picture_search"):
        return {
            "rank": lambda answer: rank(answer, "rank"),
            "clean": lambda answer: rank(answer, "rank_clean"),
        }
    if kind.body == "rankings":
        return {
            "top 10": lambda answer: _share(answer["local_10"]),
            "top 100": lambda answer: _share(answer["local_100"]),
            "corr.": lambda answer: (
                "-" if _unknown(answer["global"]) else f"{answer['global']:.3f}"
            ),
        }
    return {}


def _score(answer: Mapping, place: int) -> str:
    return f"{answer['scores'][place]:.3f}" if len(answer["scores"]) > place else "-"


def _share(value: float) -> str:
    return "-" if _unknown(value) else f"{100 * value:.0f} %"


def diff(before: str, after: str) -> tuple[str, str]:
    """Both captions as HTML: words that were taken out in <del>, words that were put in in <ins>. Case is no change."""
    shown: tuple[list[str], list[str]] = ([], [])
    for out, put, changed in in_step(before, after):
        shown[0].append(marked("del", out) if changed else html.escape(out))
        shown[1].append(marked("ins", put) if changed else html.escape(put))
    return "".join(shown[0]), "".join(shown[1])
