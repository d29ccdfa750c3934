"""Headings, pattern names and filters for walls, which are pages of case cards."""

from collections.abc import Mapping
from dataclasses import replace

from vlprobe.case.card import card_type, preferred, wrong_captions
from vlprobe.render.words import edit_title, movement_kinds, tag_label, value_label
from vlprobe.storage import annotations
from vlprobe.types.presentation import KindPresentation
from vlprobe.views import causes
from vlprobe.views.filter import Filter
from vlprobe.views.named_slices import PREFIX
from vlprobe.views.pattern_groups import TAG, TYPE, words_of

# For kinds that cannot fool a model: ranges in which the first model's margin is clearly lower.
MOVED_MORE = ((-9.0, -8.99999), (9.0, 9.00001), (-9.0, 9.00001))


MARGIN_ORDERS = {
    "worst": "Clearest first",
    "closest": "Closest calls first",
    "best": "Least fooled first",
}
MOVED_ORDERS = {"worst": "Moved most first", "best": "Moved least first"}


def orders(is_movement: bool, is_scored: bool) -> dict[str, str]:
    """Return the sort orders for a wall, the default first. Answers without scores cannot be sorted by margin."""
    by_margin = MOVED_ORDERS if is_movement else MARGIN_ORDERS if is_scored else {}
    by_models = {} if is_movement else {"models": "Most models fooled first"}
    return {**by_margin, **by_models, "dataset": "In the dataset's order"}


def narrowed(subtype: str) -> dict[str, str]:
    """Return the condition that selects a type of edit, or a named slice if it is "slice:NAME"."""
    if subtype.startswith(PREFIX):
        return {"named_slice": subtype.removeprefix(PREFIX)}
    return {"subtype": subtype}


def side_filter(kind: str, model: str, rival: str, subtype: str) -> Filter:
    """Return a filter for cases that fool only `model`, or that move its score more than the score of `rival`."""
    beside = Filter.parse(model, kind, other=rival, sort="difference", **narrowed(subtype))
    if kind in movement_kinds():
        return replace(beside, outcome="all", within=MOVED_MORE)
    return replace(beside, outcome="fooled", other_outcome="held")


def pattern_words(key: str) -> tuple[str, str]:
    """Return a pattern's name as two parts: the removed and the inserted words, or a type or tag
    and "".

    >>> pattern_words("four>five"), pattern_words("type:color"), pattern_words(">knife")
    (('four', 'five'), ('Wrong color', ''), ('…', 'knife'))
    """
    if key.startswith(TYPE):
        return edit_title(key.removeprefix(TYPE)), ""
    if key.startswith(TAG):
        return key.removeprefix(TAG).replace("=", ": ", 1), ""
    source, target = words_of(key)
    return source or "…", target or "(nothing)"


def value_text(facet: str, value: str) -> str:
    """Describe a value of a facet.

    >>> value_text("pair", "four>five"), value_text("pair", "type:color")
    ('four → five', 'Wrong color')
    >>> value_text("tag:background", "sea"), value_text("tag:dataset", "coco2017")
    ('background: sea', 'dataset: COCO 2017 (plurals)')
    >>> value_text("subtype", "color")
    'Wrong color'
    """
    if facet == "pair":
        return " → ".join(filter(None, pattern_words(value)))
    if facet.startswith("tag:"):
        return f"{facet[4:]}: {tag_label(facet[4:], value)}"
    if facet == "tagged":
        return {annotations.ANY: "any tag", annotations.NOTE: "a note"}.get(value, value)
    if facet == "unseen_by":
        return causes.LABELS[value]
    return edit_title(value) if facet == "subtype" else value_label(value)


def excluded_text(facet: str, value: str) -> str:
    """Describe a value of a facet that a filter excludes.

    >>> excluded_text("subtype", "color"), excluded_text("tagged", annotations.ANY)
    ('not Wrong color', 'no tag')
    """
    if facet == "tagged" and value in (annotations.ANY, annotations.NOTE):
        return "no tag" if value == annotations.ANY else "no note"
    return f"not {value_text(facet, value)}"


def heading(
    kind: KindPresentation,
    outcome: str,
    n_cases: int,
    n_groups: int,
    has_pictures: bool = True,
    is_scored: bool = True,
) -> str:
    """Return a heading that says how many cases and pictures are on the wall.

    Args:
        n_groups: Number of groups of the cases (`views.wall`).
        outcome: The outcome that the filter selects: "fooled", "tied", "held" or "all".
        has_pictures: Whether the cases have pictures at all.
        is_scored: Whether the model has scores. Otherwise its answers are only right or wrong.
    """
    words = card_type(kind)
    wrong = wrong_captions(kind)
    wrong = wrong.removesuffix("s") if n_cases == 1 else wrong
    happened = {
        "fooled": preferred(kind),
        "tied": "scored exactly as high as the true one"
        if is_scored
        else "chosen in one of two orders",
        "held": "rejected",
    }.get(outcome, "")
    sentence = f"{n_cases:,} {wrong} {'' if kind.is_movement else happened}".strip()
    if not has_pictures or not words.counts_pictures or words.group != "picture":
        return sentence
    return f"{sentence}, on {n_groups:,} {'picture' if n_groups == 1 else 'pictures'}"


def n_fooled(counted: Mapping[str, int], n_orders: int) -> float:
    """Return the number of cases that fool a model. One that fools it in only one of two caption orders counts half."""
    return counted["fooled"] - (counted["tied"] / 2 if n_orders == 2 else 0)


def rate_text(counted: Mapping[str, int], n_orders: int, noun: str = "") -> str:
    """Describe the share of cases that fool a model, and how many are ties or fool it in only one of two caption
    orders.

    A case that fools the model in only one order counts half.

    Args:
        counted: Number of cases by outcome: all, fooled (including ties), tied.
        n_orders: Number of caption orders that the model saw, 1 or 2.
        noun: What is counted, after the number of all.

    >>> rate_text({"all": 60, "tied": 3, "fooled": 9}, 1)
    '15.0 % of 60, 3 by a tie'
    >>> rate_text({"all": 7511, "tied": 694, "fooled": 934}, 2, "cases")
    '7.8 % of 7,511 cases: 240 in both orders, 694 in one (counted as half)'
    """
    rate = f"{100 * n_fooled(counted, n_orders) / counted['all']:.1f} % of {counted['all']:,} {noun}".rstrip()
    if n_orders == 2:
        both = counted["fooled"] - counted["tied"]
        return f"{rate}: {both:,} in both orders, {counted['tied']:,} in one (counted as half)"
    return f"{rate}, {counted['tied']:,} by a tie" if counted["tied"] else rate
