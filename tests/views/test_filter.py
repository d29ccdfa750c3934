"""A filter over two models' margins passes the cases of a plain loop over the Parquet files."""

import io
import math
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.conftest import case_key_of
from vlprobe import views
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import annotations, containers, shipped
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store

ONE, OTHER = "control:random", "guess"


@pytest.fixture(scope="module")
def key(compared: Store) -> str:
    return case_key_of(compared)


@pytest.fixture(scope="module")
def rows(compared: Store, key: str) -> pd.DataFrame:
    """Return both models' margins by case, joined without SQL."""
    runs = pd.DataFrame(views.runs.question_set(compared, key).runs).set_index("model")["key"]
    tables = [
        pd.read_parquet(compared.root / "runs" / str(runs[model]) / "scores.parquet").set_index(
            "case"
        )
        for model in (ONE, OTHER)
    ]
    return tables[0].assign(other=tables[1]["margin"]).sort_index().reset_index()


def passing(store: Store, key: str, chosen: views.filter.Filter) -> list[int]:
    table, total = views.cases.failures(views.runs.question_set(store, key), chosen, 1, 100_000)
    assert (
        len(table)
        == total
        == views.cases.outcomes(views.runs.question_set(store, key), chosen)[chosen.outcome]
    )
    return table["case"].tolist()


def is_inside(x: float, y: float, corners: tuple[tuple[float, float], ...]) -> bool:
    """Test by the winding number of the corners around the point, unlike the tested code."""
    turned = 0.0
    for (ax, ay), (bx, by) in zip(corners, (*corners[1:], corners[0]), strict=True):
        step = math.atan2(by - y, bx - x) - math.atan2(ay - y, ax - x)
        turned += (step + math.pi) % (2 * math.pi) - math.pi
    return abs(turned) > math.pi


@pytest.mark.parametrize("outcome", ["fooled", "held", "all"])
@pytest.mark.parametrize("other", ["", "fooled", "held"])
def test_two_models_outcomes_make_four_buckets(
    compared: Store, key: str, rows, outcome: str, other: str
):
    conditions = {
        "fooled": lambda margin: margin <= 0,
        "held": lambda margin: margin > 0,
        "": lambda margin: True,
    }
    conditions["all"] = conditions[""]
    flips = rows[rows["kind"] == "flip"]
    expected = {
        row.case
        for row in flips.itertuples()
        if conditions[outcome](row.margin) and conditions[other](row.other)
    }
    assert expected
    chosen = views.filter.Filter(ONE, outcome=outcome, other=OTHER, other_outcome=other)
    assert set(passing(compared, key, chosen)) == expected


@pytest.mark.parametrize("sort", ["difference", "worst"])
def test_the_largest_difference_comes_first(compared: Store, key: str, rows, sort: str):
    flips = rows[rows["kind"] == "flip"].astype({"margin": float, "other": float})
    rank = (flips["margin"] - flips["other"]).abs() if sort == "difference" else -flips["margin"]
    expected = (
        flips.assign(rank=rank)
        .sort_values(["rank", "case"], ascending=[False, True])["case"]
        .tolist()
    )
    cases = passing(compared, key, views.filter.Filter(ONE, outcome="all", other=OTHER, sort=sort))
    gaps = flips.set_index("case").loc[cases]
    if sort == "difference":  # in float32, nearly equal gaps may change places
        assert (gaps["margin"] - gaps["other"]).abs().diff().max() < 1e-7
        assert set(cases) == set(expected)
    else:
        assert cases == expected


SHAPES = {
    "box": ((-0.1, -0.05), (0.2, -0.05), (0.2, 0.3), (-0.1, 0.3)),
    "triangle": ((-0.2, -0.2), (0.4, 0.0), (-0.1, 0.3)),
    "arrow": ((0.0, -0.3), (0.3, 0.3), (0.0, 0.0), (-0.3, 0.3)),
    "closed": ((-0.2, -0.2), (0.4, 0.0), (-0.1, 0.3), (-0.2, -0.2)),
}


@pytest.mark.parametrize("corners", SHAPES.values(), ids=SHAPES)
def test_a_selected_area_passes_the_cases_inside_it(compared: Store, key: str, rows, corners):
    flips = rows[rows["kind"] == "flip"]
    expected = {row.case for row in flips.itertuples() if is_inside(row.margin, row.other, corners)}
    assert 0 < len(expected) < len(flips)
    chosen = views.filter.Filter(ONE, outcome="all", other=OTHER, within=corners)
    assert set(passing(compared, key, chosen)) == expected


def test_a_box_includes_its_edge(compared: Store, key: str, rows):
    first = rows[rows["kind"] == "flip"].iloc[0]
    x, y = float(first["margin"]), float(first["other"])
    chosen = views.filter.Filter(
        ONE, outcome="all", other=OTHER, within=((x, y), (x, y + 1), (x + 1, y + 1), (x + 1, y))
    )
    assert first["case"] in passing(compared, key, chosen)


def test_a_filter_combines_words_with_a_second_model(compared: Store, key: str):
    combined = views.filter.Filter(
        ONE, outcome="all", contains="a", other=OTHER, other_outcome="held"
    )
    kinds = passing(compared, key, combined)
    assert set(kinds) < set(
        passing(compared, key, views.filter.Filter(ONE, outcome="all", contains="a"))
    )
    assert kinds


@pytest.mark.parametrize(
    "given",
    [{"other_outcome": "held"}, {"sort": "difference"}, {"within": ((0, 0), (1, 1), (0, 1))}],
    ids=str,
)
def test_a_comparison_without_another_model_is_refused(compared: Store, key: str, given: dict):
    with pytest.raises(InvalidInput, match="second model"):
        views.cases.failures(
            views.runs.question_set(compared, key), views.filter.Filter(ONE, **given)
        )


def test_wrong_names_and_shapes_are_refused(compared: Store, key: str):
    wrong: list[dict[str, Any]] = [
        {"other": "demo:nobody"},
        {"other": OTHER, "other_outcome": "fooledd"},
    ]
    for given in wrong:
        with pytest.raises(NotFound, match=r"demo:nobody|fooledd"):
            views.cases.failures(
                views.runs.question_set(compared, key), views.filter.Filter(ONE, **given)
            )
    with pytest.raises(InvalidInput, match="2 corners"):
        views.cases.failures(
            views.runs.question_set(compared, key),
            views.filter.Filter(ONE, other=OTHER, within=((0, 0), (1, 1))),
        )


def test_a_filter_by_tag_passes_the_tagged_cases(compared: Store, key: str, tmp_path: Path, rows):
    store = Store(shutil.copytree(compared.root, tmp_path / "cache"))
    flips = rows[rows["kind"] == "flip"]["case"].tolist()
    annotations.write(store, key, Annotation(flips[3], "x", ("odd",), "look"))
    annotations.write(store, key, Annotation(flips[1], "y", ("odd", "even")))
    annotations.write(store, key, Annotation(flips[2], "z", ("even",)))
    annotations.write(store, key, Annotation(flips[4], "w", ("wrong label",)))
    for tag, expected in (
        ("odd", {flips[1], flips[3]}),
        ("even", {flips[1], flips[2]}),
        ("none", set()),
        (("odd", "even"), {*flips[1:4]}),
        (annotations.ANY, {*flips[1:5]}),
        (annotations.NOTE, {flips[3]}),
        ("label wrong", {flips[4]}),
    ):
        assert (
            set(passing(store, key, views.filter.Filter(ONE, outcome="all", tagged=tag)))
            == expected
        )


def test_a_tag_of_an_older_link_gets_its_current_name():
    old = {"tagged": ["label wrong", "odd"], "excluded": ["tagged=label wrong", "rule=odd"]}
    chosen = views.filter.Filter.parse(ONE, **old)
    assert chosen.values_of("tagged") == (("wrong label", "odd"), ("wrong label",))
    assert chosen.values_of("rule") == ((), ("odd",))


def test_sorting_by_likeness_needs_an_ordered_selection():
    region = views.filter.region_text("like a bus", np.array([5, 3]), is_ordered=True)
    assert views.filter.Filter.parse(ONE, sort="likeness", region=region).sort == "likeness"
    for sort, other in (("likeness", {}), ("likeness", {"region": region[:-1]}), ("x", {})):
        with pytest.raises(NotFound, match=f"No sort named '{sort}'.*Known: worst") as refused:
            views.filter.Filter.parse(ONE, sort=sort, **other)
        assert "likeness" not in str(refused.value).partition("Known")[2]


@pytest.mark.parametrize("similarities", [[0.5, 0.25], [0.5, math.nan, 0.25]])
def test_a_selection_with_a_missing_or_unknown_similarity_is_not_valid(similarities):
    text = views.filter.region_text("like a bus", np.array([5, 3]), True, similarities)
    with pytest.raises(InvalidInput, match="not valid"):
        views.filter.Filter(ONE, region=text)


@pytest.mark.parametrize("name", views.filter.STRENGTHS)
def test_flips_of_a_strength_are_those_in_the_bin_of_the_model_s_answers(
    compared: Store, key: str, rows, name: str
):
    chosen = views.filter.Filter.parse(ONE, outcome="all", bin=f"strength_bin={name}")
    expected = {row.case for row in rows.itertuples() if row.strength_bin == name}
    assert expected and set(passing(compared, key, chosen)) == expected


def test_triplets_of_a_lure_match_a_loop_over_their_words(tmp_path: Path):
    store, model = StoreAboveShipped(tmp_path, shipped.FOLDER), "demo:weak"
    sets = views.runs.question_sets(store)
    key = str(sets.loc[sets["probe"] == "visla", "case_key"].iloc[0])
    texts = pd.read_parquet(store.files([key], "cases")[0])
    texts = texts[texts["kind"] == "t2t"]

    def shared(one: str, other: str) -> float:
        first, second = (set(re.findall(r"\w+", text.lower())) for text in (one, other))
        return len(first & second) / len(first | second)

    bins: dict[int, str] = {}
    for name in views.filter.lure_bins():
        chosen = views.filter.Filter.parse(model, "t2t", outcome="all", bin=f"lure={name}")
        bins |= dict.fromkeys(passing(store, key, chosen), name)
    assert set(bins) == set(texts["case"]) and len(set(bins.values())) > 1
    for case, (p1, p2, n) in zip(texts["case"], texts["texts"], strict=True):
        lure = max(shared(p1, n), shared(p2, n)) - shared(p1, p2)
        low, high = map(float, bins[case].split(" to "))
        assert low - 1e-6 <= lure <= high + 1e-6


def test_the_filter_for_local_pictures_passes_cases_whose_files_exist(
    compared: Store, key: str, rows, monkeypatch: pytest.MonkeyPatch
):
    table = pd.read_parquet(compared.root / "cases" / key / "cases.parquet").set_index("case")
    gone = table["images"].iloc[0][0]
    is_file = containers.is_file
    monkeypatch.setattr(containers, "is_file", lambda path: str(path) != gone and is_file(path))
    chosen = views.filter.Filter.parse(ONE, outcome="all", pictured="here")
    expected = {
        row.case
        for row in rows.itertuples()
        if row.kind == "flip" and table["images"][row.case][0] != gone
    }
    cases = set(passing(compared, key, chosen))
    assert 0 < len(expected) < (rows["kind"] == "flip").sum() and cases == expected


@pytest.mark.parametrize("name", ["strength_bin", "margin=1", "strength_bin=huge", "lure=0 to 1"])
def test_a_bin_that_does_not_exist_is_refused(compared: Store, key: str, name: str):
    with pytest.raises((InvalidInput, NotFound)):
        passing(compared, key, views.filter.Filter.parse(ONE, bin=name))


def test_a_bin_of_another_probe_passes_no_case(compared: Store, key: str):
    assert passing(compared, key, views.filter.Filter.parse(ONE, bin="lure=0.00 to 0.25")) == []


def test_a_picture_inside_a_tar_counts_as_local(tmp_path: Path):
    with tarfile.open(tmp_path / "pictures.tar", "w") as packed:
        member = tarfile.TarInfo("a.png")
        member.size = 3
        packed.addfile(member, io.BytesIO(b"png"))
    (tmp_path / "b.png").write_bytes(b"png")
    inside, gone = tmp_path / "pictures.tar" / "a.png", tmp_path / "pictures.tar" / "c.png"
    assert views.rows.are_here([str(inside), str(tmp_path / "b.png")])
    assert not views.rows.are_here([str(inside), str(gone)])
    assert not views.rows.are_here([])


def test_a_filter_can_be_parsed_from_its_words():
    words = {
        **{"kind": "t2t", "subtype": "color", "tag": "background=a=b", "bin": "lure=0.00 to 0.25"},
        **{"caption": "caption_length=8 to 10 words", "pictured": "here", "crossed": "i2t=held"},
    }
    chosen = views.filter.Filter.parse(ONE, **words)
    assert chosen.tag == (("background", "a=b"),) and chosen.pictured and not chosen.lost_to
    assert views.filter.Filter.parse(**chosen.words()) == chosen
    assert {name: chosen.words()[name] for name in words} == words


def test_every_condition_of_a_filter_is_one_term_of_the_clause():
    chosen = views.filter.Filter.parse(
        ONE, subtype="x", rule="y", contains="z", tagged="t", bin="strength_bin=weak", tag="a=b"
    )
    where = chosen.where([3, 1], ["strength_bin"])
    assert where.condition.count("?") == len(where.values) == 8 and where.needs_scores
    assert not views.filter.Filter(ONE, contains="scores").where((), ()).needs_scores


def test_commas_between_searched_words_do_not_matter_but_in_a_phrase_they_do():
    plain, listed, phrase = (
        views.filter.Filter(ONE, contains=text).where((), ()).values
        for text in ("bench snow", "bench, snow;", '"bench, snow"')
    )
    assert plain == listed != phrase


def test_without_searches_no_search_is_lost_to_a_mixture(compared: Store, key: str):
    question_set = views.runs.question_set(compared, key)
    lost = views.filter.Filter(ONE, outcome="all", lost_to=True)
    assert views.cases.failures(question_set, lost)[1] == 0
