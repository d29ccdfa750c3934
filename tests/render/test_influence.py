"""Numbers overlaid on words and pictures: the shown number is correct, and text on its color is readable."""

import math
import re

import numpy as np
import pytest

from tests.render.scenes import luminance
from vlprobe.render.html import influence
from vlprobe.render.html.influence import colored_words, heat, legend, line, strongest, worded

PAPER = ((255, 255, 255), (18, 22, 29))  # the page, light and dark


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("positive", [True, False])
def test_text_on_every_tint_has_enough_contrast(theme, positive):
    for share in np.linspace(0, 1, 21):
        tint = influence.TINTS[positive][theme]
        ground = [
            share * top + (1 - share) * under for top, under in zip(tint, PAPER[theme], strict=True)
        ]
        high, low = sorted([luminance(ground), luminance(influence.INK[theme])], reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_the_words_of_a_caption_keep_their_punctuation_and_get_their_numbers():
    words, values = worded('"A red dog\'s bone, on it."', {1: 0.2, 3: 0.1})
    assert words == ['"A', "red", "dog's", "bone,", "on", 'it."']
    assert values[:2] == [0.2, 0.1] and all(map(math.isnan, values[2:]))
    assert worded("...", {}) == ([], [])


def test_words_are_escaped_and_each_shows_its_number():
    shown = colored_words(['<b>"', "dog", "cat"], [0.25, -0.125, math.nan])
    assert "<b>" not in shown and "&lt;b&gt;&quot;: 0.2500" in shown
    assert re.findall(r"<small>(.*?)</small>", shown) == ["0.250", "-0.125", "-"]
    assert "less -0.250" in shown and "more 0.250" in shown


def test_the_strongest_word_has_the_strongest_color_and_an_unknown_one_has_no_color():
    spans = re.findall(r'style="(.*?)"', line(["a", "b", "c"], [0.5, -0.25, math.nan], 0.5))
    blue, orange = "127 184 224", "244 162 97"  # orange-red: wrong captions, everywhere
    assert f"{blue} / 1.000" in spans[0] and f"{orange} / 0.500" in spans[1] and spans[2] == ""


def test_a_legend_without_negative_numbers_begins_at_0():
    assert "less 0.000" in legend([0.1, 0.2]) and "more 0.200" in legend([0.1, 0.2])
    assert strongest([math.nan]) == 0.0 and strongest([-3.0, math.nan, 2.0]) == 3.0


def cells(values: np.ndarray, least: float = 0.0) -> list[str]:
    """Return the cells of a heat map, as HTML."""
    shown = heat("data:image/webp;base64,AA==", 1.5, "A <dog>", values, least)
    assert 'alt="A &lt;dog&gt;"' in shown
    return re.findall(r"<span.*?</span>", shown)


def test_a_part_of_a_picture_is_as_opaque_as_its_score_is_far_from_0():
    shown = cells(np.array([[1.0, 0.0], [-0.5, math.nan]]))
    strengths = ["--strength:1.000", "--strength:0.000", "--strength:0.500"]
    assert [re.findall("--strength:[0-9.]+", cell)[0] for cell in shown[:3]] == strengths
    assert [("vp-against" in cell, "vp-most" in cell) for cell in shown[:3]] == [
        (False, True),
        (False, False),
        (True, False),
    ]
    assert [re.sub("<.*?>", "", cell) for cell in shown] == ["1.00", "0.00", "-0.50", ""]
    assert not any("vp-most" in cell for cell in cells(np.zeros((3, 3))))


def test_a_tint_that_begins_higher_separates_large_numbers_and_the_legend_shows_its_start():
    shown = cells(np.array([[0.3, 0.4, 0.5]]), 0.3)
    assert [cell.count("--strength:0.500") for cell in shown] == [0, 1, 0]
    text = legend([0.3, 0.5], "least", "most", 0.3)
    assert (
        "least 0.300" in text
        and "most 0.500" in text
        and text.index("/ 0.000") < text.index("/ 1.000")
    )


def test_a_score_that_rounds_to_zero_has_no_minus_sign():
    text = colored_words(["a", "dog"], [-0.00001, 0.5])
    assert "0.000" in text and "-0.000<" not in text and "-0.0000" not in text
