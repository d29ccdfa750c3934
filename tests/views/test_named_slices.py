"""Named slices: their numbers equal those of a type of edit with the same cases; invalid slices are refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from tests.conftest import call, make_tiny
from tests.views.conftest import MODELS, Dealt
from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.render.findings import verdict
from vlprobe.render.forest import how_to_read, row_title
from vlprobe.render.wall import side_filter
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.bookmarks import SLICES
from vlprobe.storage.store import Store
from vlprobe.views.filter import Filter, region_text
from vlprobe.views.leaderboard import leaderboard
from vlprobe.views.paired_tests import compare_metrics, compare_models
from vlprobe.views.runs import QuestionSet

NUMBERS = ["value", "low", "high", "n_items", "n_cases", "ties"]


@pytest.fixture
def store(filled: Store, tmp_path: Path) -> Store:
    """Return a copy, because the slices of a cache add rows to its comparisons."""
    shutil.copytree(filled.root, tmp_path / "cache")
    return Store(tmp_path / "cache")


@pytest.fixture
def question_set(store: Store, key: str) -> QuestionSet:
    return views.runs.question_set(store, key)


def save(store: Store, question_set: QuestionSet, name: str, case_filter: Filter) -> np.ndarray:
    numbers, _, _ = views.cases.passing(question_set, case_filter)
    views.named_slices.save(question_set, name, case_filter.words(), numbers)
    return numbers


def colors(store: Store, question_set: QuestionSet) -> np.ndarray:
    return save(
        store, question_set, "Colors", Filter.parse(MODELS[0], subtype="color", outcome="all")
    )


def test_the_estimates_of_a_slice_equal_those_of_a_type_with_the_same_cases(
    store: Store, question_set: QuestionSet
):
    colors(store, question_set)
    assert "slice" in views.estimates.slices(question_set)
    for averaging in ("micro", "macro"):
        by_slice = views.estimates.estimates(question_set, "slice", averaging)
        by_type = views.estimates.estimates(question_set, "subtype", averaging)
        rates = [table.query("metric == 'positive_rate'") for table in (by_slice, by_type)]
        expected = rates[1].query("slice == 'color'")
        assert set(rates[0]["slice"]) == {"Colors"} and len(expected) == len(MODELS)
        pd.testing.assert_frame_equal(
            rates[0].set_index("model")[NUMBERS],
            expected.set_index("model")[NUMBERS],
            check_exact=False,
        )


def test_a_slice_adds_a_row_to_a_comparison_and_keeps_the_other_rows(
    store: Store, question_set: QuestionSet
):
    before = compare_models(question_set, MODELS[:2], "flip")
    colors(store, question_set)
    after = compare_models(question_set, MODELS[:2], "flip")
    assert str(after.rows[:-1]) == str(before.rows)  # NaN is not equal to itself
    of_slice, of_type = after.rows[-1], after.row(MODELS[1], "color")
    assert of_slice.subtype == "slice:Colors" and of_slice.p_holm == of_slice.p
    names = ("n_lies", "n_pictures", "base", "value", "only_base", "only_model", "both", "neither")
    for name in names:
        assert getattr(of_slice, name) == getattr(of_type, name)
    assert of_slice.difference == pytest.approx(of_type.difference)
    only_base = side_filter("flip", *MODELS[:2], of_slice.subtype)  # cases below Compare's plot
    assert len(views.cases.passing(question_set, only_base)[0]) == of_slice.only_base > 0
    kind = question_set.presentation.kind("flip")
    assert row_title(of_slice.subtype, kind) == "Colors (slice)"
    n_tests = before.rows[-1].n_tests
    assert f"one test on the total, {n_tests} on types of edit" in how_to_read(after)
    assert compare_models(question_set, MODELS[:2], "paraphrase").rows[-1].subtype != "slice:Colors"


def test_the_scorecard_has_a_column_for_a_slice_after_the_types(
    store: Store, question_set: QuestionSet
):
    before = leaderboard(question_set, by="edit", baseline=MODELS[0])
    numbers = colors(store, question_set)
    columns = leaderboard(question_set, by="edit", baseline=MODELS[0])
    (place,) = [at for at, each in enumerate(columns) if each.subtype == "slice:Colors"]
    of_slice = columns.pop(place)
    assert of_slice.kind == columns[place - 1].kind != columns[place].kind  # after the types
    assert str(columns) == str(before)  # NaN is not equal to itself
    (of_type,) = [
        column for column in columns if (column.kind, column.subtype) == ("flip", "color")
    ]
    assert of_slice.n_cases == of_type.n_cases == len(numbers)
    assert of_slice.blind == pytest.approx(of_type.blind, nan_ok=True)
    margins = views.rows.margins(question_set, MODELS, numbers)
    for model, of_model in zip(MODELS, margins, strict=True):
        cell, expected = of_slice.cell(model), of_type.cell(model)
        assert cell.estimate is not None and expected.estimate is not None
        assert cell.estimate.value == pytest.approx((of_model <= 0).mean())
        assert (cell.n_fooled, cell.group, cell.is_best, cell.note) == (
            (of_model <= 0).sum(),
            expected.group,
            False,  # someone chose the cases
            expected.note,
        )
        assert cell.difference == pytest.approx(expected.difference, nan_ok=True)
    line = ["--cache", str(store.root), "leaderboard", "--by", "edit", "--format"]
    printed = CliRunner().invoke(main, [*line, "csv"]).stdout
    assert printed.count(",slice:Colors,") == len(MODELS)
    assert "Colors (slice)" in CliRunner().invoke(main, [*line, "markdown"]).stdout
    other_kinds = leaderboard(question_set, by="kind")
    assert not any(column.subtype for column in other_kinds)


def test_a_gate_on_a_slice_compares_only_its_cases(store: Store, question_set: QuestionSet):
    numbers = colors(store, question_set)
    table = compare_metrics(question_set, MODELS[:2], only=("positive_rate",), named_slice="Colors")
    of_models = views.rows.margins(question_set, MODELS[:2], numbers)
    row = table.iloc[0]
    assert [row.base, row.value] == pytest.approx((of_models > 0).mean(axis=1).tolist())
    both = replace(question_set, runs=tuple(question_set.run(model) for model in MODELS[:2]))
    (promise,) = views.gate.promises(both, {"positive_rate": 1.0}, named_slice="Colors")
    assert promise.drop == pytest.approx(row.base - row.value) and not promise.is_broken
    with pytest.raises(NotFound, match="Colours"):
        views.gate.promises(both, {"positive_rate": 1.0}, named_slice="Colours")


def test_commands_with_a_slice_use_its_question_set(
    store: Store, question_set: QuestionSet, tmp_path: Path
):
    colors(store, question_set)
    data, models = make_tiny(tmp_path / "tiny"), {name: Dealt(name) for name in MODELS[:2]}
    newer = Request(tuple(models), data, "lgip", limit=2, examine=False)
    (newest, _) = execute(newer, store, models=models)
    assert (
        newest["case_key"] != question_set.key
        and newest["finished"] >= question_set.runs[0].finished
    )

    def run(*arguments: str) -> list[dict]:
        line = ["--cache", str(store.root), *arguments, "--slice", "Colors", "--format", "json"]
        result = CliRunner().invoke(main, line)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    expected = compare_metrics(question_set, MODELS[:2], named_slice="Colors")["base"].dropna()
    compared = [row["base"] for row in run("compare", *MODELS[:2]) if row["base"] is not None]
    assert compared == pytest.approx(expected.tolist())
    (limit,) = run("gate", MODELS[1], "--against", MODELS[0], "--max-drop", "positive_rate=1")
    assert limit["base"] in compared
    every, _ = views.cases.failures(
        question_set, Filter.parse(MODELS[0], named_slice="Colors", outcome="all"), 1, 99
    )
    listed = run("failures", MODELS[0], "--outcome", "all", "--size", "99")
    assert [row["id"] for row in listed] == every["id"].tolist()
    other = call(store.root, "failures", newest["key"], "--slice", "Colors", code=1)
    assert "have changed" in other.output


def test_the_finding_of_a_comparison_in_a_slice_rests_on_its_cases(
    store: Store, question_set: QuestionSet
):
    numbers = colors(store, question_set)
    of_slice = compare_models(question_set, MODELS[:2], "flip", named_slice="Colors")
    of_models = views.rows.margins(question_set, MODELS[:2], numbers)
    shares = [of_slice.row(MODELS[1]).base, of_slice.row(MODELS[1]).value]
    assert shares == pytest.approx((of_models <= 0).mean(axis=1).tolist())
    assert of_slice.row(MODELS[1]).n_lies == len(numbers)
    finding = verdict(of_slice, question_set.presentation.kind("flip"))
    line = ["--cache", str(store.root), "compare", *MODELS[:2], "--slice", "Colors"]
    printed = " ".join(CliRunner().invoke(main, line).output.split())
    assert f"In the slice 'Colors': {finding.heading}" in printed and finding.detail in printed
    by_edit = CliRunner().invoke(main, [*line, "--by", "edit", "--format", "json"])
    rows = json.loads(by_edit.stdout)
    assert {row["subtype"] for row in rows} <= {"all", "color"}
    assert {row["n_cases"] for row in rows} == {len(numbers)}
    with pytest.raises(InvalidInput, match="'Colors' has no cases of the kind 'paraphrase'"):
        compare_models(question_set, MODELS[:2], "paraphrase", named_slice="Colors")


def test_a_slice_whose_questions_changed_is_refused_with_the_changes(
    store: Store, question_set: QuestionSet
):
    numbers = colors(store, question_set)
    content = json.loads(SLICES.read(store)["Colors"])
    first, second, *_ = content["digests"]
    content["digests"] |= {first: "0" * 12, "gone": content["digests"].pop(second)}
    SLICES.save(store, "Changed", json.dumps(content))
    by_name, (refusal,) = views.named_slices.applicable(store, question_set.key)
    assert list(by_name) == ["Colors"] and by_name["Colors"].tolist() == numbers.tolist()
    total = f"1 of its {len(numbers)} cases"
    assert f"{total} are missing, such as 'gone'" in refusal
    assert f"{total} have other texts, such as '{first}'" in refusal
    with pytest.raises(InvalidInput, match="have changed"):
        views.cases.failures(question_set, Filter(MODELS[0], named_slice="Changed"))
    content["digests"] = {"gone": "0" * 12}  # digests of other questions
    SLICES.save(store, "Changed", json.dumps(content))
    assert views.named_slices.applicable(store, question_set.key)[1] == ()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"digests": 3}'])
def test_a_damaged_slice_is_refused_in_one_line(store: Store, question_set: QuestionSet, text: str):
    SLICES.save(store, "mine", text)
    with pytest.raises(InvalidInput, match="The slice 'mine' is damaged"):
        views.named_slices.read(store)
    with pytest.raises(InvalidInput, match="selects 0 cases"):
        save(store, question_set, "none", Filter.parse(MODELS[0], contains="no such words"))


def test_the_commands_save_show_check_export_and_remove_a_slice(
    store: Store, question_set: QuestionSet, tmp_path: Path
):
    def run(*arguments: str) -> str:
        result = call(store.root, *arguments)
        return result.stdout

    keys = [question_set.run(model).key for model in MODELS[:2]]
    wrong = ["slice", "save", "Wrong", keys[0], "--kind", "flip", "--exclude", "subtype=colour"]
    refused = call(store.root, *wrong, code=1)
    assert "'colour'" in refused.stderr
    assert not views.named_slices.read(store)
    run("slice", "save", "Most flips", keys[0], "--kind", "flip", "--contains", "a")
    numbers, _, _ = views.cases.passing(
        question_set, Filter(MODELS[0], contains="a", outcome="all")
    )
    (listed,) = json.loads(run("slice", "list", "--format", "json"))
    assert listed["name"] == "Most flips" and listed["cases"] == len(numbers) > 0
    assert (
        listed["link"] == f"explore?set={question_set.key}&kind=flip&slice=Most+flips&outcome=all"
    )
    shown = json.loads(run("show", keys[0], "--by", "slice", "--format", "json"))
    assert {row["slice"] for row in shown} == {"Most flips"}
    gate = ("gate", keys[0], "--against", keys[1], "--max-drop", "positive_rate=1")
    (limit,) = json.loads(run(*gate, "--slice", "Most flips", "--format", "json"))
    assert limit["outcome"] == "kept"
    compared = run("compare", *keys, "--by", "edit", "--kind", "flip", "--format", "csv")
    assert "slice:Most flips" in compared
    narrowed = ("--kind", "flip", "--slice", "Most flips", "--outcome", "all", "--format", "json")
    assert len(json.loads(run("failures", keys[0], *narrowed, "--size", "9999"))) == len(numbers)
    run("export", str(tmp_path / "out"), "--format", "parquet")
    exported = pd.read_parquet(tmp_path / "out" / "slices.parquet")
    assert exported["case"].tolist() == numbers.tolist()
    assert json.loads(exported["filter"][0])["contains"] == "a"
    assert run("sql", "SELECT count(*) AS n FROM slices", "--format", "csv").split()[-1] == str(
        len(numbers)
    )
    run("slice", "remove", "Most flips")
    assert json.loads(run("slice", "list", "--format", "json")) == []


@pytest.mark.parametrize(
    ("words", "is_biased"),
    [
        ({"model": "a", "outcome": "fooled"}, True),
        ({"model": "a", "outcome": "all", "fooled": ["b"]}, True),
        ({"model": "a", "outcome": "all", "other": "b", "other_outcome": "held"}, True),
        ({"model": "a", "outcome": "all", "excluded": ["unseen_by=words"]}, True),
        ({"model": "a", "outcome": "all", "region": region_text("map", np.array([1, 2]))}, True),
        ({"model": "a", "outcome": "all", "region": region_text("a bus", np.array([2, 1]), True)}, False),
        ({"model": "a", "outcome": "all", "excluded": ["tag:scene=street"]}, False),
        ({"model": "a", "outcome": "all", "subtype": ["color"]}, False),
    ],
)  # fmt: skip
def test_only_a_slice_selected_by_answers_or_an_area_has_a_caveat(words, is_biased):
    named = views.named_slices.NamedSlice("mine", "flip", "key", "questions", words, {})
    assert bool(named.caveat) == is_biased
