"""`vlprobe failures` and `compare` on datasets with one kind, mistyped filters, and the first result of a search."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

import vlprobe
from tests.cli.test_main import frame_of, rows_of
from tests.conftest import call, run_key_of, tiers
from tests.datasets.test_pairs import valse
from tests.views.test_causes import MODEL, Towers, write_pairs
from tools import ship
from vlprobe.errors import NotFound
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage.store import Store

FIRST = {"0": (0.9, 0.1), "1": (0.2, 0.7), "2": (0.8, 0.3)}  # scores of each caption and its foil
SECOND = {"0": (0.1, 0.9), "1": (0.6, 0.7), "2": (0.8, 0.9)}


def scores_file(path: Path, scores: dict[str, tuple[float, float]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows(
            [("case", "c0_i0", "c1_i0"), *((key, *pair) for key, pair in scores.items())]
        )
    return f"scores:{path}"


def run_models(cache: Path, probe: str, dataset: str, models: Iterable[str]) -> None:
    words = [word for model in models for word in ("--model", model)]
    call(cache, "run", "--probe", probe, "--dataset", dataset, *words, "--no-doctor")


@pytest.fixture
def foils(tmp_path: Path) -> tuple[Path, str, str]:
    """Return a cache with results of two score files on VALSE's layout, which has foils and no pairs."""
    rows = {key: valse(image_file=f"{key}.png", caption=f"A man runs {key}.") for key in FIRST}
    (tmp_path / "valse.json").write_text(json.dumps(rows), encoding="utf-8")
    models = [
        scores_file(tmp_path / f"{name}.csv", scores)
        for name, scores in (("first", FIRST), ("second", SECOND))
    ]
    cache = tmp_path / "cache"
    run_models(cache, "eqben", f"pairs:{tmp_path / 'valse.json'}+unpictured", models)
    return cache, models[0], models[1]


def test_failures_of_a_dataset_with_only_foils_lists_the_foils(foils):
    cache, first, second = foils
    listed = {}
    for model in (first, second):
        listed[model] = set(frame_of(cache, "failures", run_key_of(cache, model))["original"])
    for model, scores in ((first, FIRST), (second, SECOND)):
        fooled = {key for key, (caption, foil) in scores.items() if caption <= foil}
        assert listed[model] == {f"A man runs {key}." for key in fooled}


def test_models_on_a_dataset_with_only_foils_can_be_compared(foils):
    cache, first, second = foils
    answer = call(cache, "compare", first, second)
    assert "cannot be compared" not in answer.stdout
    assert "fooled by 1 of 3" in answer.stdout or "33.3 %" in answer.stdout
    results = vlprobe.results(cache=cache)
    assert "cannot be compared" not in results.compare().sentence
    assert results.failures(second).total == 3


def test_a_kind_without_cases_is_refused_with_a_list_of_kinds_that_have_cases(foils):
    cache, first, second = foils
    for words in (("failures", run_key_of(cache, first)), ("compare", first, second)):
        error = call(cache, *words, "--kind", "pair", code=1).stderr
        assert (
            "No kind of eqben case in this question set named 'pair'" in error
            and "Known: foil." in error
        )


def test_the_first_kind_that_the_models_answered_is_compared(tmp_path: Path):
    """Check VISLA, whose first kind has texts without a picture, for which score files have no answers."""
    rows = [
        {
            "filename": f"{key}.jpg",
            "caption": f"A dog and {key} cats.",
            "caption2": f"{key} cats with a dog.",
            "negative_caption": f"A cat and {key} dogs.",
        }
        for key in FIRST
    ]
    (tmp_path / "t.json").write_text(json.dumps(rows), encoding="utf-8")
    dataset = f"table:{tmp_path / 't.json'}@{tmp_path}+unpictured"
    models = []
    for name, scores in (("first", FIRST), ("second", SECOND)):
        lines = ["label,score"]
        for key, (caption, foil) in scores.items():
            numbers = (caption, caption, foil)
            lines += [f"t/{key}/i2t_c{n}_i0,{score}" for n, score in enumerate(numbers)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines), encoding="utf-8")
        models.append(f"scores:{tmp_path / f'{name}.csv'}+partial")
    cache = tmp_path / "cache"
    run_models(cache, "visla", dataset, models)
    assert "cannot be compared" not in call(cache, "compare", *models).stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("--kind", "flop"),
            "No kind of lgip case in this question set named 'flop'. Did you mean 'flip'?",
        ),
        (("--subtype", "colour"), "No subtype of flip named 'colour'. Did you mean 'color'?"),
        (("--subtype", "simple"), "No subtype of flip named 'simple'."),
        (("--rule", "nosuch"), "No rule of flip named 'nosuch'. Known: "),
        (("--tag", "thin=car"), "No tag named 'thin'. Did you mean 'thing'?"),
        (("--tag", "thing=cars"), "No value of the tag 'thing' named 'cars'. Did you mean 'car'?"),
        (("--tag", "thing"), "Tag 'thing' is not valid. Expected NAME=VALUE"),
    ],
)
def test_a_mistyped_filter_is_refused_and_does_not_look_like_an_empty_result(compared, words, line):
    words = ("--kind", "flip", *words) if words[0] != "--kind" else words
    answer = call(compared.root, "failures", run_key_of(compared.root, "guess"), *words, code=1)
    assert line in answer.stderr
    assert not answer.stdout


def test_python_refuses_a_mistyped_filter_too(compared):
    results = vlprobe.results(cache=compared.root)
    with pytest.raises(NotFound, match="No subtype of flip named 'colour'"):
        results.failures("guess", "flip", subtype="colour")
    assert results.failures("guess", "flip", contains="no caption says this").total == 0


def test_an_empty_result_of_valid_filters_has_a_note(compared):
    key = run_key_of(compared.root, "guess")
    answer = call(compared.root, "failures", key, "--contains", "no caption says this")
    assert answer.stderr.splitlines() == ["0 cases; page 1 of 1", "No cases match these filters."]
    total = rows_of(compared.root, "failures", key, "--size", "999")
    beyond = call(compared.root, "failures", key, "--page", "999", "--size", str(len(total)))
    assert beyond.stderr.splitlines()[-1] == "There is no page 999; the last page is 1."


def test_the_table_has_file_names_and_the_csv_has_paths(compared):
    key = run_key_of(compared.root, "guess")
    table = call(compared.root, "failures", key, "--size", "3").stdout.splitlines()[1:]
    images = frame_of(compared.root, "failures", key, "--size", "3")["image"].map(Path)
    assert [line.split()[-1] for line in table] == [image.name for image in images]
    assert all(image.is_file() for image in images)


def test_a_search_for_captions_shows_the_altered_caption_that_ranked_first(mixed_store):
    manifest = next(run for run in mixed_store.runs() if run["run"]["model"] == "hue:1")
    words = ("failures", manifest["key"], "--kind", "i2t", "--outcome", "all", "--size", "999")
    rows = rows_of(mixed_store.root, *words)
    scores = mixed_store.run(manifest["key"]).table("scores").to_pandas()
    top = scores.loc[scores["kind"] == "i2t", "top"]
    assert sorted(row["edited"] for row in rows) == sorted(top)


@pytest.mark.parametrize("probe", tiers(ship.PROBES, ("visla", "series")))
def test_failures_of_every_bundled_probe_are_listed(probe):
    runs = [run for run in Store(shipped.FOLDER).runs() if run["run"]["probe"] == probe]
    key = next(run["key"] for run in runs if run["run"]["model"] == "demo:softmax")
    result = call(shipped.FOLDER, "failures", key, "--size", "3", "--format", "json")
    assert all(row["original"] and row["edited"] for row in json.loads(result.stdout))


def test_a_probe_without_options_has_a_note(tmp_path: Path):
    assert call(tmp_path, "options", "series").stderr == "Probe 'series' has no options.\n"


@pytest.mark.parametrize("command", ["failures", "suspects"])
@pytest.mark.parametrize("name", tiers(["1d4abbd3", "GPT-4V", "published:GPT-4V"], ("GPT-4V",)))
def test_commands_accept_a_run_or_a_model_and_name_the_publisher_of_the_answers(
    command: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv(shipped.SETTING)
    answer = call(tmp_path / "cache", command, name, "--size", "1")
    assert "Published by its authors, not computed here. " in answer.stderr
    assert "GPT-4V: Hsieh et al., SugarCrepe, https://github.com/RAIVNLab" in answer.stderr


def test_failures_of_one_tower_are_listed_with_the_shares_of_all_causes(tmp_path):
    data, _ = write_pairs(tmp_path / "pairs")
    store = Store(tmp_path / "cache")
    request = Request((MODEL,), data, "eqben", examine=False)
    (manifest,) = execute(request, store, models={MODEL: Towers()})
    words = ("failures", manifest["key"])
    rows = frame_of(store.root, *words, "--unseen-by", "words")
    assert len(rows) == 10 and rows["original"].str.contains("maroon").all()
    output = call(store.root, *words, "--unseen-by", "words").stderr
    assert "of the failures: words 33.3%, picture 33.3%, match 33.3%." in output
    others = frame_of(store.root, *words, "--exclude", "unseen_by=words")
    assert len(others) == 20 and not {*rows["id"]} & {*others["id"]}
    answer = call(store.root, *words, "--exclude", "subtype=taste", code=1)
    assert "No subtype of pair named 'taste'" in answer.stderr
