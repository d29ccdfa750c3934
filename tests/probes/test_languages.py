"""Captions in languages other than English: the rules for English do not edit them, and their number is reported."""

import itertools
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import vlprobe
from tests.conftest import call
from tests.dashboard.test_pages import open_page
from tests.perturb.test_language import FOREIGN
from tests.runs.test_run import pictured
from tools.world.captions import captions
from tools.world.contrasts import KINDS, contrasts
from tools.world.scenes import draw
from vlprobe import registry
from vlprobe.cli.main import main
from vlprobe.datasets import languages
from vlprobe.datasets.languages import foreign_captions
from vlprobe.errors import InvalidInput
from vlprobe.models.open_clip_encoder import OpenClipEncoder
from vlprobe.perturb import language, other_languages
from vlprobe.perturb.lgip import NO_FLIP_BY_TABLE
from vlprobe.runs import playground
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.training.batches import Batches, rows
from vlprobe.training.trainer import TrainRequest, train

ENGLISH = ["A brown dog on the grass.", "A red bus at a street corner.", "Two cats on a chair."]
GERMAN = ["Ein Bus hält vor einem alten Gebäude.", "Der Junge wirft einen Ball."]
BUS = GERMAN[0]
CLEAN = {"rococo": {"pictures": []}, "lgip": {}, "prsm": {}}


def dataset(folder: Path, captions: list[str]) -> str:
    folder.mkdir()
    return pictured(folder, {f"{number}.png": text for number, text in enumerate(captions)})


def run(name: str, store: Store, probe: str, **options) -> dict:
    batch_sizes = Request(("control:random",), name, probe, CLEAN[probe] | options, examine=False)
    return execute(batch_sizes, store)[0]


def texts(store: Store, manifest: dict) -> list[list[str]]:
    return store.cases(manifest["case_key"]).table("cases")["texts"].to_pylist()


@pytest.mark.parametrize("probe", ["lgip", "rococo", "prsm"])
def test_only_english_captions_are_edited_and_the_others_are_counted(tmp_path, store, probe):
    mixed = run(dataset(tmp_path / "mixed", [*ENGLISH, *GERMAN]), store, probe)
    alone = run(dataset(tmp_path / "alone", ENGLISH), store, probe)
    assert mixed["run"]["options"]["not_english"] == 2
    n_policies = len(mixed["run"]["options"].get("policies", [probe]))
    counted = [n for why, n in mixed["dropped"].items() if why.endswith("not in English")]
    assert sum(counted) == 2 * n_policies
    assert not set(itertools.chain(*texts(store, mixed))) & set(GERMAN)
    assert texts(store, mixed) == texts(
        store, alone
    )  # the English captions have the same edits as without the others
    (note,) = mixed["notes"]
    assert note.startswith(
        "2 of 5 captions are not in English (in 3.png, 4.png). Rules for English"
    )
    assert "not_english" not in alone["run"]["options"] and alone["notes"] == []


def test_a_run_flips_colors_and_numbers_in_other_languages_by_table(tmp_path, store):
    polish = "Czerwony autobus stoi przed starym budynkiem."
    captions = [ENGLISH[0], "Ein roter Bus fährt durch die Stadt.", BUS, polish]
    manifest = run(dataset(tmp_path / "data", captions), store, "lgip")
    options = manifest["run"]["options"]
    assert options["not_english"] == 3 and options["other_languages"] == other_languages.VERSION
    table = store.cases(manifest["case_key"]).table("cases").to_pylist()
    (german,) = (row for row in table if row["texts"][0] == captions[1])
    assert german["kind"] == "flip" and german["rule"] == "flip:color:de"
    assert {row["texts"][0] for row in table} == set(captions[:2])
    assert manifest["dropped"][NO_FLIP_BY_TABLE] == 1 and manifest["dropped"]["not in English"] == 1
    (note,) = manifest["notes"]
    assert "Tables have flips of colors and numbers for German (2)." in note
    paper = run(dataset(tmp_path / "same", captions), store, "lgip", rules="paper")
    assert (
        "other_languages" not in paper["run"]["options"] and paper["dropped"]["not in English"] == 3
    )


@pytest.mark.parametrize("probe", ["lgip", "rococo", "prsm"])
def test_a_dataset_without_english_captions_is_refused_with_the_reason(tmp_path, store, probe):
    with pytest.raises(InvalidInput) as caught:
        run(dataset(tmp_path / "german", GERMAN), store, probe)
    assert "2 captions are not in English" in str(caught.value)
    assert "--option edits=FILE" in str(caught.value) and "\n" not in str(caught.value)
    assert not list((store.root / "runs").glob("*/manifest.json"))


def test_a_picture_with_captions_in_two_languages_has_edits_of_the_english_one(tmp_path, store):
    (tmp_path / "a.csv").write_text(
        f"image,caption\na.png,{ENGLISH[0]}\na.png,{GERMAN[0]}\n", encoding="utf-8"
    )
    pictured(tmp_path, {"a.png": "unused"})
    name = f"csv:{tmp_path / 'a.csv'}"
    of_lgip = texts(store, run(name, store, "lgip"))
    assert of_lgip and {caption for caption, *_ in of_lgip} == {ENGLISH[0]}
    for searched in texts(store, run(name, store, "rococo")):
        assert searched[:2] == [ENGLISH[0], GERMAN[0]] and len(searched) == 3


def test_mixed_pictures_are_searched_with_captions_in_any_language(tmp_path, store):
    name = dataset(tmp_path / "german", GERMAN)
    pictured(tmp_path / "german", {"1.png": GERMAN[1]}, "blue")
    (tmp_path / "german" / "captions.json").write_text(
        json.dumps({f"{number}.png": [text] for number, text in enumerate(GERMAN)})
    )
    options = {"policies": [], "pictures": ["mix:0.9"], "picture_seeds": [1]}
    manifest = run(name, store, "rococo", **options)
    assert manifest["n_cases"] == 2 and "not_english" not in manifest["run"]["options"]


def test_language_verdicts_are_cached_and_a_damaged_cache_is_recomputed(tmp_path, monkeypatch):
    monkeypatch.setattr(languages, "REMEMBERED", 3)
    captions = [*ENGLISH, *FOREIGN["French"]]
    expected = dict.fromkeys(FOREIGN["French"], "fr")
    assert foreign_captions(captions, tmp_path) == expected
    (kept,) = (tmp_path / "languages").iterdir()
    batch_sizes: list[int] = []
    judge = language.foreign_captions
    monkeypatch.setattr(
        language, "foreign_captions", lambda texts: batch_sizes.append(len(texts)) or judge(texts)
    )
    assert foreign_captions(captions[::-1], tmp_path) == expected and not batch_sizes
    for damaged in ("", "[]", '{"foreign": 3}', '{"foreign": {"of other data": "fr"}}'):
        kept.write_text(damaged)
        assert foreign_captions(captions, tmp_path) == expected
    assert batch_sizes == [len(captions)] * 4
    nowhere = (
        tmp_path / "languages" / kept.name
    )  # a file in place of the folder: the result is returned but not cached
    assert foreign_captions(captions, nowhere) == expected


def test_perturb_prints_the_number_of_unedited_captions(tmp_path):
    name = dataset(tmp_path / "mixed", [ENGLISH[0], GERMAN[0]])
    answered = call(tmp_path / "cache", "perturb", name)
    assert answered.stderr.startswith("1 of 2 captions are not in English. The rules do not edit")
    assert "except for colors and numbers in eight languages" in answered.stderr
    for options in (
        ["--rules", "paper"],
        ["--kind", "paraphrase"],
    ):  # neither option uses the tables
        given = ["--cache", str(tmp_path / "cache"), "perturb", name, *options]
        outcome = CliRunner().invoke(main, given)
        assert "The rules do not edit these captions (see docs/limits.md)." in outcome.stderr
    english, german = (json.loads(line) for line in answered.stdout.splitlines())
    assert english["same_caps"]["0"]
    assert not any(german[field]["0"] for field in german if field.endswith("_caps"))


def test_the_playground_does_not_edit_a_foreign_caption_and_states_the_reason(monkeypatch, store):
    assert playground.edits(BUS) == ([], {NO_FLIP_BY_TABLE: 1})
    (edited,), dropped = playground.edits("Ein roter Bus hält vor einem alten Gebäude.")
    assert edited.edit.rule == "flip:color:de" and not dropped
    edited, dropped = playground.edits("Rote Bete liegt auf einem Teller.")
    assert not edited
    assert dropped == {"flip:color, an idiom or a name": 1, NO_FLIP_BY_TABLE: 1}
    assert playground.edits("A red bus stops at a corner.")[0]
    query = {"models": ["control:random"]}
    at = open_page(monkeypatch, store, "try", **query, caption=BUS)
    assert any("not in English" in info.value for info in at.info)


def test_python_refuses_only_foreign_captions_and_warns_if_some_are_foreign():
    english = "A red bus stops at a corner."
    with pytest.raises(InvalidInput, match=r"2 of 2 captions are not in English"):
        vlprobe.edits([BUS, BUS])
    with pytest.warns(UserWarning, match=r"1 of 2 captions are not in English"):
        both = vlprobe.edits([english, BUS])
    assert {entry.caption for entry in both} == {english}
    assert list(both) == list(vlprobe.edits(english))


def training(folder: Path, captions: list[str], loss: str) -> TrainRequest:
    name = dataset(folder / "data", captions)
    return TrainRequest(
        "demo:weak", (name,), str(folder / "t.safetensors"), loss, 1, batch_size=4, device="cpu"
    )


def test_a_loss_that_needs_edits_is_refused_if_no_caption_is_english(tmp_path):
    request = training(tmp_path, [f"{BUS[:-1]} {n}." for n in range(8)], "clip+flip")
    with pytest.raises(InvalidInput, match=r"8 of 8 captions are not in English.*'flip'"):
        train(request, tmp_path)


def test_training_does_not_edit_foreign_captions_and_counts_them_in_the_card(
    tmp_path,
):
    english = [f"A red bus stops at a corner near {n} cars." for n in range(6)]
    request = training(tmp_path, [*english, BUS, BUS[:-1]], "clip+flip+consistency")
    card = train(request, tmp_path)
    assert [source["not_english"] for source in card["data"]] == [2]
    items = registry.load_dataset(request.datasets[0], tmp_path).items
    foreign = frozenset([BUS, BUS[:-1]])
    model = registry.load_model("demo:weak", "cpu")
    assert isinstance(model, OpenClipEncoder)
    makes = {"flip", "consistency"}
    edited = {
        row.captions[0]: batches._edited(row)[0]
        for batches in [Batches(items, model, 4, 0, makes, (), foreign=foreign)]
        for item in items
        for row in rows(item)
    }
    assert {caption for caption, edits in edited.items() if edits == ([], [])} == foreign
    plain = Batches(items, model, 4, 0, makes, ())
    same = [plain._edited(row)[0] == edited[row.captions[0]] for i in items for row in rows(i)]
    assert same.count(False) == 2  # the English captions are unchanged


def test_no_caption_of_the_training_data_counts_as_foreign():
    scenes = {
        text for n in range(20_000, 20_200) for text in captions(draw("train", n), 8, "training")
    }
    pairs = {
        text
        for kind in KINDS
        for contrast in contrasts(kind, "train", 5)
        for text in contrast.captions
    }
    assert len(scenes) > 500 and foreign_captions(scenes | pairs, None) == {}
