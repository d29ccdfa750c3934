"""Counts and filters of facets match a plain join of the Parquet files in DuckDB."""

import re
from collections import Counter
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest

from tests.conftest import tiers
from vlprobe import views
from vlprobe.errors import VlprobeError
from vlprobe.storage import shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store
from vlprobe.views import caption_bins
from vlprobe.views.facets import LEAST_ASKED
from vlprobe.views.filter import Filter, region_text

CLIP, TUNED = "published:CLIP ViT-B/32", "published:CLIP_TROHN-Text"
SETS = {
    "bundled:SugarCrepe": (CLIP, "foil"),
    "bundled:VALSE": (None, "foil"),
    "demo": (None, "flip"),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return StoreAboveShipped(
        tmp_path_factory.mktemp("facets"), shipped.PUBLISHED_FOLDER, shipped.FOLDER
    )


def open_set(store: Store, dataset: str):
    rows = [row for row in views.runs.question_set_rows(store) if row.dataset == dataset]
    row = next(row for row in rows if row.probe in ("eqben", "lgip"))
    question_set = views.runs.question_set(store, row.case_key)
    model, kind = SETS[dataset]
    return question_set, Filter(model or question_set.rated_models[0], kind)


def join_answers(store: Store, question_set, case_filter: Filter) -> pd.DataFrame:
    """Return every case of the kind with the margin of each model, by a separate DuckDB query over the files."""
    cases = store.files([question_set.key], "cases")[0]
    table = duckdb.execute(f"SELECT * FROM '{cases}' WHERE kind = '{case_filter.kind}'").df()
    for run in question_set.runs:
        file = store.files([run.key], "scores")[0]
        margins = duckdb.execute(f'SELECT "case", margin AS "{run.model}" FROM \'{file}\'').df()
        table = table.merge(margins, on="case")
    return table


def numbers_of(store: Store, question_set, chosen: Filter) -> list[int]:
    return views.cases.passing(question_set, chosen)[0].tolist()


def values_of(table: pd.DataFrame, name: str) -> pd.Series:
    if name.startswith("tag:"):
        tag = name.removeprefix("tag:")
        return pd.Series([dict(tags).get(tag, "") for tags in table["tags"]])
    if name == "pair":
        pairs = zip(table["source"], table["target"], strict=True)
        return pd.Series([f"{source}>{target}".lower() for source, target in pairs])
    return pd.Series(table[name].tolist())


@pytest.mark.parametrize("dataset", tiers(SETS, ("bundled:SugarCrepe", "demo")))
def test_rows_of_facets_match_a_join_in_counts_and_filtered_cases(store, dataset):
    question_set, case_filter = open_set(store, dataset)
    table = join_answers(store, question_set, case_filter)
    margins = table[case_filter.model]
    names = []
    for facet in views.facets.facets(question_set, case_filter):
        names.append(facet.name)
        for row in facet.rows[:6]:
            chosen = case_filter.with_values(facet.name, [row.value])
            numbers = numbers_of(store, question_set, chosen)
            assert len(numbers) == row.n_fooled
            if facet.name in ("changed_words", "caption_length", "word_frequency"):
                continue
            if facet.name == "pair" and not any(table["source"]):
                assert row.n_asked >= LEAST_ASKED
                continue
            if facet.name == "unseen_by":  # test_causes.py has a second computation
                causes = views.causes.causes(question_set, case_filter.model, case_filter.kind)
                is_row = causes["cause"].reindex(table["case"]).reset_index(drop=True) == row.value
            else:
                is_row = values_of(table, facet.name) == row.value
            assert row.n_asked == (is_row & margins.notna()).sum()
            assert set(numbers) == set(table["case"][is_row & (margins <= 0)])
    assert "subtype" in names and "caption_length" in names


def test_the_words_of_a_type_of_edit_are_listed_even_if_few_are_frequent(store):
    question_set, case_filter = open_set(store, "bundled:SugarCrepe")
    chosen = replace(case_filter, subtype=("replace_att",))
    facets = {one.name: one for one in views.facets.facets(question_set, chosen)}
    n_asked = {row.value: row.n_asked for row in facets["pair"].rows}
    assert n_asked["white>black"] == 20 and n_asked["red>blue"] == 8
    order = [(row.n_asked < 3, -row.share, -row.n_asked) for row in facets["pair"].rows]
    assert order == sorted(order)  # by rate, as in all facets
    assert min(n_asked.values()) == 0  # frequent in other types of edit
    colors = {row.value: row.n_asked for row in facets["changed_words"].rows}
    assert 150 < colors["A color changed"] < 250


def test_hidden_suspect_labels_are_those_of_the_list_and_still_count_in_every_rate(store):
    question_set, case_filter = open_set(store, "bundled:SugarCrepe")
    every, shown = (
        set(numbers_of(store, question_set, replace(case_filter, suspects=hides)))
        for hides in (False, True)
    )
    listed = views.suspects.suspects(question_set, "foil").suspects
    assert shown == every - {suspect.case for suspect in listed} != every
    every_case = replace(case_filter, outcome="all")
    (types,), *others = [
        [facet for facet in views.facets.facets(question_set, each) if facet.name == "subtype"]
        for each in (
            case_filter,
            replace(case_filter, suspects=True),
            replace(every_case, suspects=True),
        )
    ]
    assert others == [[types], [types]]
    n_asked = sum(row.n_asked for row in types.rows)
    assert n_asked == views.cases.outcomes(question_set, every_case)["all"]


def test_changed_colors_and_numbers_are_found_if_words_are_replaced_added_or_swapped(store):
    question_set, _ = open_set(store, "bundled:SugarCrepe")
    cases = question_set.cases
    texts = pd.read_parquet(cases.path).sort_values("case")["texts"]
    names = ["A color changed", "A number changed", "Other words changed"]
    bins = [names[code] for code in caption_bins.bin_codes(cases, "changed_words")]
    for true, wrong, expected in (
        ("A bathroom with no toilets and a red", "and a blue and", "A color changed"),
        ("a person wearing a suit", "a smiling person", "Other words changed"),
    ):
        matches = [
            each
            for pair, each in zip(texts, bins, strict=True)
            if true in pair[0] and wrong in pair[1]
        ]
        assert matches and set(matches) == {expected}
    for pair, each in list(zip(texts, bins, strict=True))[::50]:
        words = [re.findall(r"\w+", text.lower()) for text in pair]
        swapped = [
            a for a, b in zip(*words, strict=False) if a != b and len(words[0]) == len(words[1])
        ]
        if {*swapped, *set(words[0]) ^ set(words[1])} & {"red", "green", "blue", "white", "black"}:
            assert each == "A color changed"


def test_an_exchanged_number_in_digits_is_a_changed_number(store):
    question_set, _ = open_set(store, "bundled:VALSE")
    cases = question_set.cases
    texts = pd.read_parquet(cases.path).sort_values("case")["texts"]
    bins = caption_bins.bin_codes(cases, "changed_words")
    digits = [
        tuple(re.findall(r"\b\d+\b", text) for text in pair) if len(pair) == 2 else ((), ())
        for pair in texts
    ]
    is_number = np.array([len(one) == len(other) and one != other for one, other in digits])
    assert np.count_nonzero(is_number) > 100
    changed = {caption_bins.VALUES["changed_words"][code] for code in bins[is_number]}
    assert changed == {"A number changed"}


def test_facets_count_a_selection_of_cases_that_all_fool_the_model(store):
    question_set, case_filter = open_set(store, "demo")
    table = join_answers(store, question_set, case_filter)
    numbers = np.sort(table["case"][table[case_filter.model] <= 0])[:40]
    selected = replace(case_filter, region=region_text("mine", numbers))
    facets = {one.name: one for one in views.facets.facets(question_set, selected)}
    of_numbers = table[table["case"].isin(numbers)]["subtype"].value_counts().to_dict()
    assert {row.value: row.n_asked for row in facets["subtype"].rows if row.n_asked} == of_numbers
    assert all(row.n_fooled == row.n_asked for row in facets["subtype"].rows)


def test_lengths_are_counted_in_words_of_the_true_caption(store):
    question_set, case_filter = open_set(store, "demo")
    table = join_answers(store, question_set, case_filter)
    n_words = table["texts"].map(lambda texts: len(texts[0].split()))
    facets = {one.name: one for one in views.facets.facets(question_set, case_filter)}
    counts = {row.value: row.n_asked for row in facets["caption_length"].rows}
    assert counts["11 to 14 words"] == n_words.between(11, 14).sum()
    assert sum(counts.values()) == len(table)


def test_filters_by_fooled_models_narrow_the_cases_but_not_the_denominator(store):
    question_set, case_filter = open_set(store, "bundled:SugarCrepe")
    table = join_answers(store, question_set, case_filter)
    is_passing = (table[CLIP] <= 0) & (table[TUNED] > 0)
    beside = replace(case_filter, held=(TUNED,))
    assert views.cases.outcomes(question_set, beside)["fooled"] == is_passing.sum() == 1446
    (facet,) = (one for one in views.facets.facets(question_set, beside) if one.name == "subtype")
    for row in facet.rows:
        is_row = table["subtype"] == row.value
        assert (row.n_fooled, row.n_asked) == ((is_row & is_passing).sum(), is_row.sum())
    swapped = Filter(TUNED, "foil", outcome="held", fooled=(CLIP,))
    assert views.cases.outcomes(question_set, swapped)["held"] == is_passing.sum()


def test_a_further_required_model_raises_no_share_and_cases_in_one_order_still_count_half(store):
    question_set, _ = open_set(store, "bundled:SugarCrepe")
    (twice,) = [run.model for run in question_set.runs if run.n_orders == 2]
    alone = Filter(twice, "foil")
    table = join_answers(store, question_set, alone)
    weights = (table[twice] <= 0) / np.where(table[twice] == 0, 2, 1)
    for required in (
        {"held": (TUNED,)},
        {"fooled": (CLIP,)},
        {"outcome": "all", "fooled": (CLIP,)},
    ):
        chosen = replace(alone, **required)
        is_passing = table[TUNED] > 0 if "held" in required else table[CLIP] <= 0
        expected = is_passing * (1 if "outcome" in required else weights)
        (every,), (few,) = (
            [one for one in views.facets.facets(question_set, each) if one.name == "subtype"]
            for each in (alone, chosen)
        )
        shares = {row.value: row.share for row in few.rows}
        assert shares == pytest.approx(expected.groupby(table["subtype"]).mean().to_dict())
        weight, n_asked = views.facets.weigh(question_set, chosen)
        assert weight == pytest.approx(expected.sum()) and n_asked == len(expected)
        if "outcome" not in required:
            assert all(shares[row.value] <= row.share for row in every.rows)


@pytest.mark.parametrize("agreement", ["one", "split"])
def test_agreement_counts_models(store, agreement):
    question_set, case_filter = open_set(store, "bundled:SugarCrepe")
    table = join_answers(store, question_set, case_filter)
    models = list(question_set.rated_models)
    n_fooled = (table[models] <= 0).sum(axis=1)
    is_passing = n_fooled == 1 if agreement == "one" else n_fooled.between(1, len(models) - 1)
    chosen = Filter(CLIP, "foil", outcome="all", agreement=agreement)
    assert views.cases.outcomes(question_set, chosen)["all"] == is_passing.sum()


def test_values_of_one_facet_are_joined_by_or_and_facets_by_and(store):
    question_set, case_filter = open_set(store, "demo")
    table = join_answers(store, question_set, case_filter)
    chosen = case_filter.with_values("subtype", ["color", "number"])
    scene = values_of(table, "tag:background")
    chosen = chosen.with_values("tag:background", ["sea", "beach"])
    is_passing = table["subtype"].isin(["color", "number"]) & scene.isin(["sea", "beach"])
    is_passing &= table[case_filter.model] <= 0
    numbers = numbers_of(store, question_set, chosen)
    assert set(numbers) == set(table["case"][is_passing]) and len(numbers)
    facets = {one.name: one for one in views.facets.facets(question_set, chosen)}
    shown = {row.value: row.n_asked for row in facets["tag:background"].rows if row.n_asked}
    is_type = table["subtype"].isin(["color", "number"])
    assert shown == dict(Counter(scene[is_type].tolist()))


def test_a_model_s_rate_counts_a_tie_fully_and_one_of_two_orders_half(store):
    question_set, case_filter = open_set(store, "bundled:SugarCrepe")
    table = join_answers(store, question_set, case_filter)
    rates = views.facets.model_rates(question_set, case_filter)
    for run in question_set.runs:
        answers = table[run.model].dropna()
        n_fooled = (answers < 0).sum() + (answers == 0).sum() / run.n_orders
        assert rates[run.model] == pytest.approx(n_fooled / len(answers), abs=1e-12)
    (twice,) = [run.model for run in question_set.runs if run.n_orders == 2]
    of_twice = replace(case_filter, model=twice)
    (types,) = [
        each for each in views.facets.facets(question_set, of_twice) if each.name == "subtype"
    ]
    for row in types.rows:  # the rate next to a facet is that of the model list and the drawer
        of_type = replace(of_twice, subtype=(row.value,))
        assert row.share == views.facets.model_rates(question_set, of_type)[twice]


def test_a_filter_removes_no_facet_and_no_row_so_that_none_moves_away_from_the_pointer(store):
    question_set, case_filter = open_set(store, "bundled:SugarCrepe")
    chosen = replace(case_filter, pair=("on>beside",))
    every, few = (views.facets.facets(question_set, each) for each in (case_filter, chosen))
    for before, after in zip(every, few, strict=True):
        assert before.name == after.name
        assert {row.value for row in before.rows} <= {row.value for row in after.rows}
        n_asked = [row.n_asked for row in after.rows]
        assert before.name == "pair" or 0 not in n_asked[: np.count_nonzero(n_asked)]


@pytest.mark.parametrize("dataset", tiers(SETS, ("demo",)))
def test_an_excluded_value_removes_its_cases_and_keeps_the_counts_of_its_facet(store, dataset):
    question_set, case_filter = open_set(store, dataset)
    table = join_answers(store, question_set, case_filter)
    is_fooled = table[case_filter.model] <= 0
    for facet in views.facets.facets(question_set, case_filter):
        first = facet.rows[0].value
        chosen = case_filter.with_values(facet.name, (), [first])
        assert chosen == Filter.parse(**chosen.words())
        with_value = numbers_of(store, question_set, case_filter.with_values(facet.name, [first]))
        numbers = numbers_of(store, question_set, chosen)
        assert set(numbers) == set(table["case"][is_fooled]) - set(with_value)
        counted = {each.name: each for each in views.facets.facets(question_set, chosen)}
        assert counted[facet.name] == facet


def test_several_excluded_values_remove_the_cases_of_each(store):
    question_set, case_filter = open_set(store, "demo")
    table = join_answers(store, question_set, case_filter)
    excluded = ["subtype=color", "subtype=number", "tag:background=sea"]
    chosen = Filter.parse(case_filter.model, case_filter.kind, excluded=excluded)
    is_passing = ~table["subtype"].isin(["color", "number"]) & (table[case_filter.model] <= 0)
    is_passing &= values_of(table, "tag:background") != "sea"
    assert set(numbers_of(store, question_set, chosen)) == set(table["case"][is_passing])
    assert 0 < is_passing.sum() < (table[case_filter.model] <= 0).sum()


@pytest.mark.parametrize(
    "text, expected",
    [
        ("color", "Expected NAME=VALUE, such as subtype=color"),
        ("foo=x", "No facet named 'foo'"),
        ("caption_length=long", "caption_length"),
        ("unseen_by=luck", "No cause named 'luck'"),
    ],
)
def test_an_invalid_exclusion_is_refused_in_one_line(text, expected):
    with pytest.raises(VlprobeError, match=expected):
        Filter.parse(CLIP, excluded=[text])
    with pytest.raises(VlprobeError, match="Expected at most 200"):
        Filter.parse(CLIP, excluded=[f"subtype={number}" for number in range(201)])
