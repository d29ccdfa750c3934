"""Findings in words: which model is better in a comparison, in a ranking or in a trade-off.

No other module states that a model is better, and this one never claims more than `views.paired_tests` proves. A model
is called better only if the difference is clear after the correction for all tests and the model is above guessing. A
control, or a model that failed its checks, is never called better. All other results are tied or unknown.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from vlprobe.case.card import wrong_captions
from vlprobe.registry import is_control
from vlprobe.render.numbers import number, power
from vlprobe.render.sentences import (
    MOST_NAMES,
    common,
    count_word,
    counted,
    does_better,
    joined,
    listed,
    nouns,
    sentence_names,
)
from vlprobe.render.words import model_name
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.named_slices import PREFIX
from vlprobe.views.paired_tests import MOST_COMPARED, Leader, ModelShare, PairedTest, PairedTests
from vlprobe.views.records import EstimateRow, PointRow, records

MOST_AHEAD = 2  # models whose better types of edit a heading about another model names
MOST_SKILLS = 3  # longer lists of types of edit or tied models are only counted
UNFIT = "a basic check here (matching pictures with their captions)"
WIDE = 0.2  # with a wider interval, it is unknown whether a model guesses
CLEAR = "paired tests, p < .05 after Holm's correction"
MOVEMENT_UNITS = {"cosine": " (cosine)", "spread": " of its own spread", "rate": ""}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The finding from a comparison: a heading, a detail, and the test that proves the heading.

    Attributes:
        short: The part of the detail to show below the heading: shares, ties and failed checks.
        more: The rest of the detail: the detectable difference and other rivals.
    """

    heading: str
    short: str
    row: PairedTest
    more: str = ""

    @property
    def detail(self) -> str:
        """The text that belongs to the heading."""
        return joined(self.short, self.more)


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding from a trade-off: a heading, a detail, and the best model."""

    heading: str
    detail: str
    best: str = ""  # the model to show first; "" if there is none


def verdict(
    tests: PairedTests, kind: KindPresentation, renamed: Mapping[str, str] | None = None
) -> Verdict:
    """Return the finding from a comparison between two or more models. The first model is the baseline.

    The detail ends with the difference that the tests between tied models could have detected.
    """
    finding = _Comparison(tests, kind, renamed or {}).verdict()
    tied = [row.detectable for row in tests.rows if row.verdict == "tied" and not row.subtype]
    return replace(finding, more=joined(finding.more, power(tied, tests.unit)))


class _Comparison:
    """Writes sentences about one comparison between models."""

    def __init__(
        self, tests: PairedTests, kind: KindPresentation, renamed: Mapping[str, str]
    ) -> None:
        self.tests, self.kind, self.moves = tests, kind, tests.is_movement
        self.base, self.rivals, self.everyone = tests.baseline, tests.rivals, tests.contestants
        self.names = sentence_names([each.model for each in self.everyone], renamed)
        self.fit = [each for each in self.everyone if each.is_fit]
        # Someone chose the cases of a named slice, so no finding names or counts it
        self.subtypes = [each for each in tests.subtypes if each and not each.startswith(PREFIX)]
        self.is_pair = len(self.rivals) == 1

    def verdict(self) -> Verdict:
        """Return the finding from the comparison, which is the first one that applies."""
        rows = [self.tests.row(rival.model) for rival in self.rivals]
        if all(row.verdict == "unknown" for row in rows):
            return self.unknown(rows)
        if not self.fit:
            return Verdict(self.nobody_fit(), self.shares([]), rows[0])
        if not any(each.standing in ("above", "unknown") for each in self.fit):
            guess = f"Guessing gets {number(self.tests.guess, 'rate')}."
            return Verdict(self.guessing(), joined(self.shares([]), guess, *self.notes()), rows[0])
        heading, winners, row = self.heading()
        return Verdict(heading, row=row, **self.details(heading, winners))

    def name(self, model: ModelShare) -> str:
        """Return the name of a model, with the reason why it cannot be called better if there is one."""
        unfit = ", which failed its checks" if model.is_unfit else ""
        return self.names[model.model] + (", a control" if model.is_control else unfit)

    def named(self, models: Iterable[ModelShare]) -> str:
        """List the names of models in the form used in a sentence."""
        return listed([self.names[each.model] for each in models])

    def row(self, rival: ModelShare, subtype: str = "") -> PairedTest:
        """Return the paired test that compares a rival with the baseline."""
        return self.tests.row(rival.model, subtype)

    def having(self, *verdicts: str) -> list[ModelShare]:
        """Return the rivals for which the test on all cases has one of the given verdicts."""
        return [rival for rival in self.rivals if self.row(rival).verdict in verdicts]

    def unknown(self, rows: Sequence[PairedTest]) -> Verdict:
        """Return the finding for a comparison in which no rival has enough data."""
        names = self.named(self.everyone)
        if not (n_lies := max(row.n_lies for row in rows)):
            heading = f"{names} cannot be compared."
            return Verdict(heading, "They did not answer any of the same questions.", rows[0])
        n_pictures = max(row.n_pictures for row in rows)
        common_answers = f"{counted(n_lies, 'question')} on {counted(n_pictures, 'picture')}"
        return Verdict(
            f"There is too little data to compare {names}.",
            f"Both answered only {common_answers}; a test needs at least two pictures.",
            rows[0],
        )

    def nobody_fit(self) -> str:
        """Describe a comparison in which all models are controls or failed their checks."""
        everyone = "Both" if self.is_pair else "All"
        if all(each.is_control for each in self.everyone):
            return f"{everyone} are controls, which should fail."
        if any(each.is_control for each in self.everyone):
            return "Nothing to compare: only controls and models that failed their checks."
        return f"{everyone} models fail {UNFIT}, so interpret the results with care."

    def guessing(self) -> str:
        """Describe a comparison in which no model that passed its checks is better than guessing."""
        fit, is_all = self.fit, len(self.fit) == len(self.everyone)
        subject = ("Neither" if self.is_pair else "None") if is_all else self.named(fit)
        widest = max(each.high - each.low for each in fit)
        if widest > WIDE and all(each.standing == "guessing" for each in fit):
            be = "is" if is_all else f"{_be(fit)} not"
            return f"{subject} {be} known to be better than guessing."
        pronoun = ("both are" if self.is_pair else "all are") if is_all else f"they {_be(fit)}"
        pronoun = "it is" if pronoun == "they is" else pronoun
        below = [each for each in fit if each.standing == "below"]
        compared = f"{pronoun} {'worse than' if below else 'as good as'} guessing"
        if 0 < len(below) < len(fit):
            compared = (
                f"{self.named(below)} {_be(below)} worse than guessing, and the rest are no better"
            )
        return f"{subject} {'can' if is_all else 'cannot'} tell: {compared}."

    def heading(self) -> tuple[str, list[ModelShare], PairedTest]:
        """Return the heading, the models that it calls better, and the test that proves it."""
        base, fit_rivals = self.base, [rival for rival in self.rivals if rival.is_fit]
        if fewer := [rival for rival in self.having("fewer") if rival.may_win]:
            return self.better(fewer, [base])
        if not base.is_fit:
            return self.no_better(fit_rivals, base), [], self.row(fit_rivals[0])
        if equal := [rival for rival in self.having("tied", "fewer") if not rival.is_fit]:
            return self.no_better([base], equal[0]), [], self.row(equal[0])
        tied = [rival for rival in self.having("tied") if rival.is_fit]
        behind = self.having("more") if base.may_win else []
        name = self.names[base.model]
        if not tied and not behind:
            return f"No model here is known to be better than {name}.", [], self.row(self.rivals[0])
        if not tied:
            return self.better([base], behind)
        row = self.row(tied[0])
        if behind:
            row = self.proof([(base, loser) for loser in behind])
            less = self.less([base]).removeprefix("is ")
            heading = (
                f"{name} is tied with {self.named(tied)}, and {less} than {self.named(behind)}."
            )
        elif len(tied) > 1:
            heading = f"{name} is tied with {self.named(tied)}."
        else:
            sides = [(tied[0], base), (base, tied[0])]
            types = {self.names[each[0].model]: self.named_types([each]) for each in sides}
            different = [each for named in types.values() for each in named] or [""]
            row = self.furthest(self.row(tied[0], subtype) for subtype in different)
            return joined(f"{name} and {self.named(tied)} are tied.", self.skills(types)), [], row
        return joined(heading, self.gains([*tied, *behind], [base], {})), [], row

    def better(
        self, winners: list[ModelShare], losers: list[ModelShare]
    ) -> tuple[str, list[ModelShare], PairedTest]:
        """Return a heading that all winners are better than all losers, the winners, and the test that proves it."""
        pairs = [(winner, loser) for winner in winners for loser in losers]
        subject = {1: "It", 2: "Both"}.get(len(winners), "All")
        skills, proof = {subject: self.named_types(pairs)}, self.proof(pairs)
        if not skills[subject] and (ahead := self.ahead(losers, winners)):
            proof = self.proof([(next(iter(ahead)), winner) for winner in winners])
        names = self.name(losers[0]) if len(losers) == 1 else self.named(losers)
        less = f"{self.named(winners)} {self.less(winners)} than {names}."
        return joined(less, self.gains(losers, winners, skills)), winners, proof

    def ahead(
        self, models: Sequence[ModelShare], others: Sequence[ModelShare]
    ) -> dict[ModelShare, list[str]]:
        """Return the types of edit on which models are better than all the others, for those that have such types."""
        types = {each: self.named_types([(each, other) for other in others]) for each in models}
        return {each: of_model for each, of_model in types.items() if of_model}

    def gains(
        self,
        models: Sequence[ModelShare],
        others: Sequence[ModelShare],
        skills: Mapping[str, Sequence[str]],
    ) -> str:
        """Write the `skills`, and on which types of edit models are better than all the others. Many models are only
        named.
        """
        ahead = self.ahead(models, others)
        if len(ahead) <= MOST_AHEAD:
            named = {self.names[each.model]: types for each, types in ahead.items()}
            return self.skills({**skills, **named})
        do = "move less" if self.moves else "do better"
        return joined(self.skills(skills), f"{self.named(ahead)} {do} on some types of edit.")

    def named_types(self, pairs: Sequence[tuple[ModelShare, ModelShare]]) -> list[str]:
        """Return the types of edit on which the first model of each pair is better. If few, only sound ones."""
        types = common([self.better_at(*pair) for pair in pairs])
        return types if len(types) > MOST_SKILLS else self.sound(types)

    def sound(self, subtypes: Sequence[str]) -> list[str]:
        """Leave out the types of edit that can be solved without the picture."""
        return [subtype for subtype in subtypes if subtype not in self.tests.solved]

    def no_better(self, models: Sequence[ModelShare], other: ModelShare) -> str:
        """State that models are not clearly better than a control or than a model that failed its checks."""
        do = "does" if len(models) == 1 else "do"
        return f"{self.named(models)} {do} no better than {self.name(other)}."

    def furthest(self, rows: Iterable[PairedTest]) -> PairedTest:
        """Return the test with the largest difference."""
        return max(rows, key=lambda row: abs(row.difference))

    def proof(self, pairs: Sequence[tuple[ModelShare, ModelShare]]) -> PairedTest:
        """Return the test with the largest difference among the tests that prove the heading.

        The first model of each pair is better than the second. The tests are on the types of edit that the heading
        names, or else, if some types can be solved without the picture, on any other type, or on all cases.
        """
        types = [self.sound(self.better_at(*pair)) for pair in pairs]
        if shared := common(types):
            types = [shared] * len(pairs)
        elif not self.tests.solved or not any(types):
            types = [[""]] * len(pairs)
        rivals = [loser if winner is self.base else winner for winner, loser in pairs]
        each = zip(rivals, types, strict=True)
        return self.furthest(self.row(rival, subtype) for rival, of in each for subtype in of)

    def less(self, models: Sequence[ModelShare], how: str = "less") -> str:
        """State that models are fooled less (or more) often, or for kinds of movement, that their scores move less."""
        if self.moves:
            return f"{'moves' if len(models) == 1 else 'move'} {how}"
        return f"{_be(models)} fooled {how} often"

    def better_at(self, winner: ModelShare, loser: ModelShare) -> list[str]:
        """Return the types of edit on which the winner is clearly better. One of the two is the baseline."""
        is_base = winner is self.base
        rows = [self.row(loser if is_base else winner, subtype) for subtype in self.subtypes]
        return [
            row.subtype
            for row in rows
            if winner.is_fit
            and row.verdict == ("more" if is_base else "fewer")
            and (row.base_standing if is_base else row.standing) in ("above", "unknown")
        ]

    def skills(self, by_subject: Mapping[str, Sequence[str]]) -> str:
        """Return a sentence with the types of edit that each subject is better at; "" if there are none."""
        clauses = [
            f"{subject} {self.clause(subtypes, subject not in ('Both', 'All'))}"
            for subject, subtypes in by_subject.items()
            if subtypes
        ]
        return f"{', '.join(clauses)}." if clauses else ""

    def clause(self, subtypes: Sequence[str], is_one: bool) -> str:
        """Return the part of a sentence that says on which types of edit one or more models are better."""
        if len(subtypes) > MOST_SKILLS:
            of_all = "all" if len(subtypes) == len(self.subtypes) else f"{len(subtypes)} of"
            do = "does" if is_one else "do"
            return f"{do} better on {of_all} {len(self.subtypes)} types of edit"
        if self.moves:
            return f"{'moves' if is_one else 'move'} less on {nouns(subtypes)}"
        return does_better(subtypes, is_one)

    def shares(self, winners: Sequence[ModelShare]) -> str:
        """State how often each model is fooled, or how far its scores move. Better models come first."""
        unit = self.tests.unit
        values = {each.model: each.share for each in self.everyone}
        start, end = "is fooled by", f" of the {wrong_captions(self.kind)}"
        if self.moves:
            start, end = "moves by", MOVEMENT_UNITS[unit]
        elif self.is_pair:  # shares on the cases that both models answered
            row = self.row(self.rivals[0])
            values = {self.base.model: row.base, self.rivals[0].model: row.value}
        rated = [each for each in self.everyone if not math.isnan(values[each.model])]
        first, *others = sorted(rated, key=lambda each: each not in winners)[:MOST_COMPARED]
        subject = "It" if len(winners) == 1 else self.names[first.model]
        format_unit = "rate" if unit == "rate" else "cosine"
        texts = {model: number(value, format_unit) for model, value in values.items()}
        figures = [f"{subject} {start} {texts[first.model]}{end}"]
        figures += [f"{self.names[each.model]} by {texts[each.model]}" for each in others]
        return f"{', '.join(figures)}."

    def details(self, heading: str, winners: Sequence[ModelShare]) -> dict[str, str]:
        """Return the parts of the text below the heading, as in `Verdict`."""
        ties = detectable = ""
        losers = self.having("more") if self.base in winners else [self.base]
        if len(winners) == len(losers) == 1:
            ties, detectable = self.ties(losers[0] if self.base in winners else winners[0])
        more = []
        if not self.is_pair:
            others = [rival for rival in self.rivals if rival not in winners and rival.is_fit]
            more = self.others(others, heading)
        notes = self.notes("a control" not in heading)
        short = joined(self.shares(winners), ties, *notes)
        return {"short": short, "more": joined(detectable, *more)}

    def ties(self, rival: ModelShare) -> tuple[str, str]:
        """Name the types of edit on which a rival and the baseline are tied, and the detectable difference."""
        rows = [self.row(rival, subtype) for subtype in self.subtypes]
        tied = [row for row in rows if row.verdict == "tied"]
        if not tied:
            return "", ""
        types = nouns([row.subtype for row in tied])
        on = f"{len(tied)} of {len(self.subtypes)} types of edit"
        on = types if len(tied) <= MOST_SKILLS else on
        detectable = power([row.detectable for row in tied], self.tests.unit)
        both = self.named([self.base, rival])
        words = f"On {types}, a true difference between {both}"
        detectable = detectable.replace("A true difference", words, 1)
        return f"{'The two' if self.is_pair else both} are tied on {on}.", detectable

    def others(self, rivals: Sequence[ModelShare], heading: str) -> list[str]:
        """Describe the rivals that the heading does not name. Rivals with equal results share a sentence."""
        groups: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[ModelShare]] = {}
        for rival in rivals:
            better, worse = self.better_at(rival, self.base), self.better_at(self.base, rival)
            verdict = self.row(rival).verdict
            if better and worse and verdict in ("tied", "more"):
                verdict = "mixed"  # more informative than the total
            if better or worse or self.names[rival.model] not in heading:
                key = verdict, tuple(better), tuple(worse)
                groups.setdefault(key, []).append(rival)
        return [self.group(alike, *key) for key, alike in list(groups.items())[:MOST_NAMES]]

    def group(
        self,
        rivals: Sequence[ModelShare],
        verdict: str,
        better: Sequence[str],
        worse: Sequence[str],
    ) -> str:
        """Return a sentence about rivals that have the same result when compared with the baseline."""
        names, is_one, be = self.named(rivals), len(rivals) == 1, _be(rivals)
        if verdict == "unknown":
            return f"There is too little data on {names}."
        clause = self.clause(better, is_one) if better else ""
        costs = f"{len(worse)} of {len(self.subtypes)} types of edit"
        costs = nouns(worse) if len(worse) <= MOST_SKILLS else costs
        if verdict == "mixed":
            return f"{names} {clause}, but {be} worse on {costs}."
        result = {
            "tied": f"{be} tied with {self.names[self.base.model]}",
            "fewer": self.less(rivals),
            "more": self.less(rivals, "more"),
        }[verdict]
        if clause and verdict != "fewer":
            return f"{names} {result}, but {clause}."
        if worse and verdict != "more":
            more = self.less(rivals, "more").removeprefix(f"{be} ")
            return f"{names} {result}, but {more} on {costs}."
        if len(worse) == len(self.subtypes) > 1:
            return f"{names} {result}, on every type of edit."
        return f"{names} {result}{f', especially on {costs}' if worse else ''}."

    def notes(self, with_controls: bool = True) -> list[str]:
        """Name the models that only guess (if others do not), that failed their checks, or that are controls."""
        lines = []
        guessing = [each for each in self.fit if each.standing in ("guessing", "below")]
        if 0 < len(guessing) < len(self.fit):
            names = self.named(guessing)
            lines.append(f"{names} {_be(guessing)} not clearly better than guessing.")
        lines += [
            f"{self.names[each.model]} fails {UNFIT}."
            for each in self.everyone
            if each.is_unfit and not each.is_control
        ]
        controls = [each for each in self.everyone if each.is_control]
        if controls and with_controls:
            meant = "a control" if len(controls) == 1 else "controls"
            lines.append(f"{self.named(controls)} {_be(controls)} {meant}, which should fail.")
        return lines


def _be(models: Sequence[ModelShare]) -> str:
    return "is" if len(models) == 1 else "are"


def ties(tests: PairedTests, names: Mapping[str, str]) -> str:
    """Return a sentence with the number of ties for each model, or "" if there are none. Ties count as fooled."""
    tied = [f"{names[each.model]} {each.n_tied:,}" for each in tests.contestants if each.n_tied]
    return f"Ties, which count as fooled: {', '.join(tied)}." if tied else ""


# Rankings: every pair of models, corrected together.


def ranking(tests: PairedTests, names: Mapping[str, str]) -> str:
    """Name the best and the worst model in a sentence if the differences are clear.

    Args:
        tests: Tests of every pair of the models that passed their checks.
    """
    fit = [each.model for each in tests.fit if not math.isnan(each.share)]
    if not fit:
        if all(each.is_control for each in tests.contestants):
            return "All models here are controls, which should fail."
        if tests.fit:
            return "No model has results."
        return "No model here passed its checks, so the models are not ranked."
    if not tests.is_movement and not any(each.may_win for each in tests.fit):
        subject = f"{names[fit[0]]} does" if len(fit) == 1 else "They do"
        return f"{subject} no better than guessing."
    if len(fit) == 1:
        return f"{names[fit[0]]} is the only model here."
    best, worst = tests.best, tests.worst
    verb = "moved" if tests.is_movement else "fooled"
    if len(fit) == 2:
        if tests.verdict(*fit) == "unknown":
            return f"There is too little data to compare {names[fit[0]]} and {names[fit[1]]}."
        if not (best and worst):
            return f"{names[fit[0]]} and {names[fit[1]]} are tied."
        return (
            f"{names[best]} is {verb} less{' often' * (not tests.is_movement)} than {names[worst]}."
        )
    remaining = [model for model in fit if model not in (best, worst)]
    extremes = f"{names[worst]} is {verb} most." if worst else ""
    if best:
        extremes = f"{names[best]} is {verb} least{f', {names[worst]} most' if worst else ''}."
    return joined(extremes, _rest_of_ranking(tests, remaining))


def _rest_of_ranking(tests: PairedTests, remaining: Sequence[str]) -> str:
    """Describe the models between the best and the worst."""
    best, worst, count = tests.best, tests.worst, count_word(len(remaining))
    if len(remaining) < 2:
        return ""
    verdicts = {
        tests.verdict(model, base) for model in remaining for base in remaining if model < base
    }
    if verdicts == {"tied"}:
        return f"The other {count} are tied." if best or worst else f"All {count} are tied."
    if best and worst:
        are_clear = verdicts <= {"fewer", "more"}
        return "" if are_clear else f"Some of the other {count} are tied."
    if best:
        return "" if tests.is_movement else "It is not clear which model is fooled most."
    return "No model is clearly the best."


def unbeaten(tests: PairedTests, names: Mapping[str, str]) -> str:
    """Name the models that no other model clearly beats, for the speaker notes.

    Return "" if there are fewer than three models or one of them is the best.
    """
    models = [] if len(tests.fit) < 3 or tests.best else tests.unbeaten
    ahead = listed([names[model] for model in models])
    return f"No model is clearly better than {ahead}." if ahead else ""


# Trade-offs: the leaders at two metrics.


@dataclass(frozen=True, slots=True)
class Sides:
    """The best models on both sides of a trade-off, and the results for all models.

    Attributes:
        points: Results for all models. Unknown values are NaN.
        lowest: The leader on the metric that should be low.
        highest: The leader on the metric that should be high.
        fit: Models that are not controls and failed no check.
        names: Display name of each model.
        units: Units of the low metric and of the high metric.
        labels: Names of the two metrics in a sentence.
        shifted_by: Name of the change under which scores should stay the same, for use in a
            sentence; "" if the first metric is not a change of the score.
        is_x_high: Whether higher is better on the first metric too.
    """

    points: Sequence[PointRow]
    lowest: Leader
    highest: Leader
    fit: Collection[str]
    names: Mapping[str, str]
    units: tuple[str, str]
    labels: tuple[str, str]
    shifted_by: str = "a rewording"
    is_x_high: bool = False


def trade_off(sides: Sides) -> Finding:
    """Return the finding from a trade-off."""
    known = [point for point in sides.points if not math.isnan(point.x + point.y)]
    fit, models = [point for point in known if point.model in sides.fit], sides.highest.models
    down, up = sides.labels
    if not known:
        return Finding(f"No model here has values for both {down} and {up}.", "")
    if not fit:
        heading = "No model here matches these pictures with their captions better than chance."
        if all(is_control(point.model) for point in known):
            heading = "These are controls, which should fail."
        return Finding(heading, _values(sides, known[:3]))
    leading = [point for point in known if point.model in models]
    if sides.highest.state == "chance":
        return Finding(f"No model's {up} is better than guessing.", _values(sides, leading))
    if sides.highest.state == "alone":
        others = (
            ""
            if len(known) == 1
            else " The others failed their checks, so they are not compared with this model."
        )
        name = sides.names[models[0]]
        value = f"{name} rejects {number(leading[0].y, 'rate')} of the wrong captions."
        is_share = sides.units[1] == "rate" and sides.shifted_by
        heading = value if is_share else f"{name} is the only model here."
        return Finding(heading, _values(sides, leading) + others, models[0])
    leads = [each.models[0] for each in (sides.lowest, sides.highest) if each.state == "leads"]
    best = [*leads, *models, *sides.lowest.models][:1]
    named = list(dict.fromkeys([*leads, *sides.lowest.models, *models]))[:2]
    points = [point for model in named for point in known if point.model == model]
    heading = _trade_off_heading(sides, len(fit) == 2)
    lead = ["", f"The lead is clear ({CLEAR}).", f"Both leads are clear ({CLEAR})."][len(leads)]
    return Finding(heading, joined(_values(sides, points), lead), "".join(best))


def _trade_off_heading(sides: Sides, is_pair: bool) -> str:
    low, high = sides.lowest, sides.highest
    down, up = sides.labels
    lower, least = ("higher", "highest") if sides.is_x_high else ("lower", "lowest")
    lowest = f"the {lower if is_pair else least} {down}"
    highest = f"the {'higher' if is_pair else 'highest'} {up}"

    def named(models: Sequence[str]) -> str:
        return listed([sides.names[model] for model in models])

    def tied(leader: Leader, on: str) -> str:
        models = leader.models
        subject = count_word(len(models)) if len(models) > MOST_SKILLS else named(models)
        return f"{subject} {'has' if len(models) == 1 else 'are tied for'} {on}"

    if low.state == high.state == "leads":
        if low.models == high.models:
            return f"{named(low.models)} has {lowest} and {highest}."
        return (
            f"No model is best: {named(low.models)} has {lowest}, and {named(high.models)} has "
            f"{highest}."
        )
    for leader, praise, other, on, label in (
        (low, lowest, high, highest, up),
        (high, highest, low, lowest, down),
    ):
        if leader.state == "leads":
            (model,) = leader.models
            others = [rival for rival in other.models if rival != model]
            if model in other.models:
                return f"{named([model])} has {praise}; it is tied with {named(others)} on {label}."
            remaining = f"; {tied(other, on)}" if others else ""
            return f"{named([model])} has {praise}{remaining}."
    if is_pair and low.state == high.state == "tied":
        return f"{named(sorted(high.models))} are tied."
    if set(low.models) == set(high.models) and low.models:
        return f"No model is best: {tied(high, f'{lowest} and {highest}')}."
    lines = [tied(leader, on) for leader, on in ((low, lowest), (high, highest)) if leader.models]
    return f"No model is best: {'; '.join(lines)}."


def _values(sides: Sides, points: Sequence[PointRow]) -> str:
    """State the values of some models on both sides of the trade-off."""
    x_unit, y_unit = sides.units
    of_spread = " of its own spread" if x_unit == "spread" else ""
    sentences = []
    for point in points:
        value, name = number(point.y, y_unit), sides.names[point.model]
        if not sides.shifted_by:
            down, up = sides.labels
            sentences.append(f"{name}: {up} {value}, {down} {number(point.x, x_unit)}{of_spread}.")
            continue
        rejects = f"{name} rejects {value} of the wrong captions"
        if y_unit != "rate":
            rejects = f"A wrong caption lowers the score of {name} by {value}"
        shift = f"{sides.shifted_by} shifts its score by {number(point.x, x_unit)}{of_spread}"
        sentences.append(f"{rejects}; {shift}.")
    return " ".join(sentences)


# Answers in both orders of the captions.


def order_sentences(
    estimates: pd.DataFrame, names: dict[str, str], models: Sequence[str] = ()
) -> list[str]:
    """Describe how often each model's answer changes with the order of the captions (with an interval), and in how many
    orders the model is right. Each model that ran in both orders gets two sentences.

    Args:
        estimates: Estimates over all cases, as `views.estimates.estimates` returns them.
        models: The models to report, or all models if empty.
    """
    known = estimates.loc[estimates["value"].notna()]
    rows = {(row.model, row.metric): row for row in records(EstimateRow, known)}
    sentences = []
    for model in models or dict.fromkeys(model for model, _ in rows):
        flips, both = rows.get((model, "order_flips")), rows.get((model, "right_in_both_orders"))
        if flips is None or both is None:
            continue
        neither = max(1 - both.value - flips.value, 0.0)
        shares = (flips.value, flips.low, flips.high, both.value, neither)
        changes, low, high, right, wrong = (number(share, "rate") for share in shares)
        sentences.append(
            f"{names.get(model, model_name(model))} saw the captions in both orders: {changes} of "
            f"its answers change with the order (95 % interval {low} to {high}). It is right in "
            f"both orders for {right} of the cases, in one order for {changes}, and in neither for "
            f"{wrong}."
        )
    return sentences
