"""PRSM in a gallery that is smaller than any of the paper's k."""

from dataclasses import replace

import numpy as np
import pytest

from vlprobe import views
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import gallery
from vlprobe.storage.store import Store


def test_a_small_gallery_has_no_overlap_but_a_rank_correlation_and_a_margin_made_of_it(tiny, store):
    manifest = execute(Request(("control:random",), tiny, "prsm"), store)[0]
    rows = store.run(manifest["key"]).table("scores").to_pandas()
    assert rows["local_10"].isna().all() and (rows["gallery_size"] == 6).all()
    np.testing.assert_allclose(rows["margin"], rows["global"] - 1, atol=1e-6)
    found = views.estimates.estimates(
        store, views.runs.question_set(store, manifest["case_key"])
    ).set_index("metric")
    assert found.loc["prsm_global", "value"] == pytest.approx(rows["global"].mean(), abs=0.2)
    assert found.loc["prsm_local_10", "n_items"] == 0


def test_how_many_queries_are_asked_at_once_and_by_how_many_threads_changes_nothing(
    tiny, store, tmp_path, monkeypatch
):
    asked = Request(("control:random",), tiny, "prsm", examine=False)
    together = store.run(execute(asked, store)[0]["key"]).table("scores").to_pandas()
    monkeypatch.setattr(gallery, "BLOCK_BYTES", 1)
    other = Store(tmp_path / "one by one")
    single = (
        other.run(execute(replace(asked, workers=1), other)[0]["key"]).table("scores").to_pandas()
    )
    assert together["top"].tolist() == single["top"].tolist()
    np.testing.assert_allclose(together["global"], single["global"], rtol=0, atol=1e-6)
