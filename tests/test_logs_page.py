"""Every example log in docs/import.md: the tests save the files and run the commands as a reader would."""

import csv
import io
import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import call
from tests.models.test_answer_logs import spreadsheet
from vlprobe import views
from vlprobe.storage.store import Store
from vlprobe.views.runs import run_rows

GUIDE = (Path(__file__).parents[1] / "docs/import.md").read_text(encoding="utf-8")
PAGE = GUIDE.partition("\n## Logs of other tools\n")[2].partition("\n## ")[0]
SAVED = re.compile(r"[Ss]ave\b[^`]*?\bas\s+`([^`]+)`:\n\n```\w+\n(.*?)\n```", re.DOTALL)
COMMANDS = re.findall(r"^vlprobe (.+)$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, dict[str, str]]:
    """Run all commands, and return the store and the output of each command."""
    folder = tmp_path_factory.mktemp("logs")
    for name, content in SAVED.findall(PAGE):
        (folder / name).parent.mkdir(exist_ok=True)
        if name.endswith(".xlsx"):
            rows: list[list[object]] = [list(row) for row in csv.reader(io.StringIO(content))]
            (folder / name).write_bytes(spreadsheet(rows))
        else:
            (folder / name).write_text(content, encoding="utf-8")
    printed = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in COMMANDS:
            result = call("cache", *shlex.split(command))
            printed[command] = result.output
    return Store(folder / "cache"), printed


def test_every_command_of_the_guide_reads_a_file_that_the_guide_saves():
    runs = [command for command in COMMANDS if command.startswith("run ")]
    files = [re.search(r"scores:([^+]+)", command) for command in runs]
    saved = [name for name, _ in SAVED.findall(PAGE)]
    assert {match[1] for match in files if match} < set(saved)
    assert len(runs) == 7 and len(saved) == 9  # two files contain questions


def test_every_example_answers_two_of_three_questions_correctly(ran):
    store, _ = ran
    (key,) = {row.case_key for row in run_rows(store) if row.probe == "eqben"}
    table = views.estimates.estimates(views.runs.question_set(store, key))
    accuracy = table.loc[table["metric"] == "foil_accuracy"].set_index("model")
    assert len(accuracy) == 6
    assert accuracy["value"].tolist() == pytest.approx([2 / 3] * 6)
    assert accuracy["n_cases"].tolist() == [3] * 6


def test_compare_finds_a_model_name_with_spaces_and_a_slash(ran):
    _, printed = ran
    (output,) = [text for command, text in printed.items() if command.startswith("compare")]
    assert "My CLIP ViT-B/32 and InternVL 8B are tied" in output


def test_scores_of_text_pairs_give_text_accuracy_and_crossed_answers(ran):
    store, printed = ran
    (row,) = [row for row in run_rows(store) if row.probe == "visla"]
    table = views.estimates.estimates(views.runs.question_set(store, row.case_key))
    values = table.set_index("metric")["value"]
    assert (values["i2t_accuracy"], values["t2t_accuracy"]) == (1.0, 0.0)
    (crossed,) = [text for command, text in printed.items() if command.startswith("show")]
    # Fooled on the texts only, not with the picture.
    assert re.search(r"fooled +held +1 +1\.0000", crossed), crossed
