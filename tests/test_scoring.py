"""From cases to similarities, against plain products."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from vlprobe import scoring
from vlprobe.embeddings import Encoder
from vlprobe.models import controls
from vlprobe.types import Picture


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


def test_scores_are_the_products_of_the_embeddings_image_by_image(cases):
    encoder = Encoder(controls.load("control:random"))
    found = scoring.case_scorer(encoder, lambda rows: rows["text_01"].to_numpy())(cases)
    for row in cases.to_pylist():
        images = [encoder.images([Picture.named(name)])[0] for name in row["images"]]
        texts = [encoder.texts([text])[0] for text in row["texts"]]
        number = cases["kind"].to_pylist().index(row["kind"])
        assert found["scores"][number].as_py() == pytest.approx([float(i @ t) for i in images for t in texts], abs=1e-6)
        expected = [float(one @ other) for one, other in combinations(texts, 2)]
        assert found["text_scores"][number].as_py() == pytest.approx(expected, abs=1e-6)
    assert found["margin"].to_pylist() == pytest.approx([row[0] for row in found["text_scores"].to_pylist()])


def test_a_case_scores_the_same_whoever_its_neighbours_are(cases):
    score = scoring.case_scorer(Encoder(controls.load("control:random")), lambda rows: np.zeros(len(rows)))
    whole, alone = score(cases), score(cases.slice(1, 1))
    assert whole["scores"][1] == alone["scores"][0]


def test_a_constant_model_ties_everything_to_the_bit(cases):
    score = scoring.case_scorer(Encoder(controls.load("control:constant")), lambda rows: np.zeros(len(rows)))
    values = np.concatenate([np.array(row) for row in score(cases)["scores"].to_pylist()])
    assert (values == values[0]).all()


def test_an_edited_picture_keeps_its_edit_when_it_is_written_and_read():
    from pathlib import Path

    from vlprobe.types import PictureEdit

    picture = Picture(Path("a b.png"), PictureEdit("mix", Path("c.png"), 0.9, 7))
    assert Picture.named(picture.name) == picture
    assert Picture.named("a b.png") == Picture(Path("a b.png"))
