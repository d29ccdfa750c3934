"""Slides and their elements, and their conversion to plain values for the component `slides`. Pictures have short keys.

A text is a list of runs. A run is a piece of text and its style: "true", "lie", "changed" or "".
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from vlprobe.case.card import Run
from vlprobe.render.attribution import NOT_RECORDED, credit_values
from vlprobe.render.charts.styles import GREY, Look, Looks, mark_values
from vlprobe.types import Picture
from vlprobe.views.wall import Verdict

Values = dict[str, Any]
PER_PHOTO = "license per photo not recorded"
NO_PICTURE = "No picture"  # in place of a model: the best guess from the texts
# Pictures to the left of the text, below it, or as large as the slide; a large title in the middle
Layout = Literal["beside", "stacked", "figure", "cover"]


@dataclass(frozen=True, slots=True)
class SlidePicture:
    """A picture with its alternative text, which is shown in place of a picture that is not on this machine."""

    name: str  # as in tables of cases; "" without a picture
    alt: str
    label: str | tuple[Run, ...] = ""
    style: str = ""  # "true", "lie", "vote" (its label is a number to vote for) or ""
    author: str = ""  # the photographer, if the dataset names one


@dataclass(frozen=True, slots=True)
class ModelMark:
    """One model's answer to one case."""

    model: str
    verdict: Verdict
    word: str  # the verdict in words


@dataclass(frozen=True, slots=True)
class SlideOption:
    """One of two captions to vote for, or in the answer a caption with the models that chose it."""

    caption: tuple[Run, ...]
    style: str = ""  # in the answer: "true", "lie" or "plain"
    marks: tuple[ModelMark, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A big number on a slide, and what it counts."""

    figure: str
    label: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SlideBar:
    """One model's bar on a slide. The ends are shares of the width, NaN if unknown."""

    model: str
    start: float
    end: float
    text: str  # the value in words
    low: float = float("nan")  # ends of the interval
    high: float = float("nan")
    style: str = ""  # "best", "lie", "true", "tie" or ""
    remark: str = ""  # next to the name, such as "a control"


@dataclass(frozen=True, slots=True)
class Slide:
    """One slide in a talk."""

    id: str
    heading: tuple[Run, ...]
    case: str = ""  # id of the case that the slide is about
    layout: Layout = "stacked"
    tag: str = ""  # above the heading
    tag_style: str = ""  # "true", "lie" or ""
    detail: str = ""
    pictures: tuple[SlidePicture, ...] = ()
    marks: tuple[ModelMark, ...] = ()
    options: tuple[SlideOption, ...] = ()
    is_extra: bool = False  # whether the slide is left out until someone includes it
    figures: tuple[Figure, ...] = ()
    bars: tuple[SlideBar, ...] = ()
    scale: float = 0.0  # share of the width for a value of 1; 0: the bars have no common unit
    limit: float = 0.0  # share of the width at which a line crosses the bars; 0: none is drawn
    limit_label: str = ""  # what the line stands for, such as guessing
    note: str = ""  # small, below everything
    notes: tuple[str, ...] = field(default=())  # speaker notes
    question: "Slide | None" = None  # shown before this slide, which keeps it in every order

    @property
    def text_key(self) -> str:
        """Key of the title and the note that a user gives the slide. They belong to its case, which the id of an
        added case names already.
        """
        return self.id if self.id.endswith(self.case) else f"{self.id} {self.case}"

    @property
    def question_key(self) -> str:
        """Key of the title and the note that a user gives the slide's question."""
        return f"{self.text_key} question"

    @property
    def title(self) -> str:
        """The heading as plain text."""
        return "".join(text for text, _ in self.heading)

    @property
    def spoken(self) -> str:
        """All text on the slide as plain text, for screen readers."""
        texts = [self.tag, self.title, self.detail]
        return " ".join(text if text[-1] in ".?!:" else f"{text}." for text in texts if text)


def picture_names(slides: Sequence[Slide]) -> tuple[str, ...]:
    """Return the names of all pictures on the given slides, without repeats."""
    questions = [slide.question for slide in slides if slide.question]
    names = (picture.name for slide in [*slides, *questions] for picture in slide.pictures)
    return tuple(filter(None, dict.fromkeys(names)))


def talk_values(
    slides: Sequence[Slide],
    model_looks: Looks,
    addresses: Mapping[str, str],
    names: Mapping[str, str],
    heading: str,
    detail: str,
    exact: Mapping[str, str] | None = None,
) -> Values:
    """Return all slides in a talk as input for the component `slides`.

    Args:
        addresses: Data URLs by picture name, or "" for pictures that cannot be read.
        names: Names of models on slides.
        heading: Heading above the slides on the page.
        exact: Names of models on other pages, for tooltips; None if they are the same.
    """
    keys = {name: f"p{index}" for index, name in enumerate(picture_names(slides))}
    return {
        "heading": heading,
        "detail": detail,
        "pictures": {key: addresses.get(name, "") for name, key in keys.items()},
        "slides": [
            _slide_values(slide, model_looks, names, exact or names, keys) for slide in slides
        ],
    }


def _slide_values(
    slide: Slide,
    model_looks: Looks,
    names: Mapping[str, str],
    exact: Mapping[str, str],
    keys: Mapping[str, str],
) -> Values:
    return {
        "id": slide.id,
        "key": slide.text_key,
        "case": slide.case,
        "layout": slide.layout,
        "tag": [slide.tag, slide.tag_style],
        "heading": [list(run) for run in slide.heading],
        "detail": slide.detail,
        "pictures": [
            {
                "key": keys.get(picture.name, ""),
                "alt": picture.alt,
                "label": picture.label,
                "style": picture.style,
                "name": picture.name and Picture.from_name(picture.name).path.name,
                "credit": credit,
            }
            for picture, credit in zip(slide.pictures, _credits(slide.pictures), strict=True)
        ],
        "marks": _mark_rows(slide.marks, model_looks, names, exact),
        "options": [
            {
                "caption": [list(run) for run in option.caption],
                "style": option.style,
                "marks": _mark_rows(option.marks, model_looks, names, exact),
            }
            for option in slide.options
        ],
        "on": not slide.is_extra,
        "figures": [asdict(figure) for figure in slide.figures],
        "bars": [_bar_values(bar, model_looks, names, exact) for bar in slide.bars],
        "scale": slide.scale,
        "limit": slide.limit,
        "limitLabel": slide.limit_label,
        "note": slide.note,
        "notes": list(named_notes(slide, names)),
        "spoken": slide.spoken,
        "question": slide.question
        and _slide_values(slide.question, model_looks, names, exact, keys)
        | {"key": slide.question_key},
    }


def _credits(pictures: Sequence[SlidePicture]) -> list[Values | None]:
    """Return the credit of each picture. A photograph of COCO has its number, so that a printed slide names it. That
    licenses are not recorded is only in the first credit.
    """
    credits, is_told = [], False
    for picture in pictures:
        credit = credit_values(picture.name, picture.author) if picture.name else None
        path = Picture.from_name(picture.name).path
        if credit and credit["license"] and "coco" in path.parts and path.stem.isdigit():
            credit = credit | {"label": f"COCO {int(path.stem)}"}
        if credit and credit["license"] == NOT_RECORDED:
            credit = credit | {"license": PER_PHOTO * (not is_told)}
            is_told = True
        credits.append(credit)
    return credits


def _mark_rows(
    marks: Sequence[ModelMark],
    model_looks: Looks,
    names: Mapping[str, str],
    exact: Mapping[str, str],
) -> list[Values]:
    return [
        {
            **mark_values(model_looks[mark.model]),
            "name": names[mark.model],
            "exact": exact[mark.model],
            "state": mark.verdict,
            "word": mark.word,
        }
        for mark in marks
    ]


def _bar_values(
    bar: SlideBar, model_looks: Looks, names: Mapping[str, str], exact: Mapping[str, str]
) -> Values:
    numbers = {"start": bar.start, "end": bar.end, "low": bar.low, "high": bar.high}
    is_of_model = bar.model in model_looks or bar.model == NO_PICTURE
    mark = mark_values(model_looks.get(bar.model, Look(GREY, "square")))
    return {
        **mark,
        "path": mark["path"] * is_of_model,
        **{name: None if math.isnan(number) else number for name, number in numbers.items()},
        "name": names.get(bar.model, bar.model),
        "exact": exact.get(bar.model, names.get(bar.model, bar.model)),
        "text": bar.text,
        "style": bar.style,
        "sided": bar.style in ("lie", "true", "tie"),
        "remark": bar.remark,
    }


def named_notes(slide: Slide, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return a slide's speaker notes, with stored model names replaced by display names."""
    lines = []
    for line in filter(None, slide.notes):
        for model in sorted(names, key=len, reverse=True):
            line = line.replace(model, names[model])
        lines.append(line)
    return tuple(lines)
