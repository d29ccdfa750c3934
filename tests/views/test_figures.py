"""The data of the papers' figures match plain loops over the Parquet files."""

import math
import re

import numpy as np
import pandas as pd
import pytest

from tests.conftest import case_key_of, make_tiny, question_set_of
from vlprobe import registry, views
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

RANDOM = "control:random"


def rows_of(store: Store, key: str, model: str = RANDOM) -> pd.DataFrame:
    run = views.runs.question_set(store, key).run(model).key
    questions = pd.read_parquet(store.root / "cases" / key / "cases.parquet")
    answers = pd.read_parquet(store.root / "runs" / run / "scores.parquet")
    return questions.merge(answers.drop(columns=["kind", "subtype", "rule", "item"]), on="case")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return three question sets of RoCOCO: two that differ only in the alterations, and one with another limit."""
    folder = tmp_path_factory.mktemp("figures")
    store = Store(folder / "cache")
    data = make_tiny(folder / "tiny")
    for pictures, limit in ((["mix:0.9"], 0), (["mix:0.6", "mix:0.9"], 0), (["mix:0.7"], 4)):
        options = {"policies": [], "pictures": pictures, "picture_seeds": [1]}
        execute(Request((RANDOM,), data, "rococo", options, limit=limit, examine=False), store)
    return store


def test_a_severity_curve_has_exactly_the_strengths_measured_on_the_same_pictures(
    searched: Store,
):
    sets = views.runs.question_sets(searched)
    _, first, whole = sets.sort_values(["n_items", "n_cases"])["case_key"]
    assert views.estimates.slices(views.runs.question_set(searched, first)) and len(sets) == 3
    shown = views.figures.severity(views.runs.question_set(searched, first), "t2i_rsms").set_index(
        "slice"
    )
    assert set(shown.index) == {"mix:0.9", "mix:0.6"}
    for name in shown.index:
        rows = rows_of(searched, whole).query("subtype == @name")
        assert shown.loc[name, "value"] == pytest.approx(
            rows.groupby("group")["top_altered"].mean().mean()
        )
        assert shown.loc[name, "n_cases"] == len(rows)


def test_the_stored_request_fields_reproduce_the_question_set(searched: Store):
    for row in views.runs.question_sets(searched).itertuples():
        how = views.figures.request_fields(views.runs.question_set(searched, row.case_key))
        assert set(how["options"]) == set(registry.load_probe("rococo").defaults) - {
            "caption_seeds",
            "edits",
            "vocabulary",
        }  # unused options are not listed
        request = Request(
            (RANDOM,),
            how["dataset"],
            "rococo",
            how["options"],
            how["seed"],
            how["limit"],
            examine=False,
        )
        assert execute(request, searched)[0]["case_key"] == row.case_key


@pytest.mark.parametrize(
    ("edit", "metric", "model", "values"),
    [
        (
            "mix",
            "t2i_rsms",
            "CLIP ViT-B/32 (zero-shot)",
            {"mix_0.9": "mix:0.9", "mix_0.6": "mix:0.6"},
        ),
        (
            "rand-voca",
            "i2t_drop_rate",
            "SAF",
            {"rand_voca": "rand-voca", "substitution_5": "rand-voca:5"},
        ),
        ("danger", "i2t_r1_new", "SGR", {"danger": "danger"}),
    ],
)
def test_published_curves_are_the_paper_s_cells(edit, metric, model, values):
    shown = views.figures.published_severity(edit, metric).set_index(["model", "slice"])["value"]
    table = views.published.load().query(
        "paper == 'rococo' and metric == @metric and model == @model"
    )
    for split, name in values.items():
        cell = table.loc[table["split"] == split, "value"].iloc[0]
        assert shown[(model, name)] == pytest.approx(
            cell / (-100 if metric.endswith("drop_rate") else 100)
        )
    assert set(shown.index.get_level_values("slice")) <= set(views.figures.severity_steps(edit))


def test_severity_steps_count_words_from_one():
    assert list(views.figures.severity_steps("danger")) == [
        "danger",
        *(f"danger:{k}" for k in (2, 3, 4, 5)),
    ]


def distance(one: str, other: str) -> int:
    before = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        now = [row]
        for column, against in enumerate(other, 1):
            now.append(
                min(before[column] + 1, now[-1] + 1, before[column - 1] + (letter != against))
            )
        before = now
    return before[-1]


def test_edit_distances_match_those_of_a_loop(every_probe: Store):
    key = case_key_of(every_probe, "visla")
    rows = rows_of(every_probe, key).query("kind == 't2t'")
    shown = views.figures.edit_distances(views.runs.question_set(every_probe, key), bins=4)
    assert list(shown["model"].unique()) == list(views.figures.PAIRS)
    for name, (one, two) in zip(views.figures.PAIRS, ((0, 1), (0, 2), (1, 2)), strict=True):
        of_pair = shown[shown["model"] == name]
        values = [distance(texts[one], texts[two]) for texts in rows["texts"]]
        last = of_pair["right"].max()
        for cell in of_pair.itertuples():
            inside = [
                v
                for v in values
                if cell.left <= min(v, last) < cell.right or (cell.right == last <= v)
            ]
            assert cell.share == pytest.approx(len(inside) / len(values))
    assert views.figures.edit_distances(views.runs.question_set(every_probe, key), "nowhere").empty


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def shared(one: str, other: str) -> float:
    return len(words(one) & words(other)) / len(words(one) | words(other))


def test_accuracy_by_lure_is_that_of_the_triplets_in_the_bin(every_probe: Store):
    key = case_key_of(every_probe, "visla")
    shown = (
        views.figures.lures(views.runs.question_set(every_probe, key))
        .query("model == @RANDOM")
        .set_index("slice")
    )
    bins: dict[str, list[bool]] = {}
    for row in rows_of(every_probe, key).query("kind == 't2t'").itertuples():
        near, far, wrong = row.texts
        lure = max(shared(near, wrong), shared(far, wrong)) - shared(near, far)
        low = min(math.floor(round(lure, 6) * 4) / 4, 0.75)
        both, with_near, with_far = row.text_scores
        bins.setdefault(f"{low:.2f} to {low + 0.25:.2f}", []).append(
            both > with_near and both > with_far
        )
    assert set(shown.index) == set(bins) and set(bins) <= set(views.filter.lure_bins())
    for name, won in bins.items():
        assert shown.loc[name, "value"] == pytest.approx(np.mean(won)) and shown.loc[
            name, "n_cases"
        ] == len(won)


def test_captions_are_the_distinct_first_texts_page_by_page(every_probe: Store):
    key = case_key_of(every_probe, "rococo")
    cases = pd.read_parquet(every_probe.root / "cases" / key / "cases.parquet")
    expected = list(dict.fromkeys(texts[0] for texts in cases["texts"]))
    pages = [
        views.figures.captions(views.runs.question_set(every_probe, key), page, 4)
        for page in range(1, len(expected) // 4 + 2)
    ]
    assert [text for page, _ in pages for text in page] == expected
    assert {total for _, total in pages} == {len(expected)}


def test_depths_are_the_estimates_by_setting():
    shown = views.figures.published_depths("P2").set_index(["model", "slice"])["value"]
    table = (
        views.published.load()
        .query("paper == 'prsm' and split == 'male/p2/p1-p2-p3-np'")
        .set_index("metric")["value"]
    )
    assert (
        shown[("CLIP, men", "100")] == table["local_100"]
        and shown[("CLIP, men", "1000")] == table["local_1000"]
    )
    assert len(shown) == 6 and views.figures.published_depths("a file's own").empty


def test_an_overlap_of_more_pictures_than_the_gallery_has_no_row(every_probe: Store):
    # 14 pictures are too few for each query's gallery
    assert views.figures.depths(question_set_of(every_probe, "prsm")).empty


def test_deviations_of_one_subset_are_those_of_its_pairs(every_probe: Store):
    key = case_key_of(every_probe, "eqben")
    rows = rows_of(every_probe, key).query("kind == 'pair'")
    name = rows["subtype"].iloc[0]
    values = [
        abs((a - b) - (d - c)) + abs((a - c) - (d - b))
        for a, b, c, d in rows.query("subtype == @name")["scores"]
    ]
    shown = views.papers.deviations(
        views.runs.question_set(every_probe, key), subset=name, bins=5
    ).query("model == @RANDOM")
    first = shown.iloc[0]
    low = [value for value in values if value < first["right"]]
    assert first["share"] == pytest.approx(len(low) / len(values))
