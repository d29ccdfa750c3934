"""Cases as input for the wall of cards and for the drawer in a site.

Values that are the same for all models are stored once. For each model, only the differences are
added.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import htpy
import numpy as np

from vlprobe import views
from vlprobe.case import html, json
from vlprobe.case.card import CaseCard, case_card
from vlprobe.datasets.credits import picture_credit
from vlprobe.storage import annotations
from vlprobe.storage.annotations import Annotation
from vlprobe.surfaces.site.subject import Subject, Values, bare
from vlprobe.types import Picture
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.bodies import body_of
from vlprobe.views.filter import Filter
from vlprobe.views.wall import WallCard

CREDITS = {  # dataset tags that name the author or the license of a picture
    "licence": "License",
    "license": "License",
    "author": "Author",
    "photographer": "Author",
    "credit": "Credit",
    "attribution": "Credit",
    "rights": "Rights",
}


def case_entries(subject: Subject, kind_name: str, numbers: Sequence[int]) -> list[Values]:
    """Return the given cases with every model's answer, in the order of `numbers`.

    Returns:
        One dict per case: case (the values that are the same for all models), models (the values that differ, by model
        key), margins (in the order of the models, None if unknown), picture (the number of the picture), type, and
        texts.
    """
    kind = subject.presentation.kind(kind_name)
    by_model = _cards(subject, kind_name, numbers)
    shared = by_model[subject.models[0]]
    subject.shelf.add(
        name
        for cards in by_model.values()
        for card in cards
        for name in json.picture_names(case_card(card, kind))
    )
    noted: Mapping[int, Annotation] = {}
    if subject.limits.with_notes:
        written = annotations.read(subject.store, subject.question_set.key).current
        noted = {annotation.case: annotation for annotation in written}
    table = views.rows.CaseTable(subject.store, subject.question_set.key)
    codes = table.picture_codes[list(numbers)]
    entries = []
    for index, card in enumerate(shared):
        drawn: dict[object, Values] = {}
        annotation = noted.get(card.case)
        common_values = _shared(subject, case_card(card, kind), annotation)
        values_by_model = {}
        for model, cards in by_model.items():
            answer = _distinct_answer(cards[index], kind, model)
            if answer not in drawn:
                drawn[answer] = (
                    _case(subject, case_card(cards[index], kind), annotation) | common_values
                )
            values_by_model[model] = drawn[answer]
        common = values_by_model[subject.models[0]]
        entries.append(
            {
                "case": common,
                "models": {
                    subject.keys[model]: {
                        name: value for name, value in values.items() if value != common[name]
                    }
                    for model, values in values_by_model.items()
                    if values != common
                },
                "margins": [_number(verdict.margin) for verdict in card.verdicts],
                "picture": int(codes[index]),
                "type": card.subtype,
                "texts": list(card.texts),
            }
        )
    return entries


def _cards(
    subject: Subject, kind_name: str, numbers: Sequence[int]
) -> dict[str, Sequence[WallCard]]:
    """Return each model's cards, with the model's margin and, in kinds that are searches, its answer."""
    store, question_set = subject.store, subject.question_set
    if body_of(subject.presentation.kind(kind_name)).uses_answer:
        return {
            model: views.wall.cards(store, question_set, Filter(model, kind_name), numbers)
            for model in subject.models
        }
    cards = views.wall.cards(store, question_set, Filter(subject.models[0], kind_name), numbers)
    return {
        model: [
            replace(
                card, margin=card.verdicts[number].margin, is_scored=card.verdicts[number].is_scored
            )
            for card in cards
        ]
        for number, model in enumerate(subject.models)
    }


def _distinct_answer(card: WallCard, kind: KindPresentation, model: str) -> object:
    """Return the part of a model's answer that determines how its card looks.

    This is only the verdict, unless the answer is a movement or a search result.
    """
    is_told_apart = kind.is_movement or body_of(kind).uses_answer
    return model if is_told_apart else (views.wall.verdict_of(card.margin), card.is_scored)


def _number(margin: float) -> float | None:
    """Convert a float32 margin to the shortest float that identifies it. Unknown margins become None."""
    return None if math.isnan(margin) else float(str(np.float32(margin)))


def _shared(subject: Subject, card: CaseCard, annotation: Annotation | None) -> Values:
    """Return the parts of the drawer that are the same for all models: bars, tags, note, credits and properties."""
    credits, with_notes = (
        credit(card.case.tags, _credits(subject, card.case)),
        subject.limits.with_notes,
    )
    facts = [(name, text if with_notes else bare(text)) for name, text in card.facts.items()]
    details = [
        annotation and html.chips(annotation.tags, annotation.note),
        credits and htpy.p(".vp-quiet.vp-small")[credits],
        htpy.details[
            htpy.summary["Details"],
            htpy.dl(".vp-facts")[
                ([htpy.dt[name], htpy.dd(dir="auto")[value]] for name, value in facts if value)
            ],
        ],
    ]
    return {
        "bars": inert(html.bars(card, subject.model_looks, subject.names)),
        "rest": inert(details),
    }


def _case(subject: Subject, card: CaseCard, annotation: Annotation | None) -> Values:
    """Return a case as input for the wall of cards, with the pictures and texts for its drawer."""
    tags = annotation.tags if annotation else ()
    return {
        **json.wall_card(card, subject.shelf.key, tags=tags, renamed=subject.names, badge=False),
        "id": subject.case_key(card.case.case),
        **pictures_and_captions(subject, card),
    }


def pictures_and_captions(subject: Subject, card: CaseCard) -> dict[str, str]:
    """Return a case's pictures and texts as HTML."""
    key = subject.shelf.key
    return {
        "pictures": inert(html.shots(card, key, _absence)),
        "captions": inert([html.captions(card.texts), html.strips(card.strips(), key)]),
    }


def _absence(name: str) -> str:
    return f"The picture {Picture.from_name(name).path.name} is not part of this site."


def inert(nodes: htpy.Node) -> str:
    """Render HTML with picture keys in place of addresses. The site's script inserts the pictures."""
    return "".join(htpy.fragment[nodes].iter_chunks()).replace(' src="', ' data-src="')


def credit(tags: Mapping[str, str], lines: Sequence[str] = ()) -> str:
    """Return the credits for a case's pictures as text, or "" if none are recorded.

    Args:
        tags: The case's tags, from the dataset.
        lines: Picture credits from the dataset's files.
    """
    tagged = [
        f"{CREDITS[name.lower()]}: {value}"
        for name, value in tags.items()
        if name.lower() in CREDITS and value
    ]
    return " · ".join(dict.fromkeys([*tagged, *lines]))


def _credits(subject: Subject, card: WallCard) -> list[str]:
    """Return the credits that the dataset records for a case's pictures and for the pictures mixed into them."""
    names = [*card.images[:2], *([card.wrong_image] if card.wrong_image else [])]
    paths = []
    for picture in map(Picture.from_name, names):
        paths += picture.paths
    return [
        subject.credits[path.name].text
        for path in paths
        if path.name in subject.credits and not picture_credit(str(path))  # shown below the picture
    ]
