"""The guess without the picture: it matches a loop over the stored texts, and exists only for caption pairs."""

import numpy as np
import pytest

from tests.conftest import question_set_of
from vlprobe import views
from vlprobe.metrics import blind
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.views import caption_bins

STORE = Store(shipped.FOLDER)


@pytest.mark.full
def test_the_best_guess_on_bundled_flips_is_the_best_of_all_methods():
    demo = question_set_of(STORE, "lgip", "demo")
    cases = STORE.cases(demo.key).table("cases").to_pandas()
    pairs = [
        blind.Pair(row.item, "", *row.texts) for row in cases.itertuples() if row.kind == "flip"
    ]
    expected = max(guess.accuracy.value for guess in blind.check_pairs(pairs))
    best = views.estimates.best_guess(demo, "flip")
    assert best is not None
    assert best.accuracy.value == expected > 0.5
    assert best.n_pairs == len(pairs)


@pytest.mark.parametrize(
    ("probe", "dataset", "kind"),
    [
        ("eqben", "demo-pairs", "pair"),
        ("visla", "demo-triplets", "i2t"),
        ("lgip", "demo", "combined"),
    ],
)
def test_questions_other_than_pairs_of_captions_have_no_guess(probe, dataset, kind):
    assert views.estimates.best_guess(question_set_of(STORE, probe, dataset), kind) is None


def test_a_case_is_decided_by_its_text_if_the_best_guess_is_right(monkeypatch):
    monkeypatch.setattr(
        blind, "margins", lambda true, wrong, unit: {"length": lengths(wrong) - lengths(true)}
    )
    demo = question_set_of(STORE, "lgip", "demo")
    table = demo.cases
    codes = caption_bins._text_alone_codes(table)
    cases = STORE.cases(demo.key).table("cases").to_pylist()
    for case, code in zip(cases, codes, strict=True):
        if case["kind"] != "flip":
            assert code == -1
            continue
        true, wrong = (len(text.split()) for text in case["texts"])
        assert code == (0 if wrong > true else 1)


def lengths(texts: list[str]) -> np.ndarray:
    return np.array([len(text.split()) for text in texts], dtype=float)


@pytest.mark.full
def test_cases_that_the_text_does_not_decide_are_harder_for_published_models():
    published = Store(shipped.PUBLISHED_FOLDER)
    sugar_crepe = question_set_of(published, dataset="bundled:SugarCrepe")
    assert "text_alone" in views.estimates.slices(sugar_crepe)
    table = views.estimates.estimates(sugar_crepe, "text_alone")
    of_bins = table[table["metric"] == "foil_accuracy"].pivot_table(
        index="model", columns="slice", values="value"
    )
    counts = table[table["metric"] == "foil_accuracy"].groupby("slice")["n_cases"].max()
    guess = views.estimates.best_guess(sugar_crepe, "foil")
    assert counts["The text alone decides"] / counts.sum() == pytest.approx(guess.accuracy.value)
    is_harder = of_bins["The text alone does not decide"] < of_bins["The text alone decides"]
    assert is_harder.sum() >= 4 and len(is_harder) == 5


@pytest.mark.parametrize("dataset", ["demo-pairs", "demo-triplets"])
def test_datasets_without_pairs_of_captions_have_no_breakdown_by_text_alone(dataset):
    probe = {"demo-pairs": "eqben", "demo-triplets": "visla"}[dataset]
    assert "text_alone" not in views.estimates.slices(question_set_of(STORE, probe, dataset))
