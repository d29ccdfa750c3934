"""`import vlprobe`: lazy, typed, and shown in a notebook with pictures first and captions escaped."""

import inspect
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vlprobe
from tests.conftest import CAPTIONS, make_tiny
from tests.registry.conftest import FILES
from vlprobe import registry, views
from vlprobe.case import html
from vlprobe.case.card import case_card
from vlprobe.errors import InvalidInput, MissingDependency, NotFound
from vlprobe.perturb import lgip
from vlprobe.storage import access
from vlprobe.storage.store import Store
from vlprobe.surfaces.notebook import objects as notebook_objects
from vlprobe.surfaces.notebook.objects import Results

DOCS = Path(__file__).resolve().parents[3] / "docs" / "python.md"
HOSTILE = (
    "A red dog </script><img src=x onerror=vpevil()> \u202evpevil\u202c is sitting on a bench."
)
CONTROLS = ["control:random", "control:constant"]


@pytest.fixture(scope="module")
def run_results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Return a run of both controls on six pictures."""
    folder = tmp_path_factory.mktemp("python")
    tiny = make_tiny(folder / "tiny")
    return vlprobe.run(CONTROLS, tiny, cache=folder / "cache", examine=False)


def test_the_import_loads_neither_numpy_nor_torch():
    code = (
        "import sys, vlprobe; vlprobe.__version__; dir(vlprobe); "
        "print([name for name in ('numpy', 'torch', 'pandas', 'click', 'streamlit', 'htpy') if name in sys.modules])"
    )
    root = str(DOCS.parents[1])
    printed = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": root},
    )
    assert printed.stdout.strip() == "[]", printed.stderr


@pytest.mark.parametrize("name", [name for name in vlprobe.__all__ if name != "__version__"])
def test_every_public_name_exists_and_is_typed_and_documented(name: str):
    function = getattr(vlprobe, name)
    assert name in dir(vlprobe) and inspect.getdoc(function)
    called = function.__init__ if inspect.isclass(function) else function
    hints = inspect.get_annotations(called)
    assert set(hints) >= set(inspect.signature(called).parameters) - {"self"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = vlprobe.nothing  # type: ignore[attr-defined] - that is the test


def test_a_run_has_the_numbers_of_the_command_line(run_results: Results):
    stored = views.estimates.estimates(views.runs.question_set(run_results.store, run_results.key))
    assert run_results.table.equals(stored)
    rows = stored.loc[(stored["metric"] == "positive_rate") & (stored["model"] == CONTROLS[0])]
    assert run_results.value("positive_rate", CONTROLS[0]) == rows["value"].iloc[0]
    assert run_results.models == tuple(sorted(CONTROLS))
    results = vlprobe.results(run_results.key[:6], run_results.store.root)
    assert results.table.equals(stored)
    run_key = run_results.question_set.runs[0].key
    assert vlprobe.results(run_key[:8], run_results.store.root).key == run_results.key


def test_loaded_models_and_datasets_give_the_same_run(run_results: Results, tmp_path: Path):
    tiny = make_tiny(tmp_path / "tiny")
    data = vlprobe.load_dataset(tiny, tmp_path / "cache")
    models = [vlprobe.load_model(CONTROLS[0]), registry.load_model(CONTROLS[1])]
    again = vlprobe.run(models, data, cache=tmp_path / "cache", examine=False)
    assert {run.key for run in again.question_set.runs} == {
        run.key for run in run_results.question_set.runs
    }
    with pytest.raises(InvalidInput, match="exists only in this process"):
        vlprobe.run(models, data, cache=tmp_path / "cache", executor="ray")


def test_failures_are_the_lowest_margins(run_results: Results):
    results = vlprobe.failures(run_results, CONTROLS[0], kind="flip", limit=5)
    margins = views.cases.matching(run_results.question_set, results.case_filter).margins
    assert [card.margin for card in results] == sorted(margins[margins <= 0])[:5]
    assert results.total == int((margins <= 0).sum()) and len(results) == min(5, results.total)
    assert results.table["id"].tolist() == [card.id for card in results]
    assert results[0] == next(iter(results))


def test_compare_is_paired_and_does_not_call_a_control_better(run_results: Results):
    compared = vlprobe.compare(run_results, *CONTROLS)
    expected = views.paired_tests.compare_metrics(run_results.question_set, tuple(CONTROLS))
    assert compared.table.equals(expected)
    assert "better" not in compared.sentence.lower()  # controls are never better
    assert compared.only.keys() == set(CONTROLS)


def test_edits_are_those_of_the_probe():
    captions = CAPTIONS[0][2:]
    entries = vlprobe.edits(captions, item="0")
    expected = lgip.edits(captions, "0")
    assert [(entry.text, entry.edit) for entry in entries] == [
        entry for edits in expected.edits for entry in edits
    ]
    assert len(entries.table) == len(entries) > 10
    assert {entry.edit.kind for entry in vlprobe.edits(captions[0], kinds=["flip"])} == {"flip"}


def test_calls_accept_rules_models_and_datasets_of_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(access.PLUGINS, "")
    (text, negated) = vlprobe.edits("The dog is red.", rules=f"py:{FILES['rules']}")
    assert (text.text, negated.text) == ("THE DOG IS RED.", "The dog is not red.")
    model = vlprobe.load_model(f"py:{FILES['model']}")
    data = vlprobe.load_dataset(f"py:{FILES['dataset']}", tmp_path)
    table = model.similarity(
        [item.image.path for item in data], [item.captions[0] for item in data]
    )
    assert table.shape == (4, 4) and (table.argmax(axis=1) == np.arange(4)).all()
    white = 1.1 * np.array([1, 1, 1]) / np.linalg.norm([1.1] * 3)
    red = np.array([1.1, 0.1, 0.1]) / np.linalg.norm([1.1, 0.1, 0.1])
    assert table[0, 3] == pytest.approx(float(white @ red), abs=1e-6)


def html_of(thing: object) -> str:
    return thing._repr_html_()  # type: ignore[attr-defined] - what IPython calls


def test_pictures_come_first_and_are_embedded_in_the_page(run_results: Results):
    data = vlprobe.load_dataset(run_results.question_set.runs[0].dataset, run_results.store.root)
    for thing in (run_results, run_results.failures(CONTROLS[1], kind="flip"), data):
        page = html_of(thing)
        assert 0 < page.index('src="data:image/webp;base64,') < len(page)
        if "<table" in page:
            assert page.index("<img") < page.index("<table")
        assert "http" not in page and "<script" not in page
    assert (
        "Positive rate" in html_of(run_results)
        and "control:" not in html_of(run_results).partition("<table")[0]
    )
    assert "is" in html_of(vlprobe.compare(run_results, *CONTROLS))
    assert "<dt>parameters</dt>" in html_of(vlprobe.load_model(CONTROLS[0]))


def test_every_probe_and_kind_is_shown(every_probe: Store):
    rows = views.runs.run_rows(every_probe)
    for key, probe in {row.case_key: row.probe for row in rows}.items():
        results = Results(every_probe, views.runs.question_set(every_probe, key))
        assert html_of(results).count("<div") == html_of(results).count("</div>")
        for kind in views.runs.list_kinds(every_probe, key, probe):
            cases = results.failures(kind=kind, outcome="all", limit=3)
            page = html_of(cases) + html_of(results.compare(kind=kind))
            assert (page.count("<img") or probe == "visla") or not cases.total, (probe, kind)
            assert "nan" not in re.sub(
                r"base64,[^\"]+|<style>.*?</style>", "", page, flags=re.DOTALL
            )


def test_selected_and_tagged_cases_of_a_wall_are_returned_as_a_table(run_results: Results):
    pytest.importorskip("anywidget", reason="needs the extra notebook")
    failures = run_results.failures(CONTROLS[1], kind="flip", limit=3)
    wall = failures.wall()
    assert [card["id"] for card in wall.widget.wall["cards"]] == list(failures.table["id"])
    assert not wall.table["selected"].any()
    first, *_ = failures.table["id"]
    wall.widget.selected, wall.widget.tags = [first], {first: ["ambiguous"]}
    picked = wall.table.query("selected")
    assert list(picked["id"]) == [first] and list(picked["tags"]) == [("ambiguous",)]
    assert wall.table["tags"].iloc[1] == ()
    assert "application/vnd.jupyter.widget-view+json" in str(wall._repr_mimebundle_())


def test_a_wall_without_its_package_gives_one_line(run_results: Results, monkeypatch):
    monkeypatch.setattr(notebook_objects, "find_spec", lambda name: None)
    notebook_objects._widget_type.cache_clear()
    with pytest.raises(MissingDependency, match=r"pip install 'vlprobe\[notebook\]'"):
        run_results.failures(CONTROLS[1]).wall()


def test_a_notebook_has_the_texts_of_a_case_with_the_roles_and_marks_of_the_drawer(
    run_results: Results,
):
    failures = run_results.failures(CONTROLS[1], kind="flip", limit=1)
    (card,) = failures.cards
    page = html_of(failures)
    expected = html.captions(case_card(card, failures.kind).texts)
    assert str(expected) in page and "vp-role-lie" in page


def test_hostile_captions_are_text_in_a_notebook(tmp_path: Path):
    Image.new("RGB", (8, 8), "red").save(tmp_path / "a.png")
    (tmp_path / "a.txt").write_text(f"{HOSTILE}\n{'long ' * 1000}dog.\n", encoding="utf-8")
    data = vlprobe.load_dataset(f"folder:{tmp_path}", tmp_path / "cache")
    results = vlprobe.run(CONTROLS, data, cache=tmp_path / "cache", examine=False)
    cases = results.failures(outcome="all")
    for thing in (data, results, cases, vlprobe.compare(results), vlprobe.edits(HOSTILE)):
        page = html_of(thing)
        assert "<img src=x" not in page and "</script" not in page
        assert page.count("<div") == page.count("</div>")
        assert len(page) < 300_000
    assert "&lt;img src=x onerror" in html_of(cases)


def test_a_missing_picture_is_named_in_a_notebook(tmp_path: Path):
    tiny = make_tiny(tmp_path / "tiny")
    results = vlprobe.run(CONTROLS, tiny, cache=tmp_path / "cache", examine=False)
    for path in [*(tmp_path / "tiny").glob("*.png"), *(tmp_path / "cache").glob("thumbnails/*/*")]:
        path.unlink()
    assert "No picture here: " in html_of(results.failures(CONTROLS[1]))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda cache: vlprobe.load_model("control:rondom"), "Did you mean 'control:random'"),
        (lambda cache: vlprobe.load_dataset("csv:/nope.csv", cache), "does not exist"),
        (lambda cache: vlprobe.run([], "demo", cache=cache), "No model given"),
        (lambda cache: vlprobe.run("control:random", limmit=3, cache=cache), "No setting of a run named 'limmit'"),
        (lambda cache: vlprobe.edits("A dog.", rules="strickt"), "Did you mean 'strict'"),
        (lambda cache: vlprobe.edits(" "), "is empty"),
    ],
)  # fmt: skip
def test_invalid_arguments_give_one_line(tmp_path: Path, call, said: str):
    with pytest.raises((InvalidInput, NotFound), match=said):
        call(tmp_path)


def test_unknown_results_conditions_and_metrics_give_one_line(run_results: Results, tmp_path: Path):
    with pytest.raises(NotFound, match="No stored results named"):
        vlprobe.results(cache=tmp_path)
    with pytest.raises(NotFound, match="Did you mean 'flip'"):
        run_results.failures(kind="flips")
    with pytest.raises(InvalidInput, match="Unknown condition 'colour'"):
        run_results.failures(colour="red")
    with pytest.raises(NotFound, match="No metric named"):
        run_results.value("positiv")
    with pytest.raises(NotFound):
        run_results.failures("demo:nobody")


def test_progress_is_reported_and_can_stop_a_run(tmp_path: Path):
    tiny, reports = make_tiny(tmp_path / "tiny"), []
    vlprobe.run(
        "control:random",
        tiny,
        cache=tmp_path / "a",
        examine=False,
        progress=lambda *said: reports.append(said),
    )
    assert reports[0][0].startswith("Reading") and len(reports) > 3

    def stop(label: str, done: float, total: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vlprobe.run("control:random", tiny, cache=tmp_path / "b", progress=stop)
    assert Store(tmp_path / "b").runs() == []


def test_the_code_of_the_page_on_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    from vlprobe.storage import shipped

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(shipped.SETTING)
    monkeypatch.setattr("vlprobe.storage.store.DEFAULT", tmp_path / "cache")
    make_tiny(tmp_path / "photos")
    (tmp_path / "photos" / "captions.csv").unlink()
    for number, (_, _, *captions) in enumerate(CAPTIONS):
        (tmp_path / "photos" / f"{number}.txt").write_text("\n".join(captions))
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 6
    printed = []
    for _ in range(2):  # as if a notebook is run again from its top, with the same cache
        scope: dict[str, object] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for block in blocks:
                exec(compile(block, str(DOCS), "exec"), scope)
        printed.append(capsys.readouterr().out)
        assert list(scope["watch"].history) == [0, 50, 100]  # type: ignore[attr-defined] - of the page
        assert scope["photos"].items  # type: ignore[attr-defined]
    assert printed[0].startswith("lgip ('demo:softmax', 'demo:sigmoid'")
    assert "flip flip:color" in printed[0]
    assert printed[0] == printed[1]
