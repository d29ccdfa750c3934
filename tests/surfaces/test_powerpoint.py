"""PowerPoint files of slides, read back with python-pptx."""

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image

from tests.render.finding_scenes import FOUR, contestant, held_against
from tests.render.test_slides import ANSWERS, NAMES, A, B, C, card, make_story
from vlprobe.errors import MissingDependency
from vlprobe.render.charts.styles import styles
from vlprobe.render.slides import deck, values
from vlprobe.render.slides.values import Slide, SlideBar, SlidePicture
from vlprobe.scoring.thumbnails import data_address, encode
from vlprobe.surfaces import powerpoint
from vlprobe.views.paired_tests import SubtypeShare
from vlprobe.views.story import Opener

HOSTILE = "=cmd()\x00\x1b\x0b\ud800\uffff<b>&_x0041_"


def read(slides: Sequence[Slide], names: Mapping[str, str] = NAMES) -> Any:
    """Write slides into a PowerPoint file with one picture for all, and open the file."""
    pptx = pytest.importorskip("pptx", reason="python-pptx ('vlprobe[slides]') is not installed")
    picture = data_address(encode(Image.new("RGB", (90, 60), "green")))
    sources = {name: picture for name in values.picture_names(slides) if "broken" not in name}
    sources |= {
        name: "data:image/webp;base64,AAAA"
        for name in values.picture_names(slides)
        if "broken" in name
    }
    sent = values.talk_values(slides, styles([*names]), sources, names, "A talk", "")
    return pptx.Presentation(io.BytesIO(powerpoint.powerpoint_file(sent)))


def runs_of(slide: Any) -> list[Any]:
    frames = [shape.text_frame for shape in slide.shapes if shape.has_text_frame]
    return [run for frame in frames for line in frame.paragraphs for run in line.runs]


def test_a_powerpoint_file_has_texts_pictures_notes_a_chart_and_the_marked_wrong_word():
    rows = [SubtypeShare("color", 100, 0.1, 0.09, 0.11)]
    rows.append(SubtypeShare("number", 100, 0.35, 0.34, 0.37))
    first = card(ANSWERS, "Three yellow trains.", "Three yellow dogs.")
    told = make_story(held_against(FOUR, shares=tuple(rows)), first)
    told = replace(told, models=(A, B, C), examples={"color": first})
    texts = "A white bowl of many large green apples.", "A green bowl of many large white apples."
    swapped = replace(first, source="white, green", target="green, white")
    swapped = replace(swapped, true_text=texts[0], wrong_text=texts[1])
    told = replace(told, examples={**told.examples, "number": swapped})
    told = replace(told, more=Opener(replace(first, id="a/c"), ""))
    slides = [slide for slide in deck.slides(told) if not slide.is_extra]
    cover = Slide(id="text:title", heading=(("A talk", ""),), layout="cover")
    slides.insert(0, cover)
    talk = read([*slides, replace(slides[0], is_extra=True)])
    assert {line.alignment for line in talk.slides[0].shapes.title.text_frame.paragraphs} == {2}
    slides = [each for slide in slides for each in (slide.question, slide) if each]
    assert talk.slide_width / talk.slide_height == pytest.approx(16 / 9, rel=1e-4)
    assert len(talk.slides) == len(slides)
    for slide, page in zip(slides, talk.slides, strict=True):
        assert page.shapes.title.text_frame.text == slide.title
        expected = "\n".join(values.named_notes(slide, NAMES))
        assert page.notes_slide.notes_text_frame.text == expected
        sizes = [run.font.size.pt for run in runs_of(page)]
        assert min(sizes) >= powerpoint.SMALL
        for shape in page.shapes:
            assert shape.left >= 0 and shape.left + shape.width <= talk.slide_width
            assert shape.top >= 0 and shape.top + shape.height <= talk.slide_height
    pages = dict(zip((slide.id for slide in slides), talk.slides, strict=True))
    assert not any(run.font.underline for run in runs_of(pages["vote"]))
    marked = {
        run.text: str(run.font.color.rgb) for run in runs_of(pages["reveal"]) if run.font.underline
    }
    assert marked == {"dogs": powerpoint.COLORS["lie"]}
    (picture,) = (shape for shape in pages["vote"].shapes if shape.shape_type == 13)
    assert picture.element.nvPicPr.cNvPr.get("descr") and picture.image.ext == "jpg"
    (chart,) = (shape.chart for shape in pages["better"].shapes if shape.has_chart)
    shares = sorted(each.share for each in FOUR)
    assert chart.plots[0].series[0].values == pytest.approx(shares)
    assert chart.value_axis.major_unit == pytest.approx(0.5)  # the line of guessing
    assert [text.split("\u2003")[1] for text in chart.plots[0].categories] == [
        f"{100 * share:.1f} %" for share in shares
    ]
    errors = [
        float(each.text)
        for each in chart.plots[0].series[0].format.element.iter("{*}errBars")
        for each in each.iter("{*}v")
    ]
    first_bar = min(FOUR, key=lambda each: each.share)
    assert errors[0] == pytest.approx(first_bar.high - first_bar.share)
    heights = {shape.height for shape in pages["often"].shapes if shape.shape_type == 13}
    assert len(heights) == 1  # although the labels differ in length
    texts = {run.text for run in runs_of(pages["often"])}
    assert {"35.0 %", "a wrong number", "of 100 answers"} <= texts


def test_a_bold_title_has_more_lines_than_plain_text_of_its_size():
    words = [("a" * 64, "")]
    assert powerpoint.Line(words, 36, is_bold=True).height(6) > powerpoint.Line(words, 36).height(6)


def test_a_whisker_that_ends_at_0_begins_at_the_end_of_its_bar():
    bars = (SlideBar(A, 0.0, 0.2, "20 %", 0.0, 0.4), SlideBar(B, 0.0, 0.0, "0 %", 0.0, 0.1))
    talk = read([Slide("better", (("Bars", ""),), bars=bars, scale=0.5)])
    (chart,) = (shape.chart for shape in talk.slides[0].shapes if shape.has_chart)
    lines = chart.plots[0].series[0].format.element.find("{*}errBars")
    plus, minus = (
        [float(each.text) for each in lines.find(f"{{*}}{name}").iter("{*}v")]
        for name in ("plus", "minus")
    )
    assert plus == pytest.approx([0.4, 0.2]) and minus == pytest.approx([0.4, 0.0])


def test_hostile_names_and_captions_are_plain_text_in_a_powerpoint_file():
    openpyxl = pytest.importorskip("openpyxl")
    hostile = f"{HOSTILE} " + "w" * 5000
    shown = card({A: -1.0, B: math.nan}, hostile, f"{hostile}!")
    everyone = held_against([contestant(A), contestant(B)])
    slides = list(deck.slides(make_story(everyone, shown)))
    slides = [replace(each, notes=(hostile,), note=hostile, detail=hostile) for each in slides]
    slides.append(
        Slide(
            "x",
            ((HOSTILE, ""),),
            detail=HOSTILE,
            pictures=(SlidePicture("/broken.png", HOSTILE, HOSTILE),),
        )
    )
    talk = read(slides, {A: HOSTILE, B: "https://evil.example"})
    shapes = [shape for page in talk.slides for shape in page.shapes]
    assert min(shape.width for shape in shapes) > 0 and min(shape.height for shape in shapes) > 0
    written = [run.text for page in talk.slides for run in runs_of(page)]
    assert not any(re.search(r"[\x00\x1b\ud800\uffff]", text) for text in written)
    assert "=cmd()<b>&_x0041_" in written
    charts = [shape.chart for page in talk.slides for shape in page.shapes if shape.has_chart]
    for chart in charts:
        sheet = openpyxl.load_workbook(io.BytesIO(chart.part.chart_workbook.xlsx_part.blob)).active
        for cell in sheet["A"][1:]:
            assert cell.data_type == "s" and cell.hyperlink is None
    links = [run.hyperlink.address for page in talk.slides for run in runs_of(page)]
    assert charts and not any(links)


def test_without_python_pptx_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(powerpoint, "is_installed", lambda: False)
    with pytest.raises(MissingDependency, match=re.escape("pip install 'vlprobe[slides]'")):
        powerpoint.powerpoint_file({})
