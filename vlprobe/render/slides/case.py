"""Slides about one case: the true captions, the wrong captions, and each model's answer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vlprobe.case.card import (
    STYLES,
    CaseCard,
    Shot,
    Strip,
    bar_lengths,
    card_type,
    case_card,
    verdict_word,
)
from vlprobe.render.sentences import (
    alike,
    capitalized,
    count_word,
    counted,
    hesitate,
    listed,
    shorten,
    some_models,
    undecided,
)
from vlprobe.render.slides.values import ModelMark, Slide, SlideBar, SlideOption, SlidePicture
from vlprobe.types import Picture
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
FRAMES = {"right": "true", "wrong": "lie", "new": "lie"}
UNNAMED = "A picture of the question"  # a longer text would give the answer
SAME = "Do both captions mean the same?"
LOST = "In one wording the truth beats this lie, in the other it loses."
ROOM = 0.8  # share of the width for the longest bar with its interval
# Start and end of the bar for an answer without a score
SIDES = {"fooled": (0.5, 1.0), "held": (0.0, 0.5), "tied": (0.25, 0.75)}


def case_slides(
    models: Sequence[str], shown: WallCard, kind: KindPresentation, names: Mapping[str, str]
) -> list[Slide]:
    """Return the slides about a case: a question that people answer first, and its answer. The
    last slide shows how clearly each model answered, and is left out until someone includes it.

    Args:
        models: Models whose answers are shown.
    """
    card = case_card(shown, kind)
    verdicts = [answer for answer in shown.verdicts if answer.model in models]
    is_choice = len(card.sides) == 2 and not card.has_picture_per_side
    is_vote = body_of(kind).is_for_people and not kind.is_movement and is_choice
    question, answer = _question(card), _answer(card, verdicts, names)
    if is_vote:
        question, answer = vote_slides(card, (question, answer), verdicts, names)
    elif len(card.sides) > 1:
        question, answer = _guess(card, question, answer)
    return [
        replace(slide, case=card.case.id)
        for slide in (question, answer, *_said(card, verdicts, names))
    ]


def question_and_answer(
    models: Sequence[str],
    shown: WallCard,
    kind: KindPresentation,
    names: Mapping[str, str],
    name: str,
) -> Slide:
    """Return the answer to a case, with the slide that is shown before it and asks the question.

    Args:
        name: Id of both slides.
    """
    slides = case_slides(models, shown, kind, names)
    question, answer, *_ = (replace(each, id=name) for each in slides)
    return replace(answer, question=question)


def vote_slides(
    card: CaseCard,
    slides: tuple[Slide, Slide],
    verdicts: Sequence[ModelVerdict],
    names: Mapping[str, str],
) -> tuple[Slide, Slide]:
    """Return a slide with both captions to vote for, and one with the true caption and what each model chose.

    Args:
        slides: The question and the answer, which supply pictures, texts and notes.
    """
    question, answer = slides
    true_words, false_words = alike([text.runs(LONGEST) for text in card.sides])
    held = tuple(mark for mark in answer.marks if mark.verdict == "held")
    fooled = tuple(mark for mark in answer.marks if mark.verdict in ("fooled", "tied"))
    options = [SlideOption(true_words, "true", held), SlideOption(false_words, "lie", fooled)]
    if _is_turned(card):
        options.reverse()
    captions = ["".join(text for text, _ in each.caption) for each in options]
    vote = replace(_asked(card, question, captions), id="vote")
    reveal = replace(
        answer,
        id="reveal",
        tag="",
        detail=_noticed(verdicts, names) if len(verdicts) > 1 else "",
        marks=(),
        options=tuple(options),
        notes=(
            "Ask who chose the wrong caption, and which words are wrong.",
            "Each model says which of the two captions fits the picture better."
            * bool(answer.pictures),
            *answer.notes,
        ),
    )
    return vote, reveal


def _is_turned(card: CaseCard) -> bool:
    """Return whether the wrong side of a case comes first, so that people cannot learn the place of the true one."""
    return bool(sum(card.case.id.encode()) % 2)


def _asked(card: CaseCard, question: Slide, captions: Sequence[str]) -> Slide:
    """Return a question with what people guess, and captions that they vote for."""
    guess = SAME if card.kind.is_movement and not card.kind.is_share else card.guess
    heading = guess.format(text=shorten(card.sides[0].text, LONGEST).removesuffix("."))
    count = "Count the hands for each answer." if captions else "Ask for a show of hands."
    return replace(
        question,
        tag="",
        heading=((heading, ""),),
        detail="",
        options=tuple(SlideOption(((caption, ""),)) for caption in captions),
        notes=(question.notes[0], count, *question.notes[1:]),
    )


def _guess(card: CaseCard, question: Slide, answer: Slide) -> tuple[Slide, Slide]:
    """Return a question that people answer before they see what the models did, and the answer with captions and
    pictures in the same order.
    """
    texts = [shorten(side.text, LONGEST) for side in card.sides]
    if card.kind.is_movement or not card.choices:
        both = "\n".join(f"“{text}”" for text in texts)
        asked = _asked(card, question, ())
        return replace(asked, detail=both if card.kind.is_movement else card.task), answer
    order = -1 if _is_turned(card) else 1
    if card.choices == "pictures":
        if len(answer.pictures) < 2:
            return question, answer
        pictures = answer.pictures[::order]
        numbered = tuple(
            replace(each, label=str(number), style="vote", alt=UNNAMED)
            for number, each in enumerate(pictures, 1)
        )
        question = replace(_asked(card, question, texts), options=(), pictures=numbered)
        if mixed_in := _mixed_in(card):
            answer = replace(answer, layout="stacked")
        return question, replace(answer, pictures=(*pictures, *mixed_in))
    if card.has_picture_per_side:  # one picture is shown, and the captions keep their places
        pictures = side_pictures(card, int(_is_turned(card)))
        plain = tuple(replace(each, alt=UNNAMED) for each in pictures)
        question = replace(question, pictures=plain)
        order = 1
    elif len(texts) > 2:  # the question names the first text, and no model sees the picture
        question = replace(question, pictures=(), layout="stacked", notes=("", *question.notes[1:]))
        answer = replace(answer, detail=f"“{texts[0]}” {answer.detail}")
    options = answer.options[-2:][::order]
    return _asked(card, question, texts[-2:][::order]), replace(answer, options=options)


def _mixed_in(card: CaseCard) -> tuple[SlidePicture, ...]:
    """Return the picture that was mixed into the right one; none if the wrong picture is no such mixture."""
    wrong, right = (
        Picture.from_name(name) for name in (card.case.wrong_image, card.case.images[0])
    )
    if wrong.edit is None or wrong.path != right.path:
        return ()
    share = 100 - round(100 * wrong.edit.lam)
    label = f"Mixed in: {share} % of this picture"
    return (SlidePicture(str(wrong.edit.partner), "The picture that is mixed in", label),)


def _question(card: CaseCard) -> Slide:
    """Return the slide with the true side of a case."""
    first, *middle = card.sides[:-1] or card.sides
    pictures = side_pictures(card, 0)
    return Slide(
        id="truth",
        layout="beside" if pictures else "stacked",
        tag=first.role.tag,
        tag_style=first.role.tag_style,
        heading=((shorten(first.text, LONGEST), ""),),  # alone, so no word is marked
        detail=shorten(middle[0].text if middle else card.task, LONGEST // 2),
        pictures=pictures,
        notes=(
            card.speaker_notes[0] or "Let everyone look at the picture first." * bool(pictures),
            _changed(card).strip(),
        ),
    )


def _answer(card: CaseCard, verdicts: Sequence[ModelVerdict], names: Mapping[str, str]) -> Slide:
    """Return the slide with all texts and pictures of a case, and what the models answered."""
    case, kind, last = card.case, card.kind, card.sides[-1]
    model = case.answer.model if case.answer else ""
    strips = card.strips() if kind.is_share else []
    shots = card.pictures if card.has_picture_per_side else card.side_pictures(1)
    pictures = _ranked(card, strips) or _pictures(card, shots, names.get(model, model))
    ranked_by = note = ""
    if strips:  # which the slide may show in any number of rows
        first, second = (count_word(len(strip.pictures)) for strip in strips[:2])
        note = f"Pictures: {first} for the first wording, then {second} for the second. Framed: for both."
    if case.answer and card.winner_of(case.answer):
        ranked_by = f"{model} ranks this one first; other models may differ."
    slide = Slide(
        id="lie",
        layout="beside" if pictures and not strips and len(pictures) < 3 else "stacked",
        tag=last.role.tag if kind.is_movement else "",
        heading=((LOST if case.lie[1] else _moved(card), ""),),
        detail=f"Answer of {names.get(model, model)}"
        if kind.is_share
        else _scores(card, names) or card.task,
        pictures=pictures,
        options=tuple(
            SlideOption(
                (
                    (f"{text.role.box.format(name=names.get(model, model))}: ", ""),
                    *text.runs(LONGEST),
                ),
                "plain" if text.role.box_style not in ("true", "lie") else text.role.box_style,
            )
            for text in card.sides
            if text.role.box
        )
        + (SlideOption((("A lie: ", ""), (case.lie[1], "")), "lie"),) * bool(case.lie[1]),
        note=note,
        notes=(card.speaker_notes[1] or kind.question, ranked_by),
    )
    return slide if kind.is_movement else _with_verdict(slide, kind, verdicts)


def _ranked(card: CaseCard, strips: Sequence[Strip]) -> tuple[SlidePicture, ...]:
    """Return the pictures that two wordings rank first, those that both have in a frame."""
    rows = [[shot.name for shot in strip.pictures] for strip in strips]
    pictures = _pictures(card, [shot for strip in strips for shot in strip.pictures])
    return tuple(
        replace(each, label="", style="true" * all(each.name in row for row in rows))
        for each in pictures
    )


def _moved(card: CaseCard) -> str:
    """Say what another wording changed."""
    if card.kind.is_share:
        return card.heading("", False, "")[1]
    return "Only the words changed, and the scores moved."


def _scores(card: CaseCard, names: Mapping[str, str]) -> str:
    """Write a model's scores for two wordings, and for a lie between them; "" without scores."""
    case = card.case
    if (
        not card.kind.is_movement
        or case.answer is None
        or len(case.answer.scores) != 2
        or math.isnan(case.margin)
    ):
        return ""
    model, (first, second) = case.answer.model, case.answer.scores
    lie = f", {case.lie[0]:.3f} for the lie" * bool(case.lie[1])
    return f"Scores of {names.get(model, model)}: {first:.3f} asked, {second:.3f} asked again{lie}."


def _changed(card: CaseCard) -> str:
    """Say how the wrong caption was made from the true one: the words, or both sentences if several places changed."""
    first, last = card.sides[0].text, card.sides[-1].text
    source, target = card.changed_words
    if not (source and target):
        if body_of(card.kind).ranks or first == last:
            return ""
        source, target = first.removesuffix("."), last.removesuffix(".")
    return f"“{source}” becomes “{target}”. "


def side_pictures(card: CaseCard, side: int) -> tuple[SlidePicture, ...]:
    """Return the pictures next to the true text (side 0) or the wrong text (side 1)."""
    return _pictures(card, card.side_pictures(side))


def _pictures(card: CaseCard, shots: Sequence[Shot], name: str = "") -> tuple[SlidePicture, ...]:
    tags = {name.lower(): value for name, value in card.case.tags.items()}
    author = next((tags[name] for name in AUTHOR_TAGS if tags.get(name)), "")
    return tuple(
        SlidePicture(
            shot.name,
            shot.alt,
            label=shot.label.replace("the model", name) * (len(shots) > 1),
            style=FRAMES.get(shot.style, "") * (len(shots) > 1),
            author=author if shot.name == card.case.images[0] else "",
        )
        for shot in shots
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


def _with_verdict(slide: Slide, kind: KindPresentation, verdicts: Sequence[ModelVerdict]) -> Slide:
    tied = [answer for answer in verdicts if answer.verdict == "tied"]
    n_ties = sum(answer.is_scored for answer in tied)
    ties = ""
    if n_ties:
        ties = f"{counted(n_ties, 'model')} gave both the same score, which counts as fooled."
    if n_changes := len(tied) - n_ties:
        ties += f" {counted(n_changes, 'model')} {hesitate(0, n_changes)}, which counts as half."
    n_models = len(verdicts)
    return replace(
        slide,
        heading=((believing(kind, verdicts), ""),),
        marks=tuple(
            ModelMark(answer.model, answer.verdict, verdict_word(answer))
            for answer in verdicts[:MOST_MARKS]
        ),
        note=f"Marks: the first {MOST_MARKS} of {n_models:,} models." * (n_models > MOST_MARKS),
        notes=(*slide.notes, capitalized(ties.strip())),
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
                SlideBar(answer.model, 0.0, changed * ROOM, f"{100 * changed:.0f} % changed")
            )
        elif kind.is_movement:
            bars.append(SlideBar(answer.model, 0.0, size, f"{abs(answer.margin):.3f}"))
        else:
            ends = (0.5, 0.5 + size / 2) if answer.margin <= 0 else (0.5 - size / 2, 0.5)
            ends = ends if answer.is_scored else SIDES[answer.verdict]
            style = STYLES[answer.verdict]
            bars.append(SlideBar(answer.model, *ends, verdict_word(answer), style=style))
    scale = "Right: the lie scores higher. Left: the truth does." + LENGTHS[unit]
    heading = _moved(card) if kind.is_movement else _noticed(verdicts, names)
    if kind.is_share:
        scale = "Bars: share of the top pictures that another wording replaced."
    elif kind.is_movement:
        scale = f"Bars: how far the score moved.{LENGTHS[unit]}"
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
            scale=ROOM if kind.is_share else 0.0,
            limit=ROOM if kind.is_share else 0.0,
            limit_label="100 %",
            note=f"{scale} {counted(n_more, 'model')} more." if n_more else scale,
            notes=notes if margins else (),
            is_extra=True,
        )
    ]
