"""A report, a case and a selection as files: they match the views, load nothing, and escape all data."""

import csv
import functools
import io
import json
import math
import re
import shlex
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.test_main import rows_of
from tests.conftest import call, case_key_of, make_tiny, question_set_of, tiers
from tests.surfaces.test_site import unpacked
from vlprobe import views
from vlprobe.cli.main import main
from vlprobe.render import numbers
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import annotations, shipped
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.store import Store
from vlprobe.surfaces.report import report, selection
from vlprobe.surfaces.site import pages
from vlprobe.types import Picture, PictureEdit
from vlprobe.views.changes import changed_words
from vlprobe.views.filter import Filter
from vlprobe.views.runs import QuestionSet

SCORECARD = 'aria-label="Scorecard of all models"'
ONE, OTHER = "control:random", "guess"
NASTY = 'A <script>alert(1)</script> "dog" & =cmd is on a bench.'


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text in each kind of element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.words: list[str] = []
        self.texts: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        name = self.tags[-1][0] + self.tags[-1][1].get("type", "") if self.tags else ""
        self.texts[name] = self.texts.get(name, "") + data
        self.words.append(data)

    @property
    def policy(self) -> str:
        return next(given["content"] for _, given in self.tags if given.get("http-equiv"))


def words_of(text: str) -> str:
    return "".join(Page(text).words)


def check_self_contained(text: str, runs: bool = False) -> None:
    """Check that the page loads nothing and runs nothing except a report's script, which its policy names."""
    page = Page(text)
    names = {name for name, _ in page.tags}
    assert not names & {"link", "iframe", "object", "embed", "base", "form"}
    assert ("script" in names) == runs
    pictures = ("data:image/jpeg;base64,", "data:image/webp;base64,")
    given = [entry for _, attributes in page.tags for entry in attributes.items()]
    fetching = ("src", "href", "srcset", "action", "data", "poster")
    fetched = [value for name, value in given if name in fetching]
    assert all(source.startswith((*pictures, "#page=")) for source in fetched), fetched
    assert not [name for name, _ in given if name.startswith("on")]
    assert not re.search(
        r"url\(|@import|javascript:", re.sub(r"data:image/\w+;base64,[\w+/=]+", "", text)
    )
    assert page.policy.startswith("default-src 'none'")
    scripts = re.findall(r"script-src [^;]+", page.policy)
    assert ["sha256" in source and "unsafe" not in source for source in scripts] == [True] * runs


def values(text: str) -> dict[str, dict]:
    """Return the values of the pages of a report."""
    match = re.findall(r'<script id="values" type="application/json">(.*?)</script>', text)
    return unpacked(json.loads(*match))


def static(text: str) -> str:
    """Return the part of a report that needs no script."""
    return text[text.index('<section class="numbers">') : text.index("<footer>")]


@pytest.fixture(scope="module")
def key(compared: Store) -> str:
    return case_key_of(compared)


@pytest.fixture(scope="module")
def question_set(noted: Store, key: str) -> QuestionSet:
    return views.runs.question_set(noted, key)


@functools.cache
def report_text(root: Path, key: str) -> str:
    """Write the report of a question set in a store, cached because it takes seconds."""
    store = Store(root)
    return report.report(views.runs.question_set(store, key))


@pytest.fixture(scope="module")
def noted(compared: Store, key: str, tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(shutil.copytree(compared.root, tmp_path_factory.mktemp("noted") / "cache"))
    annotations.write(store, key, Annotation(0, "x", ("=odd", "<i>"), "Because <b>I</b> say so."))
    return store


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("nasty")
    dataset = make_tiny(folder / "tiny", [{"caption": NASTY, "thing": "=HYPERLINK(0)"}] * 2)
    execute(Request(("control:constant",), dataset, "lgip"), there := Store(folder / "cache"))
    return there


@pytest.mark.parametrize("probe", tiers(["lgip", "visla"], ("lgip",)))
def test_a_report_has_every_number_and_is_self_contained(every_probe: Store, probe: str):
    question_set = question_set_of(every_probe, probe)
    text = report_text(every_probe.root, question_set.key)
    check_self_contained(text, runs=True)
    words = words_of(static(text))
    estimates = views.estimates.estimates(question_set)
    for row in estimates.to_dict("records"):
        unit = numbers.unit_of(views.runs.metrics(probe)[row["metric"]], "cosine")
        if row["n_items"]:
            interval = numbers.interval(row["low"], row["high"], unit)
            value = numbers.number(row["value"], unit) + interval
            assert value + f"n = {row['n_items']:,}" in words
    for run in question_set.runs:
        assert run.key in words
        assert run.note in words


def test_a_report_shows_the_worst_cases_with_pictures_tags_and_notes(
    noted: Store, key: str, question_set: QuestionSet
):
    text = report_text(noted.root, key)
    check_self_contained(text, runs=True)
    tables = values(text)
    flips = [
        name for name in tables if "-explore-" in name and tables[name]["lies"] == "wrong captions"
    ]
    cases = [case for name in flips for case in tables[name]["cases"]]
    for number, model in enumerate(question_set.ordered_models):
        worst, _ = views.cases.failures(question_set, Filter(model), 1, report.CASES)
        worst_texts = {tuple(case["texts"]) for case in cases if case["margins"][number] <= 0}
        assert len(worst) and {tuple(texts) for texts in worst["texts"]} <= worst_texts
    pictures = {case["case"]["frames"][0]["source"] for case in cases}
    for chunk, _, place in (source.partition("/") for source in pictures):
        assert tables[f"pictures-{chunk}"][int(place)].startswith("data:image/webp;base64,")
    words = words_of(static(text))
    assert "Because <b>I</b> say so." in words
    assert "=odd" in words
    assert f"Compared with {OTHER}, picture by picture" in words


def test_a_report_begins_with_the_verdict_its_shares_and_failures_of_different_pictures(
    noted: Store, key: str, question_set: QuestionSet
):
    first, rest = static(report_text(noted.root, key)).split("<h2>Models</h2>")
    assert rest.startswith("<details><summary>")
    articles = first.split("<article>")[1:]
    pictures = [re.findall(r'src="([^"]+)"', article)[0] for article in articles]
    assert 1 < len(pictures) <= report.FAILURES
    assert len(set(pictures)) == len(pictures)
    assert first.count(SCORECARD) == 1 and "<small> control</small>" in first
    (kind, *_) = views.showcase.kinds(question_set)
    kinds = pd.read_parquet(noted.files([key], "cases")[0])["kind"].to_numpy()
    for run in question_set.runs:  # the numbers of the table, counted by case
        margins = pd.read_parquet(noted.files([run.key], "scores")[0])["margin"].to_numpy()
        believed = [margin <= 0 for margin in margins[kinds == kind] if not math.isnan(margin)]
        share = numbers.number(sum(believed) / len(believed), "rate")
        assert f"<b>{share.removesuffix(' %')}</b>" in first


def test_a_report_names_the_page_that_opens_first():
    file = pages.one_file("Title", pages.PAGES, {}, [], "page=compare&kind=foil")
    assert '<main data-start="page=compare&amp;kind=foil">' in file and "dataset.start" in file


def test_a_report_of_one_model_begins_with_its_failures(nasty: Store):
    text = static(report_text(nasty.root, question_set_of(nasty).key))
    first, _ = text.split("<h2>Models</h2>")
    assert "<article>" in first
    assert SCORECARD not in first


def test_a_report_has_the_main_numbers_of_each_type(every_probe: Store):
    question_set = question_set_of(every_probe, "lgip")
    text = static(report_text(every_probe.root, question_set.key))
    table = text[text.index('aria-label="Positive rate by type"') :].partition("</table>")[0]
    estimates = views.estimates.estimates(question_set, "subtype")
    rates = estimates.loc[(estimates["metric"] == "positive_rate") & (estimates["n_items"] > 0)]
    assert len(rates)
    for row in rates.itertuples():
        value = numbers.with_interval(row.value, row.low, row.high, "rate")
        assert f"<td>{value}</td>" in table


def test_a_caption_is_never_an_element(nasty: Store):
    question_set = question_set_of(nasty)
    whole = report_text(nasty.root, question_set.key)
    check_self_contained(whole, runs=True)
    case = report.case_page(question_set, "control:constant", 0)
    check_self_contained(case)
    for text in (static(whole), case):
        assert "<script>alert(1)" in words_of(text)


def test_the_commands_in_a_report_can_be_run(noted: Store, key: str, question_set: QuestionSet):
    text = words_of(report_text(noted.root, key))
    lines = [shlex.split(line) for line in text.splitlines() if line.startswith("vlprobe ")]
    assert [words[1] for words in lines] == ["run", "failures", "failures", "report"]
    options = main.commands["run"].make_context("run", lines[0][2:], resilient_parsing=True).params
    stored = noted.runs()[0]["run"]
    assert (options["datasets"], options["probes"], options["models"]) == (
        (stored["dataset"],),
        (stored["probe"],),
        (OTHER, ONE),
    )
    first, *_ = rows_of(noted.root, *lines[1][1:], "--size", "1")
    worst, _ = views.cases.failures(question_set, Filter(OTHER), 1, 1)
    assert first["id"] == worst["id"].iloc[0]


def test_the_command_writes_a_report_of_the_named_question_set(
    noted: Store, key: str, question_set: QuestionSet, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(
        report, "report", lambda question_set: f"{question_set.store.root} {question_set.key}"
    )
    for words in ([], ["--set", key[:6]], ["--set", "ffff"]):  # newest set, question set, run
        call(noted.root, "report", *words, str(tmp_path / "out.html"))
        assert (tmp_path / "out.html").read_text(encoding="utf-8") == f"{noted.root} {key}"
    for cache, words in ((noted.root, ["--set", "zzz"]), (tmp_path / "none", [])):
        done = call(cache, "report", *words, str(tmp_path / "no.html"), code=1)
        assert done.stderr.startswith(("Error: No", "Error: There are no stored results"))
        assert not (tmp_path / "no.html").exists()


@pytest.mark.parametrize(
    "probe", tiers(["lgip", "rococo", "eqben", "visla", "prsm"], ("rococo", "prsm"))
)
def test_the_page_of_every_kind_of_case_is_self_contained(every_probe: Store, probe: str):
    question_set = question_set_of(every_probe, probe)
    for kind in views.estimates.choices(question_set)["kind"].unique():
        chosen = Filter(ONE, kind, outcome="all")
        row = views.cases.failures(question_set, chosen, 1, 1)[0].iloc[0]
        text = report.case_page(question_set, ONE, int(row["case"]), "control:constant")
        check_self_contained(text)
        words = words_of(text)
        assert row["id"] in words
        assert "control:constant" in words
        assert "Difference" in words
        assert ("<img " in text) == bool(len(row["images"]) or kind == "ranking")


def test_the_command_on_a_case_s_page_finds_the_case(noted: Store, question_set: QuestionSet):
    text = report.case_page(question_set, ONE, 0)
    line = next(line for line in words_of(text).splitlines() if line.startswith("vlprobe failures"))
    wanted = views.rows.questions(question_set, [0])["id"].iloc[0]
    assert wanted in [case["id"] for case in rows_of(noted.root, *shlex.split(line)[1:])]
    assert "Because <b>I</b> say so." in words_of(text)


def test_a_missing_picture_is_a_line(tmp_path: Path):
    store = Store(tmp_path / "cache")
    manifest = execute(
        Request(("control:constant",), make_tiny(tmp_path / "tiny"), "lgip", limit=1), store
    )[0]
    for path in (tmp_path / "tiny").glob("*.png"):
        path.unlink()
    text = report.case_page(
        views.runs.question_set(store, manifest["case_key"]), "control:constant", 0
    )
    assert "0.png is missing or damaged" in text
    assert "<img" not in text


def test_a_selection_has_the_cases_of_the_filter_in_its_order(
    noted: Store, question_set: QuestionSet
):
    chosen = Filter(ONE, outcome="all", other=OTHER, sort="difference")
    table, total = views.cases.failures(question_set, chosen, 1, 10_000)
    rows = list(csv.DictReader(io.StringIO(selection.as_csv(question_set, chosen))))
    selected = json.loads(selection.as_json(question_set, chosen))
    assert selected["total"] == total == len(rows) == len(selected["cases"])
    other = (
        views.rows.answers(question_set, table["case"].tolist())
        .query("model == @OTHER")
        .set_index("case")["margin"]
        .to_dict()
    )
    for expected, row, case in zip(table.to_dict("records"), rows, selected["cases"], strict=True):
        assert row["id"] == case["id"] == expected["id"]
        assert float(row["margin"]) == case["margin"] == pytest.approx(expected["margin"], rel=1e-6)
        assert (
            float(row[f"margin {OTHER}"])
            == case["margins"][OTHER]
            == pytest.approx(other[expected["case"]], rel=1e-6)
        )
        assert case["texts"] == list(expected["texts"]) == [row["text 1"], row["text 2"]]
        assert case["pictures"] == [row["picture 1"]]
    noted_cases = [(case["tags"], case["note"]) for case in selected["cases"] if case["tags"]]
    assert noted_cases in ([], [(["<i>", "=odd"], "Because <b>I</b> say so.")])


def test_a_selection_of_published_choices_has_them_in_words_and_no_path_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(shipped.SETTING)
    store = shipped.StoreAboveShipped(tmp_path, shipped.PUBLISHED_FOLDER)
    published = question_set_of(store, dataset="bundled:SugarCrepe")
    chosen = Filter("published:GPT-4V", "foil", subtype=("swap_obj",))
    rows = list(csv.DictReader(io.StringIO(selection.as_csv(published, chosen))))
    picture = tmp_path / rows[0]["picture 1"]
    picture.parent.mkdir(parents=True)
    picture.touch()
    rows = list(csv.DictReader(io.StringIO(selection.as_csv(published, chosen))))
    assert all(row["picture 1"].startswith("pictures/coco/") for row in rows)
    words = {"-1.0": "chose the wrong caption", "0.0": "right in one order only"}
    choices = [row["choice published:GPT-4V"] for row in rows]
    assert choices == [words[row["margin published:GPT-4V"]] for row in rows]
    assert {*choices} == {*words.values()}
    root, edit = "/käse/", PictureEdit("mix", Path("/käse/b.png"), 0.5, 1)
    assert selection.relative_name("/data/käse/a.png", root) == "/data/käse/a.png"
    mixed = Picture(Path("/käse/a.png"), edit).name
    assert (
        selection.relative_name(mixed, root)
        == Picture(Path("a.png"), replace(edit, partner=Path("b.png"))).name
    )


def test_a_long_selection_is_cut_and_has_the_total(
    noted: Store, question_set: QuestionSet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(selection, "MOST", 3)
    chosen = Filter(ONE, outcome="all")
    selected = json.loads(selection.as_json(question_set, chosen))
    assert len(selected["cases"]) == 3 < selected["total"]


def test_a_spreadsheet_executes_no_cell_of_an_export(nasty: Store):
    question_set = question_set_of(nasty)
    annotations.write(nasty, question_set.key, Annotation(0, "x", ("+odd",), "@note"))
    text = selection.as_csv(question_set, Filter("control:constant", kind="", outcome="all"))
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            if cell and cell[0] in "=+-@\t\r":
                float(cell)
    assert "'=HYPERLINK(0)" in text


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\tx", "\rx"])
def test_a_formula_gets_an_apostrophe_and_a_number_does_not(text: str):
    assert selection.defused(text) == f"'{text}"
    assert selection.defused(-1.5) == -1.5
    assert selection.defused("a=1") == "a=1"


def test_a_selection_names_the_changed_words_of_cases_without_a_rule(every_probe: Store):
    n_compared = 0
    for key in views.runs.question_sets(every_probe)["case_key"]:
        question_set = views.runs.question_set(every_probe, key)
        chosen = Filter("control:constant", kind="", outcome="all")
        table, _ = views.cases.failures(question_set, chosen, 1, 10_000)
        selected = json.loads(selection.as_json(question_set, chosen))["cases"]
        for row, case in zip(table.to_dict("records"), selected, strict=True):
            roles = list(row["roles"])
            expected = row["source"], row["target"]
            is_search = question_set.probe in ("rococo", "prsm", "series")
            if not any(expected) and "different" in roles and not is_search:
                expected = changed_words(row["texts"][0], row["texts"][roles.index("different")])
                n_compared += any(expected)
                assert (case["source"], case["target"]) == expected
            elif any(expected):
                assert (case["source"], case["target"]) == expected
    assert n_compared


def test_an_unknown_margin_is_null_in_json_and_empty_in_csv(every_probe: Store):
    chosen = Filter("control:constant", kind="ranking", outcome="all")
    question_set = question_set_of(every_probe, "prsm")
    selected = json.loads(selection.as_json(question_set, chosen))["cases"]
    rows = list(csv.DictReader(io.StringIO(selection.as_csv(question_set, chosen))))
    unknown = [place for place, case in enumerate(selected) if case["margin"] is None]
    assert unknown
    assert [place for place, row in enumerate(rows) if row["margin"] == ""] == unknown
