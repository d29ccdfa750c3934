"""Typed rows, and the question set that functions pass on."""

import dataclasses
import math
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import case_key_of
from vlprobe import views
from vlprobe.errors import NotFound
from vlprobe.storage.store import Store
from vlprobe.views.records import AnswerRow, CaseRow, FailureRow, PointRow, records
from vlprobe.views.runs import question_set


@pytest.fixture(scope="module")
def key(compared: Store) -> str:
    return case_key_of(compared)


def test_records_are_the_rows_of_a_table_by_column_name():
    columns = ["y", "model", "extra", "x", "x_low", "x_high", "y_low", "y_high", "x_n", "y_n"]
    table = pd.DataFrame([(1.5, "a", None, 0.5, 0.25, 0.75, math.nan, 2.0, 8, 9)], columns=columns)
    (row,) = records(PointRow, table)
    assert (row.model, row.x, row.y, row.y_high) == ("a", 0.5, 1.5, 2.0)
    assert math.isnan(row.y_low)
    assert records(PointRow, table[:0]) == []
    with pytest.raises(KeyError, match="y_high"):
        records(PointRow, table.drop(columns="y_high"))


def test_typed_cases_and_answers_match_the_files(compared: Store, key: str):
    questions = question_set(compared, key)
    stored = pd.read_parquet(compared.root / "cases" / key / "cases.parquet").set_index("case")
    cases = records(CaseRow, views.rows.questions(questions, [5, 2]))
    assert [case.case for case in cases] == [5, 2]
    assert [(case.id, list(case.texts)) for case in cases] == [
        (stored["id"][number], list(stored["texts"][number])) for number in (5, 2)
    ]
    answers = views.rows.answer_rows(questions, [5, 2])
    for run in questions.runs:
        scores = pd.read_parquet(compared.root / "runs" / run.key / "scores.parquet").set_index(
            "case"
        )
        for number in (5, 2):
            assert answers[number][run.model].margin == scores["margin"][number]
            assert answers[number][run.model].columns["margin"] == scores["margin"][number]
    failing, _ = views.cases.failures(
        questions, views.filter.Filter(questions.models[0], outcome="all")
    )
    assert [row.margin for row in records(FailureRow, failing)] == failing["margin"].tolist()


def test_a_question_set_names_its_models_and_refuses_others(compared: Store, key: str):
    questions = question_set(compared, key)
    assert {run.key for run in questions.runs} == {
        path.name for path in (compared.root / "runs").iterdir()
    }
    assert questions.label == views.runs.question_sets(compared)["label"].iloc[0]
    assert questions.run(questions.models[1]).model == questions.models[1]
    with pytest.raises(NotFound, match=questions.models[0]):
        questions.run("no such model")


def test_a_question_set_can_be_a_key_of_a_cache(compared: Store, key: str, tmp_path: Path):
    questions = question_set(compared, key)
    assert {questions: 1}[question_set(compared, key)] == 1
    fewer = Store(shutil.copytree(compared.root, tmp_path / "cache"))
    shutil.rmtree(fewer.root / "runs" / questions.runs[0].key)
    assert question_set(fewer, key) != questions
    with pytest.raises(dataclasses.FrozenInstanceError):
        questions.key = "other"  # type: ignore[misc]


def test_an_unknown_or_missing_column_of_an_answer_is_nan():
    columns = {"rank": np.float32(2), "rank_clean": None, "global": math.nan, "top": "a text"}
    answer = AnswerRow(0, "m", 0.0, (), columns | {"looked_up": np.int64(10)})
    assert (answer.number("rank"), answer.number("looked_up")) == (2.0, 10.0)
    assert all(
        math.isnan(answer.number(name)) for name in ("rank_clean", "global", "top", "nowhere")
    )
    assert (answer.text("top"), answer.text("nowhere")) == ("a text", "")
