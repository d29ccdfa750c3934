"""Describe a failure on the Home page: a heading in two lines, the fooled models, and how often lies are believed."""

from collections.abc import Mapping, Sequence

from vlprobe.case.card import card_type, case_card
from vlprobe.render.sentences import (
    CHANGES,
    MOST_NAMES,
    capitalized,
    count_word,
    hesitate,
    listed,
    some_models,
    undecided,
)
from vlprobe.render.words import is_plural
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.showcase import Showcase

LONGEST_CAPTION = 280  # maximum length of a caption; the case itself shows all of it
# Shares of lies below a limit, and what they are called
OFTEN = (0.02, "hardly ever"), (0.1, "seldom"), (0.3, "sometimes"), (0.6, "often"), (2, "mostly")


def models_word(count: int, total: int, name: str) -> str:
    """Return the subject of a sentence about `count` of `total` models, or `name` if there is only one model.

    >>> models_word(6, 6, "A"), models_word(1, 6, "A"), models_word(39, 43, "A"), models_word(1, 1, "A")
    ('All six models', 'One of six models', '39 of 43 models', 'A')
    """
    return name if total == 1 else some_models(count, total)


def heading(showcase: Showcase, kind: KindPresentation, name: str) -> tuple[str, str]:
    """Return a heading in two sentences: what people see, and how the models answered."""
    n_tied, n_changes = showcase.n_tied, showcase.n_changes
    n_believing, n_ties = showcase.n_fooled - n_tied, n_tied - n_changes
    subject = models_word(n_believing or n_tied, showcase.n_models, name)
    seen, answered = case_card(showcase.card, kind).heading(subject, n_believing != 1, name)
    if not n_believing and not kind.is_movement:
        return seen, f"{subject} {hesitate(n_ties, n_changes)}."
    # Models that are right in one order only are named below the caption
    return seen, f"{answered.removesuffix('.')}{undecided(n_ties, 0)}."


def verdict(
    showcase: Showcase, kind: KindPresentation, names: Mapping[str, str], model: str
) -> str:
    """Return the sentence about the fooled models, which is shown next to the models' symbols."""
    if kind.is_movement:
        return f"What {names[model]} answers"
    subject = some_models(showcase.n_fooled, showcase.n_models)
    if showcase.n_models == 1:
        subject = next(
            names[answer.model] for answer in showcase.card.verdicts if answer.model in names
        )
    if chose := card_type(kind).chose:
        return f"{subject} {chose.format(lie=kind.lie)}"
    tied = [
        answer
        for answer in showcase.card.verdicts
        if answer.verdict == "tied" and answer.model in names
    ]
    ties = sum(answer.is_scored for answer in tied)
    if ties == showcase.n_fooled:
        return f"{subject} cannot tell them apart"
    if not ties and showcase.n_fooled < showcase.n_models and showcase.n_fooled <= MOST_NAMES:
        return _chose(showcase, names)
    how = f", {count_word(ties)} by a tie" if ties else ""
    return f"{subject} chose this one{how}{undecided(0, len(tied) - ties)}"


def _chose(showcase: Showcase, names: Mapping[str, str]) -> str:
    """Say how many models chose the wrong caption, and how many chose it in only one of two caption orders."""
    chose, in_one_order = (
        listed(
            [
                names[answer.model]
                for answer in showcase.card.verdicts
                if answer.verdict == verdict and answer.model in names
            ]
        )
        for verdict in ("fooled", "tied")
    )
    if not chose:
        return f"{in_one_order}: {CHANGES}"
    return f"{chose} chose this one{f', {in_one_order}: {CHANGES}' if in_one_order else ''}"


def how_often(rate: float) -> str:
    """Return an adverb for how often lies are believed.

    >>> how_often(.0016), how_often(.05), how_often(.17), how_often(.4), how_often(.7)
    ('hardly ever', 'seldom', 'sometimes', 'often', 'mostly')
    """
    return next(word for limit, word in OFTEN if rate < limit)


def number_sentences(phrases: Sequence[str], rates: Sequence[float], name: str) -> list[str]:
    """Return one sentence per type of lie, starting with the type that is believed least often.

    Args:
        phrases: What is wrong in the lies, such as "a wrong color".
        rates: Shares of lies that are believed, in ascending order.

    >>> number_sentences(["a wrong color", "a wrong number"], [.001, .35], "Tiny CLIP")
    ['A wrong color hardly ever fools Tiny CLIP', 'A wrong number often fools Tiny CLIP']
    """
    return [
        f"{capitalized(phrase)} {how_often(rate)} {'fool' if is_plural(phrase) else 'fools'} {name}"
        for phrase, rate in zip(phrases, rates, strict=True)
    ]
