"""Content of the Home page, as input for the web components `home` and `figures`.

It consists of a failure, how often models believe each type of lie, and how often each model
believes lies.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from vlprobe.case import json
from vlprobe.case.card import CaseCard, card_type, case_card
from vlprobe.metrics.blind import SHORT_METHODS, BlindAccuracy
from vlprobe.registry import is_control
from vlprobe.render.charts.styles import Looks, mark_values
from vlprobe.render.numbers import number
from vlprobe.render.sentences import (
    CHANGES,
    MOST_NAMES,
    alike,
    capitalized,
    count_word,
    counted,
    frequency,
    hesitate,
    listed,
    shortened,
    some_models,
    undecided,
)
from vlprobe.render.words import WRONG_SUBTYPES, is_plural, value_label, wrong
from vlprobe.types.presentation import KindPresentation, Presentation
from vlprobe.views.showcase import LEAST_ANSWERS, LieCount, Showcase
from vlprobe.views.wall import ModelVerdict

NUMBERS = 3  # types of lies shown with a number
MOST_MODELS = 12  # models in the strip
MOST_MARKS = 9  # model marks side by side
Values = dict[str, Any]
Address = Callable[..., str]  # maps URL parameters to the address of a page of cases


def kicker(presentation: Presentation, kind: KindPresentation, is_shipped: bool) -> str:
    """Return the line of text above the failure on the Home page."""
    if not is_shipped:
        return "Failure of the day, from your results"
    return describe_question(presentation, kind)


def describe_question(presentation: Presentation, kind: KindPresentation) -> str:
    """Return the question that a probe asks in one line of text."""
    if card_type(kind) is CaseCard:
        return "Two captions, one picture. Which one is true?"
    return presentation.asks


def failure(
    showcase: Showcase,
    kind: KindPresentation,
    model: str,
    names: Mapping[str, str],
    credible: Collection[str],
    model_looks: Looks,
    picture: Callable[[str], str],
    href: str,
) -> Values:
    """Return one failure as input for the component `home`.

    Args:
        credible: Models that are not controls and failed no chance check.
        picture: Function that returns the source of a picture for its name, or "" if there is none.
        href: Link to the page that shows the full case.
    """
    card = case_card(showcase.card, kind)
    answers = [each for each in showcase.card.verdicts if each.model in names]
    fooled = [each for each in answers if each.verdict in ("fooled", "tied")]
    chose = [each for each in fooled if not each.is_in_one_order] or fooled
    # Kinds with words of their own for a wrong answer have no caption that a model could choose
    is_choice = not kind.is_movement and not card_type(kind).chose
    right = [each for each in answers if is_choice and each.verdict == "held"]

    def marks(shown: Sequence[ModelVerdict]) -> Values:
        """Return the marks of the first models, and the number of others."""
        first = [
            {"name": names[each.model]} | mark_values(model_looks[each.model])
            for each in shown[:MOST_MARKS]
        ]
        return {"marks": first, "more": max(len(shown) - MOST_MARKS, 0)}

    boxes = [text for text in card.sides if text.role.box]
    lines = [text.runs(LONGEST_CAPTION) for text in boxes]
    return {
        "id": showcase.card.id,
        "heading": list(heading(showcase, kind, names[model])),
        "pictures": [
            {**json.picture(shot, picture), "alt": shot.alt, "label": shot.label}
            for shot in card.pictures
        ],
        "boxes": [
            {
                "line": line,
                "label": text.role.box.format(name=names[model]),
                "style": text.role.box_style,
            }
            for text, line in zip(boxes, alike(lines) if is_choice else lines, strict=True)
        ],
        **marks([] if kind.is_movement else chose),
        "right": marks(right) | {"verdict": listed([names[each.model] for each in right])},
        "verdict": ". ".join(
            filter(None, [verdict(showcase, kind, names, model), caution(names, credible)])
        ),
        "href": href,
    }


def blind(guess: BlindAccuracy, kind: KindPresentation) -> str:
    """Describe how many lies the best guess without the picture prefers."""
    return (
        f"Without the picture, the best guess {SHORT_METHODS[guess.method]} prefers "
        f"{number(1 - guess.accuracy.value, 'rate')} of these {kind.lies}."
    )


def nothing(kind: KindPresentation) -> str:
    """Return the heading for a kind of case in which no model is fooled."""
    return "Nothing moves here." if kind.is_movement else "No model is fooled here."


def doors(kind: KindPresentation, name: str, n_pictures: int) -> dict[str, str]:
    """Return a sentence for each page that Home links to. `n_pictures` is how many pictures fool the model."""
    fool = "fools" if n_pictures == 1 else "fool"  # at least once: in either order of the captions
    fooling = f"{counted(n_pictures, 'picture')} that {fool} {name} at least once"
    return {
        "explore": fooling if n_pictures and not kind.is_movement else f"Every case of {name}",
        "compare": "Which model is better, and on what",
        "try": "Your own picture and your own words",
        "tradeoff": "Invariance and sensitivity",
        "present": "Slides, and a quiz for a group",
    }


def numbers(
    counts: Sequence[LieCount], model: str, name: str, kind: KindPresentation, address: Address
) -> list[Values]:
    """Return the types of lies that a model believes least often, most often, and at the middle rank.

    Types with few answers are omitted.

    Args:
        address: Function that returns the link to the cases behind a number.
    """
    lie_counts = [
        count for count in counts if count.model == model and count.n_lies >= LEAST_ANSWERS
    ]
    if not lie_counts or not math.isnan(lie_counts[0].moved):
        return []
    lie_counts.sort(key=lambda count: (count.share, count.subtype))
    if len(lie_counts) > NUMBERS:
        lie_counts = [lie_counts[0], lie_counts[len(lie_counts) // 2], lie_counts[-1]]
    phrases = [_phrase(count.subtype, kind) for count in lie_counts]
    rates = [count.share for count in lie_counts]
    sentences = number_sentences(phrases, rates, shortened(name))
    entries = []
    happened = f"{kind.lies} {card_type(kind).believed}"
    for count, phrase, sentence in zip(lie_counts, phrases, sentences, strict=True):
        entries.append(
            {
                "href": address(type=count.subtype),
                "big": capitalized(frequency(count.n_believed, count.n_lies)),
                "sentence": sentence,
                "strong": capitalized(phrase),
                "exact": f"{count.n_believed:,} of {count.n_lies:,} "
                + (happened if count.n_orders == 1 else "answers, in both orders of the captions"),
            }
        )
    return entries


def strip(
    counts: Sequence[LieCount],
    names: Mapping[str, str],
    credible: Collection[str],
    kind: KindPresentation,
    model_looks: Looks,
    address: Address,
    more_href: str,
) -> Values:
    """Return models with the share of lies that each one believes, or with its mean movement.

    If there are more than MOST_MODELS models, the others are only counted.

    Args:
        names: Display names of the models, in display order.
        credible: Models that are not controls and failed no chance check.
        address: Function that returns the link to a model's cases.
        more_href: Link to a page with all models.
    """
    totals = {name: [count for count in counts if count.model == name] for name in names}
    rates = {name: _rate(model_counts) for name, model_counts in totals.items()}
    known_rates = [rate for rate in rates.values() if not math.isnan(rate)]
    is_share = not kind.is_movement or kind.is_share
    full = 1.0 if is_share else max(known_rates, default=0.0)  # cosines have no natural maximum
    models = [
        {
            "href": address(model=name),
            "name": names[name],
            "stored": name,
            "remark": remark(name, credible),
            "mark": mark_values(model_looks[name]),
            "value": number(rates[name], "rate" if is_share else "spread"),
            "width": 0.0 if math.isnan(rates[name]) else rates[name] / (full or 1.0),
        }
        for name in list(names)[:MOST_MODELS]
    ]
    n_lies = {sum(count.n_lies for count in model_counts) for model_counts in totals.values()}
    n_more = len(names) - MOST_MODELS
    return {
        "label": "Moved on average"
        if kind.is_movement
        else f"{capitalized(kind.lies)} {card_type(kind).believed}",
        "of": f"of {n_lies.pop():,}" if len(n_lies) == 1 else "",
        "guess": None if kind.is_movement or math.isnan(kind.guess_held) else 1 - kind.guess_held,
        "models": models,
        "more": f"and {counted(n_more, 'more model')}" if n_more > 0 else "",
        "more_href": more_href,
    }


def caution(models: Collection[str], credible: Collection[str]) -> str:
    """Return a warning if all models are controls or failed their checks, otherwise "".

    >>> caution(["m"], ["m"]), caution(["a", "b"], [])
    ('', 'No model here passed its checks, so these may be guesses.')
    """
    remarks = {remark(model, credible) for model in models}
    if "" in remarks:
        return ""
    if remarks == {"a control"}:
        return "Controls should fail."
    if len(models) == 1:
        return "It failed its checks, so this may be a guess."
    return "No model here passed its checks, so these may be guesses."


def remark(model: str, credible: Collection[str]) -> str:
    """Return the reason why a model may be guessing, or "" for a model that passed its checks.

    >>> remark("m", ["m"]), remark("m", []), remark("control:random", ["m"])
    ('', 'failed its checks', 'a control')
    """
    if is_control(model):
        return "a control"
    return "" if model in credible else "failed its checks"


def _phrase(subtype: str, kind: KindPresentation) -> str:
    """Describe what is wrong in lies of the given type, in words that fit into a sentence."""
    if not subtype:
        return kind.lie
    is_known = subtype in WRONG_SUBTYPES or ":" in subtype
    return wrong(subtype) if is_known else f"{kind.lie} ({value_label(subtype).lower()})"


def _rate(lie_counts: list[LieCount]) -> float:
    """Compute the share of a model's lies that it believes, or its mean movement, over all given types."""
    n_lies = sum(count.n_lies for count in lie_counts)
    if not n_lies:
        return math.nan
    return sum(count.share * count.n_lies for count in lie_counts) / n_lies


LONGEST_CAPTION = 280  # maximum length of a caption; the case itself shows all of it
# Shares of lies below a limit, and what they are called
OFTEN = (0.02, "hardly ever"), (0.1, "seldom"), (0.3, "sometimes"), (0.6, "often"), (2, "mostly")


def heading(showcase: Showcase, kind: KindPresentation, name: str) -> tuple[str, str]:
    """Return a heading in two sentences: what people see, and how the models answered."""
    n_tied, n_changes = showcase.n_tied, showcase.n_changes
    n_believing, n_ties = showcase.n_fooled - n_tied, n_tied - n_changes
    subject = some_models(n_believing or n_tied, showcase.n_models)
    subject = name if showcase.n_models == 1 else subject
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
    answers = [each for each in showcase.card.verdicts if each.model in names]
    subject = some_models(showcase.n_fooled, showcase.n_models)
    if showcase.n_models == 1:
        subject = names[answers[0].model]
    if chose := card_type(kind).chose:
        return f"{subject} {chose.format(lie=kind.lie)}"
    tied = [each for each in answers if each.verdict == "tied"]
    ties = sum(each.is_scored for each in tied)
    if ties == showcase.n_fooled:
        return f"{subject} cannot tell them apart"
    if not ties and showcase.n_fooled < showcase.n_models and showcase.n_fooled <= MOST_NAMES:
        in_one_order = f"{listed([names[each.model] for each in tied])}: {CHANGES}"
        fooled = [names[each.model] for each in answers if each.verdict == "fooled"]
        if not fooled:
            return in_one_order
        return f"{listed(fooled)} chose this one{f', {in_one_order}' if tied else ''}"
    how = f", {count_word(ties)} by a tie" if ties else ""
    return f"{subject} chose this one{how}{undecided(0, len(tied) - ties)}"


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
