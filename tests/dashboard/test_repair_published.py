"""Repair with models whose authors published their answers: no training run is needed."""

import csv
import html
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_pages import open_page, words
from tests.dashboard.walls import component_values
from vlprobe.dashboard.lab.repair import PUBLISHED
from vlprobe.storage import shipped
from vlprobe.storage.store import Store

REAL = Path(__file__).parents[3] / "shared/data/real/bivlc"
FILES = {
    "published:CLIP ViT-B/32": "ViT-B-32",
    "published:CLIP_COCO": "CLIP_COCO",
    "published:CLIP_TROHN-Text": "CLIP_TROHN-Text",
    "published:CLIP_TROHN-Img": "CLIP_TROHN-Img",
}
QUESTION = ("filename", "caption", "negative_caption", "type", "subtype")
ROLES = ("before", "control", "after")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv(shipped.SETTING)
    return lambda **query: open_page(monkeypatch, Store(tmp_path / "cache"), "repair", **query)


def answers(model: str) -> dict[tuple[str, ...], bool]:
    """Return right or wrong by picture and captions, from the authors' table."""
    with (REAL / f"SUGARCREPE_CORRECT_{FILES[model]}.csv").open(encoding="utf-8") as rows:
        return {
            tuple(row[name] for name in QUESTION): row["correct"] == "1"
            for row in csv.DictReader(rows)
        }


def repaired_sentence(at: AppTest) -> str:
    (sentence,) = [each.value for each in at.markdown if "do not fool" in each.value]
    return sentence.replace("\\", "")


def test_repair_opens_on_clip_before_its_control_and_its_repair(opened):
    at = opened()
    first = next(iter(PUBLISHED.values()))
    assert tuple(at.query_params[role] for role in ROLES) == first
    assert not at.error and not at.warning
    text = words(at)
    assert "Published by its authors, not computed here · Miranda et al., BiVLC" in text
    for sentence in (
        "CLIP ViT-B/32 of OpenAI, as released.",
        "CLIP ViT-B/32 fine-tuned on COCO's captions, the control.",
        "CLIP ViT-B/32 fine-tuned with hard negative texts.",
    ):
        assert sentence in text
    # The weights of these models are missing here, so the page offers no evaluation.
    assert "ask_missing" not in [button.key for button in at.button]
    assert "Other seeds" not in [heading.value for heading in at.subheader]


def test_a_click_on_an_example_selects_its_models_and_writes_them_to_the_address(opened):
    at = opened()
    examples = {**PUBLISHED, "Tiny CLIP, EqSim": ("demo:softmax", "demo:plain", "demo:eqsim")}
    for label, models in reversed(examples.items()):
        (button,) = [each for each in at.button if each.label == label]
        button.click().run()
        assert not at.exception
        given = [at.query_params[role] for role in ROLES]
        assert [each if isinstance(each, str) else each[0] for each in given] == list(models)
        assert tuple(at.selectbox(key=role).value for role in ROLES) == models


def test_the_repaired_cases_show_photographs_first(opened):
    ((_, values),) = component_values(opened(), "wall")
    frames = [frame for card in values["cards"] for frame in card["frames"]]
    assert len(frames) == len({frame["name"] for frame in frames}) == 7
    assert all(frame["source"] and frame["credit"] for frame in frames)


@pytest.mark.skipif(not REAL.is_dir(), reason="../shared/data/real is not here")
@pytest.mark.parametrize("models", PUBLISHED.values())
def test_the_numbers_match_the_authors_tables(opened, models: tuple[str, str, str]):
    at = opened(**dict(zip(ROLES, models, strict=True)))
    before, control, after = map(answers, models)
    # 7,512 cases: some questions are in SugarCrepe twice, with equal answers.
    questions = [question for question in before if question in control and question in after]
    assert len(questions) == len(before) == len(control) == len(after)
    n_repaired = sum(after[question] and not before[question] for question in questions)
    n_broken = sum(before[question] and not after[question] for question in questions)
    numbers = [
        int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", repaired_sentence(at))
    ]
    assert (numbers[0], numbers[-1]) == (n_repaired, n_broken)
    text = html.unescape(words(at))
    for table in (before, control, after):
        share = sum(table[question] for question in questions) / len(questions)
        assert f"{100 * share:.1f} %" in text
