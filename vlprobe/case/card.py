"""Describes one case for pages and reports: texts with marked words, pictures, bars and numbers.

`case_card` is the only function that chooses a class by the kind of case. `case.html` and `case.json` convert the
result. A line of text is a list of runs. A run is a piece of text and its style: "true", "lie", "changed" or "".
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from vlprobe.registry import is_control
from vlprobe.render import exchanged
from vlprobe.render.quiz import ASKED
from vlprobe.render.sentences import CHANGES, LONGEST, capitalized, count_word, shorten
from vlprobe.render.words import NOT_RENAMED, edit_title, model_name, value_label
from vlprobe.types import Picture
from vlprobe.types.presentation import CardBody, KindPresentation
from vlprobe.views.changes import changed_words, is_in_several_places, word_runs
from vlprobe.views.records import AnswerRow
from vlprobe.views.wall import ModelVerdict, WallCard, verdict_of

Run = tuple[str, str]
Column = Callable[[AnswerRow], str]
ICONS = {"true": "✓", "lie": "✕", "tie": "=", "quiet": "?", "same": "✓", "moved": ""}
VERDICT_WORDS = {  # in legend order
    "fooled": "fooled",
    "held": "not fooled",
    "tied": "cannot tell",
    "unknown": "no answer",
}
CHOICE_WORDS = {  # for answers that are only right or wrong
    "fooled": "chose the wrong caption",
    "held": "chose the true caption",
    "tied": CHANGES,
    "unknown": "no answer",
}
STYLES = {"fooled": "lie", "held": "true", "tied": "tie", "unknown": "quiet"}
LEAST_SIDE, MOST_SIDE = 0.12, 0.88  # limits of the zero line, as a share of the bar
TITLE_AT = 0.5  # at most, so that the title fits
LENGTHS = {
    "share": " by",
    "spread": " by (in standard deviations)",
}  # words for bar lengths
FLIPPED = "+flip:"  # in the rule of a wrong caption that is also reworded
FEW_TEXTS = 4  # if a case has more texts, only the two compared ones are listed
MOST_IN_SERIES = 10  # maximum number of pictures in a strip
FRAMES = "Solid frame: the right choice. Dashed frame: the model's choice."
MOST_MARKED = 600  # characters of a caption that are compared: a hostile one of 2,000 takes 10 s
LONGEST_WINNER = 120  # characters of a text that a model ranks first
BEST = "Which picture fits “{text}” best?"
VIDEO = "Apart from places and background, what changes from the first to the last picture?"
PART_TAKEN = {"0.9": "A tenth", "0.8": "A fifth", "0.7": "Three tenths", "0.6": "Four tenths"}


@dataclass(frozen=True, slots=True)
class Role:
    """The role of a text in a case, such as true or false, in the words of each page; "" if a page omits the role."""

    label: str  # label in the drawer
    style: str = "quiet"  # style of the label: "true", "same", "lie", "tie" or "quiet"
    icon: str = "?"
    box: str = ""  # label on Home
    box_style: str = "plain"  # "true", "lie" or "plain"
    tag: str = ""  # label above a slide
    tag_style: str = ""  # "true", "lie" or ""


ROLES = {
    "true": Role("True", "true", "✓", "True", "true", "This is true", "true"),
    "lie": Role("False", "lie", "✕", "The lie", "lie"),
    "first": Role("False", "lie", "✕", "{name}'s first", "lie"),
    "same": Role("Also true", "same", "✓"),
    "different": Role("Also wrong", "lie", "✕"),
    "asked": Role("True", "true", "✓", "Asked", "plain"),
    "reworded": Role(
        "Reworded", "quiet", "↻", "Asked again", "plain", "Same meaning, different words"
    ),
    "left": Role("Left", "true", "✓", "Left picture", "plain"),
    "right": Role("Right", "true", "✓", "Right picture", "plain"),
    "meaning": Role("A caption", "true", "✓", "Means the same", "true"),
    "same meaning": Role("Means it", "same", "✓", "Means the same", "true"),
    "lookalike": Role("False", "lie", "✕", "Only looks similar", "lie"),
    "wanted": Role("Asked for", box="Searched for"),
    "mixture": Role(""),
    "wish": Role("Asked for", box="Asked"),
    "wording": Role("", icon="↻", box="Asked again", tag="The same search in other words"),
    "before": Role("Before", icon="1", box="Before", tag="Before"),
    "after": Role("After", icon="2", box="After"),
    "query": Role("Asked for", box="Asked for", tag="Asked for"),
    "edit": Role("Its edit", icon="↻", box="Its edit"),
}


@dataclass(frozen=True, slots=True)
class CaseText:
    """A text in a case. Words that differ from another text can be marked."""

    role: Role
    text: str
    other: str = ""
    mark: str = ""  # style of the differing words; "" marks none
    is_after: bool = False  # whether the text was made from the other one

    def runs(self, longest: int = 0) -> list[Run]:
        """Split the text into runs: pieces with a style. The text is cut to `longest` characters,
        or kept whole if that is 0.

        >>> CaseText(ROLES["lie"], "A red cat.", "A red dog.", "lie", True).runs()
        [('A red', ''), (' ', ''), ('cat', 'lie'), ('.', '')]
        """
        text, other = self.text, self.other
        if longest:
            text, other = shorten(text, longest), shorten(other, longest)
        if not self.mark:
            return [(text, "")]
        original, edited = (other, text) if self.is_after else (text, other)
        return [
            (words, self.mark if differs else "")
            for words, differs in word_runs(original, edited, self.is_after)
            if words
        ]


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture in a case, with its label and the style of its frame."""

    name: str
    alt: str
    label: str = ""  # text below the picture
    detail: str = ""  # text after the label, if there is room
    style: str = ""  # frame: "right", "wrong", "new" or ""


@dataclass(frozen=True, slots=True)
class Strip:
    """A row of pictures with a label."""

    label: str
    pictures: Sequence[Shot]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ModelBar:
    """One model's answer to a case as a bar. Positions are shares of the available width."""

    model: str
    name: str
    begin: float
    width: float
    is_lie: bool  # whether the wrong side wins
    style: str
    word: str
    size: str  # size of the margin in words; "" if it has none


@dataclass(frozen=True, slots=True)
class Bars:
    """All models' answers to a case as bars."""

    title: str  # "" if no model has a bar
    title_at: float
    zero: float  # position at which neither side wins
    scale: float  # width of a bar of length 1
    lines: Sequence[ModelBar]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A table of one model's scores on a case: column headings, and rows with a heading and cells (text and style)."""

    titles: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Run]]]


@dataclass(frozen=True, slots=True)
class Winner:
    """The candidate that a model ranks first in a search, which is a text or a picture."""

    sentence: str  # for a screen reader
    text: str = ""
    picture: str = ""  # name of the picture


@dataclass(frozen=True)
class CaseCard:
    """A case with a picture, a true caption, and a wrong or reworded one. Subclasses describe other cases."""

    case: WallCard
    kind: KindPresentation
    # Answers by model, for tables of scores
    answers: Mapping[str, AnswerRow] = field(default_factory=dict)

    believed: ClassVar[str] = "believed"  # what happened to wrong captions that count as failures
    winner: ClassVar[str] = "the wrong caption"  # what wins if a model is fooled
    # What one fooled model does, and what several do
    fooled: ClassVar[tuple[str, str]] = ("believes the lie", "believe the lie")
    opening: ClassVar[str] = ""  # what people see, in a heading; "" names the exchanged words
    # What fooled models did, with the kind's {lie}; "" counts the choices
    chose: ClassVar[str] = ""
    shows_query: ClassVar[bool] = False  # a small card shows the query, not the changed words
    is_neutral: ClassVar[bool] = False  # whether both of the two texts are right
    has_large_pictures: ClassVar[bool] = True  # whether pictures are shown above the texts
    counts_pictures: ClassVar[bool] = True  # whether a heading counts the pictures of the cases
    group: ClassVar[str] = "picture"  # what the cases of one card on the wall have in common
    has_picture_per_side: ClassVar[bool] = False
    wrong_role: ClassVar[str] = "lie"
    speaker_notes: ClassVar[tuple[str, str]] = ("", "")  # notes below the slides for the two sides
    task = ""  # what a model has to do, on slides whose captions do not show it
    # What people guess on the slide before the answer, with the first {text}, and what they choose from
    guess: ClassVar[str] = ASKED
    choices: ClassVar[Literal["captions", "pictures", ""]] = "captions"

    # Texts.

    @property
    def sides(self) -> list[CaseText]:
        """The texts to compare: the true one, followed by the wrong or reworded one."""
        true, wrong = self.case.true_text, self.case.wrong_text
        if not wrong:
            return [CaseText(ROLES["true"], true)]
        if self.kind.is_movement:
            return self._changed("asked", "reworded", true, wrong)
        source, target = self.case.source, self.case.target
        if FLIPPED in self.case.rule and _has_once(true, source) and _has_once(wrong, target):
            # The captions also differ by a rewording, which is not wrong
            return [
                CaseText(ROLES["true"], true, _with(true, source, target), "true"),
                CaseText(self.loser, wrong, _with(wrong, target, source), "lie", True),
            ]
        return [
            CaseText(ROLES["true"], true, wrong, "true"),
            CaseText(self.loser, wrong, true, "lie", True),
        ]

    @staticmethod
    def _changed(first: str, second: str, original: str, edited: str) -> list[CaseText]:
        """Return two right texts with the changed words marked, or only the first text if `edited` is empty."""
        if not edited:
            return [CaseText(ROLES[first], original)]
        return [
            CaseText(ROLES[first], original, edited, "changed"),
            CaseText(ROLES[second], edited, original, "changed", True),
        ]

    @property
    def loser(self) -> Role:
        """The role of the wrong text, with a label that depends on the answer by the filter's model."""
        case, role = self.case, ROLES[self.wrong_role]
        style, label = "lie", "Preferred" if case.margin < 0 else "False"
        if math.isnan(case.margin):
            style = "quiet"
        elif not case.is_scored and case.margin <= 0:
            style, label = ("lie", "Chosen") if case.margin else ("tie", "Chosen in one order")
        elif case.margin == 0:
            style, label = "tie", "As high"
        return replace(role, style=style, label=label, icon=ICONS[style])

    @property
    def texts(self) -> list[CaseText]:
        """The texts in the drawer: the compared ones and, if there is room, the other true captions of the picture."""
        first, *others = [side for side in self.sides if side.role.label]
        if len(self.case.texts) > FEW_TEXTS or not others:
            return [first, *others]
        also_true = [text for text in self._others([first, *others]) if text.role is ROLES["same"]]
        return [first, *also_true, *others]

    @property
    def more_texts(self) -> list[CaseText]:
        """The texts of the case that are not in `texts`; the drawer lists them in the details."""
        return self._others(self.texts)

    def _others(self, shown: Sequence[CaseText]) -> list[CaseText]:
        known = {self.case.true_text, *(text.text for text in shown)}
        pairs = dict.fromkeys(zip(self.case.texts, self.case.roles, strict=True))
        return [
            CaseText(ROLES["different" if role == "different" else "same"], text)
            for text, role in pairs
            if text not in known
        ]

    # Pictures.

    @property
    def pictures(self) -> list[Shot]:
        """All pictures in the case, the question's own picture first."""
        return [Shot(name, self.case.true_text) for name in self.case.images[:1]]

    @property
    def front(self) -> list[Shot]:
        """The pictures on the small card for the case."""
        return self.pictures

    def side_pictures(self, side: int) -> list[Shot]:
        """Return the pictures to show on a slide next to the true text (side 0) or the wrong text (side 1)."""
        return self.pictures[side : side + 1] if self.has_picture_per_side else self.pictures

    def strips(self, everything: bool = False) -> list[Strip]:
        """Return the rows of pictures below the texts: the most informative ones, or all if `everything` is true."""
        return []

    # Words.

    @property
    def changed_words(self) -> tuple[str, str]:
        """The removed and the inserted words, both "" if several places changed: those are shown as whole sentences. A
        capital letter at the start of a caption is lowercased.
        """
        if is_in_several_places(self.case.source, self.case.target):
            return "", ""
        sides = ((self.case.source, self.case.true_text), (self.case.target, self.case.wrong_text))
        source, target = (_without_capital(shorten(words, 80), text) for words, text in sides)
        return source, target

    def wrong_runs(self, longest: int) -> list[Run]:
        """Return the wrong or reworded caption with its changed words marked, cut to about `longest` characters around
        the first of them.
        """
        text = self.case.wrong_text or self.case.true_text
        side = next((side for side in self.sides if side.text == text), CaseText(self.loser, text))
        runs = side.runs(MOST_MARKED)
        if len(side.text) <= longest:
            return runs
        place = next((place for place, (_, style) in enumerate(runs) if style), 0)
        begin, changed = "".join(words for words, _ in runs[:place]), runs[place][0]
        if longest - len(changed) <= len(begin) > longest // 2:  # marked words would be cut off
            space = begin.rfind(" ", 0, -longest // 2)
            begin = f"… {begin[max(space + 1, len(begin) - longest * 2 // 3) :]}"
        kept, room = [], longest - 1
        for words, style in [(begin, ""), *runs[place:]]:
            kept.append((words[: max(room, 0)], style))
            room -= len(words)
        return [run for run in [*kept, ("…" * (room < 0), "")] if run[0]]

    @property
    def swapped_words(self) -> tuple[str, str]:
        """The two words or phrases of the true caption that trade places in the wrong one; both "" if none do."""
        sources, targets = self.case.source.split(", "), self.case.target.split(", ")
        is_swap = len(sources) == 2 and sources == targets[::-1]
        return (sources[0], sources[1]) if is_swap else ("", "")

    @property
    def change(self) -> list[Run]:
        """The removed and the inserted words, or the swapped words, as one line of runs; empty if there are none."""
        is_neutral = self.kind.is_movement or self.is_neutral
        true_style, lie_style = ("changed", "changed") if is_neutral else ("true", "lie")
        first, second = self.swapped_words
        if first:
            return [(first, lie_style), ("swapped with", "swap"), (second, lie_style)]
        source, target = self.changed_words
        if source and target:
            return [(source, true_style), ("became", "arrow"), (target, lie_style)]
        if target:
            return [("added: ", "quiet"), (target, lie_style)]
        return [("left out: ", "quiet"), (source, true_style)] if source else []

    @property
    def judges(self) -> list[ModelVerdict]:
        """The verdicts for all models except controls. If there are only controls, the verdicts for the controls."""
        models = [verdict for verdict in self.case.verdicts if not is_control(verdict.model)]
        return models or list(self.case.verdicts)

    @property
    def count_text(self) -> str:
        """How many models are fooled (including ties), such as "2 of 6" or, if an answer is right in one order of the
        captions only, "1½ of 6"; for a single model, its verdict in words.
        """
        verdicts = self.judges
        if len(verdicts) == 1:
            return verdict_word(verdicts[0])
        n_halves = sum(
            (2 - verdict.is_in_one_order) * (verdict.verdict in ("fooled", "tied"))
            for verdict in verdicts
        )
        n_fooled = f"{n_halves // 2 or ''}{'½' * (n_halves % 2)}" or "0"
        return f"{n_fooled} of {len(verdicts)}"

    @property
    def verdict_text(self) -> str:
        """A description of how many models the case fools, for screen readers."""
        if self.kind.is_movement:
            margin, spread = self.case.margin, self.case.spread
            in_spreads = f" ({abs(margin) / spread:.1f} sd)" if spread > 0 else ""
            size = "-" if math.isnan(margin) else f"{abs(margin):.3f}{in_spreads}"
            return f"score moved by {size}"
        if len(self.judges) < 2:
            return self.count_text
        return ", ".join(filter(None, [f"{self.count_text} models fooled", self.half_text]))

    @property
    def half_text(self) -> str:
        """How many of several models are right in one order of the captions only, which rates count as half; or ""."""
        n_halves = sum(verdict.is_in_one_order for verdict in self.judges)
        return f"{count_word(n_halves)} {CHANGES}" if n_halves and len(self.judges) > 1 else ""

    @property
    def name(self) -> str:
        """The accessible name of the card: what changed, how many models are fooled, and the true caption."""
        case = self.case
        begin = case.wrong_text or case.true_text
        if self.shows_query:
            begin = self.kind.lie
        elif all(self.changed_words):
            begin = " became ".join(self.changed_words)
        begin = shorten(capitalized(begin), 160).removesuffix(".")
        return f"{begin}, {self.verdict_text}: {shorten(case.true_text)}"

    def heading(self, subject: str, is_plural: bool, name: str) -> tuple[str, str]:
        """Return a heading in two sentences: what people see in the case, and how the models
        answer.

        Args:
            subject: The subject of the second sentence, such as "Two of six models".
            is_plural: Whether the verb after the subject is plural.
        """
        if self.kind.is_movement:
            return "One meaning, two wordings.", f"{name} scores them differently."
        if self.opening:
            return self.opening, f"{subject} {self.fooled[is_plural].format(lie=self.kind.lie)}."
        exchange = exchanged.exchange(*self.changed_words, self.case.subtype, self.case.true_text)
        ending = "" if is_plural else "s"
        if exchange is None:
            return "One caption is true.", f"{subject} believe{ending} the other."
        return exchange.truth, f"{subject} {exchange.verb}{ending} {exchange.lie}."

    @property
    def facts(self) -> dict[str, str]:
        """The properties of the case, such as its id and tags, by label. The texts are not included."""
        case = self.case
        question = self.kind.label
        if case.subtype:
            question = f"{question} · {edit_title(case.subtype)}"
        values = {"Question": question, "Rule": value_label(case.rule)}
        if case.answer is None and any(self.changed_words):  # else they depend on the model
            values["Words"] = " → ".join(words or "(nothing)" for words in self.changed_words)
        values["Case"] = case.id
        if case.images:
            names = [Picture.from_name(name).path.name for name in case.images]
            values["Pictures"] = ", ".join(names)
        return values | {f"Tag {name}": value for name, value in case.tags.items() if value}

    # Numbers.

    @property
    def columns(self) -> Mapping[str, Column]:
        """Additional columns for the table of models, by heading: functions that format a value from an answer."""
        if len(self.case.images) != 1:
            return {}
        if self.kind.edit_label or len(self.case.texts) == 2:
            return {"true": _score(0), self.kind.edit_column: _score(1)}
        if not any(len(answer.scores) == len(self.case.texts) for answer in self.answers.values()):
            return {}
        words = {"original": "true", "same": "also true", "different": self.kind.edit_column}
        columns: dict[str, Column] = {}
        for index, role in enumerate(self.case.roles):
            number = f" {index + 1}" if words[role] in columns else ""
            columns[f"{words[role]}{number}"] = _score(index)
        return columns

    def matrix(self, model: str) -> Matrix | None:
        """Return a table of one model's scores for cases with several comparisons, else None."""
        return None

    def winner_of(self, answer: AnswerRow | None) -> Winner | None:
        """Return the candidate that a model ranks first in a search, or None if the case is not a search."""
        return None


class ChangedPictureCard(CaseCard):
    """A case with a picture, a changed copy of the picture, a true caption and a wrong caption."""

    speaker_notes = (
        "The caption is true of the picture before and after the change.",
        "The second picture is the changed one. The true caption should still score higher than "
        "the wrong one.",
    )

    @property
    def pictures(self) -> list[Shot]:
        """The pictures before and after the change."""
        label = value_label(self.case.subtype)
        original, changed = self.case.images[:2]
        return [
            Shot(original, self.case.true_text, "Before"),
            Shot(changed, f"{self.case.true_text} {label}.", "After", f": {label}"),
        ]

    @property
    def columns(self) -> Mapping[str, Column]:
        """Additional columns for the table of models: the scores of both captions, before and after the change."""
        names = ("true, before", "wrong, before", "true, after", "wrong, after")
        return {name: _score(index) for index, name in enumerate(names)}


class SearchCard(CaseCard):
    """A case in which a model ranks candidates and one of the candidates is right."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """Additional columns for the table of models: ranks of the right candidate."""
        return RANKS

    def winner_of(self, answer: AnswerRow | None) -> Winner | None:
        """Return the candidate that a model ranks first. If the answer's margin is above 0, this is the right one."""
        top = answer and (self.right if answer.margin > 0 else answer.text("top"))
        return self._winner(top) if top else None

    @property
    def right(self) -> str:
        """The right candidate, as a caption or the name of a picture."""
        return self.case.true_text

    def _winner(self, top: str) -> Winner:
        return Winner(f"first “{shorten(top, 120)}”", text=self._winner_words(top))

    def _winner_words(self, text: str) -> str:
        """Return the words in the first-ranked caption that differ from the true captions."""
        if text == self.right:
            return "a true one"
        true_texts = [
            true_text
            for true_text, role in zip(self.case.texts, self.case.roles, strict=True)
            if role != "different"
        ]
        if text not in self.case.texts or not true_texts:
            return shorten(text, LONGEST_WINNER)
        changes = [changed_words(true_text, text)[1] for true_text in true_texts]
        return shorten(min(filter(None, changes), key=len, default=text), LONGEST_WINNER)


class CaptionSearchCard(SearchCard):
    """A search in which a model ranks the captions of a picture together with altered captions."""

    believed = "ranked above the true ones"
    opening = "One caption is true."
    task = (
        "A model ranks many captions for this picture, some of them altered. A true one should "
        "come first."
    )
    fooled = ("ranks a wrong caption first", "rank a wrong caption first")
    chose = "put a wrong caption first"
    speaker_notes = (
        "",
        "An altered caption is a true one of this or another picture, with one word replaced.",
    )
    wrong_role = "first"
    group = "caption"

    @property
    def loser(self) -> Role:
        """The role of the best altered caption. Its label depends on whether the filter's model ranks it first."""
        is_first = self.case.answer is not None and self.case.answer.number("top_altered") == 1
        role = ROLES[self.wrong_role]
        return replace(role, label="Ranked 1st") if is_first else super().loser

    @property
    def change(self) -> list[Run]:
        """The replaced words, or the altered caption as a whole if it was made from the caption of another picture."""
        if not self.case.wrong_text or self.case.wrong_text in self.case.texts:
            return super().change
        return [("from another picture: ", "quiet"), *self.sides[-1].runs(LONGEST)]


class PictureSearchCard(SearchCard):
    """A search in which a model ranks pictures for a caption, and some of the pictures are mixed."""

    believed = "ranked above the right picture"
    winner = "the mixture"
    has_picture_per_side = True
    fooled = ("prefers a mixture", "prefer a mixture")
    chose = "put {lie} first"
    shows_query = True
    guess, choices = BEST, "pictures"
    speaker_notes = (
        "One picture belongs to the caption. The other one does not: it may be a mixture of two pictures.",
        "The model searches many pictures for the caption. The mixture is one of them and should not come first.",
    )

    @property
    def sides(self) -> list[CaseText]:
        """The query, and a sentence that describes the mixed picture."""
        return [
            CaseText(ROLES["wanted"], self.case.true_text),
            CaseText(ROLES["mixture"], self._mixture),
        ]

    @property
    def _mixture(self) -> str:
        """A sentence that describes the mixed picture."""
        edit = self._edit
        if edit is None or not self.is_own_mixture:
            return "A mixture of other pictures." if self.case.wrong_image else "A mixture."
        amount = "piece" if edit.kind == "patch" else "trace"
        return f"The same picture, with a {amount} of another one in it."

    @property
    def _edit(self):
        """The edit that created the mixed picture; None if there is no mixed picture."""
        return Picture.from_name(self.case.wrong_image).edit if self.case.wrong_image else None

    @property
    def is_own_mixture(self) -> bool:
        """Return whether the competing mixed picture was made from the right picture."""
        names = (self.case.wrong_image, *self.case.images[:1])
        return self._edit is not None and len({Picture.from_name(name).path for name in names}) == 1

    @property
    def pictures(self) -> list[Shot]:
        """The right picture, followed by the highest-ranked wrong picture if there is one."""
        case = self.case
        detail = ""
        if case.answer is not None:
            clean = f", without mixtures {rank(case.answer, 'rank_clean')}" if self._edit else ""
            detail = f": rank {rank(case.answer, 'rank')}{clean}"
        right = Shot(case.images[0], case.true_text, "The right picture", detail, "right")
        if not case.wrong_image:
            return [right]
        is_wrong, label = case.margin <= 0, "Ranked 1st instead"
        if not is_wrong:
            label = "Best mixed picture" if self._edit else "Best other picture"
        elif case.answer is not None and case.answer.number("top_altered") == 0:
            label = "Ranked above the right one"
        alt = detail = ""
        if self.is_own_mixture:
            alt = f"{case.true_text} Mixed with another picture."
            detail = ", made from the right one"
        elif self._edit:
            alt, detail = "Another picture, mixed", ", made from another picture"
        return [
            right,
            Shot(
                case.wrong_image,
                alt or "Another picture",
                label,
                detail,
                "wrong" if is_wrong else "",
            ),
        ]

    @property
    def front(self) -> list[Shot]:
        """The picture on a small card: the highest-ranked wrong picture if there is one, else the right picture."""
        return self.pictures[-1:]

    def strips(self, everything: bool = False) -> list[Strip]:
        """Return the two pictures of the highest-ranked mixture."""
        if self._edit is None:
            return []
        stays = round(100 * self._edit.lam)
        form = ", as a rectangle" if self._edit.kind == "patch" else ""
        parts = (f"{stays} % of this picture", f"{100 - stays} % of this picture{form}")
        mixed = zip(Picture.from_name(self.case.wrong_image).paths, parts, strict=True)
        of_it = self.pictures[-1].label
        label = f"{of_it}: {stays} % of the first picture, {100 - stays} % of the second{form}"
        return [Strip(label, [Shot(str(path), part) for path, part in mixed])]

    def heading(self, subject: str, is_plural: bool, name: str) -> tuple[str, str]:
        """Return a heading in two sentences: how the gallery was altered, and who loses the right picture."""
        edit, lose = self._edit, "lose" if is_plural else "loses"
        if self.case.wrong_image and edit is None:
            return "Only one picture is right.", (
                f"{subject} {'do' if is_plural else 'does'} not rank it first."
            )
        amount = PART_TAKEN.get(str(edit.lam)) if edit else None
        if edit is None or amount is None or not self.is_own_mixture or self.case.margin > 0:
            return "Mixed pictures are hidden among the others.", f"{subject} {lose} the right one."
        how = "of another picture" if edit.kind == "mix" else "covered by another picture"
        return f"{amount} {how} is enough.", f"{subject} {lose} the right one."

    @property
    def right(self) -> str:
        """The name of the right picture."""
        return self.case.images[0]

    def _winner(self, top: str) -> Winner:
        wrong = "a mixed" if Picture.from_name(top).edit else "another"
        return Winner(f"{'the right' if top == self.right else wrong} picture first", picture=top)


class PairCard(CaseCard):
    """A case with two pictures, two captions, and a score for each of the four combinations."""

    believed = "not told apart"
    winner = "the mistake"
    opening = "Two pictures, one difference."
    fooled = ("mixes them up", "mix them up")
    chose = "mixed them up"
    is_neutral = True
    counts_pictures = False
    has_picture_per_side = True
    speaker_notes = (
        "The other caption is true of the picture on the next slide.",
        "Both captions are true, each for its own picture.",
    )

    @property
    def sides(self) -> list[CaseText]:
        """The two captions of the pair."""
        return self._changed("left", "right", *self.case.texts[:2])

    @property
    def pictures(self) -> list[Shot]:
        """The left and the right picture."""
        return [
            Shot(name, text, label)
            for name, text, label in zip(
                self.case.images, self.case.texts, ("Left", "Right"), strict=False
            )
        ]

    def matrix(self, model: str) -> Matrix | None:
        """Return the 2 x 2 scores. The last row and the last column say whether each comparison passed."""
        scores = [float(score) for score in self.answers[model].scores]
        if len(scores) != 4:
            return None
        s11, s12, s21, s22 = scores
        return Matrix(
            ("Scores", "Left caption", "Right caption", "own caption"),
            [
                ("Left picture", (_cell(s11, "own"), _cell(s12), _held(s11 - s12))),
                ("Right picture", (_cell(s21), _cell(s22, "own"), _held(s22 - s21))),
                ("own picture", (_held(s11 - s21), _held(s22 - s12), ("", ""))),
            ],
        )


class TripletCard(CaseCard):
    """A case with three texts that are compared by the cosine of each pair."""

    winner = "the lookalike"
    opening = "Two of these say the same thing."
    fooled = ("puts the wrong two together", "put the wrong two together")
    chose = "put the lookalike closer"
    wrong_role = "lookalike"
    task = "A model compares the three sentences, without a picture."
    guess = "Which sentence means the same as “{text}”?"
    speaker_notes = ("", "The lookalike has nearly the same words but a different meaning.")

    @property
    def sides(self) -> list[CaseText]:
        """The two texts that mean the same, followed by the lookalike."""
        text, same, wrong = self.case.texts[:3]
        loser = self.loser
        if loser.label == "Preferred":
            loser = replace(loser, label="Closer")
        return [
            CaseText(ROLES["meaning"], text),
            CaseText(ROLES["same meaning"], same),
            CaseText(loser, wrong, text, "lie", True),
        ]

    def matrix(self, model: str) -> Matrix | None:
        """Return a table with a row per pair of texts: the model's cosine, the share of equal words, the comparison."""
        answer = self.answers[model]
        cosines = answer.columns.get("text_scores")
        if not isinstance(cosines, Collection) or len(cosines) != 3:
            return None
        same, *others = (float(score) for score in cosines)
        overlaps = [(_share(answer.number(f"overlap_{pair}")), "") for pair in ("01", "02", "12")]
        rows = [("P1, P2", (_cell(same, "own"), overlaps[0], ("", "")))]
        for title, score, overlap in zip(("P1, N", "P2, N"), others, overlaps[1:], strict=True):
            rows.append((title, (_cell(score), overlap, _held(same - score))))
        return Matrix(("Scores", "cosine", "same words", "is lower"), rows)


class RankingsCard(CaseCard):
    """A query that was searched for in several wordings, with the pictures ranked first for each wording."""

    shows_query = True
    guess, choices = "Do both searches find the same pictures?", ""
    speaker_notes = (
        "",
        "Both wordings ask for the same thing, so they should find the same pictures.",
    )

    @property
    def sides(self) -> list[CaseText]:
        """The query, and the rewording that is compared with it."""
        return self._changed("wish", "wording", self.case.true_text, self.case.wrong_text)

    @property
    def texts(self) -> list[CaseText]:
        """The query and all rewordings. Each rewording's label says how many of the query's first pictures it keeps."""
        texts = [CaseText(ROLES["wish"], self.case.texts[0])]
        for text, names in zip(self.case.texts[1:], self.top_lists[1:], strict=False):
            label = f"{self._shared(names)} of {len(names)} stay"
            texts.append(CaseText(replace(ROLES["wording"], label=label), text))
        return texts

    @property
    def top_lists(self) -> list[list[str]]:
        """Names of the first-ranked pictures, one list for each wording."""
        top = self.case.answer.text("top") if self.case.answer else ""
        return json.loads(top) if top.startswith("[") else []

    def _shared(self, names: Iterable[str]) -> int:
        return len(set(self.top_lists[0]) & set(names))

    @property
    def stayed(self) -> tuple[int, int] | None:
        """How many first pictures the most different rewording keeps, and how many there are; None if unknown."""
        first, *others = self.top_lists or [[]]
        return (min(map(self._shared, others)), len(first)) if others else None

    def strips(self, everything: bool = False) -> list[Strip]:
        """Return the first pictures for the query and for its most different rewording, or for all rewordings."""
        rankings = self.top_lists
        if len(rankings) < 2:
            return []
        query = set(rankings[0])
        least = min(range(1, len(rankings)), key=lambda index: self._shared(rankings[index]))
        right = self.case.images[0] if self.case.images else ""
        return [
            Strip(
                "First pictures" if index == 0 else f"“{self.case.texts[index]}”",
                [
                    ranked_shot(position, name, right, query)
                    for position, name in enumerate(rankings[index], 1)
                ],
            )
            for index in (range(len(rankings)) if everything else (0, least))
        ]

    @property
    def verdict_text(self) -> str:
        """A sentence fragment that says how many of the first pictures stayed."""
        shared = self.stayed
        return f"{shared[0]} of the top {shared[1]} pictures stayed" if shared else "no answer"

    def heading(self, subject: str, is_plural: bool, name: str) -> tuple[str, str]:
        """Return a heading in two sentences: what was done, and how many of the first pictures stay."""
        shared = self.stayed
        count = "It is not known which pictures come up again."
        if shared:
            word = "none" if not shared[0] else count_word(shared[0])
            again = "comes up again" if shared[0] == 1 else "come up again"
            count = f"{word.capitalize()} of the top {count_word(shared[1])} pictures {again}."
        return "Search again in other words.", count

    @property
    def columns(self) -> Mapping[str, Column]:
        """Additional columns for the table of models: the overlap of the results at several depths."""
        return {
            "top 10": lambda answer: _share(answer.number("local_10")),
            "top 100": lambda answer: _share(answer.number("local_100")),
            "corr.": lambda answer: _rounded(answer.number("global"), 3),
        }


class SeriesCard(CaseCard):
    """A series of pictures in which a model chooses where a video changes, or the best picture."""

    believed = "missed"
    winner = "another place"
    fooled = ("chooses {lie}", "choose {lie}")
    chose = "chose {lie}"
    is_neutral = True
    has_large_pictures = False

    @property
    def opening(self) -> str:
        """The first sentence of the card's heading."""
        return "A video's caption changes." if self.is_video else "People ranked one picture first."

    @property
    def task(self) -> str:
        """What a model has to do, in two sentences."""
        return (
            f"{self.opening} A model has to find the {'moment' if self.is_video else 'same one'}."
        )

    @property
    def guess(self) -> str:
        """What people guess: the change in a video, or the picture that people ranked first."""
        return VIDEO if self.is_video else BEST

    @property
    def choices(self) -> Literal["pictures", ""]:
        """What people choose from: nothing in a video, which they have to look at."""
        return "" if self.is_video else "pictures"

    @property
    def is_video(self) -> bool:
        """Return whether the pictures are frames around a change in a video, not candidates ordered by people."""
        return self.case.kind == "boundary"

    @property
    def sides(self) -> list[CaseText]:
        """The two texts: the captions before and after the change in a video, or the query and its edit."""
        roles = ("before", "after") if self.is_video else ("query", "edit")
        return self._changed(*roles, self.case.true_text, self.case.wrong_text)

    @property
    def pictures(self) -> list[Shot]:
        """The first and the last picture in the series."""
        labels = ("First", "Last") if self.is_video else ("Fits best", "Fits least")
        names = (self.case.images[0], self.case.images[-1])
        texts = (self.case.true_text, self.case.texts[-1])
        return [Shot(*values) for values in zip(names, texts, labels, strict=True)]

    def side_pictures(self, side: int) -> list[Shot]:
        """Return the first and the last picture, or for side 1 the right picture and the model's wrong choice."""
        (strip,) = self.strips()
        framed = [replace(shot, label=shot.alt) for shot in strip.pictures if shot.style]
        is_wrong = any(shot.style == "new" for shot in framed)
        return framed if side and is_wrong else self.pictures

    def strips(self, everything: bool = False) -> list[Strip]:
        """Return the pictures in order, with frames around the right picture and around the model's choice."""
        images, answer = self.case.images, self.case.answer
        right_index, model_index = (
            -1 if answer is None or math.isnan(answer.number(name)) else int(answer.number(name))
            for name in ("right_index", "model_index")
        )
        width = 2 if self.is_video else 1  # pictures per place
        right = {right_index + step for step in range(width)} if right_index >= 0 else set()
        choice = {model_index + step for step in range(width)} if model_index >= 0 else set()
        ranks = [] if self.is_video else self._ranks
        shots = []
        for position in shown_positions(len(images), right | choice):
            words = f"Frame {position + 1}" if self.is_video else f"Rank {position + 1} for people"
            if position < len(ranks):
                words += f", {ranks[position]} for the model"
            if self.is_video and position in right:
                words += ", before the change" if position == right_index else ", after it"
            if position in choice and not ranks:  # else its rank says so
                words += ", the model's choice"
            style = "right" if position in right else "new" if position in choice else ""
            shots.append(Shot(images[position], words, style=style))
        return [Strip("", shots, f"{self.finding} {FRAMES}")]

    @property
    def _ranks(self) -> list[str]:
        """The model's rank for each candidate, from 1. Candidates with equal scores share a rank, marked with "="."""
        answer, count = self.case.answer, len(self.case.images)
        if answer is None or len(answer.scores) < count:
            return []
        query = [float(score) for score in answer.scores[:: len(answer.scores) // count]]
        return [
            f"{1 + sum(rival > score for rival in query)}{'=' * (query.count(score) > 1)}"
            for score in query
        ]

    @property
    def finding(self) -> str:
        """A sentence that describes the model's answer to the case, or "" if the answer is unknown."""
        answer = self.case.answer
        if answer is None:
            return ""
        if self.is_video:
            seconds = answer.number("seconds_off")
            return "" if math.isnan(seconds) else f"The model is {seconds:.1f} s off."
        sentences = [
            f"{label}: {value:.2f}."
            for label, name in (
                ("Rank correlation with people", "agreement"),
                ("Rank correlation with the model's own order after the edit", "kept"),
            )
            if not math.isnan(value := answer.number(name))
        ]
        return " ".join(sentences)

    @property
    def columns(self) -> Mapping[str, Column]:
        """Additional columns for the table of models: seconds off for a video, else the agreement with people."""
        if self.is_video:
            return {"seconds off": lambda answer: _rounded(answer.number("seconds_off"), 2)}
        return {"agreement": lambda answer: _rounded(answer.number("agreement"), 3)}


CARDS: Mapping[CardBody, type[CaseCard]] = {
    "captions": CaseCard,
    "edit": CaseCard,
    "changed_picture": ChangedPictureCard,
    "caption_search": CaptionSearchCard,
    "picture_search": PictureSearchCard,
    "pair": PairCard,
    "triplet": TripletCard,
    "rankings": RankingsCard,
    "series": SeriesCard,
}


def card_type(kind: KindPresentation) -> type[CaseCard]:
    """Return the card class for a kind of case. Class attributes contain the words that describe the kind."""
    return CARDS[kind.body]


def wrong_captions(kind: KindPresentation) -> str:
    """Return what fools models in a kind of case, in the plural. Only Home, the quiz and slides use "lies"."""
    return "wrong captions" if kind.lies == "lies" else kind.lies


def preferred(kind: KindPresentation) -> str:
    """Return the participle for wrong captions that fool a model. Only Home, the quiz and slides use "believed"."""
    happened = card_type(kind).believed
    return "preferred" if happened == "believed" else happened


def case_card(
    case: WallCard, kind: KindPresentation, answers: Mapping[str, AnswerRow] | None = None
) -> CaseCard:
    """Create the card for a case, using the class for the case's kind.

    Args:
        case: The case, with the answer by the filter's model.
        answers: Answers by model, for tables of scores.
    """
    return card_type(kind)(case, kind, answers or {})


def _has_once(text: str, words: str) -> bool:
    places = re.findall(rf"\b{re.escape(words)}\b", text, re.IGNORECASE)
    return bool(words) and len(places) == 1


def _with(text: str, words: str, others: str) -> str:
    """Return a text with other words in place of some."""
    return re.sub(rf"\b{re.escape(words)}\b", lambda _: others, text, flags=re.IGNORECASE)


def verdict_word(verdict: ModelVerdict) -> str:
    """Return a verdict in words. Without scores, a tie means that the answer changes with the caption order."""
    return CHANGES if verdict.is_in_one_order else VERDICT_WORDS[verdict.verdict]


def outcome(kind: KindPresentation, margin: float, is_scored: bool = True) -> tuple[str, str]:
    """Return the style and the words that describe a model's answer.

    A rewording either moves the score or not; a wrong caption either fools the model or not.
    """
    verdict = verdict_of(margin)
    if kind.is_movement and verdict != "unknown":
        return ("quiet", "moved") if margin else ("true", "stayed")
    return STYLES[verdict], (VERDICT_WORDS if is_scored else CHOICE_WORDS)[verdict]


def bars(card: CaseCard, renamed: Mapping[str, str] = NOT_RENAMED) -> Bars:
    """Return a bar for each model that shows how far the wrong or the true caption wins, with the verdict in words.

    Answers that are only right or wrong have no bar. Neither have margins on scales that are not comparable.
    """
    kind = card.kind
    lengths, unit = bar_lengths(card.case.verdicts, kind)
    lengths = {} if unit == "side" else lengths
    most_lie = max([-length for length in lengths.values() if length < 0], default=0.0)
    most_true = max([length for length in lengths.values() if length > 0], default=0.0)
    total = most_lie + most_true
    zero = 0.0
    if not kind.is_movement and total:
        zero = min(max(most_true / total, LEAST_SIDE), MOST_SIDE)
    rooms = ((1 - zero, most_lie), (zero, most_true))
    # The longest bar on each side fits.
    scale = min((room / longest for room, longest in rooms if longest), default=0.0)
    title = "the truth wins" if lengths else ""
    if most_lie:
        title = f"{kind.winner or card.winner} wins"
    lines = [
        _bar(verdict, card, zero, scale * lengths.get(verdict.model, 0.0), renamed)
        for verdict in card.case.verdicts
    ]
    title += LENGTHS.get(unit, "") * bool(title)
    if kind.is_movement and lengths:
        title = "share of the first pictures that change"
        if not kind.is_share:
            title = "the score moves" + " (bars in standard deviations)" * (unit == "spread")
    return Bars(title, min(zero, TITLE_AT), zero, scale, lines)


def bar_lengths(
    verdicts: Iterable[ModelVerdict], kind: KindPresentation
) -> tuple[dict[str, float], Literal["share", "spread", "side"]]:
    """Return bar lengths that are comparable between models, and their unit. A length is negative if the wrong caption
    wins.

    Different models have scores on different scales, so margins are divided by each model's own spread. Shares need no
    spread. If the spread of a model is unknown, all lengths are 1 (or 0 for a tie) and only show which side wins.
    """
    scored = [one for one in verdicts if one.is_scored and not math.isnan(one.margin)]
    if kind.is_share:
        return {one.model: one.margin for one in scored}, "share"
    if all(one.spread > 0 for one in scored):
        return {one.model: one.margin / one.spread for one in scored}, "spread"
    return {one.model: float((one.margin > 0) - (one.margin < 0)) for one in scored}, "side"


def _bar(
    verdict: ModelVerdict,
    card: CaseCard,
    zero: float,
    length: float,
    renamed: Mapping[str, str],
) -> ModelBar:
    model, margin = verdict.model, verdict.margin
    style, word = outcome(card.kind, margin, verdict.is_scored)
    if word == "moved":
        style, answer = word, card.answers.get(model)
        word = f"{100 * abs(margin):.0f} %"
        if not card.kind.is_share:
            original, reworded = answer.scores if answer and len(answer.scores) == 2 else (0, 0)
            verb = "rises" if reworded > original else "falls" if reworded < original else "moves"
            word = f"{verb} {abs(margin):.3f}"
    name, is_lie = model_name(model, renamed), margin < 0
    if not verdict.is_scored:
        return ModelBar(model, name, zero, 0.0, is_lie, style, word, "")
    begin = zero if margin <= 0 else zero - abs(length)
    size = "unknown" if math.isnan(margin) else f"by {abs(margin):.3f}"
    return ModelBar(model, name, begin, abs(length), is_lie, style, word, size)


def ranked_shot(position: int, name: str, right: str, query: Set[str]) -> Shot:
    """Describe a picture in a ranked list, with its rank as the label.

    Args:
        query: The top pictures for the first wording. Pictures that are not among them are marked
            as new.
    """
    if name == right:
        return Shot(name, f"Rank {position}, the query's own picture", style="right")
    is_new = name not in query
    return Shot(name, f"Rank {position}{', new' * is_new}", style="new" * is_new)


def shown_positions(count: int, needed: set[int]) -> list[int]:
    """Select at most MOST_IN_SERIES of `count` positions: the needed ones, and others that are evenly spread.

    >>> shown_positions(4, set()), shown_positions(100, {30, 31})
    ([0, 1, 2, 3], [0, 14, 28, 30, 31, 42, 57, 71, 85, 99])
    """
    if count <= MOST_IN_SERIES:
        return list(range(count))
    room = MOST_IN_SERIES - len(needed)
    spread = {round(step * (count - 1) / (room - 1)) for step in range(room)}
    return sorted(needed | spread)


def rank(answer: AnswerRow, column: str) -> str:
    """Format a rank as text. Approximate searches (before version 0.3.0) may only know "more than" a number."""
    value, looked_up = answer.number(column), answer.number("looked_up")
    if not math.isnan(value):
        return f"{int(value):,}"
    return "unknown" if math.isnan(looked_up) else f"more than {int(looked_up):,}"


RANKS: Mapping[str, Column] = {
    "rank": lambda answer: rank(answer, "rank"),
    "clean": lambda answer: rank(answer, "rank_clean"),
}


def _without_capital(words: str, caption: str) -> str:
    begins = words and caption.startswith(words) and words[1:].islower()
    return words[:1].lower() + words[1:] if begins else words


def _score(index: int) -> Column:
    return lambda answer: f"{answer.scores[index]:.3f}" if len(answer.scores) > index else "-"


def _cell(score: float, style: str = "") -> Run:
    return f"{score:.3f}", style


def _held(gap: float) -> Run:
    """Return the table cell for a comparison that passes if the gap is above 0."""
    if gap > 0:
        return "✓ passed", "held"
    return ("✗ failed", "fooled") if gap < 0 else ("= tied", "tied")


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.0f} %"


def _rounded(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"
