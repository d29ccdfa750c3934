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
from vlprobe.views.named_slices import PREFIX
from vlprobe.views.patterns import Pattern

MOST_PATTERNS = 12  # per model
OF_PATTERN = 8  # cases per pattern
MOST_TYPES = 24
NARROW = {"fooled": 1.0, "tied": 0.5, "held": 0.5}  # share of the limit, by outcome
OUTCOMES = {"fooled": "Fooled", "tied": "Tied", "held": "Not fooled", "all": "All"}


def keys_of_types(subject: Subject, kind_name: str) -> dict[str, str]:
    """Return what addresses on the site call each type of case and each named slice ("slice:NAME"), in display order.

    A type is called by its index. A slice keeps its name, so that a link to it stays valid when others are saved.
    """
    counts = views.showcase.lie_counts(subject.store, subject.question_set, kind_name)
    types = sorted({count.subtype for count in counts if count.subtype}, key=slice_order)
    slices = views.named_slices.of_kind(subject.store, subject.question_set.key, kind_name)
    keys = {name: str(number) for number, name in enumerate(types[:MOST_TYPES])}
    return keys | {PREFIX + name: PREFIX + name for name in slices}


def explore_values(subject: Subject, kind_name: str, linked_cases: Sequence[int] = ()) -> Values:
    """Return the data for the Explore page of a kind of case, including the cases that other pages link to."""
    kind = subject.presentation.kind(kind_name)
    types = keys_of_types(subject, kind_name)
    store, question_set = subject.store, subject.question_set
    patterns: dict[str, Sequence[Pattern]] = {}
    if not kind.is_movement:
        for model in subject.models:
            summary = views.patterns.patterns(store, question_set, Filter(model, kind_name))
            patterns[model] = summary.patterns[:MOST_PATTERNS]
    slices = views.named_slices.of_kind(store, question_set.key, kind_name)
    published = _numbers(subject, kind_name, patterns, list(slices))
    numbers = list(dict.fromkeys([*published, *linked_cases]))
    case_filter = Filter(subject.models[0], kind_name)
    cards = views.wall.cards(store, question_set, case_filter, numbers)
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
        "types": [[key, value_label(subtype)] for subtype, key in types.items()],
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
            cards, _, _ = views.wall.wall(
                subject.store, subject.question_set, case_filter, 1, count, is_grouped
            )
            numbers |= dict.fromkeys(card.case for card in cards)
    return list(numbers)


def _lines(subject: Subject, model: str, kind_name: str, types: Mapping[str, str]) -> Values:
    """Return the heading, rate and number of cases for each type or slice and outcome, over the whole question set."""
    kind = subject.presentation.kind(kind_name)
    outcomes = ["all"] if kind.is_movement else list(OUTCOMES)
    lines: Values = {}
    for subtype, type_key in {"": "", **types}.items():
        every = Filter.parse(model, kind_name, outcome="all", **wall.narrowed(subtype))
        counts = views.cases.outcomes(subject.store, subject.question_set, every)
        for outcome in outcomes:
            case_filter = replace(every, outcome=outcome)
            lines[f"{type_key}:{outcome}"] = _line(subject, kind, case_filter, counts)
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
