"""Edits that a tokenizer or the preprocessing erases are counted and named by their cause; expected counts are by
hand.
"""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from open_clip.tokenizer import SimpleTokenizer
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image, ImageDraw

from vlprobe.models import controls
from vlprobe.models.doctor.erased import PICTURE_PAIRS, Erased, erased
from vlprobe.perturb import mix
from vlprobe.runs import questions
from vlprobe.types import Capabilities


class Reader:
    """A model that has only OpenCLIP's tokenizer."""

    capabilities = Capabilities(embeds_texts=True)

    def __init__(self, **options: object) -> None:
        self._tokenizer = SimpleTokenizer(**options)

    def tokenize(self, texts: list[str]) -> np.ndarray:
        return self._tokenizer(list(texts)).numpy()


class Viewer(Reader):
    """A `Reader` with OpenCLIP's preprocessing, which crops the middle square of a picture."""

    capabilities = Capabilities(embeds_texts=True, embeds_images=True)

    def __init__(self) -> None:
        super().__init__(context_length=16)
        self._transform = image_transform_v2(PreprocessCfg(size=32), is_train=False)

    def preprocess(self, image: Image.Image) -> np.ndarray:
        return self._transform(image).numpy()


def table(*rows: dict) -> pa.Table:
    """Return cases with the columns that a run stores."""
    defaults = {"item": "", "kind": "flip", "rule": "r", "texts": [], "images": [], "roles": None}
    full = [{"id": str(number), **defaults, **row} for number, row in enumerate(rows)]
    for row in full:
        row["roles"] = (
            row["roles"] or ["original", *["different"] * len(row["texts"])][: len(row["texts"])]
        )
    return pa.Table.from_pylist(full, schema=questions.SCHEMA)


def texts(
    rule: str, *pairs: tuple[str, ...], kind: str = "flip", role: str = "different"
) -> list[dict]:
    return [
        {
            "kind": kind,
            "rule": rule,
            "texts": list(pair),
            "roles": ["original", *[role] * (len(pair) - 1)],
        }
        for pair in pairs
    ]


CASES = table(
    *texts(
        "case",
        ("A Dog.", "a dog."),
        ("A Cat.", "a cat."),
        ("A Cat.", "a bird."),
        kind="paraphrase",
        role="same",
    ),
    *texts("marks", ("a dog", "a dog."), ("a dog", "A  dog!"), ("a dog", "a cat.")),
    *texts("spaces", ("a dog", "a  dog "), ("a dog", "a dog")),
)


def test_clips_tokenizer_erases_letter_case_and_spacing():
    assert erased(CASES, Reader(context_length=16)) == [
        Erased("text", "flip", "spaces", "different", "spacing", 1, 2),
        Erased("text", "paraphrase", "case", "same", "letter case", 2, 3),
    ]


def test_siglips_text_cleaning_also_erases_punctuation():
    assert erased(CASES, Reader(context_length=16, clean="canonicalize")) == [
        Erased("text", "flip", "marks", "different", "punctuation", 2, 3),
        Erased("text", "flip", "spaces", "different", "spacing", 1, 2),
        Erased("text", "paraphrase", "case", "same", "letter case", 2, 3),
    ]


def test_a_model_that_reads_raw_text_erases_nothing():
    assert erased(CASES, controls.load("control:random")) == []


def test_an_edit_beyond_the_context_length_is_named_context_limit():
    words = "one two three four five six seven"
    cases = table(
        *texts("tail", (f"{words} dog", f"{words} cat"), (f"dog {words}", f"cat {words}"))
    )
    assert erased(cases, Reader(context_length=8)) == [
        Erased("text", "flip", "tail", "different", "context limit", 1, 2)
    ]
    assert erased(cases, Reader(context_length=16)) == []


def test_punctuation_beyond_the_context_length_is_not_counted_as_stripped():
    words = "one two three four five six seven"
    cases = table(
        *texts("stop", (f"{words}.", words), ("one.", "one"), ("A " + words, "a " + words))
    )
    assert erased(cases, Reader(context_length=8)) == [
        Erased("text", "flip", "stop", "different", "context limit", 1, 3),
        Erased("text", "flip", "stop", "different", "letter case", 1, 3),
    ]


def test_words_missing_from_the_vocabulary_are_named_vocabulary():
    class Few(Reader):
        def tokenize(self, texts: list[str]) -> np.ndarray:
            known = {"a": 1, "dog": 2}
            rows = [[known.get(word, 3) for word in re.findall(r"\w+", text)] for text in texts]
            return np.array([[*row, *[0] * (9 - len(row))] for row in rows])

    cases = table(*texts("words", ("a blue dog", "a puce dog"), ("a dog", "a blue dog")))
    assert erased(cases, Few()) == [
        Erased("text", "flip", "words", "different", "vocabulary", 1, 2)
    ]


def test_a_text_is_compared_only_with_the_earlier_texts_of_its_case():
    first = {
        "rule": "triplet",
        "texts": ["One dog.", "A dog.", "a Dog."],
        "roles": ["original", "same", "different"],
    }
    assert erased(table(first, *texts("alone", ("ONE DOG.",))), Reader(context_length=16)) == [
        Erased("text", "flip", "triplet", "different", "letter case", 1, 1)
    ]


def test_reading_cases_in_slices_does_not_change_the_counts(monkeypatch):
    monkeypatch.setattr("vlprobe.models.doctor.erased._CASES", 1)
    rows = erased(CASES, Reader(context_length=16))
    assert [(row.rule, row.count) for row in rows] == [("spaces", 1), ("case", 2)]


def panorama(path: Path, x: int, color: str) -> str:
    image = Image.new("RGB", (128, 32), "gray")
    ImageDraw.Draw(image).rectangle((x, 8, x + 8, 24), fill=color)
    image.save(path)
    return str(path)


def test_a_pair_of_pictures_that_differ_only_in_the_cropped_area_is_counted(tmp_path):
    left = [panorama(tmp_path / f"left-{color}.png", 4, color) for color in ("red", "blue")]
    middle = [panorama(tmp_path / f"middle-{color}.png", 60, color) for color in ("red", "blue")]
    rows = [
        {"kind": "pair", "rule": "pair", "images": pair, "texts": ["a", "b"]}
        for pair in (left, middle, middle)
    ]
    assert erased(table(*rows), Viewer()) == [
        Erased("picture", "pair", "pair", "different", "preprocessing", 1, 3)
    ]
    assert erased(table(*rows), Reader(context_length=16)) == []


def test_a_mixed_picture_whose_patch_is_cropped_away_is_counted(tmp_path):
    paths = {str(n): Path(panorama(tmp_path / f"{n}.png", 8 * n, "red")) for n in range(12)}
    rows = [
        {
            "item": item,
            "kind": "t2i",
            "rule": "patch:0.97:seed1",
            "images": [str(path)],
            "texts": ["a"],
        }
        for item, path in paths.items()
        for _ in range(2)
    ]
    hidden = []
    for item, edit in mix.picture_edits(paths, "patch", 0.97, 1).items():
        left, top, right, bottom = mix.box(128, 32, 0.97, edit.seed)
        image, other = (np.asarray(Image.open(path)) for path in (paths[item], edit.partner))
        inside = slice(max(left, 48), min(right, 80))
        hidden.append(np.array_equal(image[top:bottom, inside], other[top:bottom, inside]))
    assert 0 < sum(hidden) < 12
    assert erased(table(*rows), Viewer()) == [
        Erased("picture", "t2i", "patch:0.97:seed1", "different", "preprocessing", sum(hidden), 12)
    ]


def test_a_large_number_of_picture_pairs_is_sampled(tmp_path):
    pair = [panorama(tmp_path / f"{color}.png", 4, color) for color in ("red", "blue")]
    rows = [{"kind": "pair", "rule": "pair", "images": pair} for _ in range(PICTURE_PAIRS + 20)]
    assert [(row.count, row.of) for row in erased(table(*rows), Viewer())] == [
        (PICTURE_PAIRS, PICTURE_PAIRS)
    ]


@pytest.mark.parametrize("cases", [table(), table({"texts": []})], ids=["no cases", "no texts"])
def test_a_table_without_cases_or_texts_has_no_erased_edits(cases: pa.Table):
    assert erased(cases, Viewer()) == []
