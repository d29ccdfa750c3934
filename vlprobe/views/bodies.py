"""How views treat the different types of cases, such as searches or pairs. A type is called a card body (`CardBody`).
`case.card.CARDS` draws each body; no other module depends on the body.
"""

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from vlprobe import registry
from vlprobe.types.presentation import CardBody, KindPresentation
from vlprobe.views.records import CaseRow

# Functions from a case, and the candidate that the model ranks first in its stored form, to the true text and the
# text that should lose, "" if there is none.
Texts = Callable[[CaseRow, str], tuple[str, str]]


def _labeled_texts(row: CaseRow, top: str) -> tuple[str, str]:
    """Return the first text of a case and the first text labeled "different", or the second text if none is labeled."""
    texts, roles = list(row.texts), list(row.roles)
    wrong = roles.index("different") if "different" in roles else min(1, len(texts) - 1)
    return texts[0], texts[wrong] if wrong else ""


def _query(row: CaseRow, top: str) -> tuple[str, str]:
    """Return the query of a picture search and "", because the side that should lose is a picture, not a text."""
    return row.texts[0], ""


def _first_caption(row: CaseRow, top: str) -> tuple[str, str]:
    """Return the true caption worded most like the altered caption that the model ranks first, and the altered one."""
    if top not in row.texts:
        return row.texts[0], top
    words = top.split()
    true_texts = [
        text for text, role in zip(row.texts, row.roles, strict=True) if role != "different"
    ]
    nearest = max(
        true_texts, key=lambda text: difflib.SequenceMatcher(None, text.split(), words).ratio()
    )
    return nearest, top


def _farthest_wording(row: CaseRow, top: str) -> tuple[str, str]:
    """Return the query and the rewording whose top pictures overlap least with the query's top pictures."""
    ranked: list[list[str]] = json.loads(top)
    overlaps = [len(set(ranked[0]) & set(names)) for names in ranked]
    return row.texts[0], row.texts[overlaps.index(min(overlaps[1:]), 1)]


@dataclass(frozen=True, slots=True)
class CaseBody:
    """View settings for cases with one card body, such as "pair" or "triplet" (see `CardBody`).

    Attributes:
        texts: Function that selects the two texts to compare.
        uses_answer: Whether the wrong text comes from the model's answer instead of the question.
        ranks: What the model ranks in a search: "captions" or "pictures"; "" for comparisons.
        is_picture_optional: Whether slides can show a case without its picture.
        is_for_people: Whether a case has one picture and two captions, so that people can answer it.
    """

    texts: Texts = _labeled_texts
    uses_answer: bool = False
    ranks: Literal["", "captions", "pictures"] = ""
    is_picture_optional: bool = False
    is_for_people: bool = False


BODIES: Mapping[CardBody, CaseBody] = {
    "captions": CaseBody(is_picture_optional=True, is_for_people=True),
    "edit": CaseBody(is_picture_optional=True, is_for_people=True),
    "changed_picture": CaseBody(),
    "caption_search": CaseBody(_first_caption, True, "captions", is_picture_optional=True),
    "picture_search": CaseBody(_query, True, "pictures"),
    "pair": CaseBody(is_for_people=True),
    "triplet": CaseBody(is_picture_optional=True),
    "rankings": CaseBody(_farthest_wording, True),
    "series": CaseBody(uses_answer=True),
}


def body_of(kind: KindPresentation) -> CaseBody:
    """Return the view settings for a kind of case."""
    return BODIES[kind.body]


def stored_body(probe: str, kind: str) -> CaseBody:
    """Return the view settings for a kind of case, given the names of the probe and the kind."""
    return body_of(registry.load_probe(probe).presentation.kind(kind))
