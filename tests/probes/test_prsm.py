"""PRSM in a gallery smaller than every k of the paper, and with sampled candidates."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from tests.conftest import estimates_of
from vlprobe import views
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import gallery
from vlprobe.storage.store import Store


def test_a_small_gallery_has_a_rank_correlation_and_margin_but_no_overlap(tiny, store):
    manifest = execute(Request(("control:random",), tiny, "prsm"), store)[0]
    rows = store.run(manifest["key"]).table("scores").to_pandas()
    assert rows["local_10"].isna().all() and (rows["gallery_size"] == 6).all()
    np.testing.assert_allclose(rows["margin"], rows["global"] - 1, atol=1e-6)
    estimates = estimates_of(store, manifest)
    assert estimates.loc["prsm_global", "value"] == pytest.approx(rows["global"].mean(), abs=0.2)
    assert estimates.loc["prsm_local_10", "n_items"] == 0


def test_block_size_and_threads_do_not_change_the_rankings(tiny, store, tmp_path, monkeypatch):
    request = Request(("control:random",), tiny, "prsm", examine=False)
    together = store.run(execute(request, store)[0]["key"]).table("scores").to_pandas()
    monkeypatch.setattr(gallery, "BLOCK_BYTES", 1)
    other = Store(tmp_path / "one by one")
    single = (
        other.run(execute(replace(request, workers=1), other)[0]["key"]).table("scores").to_pandas()
    )
    assert together["top"].tolist() == single["top"].tolist()
    np.testing.assert_allclose(together["global"], single["global"], rtol=0, atol=1e-6)


@pytest.fixture
def many(tmp_path) -> str:
    """Create a dataset of 110 single-color pictures with three captions each, and return its name."""
    lines = ["image,caption"]
    for number in range(110):
        Image.new("RGB", (4, 4), (2 * number, 7, 9)).save(tmp_path / f"{number}.png")
        lines += [f"{number}.png,a thing {number} in form {form}" for form in range(3)]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    return f"csv:{tmp_path / 'd.csv'}"


def test_sampled_candidates_have_a_separate_metric_and_the_exact_one_is_unknown(many, store):
    request = Request(("control:random",), many, "prsm", examine=False)
    exact, sampled = (
        execute(replace(request, options=options), store)[0] for options in ({}, {"sampled": 100})
    )
    assert "sampled" not in exact["run"]["options"]
    added = set(sampled["run"]["metrics"]) - set(exact["run"]["metrics"])
    assert added == {"prsm_global_sampled@2"}
    rows, whole = (store.run(run["key"]).table("scores").to_pandas() for run in (sampled, exact))
    assert rows["global"].isna().all() and "global_sampled" not in whole
    for name in ("local_10", "local_100"):
        np.testing.assert_allclose(rows[name], whole[name], atol=1e-12)
    assert rows["top"].tolist() == whole["top"].tolist()
    assert rows["global_sampled"].mean() == pytest.approx(whole["global"].mean(), abs=0.02)
    assert 0 < (rows["global_sampled"] - whole["global"]).abs().max() < 0.2
    estimates = estimates_of(store, sampled)
    estimate = estimates.loc["prsm_global_sampled"]
    assert estimate["low"] < estimate["value"] < estimate["high"]
    assert estimates.loc["prsm_global", "n_items"] == 0
    exact_set = views.runs.question_set(store, exact["case_key"])
    assert set(exact_set.metrics) == {name.partition("@")[0] for name in exact["run"]["metrics"]}
    assert not views.runs.describe_older(sampled["run"])
    assert not views.runs.describe_older(exact["run"])


def test_a_gallery_not_larger_than_the_sample_is_ranked_completely(tiny, store):
    request = Request(("control:random",), tiny, "prsm", {"sampled": 100}, examine=False)
    rows = store.run(execute(request, store)[0]["key"]).table("scores").to_pandas()
    assert (rows["global_sampled"] == rows["global"]).all() and not rows["margin"].isna().any()
