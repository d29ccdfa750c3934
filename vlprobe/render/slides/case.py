"""The slides about one case: the true captions, the wrong ones, and each model's answer."""

import math
from collections.abc import Mapping, Sequence

from vlprobe.render import wall
from vlprobe.render.case_lines import bar_lengths
from vlprobe.render.sentences import count_word, counted, every_model, listed, shorten
from vlprobe.render.slides.records import ModelMark, Run, Slide, SlideBar, SlidePicture
from vlprobe.render.wall import CHANGES
from vlprobe.types import Picture
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.changes import in_step
from vlprobe.views.story import Opener, Story
from vlprobe.views.wall import ModelVerdict, WallCard

LONGEST = 600  # characters of a caption on a slide
MOST_MARKS = 14  # models below a caption: two rows
MOST_BARS = 9  # models; the others are counted
BELIEVE = {  # what a model does that is fooled: one does, several do
    "pair": ("mixes them up", "mix them up"),
    "picture_search": ("prefers a mixture", "prefer a mixture"),
    "caption_search": ("ranks a lie first", "rank a lie first"),
    "triplet": ("puts the wrong two together", "put the wrong two together"),
}
WORDS = {"fooled": "fooled", "held": "held", "tied": "cannot tell", "unknown": "no answer"}
STYLES = {"fooled": "lie", "held": "true", "tied": "tie"}
LENGTHS = {  # what the length of a bar is
    "share": "",
    "spread": " Lengths: in each model's own spread.",
    "side": " Bars are equally long: scores of different models have different scales.",
}
# From where to where the bar of an answer without a score goes
SIDES = {"fooled": (0.5, 1.0), "held": (0.0, 0.5), "tied": (0.25, 0.75)}


def case_slides(
    story: Story, opener: Opener, kind: KindPresentation, names: Mapping[str, str]
) -> list[Slide]:
    """The true captions, the wrong ones, and the models' answers."""
    card = opener.card
    verdicts = [answer for answer in card.verdicts if answer.model in story.models]
    truth, lie = _sides(card, kind)
    answer_slides = _said(card, kind, verdicts, names)
    if not kind.is_movement:
        lie = _with_verdict(lie, kind, verdicts)
    return [truth, lie, *answer_slides]


def segments(before: str, after: str, style: str) -> tuple[Run, ...]:
    """The second of two texts as runs; words that the first does not have get the style, unless
    they are most of it.

    >>> segments("A red dog.", "A blue dog.", "lie")
    (('A', ''), (' ', ''), ('blue', 'lie'), (' dog.', ''))
    """
    runs: list[Run] = []
    steps = list(in_step(shorten(before, LONGEST), shorten(after, LONGEST)))
    if 2 * sum(len(text) for _, text, differs in steps if differs) > len(after):
        return ((shorten(after, LONGEST), ""),)  # nearly all is another: nothing to point at
    for _, text, differs in steps:
        if not differs:
            runs.append((text, ""))
        elif text:
            blank = text[: len(text) - len(text.lstrip())]
            runs += [(blank, "")] * bool(blank) + [(text.strip(), style)]
    return tuple(run for run in runs if run[0]) or ((shorten(after, LONGEST), ""),)


def _sides(card: WallCard, kind: KindPresentation) -> tuple[Slide, Slide]:
    """The true side and the other one."""
    true_style, lie_style = ("changed", "changed") if kind.is_movement else ("true", "lie")
    tags = ("This is true", "This is a lie")
    if kind.is_movement:
        tags = ("This is true", "The same in other words")
    if kind.body == "series":
        return _series(card)
    if kind.body == "rankings":
        tags = ("One wish", "The same wish in other words")
    if kind.body == "pair":
        return _twins(card)
    if kind.body == "picture_search":
        return _search(card)
    if kind.body == "triplet":
        return _triplet(card)
    pictures = _pictures(card, card.true_text)
    about = _about(card, kind)
    truth = Slide(
        id="truth",
        layout="beside" if pictures else "stacked",
        tag=tags[0],
        tag_style="" if kind.is_movement else "true",
        heading=segments(card.wrong_text, card.true_text, true_style),
        pictures=pictures,
        notes=("Let everybody look at the picture first." if pictures else "", about),
    )
    lie = Slide(
        id="lie",
        layout=truth.layout,
        tag=tags[1],
        tag_style="" if kind.is_movement else "lie",
        heading=segments(card.true_text, card.wrong_text, lie_style),
        pictures=pictures,
        notes=(kind.question, _ranked_by(card) if kind.body == "caption_search" else ""),
    )
    return truth, lie


def _pictures(card: WallCard, alt: str) -> tuple[SlidePicture, ...]:
    return tuple(SlidePicture(name, alt) for name in card.images[:1])


def _about(card: WallCard, kind: KindPresentation) -> str:
    source, target = wall.changed_words(card)
    if source and target:
        return f"“{source}” becomes “{target}”. Case {card.id}."
    return f"Case {card.id}."


def _series(card: WallCard) -> tuple[Slide, Slide]:
    """The texts, with the first and the last picture of the series; then the same, asked."""
    pictures = tuple(
        SlidePicture(name, text)
        for name, text in zip(
            (card.images[0], card.images[-1]), (card.true_text, card.texts[-1]), strict=True
        )
    )
    is_video = card.kind == "boundary"
    tags = ("Before", "After") if is_video else ("Asked for", "With one change")
    edited = card.wrong_text or card.true_text
    sides = ((card.true_text, edited), (edited, card.true_text))
    sides_of_case = tuple(
        Slide(
            id=name,
            layout="beside",
            tag=tag,
            heading=segments(before, text, "changed"),
            pictures=pictures,
            notes=(f"Case {card.id}.",),
        )
        for name, tag, (text, before) in zip(("truth", "lie"), tags, sides, strict=True)
    )
    return sides_of_case[0], sides_of_case[1]


def _twins(card: WallCard) -> tuple[Slide, Slide]:
    styles = "true", "true"
    sides = []
    texts = card.texts[:2] if len(card.texts) > 1 else (card.true_text, card.wrong_text)
    for index, tag in enumerate(("One picture, and its caption", "Its twin, and its caption")):
        name = card.images[index : index + 1]
        sides.append(
            Slide(
                id=("truth", "lie")[index],
                layout="beside" if name else "stacked",
                tag=tag,
                tag_style="true",
                heading=segments(texts[1 - index], texts[index], styles[index]),
                pictures=tuple(SlidePicture(each, texts[index]) for each in name),
                notes=("Both captions are true, each of its own picture.", f"Case {card.id}."),
            )
        )
    return sides[0], sides[1]


def _search(card: WallCard) -> tuple[Slide, Slide]:
    truth = Slide(
        id="truth",
        layout="beside",
        tag="Wanted, and found",
        tag_style="true",
        heading=((shorten(card.true_text, LONGEST), ""),),
        pictures=_pictures(card, card.true_text),
        notes=(f"The caption looks for its picture among many. Case {card.id}.",),
    )
    mixed = card.wrong_image
    lie = Slide(
        id="lie",
        layout="beside",
        tag="Another picture is mixed in",
        tag_style="lie",
        heading=((_mixture_of(card), ""),),
        detail=shorten(card.true_text, LONGEST),
        pictures=(SlidePicture(mixed, f"{card.true_text} Mixed.", style="lie"),) if mixed else (),
        notes=("The mixture is one more candidate, and must not come first.", _ranked_by(card)),
    )
    return truth, lie


def _mixture_of(card: WallCard) -> str:
    """Return the description of the picture that a model ranks first."""
    if not card.wrong_image:
        return "A mixture."
    picture = Picture.from_name(card.wrong_image)
    if str(picture.path) != card.images[0] or picture.edit is None:
        return "A mixture of other pictures."
    amount = "piece" if picture.edit.kind == "patch" else "trace"
    return f"The same, with a {amount} of another picture in it."


def _ranked_by(card: WallCard) -> str:
    """Return the model whose answer is the wrong side, if each model may have another."""
    return f"It is what {card.answer.model} ranks first; others may differ." if card.answer else ""


def _triplet(card: WallCard) -> tuple[Slide, Slide]:
    near, far, lie_text = card.texts[0], card.texts[1], card.texts[-1]
    pictures = _pictures(card, card.true_text)
    truth = Slide(
        id="truth",
        layout="beside" if pictures else "stacked",
        tag="These two mean the same",
        tag_style="true",
        heading=((shorten(near, LONGEST // 2), ""),),
        detail=shorten(far, LONGEST // 2),
        pictures=pictures,
        notes=(f"Case {card.id}.",),
    )
    lie = Slide(
        id="lie",
        layout=truth.layout,
        tag="This one only looks alike",
        tag_style="lie",
        heading=segments(near, lie_text, "lie"),
        pictures=pictures,
        notes=("Its words are nearly the same, and its meaning is another.",),
    )
    return truth, lie


def believing(kind: KindPresentation, verdicts: Sequence[ModelVerdict]) -> str:
    """Count how many models are fooled, as a sentence; ties count.

    >>> answers = [ModelVerdict(name, -1.0, "fooled") for name in ("a", "b")]
    >>> believing(KindPresentation(label=""), answers)
    'Both models believe the lie.'
    >>> believing(KindPresentation(label="", body="pair"), answers[:1])
    'The model mixes them up.'
    """
    answered = [answer for answer in verdicts if answer.verdict != "unknown"]
    fooled = sum(answer.verdict in ("fooled", "tied") for answer in answered)
    single_verb, plural_verb = BELIEVE.get(kind.body, ("believes the lie", "believe the lie"))
    many = len(answered)
    if not many:
        return "No model gave an answer."
    if many == 1:
        return f"The model {single_verb}." if fooled else "The model is not fooled."
    if not fooled:
        return "No model is fooled."
    if fooled == many:
        return f"{every_model(many).capitalize()} {plural_verb}."
    subject = f"{count_word(fooled)} of {count_word(many)} models"
    return f"{subject[:1].upper()}{subject[1:]} {single_verb if fooled == 1 else plural_verb}."


def _with_verdict(lie: Slide, kind: KindPresentation, verdicts: Sequence[ModelVerdict]) -> Slide:
    tied = [answer for answer in verdicts if answer.verdict == "tied"]
    n_ties = sum(answer.is_scored for answer in tied)
    ties = (
        f"{counted(n_ties, 'model')} scored both alike, which counts as fooled." if n_ties else ""
    )
    if n_changes := len(tied) - n_ties:
        ties += f" {counted(n_changes, 'model')} chose the wrong caption in one of two orders."
    return Slide(
        id=lie.id,
        layout=lie.layout,
        tag=lie.tag,
        tag_style=lie.tag_style,
        heading=lie.heading,
        detail=lie.detail,
        pictures=lie.pictures,
        verdict=believing(kind, verdicts),
        marks=tuple(ModelMark(answer.model, answer.verdict) for answer in verdicts[:MOST_MARKS]),
        note=f"Marks: the first {MOST_MARKS} of {len(verdicts):,} models."
        if len(verdicts) > MOST_MARKS
        else "",
        notes=(*lie.notes, believing(kind, verdicts), ties.strip()),
    )


def _noticed(verdicts: Sequence[ModelVerdict], names: Mapping[str, str]) -> str:
    """The models that were not fooled."""
    answered = [answer for answer in verdicts if answer.verdict != "unknown"]
    held = [names[answer.model] for answer in answered if answer.verdict == "held"]
    if not held:
        return "No model noticed." if len(answered) > 1 else "It did not notice."
    if len(held) == len(answered):
        return "Every model noticed." if len(answered) > 1 else "It noticed."
    return f"{'Only ' * (len(held) == 1)}{listed(held)} noticed."


def _said(
    card: WallCard,
    kind: KindPresentation,
    verdicts: Sequence[ModelVerdict],
    names: Mapping[str, str],
) -> list[Slide]:
    """One bar per model: how far the lie wins, or how far something moved."""
    answers = [answer for answer in verdicts if not math.isnan(answer.margin)]
    if not answers:
        return []
    if kind.body == "rankings":
        return _stayed(card, kind, answers)
    are_scored = any(answer.is_scored for answer in answers)
    lengths, unit = bar_lengths(answers, kind)
    widest = max(map(abs, lengths.values()), default=0.0) or 1.0
    bars = []
    for answer in answers[:MOST_BARS]:
        if not answer.is_scored:
            word = CHANGES if answer.verdict == "tied" else WORDS[answer.verdict]
            bars.append(
                SlideBar(answer.model, *SIDES[answer.verdict], word, style=STYLES[answer.verdict])
            )
            continue
        size = abs(lengths[answer.model]) / widest
        if kind.is_movement:
            bars.append(SlideBar(answer.model, 0.0, size, f"{abs(answer.margin):.3f}"))
            continue
        ends = (0.5, 0.5 + size / 2) if answer.margin <= 0 else (0.5 - size / 2, 0.5)
        style = STYLES.get(answer.verdict, "")
        bars.append(SlideBar(answer.model, *ends, WORDS[answer.verdict], style=style))
    left_out = len(verdicts) - len(bars)
    scale = "Right: the lie scores higher. Left: the truth does." + LENGTHS[unit]
    if not are_scored:
        scale = (
            "Right: the model chose the wrong caption. Left: the true one. Both: one in each order."
        )
    remarks = [
        f"Bars: how far the score moved.{LENGTHS[unit]}" if kind.is_movement else scale,
        f"{counted(left_out, 'model')} more." if left_out else "",
    ]
    heading = _noticed(verdicts, names)
    if kind.is_movement:
        heading = "Only the words changed, and the scores moved."
    margins = "; ".join(
        f"{answer.model} {answer.margin:+.3f}" for answer in answers[:MOST_BARS] if answer.is_scored
    )
    return [
        Slide(
            id="said",
            heading=((heading, ""),),
            detail=f"“{shorten(card.wrong_text, 160)}”" if card.wrong_text else "",
            bars=tuple(bars),
            note=" ".join(filter(None, remarks)),
            notes=(f"Margins as stored: {margins}.", "Zero is a tie, and a tie is a failure.")
            if margins
            else (),
        )
    ]


def _stayed(card: WallCard, kind: KindPresentation, answers: Sequence[ModelVerdict]) -> list[Slide]:
    """Count how many of the first pictures stayed: of one model all, of each model the share."""
    shared = wall.stayed(card)
    heading = "The same wish finds other pictures."
    if shared:
        heading = f"{count_word(shared[0])} of the first {count_word(shared[1])} pictures stayed."
        heading = heading[:1].upper() + heading[1:]
    bars = tuple(
        SlideBar(
            answer.model,
            0.0,
            min(abs(answer.margin), 1.0),
            f"{100 * abs(answer.margin):.0f} % changed",
        )
        for answer in answers[:MOST_BARS]
    )
    model = card.answer.model if card.answer else ""
    return [
        Slide(
            id="said",
            heading=((heading, ""),),
            detail=f"“{shorten(card.wrong_text, 160)}”",
            bars=bars,
            note="Bars: share of the first pictures that another wording replaced.",
            notes=(f"The heading is about {model}." if model else "", kind.question),
        )
    ]


def named_notes(slide: Slide, names: Mapping[str, str]) -> tuple[str, ...]:
    """The speaker's notes with the models' plain names."""
    lines = []
    for line in filter(None, slide.notes):
        for model in sorted(names, key=len, reverse=True):
            line = line.replace(model, names[model])
        lines.append(line)
    return tuple(lines)
