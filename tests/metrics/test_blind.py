"""Guesses without the picture, against scikit-learn, a plain loop and published figures."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from threadpoolctl import threadpool_info, threadpool_limits

from tests.conftest import call
from vlprobe import registry
from vlprobe.datasets import audit
from vlprobe.errors import InvalidInput
from vlprobe.metrics import blind
from vlprobe.metrics.blind import CLASSIFIER, LENGTH, WORDS, Pair, check_pairs

ROOT = Path(__file__).resolve().parents[2]
COLORS = ("red", "blue", "green", "white", "black")


def make_pairs(n_pictures: int, n_pairs: int = 1) -> list[Pair]:
    """Return pairs in which the wrong caption always contains the word "not"."""
    rng = np.random.default_rng(0)
    pairs = []
    for picture in range(n_pictures):
        for _ in range(n_pairs):
            first, second = rng.choice(COLORS, 2, replace=False)
            true, wrong = f"a {first} dog and a {second} cat", f"a {second} dog not a {first} cat"
            pairs.append(Pair(str(picture), "", true, wrong))
    return pairs


def map_methods(pairs: list[Pair]) -> dict[str, blind.BlindAccuracy]:
    return {row.method: row for row in check_pairs(pairs) if not row.subset}


def test_the_fit_uses_one_thread_because_two_wait_for_each_other_beside_other_work(monkeypatch):
    threads, fit = [], scipy.optimize.minimize

    def minimize(*arguments: object, **options: object) -> scipy.optimize.OptimizeResult:
        threads.extend(threadpool_info())
        return fit(*arguments, **options)

    monkeypatch.setattr(scipy.optimize, "minimize", minimize)
    with threadpool_limits(2, "blas"):
        check_pairs(make_pairs(60))
    assert {pool["num_threads"] for pool in threads if pool["user_api"] == "blas"} == {1}


def test_a_telltale_word_is_learned_and_equal_lengths_are_ties():
    by_method = map_methods(make_pairs(60))
    assert by_method[WORDS].accuracy.value == by_method[CLASSIFIER].accuracy.value == 1
    assert by_method[LENGTH].accuracy.value == 0
    assert by_method[LENGTH].n_tied == by_method[LENGTH].n_pairs == 60


def test_captions_of_a_picture_are_not_used_to_guess_on_the_same_picture():
    pairs = [
        Pair(str(picture), "", f"x{picture} here", f"y{picture} here")
        for picture in range(60)
        for _ in range(4)
    ]
    by_method = map_methods(pairs)
    assert by_method[WORDS].accuracy.value == 0
    assert by_method[WORDS].n_tied == 240, "a fold was trained on captions of its pictures"


def test_the_weights_match_those_of_scikit_learn():
    linear_model = pytest.importorskip(
        "sklearn.linear_model", reason="needs requirements-models.txt"
    )
    pairs = make_pairs(80, 3)
    true, wrong = [pair.true for pair in pairs], [pair.wrong for pair in pairs]
    differences, n_features = blind._feature_differences(true, wrong, blind._features)
    rng = np.random.default_rng(1)
    # some pairs are reversed, so that the weights are moderate
    label = rng.random(len(pairs)) < 0.8
    signed = differences.multiply(np.where(label, 1, -1)[:, None]).tocsr()
    expected = linear_model.LogisticRegression(
        C=1.0, fit_intercept=False, tol=1e-8, max_iter=10_000
    )
    # each pair occurs in both directions, so the regularization is halved
    both = np.vstack([signed.toarray(), -signed.toarray()])
    expected.set_params(C=0.5).fit(both, np.repeat([1, 0], len(pairs)))
    weights = blind._logistic_regression(signed, n_features)
    assert weights == pytest.approx(expected.coef_[0], abs=0.01)


def test_fewer_than_fifty_pictures_are_refused_in_one_line():
    with pytest.raises(InvalidInput, match=r"at least 50 pictures.* Found 49\.$"):
        check_pairs(make_pairs(49, 4))


def test_a_dataset_without_wrong_captions_is_refused_in_one_line(tiny, tmp_path):
    result = call(tmp_path, "check", tiny, "--blind", code=1)
    assert "Found 0." in result.stderr and result.stderr.count("\n") == 1


def test_length_and_classifier_on_sugarcrepe(tmp_path):
    """Check the published value for length: the shorter caption is true in 97.6 % of add_obj."""
    result = call(tmp_path, "check", "bundled:SugarCrepe", "--blind", "--format", "json")
    accuracy = {(row["subset"], row["guess"]): row["accuracy"] for row in json.loads(result.stdout)}
    items = registry.load_dataset("bundled:SugarCrepe", tmp_path).items
    subset = {item.id: item.tags["subset"] for item in items}
    for name in ("add_obj", "swap_att"):
        rows = [row for row in audit.alterations(items) if subset[row.item] == name]
        shorter = [
            len(re.split(r"\s+", t.strip())) < len(re.split(r"\s+", w.strip())) for _, t, w in rows
        ]
        assert accuracy[name, "length"] == pytest.approx(np.mean(shorter))
    assert accuracy["add_obj", "length"] == pytest.approx(0.976, abs=5e-4)
    assert accuracy["all", "classifier"] > 0.8 > 0.7 > accuracy["swap_obj", "classifier"]


@pytest.mark.full
def test_a_set_without_the_pairs_that_texts_decide_is_harder_for_models_trained_on_such_texts(
    shared_data: Path,
):
    """Check the page's numbers against BiVLC's detectors, which also see no picture and decide the same pairs."""
    folder = shared_data / "real" / "bivlc"

    def read(name: str) -> pd.DataFrame:
        return pd.read_csv(folder / f"SUGARCREPE_{name}.csv", dtype={"filename": str})

    rows = read("CORRECT_ViT-B-32")
    scores = read("Classifier_CLIP_TROHN-Img").groupby("label")["text_pred"]
    detected = scores.get_group(1).to_numpy() > scores.get_group(0).to_numpy()
    subset = rows["type"] + "_" + rows["subtype"]
    by_subset = pd.Series(detected).groupby(subset).mean()
    added = ["add_att", "add_obj"]
    in_order = by_subset[added].min() > 0.9 > 0.8 > by_subset.drop(added).max()
    assert in_order, "the scores are not in the order of the questions"
    unit = pd.factorize(rows["filename"])[0]
    texts = rows["caption"].tolist(), rows["negative_caption"].tolist()
    guessed = blind.margins(*texts, unit)[CLASSIFIER] > 0
    assert detected.mean() == pytest.approx(0.776, abs=5e-4)
    assert guessed[detected].mean() == pytest.approx(0.869, abs=5e-4)
    assert guessed[~detected].mean() == pytest.approx(0.714, abs=5e-4)
    page = (ROOT / "docs" / "numbers" / "blind.md").read_text(encoding="utf-8")
    printed = re.findall(
        r"^\| CLIP,? ([\w/-]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE
    )
    files = ("ViT-B-32", "CLIP_COCO", "CLIP_TROHN-Text", "CLIP_TROHN-Img")
    for file, (_, *cells) in zip(files, printed, strict=True):
        correct = read(f"CORRECT_{file}")["correct"].to_numpy() == 1
        shares = [correct.mean(), correct[~guessed].mean(), correct[~detected].mean()]
        assert [f"{100 * share:.1f}" for share in shares] == cells, file
        if file != "ViT-B-32":
            assert max(shares[1:]) < shares[0]
