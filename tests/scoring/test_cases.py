"""From cases to similarities, against plain products."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from vlprobe.models import controls
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.types import Capabilities, PairScorer, Picture, PictureEdit, TextEncoder

RANDOM = controls.load("control:random")


class TextsOnly(TextEncoder):
    """A control that encodes no pictures."""

    capabilities = Capabilities(embeds_texts=True, dim=controls.ControlEncoder.dim)

    def __init__(self) -> None:
        self.name, self.digest = "texts", RANDOM.digest
        self.tokenize, self.encode_texts = RANDOM.tokenize, RANDOM.encode_texts


class PairsOnly(PairScorer):
    """A pair scorer: the score is the length of the text divided by that of the longest."""

    name, digest = "pairs", "d" * 32
    capabilities = Capabilities(scores_pairs=True, score_type="probability")

    def preprocess(self, image):
        return np.asarray(image)

    def encode_pictures(self, pixels):
        return pixels

    def tokenize(self, texts):
        return np.array([[len(text)] for text in texts])

    def match(self, seen, tokens, logits=False):
        return (tokens[:, 0] / 100).astype(np.float32)


def score_cases(model, cases: pa.Table, margin=lambda rows: np.zeros(len(rows))) -> pa.Table:
    return scoring_cases.case_scorer(CachedEncoder(model), margin)(cases)


@pytest.fixture
def cases(tmp_path):
    paths = []
    for number in range(3):
        paths.append(str(tmp_path / f"{number}.png"))
        Image.new("RGB", (8, 8), (number, 9, 9)).save(paths[-1])
    return pa.table(
        {
            "kind": ["flip", "pair", "text"],
            "subtype": ["", "", ""],
            "rule": ["", "", ""],
            "images": [[paths[0]], [paths[1], paths[2]], []],
            "texts": [["a", "b", "c"], ["b", "d"], ["a", "d"]],
        }
    )


def test_scores_are_the_products_of_the_embeddings_by_image(cases):
    encoder = CachedEncoder(RANDOM)
    found = score_cases(RANDOM, cases, lambda rows: rows["text_01"].to_numpy())
    for row in cases.to_pylist():
        images = [encoder.images([Picture.from_name(name)])[0] for name in row["images"]]
        texts = [encoder.texts([text])[0] for text in row["texts"]]
        number = cases["kind"].to_pylist().index(row["kind"])
        assert found["scores"][number].as_py() == pytest.approx(
            [float(i @ t) for i in images for t in texts], abs=1e-6
        )
        expected = [float(one @ other) for one, other in combinations(texts, 2)]
        assert found["text_scores"][number].as_py() == pytest.approx(expected, abs=1e-6)
    assert found["margin"].to_pylist() == pytest.approx(
        [row[0] for row in found["text_scores"].to_pylist()]
    )


def test_a_case_has_the_same_score_with_any_neighbors(cases):
    whole, single = score_cases(RANDOM, cases), score_cases(RANDOM, cases.slice(1, 1))
    assert whole["scores"][1] == single["scores"][0]


def test_a_constant_model_ties_everything_to_the_bit(cases):
    found = score_cases(controls.load("control:constant"), cases)
    values = np.concatenate([np.array(row) for row in found["scores"].to_pylist()])
    assert (values == values[0]).all()


def test_the_name_of_an_edited_picture_stores_its_edit():
    picture = Picture(Path("a b.png"), PictureEdit("mix", Path("c.png"), 0.9, 7))
    assert Picture.from_name(picture.name) == picture
    assert Picture.from_name("a b.png") == Picture(Path("a b.png"))


def test_a_text_encoder_has_unknown_scores_and_known_text_similarities(cases):
    found = score_cases(TextsOnly(), cases, lambda rows: rows["score_0"].to_numpy())
    both = score_cases(RANDOM, cases)
    assert np.isnan([score for row in found["scores"].to_pylist() for score in row]).all()
    assert [len(row) for row in found["scores"].to_pylist()] == [3, 4, 0]
    assert np.isnan(found["margin"].to_numpy()).all()
    assert found["text_scores"] == both["text_scores"]


def test_a_pair_scorer_scores_pairs_and_has_no_text_similarities(cases):
    cases = cases.slice(0, 2)
    found = score_cases(PairsOnly(), cases, lambda rows: rows["text_01"].to_numpy())
    assert [len(row) for row in found["scores"].to_pylist()] == [3, 4]
    assert found["scores"][0].as_py() == pytest.approx([0.01, 0.01, 0.01])
    assert np.isnan([score for row in found["text_scores"].to_pylist() for score in row]).all()


def test_only_an_edit_that_the_tokenizer_undoes_is_erased(cases):
    model = controls.load("control:random")
    model.tokenize = lambda texts, own=model.tokenize: own([text.lower() for text in texts])
    table = cases.slice(0, 2).set_column(
        4, "texts", pa.array([["A Dog", "a dog"], ["a dog", "a cat"]])
    )
    found = score_cases(model, table)
    assert found["erased"].to_pylist() == [True, False]
    assert found["scores"][0].as_py()[0] == found["scores"][0].as_py()[1]
