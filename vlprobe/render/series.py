"""A case of pictures in an order, in words and as a strip: the pictures shown, and the text of each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vlprobe.views.records import AnswerRow

MOST = 10  # pictures of a strip
RIGHT, CHOSEN = "vp-right", "vp-new"  # solid and dashed frame


@dataclass(frozen=True)
class StripPicture:
    """A picture of a strip: its name, its text, and its frame."""

    name: str
    words: str
    css: str = ""


def strip(kind: str, images: Sequence[str], answer: AnswerRow | None) -> list[StripPicture]:
    """The pictures to show, in their order: those that matter, and others evenly in between.

    Args:
        kind: boundary or order.
        images: Names of all pictures of the case.
        answer: A model's; None: not known.
    """
    right_index, model_index = (_index(answer, name) for name in ("right_index", "model_index"))
    width = 2 if kind == "boundary" else 1  # pictures that a place is made of
    right = {right_index + step for step in range(width)} if right_index >= 0 else set()
    choice = {model_index + step for step in range(width)} if model_index >= 0 else set()
    ranks = _ranks(answer, len(images)) if kind == "order" else []
    pictures = []
    for position in shown_positions(len(images), right | choice):
        words = f"Frame {position + 1}" if kind == "boundary" else f"People {position + 1}"
        if kind == "order" and position < len(ranks):
            words += f", model {ranks[position]}"
        if kind == "boundary" and position in right:
            words += ", before the change" if position == right_index else ", after it"
        if position in choice:
            words += ", the model's choice"
        css = RIGHT if position in right else CHOSEN if position in choice else ""
        pictures.append(StripPicture(images[position], words, css))
    return pictures


def shown_positions(count: int, needed: set[int]) -> list[int]:
    """Select up to MOST of these positions, including the required ones, the others evenly spread.

    >>> shown_positions(4, set()), shown_positions(100, {30, 31})
    ([0, 1, 2, 3], [0, 14, 28, 30, 31, 42, 57, 71, 85, 99])
    """
    if count <= MOST:
        return list(range(count))
    room = MOST - len(needed)
    spread = {round(step * (count - 1) / (room - 1)) for step in range(room)}
    return sorted(needed | spread)


def text_labels(kind: str) -> tuple[str, str]:
    """Return the labels before the first text of a case and before its second."""
    return ("Before", "After") if kind == "boundary" else ("Query", "Its edit")


def score_column(kind: str) -> tuple[str, str, int]:
    """Return the number that the table of models has for an answer: the heading, the name of the number, and its
    decimals."""
    return (
        ("seconds off", "seconds_off", 2) if kind == "boundary" else ("agreement", "agreement", 3)
    )


def finding(kind: str, answer: AnswerRow | None) -> str:
    """Return the model's answer to the case in a sentence; "" if unknown."""
    if answer is None:
        return ""
    if kind == "boundary":
        seconds = answer.number("seconds_off")
        return "" if math.isnan(seconds) else f"The model is {seconds:.1f} s off."
    sentences = [
        f"{label} {value:.2f}"
        for label, name in (
            ("Rank correlation with people", "agreement"),
            ("with its own order after the edit", "kept"),
        )
        if not math.isnan(value := answer.number(name))
    ]
    return f"{', '.join(sentences)}." if sentences else ""


def _index(answer: AnswerRow | None, name: str) -> int:
    value = answer.number(name) if answer else math.nan
    return -1 if math.isnan(value) else int(value)


def _ranks(answer: AnswerRow | None, count: int) -> list[str]:
    """The model's rank of each candidate for the query, from 1; equal scores share their best rank, with an
    equals sign.
    """
    if answer is None or len(answer.scores) < count:
        return []
    query = [float(score) for score in answer.scores[:: len(answer.scores) // count]]
    return [
        f"{1 + sum(rival > score for rival in query)}{'=' * (query.count(score) > 1)}"
        for score in query
    ]
