"""The table of all models: brackets around exactly the models that are tied."""

import itertools
import re
from dataclasses import replace

import pytest

from tests.views.believed_scenes import LIES
from vlprobe.metrics.blind import BlindAccuracy
from vlprobe.render import charts
from vlprobe.render.html.compare import scorecard, scorecard_reading
from vlprobe.types import Estimate
from vlprobe.views.paired_tests import ModelShare, PairedTest, PairedTests


def ranking(models: str, tied: set[str], controls: str = "") -> PairedTests:
    """Models by name, the best first, each pair told apart but for the tied ones."""
    shares = tuple(
        ModelShare(
            model, 100, place, 0, place / 100, place / 100, place / 100, "above", model in controls
        )
        for place, model in enumerate(models)
    )
    row = PairedTest(
        "",
        "",
        100,
        0,
        100,
        0.1,
        0.2,
        0.1,
        0.0,
        0.2,
        0.01,
        0.01,
        "more",
        "above",
        "above",
        0,
        0,
        0,
        0,
    )
    fit = [model for model in models if model not in controls]
    rows = tuple(
        replace(row, model=other, baseline=one, verdict="tied" if one + other in tied else "more")
        for one, other in itertools.combinations(fit, 2)
    )
    return PairedTests("foil", "rate", False, 0.5, shares, rows, 100)


def cells(html: str) -> dict[str, list[str]]:
    """The cells of each model behind its share."""
    rows = re.findall(r'<tr><th scope="row">.*?</span> (\w+)</th>(.*?)</tr>', html)
    return {model: re.findall(r"<td[^>]*>.*?</td>", body)[1:] for model, body in rows}


def table(tests: PairedTests) -> dict[str, list[str]]:
    models = {each.model: each.model for each in tests.contestants}
    return cells(scorecard(tests, LIES, charts.styles.styles(models), models))


def test_models_in_one_bracket_are_tied_and_others_are_not():
    tied = {"AB", "BC", "BD", "CD"}
    rows = table(ranking("ABCDE", tied))
    texts = {model: [re.sub("<[^>]+>", "", cell) for cell in row] for model, row in rows.items()}
    assert texts == {
        "A": ["a", "", ""],
        "B": ["a", "b", ""],
        "C": ["", "b", ""],
        "D": ["", "b", ""],
        "E": ["", "", "c"],
    }


def test_a_bracket_that_passes_a_model_is_dotted_there():
    rows = table(ranking("ABC", {"AC"}))
    assert "dotted" in rows["B"][0] and "solid" in rows["A"][0] and "solid" in rows["C"][0]


@pytest.mark.parametrize("n_models", [20, 60])
def test_many_groups_have_letters_or_numbers_instead_of_brackets(n_models: int):
    names = [chr(0x4E00 + place) for place in range(n_models)]
    rows = table(ranking("".join(names), {one + two for one, two in itertools.pairwise(names)}))
    texts = [re.sub("<[^>]+>", "", row[0]) for row in rows.values()]
    assert texts[:3] == (["a", "ab", "bc"] if n_models == 20 else ["1", "1 2", "2 3"])
    assert all(len(row) == 1 for row in rows.values())


def test_a_guess_without_the_picture_is_the_last_row():
    guess = BlindAccuracy("length", "", Estimate(0.7, 0.65, 0.75, 80), 100, 3)
    models = {"A": "A", "B": "B"}
    html = scorecard(ranking("AB", {"AB"}), LIES, charts.styles.styles(models), models, guess)
    last = re.sub("<[^>]+>", " ", html.split("<tr>")[-1])
    words = " ".join(last.split())
    assert words == "No picture Picks the caption with fewer words. 30.0 % 25.0 to 35.0 %"


def test_controls_are_in_no_bracket_and_the_pairs_are_counted():
    tests = ranking("ABC", set(), controls="C")
    assert table(tests)["C"] == ['<td colspan="2"><small>control</small></td>']
    assert "adjusted for one pair" in scorecard_reading(tests)
