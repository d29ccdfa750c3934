"""Slices by the length and the rarest word of a caption match a loop over the cases, for all stored runs."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.conftest import tiers
from tools import ship
from vlprobe import registry, views
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.render.charts.styles import styles
from vlprobe.render.words import slice_order
from vlprobe.storage import shipped
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store
from vlprobe.views import caption_bins
from vlprobe.views.filter import Filter
from vlprobe.views.runs import QuestionSet

ONE = "dealt:1"
WORDS = ("caption_length", "word_frequency")


@pytest.fixture
def question_set(filled: Store, key: str) -> QuestionSet:
    return views.runs.question_set(filled, key)


@pytest.fixture
def captions(filled: Store, key: str) -> list[str]:
    table = pd.read_parquet(filled.root / "cases" / key / "cases.parquet").sort_values("case")
    return [str(texts[0]) for texts in table["texts"]]


def length_bin(caption: str) -> str:
    size = len(re.findall(r"[\w'-]+", caption))
    return next(
        name
        for name, most in zip(caption_bins.VALUES["caption_length"], (7, 10, 14, 999), strict=True)
        if size <= most
    )


def frequency_bin(caption: str, every: set[str]) -> str:
    words = set(re.findall(r"[\w'-]+", caption.lower()))
    rarest = min(
        sum(word in re.findall(r"[\w'-]+", each.lower()) for each in every) for word in words
    )
    return next(
        name
        for name, most in zip(caption_bins.VALUES["word_frequency"], (1, 9, 99, 10**9), strict=True)
        if rarest <= most
    )


def test_every_case_is_in_the_bin_that_a_loop_over_its_words_finds(filled, key, captions):
    every = set(captions)
    for by, binned in (
        ("caption_length", [length_bin(caption) for caption in captions]),
        ("word_frequency", [frequency_bin(caption, every) for caption in captions]),
    ):
        codes = caption_bins.bin_codes(views.tables.CaseTable(filled, key), by)
        assert [caption_bins.VALUES[by][code] for code in codes] == binned
        assert len(set(binned)) > 1


def test_slices_with_a_natural_order_are_listed_in_it(filled, question_set):
    orders = {
        **{by: caption_bins.VALUES[by] for by in WORDS},
        "strength_bin": ("weak", "medium", "strong"),
    }
    for by, order in orders.items():
        table = views.estimates.estimates(question_set, by)
        for _, of_metric in table.groupby(["metric", "model"]):
            listed = [name for name in of_metric["slice"] if name in order]
            assert listed == [name for name in order if name in listed]
        assert set(order) & set(table["slice"])


@pytest.mark.parametrize("by", WORDS)
def test_estimates_of_bins_are_those_of_a_loop_over_the_stored_answers(
    filled, question_set, rows, captions, by
):
    every = set(captions)
    binned = pd.Series(
        [
            length_bin(caption) if by == "caption_length" else frequency_bin(caption, every)
            for caption in captions
        ]
    )
    assert by in views.estimates.slices(question_set)
    table = views.estimates.estimates(question_set, by, "micro")
    flips = rows["kind"] == "flip"
    for name in sorted(set(binned[flips])):
        for model in question_set.models:
            margins = rows[model][flips & (binned == name)]
            shown = table[(table["model"] == model) & (table["slice"] == name)].set_index("metric")
            assert shown.loc["positive_rate", "value"] == pytest.approx((margins > 0).mean())
            assert shown.loc["sensitivity_gap", "value"] == pytest.approx(margins.mean(), abs=1e-6)
            assert shown.loc["positive_rate", "n_cases"] == len(margins)
            low, high = shown.loc["positive_rate", ["low", "high"]]
            assert np.isnan(low) or low <= shown.loc["positive_rate", "value"] <= high


def test_bins_read_in_blocks_equal_those_read_at_once(filled, question_set, monkeypatch):
    at_once = views.estimates.estimates(question_set, "caption_length")
    monkeypatch.setattr(caption_bins, "BLOCK_CASES", 97)
    monkeypatch.setattr(views.tables, "_cache", SingleFlightCache(1 << 20, views.tables._bytes))
    in_blocks = views.estimates.estimates(question_set, "caption_length")
    pd.testing.assert_frame_equal(in_blocks, at_once, rtol=1e-9)


@pytest.mark.parametrize("by", WORDS)
def test_a_filter_by_a_bin_passes_only_its_cases(filled, key, question_set, by):
    codes = caption_bins.bin_codes(views.tables.CaseTable(filled, key), by)
    for code, name in enumerate(caption_bins.VALUES[by]):
        chosen = Filter.parse(ONE, outcome="all", caption=f"{by}={name}")
        table, total = views.cases.failures(question_set, chosen, size=10_000)
        assert total == len(table)
        assert set(codes[table["case"].to_numpy()]) <= {code}
    every = Filter(ONE, outcome="all")
    counts = [
        views.cases.failures(
            question_set, Filter.parse(ONE, outcome="all", caption=f"{by}={name}")
        )[1]
        for name in caption_bins.VALUES[by]
    ]
    assert sum(counts) == views.cases.failures(question_set, every)[1]


@pytest.mark.parametrize("name", ["caption_length", "length=1", "caption_length=9 words"])
def test_a_bin_of_captions_that_does_not_exist_is_refused(filled, question_set, name):
    with pytest.raises((InvalidInput, NotFound)):
        views.cases.failures(question_set, Filter.parse(ONE, caption=name))


@pytest.mark.parametrize("probe", ["rococo", "eqben", "visla", "prsm"])
def test_every_probe_has_estimates_by_bins_of_captions(every_probe: Store, probe: str):
    keys = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    question_set = views.runs.question_set(every_probe, keys[probe])
    whole = views.estimates.estimates(question_set)
    assert (whole["n_cases"] > 0).any()
    table = views.estimates.estimates(question_set, "caption_length")
    for metric, n_cases in whole.groupby("metric")["n_cases"].max().items():
        of_metric = table[table["metric"] == metric]
        assert of_metric.groupby("model")["n_cases"].sum().max() == n_cases or not n_cases


def test_lgip_runs_without_stored_text_cosines_have_slices_by_caption_length():
    shipped_store = Store(shipped.FOLDER)
    sets = views.runs.question_set_rows(shipped_store)
    key = next(row.case_key for row in sets if row.probe == "lgip")
    question_set = views.runs.question_set(shipped_store, key)
    run = question_set.runs[0]
    question_set = replace(question_set, runs=(run,))
    table = views.estimates.estimates(question_set, "caption_length", "micro")
    cases = shipped_store.cases(key).table("cases").to_pandas()
    margins = shipped_store.run(run.key).table("scores", ["case", "margin"]).to_pandas()
    flips = cases[cases["kind"] == "flip"].merge(margins, on="case")
    held = (flips["margin"] > 0).groupby([length_bin(texts[0]) for texts in flips["texts"]]).mean()
    rates = table[(table["model"] == run.model) & (table["metric"] == "positive_rate")]
    shown = rates[rates["n_cases"] > 0].set_index("slice")["value"]
    assert len(held) > 1
    pd.testing.assert_series_equal(
        shown.sort_index(), held.sort_index(), check_names=False, check_index_type=False
    )


@pytest.mark.parametrize(
    ("by", "probe"),
    tiers(
        [*itertools.product(WORDS, ship.PROBES), ("text_alone", "lgip")],
        [*itertools.product(WORDS, ["visla"])],
    ),
)
def test_bins_are_listed_as_numbers_and_not_as_text(by: str, probe: str):
    """Check the order of bins; "8 to 10 words" once came after "15 words or more"."""
    store = Store(shipped.FOLDER)
    keys = views.runs.question_sets(store).set_index("probe")["case_key"]
    table = views.estimates.estimates(views.runs.question_set(store, keys[probe]), by)
    for (_, _), rows in table.groupby(["metric", "model"], sort=False):
        places = [caption_bins.VALUES[by].index(name) for name in rows["slice"]]
        assert places == sorted(places)
    names = sorted(set(table["slice"]), key=slice_order)
    assert names == [name for name in caption_bins.VALUES[by] if name in names]


def test_models_named_by_steps_are_listed_in_the_order_of_the_steps():
    """Check the order of the names that `callback` gives: toy@0, toy@50, toy@100."""
    names = ["toy@100", "control:random", "toy@50", "demo:weak", "toy@0", "b2", "b10"]
    assert sorted(names, key=registry.model_order) == [
        *("demo:weak", "b2", "b10", "toy@0", "toy@50", "toy@100", "control:random")
    ]
    looks = {name: name for name in names if not name.startswith(("demo", "control"))}
    assert list(styles(looks)) == ["b2", "b10", "toy@0", "toy@50", "toy@100"]
    assert sorted(["9" * 5000, "1"], key=registry.natural_order)[0] == "1"
