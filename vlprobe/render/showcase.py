"""A failure on Home in words: a heading of two lines, the captions with the changed words marked, who was fooled.

A line is a list of runs: a text and its style, "true", "lie", "changed" or "".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vlprobe.render import exchanged
from vlprobe.render.sentences import MOST_NAMES, count_word, every_model, listed, shorten
from vlprobe.render.wall import Run, stayed
from vlprobe.types import Picture
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.changes import in_step
from vlprobe.views.showcase import Showcase
from vlprobe.views.wall import WallCard

Line = list[Run]
LONGEST_CAPTION = 280  # characters of a caption; the case itself has all of it
PART_TAKEN = {"0.9": "A tenth", "0.8": "A fifth", "0.7": "Three tenths", "0.6": "Four tenths"}


@dataclass(frozen=True)
class Box:
    """A caption in a frame: its text, and its role."""

    line: Line
    label: str
    style: str  # "true", "lie" or "plain"


@dataclass(frozen=True)
class Shot:
    """A picture: its name, its alternative text, and the text below it."""

    name: str
    alt: str
    label: str = ""


def models_word(count: int, total: int, name: str) -> str:
    """The subject of a sentence about this many of all models; for a single one, its name.

    >>> models_word(6, 6, "A"), models_word(1, 6, "A"), models_word(39, 43, "A"), models_word(1, 1, "A")
    ('Six of six models', 'One of six models', '39 of 43 models', 'A')
    """
    if total == 1:
        return name
    subject = f"{count_word(count)} of {count_word(total)} models"
    return subject[0].upper() + subject[1:]


def heading(showcase: Showcase, kind: KindPresentation, name: str) -> tuple[str, str]:
    """Two sentences: the view of people, and the answers of models.

    Args:
        showcase: The case, and how many models it fools.
        kind: Kind of the case.
        name: Name of the selected model.
    """
    card = showcase.card
    subject = models_word(showcase.n_fooled, showcase.n_models, name)
    is_plural = showcase.n_fooled != 1

    def does(verb: str) -> str:
        return f"{subject} {verb}{'' if is_plural else 's'}"

    if kind.body == "rankings":
        shared = stayed(card)
        return (
            "Ask again in other words.",
            f"{count_of(*shared)} stay." if shared else "No picture stays.",
        )
    if kind.is_movement:
        return "The same, in other words.", f"{name} scores it differently."
    if kind.body == "picture_search":
        return mixed_heading(showcase, subject)
    if kind.body == "pair":
        return (
            "Two pictures, one difference.",
            f"{does('mix') if is_plural else f'{subject} mixes'} them up.",
        )
    if kind.body == "series":
        if card.kind == "boundary":
            return "A video changes once.", f"{does('see')} it at another moment."
        return "People put one picture first.", f"{does('put')} another one first."
    if kind.body == "triplet":
        return "Two of these say the same.", f"{does('see')} the wrong two."
    if kind.body == "caption_search":
        return "One caption is true.", f"{does('rank')} a false one first."
    exchange = exchanged.exchange(card)
    if exchange is None:
        return "One caption is true.", f"{does('believe')} the other."
    return exchange.truth, f"{does(exchange.verb)} {exchange.lie}."


def count_of(count: int, total: int) -> str:
    """Pictures in a sentence.

    >>> count_of(0, 5), count_of(2, 5)
    ('None of the first five pictures', 'Two of the first five pictures')
    """
    word = "none" if not count else count_word(count)
    return f"{word[0].upper()}{word[1:]} of the first {count_word(total)} pictures"


def mixed_heading(showcase: Showcase, subject: str) -> tuple[str, str]:
    """Describe a search that a mixed picture wins; the share that suffices is given only if it is the right picture's
    own mixture.
    """
    card = showcase.card
    edit = Picture.from_name(card.wrong_image).edit if card.wrong_image else None
    amount = PART_TAKEN.get(str(edit.lam)) if edit else None
    lose = "lose" if showcase.n_fooled != 1 else "loses"
    if card.wrong_image and edit is None:
        return "One picture is the right one.", f"{subject} {lose} it."
    if edit is None or amount is None or not is_own_mixture(card) or card.margin > 0:
        return "Mixed pictures hide among the others.", f"{subject} {lose} the right one."
    how = "of another picture" if edit.kind == "mix" else "covered by another picture"
    return f"{amount} {how} is enough.", f"{subject} {lose} the right one."


def is_own_mixture(card: WallCard) -> bool:
    """Return whether the mixed picture that wins is the right one, mixed."""
    names = (card.wrong_image, *card.images[:1])
    return len({Picture.from_name(name).path for name in names}) == 1 < len(names)


def marked(before: str, after: str, styles: tuple[str, str] = ("true", "lie")) -> tuple[Line, Line]:
    """Both captions as lines, each with the words marked in which it differs from the other.

    >>> marked("Two red dogs.", "Two red cats.")[1]
    [('Two red', ''), (' ', ''), ('cats', 'lie'), ('.', '')]
    """
    lines: tuple[Line, Line] = ([], [])
    texts = shorten(before, LONGEST_CAPTION), shorten(after, LONGEST_CAPTION)
    for *runs, differs in in_step(*texts):
        for line, run, style in zip(lines, runs, styles, strict=True):
            words = run.lstrip()
            if len(words) < len(run):
                line.append((" ", ""))
            if words:
                line.append((words, style if differs else ""))
    return lines


def shots(card: WallCard, kind: KindPresentation) -> list[Shot]:
    """The pictures of a case, the question's own first."""
    if kind.body == "pair":
        return [
            Shot(name, text, label)
            for name, text, label in zip(card.images, card.texts, ("Left", "Right"), strict=False)
        ]
    if kind.body == "series":
        labels = ("First", "Last") if card.kind == "boundary" else ("Fits best", "Fits least")
        names = (card.images[0], card.images[-1])
        return [
            Shot(name, card.true_text, label) for name, label in zip(names, labels, strict=True)
        ]
    right = [Shot(name, card.true_text) for name in card.images[:1]]
    if kind.body == "picture_search" and card.wrong_image and right:
        label = "Ranked first instead" if card.margin <= 0 else "Best of the mixed"
        mixed = Shot(card.wrong_image, f"{card.true_text} Mixed with another picture.", label)
        return [Shot(right[0].name, right[0].alt, "The right one"), mixed]
    return right


def boxes(card: WallCard, kind: KindPresentation, name: str) -> list[Box]:
    """The captions of a case, each with what it is; `name` is what the model is called that is looked at."""
    if kind.body == "picture_search":
        return [Box(plain_line(card.true_text), "What is searched", "plain")]
    if kind.body == "triplet":
        labels = ("Means the same", "Means the same", "Only looks alike")
        styles = ("true", "true", "lie")
        return [
            Box(plain_line(text), label, style)
            for text, label, style in zip(card.texts, labels, styles, strict=False)
        ]
    if kind.body == "series":
        before, after = marked(
            card.true_text, card.wrong_text or card.true_text, styles=("changed", "changed")
        )
        labels = ("Before", "After") if card.kind == "boundary" else ("Asked for", "Its edit")
        return [Box(before, labels[0], "plain"), Box(after, labels[1], "plain")]
    if kind.body == "pair":
        left, right = marked(*card.texts[:2], styles=("changed", "changed"))
        return [Box(left, "Left picture", "plain"), Box(right, "Right picture", "plain")]
    if kind.is_movement:
        wording, rewording = marked(card.true_text, card.wrong_text, styles=("changed", "changed"))
        return [Box(wording, "Asked", "plain"), Box(rewording, "Asked again", "plain")]
    truth, lie = marked(card.true_text, card.wrong_text)
    label = f"{name}'s first" if kind.body == "caption_search" else "The lie"
    return [Box(truth, "True", "true"), Box(lie, label, "lie")]


def plain_line(text: str) -> Line:
    """A caption without marks."""
    return [(shorten(text, LONGEST_CAPTION), "")]


def verdict(
    showcase: Showcase, kind: KindPresentation, names: Mapping[str, str], model: str
) -> str:
    """The fooled models, next to their marks.

    Args:
        showcase: The case.
        kind: Of it.
        names: Display names of models.
        model: The one that is looked at.
    """
    if kind.is_movement:
        return f"What {names[model]} answers"
    subject = every_model(showcase.n_models).capitalize()
    if showcase.n_models == 1:
        subject = names[
            next(answer.model for answer in showcase.card.verdicts if answer.model in names)
        ]
    elif showcase.n_fooled < showcase.n_models:
        subject = models_word(showcase.n_fooled, showcase.n_models, "")
    done = {
        "pair": "mixed them up",
        "caption_search": "put a false caption first",
        "picture_search": f"put {kind.lie} first",
        "triplet": "put the lookalike closer",
        "series": f"chose {kind.lie}",
    }.get(kind.body)
    if done:
        return f"{subject} {done}"
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
    """Name the models that chose the wrong caption, and those that did in one of two orders only."""
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
    """An adverb for a share of lies that are believed.

    >>> how_often(.0016), how_often(.05), how_often(.17), how_often(.7)
    ('hardly ever', 'seldom', 'often', 'mostly')
    """
    return next(
        word
        for limit, word in ((0.02, "hardly ever"), (0.1, "seldom"), (0.6, "often"), (2, "mostly"))
        if rate < limit
    )


def number_sentences(phrases: Sequence[str], rates: Sequence[float], name: str) -> list[str]:
    """One sentence per type of lie, the one believed least first, in their order on the page.

    Args:
        phrases: The error in the lies, such as "a wrong colour".
        rates: Shares that are believed, rising.
        name: Name of the model.

    >>> number_sentences(["a wrong colour", "a wrong number"], [.001, .3], "Tiny CLIP")
    ['A wrong colour hardly ever fools Tiny CLIP', 'A wrong number most of all']
    """
    sentences = []
    for index, (phrase, rate) in enumerate(zip(phrases, rates, strict=True)):
        begin = phrase[:1].upper() + phrase[1:]
        if index == 0:
            sentences.append(f"{begin} {how_often(rate)} fools {name}")
        elif index == len(rates) - 1 and rate > rates[index - 1]:
            sentences.append(f"{begin} most of all")
        else:
            sentences.append(f"{begin} {how_often(rate)} does")
    return sentences
