"""Captions, tags, names and notes that contain markup are shown unchanged and never run."""

import csv
import html
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.conftest import tiers
from tests.dashboard.test_pages import open_page
from tests.surfaces.test_report import values
from vlprobe import registry, views
from vlprobe.cli.main import main
from vlprobe.datasets import csv as csv_dataset
from vlprobe.errors import VlprobeError
from vlprobe.perturb import lgip, lgip_format, substitution
from vlprobe.runs import request, run
from vlprobe.storage import annotations
from vlprobe.storage.store import Store
from vlprobe.surfaces.report import report, selection

WORDS = [
    "<script>vpevil()</script>",
    "<img src=x onerror=vpevil()>",
    '"><svg/onload=vpevil()>',
    "' onmouseover='vpevil()",
    "[vpevil](javascript:vpevil())",
    "![vpevil](https://example.org/vpevil.png)",
    "**vpevil** $vpevil$ :red[vpevil] `vpevil`",
    "</style><style>*{background:url(//vpevil)}</style>",
    "--><!-- vpevil",
    "{{vpevil}} ${vpevil} %{vpevil} %s",
    "&lt;vpevil&gt; &#60;vpevil&#62;",
    "\u202eliverpv\u202c",
    "vpevil\u2028vpevil\x0bvpevil",
    "\x1b[31mvpevil\x1b[0m",
    "vpevil \U0001f469\u200d\U0001f680 \U0002070e e\u0301",
    "'; DROP TABLE scores; -- vpevil",
]
FORMULAS = ["=vpevil(1)", "+vpevil", "-vpevil", "@vpevil", "=cmd|' /C vpevil'!A0"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store whose captions, tags, file names and notes are all hostile."""
    folder = tmp_path_factory.mktemp("words")
    rows = []
    for number, words in enumerate([*WORDS, *FORMULAS]):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"<b>{number}&'.png")
        caption = (
            f"{words} A red dog is sitting on a bench."
            if words in FORMULAS
            else f"A red dog on a bench {words}"
        )
        rows.append([f"<b>{number}&'.png", caption, words.strip()])
    with (folder / "<i>.csv").open("w", newline="") as handle:
        csv.writer(handle).writerows([["image", "caption", "<u>tag="], *rows])
    store = Store(folder / "cache")
    manifest = run.execute(
        request.Request(("control:random", "control:constant"), f"csv:{folder}/<i>.csv", "lgip"),
        store,
    )
    for number, words in enumerate(WORDS[:12]):
        note = annotations.Annotation(
            number, str(number), (re.sub("[^!-~]", "", words)[:30],), words
        )
        annotations.write(store, manifest[0]["case_key"], note)
    return store


class Page(HTMLParser):
    """A parser that collects what a browser would run on a page: scripts, handlers, addresses."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.inside, self.running, self.texts = "", [], []
        self.feed(text)

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.inside = name
        for key, value in attributes:
            address = key in ("href", "src", "action", "style", "srcdoc") and "vpevil" in (
                value or ""
            )
            if (
                key.startswith("on")
                or (address and not value.startswith("data:"))
                or "vpevil" in key
            ):
                self.running.append(f"<{name} {key}={value}>")
        if name in ("iframe", "object", "embed", "base", "meta") and any(
            "vpevil" in (value or "") for _, value in attributes
        ):
            self.running.append(f"<{name}>")

    def handle_endtag(self, name: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        (
            self.running if self.inside in ("script", "style") and "vpevil" in data else self.texts
        ).append(data)

    def handle_comment(self, data: str) -> None:
        if "vpevil" in data:
            self.running.append(data)


def key_of(store: Store) -> str:
    return store.runs()[0]["case_key"]


def test_the_parser_detects_markup_that_a_browser_would_run():
    for words in WORDS[:4]:
        assert Page(f"<p title='{words}'>{words}</p>").running, words
    assert not Page("".join(html.escape(words) for words in WORDS)).running


def test_a_report_runs_no_markup_in_captions_and_notes(filled):
    text = report.report(views.runs.question_set(filled, key_of(filled)))
    page = Page(text)
    assert page.running == []
    assert any("vpevil" in texts for texts in page.texts)
    shown = 0
    for name, table in values(text).items():
        for entry in table["cases"] if "-explore-" in name else ():
            for drawn in (entry["case"], *entry["models"].values()):
                parts = ("pictures", "captions", "bars", "rest")
                page = Page("".join(drawn.get(part, "") for part in parts))
                assert page.running == []
                shown += any("vpevil" in texts for texts in page.texts)
    assert shown


def test_the_page_of_a_single_case_runs_no_markup(filled):
    for number in range(
        0,
        views.cases.failures(views.runs.question_set(filled, key_of(filled)), every())[1],
        9,
    ):
        question_set = views.runs.question_set(filled, key_of(filled))
        page = Page(report.case_page(question_set, "control:random", number, "control:constant"))
        assert page.running == []


def every(**changes) -> views.filter.Filter:
    return views.filter.Filter.parse(
        **{"model": "control:random", "kind": "", "outcome": "all", "sort": "dataset"} | changes
    )


def test_no_cell_of_a_csv_export_is_a_formula(filled):
    text = selection.as_csv(views.runs.question_set(filled, key_of(filled)), every())
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert any("vpevil" in cell for cell in cells)
    assert any(cell.startswith("'=vpevil") for cell in cells)
    for cell in cells:
        assert cell[:1] not in ("=", "+", "@", "\t", "\r"), cell
        assert cell[:1] != "-" or re.fullmatch(r"-[\d.e-]+", cell), cell


UNSEEN = {
    "BOM": "\ufeff",
    "NUL": "\0",
    "NBSP": "\xa0",
    "zero width": "\u200b",
    "two": " \u200b\ufeff",
}


@pytest.mark.parametrize("what", UNSEEN)
def test_a_formula_after_invisible_characters_is_defused(what: str):
    for formula in FORMULAS:
        assert selection.defused(UNSEEN[what] + formula) == f"'{UNSEEN[what]}{formula}"
        assert selection.defused(f"a;{UNSEEN[what]}{formula}") == f"a;'{UNSEEN[what]}{formula}"
    assert selection.defused(f"{UNSEEN[what]}a dog") == f"{UNSEEN[what]}a dog"
    assert selection.defused(UNSEEN[what] * 1_000_000) == UNSEEN[what] * 1_000_000  # in linear time


@pytest.mark.parametrize("divider", [",", ";", "\t"])
@pytest.mark.parametrize(
    "words", [*FORMULAS, " =vpevil(1)", "a;=vpevil(1)", 'a";=vpevil(1)', "a\t+vpevil", "a\n@vpevil"]
)
def test_no_cell_is_a_formula_whichever_delimiter_a_spreadsheet_uses(words: str, divider: str):
    buffer = io.StringIO()
    csv.writer(buffer).writerow([selection.defused(words), "1"])
    cells = [
        cell.strip(' "') for line in buffer.getvalue().splitlines() for cell in line.split(divider)
    ]
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@")]


def test_command_output_contains_no_formulas_and_no_terminal_control_characters(filled):
    key = filled.runs()[0]["key"]
    words = [
        "--cache",
        str(filled.root),
        "failures",
        key,
        "--kind",
        "flip",
        "--outcome",
        "all",
        "--size",
        "1000",
    ]
    table = CliRunner().invoke(main, words, catch_exceptions=False).stdout
    assert "vpevil" in table
    assert all(line.isprintable() for line in table.split("\n"))
    cells = csv.reader(
        io.StringIO(
            CliRunner().invoke(main, [*words, "--format", "csv"], catch_exceptions=False).stdout
        )
    )
    assert not [cell for row in cells for cell in row if cell[:1] in ("=", "+", "@")]
    rows = json.loads(
        CliRunner().invoke(main, [*words, "--format", "json"], catch_exceptions=False).stdout
    )
    assert {row["original"] for row in rows} >= {f"A red dog on a bench {WORDS[0]}"}


def test_every_caption_is_listed_unchanged_and_found_by_a_search(filled):
    table = views.cases.failures(
        views.runs.question_set(filled, key_of(filled)), every(), 1, 10_000
    )[0]
    originals = {texts[0] for texts in table["texts"]}
    assert {f"A red dog on a bench {words}" for words in WORDS} <= originals
    for words in WORDS:
        table_of_words = views.cases.failures(
            views.runs.question_set(filled, key_of(filled)),
            every(contains=words if '"' in words else f'"{words}"'),
            1,
            10_000,
        )[0]
        assert {texts[0] for texts in table_of_words["texts"]} == {f"A red dog on a bench {words}"}
        tagged = views.cases.failures(
            views.runs.question_set(filled, key_of(filled)), every(tag=f"<u>tag=={words}"), 1, 1
        )
        assert tagged[1] == 0 or "vpevil" in tagged[0]["texts"].iloc[0][0]


LINKS = {
    "failures": {
        "page": "9" * 50,
        "model": "<script>vpevil()</script>",
        "kind": "'; DROP TABLE x; --",
        "sort": "margin; DROP",
        "words": "a" * 100_000,
        "tag": "x' OR '1'='1",
        "tagged": "\x00",
        "area": "[[1e999,NaN],[2],[]]",
        "case": "-99999999999999999999",
        "other": "../../etc",
        "outcome": "\u202e",
    },
    "overview": {
        "set": "../../../../etc/passwd",
        "unit": "volts",
        "average": "<b>",
        "job": "../../x",
        "up": "\x00",
    },
    "breakdown": {"metric": "__class__", "by": 'tag:x" OR 1=1', "kind": "%00"},
    "run": {"job": "<script>vpevil()</script>" * 100},
    "compare": {"base": "'", "other": "\x1b[31m", "family": "<i>"},
}


@pytest.mark.parametrize("page", tiers(LINKS, ("failures",)))
def test_a_malicious_link_runs_nothing_on_the_page(filled, monkeypatch, page: str):
    at = open_page(monkeypatch, filled, page, **LINKS[page])
    bodies = [element.proto.body for element in at.get("html")]
    assert [markup for body in bodies for markup in Page(body).running] == []
    written = [*at.markdown, *at.error, *at.info, *at.warning, *at.caption]
    for value in (element.value for element in written):
        assert not re.search(
            r"(?<!\\)\]\(javascript|(?<!\\)!\[vpevil|(?<!\\)\*\*vpevil|(?<!\\)<(script|img|svg)",
            value,
        ), value


text = st.text(max_size=80)


@settings(max_examples=30, deadline=None)
@given(text.filter(str.strip), st.sampled_from(["strict", "paper"]))
def test_any_caption_can_be_edited_and_no_edit_equals_it(caption: str, rules: str):
    made = lgip.edits((caption,), "item", rules=rules, seed=1)
    assert all(isinstance(new, str) and new != caption for new, _ in made.edits[0])
    for altered in (
        substitution.alter([caption], "item", "danger")[0],
        substitution.delete([caption], "item", "random")[0],
    ):
        assert [one is None or one.text != caption for one in altered] == [True]


@settings(max_examples=30, deadline=None)
@given(st.lists(text, max_size=4))
def test_random_lines_are_read_as_edits_or_refused_in_one_line(lines: list[str]):
    try:
        list(lgip_format.read(lines, "x"))
    except VlprobeError as error:
        assert str(error).isprintable()


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | text,
        lambda inner: st.lists(inner) | st.dictionaries(text, inner),
    )
)
def test_random_json_is_read_as_a_dataset_or_refused_in_one_line(tmp_path_factory, value: object):
    folder = tmp_path_factory.mktemp("json")
    (folder / "a.json").write_text(json.dumps(value))
    for prefix in ("coco", "triplets", "pairs", "rococo"):
        try:
            registry.load_dataset(f"{prefix}:{folder / 'a.json'}", folder / "cache")
        except VlprobeError as error:
            assert str(error).isprintable()


@settings(max_examples=30, deadline=None)
@given(st.text(alphabet=st.sampled_from('",;|\t\n\r=ab\0\ufeff\u2028'), max_size=60))
def test_random_csv_rows_are_read_as_a_dataset_or_refused_in_one_line(tmp_path_factory, rows: str):
    path: Path = tmp_path_factory.mktemp("table") / "a.csv"
    path.write_bytes(f"image,caption\n{rows}".encode())
    try:
        assert all(item.image for item in csv_dataset.read_items(path))
    except VlprobeError as error:
        assert str(error).isprintable()


@settings(max_examples=25, deadline=None)
@given(
    kind=text,
    subtype=text,
    rule=text,
    tag=text,
    contains=text,
    outcome=text,
    sort=text,
    tagged=text,
)
def test_random_filters_list_cases_or_are_refused_in_one_line(filled, **chosen: str):
    for filters in (chosen, chosen | {"outcome": "all", "sort": "worst"}):
        try:
            assert (
                views.cases.failures(
                    views.runs.question_set(filled, key_of(filled)),
                    views.filter.Filter.parse(model="control:random", **filters),
                )[1]
                >= 0
            )
        except VlprobeError as error:
            assert str(error).isprintable()
