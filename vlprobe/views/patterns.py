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

from dataclasses import dataclass

import numpy as np

from vlprobe.metrics import clustered
from vlprobe.views import pattern_groups as views_groups
from vlprobe.views.runs import QuestionSet

ASKED = 15
LIFT = 2.0
Q = 0.05


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern and how often it fools one model. Ties count as fooled, and unanswered cases are not counted."""

    key: str  # in the form of `Filter.pair` and of links
    n_asked: int
    n_believed: int
    n_pictures: int
    rate: float
    base: float  # rate of the average edit of the same type, for the mix of types of these cases
    excess: float  # how many more cases fooled the model than the base rate predicts
    lift: float  # rate divided by base rate
    q: float  # of a one-sided test, clustered by picture


def patterns(question_set: QuestionSet, model: str, kind: str) -> tuple[Pattern, ...]:
    """Find the patterns that fool a model significantly often, among all cases of a kind."""
    every = candidates(question_set, model, kind)
    return tuple(pattern for pattern in every if pattern.q <= Q and pattern.lift >= LIFT)


def pattern_of(question_set: QuestionSet, kind: str, case: int) -> str:
    """Return the key of the pattern for the words that a case replaces, or "" if no words were replaced."""
    groups = views_groups.pattern_groups(question_set.cases, question_set.probe, kind)
    keys = views_groups.keys_of(groups, case)
    return next((key for key in keys if all(views_groups.words_of(key))), "")


def candidates(question_set: QuestionSet, model: str, kind: str) -> tuple[Pattern, ...]:
    """Return all patterns with at least ASKED answers, whether or not they are significant, the largest excess first;
    see `patterns`.
    """
    cases = question_set.cases
    groups = views_groups.pattern_groups(cases, question_set.probe, kind)
    if not kind or not len(groups.keys):
        return ()
    answers = question_set.answers(model)
    is_member, is_believed = views_groups.answers(groups, answers)
    margins = answers.margins
    is_of_kind = np.zeros(len(margins), dtype=bool)
    is_of_kind[cases.numbers("kind = ?", [kind])] = True
    is_member = is_member & is_of_kind[groups.cases]
    is_lie = is_of_kind & ~np.isnan(margins)
    types, _ = cases.codes("subtype")
    type_of_lie, believed_lies = types[is_lie], (margins <= 0)[is_lie]
    if groups.captions is not None:
        type_of_lie, believed_lies = types[groups.cases[is_member]], is_believed[is_member]
    if not len(believed_lies):
        return ()
    average = float(np.mean(believed_lies))
    n_types = int(types.max()) + 1
    type_rates = np.bincount(type_of_lie, believed_lies, n_types) / np.maximum(
        np.bincount(type_of_lie, minlength=n_types), 1
    )
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
    q = clustered.benjamini_hochberg(clustered.chance_of_more(rates, bases))
    lift = np.divide(rates.rates, bases, out=np.full(len(keys), np.nan), where=bases > 0)
    totals = rates.n_cases.astype(int), rates.n_events.astype(int), rates.n_clusters
    excess = rates.n_events - bases * rates.n_cases
    numbers = (*totals, rates.rates, bases, excess, lift, q)
    columns = zip(keys, *(column.tolist() for column in numbers), strict=True)
    listed = [Pattern(*column) for column in columns]
    return tuple(sorted(listed, key=lambda pattern: (-pattern.excess, pattern.key)))
