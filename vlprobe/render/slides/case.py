"""Slides about one case: the true captions, the wrong captions, and each model's answer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vlprobe.case.card import (
    ROLES,
    STYLES,
    CaseCard,
    CaseText,
    bar_lengths,
    card_type,
    case_card,
    verdict_word,
)
from vlprobe.render.quiz import ASKED
from vlprobe.render.sentences import (
    alike,
    capitalized,
    counted,
    hesitate,
    listed,
    shorten,
    some_models,
    undecided,
)
from vlprobe.render.slides.values import ModelMark, Slide, SlideBar, SlideOption, SlidePicture
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.bodies import body_of
from vlprobe.views.wall import ModelVerdict, WallCard

AUTHOR_TAGS = ("photographer", "author", "credit")  # of pictures, in a table of the user
LONGEST = 600  # maximum length of a caption on a slide
MOST_MARKS = 14  # models below a caption: two rows
MOST_BARS = 9  # other models are only counted
LENGTHS = {  # explains the length of a bar, by its unit
    "share": "",
    "spread": " Lengths are in units of each model's spread.",
    "side": " All bars have the same length, because models have different score scales.",
}
# Start and end of the bar for an answer without a score
SIDES = {"fooled": (0.5, 1.0), "held": (0.0, 0.5), "tied": (0.25, 0.75)}


def case_slides(
    models: Sequence[str], shown: WallCard, kind: KindPresentation, names: Mapping[str, str]
) -> list[Slide]:
    """Return the slides about a case: a vote and its answer if people can answer the case, else its two sides. The
    last slide shows how clearly each model answered, and is left out until someone includes it.

    Args:
        models: Models whose answers are shown.
    """
    card = case_card(shown, kind)
    verdicts = [answer for answer in shown.verdicts if answer.model in models]
    first, second = _sides(card)
    is_choice = len(card.sides) == 2 and not card.has_picture_per_side
    if body_of(kind).is_for_people and not kind.is_movement and is_choice:
        first, second = vote_slides(card, (first, second), verdicts, names)
    elif not kind.is_movement:
        second = _with_verdict(second, kind, verdicts)
    slides = (first, second, *_said(card, verdicts, names))
    return [replace(slide, case=card.case.id) for slide in slides]


def vote_slides(
    card: CaseCard,
    sides: tuple[Slide, Slide],
    verdicts: Sequence[ModelVerdict],
    names: Mapping[str, str],
) -> tuple[Slide, Slide]:
    """Return a slide with both captions to vote for, and one with the true caption and what each model chose.

    Args:
        sides: The slides about the true and the wrong caption, which supply pictures, texts and notes.
    """
    truth, lie = sides
    answered = _with_verdict(lie, card.kind, verdicts)
    marks = answered.marks
    true_words, false_words = alike((truth.heading, lie.heading))
    held = tuple(mark for mark in marks if mark.verdict == "held")
    fooled = tuple(mark for mark in marks if mark.verdict in ("fooled", "tied"))
    options = [SlideOption(true_words, "true", held), SlideOption(false_words, "lie", fooled)]
    if sum(card.case.id.encode()) % 2:  # the true caption is not always the first
        options.reverse()
    plain_options = (((("".join(text for text, _ in each.caption), ""),)) for each in options)
    vote = replace(
        truth,
        id="vote",
        tag="",
        heading=((ASKED, ""),),
        options=tuple(SlideOption(caption) for caption in plain_options),
    )
    reveal = replace(
        vote,
        id="reveal",
        heading=((answered.verdict, ""),),
        detail=_noticed(verdicts, names) if len(verdicts) > 1 else "",
        options=tuple(options),
        note=answered.note,
        notes=answered.notes,
    )
    return vote, reveal


def _sides(card: CaseCard) -> tuple[Slide, Slide]:
    """Return a slide for the true side and one for the wrong side. Both show the text if the case has only one."""
    case = card.case
    first, *middle = card.sides
    last = middle.pop() if middle else first
    source, target = card.changed_words
    changed = f"“{source}” becomes “{target}”. " if source and target else ""
    ranked_by = ""
    if case.answer and card.winner_of(case.answer):
        ranked_by = f"{case.answer.model} ranks this one first; other models may differ."
    truth = _side(card, 0, first, middle[0].text if middle else card.task)
    look = "Let everyone look at the picture first." if truth.pictures else ""
    truth_note, lie_note = card.speaker_notes
    lie = _side(card, 1, last, first.text if last.role is ROLES["mixture"] else card.task)
    return (
        replace(truth, notes=(truth_note or look, f"{changed}Case {case.id}.")),
        replace(lie, notes=(lie_note or card.kind.question, ranked_by)),
    )


def _side(card: CaseCard, side: int, text: CaseText, detail: str) -> Slide:
    tags = {name.lower(): value for name, value in card.case.tags.items()}
    author = next((tags[name] for name in AUTHOR_TAGS if tags.get(name)), "")
    pictures = tuple(
        SlidePicture(
            shot.name,
            shot.alt,
            style="lie" if shot.style == "wrong" else "",
            author=author if shot.name == card.case.images[0] else "",
        )
        for shot in card.side_pictures(side)
    )
    return Slide(
        id=("truth", "lie")[side],
        layout="beside" if pictures else "stacked",
        tag=text.role.tag,
        tag_style=text.role.tag_style,
        heading=tuple(text.runs(LONGEST)),
        detail=shorten(detail, LONGEST // 2),
        pictures=pictures,
    )


def believing(kind: KindPresentation, verdicts: Sequence[ModelVerdict]) -> str:
    """Say how many models are fooled, and how many cannot decide or are right in one order only.

    >>> answers = [ModelVerdict(name, -1.0) for name in ("a", "b")]
    >>> believing(KindPresentation(label=""), answers)
    'Both models believe the lie.'
    >>> believing(KindPresentation(label="", body="pair"), answers[:1])
    'The model mixes them up.'
    """
    answered = [answer for answer in verdicts if answer.verdict != "unknown"]
    fooled, tied = (
        sum(answer.verdict == verdict for answer in answered) for verdict in ("fooled", "tied")
    )
    n_changes = sum(answer.is_in_one_order for answer in answered)
    single_verb, plural_verb = (words.format(lie=kind.lie) for words in card_type(kind).fooled)
    many = len(answered)
    if not many:
        return "No model gave an answer."
    if not fooled and not tied:
        return "The model is not fooled." if many == 1 else "No model is fooled."
    subject = some_models(fooled or tied, many)
    if not fooled:
        return f"{subject} {hesitate(tied - n_changes, n_changes)}."
    verb = single_verb if fooled == 1 else plural_verb
    return f"{subject} {verb}{undecided(tied - n_changes, n_changes)}."


def _with_verdict(lie: Slide, kind: KindPresentation, verdicts: Sequence[ModelVerdict]) -> Slide:
    tied = [answer for answer in verdicts if answer.verdict == "tied"]
    n_ties = sum(answer.is_scored for answer in tied)
    ties = ""
    if n_ties:
        ties = f"{counted(n_ties, 'model')} gave both the same score, which counts as fooled."
    if n_changes := len(tied) - n_ties:
        ties += f" {counted(n_changes, 'model')} {hesitate(0, n_changes)}, which counts as half."
    n_models = len(verdicts)
    verdict = believing(kind, verdicts)
    return replace(
        lie,
        verdict=verdict,
        marks=tuple(
            ModelMark(answer.model, answer.verdict, verdict_word(answer))
            for answer in verdicts[:MOST_MARKS]
        ),
        note=f"Marks: the first {MOST_MARKS} of {n_models:,} models." * (n_models > MOST_MARKS),
        notes=(*lie.notes, verdict, capitalized(ties.strip())),
    )


def _noticed(verdicts: Sequence[ModelVerdict], names: Mapping[str, str]) -> str:
    """Say which models were not fooled."""
    answered = [answer for answer in verdicts if answer.verdict != "unknown"]
    held = [names[answer.model] for answer in answered if answer.verdict == "held"]
    if not held:
        return "No model noticed." if len(answered) > 1 else "It did not notice."
    if len(held) == len(answered):
        return "Every model noticed." if len(answered) > 1 else "It noticed."
    return f"{'Only ' * (len(held) == 1)}{listed(held)} noticed."


def _said(
    card: CaseCard, verdicts: Sequence[ModelVerdict], names: Mapping[str, str]
) -> list[Slide]:
    """Return a slide with one bar per model that shows how far the wrong side wins or how far the score moved."""
    kind = card.kind
    answers = [answer for answer in verdicts if not math.isnan(answer.margin)]
    if not answers:
        return []
    lengths, unit = bar_lengths(answers, kind)
    widest = max(map(abs, lengths.values()), default=0.0) or 1.0
    bars = []
    for answer in answers[:MOST_BARS]:
        size = abs(lengths.get(answer.model, 0.0)) / widest
        if kind.is_share:
            changed = abs(answer.margin)
            bars.append(
                SlideBar(answer.model, 0.0, min(changed, 1.0), f"{100 * changed:.0f} % changed")
            )
        elif kind.is_movement:
            bars.append(SlideBar(answer.model, 0.0, size, f"{abs(answer.margin):.3f}"))
        else:
            ends = (0.5, 0.5 + size / 2) if answer.margin <= 0 else (0.5 - size / 2, 0.5)
            ends = ends if answer.is_scored else SIDES[answer.verdict]
            style = STYLES[answer.verdict]
            bars.append(SlideBar(answer.model, *ends, verdict_word(answer), style=style))
    scale = "Right: the lie scores higher. Left: the truth does." + LENGTHS[unit]
    heading = _noticed(verdicts, names)
    if kind.is_share:
        scale = "Bars: share of the top pictures that another wording replaced."
        heading = card.heading("", False, "")[1]
    elif kind.is_movement:
        scale = f"Bars: how far the score moved.{LENGTHS[unit]}"
        heading = "Only the words changed, and the scores moved."
    elif not any(answer.is_scored for answer in answers):
        scale = (
            "Right: the model chose the wrong caption. Left: the true one. Both: one in each order."
        )
    margins = "; ".join(
        f"{answer.model} {answer.margin:+.3f}" for answer in answers[:MOST_BARS] if answer.is_scored
    )
    notes = f"Margins: {margins}.", "Zero is a tie, and a tie counts as fooled."
    if kind.is_share:
        model = card.case.answer.model if card.case.answer else ""
        notes = f"The heading is about {model}." if model else "", kind.question
    n_more = len(verdicts) - len(bars)
    return [
        Slide(
            id="said",
            heading=((heading, ""),),
            detail=f"“{shorten(card.case.wrong_text, 160)}”" if card.case.wrong_text else "",
            bars=tuple(bars),
            note=f"{scale} {counted(n_more, 'model')} more." if n_more else scale,
            notes=notes if margins else (),
            is_extra=True,
        )
    ]
