"""Describe a failure on the Home page: a heading in two lines, the fooled models, and how often lies are believed."""

from collections.abc import Mapping, Sequence

from vlprobe.case.card import card_type, case_card
from vlprobe.render.sentences import (
    MOST_NAMES,
    capitalized,
    count_word,
    every_model,
    listed,
    undecided,
)
from vlprobe.render.words import is_plural
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.showcase import Showcase

LONGEST_CAPTION = 280  # maximum length of a caption; the case itself shows all of it


def models_word(count: int, total: int, name: str) -> str:
    """Return the subject of a sentence about `count` of `total` models, or `name` if there is only one model.

    >>> models_word(6, 6, "A"), models_word(1, 6, "A"), models_word(39, 43, "A"), models_word(1, 1, "A")
    ('Six of six models', 'One of six models', '39 of 43 models', 'A')
    """
    if total == 1:
        return name
    return capitalized(f"{count_word(count)} of {count_word(total)} models")


def heading(showcase: Showcase, kind: KindPresentation, name: str) -> tuple[str, str]:
    """Return a heading in two sentences: what people see, and how the models answered."""
    n_believing = showcase.n_fooled - showcase.n_tied
    subject = models_word(n_believing or showcase.n_tied, showcase.n_models, name)
    seen, answered = case_card(showcase.card, kind).heading(subject, n_believing != 1, name)
    if not n_believing and not kind.is_movement:
        return seen, f"{subject} cannot decide."
    return seen, f"{answered.removesuffix('.')}{undecided(showcase.n_tied)}."


def verdict(
    showcase: Showcase, kind: KindPresentation, names: Mapping[str, str], model: str
) -> str:
    """Return the sentence about the fooled models, which is shown next to the models' symbols."""
    if kind.is_movement:
        return f"What {names[model]} answers"
    subject = every_model(showcase.n_models).capitalize()
    if showcase.n_models == 1:
        subject = names[
            next(answer.model for answer in showcase.card.verdicts if answer.model in names)
        ]
    elif showcase.n_fooled < showcase.n_models:
        subject = models_word(showcase.n_fooled, showcase.n_models, "")
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
    if changes := len(tied) - ties:
        how += f", {count_word(changes)} in one order only"
    return f"{subject} chose this one{how}"


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
        return f"{in_one_order} chose this one in one order only"
    return f"{chose} chose this one{f', {in_one_order} in one order only' if in_one_order else ''}"


def how_often(rate: float) -> str:
    """Return an adverb for how often lies are believed.

    >>> how_often(.0016), how_often(.05), how_often(.17), how_often(.7)
    ('hardly ever', 'seldom', 'often', 'mostly')
    """
    return next(
        word
        for limit, word in ((0.02, "hardly ever"), (0.1, "seldom"), (0.6, "often"), (2, "mostly"))
        if rate < limit
    )


def number_sentences(phrases: Sequence[str], rates: Sequence[float], name: str) -> list[str]:
    """Return one sentence per type of lie, starting with the type that is believed least often.

    Args:
        phrases: What is wrong in the lies, such as "a wrong color".
        rates: Shares of lies that are believed, in ascending order.

    >>> number_sentences(["a wrong color", "a wrong number"], [.001, .3], "Tiny CLIP")
    ['A wrong color hardly ever fools Tiny CLIP', 'A wrong number often fools Tiny CLIP']
    """
    return [
        f"{capitalized(phrase)} {how_often(rate)} {'fool' if is_plural(phrase) else 'fools'} {name}"
        for phrase, rate in zip(phrases, rates, strict=True)
    ]
