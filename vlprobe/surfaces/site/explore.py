"""The Explore page of a site: the cases of one kind as cards, for every model, with filters.

A site contains only the first cases for each model and outcome, and for each pattern. All counts refer to the whole
question set, and the page shows the number of cases.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from vlprobe import views
from vlprobe.case import json
from vlprobe.case.card import case_card, wrong_captions
from vlprobe.render import wall
from vlprobe.render.words import slice_order, value_label
from vlprobe.surfaces.site.cases import case_entries
from vlprobe.surfaces.site.subject import Subject, Values
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.filter import Filter
from vlprobe.views.patterns import Pattern

MOST_PATTERNS = 12  # per model
OF_PATTERN = 8  # cases per pattern
MOST_TYPES = 24
NARROW = {"fooled": 1.0, "tied": 0.5, "held": 0.5}  # share of the limit, by outcome
OUTCOMES = {"fooled": "Fooled", "tied": "Tied", "held": "Not fooled", "all": "All"}


def types_of(subject: Subject, kind_name: str) -> list[str]:
    """Return the types of cases in a kind, in display order. Addresses on the site refer to a type by its index."""
    counts = views.showcase.lie_counts(subject.store, subject.question_set, kind_name)
    return sorted({count.subtype for count in counts if count.subtype}, key=slice_order)[
        :MOST_TYPES
    ]


def explore_values(subject: Subject, kind_name: str, linked_cases: Sequence[int] = ()) -> Values:
    """Return the data for the Explore page of a kind of cases, including the cases that other pages link to."""
    kind = subject.presentation.kind(kind_name)
    types = types_of(subject, kind_name)
    store, question_set = subject.store, subject.question_set
    patterns: dict[str, Sequence[Pattern]] = {}
    if not kind.is_movement:
        for model in subject.models:
            summary = views.patterns.patterns(store, question_set, Filter(model, kind_name))
            patterns[model] = summary.patterns[:MOST_PATTERNS]
    numbers = list(dict.fromkeys([*_numbers(subject, kind_name, patterns), *linked_cases]))
    case_filter = Filter(subject.models[0], kind_name)
    cards = views.wall.cards(store, question_set, case_filter, numbers)
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
        "types": [[number, value_label(subtype)] for number, subtype in enumerate(types)],
        "cases": [
            entry | {"type": types.index(card.subtype) if card.subtype in types else -1}
            for entry, card in zip(case_entries(subject, kind_name, numbers), cards, strict=True)
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
    subject: Subject, kind_name: str, patterns: Mapping[str, Sequence[Pattern]]
) -> list[int]:
    """Return the numbers of the cases to publish: for every model, the first cases for each outcome and each pattern.

    The worst cases come first.
    """
    filters = []
    outcomes = {"all": 1.0} if not patterns else NARROW
    for model, (outcome, share) in product(subject.models, outcomes.items()):
        count = max(1, math.ceil(share * subject.limits.n_cases))
        filters.append((Filter(model, kind_name, outcome=outcome), count))
    for model, clear in patterns.items():
        filters += [
            (Filter(model, kind_name, pair=(pattern.key,)), OF_PATTERN) for pattern in clear
        ]
    numbers: dict[int, None] = {}
    for case_filter, count in filters:
        for is_grouped in (True, False):  # one case per picture, then the worst overall
            cards, _, _ = views.wall.wall(
                subject.store, subject.question_set, case_filter, 1, count, is_grouped
            )
            numbers |= dict.fromkeys(card.case for card in cards)
    return list(numbers)


def _lines(subject: Subject, model: str, kind_name: str, types: Sequence[str]) -> Values:
    """Return the heading, rate and number of cases for each type and outcome, over the whole question set."""
    kind = subject.presentation.kind(kind_name)
    outcomes = ["all"] if kind.is_movement else list(OUTCOMES)
    lines: Values = {}
    for number, subtype in (("", ""), *enumerate(types)):
        every = Filter.parse(model, kind_name, subtype=subtype, outcome="all")
        counts = views.cases.outcomes(subject.store, subject.question_set, every)
        for outcome in outcomes:
            case_filter = replace(every, outcome=outcome)
            lines[f"{number}:{outcome}"] = _line(subject, kind, case_filter, counts)
    return lines


def _line(
    subject: Subject, kind: KindPresentation, case_filter: Filter, counted: Mapping[str, int]
) -> list[object]:
    cards, n_pictures, n_cases = views.wall.wall(
        subject.store, subject.question_set, case_filter, 1, 1
    )
    heading = wall.heading(
        kind,
        case_filter.outcome,
        n_cases,
        n_pictures,
        any(card.images for card in cards),
        subject.question_set.run(case_filter.model).is_scored,
    )
    rate = ""
    if not kind.is_movement and counted["all"]:
        n_orders = subject.question_set.run(case_filter.model).n_orders
        rate = f"fooled by {wall.rate_text(counted, n_orders)}"
    return [heading, rate, n_cases]


def _chip(
    subject: Subject, model: str, kind_name: str, pattern: Pattern, numbers: Sequence[int]
) -> Values:
    """Return a pattern as words and numbers, with the positions of its cases on the page."""
    source, target = wall.pattern_words(pattern.key)
    case_filter = Filter(model, kind_name, outcome="all", pair=(pattern.key,))
    members, *_ = views.cases.passing(subject.store, subject.question_set, case_filter)
    return {
        "source": source,
        "target": target,
        "rate": pattern.rate,
        "counts": f"{pattern.n_believed:,} of {pattern.n_asked:,}",
        "tip": f"{wall.lift_words(pattern)}, on {pattern.n_pictures:,} pictures",
        "cases": np.flatnonzero(np.isin(numbers, members)).tolist(),
    }
