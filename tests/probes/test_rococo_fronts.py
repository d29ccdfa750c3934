"""The first candidates in both galleries, stored with the scores, compared with a plain loop over all candidates."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import image_vector, text_vector
from vlprobe import registry
from vlprobe.perturb import mix
from vlprobe.probes import rococo_galleries
from vlprobe.runs import answers
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring.retrieval import FIRST
from vlprobe.storage.entry import Entry
from vlprobe.storage.store import Store
from vlprobe.types import Picture

RULE = "mix:0.8:seed1"
OPTIONS = {"policies": ["same-concept"], "pictures": ["mix:0.8"], "picture_seeds": [1]}


def tables(store: Store, dataset: str, model: str) -> pd.DataFrame:
    """Return the cases of a run with the scores and the first candidates."""
    manifest = execute(Request((model,), dataset, "rococo", OPTIONS, examine=False), store)[0]
    cases = store.cases(manifest["case_key"]).table("cases").to_pandas()
    entry = store.run(manifest["key"])
    scores, fronts = (
        entry.table("scores").to_pandas(),
        entry.table(rococo_galleries.TABLE).to_pandas(),
    )
    assert set(fronts.pop("run")) == {manifest["key"]}
    assert fronts["case"].tolist() == cases["case"].tolist()
    joined = cases.merge(scores, on=["case", "kind", "subtype", "rule", "item"])
    return joined.merge(fronts, on="case")


def plain_front(candidates: list[tuple], right_item: str) -> list[tuple]:
    """Sort candidates (score, item, altered, number ...) by descending score, with right ones after tied ones."""
    return sorted(
        candidates, key=lambda one: (-one[0], one[1] == right_item and not one[2], one[2], one[3])
    )[:FIRST]


@pytest.mark.parametrize("name", ["control:random", "control:constant"])
def test_the_first_pictures_equal_those_of_a_plain_loop(tiny: str, store: Store, name: str):
    rows = tables(store, tiny, name)
    items = {item.id: item for item in registry.load_dataset(tiny, store.root).items}
    paths = {item_id: item.image.path for item_id, item in items.items()}
    model = registry.load_model(name)
    edits = mix.picture_edits(paths, "mix", 0.8, 1)
    partners = mix.partners(list(paths), 1)
    gallery = [
        (image_vector(model, Picture(path, edit).name), item, edit is not None, n)
        for edit_of in ({}, edits)
        for n, (item, path) in enumerate(paths.items())
        for edit in [edit_of.get(item)]
    ]
    assert len(rows[rows["kind"] == "t2i"]) == 12
    for row in rows[rows["kind"] == "t2i"].itertuples():
        query = text_vector(model, row.texts[0])
        scored = [(float(np.float32(vector @ query)), *rest) for vector, *rest in gallery]
        clean = plain_front([one for one in scored if not one[2]], row.item)
        whole = plain_front(scored, row.item)
        assert list(row.clean_items) == [item for _, item, _, _ in clean]
        assert list(row.whole_items) == [item for _, item, _, _ in whole]
        assert list(row.whole_altered) == [altered for _, _, altered, _ in whole]
        assert list(row.whole_partners) == [
            partners[item] if altered else "" for _, item, altered, _ in whole
        ]
        np.testing.assert_allclose(row.whole_scores, [score for score, *_ in whole], atol=1e-6)
        assert row.partner == partners[row.item]
        altered_score = next(
            score for score, item, altered, _ in scored if altered and item == row.item
        )
        assert row.own_altered == pytest.approx(altered_score, abs=1e-6)
        assert row.own_altered_rank == 1 + sum(score > altered_score + 1e-7 for score, *_ in scored)
        assert list(row.clean_texts) == list(row.whole_texts) == []


def test_the_right_picture_is_in_the_list_at_its_rank(tiny: str, store: Store):
    for name in ("control:random", "control:constant"):
        rows = tables(store, tiny, name)
        for row in rows[rows["kind"] == "t2i"].itertuples():
            for items, altered, rank in (
                (row.clean_items, [False] * FIRST, row.rank_clean),
                (row.whole_items, row.whole_altered, row.rank),
            ):
                places = [
                    place
                    for place, (item, is_altered) in enumerate(zip(items, altered, strict=False), 1)
                    if item == row.item and not is_altered
                ]
                assert places == ([rank] if rank <= FIRST else [])


def test_the_first_captions_equal_those_of_a_plain_loop(tiny: str, store: Store):
    rows = tables(store, tiny, "control:random")
    rows = rows[rows["kind"] == "i2t"]
    model = registry.load_model("control:random")
    texts = [
        (text, item, role == "different", number)
        for number, (text, item, role) in enumerate(
            (text, row.item, role)
            for row in rows.itertuples()
            for text, role in zip(row.texts, row.roles, strict=True)
        )
    ]
    vectors = model.encode_texts(model.tokenize([text for text, *_ in texts]))
    for row in rows.itertuples():
        scores = vectors @ image_vector(model, row.images[0])
        scored = [
            (float(score), item, altered, number, text)
            for score, (text, item, altered, number) in zip(scores, texts, strict=True)
        ]
        whole = sorted(scored, key=lambda one: -one[0])[:FIRST]
        clean = sorted((one for one in scored if not one[2]), key=lambda one: -one[0])[:FIRST]
        assert list(row.whole_texts) == [text for *_, text in whole]
        assert list(row.whole_altered) == [altered for _, _, altered, _, _ in whole]
        assert list(row.clean_texts) == [text for *_, text in clean]
        assert list(row.clean_items) == [item for _, item, *_ in clean]
        altered_scores = [
            score for score, item, altered, *_ in scored if altered and item == row.item
        ]
        assert row.own_altered == pytest.approx(max(altered_scores), abs=1e-6)
        assert row.partner == "" and list(row.whole_partners) == []


def test_the_columns_of_the_score_table_are_unchanged(tiny: str, store: Store):
    manifest = execute(Request(("control:random",), tiny, "rococo", OPTIONS), store)[0]
    names = [line["name"] for line in manifest["files"]]
    assert names == ["scores.parquet", "fronts.parquet", "estimates.parquet", "sums.parquet"]
    assert store.run(manifest["key"]).table("scores").column_names == [
        *("run", "case", "item", "kind", "subtype", "rule", "strength_bin"),
        *("scores", "text_scores", "margin", "rank_clean", "rank", "top_altered"),
        *("least_rank_clean", "least_rank", "top_tied", "top"),
    ]


class Stopped(Exception):
    """Raised in place of a crash."""


def test_a_run_started_by_an_earlier_version_lacks_fronts_for_its_old_parts(
    tiny: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(answers, "PART_CASES", 6)
    whole = tables(store, tiny, "control:random")
    stopped = Store(tmp_path / "stopped")
    write = Entry.write_part

    def write_as_before(self: Entry, name: str, table):
        if name.startswith("000000006"):
            raise Stopped
        write(self, name, table.drop_columns(rococo_galleries.SCHEMA.names))

    request = Request(("control:random",), tiny, "rococo", OPTIONS, examine=False)
    with monkeypatch.context() as patch:
        patch.setattr(Entry, "write_part", write_as_before)
        with pytest.raises(Stopped):
            execute(request, stopped)
    rows = tables(stopped, tiny, "control:random")
    unknown = rows["clean_items"].isna()
    assert unknown.tolist() == [case < 6 for case in rows["case"]] and not unknown.all()
    assert (unknown == rows["own_altered"].isna()).all()
    assert rows["margin"].tolist() == whole["margin"].tolist()
    for name in ("clean_items", "whole_items", "whole_altered"):
        stored = [list(value) for value in rows[name][~unknown]]
        assert stored == [list(value) for value in whole[name][~unknown]]
