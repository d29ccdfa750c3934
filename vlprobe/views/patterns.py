"""Patterns: word replacements that fool a model far more often than other edits of the same type.

A pattern has at least ASKED answers and fools the model at least LIFT times as often as the average
edit of the same type does; a type is compared with the average edit of its kind instead. The
pattern must also be significant: its q-value is at most Q in a one-sided test that is corrected over
all patterns with at least ASKED answers (Benjamini and Hochberg). The test clusters cases by picture
(`metrics.clustered`), because several wrong captions for one picture are not independent
observations: a model often gives them the same outcome. This agreement is estimated from the data, without a normal
approximation, so the test is valid even if a pattern has only three pictures. `views.pattern_groups` defines the
possible patterns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vlprobe.metrics import clustered
from vlprobe.views import cases as views_cases
from vlprobe.views import pattern_groups as views_groups
from vlprobe.views.filter import Filter
from vlprobe.views.runs import QuestionSet

ASKED = 15
LIFT = 2.0
Q = 0.05


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern and how often it fools one model. Ties count as fooled, and unanswered cases are not counted."""

    key: str  # in the form of `Filter.pair` and of links
    source: str  # removed words; "" for a type or a tag, and if the removed words can be any
    target: str  # inserted words
    n_asked: int
    n_believed: int
    n_pictures: int
    rate: float
    base: float  # rate of the average edit of the same type, for the mix of types of these cases
    excess: float  # how many more cases fooled the model than the base rate predicts
    lift: float  # rate divided by base rate
    low: float  # 95 % interval of the lift, clustered by picture; NaN if it is not a pattern
    high: float
    p: float  # one-sided, clustered by picture
    q: float


@dataclass(frozen=True, slots=True)
class Patterns:
    """The patterns found for a model, and the cases in which they were searched for."""

    patterns: tuple[Pattern, ...]  # largest excess first; () if there are none
    n_groups: int  # number of groups with at least ASKED answers
    average: float  # rate of the average wrong caption of the kind; NaN if no model can be fooled
    n_lies: int  # number of wrong captions of the kind
    n_chosen: int  # number of cases that the filter selects and the model answered


NOTHING = Patterns((), 0, float("nan"), 0, 0)


def patterns(question_set: QuestionSet, case_filter: Filter) -> Patterns:
    """Find the patterns that fool the filter's model significantly often, among the cases that pass the filter.

    The filter's outcome, order, second model and patterns are ignored. The average rate for a type is computed over all
    questions of the kind.

    If the filter selects searches lost to the picture's own mixture, these searches count as fooled,
    and the searches that are not lost count as answered but not fooled. A pattern shared by all selected cases, such as
    the type in the filter, is omitted.
    """
    everything = candidates(question_set, case_filter)
    return replace(
        everything,
        patterns=tuple(
            pattern
            for pattern in everything.patterns
            if pattern.q <= Q and pattern.lift >= LIFT and pattern.n_asked < everything.n_chosen
        ),
    )


def pattern_of(question_set: QuestionSet, kind: str, case: int) -> str:
    """Return the key of the pattern for the words that a case replaces, or "" if no words were replaced."""
    groups = views_groups.pattern_groups(question_set.cases, question_set.probe, kind)
    keys = views_groups.keys_of(groups, case)
    return next((key for key in keys if all(views_groups.words_of(key))), "")


def candidates(question_set: QuestionSet, case_filter: Filter) -> Patterns:
    """Return all patterns with at least ASKED answers, whether or not they are significant; see `patterns`."""
    cases = question_set.cases
    groups = views_groups.pattern_groups(cases, question_set.probe, case_filter.kind)
    if not case_filter.kind or not len(groups.keys):
        return NOTHING
    model = case_filter.model
    answers = question_set.answers(model)
    kind_filter = Filter(model, case_filter.kind, outcome="all")
    is_member, is_believed = views_groups.answers(groups, answers)
    margins = answers.margins
    is_of_kind = _mask(question_set, kind_filter, len(margins))
    is_lie = is_of_kind & ~np.isnan(margins)
    is_lost = np.ones(len(margins), dtype=bool)
    if case_filter.lost_to:
        is_lost = _mask(question_set, replace(kind_filter, lost_to=True), len(margins))
        is_believed = is_believed & is_lost[groups.cases]
    types, _ = cases.codes("subtype")
    type_of_lie, believed_lies = types[is_lie], (margins <= 0)[is_lie] & is_lost[is_lie]
    if groups.captions is not None:
        of_kind = is_member & is_of_kind[groups.cases]
        type_of_lie, believed_lies = types[groups.cases[of_kind]], is_believed[of_kind]
    if not len(believed_lies):
        return NOTHING
    average = float(np.mean(believed_lies))
    n_types = int(types.max()) + 1
    type_rates = np.bincount(type_of_lie, believed_lies, n_types) / np.maximum(
        np.bincount(type_of_lie, minlength=n_types), 1
    )
    question_filter = replace(case_filter.any_outcome(), other="", sort="worst", pair=())
    is_chosen = is_of_kind
    if question_filter != kind_filter:
        is_chosen = _mask(question_set, question_filter, len(margins))
    is_member = is_member & is_chosen[groups.cases]
    counts = np.bincount(groups.codes[is_member], minlength=len(groups.keys))
    member = np.flatnonzero(is_member & (counts >= ASKED)[groups.codes])
    tested, code = np.unique(groups.codes[member], return_inverse=True)
    units = cases.unit_codes[groups.cases[member]]
    rates = clustered.group_rates(code, units, is_believed[member])
    keys = [groups.keys[index] for index in tested.tolist()]
    bases = np.bincount(code, type_rates[types[groups.cases[member]]], len(keys)) / np.maximum(
        rates.n_cases, 1
    )
    is_type = np.array([key.startswith(views_groups.TYPE) for key in keys], dtype=bool)
    bases = np.where(is_type, average, bases)
    n_chosen = int((is_chosen & is_lie).sum())
    return Patterns(_tested(keys, rates, bases), len(keys), average, len(believed_lies), n_chosen)


def _mask(question_set: QuestionSet, question_filter: Filter, n_cases: int) -> np.ndarray:
    """Return for each case whether it passes a filter: bool of shape (n_cases,)."""
    numbers, _, _ = views_cases.passing(question_set, question_filter)
    is_matching = np.zeros(n_cases, dtype=bool)
    is_matching[numbers] = True
    return is_matching


def _tested(
    keys: Sequence[str], groups: clustered.GroupRates, bases: np.ndarray
) -> tuple[Pattern, ...]:
    """Test each group of cases against its base rate. Return the groups as patterns, largest excess first."""
    p = clustered.chance_of_more(groups, bases)
    q = clustered.benjamini_hochberg(p)
    lift = np.divide(groups.rates, bases, out=np.full(len(keys), np.nan), where=bases > 0)
    clear = np.flatnonzero((q <= Q) & (lift >= LIFT))
    ends = np.full((2, len(keys)), np.nan)
    ends[:, clear] = np.divide(clustered.rate_interval(groups.only(clear)), bases[clear])
    counts = groups.n_cases.astype(int), groups.n_events.astype(int), groups.n_clusters
    excess = groups.n_events - bases * groups.n_cases
    numbers = (*counts, groups.rates, bases, excess, lift, *ends, p, q)
    columns = zip(keys, *(column.tolist() for column in numbers), strict=True)
    listed = [Pattern(key, *views_groups.words_of(key), *numbers) for key, *numbers in columns]
    return tuple(sorted(listed, key=lambda pattern: (-pattern.excess, pattern.key)))
