"""Slides as the component `slides` takes them: plain values, pictures by a short key."""

import math
from collections.abc import Mapping, Sequence

from vlprobe.case.card import VERDICT_WORDS
from vlprobe.render.attribution import credit_values
from vlprobe.render.charts.styles import Looks, mark_values
from vlprobe.render.slides.case import named_notes
from vlprobe.render.slides.records import ModelMark, Slide, SlideBar, SlidePicture
from vlprobe.types import Picture

Values = dict[str, object]


def picture_names(slides: Sequence[Slide]) -> tuple[str, ...]:
    """Names of all pictures on slides, each once."""
    return tuple(dict.fromkeys(picture.name for slide in slides for picture in slide.pictures))


def talk_values(
    slides: Sequence[Slide],
    model_looks: Looks,
    addresses: Mapping[str, str],
    names: Mapping[str, str],
    heading: str,
    detail: str,
) -> Values:
    """A whole talk.

    Args:
        slides: In order.
        model_looks: Model looks of every model that is on them.
        addresses: Addresses of every picture by its name, a data address; "" if it cannot be read.
        names: Name of each model.
        heading: Above the slides on the page.
        detail: Below it.
    """
    keys = {name: f"p{index}" for index, name in enumerate(picture_names(slides))}
    return {
        "heading": heading,
        "detail": detail,
        "start": "Start the slides",
        "whole": False,
        "pictures": {key: addresses.get(name, "") for name, key in keys.items()},
        "slides": [_slide_values(slide, model_looks, names, keys) for slide in slides],
    }


def _slide_values(
    slide: Slide, model_looks: Looks, names: Mapping[str, str], keys: Mapping[str, str]
) -> Values:
    return {
        "id": slide.id,
        "layout": slide.layout,
        "tag": [slide.tag, slide.tag_style],
        "heading": [list(run) for run in slide.heading],
        "detail": slide.detail,
        "verdict": slide.verdict,
        "pictures": [_picture_values(picture, keys) for picture in slide.pictures],
        "marks": [_mark_values(mark, model_looks, names) for mark in slide.marks],
        "figures": [
            {"figure": figure.figure, "label": figure.label, "detail": figure.detail}
            for figure in slide.figures
        ],
        "bars": [_bar_values(bar, model_looks, names) for bar in slide.bars],
        "points": list(slide.points),
        "note": slide.note,
        "notes": list(named_notes(slide, names)),
        "spoken": slide.spoken,
    }


def _picture_values(picture: SlidePicture, keys: Mapping[str, str]) -> Values:
    file_name = Picture.from_name(picture.name).path.name
    return {
        "key": keys[picture.name],
        "alt": picture.alt,
        "label": picture.label,
        "style": picture.style,
        "name": file_name,
        "credit": credit_values(picture.name),
    }


def _mark_values(mark: ModelMark, model_looks: Looks, names: Mapping[str, str]) -> Values:
    return {
        **mark_values(model_looks[mark.model]),
        "name": names[mark.model],
        "state": mark.verdict,
        "word": VERDICT_WORDS[mark.verdict],
    }


def _bar_values(bar: SlideBar, model_looks: Looks, names: Mapping[str, str]) -> Values:
    numbers = {"start": bar.start, "end": bar.end, "low": bar.low, "high": bar.high}
    return {
        **mark_values(model_looks[bar.model]),
        **{name: None if math.isnan(number) else number for name, number in numbers.items()},
        "name": names[bar.model],
        "text": bar.text,
        "style": bar.style,
        "sided": bar.style in ("lie", "true", "tie"),
        "remark": bar.remark,
    }
