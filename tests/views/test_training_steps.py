"""Steps of a training: curves and outcomes of cases match a loop over the cases."""

import json
import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from tests.conftest import make_tiny
from tests.dashboard.test_pages import bodies, open_page
from tests.views.conftest import Dealt
from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.errors import NotFound
from vlprobe.render import charts
from vlprobe.render.words import edit_title
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.surfaces import paper
from vlprobe.views.tables import CaseTable

STEPS = (0, 20, 100)
NAMES = tuple(f"toy@{step}" for step in STEPS)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return results of three steps of one training, with random answers, and of another model."""
    folder = tmp_path_factory.mktemp("steps")
    store = Store(folder / "cache")
    models = {name: Dealt(f"dealt:{index}") for index, name in enumerate((*NAMES, "toy"))}
    for name, model in models.items():
        model.name = name
    tiny = make_tiny(folder / "tiny")
    execute(Request(tuple(models), tiny, "lgip", examine=False), store, models=models)
    return store


def test_each_metric_has_one_row_per_step_equal_to_the_estimate_of_its_run(trained: Store):
    question_set, models = views.training_steps.find_training(trained, "toy")
    assert models == dict(zip(STEPS, NAMES, strict=True)) and question_set.probe == "lgip"
    curves = views.training_steps.curves(question_set, models, "subtype")
    colors = curves.query("metric == 'positive_rate' and slice == 'color'")
    assert colors["step"].tolist() == list(STEPS)
    numbers = question_set.cases.numbers("kind = 'flip' AND subtype = 'color'", [])
    margins = views.rows.margins(question_set, NAMES, numbers)
    assert colors["value"].tolist() == pytest.approx((margins > 0).mean(axis=1).tolist())


def test_the_figure_of_a_training_has_a_line_for_all_cases_and_one_for_each_type(
    trained: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    question_set, models = views.training_steps.find_training(trained, "toy")
    assert "steps" in paper.available(question_set)
    figure, caption = paper.printed_figure(question_set, "steps", "column")
    by_type = views.training_steps.curves(question_set, models, "subtype")
    whole = views.training_steps.curves(question_set, models)
    expected = {"All": whole.query("metric == 'positive_rate'")["value"].tolist()}
    for subtype, rows in by_type.query("metric == 'positive_rate'").groupby("slice"):
        expected[edit_title(str(subtype))] = rows["value"].tolist()
    assert {trace["name"]: list(trace["y"]) for trace in figure.data} == {
        line: pytest.approx(values) for line, values in expected.items()
    }
    assert figure["layout"]["xaxis"]["ticktext"] == ("0", "20", "100")
    (n_cases,) = whole.query("metric == 'positive_rate'")["n_cases"].unique()
    assert f"on {n_cases} of the cases" in caption  # cases of the metric, not of the set
    assert "of toy by training step" in caption and "95 % intervals" in caption

    monkeypatch.setattr(paper, "rendered", lambda figure, suffix: str(figure).encode())
    line = ["--cache", str(trained.root), "figure", "steps", str(tmp_path / "f.svg"), "--model"]
    result = CliRunner().invoke(main, [*line, "toy"])
    assert result.exit_code == 0 and result.stdout.strip() == caption
    single = CliRunner().invoke(main, [*line, "toy@0", "--force"])
    assert single.exit_code == 1 and "needs at least two steps of one training" in single.stderr


def test_repair_draws_the_cases_learned_and_forgotten_at_each_step(
    trained: Store, monkeypatch: pytest.MonkeyPatch
):
    question_set, models = views.training_steps.find_training(trained, "toy")
    table = views.training_steps.cases_by_step(question_set, models, "flip")
    figure = charts.repair.learned(table, STEPS)
    for bar, (outcome, sign) in zip(figure.data, (("learned", 1), ("forgotten", -1)), strict=True):
        of_outcome = [row.step for row in table.itertuples() if row.outcome == outcome]
        assert list(bar.x) == ["0", "20", "100"]
        assert list(bar.y) == [sign * of_outcome.count(step) for step in STEPS]
        assert sum(bar.y) == sign * len(of_outcome) != 0
    monkeypatch.setenv(shipped.SETTING, "")
    monkeypatch.setattr(CaseTable, "rows", None)  # questions are only read for the exported table
    draw = partial(views.training_steps.outcomes_by_step, question_set, models)
    assert draw("flip")["outcome"].tolist() == table["outcome"].tolist()
    at = open_page(monkeypatch, trained, "repair")
    assert not at.exception and "By training step" in [each.value for each in at.header]
    counts = table["outcome"].value_counts()
    (line,) = [each.value for each in at.markdown if each.value.startswith(f"**{len(table)} ")]
    for outcome, count in counts.items():
        assert f"{count} {outcome}" in line
    caption = paper.steps(replace(question_set, runs=question_set.runs[:3]))[1]
    assert caption in bodies(at) and len(at.get("plotly_chart")) >= 2
    at.selectbox(key="steps_kind").set_value("combined").run()
    assert not at.exception and at.query_params["steps_kind"] == "combined"
    combined = draw("combined")
    assert any(each.value.startswith(f"**{len(combined)} ") for each in at.markdown)


def test_a_case_is_learned_or_forgotten_at_its_last_change(trained: Store):
    question_set, models = views.training_steps.find_training(trained, "toy")
    table = views.training_steps.cases_by_step(question_set, models, "flip")
    numbers = question_set.cases.numbers("kind = 'flip'", [])
    margins = views.rows.margins(question_set, NAMES, numbers)
    for row, of_case in zip(table.itertuples(), margins.T.tolist(), strict=True):
        right = [margin > 0 for margin in of_case]
        begin = next(start for start in range(3) if len(set(right[start:])) == 1)
        word = {True: "right", False: "wrong"}[right[-1]]
        expected = {"right": "learned", "wrong": "forgotten"}[word]
        if begin == 0:
            expected = "always right" if word == "right" else "never right"
        assert row.outcome == expected
        assert row.step == STEPS[begin] if begin else math.isnan(row.step)
    assert {"learned", "forgotten", "always right", "never right"} == set(table["outcome"])


def test_the_command_prints_steps_and_cases_and_a_gate_takes_any_step(trained: Store):
    def run(*arguments: str):
        return CliRunner().invoke(main, ["--cache", str(trained.root), *arguments])

    shown = json.loads(run("steps", "toy", "--format", "json").stdout)
    assert {row["step"] for row in shown} == set(STEPS)
    learned = run(
        "steps", "toy", "--cases", "--kind", "flip", "--outcome", "learned", "--format", "csv"
    )
    count = int(re.search(r"([0-9]+) learned", learned.stderr)[1])
    assert len(learned.stdout.splitlines()) == count + 1 > 1
    assert {line.rpartition(",")[2] for line in learned.stdout.splitlines()[1:]} <= set(
        map(str, STEPS)  # whole numbers
    )
    gate = ("gate", "toy@20", "--against", "toy@0", "--max-drop", "positive_rate=1")
    assert run(*gate).exit_code in (0, 1) and "positive_rate" in run(*gate).stderr
    back = ("gate", "toy@0", "--against", "toy@20", "--max-drop", "positive_rate=1")
    verdicts = [
        re.search("(better|worse) by ([.0-9]+)", run(*each).stderr) for each in (gate, back)
    ]
    assert {each[1] for each in verdicts if each} == {"better", "worse"}
    assert verdicts[0] and verdicts[1] and verdicts[0][2] == verdicts[1][2]
    assert run("steps", "toy", "--cases", "--outcome", "lerned").exit_code == 1
    with pytest.raises(NotFound, match="Did you mean 'toy'"):
        views.training_steps.find_training(trained, "toi")
    with pytest.raises(NotFound, match="at least two steps"):  # visla was not run
        views.training_steps.find_training(trained, "toy", "visla")


def test_a_case_with_an_unknown_margin_has_an_unknown_outcome(
    trained: Store, monkeypatch: pytest.MonkeyPatch
):
    question_set, models = views.training_steps.find_training(trained, "toy")
    known = views.rows.margins

    def unknown(*arguments) -> object:
        margins = known(*arguments)
        margins[1, 0] = math.nan
        return margins

    monkeypatch.setattr(views.training_steps, "margins", unknown)
    table = views.training_steps.cases_by_step(question_set, models, "flip")
    assert table["outcome"].tolist()[0] == "unknown" and pd.isna(table["step"][0])
