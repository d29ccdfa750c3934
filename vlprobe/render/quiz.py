"""Sentences in the quiz, and quiz questions as input for the web component."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vlprobe.render.charts.styles import Look, Looks, mark_values
from vlprobe.render.numbers import number
from vlprobe.render.sentences import (
    CHANGES,
    alike,
    capitalized,
    count_word,
    counted,
    every_model,
    hesitate,
    listed,
    some_models,
    undecided,
)
from vlprobe.views.quiz import HumanBaseline, QuizQuestion, QuizRound
from vlprobe.views.wall import ModelVerdict

MISTAKES = {  # the mistake of a model that believed a lie, by type
    "number": "counted wrong",
    "color": "saw the wrong color",
    "object": "saw the wrong thing",
    "negation": "missed a negation",
    "relation": "mixed up a relation",
    "attribute-swap": "mixed up whose color or size it is",
    "word-order": "ignored the order of the words",
    "location": "saw the wrong location",
    "swap": "swapped things",
    "replace_obj": "saw the wrong thing",
    "replace_att": "got a detail wrong",
    "replace_rel": "mixed up a relation",
    "swap_obj": "swapped things",
    "swap_att": "mixed up two descriptions",
    "relations": "mixed up a relation",
    "plurals": "counted wrong",
    "actant-swap": "mixed up who does what",
    "action-replacement": "saw the wrong action",
    "foil-it": "saw the wrong thing",
    "existence": "missed a negation",
    "counting-small-quant": "counted wrong",
    "counting-hard": "counted wrong",
    "counting-adversarial": "counted wrong",
}
STATES = {True: "right", False: "wrong", None: "none"}
SKIPPED = "skipped"  # state of a question that does not count, because both captions could be true
IN_ONE_ORDER = "tied"  # state of an answer that changes with the order of the captions
ASKED = "Which caption is true?"
FAVORS_THE_BEST = (
    "If most of the best models miss a question, its official answer may be wrong, so it is left "
    "out. The best models therefore look a little better here than they are."
)
MOST_CHIPS = 9  # models below a caption
MOST_SCORES = 8  # models in the row of scores
MOST_ROWS = 12  # models on the last screen


@dataclass(frozen=True, slots=True)
class Participant:
    """A person or a model in the list of quiz scores."""

    name: str
    states: tuple[str, ...]  # for each question so far, a value of STATES, IN_ONE_ORDER or SKIPPED
    look: Look | None = None  # None for a person

    @property
    def total(self) -> float:
        """Number of questions answered correctly. An answer that is right in one order only counts half."""
        return self.states.count("right") + self.states.count(IN_ONE_ORDER) / 2

    @property
    def n_answered(self) -> int:
        """Number of questions that the participant answered and that count."""
        return len(self.states) - self.states.count("none") - self.states.count(SKIPPED)


def states_of(rights: Sequence[bool | None], skipped: Collection[int]) -> tuple[str, ...]:
    """Return a person's state for each question so far, given their answers and the indices of skipped questions."""
    return tuple(
        SKIPPED if place in skipped else STATES[right] for place, right in enumerate(rights)
    )


def outcome(own_right: bool | None, question: QuizQuestion) -> str:
    """Return a heading that says whether the vote was right and which models were fooled.

    Args:
        own_right: Whether the vote was right, or None if there was no vote.
    """
    verdict = {True: "Right. ", False: "Wrong. ", None: ""}[own_right]
    n_models, n_tied = len(question.verdicts), question.n_tied
    n_changes = sum(each.is_in_one_order for each in question.verdicts)
    n_ties = n_tied - n_changes
    n_fooled = question.n_fooled - n_tied
    if not n_models:
        return verdict.strip() or "No vote."
    if not question.n_fooled:
        whom = "No model was" if n_models > 1 else "The model was not"
        return f"{verdict}{whom} fooled."
    who = some_models(n_fooled or question.n_fooled, n_models)
    if not n_fooled:
        return f"{verdict}{who} {hesitate(n_ties, n_changes)}."
    mistake = MISTAKES.get(question.subtype, "believed the lie")
    too = ", too" if own_right is False else ""
    return f"{verdict}{who} {mistake}{too}{undecided(n_ties, n_changes)}."


def summary(person: Participant, models: Sequence[Participant], is_selected: bool = False) -> str:
    """Return a heading that sums up a whole round: how many wrong captions the player and the best model spotted.

    Args:
        is_selected: Whether the choice of questions favors the best models (`QuizRound.is_selected`), so that the range
            of all models is reported instead.
    """
    n_questions = person.n_answered
    if not n_questions:
        return "You skipped every question."
    lies = "lie" if n_questions == 1 else "lies"
    spotted = f"You spotted {_total(person.total)} of {count_word(n_questions)} {lies}."
    if not models:
        return spotted
    best = max(models, key=lambda model: model.total)
    worst = min(models, key=lambda model: model.total)
    if is_selected and worst.total < best.total:
        of_all = f"Of the {count_word(len(models))} models, the worst"
        return f"{spotted} {of_all} spotted {_total(worst.total)}, the best {_total(best.total)}."
    n_best = [model for model in models if model.total == best.total]
    name = best.name if len(n_best) == 1 else "the best models"
    return f"{spotted} {capitalized(name)} spotted {_total(best.total)}."


def _total(total: float) -> str:
    """Write a number of right answers, which may have a half.

    >>> _total(0), _total(3.0), _total(7.5)
    ('none', 'three', 'seven and a half')
    """
    if total == 0.5:
        return "half of one"
    words = count_word(int(total)) if total else "none"
    return f"{words} and a half" if total % 1 else words


def room_summary(room: Participant) -> tuple[str, str]:
    """Return a heading that sums up a round of a room, and a sentence about how a room is counted."""
    if not room.n_answered:
        return "No question counts." if SKIPPED in room.states else "Nobody voted.", ""
    n_right = _total(room.total)
    answered = count_word(room.n_answered)
    return (
        f"The room spotted {n_right} of {answered} {'lie' if room.n_answered == 1 else 'lies'}.",
        "A room spots a lie if more than half of its votes are right. Questions without a vote do not count.",
    )


def how_chosen(quiz: QuizRound) -> str:
    """Explain in one sentence how the questions were chosen."""
    n_models = len(quiz.models)
    if quiz.draw == "fair":
        return f"Drawn at random from {_lies(quiz)}."
    if n_models == 1:
        return "Hard questions: each fooled the model."
    least = (
        every_model(n_models)
        if quiz.n_fooled == n_models
        else f"at least {count_word(quiz.n_fooled)} of the {count_word(n_models)} models"
    )
    chosen = f"Hard questions: each fooled {least}."
    return chosen + f" {FAVORS_THE_BEST}" * quiz.is_selected


def _lies(quiz: QuizRound) -> str:
    """Count the eligible wrong captions."""
    lies = f"{quiz.n_cases:,} {'lie' if quiz.n_cases == 1 else 'lies'}"
    return f"{lies} with a picture" if quiz.n_cases < quiz.n_all else lies


def how_drawn(quiz: QuizRound) -> str:
    """Explain how the questions were chosen, so that no one mistakes the score for a model's accuracy."""
    text = how_chosen(quiz)
    rates = sorted({round(100 * rate) for rate in quiz.shares if not math.isnan(rate)})
    if rates:
        between = f"{rates[0]} to {rates[-1]}" if len(rates) > 1 else f"{rates[0]}"
        who = "the model is" if len(quiz.models) == 1 else "the models are"
        which = "these" if quiz.draw == "fair" else f"the {_lies(quiz)}"
        text += f" On {which}, {who} right {between} % of the time."
    if any(each.is_in_one_order for question in quiz.questions for each in question.verdicts):
        text += f" An answer “{CHANGES}” (½) counts as half."
    return text


def question_data(
    question: QuizQuestion,
    names: Mapping[str, str],
    looks: Looks,
    is_revealed: bool,
    own_vote: int | None,
    votes: tuple[int, int] = (0, 0),
) -> dict[str, object]:
    """Return the captions in a question as input for the component. The right answer is included only if `is_revealed`.

    Args:
        own_vote: Index of the caption that the player voted for, or None without a vote.
        votes: Number of votes in a room for each caption, or (0, 0) for a single player.
    """
    captions = []
    for index, segments in enumerate(alike(question.segments)):
        is_true = index == question.true_index
        style = "true" if is_true else "lie"
        # A tie counts as a vote for the lie, an unknown answer counts for neither.
        believers = [
            each
            for each in question.verdicts
            if is_revealed and each.verdict != "unknown" and (each.verdict == "held") == is_true
        ]
        n_more, n_votes = len(believers) - MOST_CHIPS, sum(votes) if is_revealed else 0
        share = votes[index] / n_votes if n_votes else 0.0
        count = f"{votes[index]:,} of {n_votes:,} {'vote' if n_votes == 1 else 'votes'}"
        captions.append(
            {
                "runs": [
                    [text, style if differs and is_revealed else ""] for text, differs in segments
                ],
                "state": f"was-{style}" if is_revealed else "",
                "label": ("True" if is_true else "The lie") if is_revealed else "",
                "own": "You" if own_vote == index else "",
                "models": [
                    {
                        "name": names[each.model] + f": {CHANGES}" * each.is_in_one_order,
                        **mark_values(looks[each.model]),
                    }
                    for each in believers[:MOST_CHIPS]
                ],
                "more": f"+{n_more}" * (n_more > 0),
                "votes": n_votes and {"share": f"{100 * share:.0f} %", "count": count},
            }
        )
    return {"captions": captions}


def model_states(
    quiz: QuizRound, n_revealed: int, skipped: Collection[int] = ()
) -> dict[str, tuple[str, ...]]:
    """Return for each model the state of its answer to each revealed question, given the indices of skipped ones."""
    words = {"held": "right", "unknown": "none"}

    def state(index: int, verdict: ModelVerdict) -> str:
        if index in skipped:
            return SKIPPED
        return IN_ONE_ORDER if verdict.is_in_one_order else words.get(verdict.verdict, "wrong")

    revealed = list(enumerate(quiz.questions[:n_revealed]))
    return {
        model: tuple(state(index, question.verdicts[place]) for index, question in revealed)
        for place, model in enumerate(quiz.models)
    }


def scores_data(
    participants: Sequence[Participant], most: int = MOST_SCORES
) -> list[dict[str, Any]]:
    """Return the list of scores as input for the component, limited to the `most` best models."""
    people = [each for each in participants if each.look is None]
    models = [each for each in participants if each.look is not None]
    if len(models) > most:
        models = sorted(models, key=lambda each: -each.total)[:most]
    return [
        {
            "name": each.name,
            **(mark_values(each.look) if each.look else {"path": "", "color": ""}),
            "total": f"{each.total:g}" if each.n_answered else "-",
            "unit": f"of {each.n_answered}" if each.n_answered else "",
            "pips": list(each.states),
        }
        for each in [*people, *models]
    ]


def human_sentence(baseline: HumanBaseline, names: Mapping[str, str]) -> str:
    """Compare people with models in one or two sentences, or return "" if people answered too few cases."""
    if not baseline.says_something:
        return ""
    around = ""
    if not math.isnan(baseline.right.low):
        low, high = (number(end, "rate") for end in (baseline.right.low, baseline.right.high))
        around = f" (95 % interval {low} to {high})"
    who = (
        "One person is"
        if baseline.n_people == 1
        else f"{capitalized(count_word(baseline.n_people))} people are"
    )
    start = (
        f"{who} right {number(baseline.right.value, 'rate')} of the time{around}, based on "
        f"{counted(baseline.n_votes, 'first vote')} on {counted(baseline.n_cases, 'lie')} drawn "
        "at random."
    )
    subject, verb = ("This person", "is") if baseline.n_people == 1 else ("People", "are")
    clauses = []
    for verdict, words in (
        ("better", "right more often than"),
        ("worse", "right less often than"),
        ("tied", "tied with"),
    ):
        models = [
            f"{names[model.model]} ({number(model.rate, 'rate')})"
            for model in baseline.models
            if model.verdict == verdict
        ]
        if models:
            clauses.append(f"{words} {listed(models)}")
    if not clauses:
        return start
    return (
        f"{start} On the same lies, {subject[:1].lower()}{subject[1:]} {verb} {'; '.join(clauses)}."
    )
