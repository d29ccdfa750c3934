"""The leaderboard has the numbers and ties of each question set, and gives the reason for an empty cell."""

import csv
import io
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from huggingface_hub.repocard_data import model_index_to_eval_results

from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.metrics.tie_groups import group_letters
from vlprobe.render.leaderboard import distinct_heads, in_words
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.views.leaderboard import CONTROL, NOT_RUN, LeaderboardColumn
from vlprobe.views.runs import QuestionSet

SETS = {("bundled:SugarCrepe", "eqben"): "foil_accuracy", ("demo", "rococo"): "i2t_drop_rate"}


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return an empty cache above the bundled results."""
    monkeypatch.delenv(shipped.SETTING, raising=False)
    return shipped.opened(tmp_path / "cache")


def keys(store: Store) -> list[str]:
    """Return the keys of SETS: published answers (higher is better) and drawn scenes (lower is better)."""
    rows = {(row.dataset, row.probe): row.case_key for row in views.runs.question_set_rows(store)}
    return [rows[each] for each in SETS]


def call(store: Store, *words: str, code: int = 0) -> str:
    sets = [word for key in keys(store) for word in ("--set", key)]
    done = CliRunner().invoke(main, ["--cache", str(store.root), "leaderboard", *sets, *words])
    assert done.exit_code == code, done.output
    return done.stdout if not code else done.stderr


def test_each_cell_has_the_number_and_the_ties_of_its_question_set(bundled: Store):
    rows = json.loads(call(bundled, "--format", "json"))
    for key, metric in zip(keys(bundled), SETS.values(), strict=True):
        question_set = views.runs.question_set(bundled, key)
        table = views.estimates.estimates(question_set)
        expected = table.loc[table["metric"] == metric].set_index("model")
        letters = group_letters(views.paired_tests.metric_tie_groups(question_set)[metric])
        cells = {row["model"]: row for row in rows if row["set"] == key}
        for model, cell in cells.items():
            if model not in expected.index:
                assert (cell["value"], cell["group"], cell["note"]) == (None, "", NOT_RUN)
                continue
            assert cell["metric"] == metric and cell["note"] == ""
            assert cell["value"] == pytest.approx(expected["value"][model])
            assert cell["low"] == pytest.approx(expected["low"][model])
            assert cell["group"] == letters[model]
        assert set(expected.index) < set(cells)


def test_models_are_ranked_by_the_first_question_set_and_then_by_the_next(bundled: Store):
    rows = json.loads(call(bundled, "--format", "json"))
    first, second = (
        [row["value"] for row in rows if row["set"] == key and row["value"] is not None]
        for key in keys(bundled)
    )
    assert first == sorted(first, reverse=True)
    assert second == sorted(second)  # a lower drop rate is better
    assert [row["note"] for row in rows[: 2 * len(first)]] == ["", NOT_RUN] * len(first)


def test_the_table_for_people_has_one_row_per_model_with_interval_letters_and_reasons(
    bundled: Store,
):
    text = call(bundled, "--format", "markdown", "--model", "demo:softmax")
    assert "Drawn scenes, rococo: " in text and "(i2t_drop_rate), lower is better" in text
    assert "| model | SugarCrepe, eqben | Drawn scenes, rococo |" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| Tiny CLIP")]
    cells = json.loads(call(bundled, "--format", "json", "--model", "demo:softmax"))
    value = cells[1]["value"]
    assert row.startswith(f"| Tiny CLIP | not run | {100 * value:.1f} % (")
    assert row.endswith(f") {cells[1]['group']} |")
    latex = call(bundled, "--format", "latex", "--model", "demo:softmax")
    assert r"\toprule" in latex
    lines = latex.splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("Tiny CLIP"))
    first, below = lines[place : place + 2]
    letters = rf"\textsuperscript{{{cells[1]['group']}}} \\"
    assert first.endswith(rf" & {100 * value:.1f} \%{letters}")
    assert below.startswith(" &  & {\\footnotesize ")
    assert r"\textbf" not in latex  # no other model is compared
    every = json.loads(call(bundled, "--format", "json"))
    best = {row["set"]: [] for row in every}
    for row in every:
        best[row["set"]] += [row["model"]] * ("a" in (row["group"] or ""))
    n_clear = sum(len(models) == 1 for models in best.values())
    assert call(bundled, "--format", "latex").count(r"\textbf") == n_clear > 0
    table = list(csv.DictReader(io.StringIO(call(bundled, "--format", "csv"))))
    assert {row["note"] for row in table} == {"", NOT_RUN}
    by_kind = ("--by", "kind", "--baseline", "demo:softmax", "--format", "csv")
    verdicts: dict[bool, set[str]] = {True: set(), False: set()}
    for row in csv.DictReader(io.StringIO(call(bundled, *by_kind))):
        verdicts[row["model"] == "demo:softmax"].add(row["verdict"])
    assert verdicts[True] == {"baseline"} and "baseline" not in verdicts[False]
    assert "not run" in call(bundled)


def test_a_model_index_has_the_headline_number_of_each_set_that_the_model_answered(bundled: Store):
    block = call(bundled, "--format", "model-index", "--model", "demo:softmax")
    name, (result,) = model_index_to_eval_results(yaml.safe_load(block)["model-index"])
    (cell,) = json.loads(call(bundled, "--format", "json", "--model", "demo:softmax"))[1:]
    assert name == "Tiny CLIP"
    assert (result.metric_type, result.metric_value) == ("i2t_drop_rate", round(cell["value"], 4))
    assert "Pass its name with --model" in call(bundled, "--format", "model-index", code=2)


def test_controls_have_no_letter_and_come_last(tiny: str, store: Store):
    models = ("control:constant", "control:random")
    execute(Request(models, tiny, "lgip", examine=False), store)
    (row,) = views.runs.question_set_rows(store)
    question_set = views.runs.question_set(store, row.case_key)
    (column,) = views.leaderboard.leaderboard(question_set, averaging="macro")
    assert {cell.note for cell in column.cells.values()} == {CONTROL}
    assert not any(cell.group for cell in column.cells.values())
    estimates = {model: column.cells[model].estimate for model in models}
    assert {estimate.averaging for estimate in estimates.values() if estimate} == {"macro"}


def test_an_unknown_model_or_set_gives_one_line(bundled: Store, tmp_path: Path, monkeypatch):
    assert (
        "No model with results on these question sets named 'demo:weeak'. Did you mean 'demo:weak'?"
        in call(bundled, "--model", "demo:weeak", code=1)
    )
    assert "nothing" in call(bundled, "--set", "nothing", code=1)
    monkeypatch.setenv(shipped.SETTING, "")
    done = CliRunner().invoke(main, ["--cache", str(tmp_path), "leaderboard"])
    assert (
        done.exit_code == 1 and "There are no stored results yet. Run a probe first" in done.stderr
    )


def column(question_set: QuestionSet, kind: str, subtype: str) -> LeaderboardColumn:
    metric = next(iter(question_set.metrics.values()))
    return LeaderboardColumn(question_set, metric, {}, kind, subtype)


def test_headings_of_types_repeat_the_set_and_the_kind_only_if_there_are_several(bundled: Store):
    first, second = (views.runs.question_set(bundled, key) for key in keys(bundled))
    of_one_kind = [column(first, "foil", ""), column(first, "foil", "swap_obj")]
    whole = ["model", "SugarCrepe, eqben, foil"]
    assert list(in_words(of_one_kind, {})) == [*whole, "Swapped things"]
    assert list(in_words([*of_one_kind, column(first, "foil", "model")], {}))[-1] != "model"
    several = [*of_one_kind, column(second, "retrieval", "")]
    assert list(in_words(several, {}))[:3] == [*whole, "SugarCrepe, eqben, foil, Swapped things"]


def test_equal_headings_are_distinguished_by_the_set_or_by_kind_and_type(bundled: Store):
    first, second = (views.runs.question_set(bundled, key) for key in keys(bundled))
    columns = [
        *(column(first, "flip", "color"), column(first, "combined", "color")),
        *(column(second, "flip", "color"), column(first, "flip", "object")),
    ]
    heads = distinct_heads(["Color", "Color", "Color", "Object"], columns)
    one, other = first.key[:8], second.key[:8]
    assert heads == [
        f"Color {one} (flip, color)",
        f"Color {one} (combined, color)",
        f"Color {other}",
        "Object",
    ]
    assert distinct_heads(["A", "A"], columns[:2]) == ["A (flip, color)", "A (combined, color)"]
