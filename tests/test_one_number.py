"""Pages, report, slides, site and commands show the same share of wrong captions that fool a model. The tests count it
from the stored margins.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import call, case_key_of, tiers
from tests.dashboard.test_pages import bodies, open_page, words
from tests.dashboard.walls import component_values, figure_of, marks_of, wall
from tests.surfaces.test_site import PIXEL, tables
from vlprobe import views
from vlprobe.render.words import AVERAGED, model_name
from vlprobe.storage import shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store
from vlprobe.surfaces.notebook import interface
from vlprobe.surfaces.report import report
from vlprobe.surfaces.site import bundle, subject
from vlprobe.surfaces.site.subject import Limits

KEY = "caca69741f742f8b"  # LGIP on captions of drawn scenes
# a model's display name, per cent of wrong captions that fool it
Shares = Iterator[tuple[str, float]]
PERCENT = r"([\d.]+) %"


def counted() -> dict[str, float]:
    """Count the percentage of flips that fool each model from the stored margins."""
    store = Store(shipped.FOLDER)
    shares = {}
    for manifest in store.runs():
        if manifest["case_key"] == KEY:
            scores = store.run(manifest["key"]).table("scores", ["kind", "margin"]).to_pandas()
            margins = scores.loc[scores["kind"] == "flip", "margin"].to_numpy()
            shares[manifest["run"]["model"]] = 100 * float(np.mean(margins <= 0))
    return shares


COUNTED = counted()
MODELS = list(COUNTED)
NAMES = {model_name(model): model for model in MODELS}
NAME = "|".join(NAMES)
CLIP, EQSIM, WEAK = "demo:softmax", "demo:eqsim", "demo:weak"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one folder for all tests, so that pages and commands reuse each other's results."""
    return tmp_path_factory.mktemp("one_number") / "cache"


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch, root: Path) -> StoreAboveShipped:
    """Return a store with an empty cache above the bundled results."""
    monkeypatch.delenv(shipped.SETTING)
    return StoreAboveShipped(root, shipped.FOLDER)


def rejected(text: str) -> float:
    return 100 - float(text.removesuffix(" %"))


def table_row(page: str, label: str, metric: str = "Positive rate (PR)") -> Shares:
    """Yield each model and value in a metric's row of the HTML table with this label."""
    table = page[page.index(f'aria-label="{label}"') :].replace("<wbr>", "")
    head, row = (
        re.search(pattern, table, re.DOTALL)
        for pattern in ("<thead>.*?</thead>", rf">{re.escape(metric)}</span>.*?</tr>")
    )
    assert head and row
    names = re.findall(r"([\w: -]+)(?:<br><small>baseline</small>)?</th>", head.group())
    values = re.findall(rf'class="value">{PERCENT}', row.group())
    yield from zip([name.strip() for name in names[1:]], map(rejected, values), strict=True)


def home(show_page: Callable, store: Store) -> Shares:
    ((_, figures),) = component_values(show_page(store, "home", set=KEY), "figures")
    for model in figures["strip"]["models"]:
        yield model["name"], float(model["value"].removesuffix(" %"))


def explore(show_page: Callable, store: Store) -> Shares:
    for model in (CLIP, EQSIM):
        at = show_page(store, "explore", set=KEY, model=model, kind="flip")
        yield model, float(wall(at)["note"].partition(" %")[0])


def compare(show_page: Callable, store: Store) -> Shares:
    query = {"set": KEY, "kind": "flip", "model": CLIP, "with": f"{EQSIM}|{WEAK}"}
    at = show_page(store, "compare", **query, open="measured")
    for (subtype, model), mark in marks_of(figure_of(at, "forest")).items():
        if not subtype:
            share, base_share = re.findall(PERCENT, mark["text"].rpartition("(")[2])
            yield from ((model, float(share)), (CLIP, float(base_share)))


def present(show_page: Callable, store: Store) -> Shares:
    ((_, talk),) = component_values(show_page(store, "present", set=KEY), "slides")
    (slide,) = [slide for slide in talk["slides"] if slide["id"] == "better"]
    for bar in slide["bars"]:
        if bar["name"] != "No picture":  # the best guess from texts only is not a model
            yield bar["name"], float(bar["text"].removesuffix(" %"))


def trade_off(show_page: Callable, store: Store) -> Shares:
    at = show_page(store, "tradeoff", set=KEY, open="numbers")
    for (model,), mark in marks_of(figure_of(at, "tradeoff")).items():
        yield model, rejected(re.findall(f"Positive rate {PERCENT}", mark["text"])[0])
    yield from table_row(bodies(at), "Headline numbers of each model")
    for name, share in re.findall(rf"({NAME}) rejects {PERCENT} of the wrong captions", words(at)):
        yield name, rejected(share)


def breakdown(show_page: Callable, store: Store) -> Shares:
    at = show_page(store, "breakdown", set=KEY, metric="positive_rate")
    yield from table_row(bodies(at), "Headline numbers of each model")


def of_two_models(store: Store) -> views.runs.QuestionSet:
    """Return the bundled answers of two models: writing files for all six takes three times as long."""
    question_set = views.runs.question_set(store, KEY)
    runs = [question_set.run(model) for model in (CLIP, EQSIM)]
    return replace(question_set, runs=tuple(runs))


def report_file(show_page: Callable, store: Store) -> Shares:
    page = report.report(of_two_models(store))
    yield from table_row(page, "Headline numbers of each model")
    yield from table_row(page, "Each model against the baseline")
    winner = re.findall(rf"<h2>({NAME}) is fooled less often", page)
    sentence = rf"It is fooled by {PERCENT} of the wrong captions, ({NAME}) by {PERCENT}"
    ((share, base, base_share),) = re.findall(sentence, page)
    yield from ((*winner, float(share)), (base, float(base_share)))


def site(show_page: Callable, store: Store) -> Shares:
    with pytest.MonkeyPatch.context() as patch:  # drawing the pictures would take most of the time
        patch.setattr(subject, "addresses", lambda root, names: dict.fromkeys(names, PIXEL))
        values = tables(bundle.site([of_two_models(store)], Limits(n_cases=3)).files)
    for name, page in values.items():
        if name.endswith("-index-0"):
            for model in page["figures"]["strip"]["models"]:
                yield model["name"], float(model["value"].removesuffix(" %"))
        if "-tradeoff-" in name:
            texts = [trace.get("text", []) for trace in page["figure"]["light"]["data"]]
            pattern = rf"({NAME})<br>Positive rate {PERCENT}"
            marks = re.findall(pattern, "\n".join(map("\n".join, texts)))
            rows = re.findall(rf">({NAME})</a></th><td>{PERCENT}", page["numbers"])
            assert marks and sorted(marks) == sorted(rows)
            yield from ((name, rejected(value)) for name, value in marks)


def show_command(show_page: Callable, store: Store) -> Shares:
    run = views.runs.question_set(store, KEY).run(CLIP).key
    for row in json.loads(call(store.root, "show", run, "--format", "json").stdout):
        if row["metric"] == "positive_rate":
            yield row["model"], 100 - 100 * row["value"]
    card = call(store.root, "show", run, "--format", "model-index").stdout
    yield CLIP, 100 - 100 * float(re.findall(r"type: positive_rate\n\s+value: ([\d.]+)", card)[0])


def compare_command(show_page: Callable, store: Store) -> Shares:
    words_ = ("compare", CLIP, EQSIM, "--probe", "lgip", "--format", "json")
    for row in json.loads(call(store.root, *words_).stdout):
        if row["metric"] == "positive_rate":
            yield from (
                (row["baseline"], 100 - 100 * row["base"]),
                (row["model"], 100 - 100 * row["value"]),
            )


def python(show_page: Callable, store: Store) -> Shares:
    results = interface.results(KEY, store.root)
    yield from ((model, 100 - 100 * results.value("positive_rate", model)) for model in MODELS)


@pytest.mark.parametrize(
    "surface",
    [
        home, explore, compare, present, trade_off, breakdown, show_command, compare_command, python,
        *(pytest.param(surface, marks=pytest.mark.full) for surface in (site, report_file)),  # 5 s
    ],
    ids=lambda surface: surface.__name__,
)  # fmt: skip
def test_the_share_of_wrong_captions_that_fool_a_model_is_the_same_everywhere(
    surface, bundled: StoreAboveShipped, monkeypatch: pytest.MonkeyPatch
):
    shares = list(surface(partial(open_page, monkeypatch), bundled))
    assert len({NAMES.get(name, name) for name, _ in shares}) > 1
    for name, share in shares:
        assert share == pytest.approx(COUNTED[NAMES.get(name, name)], abs=0.05 + 1e-9), (
            name,
            share,
        )


@pytest.mark.parametrize(
    ("page", "fold"),
    tiers(
        [("tradeoff", "numbers"), ("breakdown", ""), ("compare", "measured")],
        [("compare", "measured")],
    ),
)
def test_the_paper_s_averaging_can_be_chosen_and_is_named_next_to_its_number(
    page: str, fold: str, bundled: StoreAboveShipped, monkeypatch: pytest.MonkeyPatch
):
    run = views.runs.question_set(bundled, KEY).run(EQSIM).key
    shown = call(bundled.root, "show", run, "--averaging", "macro", "--format", "json").stdout
    (row,) = [
        row
        for row in json.loads(shown)
        if (row["model"], row["metric"]) == (EQSIM, "positive_rate")
    ]
    assert row["averaging"] == "macro" and f"{100 * row['value']:.1f}" == "89.8"
    texts = {}
    for average in ("macro", "micro"):
        at = open_page(monkeypatch, bundled, page, set=KEY, average=average, open=fold, kind="flip")
        texts[average] = words(at) + " ".join(caption.value for caption in at.caption)
    assert AVERAGED["macro"] in texts["macro"] and AVERAGED["micro"] not in texts["macro"]
    assert AVERAGED["micro"] in texts["micro"] and AVERAGED["macro"] not in texts["micro"]
    if page == "compare":  # on the other pages, this number also appears as the end of an interval
        assert "89.8 %" in texts["macro"] and "89.8 %" not in texts["micro"]


@pytest.mark.parametrize(
    ("probe", "metric"),
    tiers(
        [("eqben", "group_score"), ("visla", "i2t_accuracy"), ("prsm", "prsm_local_100")],
        [("eqben", "group_score")],
    ),
)
def test_home_and_show_agree_for_every_probe_with_a_comparable_metric(
    probe: str, metric: str, bundled: StoreAboveShipped, monkeypatch: pytest.MonkeyPatch
):
    key = case_key_of(bundled, probe)
    run = views.runs.question_set(bundled, key).runs[0].key
    rows = json.loads(call(bundled.root, "show", run, "--format", "json").stdout)
    values = {row["model"]: 100 * row["value"] for row in rows if row["metric"] == metric}
    ((_, figures),) = component_values(open_page(monkeypatch, bundled, "home", set=key), "figures")
    for model in figures["strip"]["models"]:
        assert rejected(model["value"]) == pytest.approx(values[model["stored"]], abs=0.05 + 1e-9)


def test_the_metric_that_a_kind_declares_as_its_accuracy_is_the_share_that_does_not_fool(
    bundled: StoreAboveShipped,
):
    declared = 0
    for row in views.runs.question_set_rows(bundled):
        question_set = views.runs.question_set(bundled, row.case_key)
        values = views.estimates.estimates(question_set).set_index(["metric", "model"])["value"]
        for kind in views.runs.list_kinds(bundled, row.case_key, row.probe):
            if accuracy := question_set.presentation.kind(kind).accuracy:
                shares = views.paired_tests.model_shares(question_set, kind)
                right = {share.model: 1 - share.share for share in shares}
                assert values[accuracy].to_dict() == pytest.approx(right)
                declared += 1
    assert declared == 6
