"""The verdict of a comparison of models, as a heading and a sentence or two below it.

The one place that names a better model in words. It never says more than is known: a model is
called better only where the difference is clear after the correction for all rows and the model is
not as good as guessing; a control, or a model that failed its checks, is never the better one; all
else is called a tie, or unknown.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from vlprobe.render.sentences import (
    MOST_NAMES,
    common,
    counted,
    does_better,
    joined,
    listed,
    nouns,
    sentence_names,
    share,
)
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.paired_tests import ModelShare, PairedTest, PairedTests

MOST_SKILLS = 3  # types of edit that are named one by one
UNFIT = "fails a basic check here (matching pictures with their captions)"
WIDE = 0.2  # an interval of a share that is wider says nothing of guessing


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a comparison."""

    heading: str
    detail: str
    row: PairedTest  # that proves the heading


def verdict(
    comparison: PairedTests, kind: KindPresentation, renamed: Mapping[str, str] | None = None
) -> Verdict:
    """The heading, and the text below it.

    Args:
        comparison: Of two or more models.
        kind: How its kind of question is spoken of.
        renamed: Names that somebody gave to models.
    """
    return _Speaker(comparison, kind, renamed or {}).verdict()


class _Speaker:
    """Sentences about one comparison."""

    def __init__(
        self, comparison: PairedTests, kind: KindPresentation, renamed: Mapping[str, str]
    ) -> None:
        self.comparison, self.kind = comparison, kind
        contestants = comparison.contestants
        self.names = sentence_names([contestant.model for contestant in contestants], renamed)
        self.base = comparison.baseline
        self.rivals = comparison.rivals
        self.fit = [contestant for contestant in contestants if contestant.is_fit]
        self.subtypes = [subtype for subtype in comparison.subtypes if subtype]
        self.is_pair = len(self.rivals) == 1

    def verdict(self) -> Verdict:
        """The first of these that applies."""
        for sentences in (self.unknown, self.nobody_fit, self.guessing):
            if final := sentences():
                return final
        heading, winners, row = self.heading()
        detail = joined(self.shares(winners), *self.remarks(heading, winners))
        return Verdict(heading, detail, row)

    def name(self, contestant: ModelShare) -> str:
        """The name of a model, and what it is where it is not fit to be called better."""
        if contestant.is_control:
            return f"{self.names[contestant.model]}, a control"
        unfit = ", which failed its checks"
        return self.names[contestant.model] + (unfit if contestant.is_unfit else "")

    def named(self, contestants: Iterable[ModelShare]) -> str:
        """Their names in a list."""
        return listed([self.names[contestant.model] for contestant in contestants])

    def row(self, contestant: ModelShare, subtype: str = "") -> PairedTest:
        """The row of a rival."""
        return self.comparison.row(contestant.model, subtype)

    def having(self, verdict: str) -> list[ModelShare]:
        """Rivals whose row of all lies has this verdict."""
        return [rival for rival in self.rivals if self.row(rival).verdict == verdict]

    def unknown(self) -> Verdict | None:
        """Nothing is known of any rival."""
        if len(self.having("unknown")) < len(self.rivals):
            return None
        rows = [self.row(rival) for rival in self.rivals]
        n_lies, n_pictures = (
            max((getattr(row, name) for row in rows), default=0)
            for name in ("n_lies", "n_pictures")
        )
        names = listed([self.names[contestant.model] for contestant in self.comparison.contestants])
        if not n_lies:
            heading, detail = f"{names} cannot be compared.", "They share no answered question."
            return Verdict(heading, detail, rows[0])
        shared = f"{counted(n_lies, 'question')} on {counted(n_pictures, 'picture')}"
        return Verdict(
            f"Too little is known to tell {names} apart.",
            f"They share answers to {shared}; it takes two pictures at the least.",
            rows[0],
        )

    def nobody_fit(self) -> Verdict | None:
        """Only controls, and models that failed their checks."""
        if self.fit:
            return None
        contestants = self.comparison.contestants
        everyone = "Both" if self.is_pair else "All"
        if all(contestant.is_control for contestant in contestants):
            heading = f"{everyone} are controls: they are meant to fail."
        elif not any(contestant.is_control for contestant in contestants):
            heading = f"{everyone} models {UNFIT.replace('fails', 'fail')}, so read this with care."
        else:
            heading = "Nothing to compare: only controls and models that failed their checks."
        return Verdict(heading, self.shares([]), self.row(self.rivals[0]))

    def guessing(self) -> Verdict | None:
        """The verdict if no model that passed its checks is better than guessing."""
        if any(contestant.standing in ("above", "unknown") for contestant in self.fit):
            return None
        nobody, everyone = ("Neither", "both are") if self.is_pair else ("None", "all are")
        are_all = len(self.fit) == len(self.comparison.contestants)
        if not are_all:
            nobody = self.named(self.fit)
            everyone = "it is" if len(self.fit) == 1 else "they are"
        widest = max(contestant.high - contestant.low for contestant in self.fit)
        heading = f"{nobody} {'can' if are_all else 'cannot'} tell: {self.as_guessing(everyone)}."
        if widest > WIDE and all(contestant.standing == "guessing" for contestant in self.fit):
            is_known = "is known" if are_all else f"{_be(self.fit)} not known"
            heading = f"{nobody} {is_known} to be better than guessing."
        guess = f"Guessing gets {share(self.comparison.guess)}."
        detail = joined(self.shares([]), guess, *self.notes())
        return Verdict(heading, detail, self.row(self.rivals[0]))

    def as_guessing(self, subject: str) -> str:
        """Compare the models that passed their checks with guessing; `subject` with its "is" or "are"."""
        below = [contestant for contestant in self.fit if contestant.standing == "below"]
        if len(below) == len(self.fit):
            return f"{subject} worse than guessing"
        if below:
            return f"{self.named(below)} {_be(below)} worse than guessing, the rest as good"
        return f"{subject} as good as guessing"

    def heading(self) -> tuple[str, list[ModelShare], PairedTest]:
        """The heading, the models that it calls better (rivals, or the baseline), and the row that proves it."""
        fewer = [rival for rival in self.having("fewer") if rival.may_win]
        if fewer:
            less = f"{self.named(fewer)} {self.be_less(fewer)} than {self.name(self.base)}."
            proof = self.proof([(winner, self.base) for winner in fewer])
            return joined(less, self.skills(fewer)), fewer, proof
        if not self.base.is_fit:
            fit = next(rival for rival in self.rivals if rival.is_fit)
            return self.no_better_than_baseline(), [], self.row(fit)
        if unfit := [rival for rival in self.rivals if not rival.is_fit]:
            equal = [rival for rival in unfit if self.row(rival).verdict in ("tied", "fewer")]
            if equal:
                heading = (
                    f"{self.names[self.base.model]} does no better than {self.name(equal[0])}."
                )
                return heading, [], self.row(equal[0])
        tied = [rival for rival in self.having("tied") if rival.is_fit]
        behind = self.having("more") if self.base.may_win else []
        base = self.names[self.base.model]
        if tied:
            return self.tied(tied, behind), [], self.proof_of_tie(tied, behind)
        if behind:
            losers = self.name(behind[0]) if len(behind) == 1 else self.named(behind)
            less = f"{base} {self.be_less([self.base])} than {losers}."
            proof = self.proof([(self.base, loser) for loser in behind])
            return joined(less, self.skills([self.base], behind)), [self.base], proof
        return f"Nobody here is known to be better than {base}.", [], self.row(self.rivals[0])

    def proof(self, pairs: Sequence[tuple[ModelShare, ModelShare]]) -> PairedTest:
        """The row with the largest difference among those that make each first model better than the second:
        the kinds of the heading that they do better on, else all lies.
        """
        at = common([self.better_at(*pair) for pair in pairs]) or [""]
        rivals = [loser if winner is self.base else winner for winner, loser in pairs]
        rows = [self.row(rival, subtype) for rival in rivals for subtype in at]
        return max(rows, key=lambda row: abs(row.difference))

    def proof_of_tie(self, tied: Sequence[ModelShare], behind: Sequence[ModelShare]) -> PairedTest:
        """The row of a tie: of two tied models that at which one of them is better, if there is one."""
        if behind:
            return self.proof([(self.base, loser) for loser in behind])
        if len(tied) > 1:
            return self.row(tied[0])
        rival = tied[0]
        at = [*self.better_at(rival, self.base), *self.better_at(self.base, rival)] or [""]
        return max(
            (self.row(rival, subtype) for subtype in at), key=lambda row: abs(row.difference)
        )

    def no_better_than_baseline(self) -> str:
        """The verdict if no model is clearly better than a baseline that failed its checks."""
        rivals = [rival for rival in self.rivals if rival.is_fit]
        do = "does" if len(rivals) == 1 else "do"
        return f"{self.named(rivals)} {do} no better than {self.name(self.base)}."

    def tied(self, tied: Sequence[ModelShare], behind: Sequence[ModelShare]) -> str:
        """Rivals that are tied with the baseline, and those that are fooled more often."""
        base = self.names[self.base.model]
        if behind:
            less = self.be_less([self.base]).removeprefix("is ")
            return f"{base} is tied with {self.named(tied)}, and {less} than {self.named(behind)}."
        if len(tied) == 1:
            return joined(f"{base} and {self.named(tied)} are tied.", self.opposed(tied[0]))
        return f"{base} is tied with {self.named(tied)}."

    def be_less(self, contestants: Sequence[ModelShare]) -> str:
        """Return the statement that models are fooled less often, or move less."""
        if self.comparison.is_movement:
            return "moves less" if len(contestants) == 1 else "move less"
        return f"{_be(contestants)} fooled less often"

    def better_at(self, winner: ModelShare, loser: ModelShare) -> list[str]:
        """Subtypes at which one of the two, one of them the baseline, is clearly better."""
        is_base = winner is self.base
        rival = loser if is_base else winner
        if not winner.is_fit:
            return []
        rows = [self.row(rival, subtype) for subtype in self.subtypes]
        return [
            row.subtype
            for row in rows
            if row.verdict == ("more" if is_base else "fewer")
            and (row.base_standing if is_base else row.standing) in ("above", "unknown")
        ]

    def skills(
        self, winners: Sequence[ModelShare], losers: Sequence[ModelShare] | None = None
    ) -> str:
        """Return the strengths of all winners over all losers; with two models, also those of the loser."""
        against = [self.base] if losers is None else losers
        pairs = [(winner, loser) for winner in winners for loser in against]
        at = common([self.better_at(*pair) for pair in pairs])
        subject = "It" if len(winners) == 1 else "Both" if len(winners) == 2 else "All"
        clause = self.clause(subject, at, len(winners) == 1)
        if len(pairs) > 1:
            return f"{clause}." if clause else ""
        winner, loser = pairs[0]
        other_clause = self.clause(self.names[loser.model], self.better_at(loser, winner), True)
        return ", ".join(filter(None, [clause, other_clause])) + "." * bool(clause or other_clause)

    def opposed(self, rival: ModelShare) -> str:
        """Return the strengths of each of two tied models."""
        clauses = [
            self.clause(self.names[winner.model], self.better_at(winner, loser), True)
            for winner, loser in ((rival, self.base), (self.base, rival))
        ]
        sentence = ", ".join(filter(None, clauses))
        return f"{sentence}." if sentence else ""

    def clause(self, subject: str, subtypes: Sequence[str], is_one: bool) -> str:
        """Return the statement that a model counts better; "" without any subtype."""
        if not subtypes:
            return ""
        if len(subtypes) > MOST_SKILLS:
            all_or = "all" if len(subtypes) == len(self.subtypes) else f"{len(subtypes)} of"
            do = "does" if is_one else "do"
            return f"{subject} {do} better on {all_or} {len(self.subtypes)} kinds of edit"
        if self.comparison.is_movement:
            return f"{subject} {'moves' if is_one else 'move'} less on {nouns(subtypes)}"
        return f"{subject} {does_better(subtypes, is_one)}"

    def shares(self, winners: Sequence[ModelShare]) -> str:
        """Compute how often each model is fooled, or how far it moves."""
        if self.comparison.is_movement:
            return self.movements(winners)
        believes = self.kind.lies == "lies"
        verb, rest = "believes" if believes else "is fooled by", f" of the {self.kind.lies}"
        contestants = list(self.comparison.contestants)
        values = {contestant.model: contestant.share for contestant in contestants}
        if self.is_pair:  # on the same cases
            row = self.row(self.rivals[0])
            values = {self.base.model: row.base, self.rivals[0].model: row.value}
        return self.listed_values(winners, values, verb, rest, share, believes)

    def movements(self, winners: Sequence[ModelShare]) -> str:
        """Compute how far each model moves."""
        unit = self.comparison.unit

        def written(value: float) -> str:
            return share(value) if unit == "rate" else "-" if math.isnan(value) else f"{value:.4f}"

        units = {"cosine": " (cosine)", "spread": " of its own spread", "rate": ""}
        values = {contestant.model: contestant.share for contestant in self.comparison.contestants}
        return self.listed_values(winners, values, "moves by", units[unit], written, True)

    def listed_values(
        self,
        winners: Sequence[ModelShare],
        values: Mapping[str, float],
        verb: str,
        rest: str,
        written: Callable[[float], str],
        bare: bool,
    ) -> str:
        """A figure a model, the better ones first; where one model is better, it is "it"."""
        contestants = [
            contestant for contestant in self.comparison.contestants if contestant in winners
        ]
        contestants += [
            contestant for contestant in self.comparison.contestants if contestant not in winners
        ]
        if len(winners) == 1 and winners[0] is not self.base:
            contestants = [winners[0], self.base]  # the others have sentences of their own
        between = " " if bare else f" {verb.rpartition(' ')[2]} "
        figures = []
        for rank, contestant in enumerate(contestants[:4]):
            figure = written(values[contestant.model])
            if rank == 0:
                subject = "It" if len(winners) == 1 else self.names[contestant.model]
                figures.append(f"{subject} {verb} {figure}{rest}")
            else:
                figures.append(f"{self.names[contestant.model]}{between}{figure}")
        return ", ".join(figures) + "."

    def remarks(self, heading: str, winners: Sequence[ModelShare]) -> list[str]:
        """Kinds of edit on which two are tied, the results of the other rivals, and the models that failed their
        checks."""
        lines = []
        if len(winners) == 1:
            losers = [self.base] if winners[0] is not self.base else self.having("more")
            if len(losers) == 1:
                rival = winners[0] if losers[0] is self.base else losers[0]
                lines.append(self.ties(rival))
        lines += self.others(
            [contestant for contestant in self.rivals if contestant not in winners], heading
        )
        return [*lines, *self.notes("a control" not in heading)]

    def ties(self, rival: ModelShare) -> str:
        """Return the types of edit on which a rival and the baseline are tied."""
        rows = [self.row(rival, subtype) for subtype in self.subtypes]
        tied = [row.subtype for row in rows if row.verdict == "tied"]
        if not tied:
            return ""
        two = "the two are tied"
        if len(tied) > MOST_SKILLS:
            return f"On {len(tied)} of {len(self.subtypes)} kinds of edit {two}."
        return f"On {nouns(tied)} {two}."

    def others(self, rivals: Sequence[ModelShare], heading: str) -> list[str]:
        """Return the results of rivals that the heading omits; equal ones in one sentence."""
        if self.is_pair:
            return []
        groups: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[ModelShare]] = {}
        for rival in rivals:
            better, worse = self.better_at(rival, self.base), self.better_at(self.base, rival)
            verdict = self.row(rival).verdict
            if better and worse and verdict in ("tied", "more"):
                verdict = "pays"  # better at some, worse at others: that says more than the sum
            key = verdict, tuple(better), tuple(worse)
            is_told = self.names[rival.model] in heading and not better and not worse
            if rival.is_fit and not is_told:
                groups.setdefault(key, []).append(rival)
        return [self.group(alike, *key) for key, alike in list(groups.items())[:MOST_NAMES]]

    def group(
        self,
        rivals: Sequence[ModelShare],
        verdict: str,
        better: tuple[str, ...],
        worse: tuple[str, ...],
    ) -> str:
        """One sentence about rivals that stand alike to the baseline."""
        if verdict == "unknown":
            return f"Of {self.named(rivals)} too little is known."
        is_one, be = len(rivals) == 1, _be(rivals)
        clause = self.clause("", better, is_one).strip()
        pays = nouns(worse) if len(worse) <= MOST_SKILLS else f"{len(worse)} other kinds of edit"
        if verdict == "pays":
            return f"{self.named(rivals)} {clause}, and {'pays' if is_one else 'pay'} for it with {pays}."
        moves = "moves" if is_one else "move"
        stands = {
            "tied": f"{be} tied with {self.names[self.base.model]}",
            "fewer": f"{moves} less" if self.comparison.is_movement else f"{be} fooled less often",
            "more": f"{moves} more" if self.comparison.is_movement else f"{be} fooled more often",
        }[verdict]
        if clause and verdict != "fewer":
            return f"{self.named(rivals)} {stands}, but {clause}."
        if worse and verdict == "tied":
            less_good = f"{moves} more" if self.comparison.is_movement else "fooled more often"
            return f"{self.named(rivals)} {stands}, but {less_good} on {pays}."
        if len(worse) == len(self.subtypes) > 1:
            return f"{self.named(rivals)} {stands}, on every kind of edit."
        return f"{self.named(rivals)} {stands}{f', on {pays} above all' if worse else ''}."

    def notes(self, with_controls: bool = True) -> list[str]:
        """Return the models that are not better than guessing, if others are, and those that failed their checks."""
        lines = []
        contestants = self.comparison.contestants
        guessing = [
            contestant for contestant in self.fit if contestant.standing in ("guessing", "below")
        ]
        if guessing and len(guessing) < len(self.fit):
            lines.append(
                f"{self.named(guessing)} {_be(guessing)} not clearly better than guessing."
            )
        for contestant in contestants:
            if contestant.is_unfit and not contestant.is_control:
                lines.append(f"{self.names[contestant.model]} {UNFIT}.")
        controls = [contestant for contestant in contestants if contestant.is_control]
        if controls and with_controls:
            meant = "a control" if len(controls) == 1 else "controls"
            lines.append(f"{self.named(controls)} {_be(controls)} {meant}, meant to fail.")
        return lines


def _be(contestants: Sequence[ModelShare]) -> str:
    return "is" if len(contestants) == 1 else "are"
