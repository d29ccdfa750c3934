"""Facets for filtering cases: for each value of a property, the number of cases and how many of them fool the model."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from vlprobe.storage import annotations
from vlprobe.views import caption_bins, cases, causes, estimates, pattern_groups, rows
from vlprobe.views.filter import Filter
from vlprobe.views.pattern_groups import PatternGroups
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tables import CaseTable, remember

LEAST_ASKED = 15  # minimum number of answered cases for a pair of words
FEW_PAIRS, FEW_ASKED = 5, 3  # of fewer pairs with so many cases, rarer ones are listed as well
UNLISTED_TAGS = ("subset", "picture")  # same as the subtype, and the resampling unit


@dataclass(frozen=True, slots=True)
class FacetRow:
    """One value in a facet, with the number of cases and the number of failures.

    Attributes:
        value: The value, as in the filter's field.
        n_asked: Number of cases with the value that the model answered, regardless of the outcomes
            in the filter.
        n_fooled: Number of cases that pass the outcomes in the filter; if the filter has no outcome,
            the number of cases that fool the model. Rewordings cannot fool a model, so all their cases are counted.
        weight: Sum of the weights of those cases, see `halved_models`.
    """

    value: str
    n_asked: int
    n_fooled: int
    weight: float

    @property
    def share(self) -> float:
        """Share of the answered cases that pass the outcomes in the filter, by weight."""
        return self.weight / max(self.n_asked, 1)


@dataclass(frozen=True, slots=True)
class Facet:
    """The values of one property, sorted by failure rate (highest first), those with too few cases last. Values that
    the filter already requires or excludes in this facet do not restrict the counts.

    Attributes:
        name: "subtype", "rule", "pair", "unseen_by", "tagged", or the name of a kind of slice: "tag:NAME",
            "changed_words", "caption_length", "word_frequency", "text_alone".
        rows: At least two values, or one value that is in the filter. The facet "tagged" may have a single value.
            A value of the kind stays listed if no case passes the other filters, so that a press moves no row.
    """

    name: str
    rows: tuple[FacetRow, ...]


def facets(question_set: QuestionSet, case_filter: Filter) -> tuple[Facet, ...]:
    """Return the facets of the filter's cases.

    A facet with only one value in all cases of the kind is omitted unless the filter selects that value. Hidden
    suspect labels still count.
    """
    case_filter = replace(case_filter, suspects=False)
    is_movement = question_set.presentation.kind(case_filter.kind).is_movement
    every = Filter(case_filter.model, case_filter.kind, outcome="all")
    selections = {every: _selected(question_set, every, is_movement)}
    shown = []
    for name, members in _facet_members(question_set, case_filter):
        chosen = [value for values in case_filter.values_of(name) for value in values]
        others = case_filter.with_values(name, ())
        if others not in selections:
            selections[others] = _selected(question_set, others, is_movement)
        is_asked, weights = (values[members.cases] for values in selections[others])
        n_all, n_asked, n_fooled = (
            np.bincount(members.codes[mask], minlength=len(members.keys))
            for mask in (selections[every][0][members.cases], is_asked, weights > 0)
        )
        summed = np.bincount(members.codes, weights, minlength=len(members.keys))
        is_listed = (n_all >= _least(n_all, name)) | (n_asked >= _least(n_asked, name))
        listed = [
            FacetRow(value, int(total), int(fooled), float(weight))
            for value, total, fooled, weight, listed_here in zip(
                members.keys, n_asked, n_fooled, summed, is_listed, strict=True
            )
            if value and (listed_here or value in chosen)
        ]
        if chosen or len(listed) > (name != "tagged"):
            least = _least(n_asked, name)
            listed.sort(key=lambda row: (row.n_asked < least, -row.share, -row.n_asked))
            shown.append(Facet(name, tuple(listed)))
    return tuple(shown)


def _least(n_asked: np.ndarray, name: str) -> int:
    """Return the minimum number of cases of a value, from the numbers of all values. Pairs of words are many."""
    if name != "pair":
        return 1
    return LEAST_ASKED if np.count_nonzero(n_asked >= LEAST_ASKED) >= FEW_PAIRS else FEW_ASKED


def weigh(question_set: QuestionSet, case_filter: Filter) -> tuple[float, int]:
    """Return the weight of the cases that pass the outcomes in a filter, as in its facets, and the number of answered
    cases, of which the weight is a share.
    """
    is_movement = question_set.presentation.kind(case_filter.kind).is_movement
    is_asked, weights = _selected(question_set, replace(case_filter, suspects=False), is_movement)
    return float(weights.sum()), int(np.count_nonzero(is_asked))


def halved_models(question_set: QuestionSet, case_filter: Filter) -> list[str]:
    """Return the models that the filter requires to be fooled and that saw the captions in both orders. A case that
    fools such a model in only one order has half the weight, so each further requirement can only lower a share.
    """
    models = [*case_filter.fooled]
    if case_filter.other_outcome == "fooled":
        models.append(case_filter.other)
    is_rate = replace(case_filter, suspects=False) == case_filter.any_outcome()
    if is_rate or case_filter.outcome in ("fooled", "tied"):
        models.append(case_filter.model)
    return [model for model in dict.fromkeys(models) if question_set.run(model).n_orders == 2]


def model_rates(question_set: QuestionSet, case_filter: Filter) -> dict[str, float]:
    """Compute the share of a filter's cases that fool each model, ignoring the outcomes that the
    filter selects.

    The share is NaN if the model answered none of the cases. Ties count as fooled; a case that
    fools the model in one of two orders of the captions counts half, as on every page.
    """
    numbers, _, _ = cases.passing(question_set, case_filter.any_outcome())
    of_models = rows.margins(question_set, question_set.models, numbers)
    rates = {}
    for run, margins in zip(question_set.runs, of_models, strict=True):
        margins = margins[~np.isnan(margins)]
        zero = 0.5 if run.n_orders == 2 else 1.0
        fooled = np.where(margins == 0, zero, margins < 0)
        rates[run.model] = float(fooled.mean()) if len(fooled) else math.nan
    return rates


def _selected(
    question_set: QuestionSet, case_filter: Filter, is_movement: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each case was answered, bool, and its weight among the failures, float (0 for others), of shape
    (n_cases,) each.
    """
    margins = question_set.answers(case_filter.model).margins
    is_asked, weights = np.zeros(len(margins), dtype=bool), np.zeros(len(margins))
    is_asked[cases.passing(question_set, case_filter.any_outcome())[0]] = True
    halved = halved_models(question_set, case_filter)
    if case_filter == case_filter.any_outcome() and not is_movement:
        case_filter = replace(case_filter, outcome="fooled")
    numbers, _, _ = cases.passing(question_set, case_filter)
    is_in_one_order = rows.margins(question_set, halved, numbers) == 0
    weights[numbers] = 0.5 ** is_in_one_order.sum(axis=0)
    is_asked &= ~np.isnan(margins)
    return is_asked, weights * is_asked


def _facet_members(
    question_set: QuestionSet, case_filter: Filter
) -> Iterator[tuple[str, PatternGroups]]:
    table = question_set.cases
    answers = question_set.answers(case_filter.model)

    def by_case(codes: np.ndarray, names: Sequence[str]) -> PatternGroups:
        listed = np.flatnonzero(codes >= 0)
        return PatternGroups(listed, codes[listed], tuple(names))

    if of_tag := annotations.read(question_set.store, question_set.key).cases:
        numbers, codes = np.array(
            [(case, code) for code, cases_ in enumerate(of_tag.values()) for case in cases_]
        ).T
        exists = numbers < len(answers.margins)  # the file of tags may name others
        yield "tagged", PatternGroups(numbers[exists], codes[exists], tuple(of_tag))
    for name in ("subtype", "rule"):
        yield name, by_case(*table.codes(name))
    if not question_set.presentation.kind(case_filter.kind).is_movement:
        of_model = causes.causes(question_set, case_filter.model, case_filter.kind)
        codes = pd.Categorical(of_model["cause"], list(causes.LABELS)).codes
        yield "unseen_by", PatternGroups(of_model.index.to_numpy(), codes, tuple(causes.LABELS))
    groups = pattern_groups.pattern_groups(table, question_set.probe, case_filter.kind)
    is_member = np.array([all(pattern_groups.words_of(each)) for each in groups.keys], dtype=bool)
    if is_member.any():
        listed = is_member[groups.codes] & pattern_groups.answers(groups, answers)[0]
        yield "pair", PatternGroups(groups.cases[listed], groups.codes[listed], groups.keys)
    tags = remember(("tags", table.version), lambda: _tags(question_set, table))
    yield from tags.items()
    for binned_by, values in caption_bins.VALUES.items():
        # Guessing without the picture takes seconds, so only if the filter asks for it
        if binned_by != caption_bins.TEXT_ALONE or any(case_filter.values_of(binned_by)):
            yield binned_by, by_case(caption_bins.bin_codes(table, binned_by), values)


def _tags(question_set: QuestionSet, cases_table: CaseTable) -> dict[str, PatternGroups]:
    """Return the groups of cases for each dataset tag with at most 60 values, by facet name."""
    names = {text.partition("=")[0] for text in estimates.tag_values(question_set)}
    groups = {}
    for name in sorted(names.difference(UNLISTED_TAGS)):
        table = question_set.store.fetch_table(
            'SELECT "case", tags[?] AS value FROM read_parquet(?) WHERE tags[?] IS NOT NULL',
            [name, [cases_table.path], name],
        )
        codes, values = pd.factorize(table["value"], sort=True)
        groups[f"tag:{name}"] = PatternGroups(table["case"].to_numpy(), codes, tuple(values))
    return groups
