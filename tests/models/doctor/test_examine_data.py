"""The data of the model checks: texts only, pairs or texts for models that need them, and no duplicates."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from tests.models.doctor.test_examine import failed, outcomes
from vlprobe import registry
from vlprobe.cli import main
from vlprobe.errors import InvalidInput
from vlprobe.models import controls
from vlprobe.models.doctor import checks, examine
from vlprobe.types import Capabilities, Item, PairScorer, Picture, TextEncoder


def test_data_without_pictures_is_checked_with_second_captions(tmp_path):
    items = [Item(str(n), None, (f"caption {n}", f"caption {n}!")) for n in range(30)]
    texts = SimpleNamespace(
        name="texts", digest="e" * 32, items=[*items, Item("lone", None, ("one caption",))]
    )
    checks_by_name = outcomes(controls.load("control:random"), texts, tmp_path)
    assert checks_by_name["image_batch"].passed is None
    assert "over 30 items" in checks_by_name["matched_auc"].detail
    assert checks_by_name["r1_forth"].meaning.startswith(
        "Of all first captions, the nearest to one of the second captions"
    )


def test_data_without_pairs_is_refused(tmp_path):
    empty = SimpleNamespace(
        name="empty", digest="e" * 32, items=[Item("1", None, ("one caption",))]
    )
    with pytest.raises(InvalidInput, match="cannot be used to check 'control:random'"):
        examine.examine(controls.load("control:random"), empty, tmp_path)


def test_no_picture_or_caption_is_sampled_twice(data):
    first = data.items[0]
    twins = [
        *data.items,
        Item("same picture", first.image, ("Other words.",)),
        Item("same words", None, ()),
    ]
    twins.append(Item("same caption", Picture(Path("elsewhere.png")), first.captions))
    chosen = examine.sample(twins, controls.load("control:random"))
    images, captions = zip(*((item.image, item.captions[0]) for item in chosen), strict=True)
    assert len(set(images)) == len(set(captions)) == len(chosen)
    assert len(chosen) >= len(data.items) - 1
    assert examine.sample(twins[::-1], controls.load("control:random")) == chosen


def test_an_examination_is_read_back_and_its_failures_become_warnings(data, tmp_path):
    store = examine.Store(tmp_path)
    model = controls.load("control:constant")
    examination = examine.examine(model, data, tmp_path)
    assert (tmp_path / "models" / f"{model.digest}-{data.digest}.json").is_file()
    read = examine.load(store, model.digest)[0]
    assert repr(read) == repr(examination)  # compares repr, because NaN does not equal itself
    lines = examine.warnings(store)[model.digest, data.digest]
    assert len(lines) == 3 and not any("\n" in line for line in lines)
    assert lines[0].startswith(
        "Check 'matched_auc' failed on squares. Expected: Pictures are more similar to their own"
    )
    assert "Found 0.5, limit 0.5." in lines[0]


def test_the_command_shows_passport_and_checks(tiny, tmp_path):
    words = ["--cache", str(tmp_path), "doctor", "control:constant", "--dataset", tiny]
    result = CliRunner().invoke(main.main, words, catch_exceptions=False)
    assert result.exit_code == 1  # a check failed
    assert "matched_auc" in result.stdout and "FAILED" in result.stdout
    assert "architecture: none: a control" in result.stderr
    result = CliRunner().invoke(main.main, [*words, "--format", "json"])
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["passport"]["name"] == "control:constant"
    assert [check["passed"] for check in report["checks"] if check["name"] == "preprocessing"] == [
        None
    ]
    assert registry.load_model("control:constant").digest == report["model_digest"]
    words[words.index("control:constant")] = "control:nosuch"
    assert CliRunner().invoke(main.main, words).exit_code == 2  # a usage error


class Pairs(PairScorer):
    """A pair scorer that has memorized which caption belongs to which picture."""

    name, digest = "pairs", "f" * 32
    capabilities = Capabilities(scores_pairs=True, score_type="probability")

    def __init__(self, data: SimpleNamespace, fault: float = 0) -> None:
        self.fault = fault
        self.known = {
            (
                self.preprocess(Image.open(item.image.path)).tobytes(),
                self.tokenize(item.captions).tobytes(),
            )
            for item in data.items
        }

    def preprocess(self, image: Image.Image) -> np.ndarray:
        return np.asarray(image)

    def encode_pictures(self, pixels: list[np.ndarray]) -> list[np.ndarray]:
        return list(pixels)

    def tokenize(self, texts: list[str]) -> np.ndarray:
        rows = [list(text.encode()) for text in texts]
        return np.array([row + [-1] * (60 - len(row)) for row in rows])

    def match(self, seen: list[np.ndarray], tokens: np.ndarray, logits: bool = False) -> np.ndarray:
        own = [
            (one.tobytes(), row.tobytes()) in self.known
            for one, row in zip(seen, tokens, strict=True)
        ]
        return (0.5 + 0.4 * np.array(own) + self.fault * len(seen)).astype(np.float32)


def test_a_pair_scorer_is_checked_on_pairs(data, tmp_path):
    monkey = Pairs(data)
    monkey.tokenize = lambda texts: Pairs.tokenize(monkey, [text[:60] for text in texts])
    checks_by_name = outcomes(monkey, data, tmp_path)
    assert failed(checks_by_name) == set()
    assert (checks_by_name["matched_auc"].value, checks_by_name["r1_forth"].value) == (1, 1)
    assert "over 24 items" in checks_by_name["matched_auc"].detail
    (examination,) = examine.load(examine.Store(tmp_path), monkey.digest)
    assert examination.passport["embedding"] == "none: it scores pairs"


def test_a_pair_scorer_that_depends_on_the_batch_fails_the_batch_checks(data):
    model = Pairs(data, fault=1e-4)
    assert checks.image_batch(model, data.items).passed is False
    model.tokenize = lambda texts: Pairs.tokenize(model, [text[:60] for text in texts])
    assert checks.text_batch(model, data.items).passed is False


def test_a_text_encoder_is_checked_on_the_captions_of_a_picture_dataset(data, tmp_path):
    random = controls.load("control:random")

    class Texts(TextEncoder):
        name, digest, capabilities = "st", "9" * 32, Capabilities(embeds_texts=True, dim=64)
        tokenize, encode_texts = random.tokenize, random.encode_texts

    model = Texts()
    items = [
        replace(item, captions=(*item.captions, f"{item.captions[0]} Again."))
        for item in data.items
    ]
    checks_by_name = outcomes(
        model, SimpleNamespace(name="two", digest="2" * 32, items=items), tmp_path
    )
    assert (checks_by_name["image_batch"].passed, checks_by_name["preprocessing"].passed) == (
        None,
        None,
    )
    assert checks_by_name["matched_auc"].meaning.startswith(
        "Second captions are more similar to their own first captions"
    )
    with pytest.raises(InvalidInput, match="two captions for a text encoder"):
        examine.examine(model, data, tmp_path)
