"""One case in words and numbers, for its drawer: captions with the changed words marked, one bar per model,
strips of pictures. `render.html.drawer` draws them as HTML, the drawer of a published site in the browser.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from vlprobe.render import series
from vlprobe.render.html.cases import ranked_words
from vlprobe.render.series import StripPicture
from vlprobe.render.wall import CHANGES, Run, stayed, top_lists
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
LENGTHS = {"share": " by", "spread": " by (own spreads)", "side": ""}  # what the length of a bar is
TITLE_AT = 0.5  # no further to the right, so that it fits
VERDICTS = {  # icon, word and style
    "fooled": ("lie", "fooled"),
    "held": ("true", "held"),
    "tied": ("tie", "cannot tell"),
    "unknown": ("quiet", "no answer"),
}
CHOICES = {  # the same of answers that are right or wrong only
    **VERDICTS,
    "fooled": ("lie", "chose the wrong caption"),
    "held": ("true", "chose the true caption"),
    "tied": ("tie", CHANGES),
}
FRAMES = "Solid frame: the right place. Dashed: the model's."


@dataclass(frozen=True)
class CaptionLine:
    """A text of a case."""

    style: str  # "true", "lie", "tie", "quiet" or "same"
    label: str
    runs: Sequence[Run]  # texts and their styles: "" or what the changed words are
    icon: str


@dataclass(frozen=True)
class ModelBar:
    """One model's answer; positions are shares of the bar's width."""

    model: str
    name: str
    begin: float
    width: float
    is_lie: bool  # what is wrong wins
    style: str
    word: str
    size: str  # of the margin, in words; "" where it has none


@dataclass(frozen=True)
class Bars:
    """The answers of all models."""

    title: str  # "" where no model has a bar
    title_at: float
    zero: float  # where neither wins
    lines: Sequence[ModelBar]


@dataclass(frozen=True)
class Strip:
    """Pictures in a row, each with its description."""

    label: str
    pictures: Sequence[StripPicture]
    note: str = ""


def caption_lines(card: WallCard, kind: KindPresentation) -> list[CaptionLine]:
    """The texts of a case, the words marked that make one of them true and another one not."""
    lines = {
        "pair": _pair,
        "triplet": _triplet,
        "picture_search": _search,
        "rankings": _wordings,
        "series": _series,
    }
    return lines.get(kind.body, _true_and_false)(card, kind)


def _line(style: str, label: str, text: str | Sequence[Run], icon: str = "") -> CaptionLine:
    runs = [(text, "")] if isinstance(text, str) else text
    return CaptionLine(style, label, runs, icon or ICONS[style])


def _marked(before: str, after: str, style: str, is_after: bool) -> list[Run]:
    """One of two texts with the words marked in which they differ."""
    return [
        (words, style if differs else "") for words, differs in word_runs(before, after, is_after)
    ]


def _true_and_false(card: WallCard, kind: KindPresentation) -> list[CaptionLine]:
    """A true caption and the one that was made of it; all other captions of the case below."""
    styles = ("changed", "changed") if kind.is_movement else ("t", "l")
    texts = (card.true_text, card.wrong_text)
    if not card.wrong_text:
        return [_line("true", "True", card.true_text)]
    lines = [_line("true", "True", _marked(*texts, styles[0], False))]
    lines += [
        _line("same", "Also true", text)
        for text, role in zip(card.texts, card.roles, strict=True)
        if role == "same" and text not in texts and len(card.texts) <= 4
    ]
    if kind.is_movement:
        return [*lines, _line("quiet", "Reworded", _marked(*texts, styles[1], True), "↻")]
    style, label = believed(card)
    return [*lines, _line(style, label, _marked(*texts, styles[1], True))]


def believed(card: WallCard) -> tuple[str, str]:
    """Style and label of the text that should lose."""
    if math.isnan(card.margin):
        return "quiet", "False"
    if not card.is_scored and card.margin <= 0:
        return ("lie", "Chosen") if card.margin else ("tie", "Chosen in one order")
    if card.margin == 0:
        return "tie", "As high"
    return ("lie", "Believed") if card.margin < 0 else ("lie", "False")


def _pair(card: WallCard, kind: KindPresentation) -> list[CaptionLine]:
    texts = (card.texts[0], card.texts[1])
    return [
        _line("true", "Left", _marked(*texts, "changed", False)),
        _line("true", "Right", _marked(*texts, "changed", True)),
    ]


def _triplet(card: WallCard, kind: KindPresentation) -> list[CaptionLine]:
    text, same, wrong = card.texts[:3]
    style, label = believed(card)
    if label == "Believed":
        label = "Closer"
    return [
        _line("true", "A caption", text),
        _line("same", "Means it", same),
        _line(style, label, _marked(text, wrong, "l", True)),
    ]


def _search(card: WallCard, kind: KindPresentation) -> list[CaptionLine]:
    return [_line("quiet", "Asked for", card.true_text, "?")]


def _wordings(card: WallCard, kind: KindPresentation) -> list[CaptionLine]:
    """The query, and each other wording with how many of the first pictures stayed."""
    rankings = top_lists(card)
    lines = [_line("quiet", "Asked for", card.texts[0], "?")]
    for text, names in zip(card.texts[1:], rankings[1:], strict=False):
        shared = len(set(rankings[0]) & set(names))
        lines.append(_line("quiet", f"{shared} of {len(names)} stay", text, "↻"))
    return lines


def _series(card: WallCard, kind: KindPresentation) -> list[CaptionLine]:
    """The texts of a series: before and after a boundary, or the query and its edit."""
    labels = ("Before", "After") if card.kind == "boundary" else ("Asked for", "Its edit")
    texts = (card.true_text, card.wrong_text)
    icons = ("1", "2") if card.kind == "boundary" else ("?", "↻")
    lines = [_line("quiet", labels[0], _marked(*texts, "changed", False), icons[0])]
    if card.wrong_text:
        lines.append(_line("quiet", labels[1], _marked(*texts, "changed", True), icons[1]))
    return lines


def strips(card: WallCard, kind: KindPresentation) -> list[Strip]:
    """Rows of pictures below the texts; none if the pictures are above them."""
    if kind.body == "rankings":
        return ranking_strips(card)
    return [series_strip(card)] if kind.body == "series" else []


def series_strip(card: WallCard) -> Strip:
    """The pictures of a series in their order, those framed that are right and that the model chose.

    Args:
        card: A case of a kind whose body is a series.
    """
    note = f"{series.finding(card.kind, card.answer)} {FRAMES}"
    return Strip("", series.strip(card.kind, card.images, card.answer), note)


def ranking_strips(card: WallCard) -> list[Strip]:
    """The first pictures of the query and of the wording that shares fewest with them.

    Args:
        card: A case of a kind whose answers are rankings.
    """
    rankings = top_lists(card)
    if not stayed(card):
        return []
    query = set(rankings[0])
    least = min(range(1, len(rankings)), key=lambda index: len(query & set(rankings[index])))
    right = card.images[0] if card.images else ""
    return [
        Strip(
            "First pictures" if index == 0 else f"“{card.texts[index]}”",
            [
                StripPicture(name, *ranked_words(rank, name, right, query))
                for rank, name in enumerate(rankings[index], 1)
            ],
        )
        for index in (0, least)
    ]


def bars(card: WallCard, kind: KindPresentation, renamed: Mapping[str, str] = NOT_RENAMED) -> Bars:
    """One line per model: how far the lie or the truth wins, and the outcome in a word. Answers that are right
    or wrong only have no bar.
    """
    lengths, unit = bar_lengths(card.verdicts, kind)
    most_lie = max([-length for length in lengths.values() if length < 0], default=0.0)
    most_true = max([length for length in lengths.values() if length > 0], default=0.0)
    total = most_lie + most_true
    zero = 0.0
    if not kind.is_movement and total:
        zero = min(max(most_true / total, LEAST_SIDE), MOST_SIDE)
    scale = _scale(most_lie, most_true, zero)
    title = "the truth wins" if lengths else ""
    if kind.is_movement:
        title = "moved"
    elif most_lie:
        title = f"{kind.winner or WINNERS.get(kind.body, 'the lie')} wins"
    lines = [
        _bar(
            verdict,
            kind,
            zero,
            scale * lengths.get(verdict.model, 0.0),
            model_name(verdict.model, renamed),
        )
        for verdict in card.verdicts
    ]
    title += LENGTHS[unit] * bool(title)
    return Bars(title, min(zero, TITLE_AT), zero, lines)


def bar_lengths(
    verdicts: Iterable[ModelVerdict], kind: KindPresentation
) -> tuple[dict[str, float], Literal["share", "spread", "side"]]:
    """Lengths of bars that can be compared between models, below 0 where the lie wins, and their unit.

    Scores of different models have different scales, so margins are divided by each model's own spread. Shares need no
    spread; where one is unknown, all bars are equally long and show the side only.
    """
    scored = [one for one in verdicts if one.is_scored and not math.isnan(one.margin)]
    if kind.is_share:
        return {one.model: one.margin for one in scored}, "share"
    if all(one.spread > 0 for one in scored):
        return {one.model: one.margin / one.spread for one in scored}, "spread"
    return {one.model: float((one.margin > 0) - (one.margin < 0)) for one in scored}, "side"


def _scale(most_lie: float, most_true: float, zero: float) -> float:
    """The share of the bar that a length of 1 takes, so that the longest bar of each side fits."""
    right = (1 - zero) / most_lie if most_lie else math.inf
    left = zero / most_true if most_true else math.inf
    scale = min(left, right)
    return 0.0 if math.isinf(scale) else scale


def _bar(
    verdict: ModelVerdict, kind: KindPresentation, zero: float, length: float, name: str
) -> ModelBar:
    style, word = _verdict_words(verdict, kind)
    if not verdict.is_scored:
        return ModelBar(verdict.model, name, zero, 0.0, verdict.margin < 0, style, word, "")
    width = abs(length)
    begin = zero if verdict.margin <= 0 else zero - width
    size = "unknown" if math.isnan(verdict.margin) else f"by {abs(verdict.margin):.3f}"
    return ModelBar(verdict.model, name, begin, width, verdict.margin < 0, style, word, size)


def _verdict_words(verdict: ModelVerdict, kind: KindPresentation) -> tuple[str, str]:
    if not kind.is_movement or verdict.verdict == "unknown":
        return (VERDICTS if verdict.is_scored else CHOICES)[verdict.verdict]
    return ("quiet", f"{abs(verdict.margin):.3f}") if verdict.margin else ("true", "stayed")
