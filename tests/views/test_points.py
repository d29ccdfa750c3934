"""Maps of pictures and captions: the cases of a point, its place, and links to selected cases."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from vlprobe import views
from vlprobe.errors import InvalidInput
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.views.filter import Filter, region_cases, region_label, region_text
from vlprobe.views.points import hexagons, points, project
from vlprobe.views.runs import QuestionSet

MODEL = "demo:softmax"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return shipped.StoreAboveShipped(tmp_path_factory.mktemp("own"), shipped.FOLDER)


@pytest.fixture(scope="module")
def question_set(store: Store) -> QuestionSet:
    sets = views.runs.question_sets(store)
    return views.runs.question_set(store, sets.loc[sets["probe"] == "lgip", "case_key"].iloc[0])


@pytest.mark.parametrize("side", ["picture", "caption"])
def test_shares_of_points_are_those_of_their_cases(store: Store, question_set, side):
    found = points(question_set, Filter(MODEL, "flip", subtype=("number",)), side)
    table = views.rows.questions(question_set, found.cases.tolist())
    assert set(table["kind"]) == {"flip"} and set(table["subtype"]) == {"number"}
    of_models = views.rows.margins(question_set, question_set.rated_models, found.cases)
    is_fooled = pd.DataFrame(of_models.T <= 0, columns=list(question_set.rated_models))
    names = table["images"].str[0] if side == "picture" else table["texts"].str[0]
    expected = is_fooled.groupby(names.to_numpy())
    shares, n_models = (
        expected[MODEL].mean(),
        is_fooled.sum(axis=1).groupby(names.to_numpy()).mean(),
    )
    split = is_fooled.nunique(axis=1).eq(2).groupby(names.to_numpy()).mean()
    for values, series in ((found.share, shares), (found.n_models, n_models), (found.split, split)):
        assert dict(zip(found.names, values, strict=True)) == pytest.approx(series.to_dict())
    assert [found.names[point] for point in found.point_of] == names.tolist()


def test_the_map_is_the_first_two_principal_components():
    vectors = np.random.default_rng(0).normal(size=(50, 8)) * np.arange(1, 9)
    left, scale, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    assert np.abs(project(vectors)) == pytest.approx(np.abs(left[:, :2] * scale[:2]))
    assert project(vectors[::-1])[::-1] == pytest.approx(project(vectors))  # signs do not flip


def test_every_place_is_in_the_nearest_hexagon():
    places = np.random.default_rng(1).uniform(size=(300, 2)) * (4, 9)
    centers, hexagon_of = hexagons(places, 10)
    scale = np.ptp(places, axis=0)
    distances = (((places[:, None] - centers) / scale) ** 2).sum(axis=2)
    nearest = distances[np.arange(len(places)), hexagon_of]
    assert nearest == pytest.approx(distances.min(axis=1))
    assert sorted(set(hexagon_of)) == list(range(len(centers))) and len(centers) < 150


def test_selected_cases_survive_a_link_and_narrow_a_filter(store: Store, question_set):
    every = Filter(MODEL, "flip", outcome="all")
    numbers = views.cases.passing(question_set, every)[0]
    text = region_text("two ~ pictures", numbers[3:9:2])
    chosen = Filter.parse(MODEL, "flip", outcome="all", region=text)
    assert views.cases.passing(question_set, chosen)[0].tolist() == numbers[3:9:2].tolist()
    assert region_label(chosen.words()["region"]) == "two ~ pictures"
    assert region_cases(region_text("none", numbers[:0])).tolist() == []


def test_above_the_limit_of_pictures_a_map_has_a_sample_that_filters_do_not_change(
    tmp_path, question_set, monkeypatch
):
    monkeypatch.setattr(views.rows, "MOST_FILES", 30)
    store = shipped.StoreAboveShipped(tmp_path, shipped.FOLDER)
    question_set = replace(question_set, store=store)
    every = points(question_set, Filter(MODEL, "flip", outcome="all"), "picture")
    assert len(every.names) == 30 and len(every.cases) == len(every.point_of) >= 30
    some = points(question_set, Filter(MODEL, "flip", subtype=("number",)), "picture")
    assert 0 < len(some.names) <= 30 and set(some.names) <= set(every.names)
    assert views.rows.with_pictures(question_set, "flip") == (0, 0)


def test_cases_are_sorted_by_the_likeness_of_pictures_then_by_margin(store: Store, question_set):
    every = Filter(MODEL, "flip", outcome="all")
    found = points(question_set, every, "picture")
    alike = [40, 7, 300, 2]  # the nearest pictures, the most alike first
    numbers = np.concatenate([found.cases[found.point_of == each] for each in alike])
    region = region_text("like a bus", numbers, is_ordered=True)
    chosen = Filter(MODEL, "flip", outcome="all", sort="likeness", region=region)
    table, total = views.cases.failures(question_set, chosen, 1, 1000)
    assert total == len(numbers) and set(table["case"]) == set(numbers)
    pictures = table["images"].str[0]
    assert pictures.drop_duplicates().tolist() == [found.names[each] for each in alike]
    assert all(of_one["margin"].is_monotonic_increasing for _, of_one in table.groupby(pictures))
    cards, n_pictures, _ = views.wall.wall(question_set, chosen)
    assert [card.images[0] for card in cards] == [found.names[each] for each in alike]
    assert n_pictures == len(alike) == len(cards)
    by_case = Filter(MODEL, "flip", outcome="all", sort="likeness")  # sorted by case
    assert views.cases.failures(question_set, by_case)[0]["case"].is_monotonic_increasing


@pytest.mark.parametrize(
    "text",
    ["x", "x~eJ", "x~!!", "x~" + "A" * 40, "y" * 70 + "~eNpjYAAAAAIAAQ", "x~eNpjZGIGAAANAAc=."],
)
def test_a_damaged_link_to_selected_cases_is_refused_in_one_line(text):
    with pytest.raises(InvalidInput, match="Select the cases again"):
        Filter(MODEL, region=text)
