"""Suspect labels: ranked by rejections, judged by tags, shared as errata, and excluded by runs."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.conftest import make_foils
from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.errors import InvalidInput
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import annotations, errata, shipped
from vlprobe.storage.errata import Erratum, question_digest
from vlprobe.storage.store import Store
from vlprobe.views.runs import QuestionSet

N = 12
# The questions that each model answers correctly: case 0 fools all three good models, case 1 two of them.
RIGHT = {
    "first": [False, False, *[True] * 10],
    "second": [False, False, *[True] * 10],
    "third": [False, True, *[True] * 10],
    "poor": [True, *[False] * 11],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suspects")


@pytest.fixture(scope="module")
def dataset(folder: Path) -> str:
    return make_foils(folder, "pairs", N)


@pytest.fixture(scope="module")
def models(folder: Path) -> list[str]:
    names = []
    for number, (name, right) in enumerate(RIGHT.items()):
        high = 0.9 + number / 100  # files with equal bytes would be one model
        lines = [
            f"pairs/{k}/i2t-pair,{high if ok else 0.1},{0.1 if ok else high}"
            for k, ok in enumerate(right)
        ]
        (folder / f"{name}.csv").write_text("\n".join(["case,c0_i0,c1_i0", *lines]))
        names.append(f"scores:{folder}/{name}.csv")
    return names


@pytest.fixture(scope="module")
def answered(folder: Path, dataset: str, models: list[str]) -> Path:
    execute(Request(tuple(models), dataset, "visla"), Store(folder / "cache"))
    return folder / "cache"


@pytest.fixture
def store(answered: Path, tmp_path: Path) -> Store:
    return Store(shutil.copytree(answered, tmp_path / "cache"))


def question_set(store: Store) -> QuestionSet:
    return views.runs.question_set(store, views.runs.question_set_rows(store)[0].case_key)


def kind_of(store: Store) -> str:
    questions = question_set(store)
    return views.runs.default_kind(questions, questions.models)


def test_cases_are_ranked_by_the_number_of_strong_models_that_reject_them(store: Store):
    ranking = views.suspects.suspects(question_set(store), kind_of(store), 0.8)
    assert {Path(name.removeprefix("scores:")).stem for name in ranking.strong} == {
        "first",
        "second",
        "third",
    }
    assert [(each.id, each.n_rejecting) for each in ranking.suspects] == [
        ("pairs/0/i2t-pair", 3),
        ("pairs/1/i2t-pair", 2),
    ]
    expected = {name: np.mean(right) for name, right in RIGHT.items()}
    assert {
        Path(each.model.removeprefix("scores:")).stem: pytest.approx(each.all_cases)
        for each in ranking.accuracies
    } == expected


def test_suspects_with_a_picture_precede_those_without(store: Store, monkeypatch):
    monkeypatch.setattr(views.rows, "are_pictured", lambda *of_kind: of_kind[2] == 1)
    ranking = views.suspects.suspects(question_set(store), kind_of(store), 0.8)
    assert [each.id for each in ranking.suspects] == ["pairs/1/i2t-pair", "pairs/0/i2t-pair"]


def test_a_single_strong_model_gives_no_suspect_labels(store: Store):
    ranking = views.suspects.suspects(question_set(store), kind_of(store), 0.9)
    assert len(ranking.strong) == 1 and ranking.suspects == ()


def test_only_rejected_labels_are_excluded_from_the_second_accuracy(store: Store):
    questions, kind = question_set(store), kind_of(store)
    first, second = views.suspects.suspects(questions, kind, 0.8).suspects
    views.suspects.judge(questions, first.case, first.id, "wrong")
    views.suspects.judge(questions, second.case, second.id, "right")
    ranking = views.suspects.suspects(questions, kind, 0.8)
    assert [each.verdict for each in ranking.suspects] == ["wrong", "right"]
    without = {
        Path(each.model.removeprefix("scores:")).stem: each.without for each in ranking.accuracies
    }
    assert without == {name: pytest.approx(np.mean(right[1:])) for name, right in RIGHT.items()}


def test_a_verdict_replaces_the_earlier_one_and_keeps_other_tags(store: Store):
    questions = question_set(store)
    suspect = views.suspects.suspects(questions, kind_of(store), 0.8).suspects[0]
    annotations.write(
        store, questions.key, annotations.Annotation(suspect.case, suspect.id, ("telling",), "look")
    )
    for verdict in ("wrong", "both", ""):
        views.suspects.judge(questions, suspect.case, suspect.id, verdict)
        (current,) = annotations.read(store, questions.key).current
        expected = {"telling", errata.TAGS[verdict]} if verdict else {"telling"}
        assert set(current.tags) == expected and current.note == "look"


def run_with_errata(cache: Path, dataset: str, model: str, errata_file: Path) -> Result:
    command = ["--cache", str(cache), "run", "--probe", "visla", "--format", "json"]
    command += ["--dataset", dataset, "--model", model, "--errata", str(errata_file)]
    return CliRunner().invoke(main, command)


def test_errata_are_imported_into_another_cache_and_a_run_excludes_their_questions(
    store: Store, tmp_path: Path, dataset: str, models: list[str]
):
    questions = question_set(store)
    suspect = views.suspects.suspects(questions, kind_of(store), 0.8).suspects[0]
    views.suspects.judge(questions, suspect.case, suspect.id, "wrong")
    key = questions.runs[0].key
    path = tmp_path / "errata.jsonl"
    command = ["--cache", str(store.root), "errata", "export", key, str(path), "--reviewer", "Ann"]
    assert CliRunner().invoke(main, command).exit_code == 0
    (erratum,) = errata.read(path)
    assert (erratum.verdict, erratum.reviewer, erratum.texts[0]) == ("wrong", "Ann", "0 dogs")
    assert erratum.digest == question_digest(["elsewhere/0.png"], erratum.texts)

    other = Store(tmp_path / "other")
    execute(Request((models[0],), dataset, "visla"), other)
    result = CliRunner().invoke(main, ["--cache", str(other.root), "errata", "import", str(path)])
    assert "1 verdicts read; 1 cases tagged." in result.output
    assert annotations.read(other, questions.key).tags == {"wrong label": 1}

    result = run_with_errata(other.root, dataset, models[0], path)
    assert result.exit_code == 0, result.output
    rows = {row["metric"]: row for row in json.loads(result.stdout)}
    assert rows["pair_accuracy"]["n_cases"] == N - 1
    assert rows["pair_accuracy"]["value"] == pytest.approx(np.mean(RIGHT["first"][1:]))


def test_errata_of_other_questions_give_one_line(tmp_path: Path, dataset: str, models: list[str]):
    path = tmp_path / "errata.jsonl"
    path.write_text(errata.lines([Erratum("0" * 32, "wrong", "Ann")]))
    result = run_with_errata(tmp_path / "cache", dataset, models[0], path)
    assert (
        result.exit_code
        and "None of the 1 rejected labels belongs to this question set" in result.output
    )


def test_a_label_that_a_reviewer_accepts_is_not_rejected():
    disputed = [Erratum("a" * 32, "wrong", "Ann"), Erratum("a" * 32, "right", "Bo")]
    assert errata.rejected(
        [*disputed, Erratum("b" * 32, "both", "Ann"), Erratum("c" * 32, "unsure", "Ann")]
    ) == {"b" * 32}


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        '{"digest": "x", "verdict": "wrong", "reviewer": "Ann"}',
        '{"digest": "' + "0" * 32 + '", "verdict": "maybe", "reviewer": "Ann"}',
        '{"digest": "' + "0" * 32 + '", "verdict": "wrong"}',
        "[1]",
        '{"digest": "' + "0" * 32 + '", "verdict": "wrong", "reviewer": 3}',
    ],
)
def test_the_error_names_a_line_that_is_not_an_erratum(tmp_path: Path, line: str):
    path = tmp_path / "errata.jsonl"
    path.write_text(f"\n{line}\n")
    with pytest.raises(InvalidInput, match="line 2"):
        errata.read(path)


def test_the_command_lists_suspects_and_accuracies(store: Store):
    key = question_set(store).runs[0].key
    result = CliRunner().invoke(
        main, ["--cache", str(store.root), "suspects", key, "--accuracy", "0.8", "--format", "json"]
    )
    assert [row["rejected_by"] for row in json.loads(result.stdout)] == ["3 of 3", "2 of 3"]
    assert [row["wrong_caption"] for row in json.loads(result.stdout)] == ["0 cats", "1 cats"]
    assert "right in 91.67%" in result.stderr


def test_a_model_with_both_orders_has_the_accuracy_that_home_shows():
    store = Store(shipped.PUBLISHED_FOLDER)
    row = next(row for row in views.runs.question_set_rows(store) if "SugarCrepe" in row.dataset)
    questions = views.runs.question_set(store, row.case_key)
    kind = views.runs.default_kind(questions)
    shares = {  # shares of wrong answers, as Home counts them
        model: sum(count.n_believed for count in counts) / sum(count.n_lies for count in counts)
        for model in questions.models
        if (counts := [c for c in views.showcase.lie_counts(questions, kind) if c.model == model])
    }
    ranking = views.suspects.suspects(questions, kind)
    assert len(ranking.accuracies) == 5
    for each in ranking.accuracies:
        assert each.all_cases == pytest.approx(1 - shares[each.model]), each.model
