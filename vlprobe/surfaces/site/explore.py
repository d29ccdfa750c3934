"""The Explore page of a site: the cases of one kind as cards, for every model, with filters.

A site contains only the first cases for each model and outcome, and for each pattern. All counts refer to the whole
question set, and the page shows the number of cases.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import htpy
import numpy as np

from vlprobe import views
from vlprobe.case import html, json
from vlprobe.case.card import CaseCard, case_card, wrong_captions
from vlprobe.datasets.credits import picture_credit
from vlprobe.render import wall
from vlprobe.render.numbers import shortest
from vlprobe.render.words import edit_title, slice_order
from vlprobe.storage import annotations
from vlprobe.storage.annotations import Annotation
from vlprobe.surfaces.site.subject import Subject, Values, bare
from vlprobe.types import Picture
from vlprobe.views.bodies import body_of
from vlprobe.views.filter import Filter
from vlprobe.views.named_slices import PREFIX
from vlprobe.views.patterns import Pattern
from vlprobe.views.wall import WallCard

MOST_PATTERNS = 12  # per model
OF_PATTERN = 8  # cases per pattern
MOST_TYPES = 24
NARROW = {"fooled": 1.0, "tied": 0.5, "held": 0.5}  # share of the limit, by outcome
OUTCOMES = {"fooled": "Fooled", "tied": "Tied", "held": "Not fooled", "all": "All"}


def keys_of_types(subject: Subject, kind_name: str) -> dict[str, str]:
    """Return what addresses on the site call each type of case and each named slice ("slice:NAME"), in display order.

    A type is called by its index. A slice keeps its name, so that a link to it stays valid when others are saved.
    """
    counts = views.showcase.lie_counts(subject.question_set, kind_name)
    types = sorted({count.subtype for count in counts if count.subtype}, key=slice_order)
    slices = views.named_slices.of_kind(subject.question_set, kind_name)
    keys = {name: str(number) for number, name in enumerate(types[:MOST_TYPES])}
    return keys | {PREFIX + name: PREFIX + name for name in slices}


def explore_values(subject: Subject, kind_name: str, linked_cases: Sequence[int] = ()) -> Values:
    """Return the data for the Explore page of a kind of case, including the cases that other pages link to."""
    kind = subject.presentation.kind(kind_name)
    types = keys_of_types(subject, kind_name)
    question_set = subject.question_set
    patterns = {
        model: views.patterns.patterns(question_set, model, kind_name)[:MOST_PATTERNS]
        for model in subject.models
        if not kind.is_movement
    }
    slices = views.named_slices.of_kind(question_set, kind_name)
    published = _numbers(subject, kind_name, patterns, list(slices))
    numbers = list(dict.fromkeys([*published, *linked_cases]))
    case_filter = Filter(subject.models[0], kind_name)
    cards = views.wall.cards(question_set, case_filter, numbers)
    narrower: list[list[str]] = [
        [types[card.subtype]] if card.subtype in types else [] for card in cards
    ]
    for name, members in slices.items():
        for index in np.flatnonzero(np.isin(numbers, members)):
            narrower[index].append(types[PREFIX + name])
    return {
        "lies": wrong_captions(kind),
        "movement": kind.is_movement,
        "outcomes": [] if kind.is_movement else list(OUTCOMES.items()),
        "orders": {
            subject.keys[model]: list(
                wall.orders(kind.is_movement, question_set.run(model).is_scored).items()
            )
            for model in subject.models
        },
        "types": [[key, edit_title(subtype)] for subtype, key in types.items()],
        "cases": [
            entry | {"types": keys}
            for entry, keys in zip(case_entries(subject, cards), narrower, strict=True)
        ],
        "lines": {
            subject.keys[model]: _lines(subject, model, kind_name, types)
            for model in subject.models
        },
        "legend": json.legend([case_card(card, kind) for card in cards]),
        "patterns": {
            subject.keys[model]: [
                _chip(subject, model, kind_name, pattern, numbers) for pattern in clear
            ]
            for model, clear in patterns.items()
        },
    }


def _numbers(
    subject: Subject,
    kind_name: str,
    patterns: Mapping[str, Sequence[Pattern]],
    slices: Sequence[str],
) -> list[int]:
    """Return the numbers of the cases to publish: for every model, the first cases for each outcome, of all cases and
    of each named slice, and for each pattern.

    The worst cases come first.
    """
    filters = []
    outcomes = {"all": 1.0} if not patterns else NARROW
    for name, model, (outcome, share) in product(["", *slices], subject.models, outcomes.items()):
        count = max(1, math.ceil(share * subject.limits.n_cases))
        filters.append((Filter(model, kind_name, outcome=outcome, named_slice=name), count))
    for model, clear in patterns.items():
        filters += [
            (Filter(model, kind_name, pair=(pattern.key,)), OF_PATTERN) for pattern in clear
        ]
    numbers: dict[int, None] = {}
    for case_filter, count in filters:
        for is_grouped in (True, False):  # one case per picture, then the worst overall
            cards, _, _ = views.wall.wall(subject.question_set, case_filter, 1, count, is_grouped)
            numbers |= dict.fromkeys(card.case for card in cards)
    return list(numbers)


def _lines(subject: Subject, model: str, kind_name: str, types: Mapping[str, str]) -> Values:
    """Return the heading, rate and number of cases for each type or slice and outcome, over the whole question set."""
    question_set, run = subject.question_set, subject.question_set.run(model)
    kind = subject.presentation.kind(kind_name)
    outcomes = ["all"] if kind.is_movement else list(OUTCOMES)
    lines: Values = {}
    for subtype, type_key in {"": "", **types}.items():
        every = Filter.parse(model, kind_name, outcome="all", **wall.narrowed(subtype))
        counts = views.cases.outcomes(question_set, every)
        is_rate = not kind.is_movement and counts["all"]
        rate = f"fooled by {wall.rate_text(counts, run.n_orders)}" if is_rate else ""
        for outcome in outcomes:
            case_filter = replace(every, outcome=outcome)
            cards, n_pictures, n_cases = views.wall.wall(question_set, case_filter, 1, 1)
            has_pictures = any(card.images for card in cards)
            heading = wall.heading(kind, outcome, n_cases, n_pictures, has_pictures, run.is_scored)
            lines[f"{type_key}:{outcome}"] = [heading, rate, n_cases]
    return lines


def _chip(
    subject: Subject, model: str, kind_name: str, pattern: Pattern, numbers: Sequence[int]
) -> Values:
    """Return a pattern as words and numbers, with the positions of its cases on the page."""
    source, target = wall.pattern_words(pattern.key)
    case_filter = Filter(model, kind_name, outcome="all", pair=(pattern.key,))
    members, *_ = views.cases.passing(subject.question_set, case_filter)
    others = "the average" if pattern.key.startswith(wall.TYPE) else "edits of the same type"
    times = f"{pattern.lift:.1f} times as often as {others} ({100 * pattern.base:.1f} %)"
    return {
        "source": source,
        "target": target,
        "rate": pattern.rate,
        "counts": f"{pattern.n_believed:,} of {pattern.n_asked:,}",
        "tip": f"Fools the model {times}, on {pattern.n_pictures:,} pictures",
        "cases": np.flatnonzero(np.isin(numbers, members)).tolist(),
    }


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
        written = annotations.read(subject.question_set.store, subject.question_set.key).current
        noted = {annotation.case: annotation for annotation in written}
    codes = subject.question_set.cases.picture_codes
    entries = []
    for card, by_model in zip(cards, answers, strict=True):
        annotation = noted.get(card.case)
        shared = _shared(subject, by_model[subject.models[0]], annotation)
        tags = ", ".join(annotation.tags) if annotation else ""
        drawn = {
            id(answer): {
                **json.wall_card(
                    answer,
                    subject.shelf.key,
                    remarks=[f"Tags: {tags}"] * bool(tags),
                    renamed=subject.names,
                    badge=False,
                ),
                "id": subject.case_key(card.case),
                **pictures_and_captions(subject, answer),
                **shared,
            }
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
            views.wall.cards(subject.question_set, Filter(model, cards[0].kind), numbers)
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
                answer = replace(
                    card,
                    margin=verdict.margin,
                    spread=verdict.spread,
                    is_scored=verdict.is_scored,
                )
                drawn[look] = case_card(answer, kind)
            by_model[model] = drawn[look]
        rows.append(by_model)
    return rows


def _distinct(by_model: Mapping[str, CaseCard]) -> list[CaseCard]:
    return list({id(card): card for card in by_model.values()}.values())


def _shared(subject: Subject, card: CaseCard, annotation: Annotation | None) -> Values:
    """Return the parts of the drawer that are the same for all models: bars, tags, note, credits and properties."""
    credits = credit(card.case.tags, _credits(subject, card.case))
    with_notes = subject.limits.with_notes
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
        "bars": inert(html.bars(card, subject.model_looks, subject.names, subject.limits.compared)),
        "rest": inert(details),
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
    names = filter(None, (*card.images[:2], card.wrong_image))
    paths = [path for name in names for path in Picture.from_name(name).paths]
    return [
        subject.credits[path.name].text
        for path in paths
        if path.name in subject.credits and not picture_credit(str(path))  # shown below the picture
    ]
