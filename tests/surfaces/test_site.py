"""A site: its numbers match the stored answers, its text is escaped, and private data are not included."""

import base64
import gzip
import html
import itertools
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from huggingface_hub import SpaceCard

from tests.conftest import call, question_set_of, store_again
from vlprobe import registry, views
from vlprobe.case.card import case_card
from vlprobe.datasets.credits import credits_of
from vlprobe.render import home
from vlprobe.render.findings import verdict
from vlprobe.render.words import presentations
from vlprobe.storage import annotations, shipped
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store
from vlprobe.surfaces.site import bundle, explore, pages, subject
from vlprobe.surfaces.site.explore import credit
from vlprobe.surfaces.site.subject import Limits
from vlprobe.views.filter import Filter
from vlprobe.views.runs import QuestionSet

KEY = "f48bdd995cda2f2a"  # pairs of drawn scenes
PIXEL = "data:image/webp;base64,AAAA"
NOTE = "Seen by Anna"


def tables(files: Mapping[str, bytes] | Path) -> dict[str, dict]:
    """Return the values of a site's scripts by name, read from their assignments as by a browser."""
    if isinstance(files, Path):
        files = {f"data/{path.name}": path.read_bytes() for path in files.glob("data/*.js")}
    values = {}
    for path, content in files.items():
        if path.startswith("data/"):
            name, text = content.decode().removesuffix(";\n").split("] = ", 1)
            values[json.loads(name.removeprefix("window.vlprobe.tables["))] = json.loads(text)
    return unpacked(values)


def unpacked(values: Mapping[str, str | list[str]]) -> dict:
    """Decode the tables of a site or a report: JSON in gzip in base64, pictures unchanged."""
    return {
        name: json.loads(gzip.decompress(base64.b64decode(table)))
        if isinstance(table, str)
        else table
        for name, table in values.items()
        if name != pages.PLOTLY  # a script
    }


def all_text(files: Mapping[str, bytes] | Path) -> str:
    """Return all values of a site and its other files as text."""
    if isinstance(files, Path):
        files = {str(path): path.read_bytes() for path in files.rglob("*") if path.is_file()}
    data = {
        f"data/{Path(path).name}": content for path, content in files.items() if "data/" in path
    }
    return json.dumps(tables(data), ensure_ascii=False) + "".join(
        content.decode() for path, content in files.items() if not path.endswith("plotly.js")
    )


def few(folder: Path) -> QuestionSet:
    """Return the bundled answers of three models, in a store that writes to a folder."""
    question_set = views.runs.question_set(StoreAboveShipped(folder, shipped.FOLDER), KEY)
    runs = [question_set.run(model) for model in question_set.ordered_models[:3]]
    return replace(question_set, runs=tuple(runs))


@pytest.fixture(scope="module")
def scenes_site(tmp_path_factory) -> bundle.Site:
    """Return a small site of the bundled answers on pairs of drawn scenes."""
    question_set = few(tmp_path_factory.mktemp("drawn"))
    narrow = Filter.parse(question_set.models[0], "pair", subtype="color", outcome="all")
    numbers, _, _ = views.cases.passing(question_set, narrow)
    views.named_slices.save(question_set, "Colors", {}, numbers)
    with pytest.MonkeyPatch.context() as patch:  # drawing the scenes would take longest
        patch.setattr(subject, "addresses", lambda root, names: dict.fromkeys(names, PIXEL))
        return bundle.site([question_set], Limits(n_cases=3))


@pytest.fixture
def cache(store_copy: Store):
    """Return a cache with LGIP answers of two models on pictures that vlprobe did not draw; one case has a tag."""
    key = store_copy.runs()[0]["case_key"]
    question_set = views.runs.question_set(store_copy, key)
    row = views.rows.questions(question_set, [0]).iloc[0]
    annotations.write(store_copy, key, Annotation(0, row["id"], ("ambiguous",), NOTE))
    return store_copy.root


def answers() -> list[pd.DataFrame]:
    """Read the stored answers of three models in page order from the files, by the site's name of each case."""
    store = Store(shipped.FOLDER)
    manifests = [one for one in store.runs() if one["case_key"] == KEY]
    manifests.sort(key=lambda one: registry.model_order(one["run"]["model"]))
    scores = [store.run(one["key"]).table("scores").to_pandas() for one in manifests[:3]]
    return [table.set_index("c" + table["case"].astype(str)) for table in scores]


def test_every_margin_of_a_site_is_stored_and_counts_are_of_the_whole_question_set(scenes_site):
    explore = tables(scenes_site.files)["f48bdd99-explore-0"]
    for number, scores in enumerate(answers()):
        margins = scores["margin"].to_dict()
        every = [(entry["margins"][number], entry["case"]["id"]) for entry in explore["cases"]]
        assert all(np.float32(margin) == np.float32(margins[case_id]) for margin, case_id in every)
        n_fooled = int(np.count_nonzero(scores["margin"] <= 0))
        assert explore["lines"][f"m{number}"][":fooled"][2] == n_fooled
        assert np.float32(min(every)[0]) == np.float32(min(margins.values()))
        assert sum(margin <= 0 for margin, _ in every) >= min(3, n_fooled)
        assert dict(explore["orders"][f"m{number}"])["dataset"] == "In the dataset's order"


def test_columns_of_compare_have_the_cases_that_fool_only_one_model(scenes_site):
    values = tables(scenes_site.files)
    compare, stored_answers = values["f48bdd99-compare-0"], answers()
    assert compare["titles"][0]
    for one, other in itertools.permutations(range(3), 2):
        believed = stored_answers[one]["margin"].le(0) & stored_answers[other]["margin"].gt(0)
        count, places, _ = compare["columns"][f"m{one}>m{other}:0"]
        assert count == believed.sum()
        ids = [compare["cards"][place]["id"] for place in places]
        assert ids and all(believed[case_id] for case_id in ids)
    everyone = {entry["case"]["id"] for entry in values["f48bdd99-explore-0"]["cases"]}
    assert {card["id"] for card in compare["cards"]} <= everyone
    assert {case["id"] for case in values["f48bdd99-index-0"]["hero"]["cases"]} <= everyone
    contests = [contest["models"] for contest in compare["contests"]]
    assert contests == [["m0", "m1", "m2"], ["m1", "m0", "m2"], ["m2", "m0", "m1"]]


def test_a_named_slice_has_its_cases_on_explore_and_a_row_on_compare(scenes_site):
    values = tables(scenes_site.files)
    explore, compare = values["f48bdd99-explore-0"], values["f48bdd99-compare-0"]
    labels = {label: key for key, label in explore["types"]}
    assert labels["Colors (slice)"] == "slice:Colors"
    by_type, by_slice = (
        {entry["case"]["id"] for entry in explore["cases"] if key in entry["types"]}
        for key in (labels["Wrong color"], "slice:Colors")
    )
    assert by_slice == by_type != set()
    for lines in explore["lines"].values():  # counts of the whole question set
        for outcome, _ in explore["outcomes"]:
            assert lines[f"slice:Colors:{outcome}"] == lines[f"{labels['Wrong color']}:{outcome}"]
    row = compare["titles"].index("“Colors (slice)”")
    assert all(f"m1:{row}" in contest["rows"] for contest in compare["contests"][:1])
    of_type = compare["titles"].index("a wrong color")
    assert compare["columns"][f"m0>m1:{row}"] == compare["columns"][f"m0>m1:{of_type}"]


def test_home_counts_the_omitted_models_and_links_to_a_page_with_all(
    scenes_site, tmp_path, monkeypatch
):
    index = tables(scenes_site.files)["f48bdd99-index-0"]
    assert index["figures"]["strip"]["more"] == ""  # all three models are shown
    monkeypatch.setattr(subject, "addresses", lambda root, names: dict.fromkeys(names, PIXEL))
    monkeypatch.setattr(home, "MOST_MODELS", 1)
    three = few(tmp_path)
    two = replace(three, runs=three.runs[:2])
    values = tables(bundle.site([two], Limits(n_cases=3)).files)
    strip = values["f48bdd99-index-0"]["figures"]["strip"]
    assert len(strip["models"]) == 1 and strip["more"] == "and one more model"
    name, _, _ = strip["more_href"].partition(".html#set=f48bdd99&")
    assert {mark["key"] for mark in values["index"]["sets"][0]["models"]} == {"m0", "m1"}
    assert f"f48bdd99-{name}-0" in values


def test_a_verdict_on_a_site_matches_that_of_the_dashboard(scenes_site, tmp_path):
    compare = tables(scenes_site.files)["f48bdd99-compare-0"]
    question_set = few(tmp_path)
    first, second, third = question_set.ordered_models
    comparison = views.paired_tests.compare_models(question_set, (second, first, third), "pair")
    finding = verdict(comparison, presentations()["eqben"].kind("pair"))
    contest = compare["contests"][1]
    assert contest["heading"].replace("\u00a0", " ") == finding.heading
    assert contest["detail"].replace("\u00a0", " ") == finding.detail


def test_a_picture_is_credited_if_its_dataset_names_license_and_author():
    assert credit({"Licence": "CC BY 2.0", "author": "Anna", "colour": "red"}) == (
        "License: CC BY 2.0 · Author: Anna"
    )
    assert credit({"author": "", "colour": "red"}) == ""


def test_licenses_of_coco_are_read_from_its_annotations(tmp_path):
    (tmp_path / "annotations").mkdir()
    file = tmp_path / "annotations" / "captions_val2017.json"
    name = f"coco:{tmp_path}"
    licences = [{"id": 4, "name": "Attribution", "url": "by/2.0"}, {"id": [], "name": "no id"}, 5]
    images = [
        {"file_name": "1.jpg", "license": 4, "flickr_url": "farm/1"},
        {"file_name": "2.jpg", "license": 9},
        {"file_name": "3.jpg", "license": {}},
    ]
    file.write_text(json.dumps({"licenses": licences, "images": images}))
    (picture, credit), *others = credits_of(name).items()
    assert (picture, others) == ("1.jpg", [])
    assert (credit.page, credit.license, credit.license_url) == ("farm/1", "Attribution", "by/2.0")
    assert credit.text == "License: Attribution by/2.0 · Source: farm/1"
    for damaged in ("[]", "{", '{"images": 3}'):
        file.write_text(damaged)
        assert credits_of(name) == {}
    assert (
        credits_of("demo") == {} and credits_of("coco:/nowhere") == {} and credits_of("coco:") == {}
    )


def test_a_site_has_all_files_that_its_pages_name_and_no_markup_from_data(scenes_site):
    for page in (page for page in pages.PAGES if page.name != "tradeoff"):  # eqben has no trade-off
        text = scenes_site.files[f"{page.name}.html"].decode()
        named = [part.split('"')[0] for part in text.replace("href=", "src=").split('src="')[1:]]
        assert named and {name.partition("#")[0] for name in named} <= set(scenes_site.files)
        assert "http:" not in text.replace("http-equiv", "") and "https:" not in text
        assert (
            pages.POLICY in html.unescape(text)
            and "unsafe" not in pages.POLICY.partition("style-src-attr")[0]
        )
    for path, content in scenes_site.files.items():
        if path.startswith("data/"):
            assert not set(b"<>&") & set(content), path
    assert scenes_site.n_bytes == sum(map(len, scenes_site.files.values()))


def test_the_trade_off_of_pairs_links_to_pairs_and_not_to_wrong_captions(scenes_site):
    text = json.dumps(tables(scenes_site.files)["f48bdd99-tradeoff-0"])
    assert "near-identical pairs that fool this model" in text
    assert "wrong captions that fool this model" not in text


def test_a_component_becomes_a_function_with_the_code_of_its_file():
    for page in pages.PAGES:
        for name in page.components:
            text = (pages.COMPONENTS / f"{name}.js").read_text("utf-8")
            script = pages.component(name)
            assert text.partition("export default")[0].strip() in script
            assert "export " not in script
    for module in ("import a from 'b';\nexport default function () {}", "const a = 1;"):
        with pytest.raises(ValueError, match="no imports"):
            pages.classic(module)


def test_pictures_and_notes_are_published_only_with_their_options_and_paths_never(cache, tmp_path):
    output = call(cache, "site", str(tmp_path / "closed"), "--cases", "5", "--space").stderr
    assert "pictures are left out" in output
    everything = all_text(tmp_path / "closed")
    assert "data:image/webp" not in everything and NOTE not in everything
    assert "ambiguous" not in everything and "is not part of this site" in everything
    for private in (
        str(cache),
        str(cache.parent),
        str(Path.home()),
        str(Store(cache).runs()[0]["run"]["dataset"]),
    ):
        assert private not in everything
    card = SpaceCard.load(tmp_path / "closed" / "README.md")
    assert card.data.sdk == "static" and "6 pictures" in card.text
    assert {card.data.app_file, ".nojekyll"} <= {
        path.name for path in (tmp_path / "closed").iterdir()
    }
    words = ["site", str(tmp_path / "open"), "--set", Store(cache).runs()[0]["key"]]
    assert "are left out" not in call(cache, *words, "--with-notes", "--i-may-publish").stderr
    open_tables = tables(tmp_path / "open")
    published = [values for name, values in open_tables.items() if "-explore-" in name]
    entries = [entry for values in published for entry in values["cases"]]
    assert any(f">{NOTE}<" in entry["case"]["rest"] for entry in entries)
    assert open_tables["pictures-0"][0].startswith("data:image/webp;base64,")


def test_two_model_files_get_different_names_without_their_folders(store_copy: Store):
    manifest = store_copy.runs()[0]
    for letter in "ab":
        model = f"hf:/srv/secret/{letter}/own.pt"
        store_again(store_copy, manifest, letter * 16, model=model, dataset="csv:/srv/secret/d.csv")
    question_set = views.runs.question_set(store_copy, manifest["case_key"])
    runs = tuple(question_set.run(f"hf:/srv/secret/{letter}/own.pt") for letter in "ab")
    files = bundle.site([replace(question_set, runs=runs)], Limits(n_cases=1)).files
    names = [mark["name"] for mark in tables(files)["index"]["sets"][0]["models"]]
    assert set(names) == {"own.pt", "own.pt (2)"}
    assert "secret" not in all_text(files) and "/srv" not in all_text(files)


@pytest.mark.full  # six models, seven seconds
def test_a_dry_run_prints_the_size_of_a_site_of_bundled_results(tmp_path, monkeypatch):
    monkeypatch.setenv(shipped.SETTING, str(shipped.FOLDER))
    named = ["--set", "5d36", "--cases", "1", "--dry-run"]
    assert "pictures" in call(tmp_path / "empty", "site", str(tmp_path / "site"), *named).stderr


def test_a_dry_run_prints_the_size_and_a_failed_site_leaves_no_files(cache, tmp_path, monkeypatch):
    goal, sites = tmp_path / "site", []
    write = bundle.site
    monkeypatch.setattr(bundle, "site", lambda *words: sites.append(write(*words)) or sites[-1])
    output = call(cache, "site", str(goal), "--cases", "1", "--dry-run").stderr
    assert "MB" in output and not goal.exists()
    monkeypatch.setattr(bundle, "site", lambda *words: sites[0])
    for words, line in (
        ([str(goal), "--max-size", "0.001"], "--max-size"),
        ([str(goal), "--set", "0000"], "0000"),
        ([str(goal), "--set", ""], "Error"),
        ([str(cache)], "already exists"),
        ([str(tmp_path / "no" / "site")], "is not a folder"),
    ):
        answer = call(cache, "site", *words, "--cases", "1", code=1)
        assert line in answer.stderr.splitlines()[-1] and "Traceback" not in answer.output
        assert answer.stderr.splitlines()[-1].startswith("Error: ")
    assert call(tmp_path / "empty", "site", str(goal), code=1).stderr.count("\n") == 1
    usage = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
        output = call(cache, "site", str(goal), "--cases", "1", code=1).stderr
        assert "Not enough disk space" in output
    written = []

    def full(path: Path, content: bytes) -> None:
        written.append(path)
        if len(written) > 3:
            raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert "No space left" in call(cache, "site", str(goal), "--cases", "1", code=1).stderr
    assert len(written) == 4 and {path.name for path in tmp_path.iterdir()} <= {"cache", "empty"}


def test_a_rewording_is_measured_in_the_spread_of_each_model(tmp_path):
    """Check the units; the site once used the first model's standard deviation for every model."""
    store = StoreAboveShipped(tmp_path, shipped.FOLDER)
    question_set = question_set_of(store, "lgip", "demo")
    models = question_set.ordered_models
    published = SimpleNamespace(
        store=store,
        question_set=question_set,
        models=models,
        presentation=question_set.presentation,
    )
    chosen = Filter(models[0], "paraphrase")
    cards, _, _ = views.wall.wall(question_set, chosen, 1, 1)
    (by_model,) = explore._answers(published, cards)
    for model in models:
        (expected,) = views.wall.cards(question_set, replace(chosen, model=model), [cards[0].case])
        kind = question_set.presentation.kind("paraphrase")
        assert by_model[model].verdict_text == case_card(expected, kind).verdict_text
