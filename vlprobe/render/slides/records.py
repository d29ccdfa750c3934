"""The elements of a slide. Texts are runs: a text and its style, "true", "lie", "changed" or ""."""

from dataclasses import dataclass, field
from typing import Literal

from vlprobe.views.wall import Verdict

Run = tuple[str, str]
Layout = Literal["beside", "stacked"]  # pictures at the left of the words, or below them


@dataclass(frozen=True, slots=True)
class SlidePicture:
    """A picture with the sentence that stands for it."""

    name: str  # as tables of cases have it
    alt: str
    label: str = ""
    style: str = ""  # "true", "lie" or ""


@dataclass(frozen=True, slots=True)
class ModelMark:
    """One model's answer to one case."""

    model: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Figure:
    """A big number and what it counts."""

    figure: str
    label: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SlideBar:
    """One model in a row of bars; all ends are shares of the width, NaN where unknown."""

    model: str
    start: float
    end: float
    text: str  # the value in words
    low: float = float("nan")  # of the interval
    high: float = float("nan")
    style: str = ""  # "best", "lie", "true", "tie" or ""
    remark: str = ""  # beside the name, such as "a control"


@dataclass(frozen=True, slots=True)
class Slide:
    """One slide."""

    id: str
    heading: tuple[Run, ...]
    layout: Layout = "stacked"
    tag: str = ""  # above the heading
    tag_style: str = ""  # "true", "lie" or ""
    detail: str = ""
    verdict: str = ""  # below the heading, apart from it
    pictures: tuple[SlidePicture, ...] = ()
    marks: tuple[ModelMark, ...] = ()
    figures: tuple[Figure, ...] = ()
    bars: tuple[SlideBar, ...] = ()
    points: tuple[str, ...] = ()
    note: str = ""  # small, below everything
    notes: tuple[str, ...] = field(default=())  # only for the speaker

    @property
    def title(self) -> str:
        """The heading without styles."""
        return "".join(text for text, _ in self.heading)

    @property
    def spoken(self) -> str:
        """Return the screen reader text of a slide."""
        texts = [self.tag, self.title, self.detail, self.verdict]
        return " ".join(text if text[-1] in ".?!:" else f"{text}." for text in texts if text)
