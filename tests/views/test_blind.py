"""The guess without the picture: from stored texts as from a loop over them, and only where it means something."""

import pytest

from vlprobe import views
from vlprobe.metrics import blind
from vlprobe.storage import shipped
from vlprobe.storage.store import Store

STORE = Store(shipped.FOLDER)


def question_set(probe: str, dataset: str) -> views.runs.QuestionSet:
    rows = views.runs.question_set_rows(STORE)
    key = next(row.case_key for row in rows if (row.probe, row.dataset) == (probe, dataset))
    return views.runs.question_set(STORE, key)


@pytest.mark.full
def test_the_best_guess_on_bundled_flips_is_the_best_of_all_methods():
    demo = question_set("lgip", "demo")
    cases = STORE.cases(demo.key).table("cases").to_pandas()
    pairs = [
        blind.Pair(row.item, "", *row.texts) for row in cases.itertuples() if row.kind == "flip"
    ]
    expected = max(guess.accuracy.value for guess in blind.check_pairs(pairs))
    found = views.estimates.best_guess(STORE, demo, "flip")
    assert found is not None
    assert found.accuracy.value == expected > 0.5
    assert found.n_pairs == len(pairs)


@pytest.mark.parametrize(
    ("probe", "dataset", "kind"),
    [
        ("eqben", "demo-pairs", "pair"),
        ("visla", "demo-triplets", "i2t"),
        ("lgip", "demo", "combined"),
    ],
)
def test_questions_that_are_no_pairs_of_captions_have_no_guess(probe, dataset, kind):
    assert views.estimates.best_guess(STORE, question_set(probe, dataset), kind) is None
