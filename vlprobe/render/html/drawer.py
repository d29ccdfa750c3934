"""One case in the drawer, as HTML: captions with the changed words marked, and a bar a model."""

import math
from collections.abc import Mapping

import htpy

from vlprobe.render import series
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.cases import ranked_words
from vlprobe.render.html.elements import mark
from vlprobe.render.report.embed import embed
from vlprobe.render.wall import count_word, stayed, top_lists
from vlprobe.render.words import NOT_RENAMED, model_name
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.changes import word_runs
from vlprobe.views.wall import ModelVerdict, WallCard

ICONS = {"true": "✓", "lie": "✕", "tie": "=", "quiet": "?", "same": "✓"}
LEAST_SIDE, MOST_SIDE = 0.12, 0.88  # where the zero line may stand, as a share of the bar
WINNERS = {  # what a model believes, by the body of the kind
    "pair": "the mistake",
    "picture_search": "the mixture",
    "triplet": "the lookalike",
    "series": "another place",
}
TITLE_AT = 0.5  # no further to the right, so that it fits
VERDICTS = {  # icon, word and style
    "fooled": ("lie", "fooled"),
    "held": ("true", "held"),
    "tied": ("tie", "cannot tell"),
    "unknown": ("quiet", "no answer"),
}


def captions(card: WallCard, kind: KindPresentation) -> str:
    """The texts of a case, the words marked that make one of them true and another one not."""
    rows = {
        "pair": _pair,
        "triplet": _triplet,
        "picture_search": _search,
        "rankings": _wordings,
        "series": _series,
    }.get(kind.body, _true_and_false)(card, kind)
    return str(htpy.div(".vp-captions")[rows])


def _row(style: str, label: str, text: htpy.Node, icon: str = "") -> htpy.Element:
    return htpy.p[
        htpy.span(f".vp-role.vp-role-{style}")[
            htpy.span(aria_hidden="true")[icon or ICONS[style]], f" {label}"
        ],
        htpy.span(".vp-told", dir="auto")[text],
    ]


def _marked(before: str, after: str, style: str, is_after: bool) -> list[htpy.Node]:
    """One of two texts with the words marked in which they differ."""
    return [
        htpy.span(f".vp-{style}")[words] if differs else words
        for words, differs in word_runs(before, after, is_after)
    ]


def _true_and_false(card: WallCard, kind: KindPresentation) -> list[htpy.Element]:
    """A true caption and the one that was made of it; all other captions of the case below."""
    styles = ("changed", "changed") if kind.is_movement else ("t", "l")
    texts = (card.true_text, card.wrong_text)
    if not card.wrong_text:
        return [_row("true", "True", card.true_text)]
    rows = [_row("true", "True", _marked(*texts, styles[0], False))]
    rows += [
        _row("same", "Also true", text)
        for text, role in zip(card.texts, card.roles, strict=True)
        if role == "same" and text not in texts and len(card.texts) <= 4
    ]
    if kind.is_movement:
        return [*rows, _row("quiet", "Reworded", _marked(*texts, styles[1], True), "↻")]
    style, label = believed(card)
    return [*rows, _row(style, label, _marked(*texts, styles[1], True))]


def believed(card: WallCard) -> tuple[str, str]:
    """Style and label of the text that should lose."""
    if math.isnan(card.margin):
        return "quiet", "False"
    if card.margin == 0:
        return "tie", "As high"
    return ("lie", "Believed") if card.margin < 0 else ("lie", "False")


def _pair(card: WallCard, kind: KindPresentation) -> list[htpy.Element]:
    texts = (card.texts[0], card.texts[1])
    return [
        _row("true", "Left", _marked(*texts, "changed", False)),
        _row("true", "Right", _marked(*texts, "changed", True)),
    ]


def _triplet(card: WallCard, kind: KindPresentation) -> list[htpy.Element]:
    text, same, wrong = card.texts[:3]
    style, label = believed(card)
    if label == "Believed":
        label = "Closer"
    return [
        _row("true", "A caption", text),
        _row("same", "Means it", same),
        _row(style, label, _marked(text, wrong, "l", True)),
    ]


def _search(card: WallCard, kind: KindPresentation) -> list[htpy.Element]:
    return [_row("quiet", "Asked for", card.true_text, "?")]


def _wordings(card: WallCard, kind: KindPresentation) -> list[htpy.Element]:
    """The wish, and each other wording with how many of the first pictures stayed."""
    rankings = top_lists(card)
    rows = [_row("quiet", "Asked for", card.texts[0], "?")]
    for text, names in zip(card.texts[1:], rankings[1:], strict=False):
        shared = len(set(rankings[0]) & set(names))
        rows.append(_row("quiet", f"{shared} of {len(names)} stay", text, "↻"))
    return rows


def _series(card: WallCard, kind: KindPresentation) -> list[htpy.Element]:
    """The texts of a series: before and after a boundary, or the query and its edit."""
    labels = ("Before", "After") if card.kind == "boundary" else ("Asked for", "Its edit")
    texts = (card.true_text, card.wrong_text)
    rows = [_row("quiet", labels[0], _marked(*texts, "changed", False), "?")]
    if card.wrong_text:
        rows.append(_row("quiet", labels[1], _marked(*texts, "changed", True), "↻"))
    return rows


def series_strip(card: WallCard, source: Mapping[str, str]) -> str:
    """The pictures of a series in their order, those framed that are right and that the model chose.

    Args:
        card: A case of a kind whose body is a series.
        source: Thumbnails as data addresses by the names of pictures.
    """
    images = [
        htpy.img(src=source.get(shot.name, ""), alt=shot.words, title=shot.words, class_=shot.css)
        for shot in series.strip(card.kind, card.images, card.answer)
    ]
    return str(
        htpy.div[
            htpy.div(".vp-strip")[images],
            htpy.p(".vp-quiet.vp-small")[
                f"{series.finding(card.kind, card.answer)} Solid frame: the right place. Dashed: the model's."
            ],
        ]
    )


def ranking_strips(card: WallCard, source: Mapping[str, str]) -> str:
    """The first pictures of the query and of the wording that shares fewest with them.

    Args:
        card: A case of a kind whose answers are rankings.
        source: Thumbnails as data addresses by the names of pictures.
    """
    rankings = top_lists(card)
    shared = stayed(card)
    if not shared:
        return ""
    query = set(rankings[0])
    least = min(range(1, len(rankings)), key=lambda index: len(query & set(rankings[index])))
    right = card.images[0] if card.images else ""
    strips = []
    for index in (0, least):
        label = "First pictures" if index == 0 else f"“{card.texts[index]}”"
        images = []
        for rank, name in enumerate(rankings[index], 1):
            alt, css = ranked_words(rank, name, right, query)
            images.append(htpy.img(src=source.get(name, ""), alt=alt, title=alt, class_=css))
        strips += [htpy.p(".vp-quiet.vp-small")[label], htpy.div(".vp-strip")[images]]
    return str(htpy.div[strips])


def bars(
    card: WallCard, kind: KindPresentation, styles: Looks, renamed: Mapping[str, str] = NOT_RENAMED
) -> str:
    """A line a model: its mark and name, how far the lie or the truth wins, and that in a word."""
    margins = [verdict.margin for verdict in card.verdicts]  # NaN is neither below nor above 0
    most_lie = max([-margin for margin in margins if margin < 0], default=0.0)
    most_true = max([margin for margin in margins if margin > 0], default=0.0)
    total = most_lie + most_true
    zero = 0.0
    if not kind.is_movement and total:
        zero = min(max(most_true / total, LEAST_SIDE), MOST_SIDE)
    scale = _scale(most_lie, most_true, zero)
    title = "the truth wins by"
    if kind.is_movement:
        title = "moved by"
    elif most_lie:
        title = f"{kind.winner or WINNERS.get(kind.body, 'the lie')} wins by"
    lines = [
        _bar(verdict, kind, styles, zero, scale, model_name(verdict.model, renamed))
        for verdict in card.verdicts
    ]
    return str(
        htpy.div(".vp-bars")[
            htpy.p(".vp-bars-title")[
                htpy.span(style=f"padding-left:{100 * min(zero, TITLE_AT):.1f}%")[title]
            ],
            htpy.ul[lines],
        ]
    )


def _scale(most_lie: float, most_true: float, zero: float) -> float:
    """The share of the bar that a margin of 1 takes, so that the longest bar of each side fits."""
    right = (1 - zero) / most_lie if most_lie else math.inf
    left = zero / most_true if most_true else math.inf
    scale = min(left, right)
    return 0.0 if math.isinf(scale) else scale


def _bar(
    verdict: ModelVerdict,
    kind: KindPresentation,
    styles: Looks,
    zero: float,
    scale: float,
    name: str,
) -> htpy.Element:
    style, word = _verdict_words(verdict, kind)
    width = 0.0 if math.isnan(verdict.margin) else abs(verdict.margin) * scale
    begin = zero if verdict.margin <= 0 else zero - width
    side = "vp-lie-bar" if verdict.margin < 0 else "vp-true-bar"
    size = "unknown" if math.isnan(verdict.margin) else f"by {abs(verdict.margin):.3f}"
    return htpy.li(title=f"{verdict.model}: {word}, {size}")[
        htpy.span(".vp-model")[_mark(styles, verdict.model), htpy.bdi[name]],
        htpy.span(".vp-track-line", aria_hidden="true")[
            htpy.b(style=f"left:{100 * zero:.1f}%"),
            htpy.i(f".{side}", style=f"left:{100 * begin:.1f}%;width:{100 * width:.1f}%"),
        ],
        htpy.span(f".vp-role.vp-role-{style}")[
            htpy.span(aria_hidden="true")[ICONS[style]], f" {word}"
        ],
    ]


def _verdict_words(verdict: ModelVerdict, kind: KindPresentation) -> tuple[str, str]:
    if not kind.is_movement or verdict.verdict == "unknown":
        return VERDICTS[verdict.verdict]
    return ("quiet", f"{abs(verdict.margin):.3f}") if verdict.margin else ("true", "stayed")


def _mark(styles: Looks, model: str) -> htpy.Node:
    return embed(mark(styles[model])) if model in styles else None


def place_text(position: int, total: int, is_picture: bool) -> str:
    """Where the case is on the wall.

    >>> place_text(2, 282, True), place_text(0, 282, True)
    ('Picture 2 of 282', 'Not among the cases that pass the filters')
    """
    if not position:
        return "Not among the cases that pass the filters"
    return f"{'Picture' if is_picture else 'Case'} {position:,} of {total:,}"


def more_label(count: int, lies: str) -> str:
    """The button that lists the other cases of a picture.

    >>> more_label(3, "lies"), more_label(29, "mixed pictures")
    ('3 more lies on it', '29 more on it')
    """
    return f"{count:,} more lies on it" if count > 1 and lies == "lies" else f"{count:,} more on it"


def pattern_text(words: tuple[str, str], counted: tuple[int, int], others: str) -> str:
    """A pattern, how often it fools the model, and which of its other pictures stand beside it.

    Args:
        words: Taken out and put in.
        counted: How many of its cases were believed, and how many were asked.
        others: What the pictures are.
    """
    source, target = words
    believed_count, n_asked = counted
    return str(
        htpy.div(".vp-pattern")[
            htpy.strong[source, htpy.span(".vp-quiet")[" → "], target],
            htpy.p(".vp-quiet.vp-small")[f"fooled {believed_count:,} of {n_asked:,}"],
            htpy.p(".vp-quiet.vp-small")[others],
        ]
    )


def others_text(n_shown: int, n_others: int) -> str:
    """What the thumbnails of a pattern are.

    >>> others_text(3, 3), others_text(1, 1), others_text(4, 55)
    ('the other three', 'the other one', 'four of 55 others')
    """
    if n_shown == n_others:
        return f"the other {count_word(n_shown)}"
    return f"{count_word(n_shown)} of {n_others:,} others"
