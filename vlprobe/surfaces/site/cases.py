"""Cases as input for the wall of cards and for the drawer in a site.

Values that are the same for all models are stored once. For each model, only the differences are
added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import htpy

from vlprobe import views
from vlprobe.case import html, json
from vlprobe.case.card import CaseCard, case_card
from vlprobe.datasets.credits import picture_credit
from vlprobe.render.numbers import shortest
from vlprobe.storage import annotations
from vlprobe.storage.annotations import Annotation
from vlprobe.surfaces.site.subject import Subject, Values, bare
from vlprobe.types import Picture
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


def case_entries(subject: Subject, cards: Sequence[WallCard]) -> list[Values]:
    """Return cases of one kind with every model's answer, in the order of `cards`.

    Args:
        cards: The cases with the answers of the first model.

    Returns:
        One dict per case: case (the values that are the same for all models), models (the values that differ, by model
        key), margins (in the order of the models, None if unknown), picture (the number of the picture), and texts.
    """
    answers = _answers(subject, cards)
    subject.shelf.add(
        name
        for by_model in answers
        for card in _distinct(by_model)
        for name in json.picture_names(card)
    )
    noted: Mapping[int, Annotation] = {}
    if subject.limits.with_notes:
        written = annotations.read(subject.store, subject.question_set.key).current
        noted = {annotation.case: annotation for annotation in written}
    codes = views.rows.CaseTable(subject.store, subject.question_set.key).picture_codes
    entries = []
    for card, by_model in zip(cards, answers, strict=True):
        annotation = noted.get(card.case)
        shared = _shared(subject, by_model[subject.models[0]], annotation)
        drawn = {
            id(answer): _case(subject, answer, annotation) | shared
            for answer in _distinct(by_model)
        }
        values_by_model = {model: drawn[id(answer)] for model, answer in by_model.items()}
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
                "margins": [shortest(verdict.margin) for verdict in card.verdicts],
                "picture": int(codes[card.case]),
                "texts": list(card.texts),
            }
        )
    return entries


def _answers(subject: Subject, cards: Sequence[WallCard]) -> list[dict[str, CaseCard]]:
    """Return each case as every model answered it, by model. Models whose answers look the same share a card.

    An answer looks like its verdict, unless it is a movement or a search result.
    """
    if not cards:
        return []
    kind = subject.presentation.kind(cards[0].kind)
    if body_of(kind).uses_answer:
        numbers = [card.case for card in cards]
        of_others = (
            views.wall.cards(
                subject.store, subject.question_set, Filter(model, cards[0].kind), numbers
            )
            for model in subject.models[1:]
        )
        return [
            {model: case_card(card, kind) for model, card in zip(subject.models, row, strict=True)}
            for row in zip(cards, *of_others, strict=True)
        ]
    rows = []
    for card in cards:
        drawn: dict[object, CaseCard] = {}
        by_model = {}
        for model, verdict in zip(subject.models, card.verdicts, strict=True):
            look = model if kind.is_movement else (verdict.verdict, verdict.is_scored)
            if look not in drawn:
                answer = replace(card, margin=verdict.margin, is_scored=verdict.is_scored)
                drawn[look] = case_card(answer, kind)
            by_model[model] = drawn[look]
        rows.append(by_model)
    return rows


def _distinct(by_model: Mapping[str, CaseCard]) -> list[CaseCard]:
    return list({id(card): card for card in by_model.values()}.values())


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
