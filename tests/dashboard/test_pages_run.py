"""The Run page's form, without a browser: all options of a probe reach the job, and errors are shown before a start."""

import io
import itertools
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from tests.conftest import make_foils, make_tiny, tiers
from tests.dashboard.test_pages import open_form, open_page, words
from tests.dashboard.walls import wall
from tests.probes.test_common import PROBES, make
from vlprobe import registry, views
from vlprobe.dashboard.run import dropped, form
from vlprobe.errors import InvalidInput
from vlprobe.perturb import picture_changes
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.runs import jobs, verify
from vlprobe.runs.request import Request
from vlprobe.runs.settings import SETTINGS
from vlprobe.storage import access, display_names
from vlprobe.storage.store import Store
from vlprobe.types.options import Option

CONTROLS = ("control:random", "control:constant")
TYPED = {  # unlisted values; the other fields take a listed value that is not the default
    "policies": "rand-voca:3",
    "pictures": "mix:0.85",
    "picture_seeds": "7",
    "influence": "demo:weak",
    "group": "thing",
    "gallery": "demo",
    "edits": "{folder}/edits.jsonl",
    "item": "0",
    "where": "thing=dog",
    "without": "0/flip",
    "without_tag": "wrong label",
    "device": "cpu",
    "price": "2.5/10",
    "max_cost": "1.50",
    "vocabulary": "{folder}/words.txt",
}


def fill(at: AppTest, option: Option, key: str, folder: Path) -> object:
    """Set a field to a value other than its default; return the expected value in the request."""
    typed = TYPED.get(option.name, "").format(folder=folder)
    if option.type == "flag":
        at.toggle(key=key).set_value(not option.default)
        return not option.default
    if option.type == "number":
        value = max(option.minimum or 0, 10) + 1
        at.number_input(key=key).set_value(value)
        return value
    if option.type == "list":
        listed = option.choices[-1:]
        at.get_by_key(key).set_value([*([typed] if typed else []), *map(str, listed)])
        return [*listed, *([type((*listed, "")[0])(typed)] if typed else [])]  # listed ones first
    value = typed or next(choice for choice in option.choices if choice != option.default)
    if option.choices or option.name == "gallery":
        at.selectbox(key=key).set_value(value)
    else:
        at.text_input(key=key).set_value(value)
    return value


def choose_probe(at: AppTest, probe: str) -> AppTest:
    """Choose only this probe."""
    for name in PROBES:
        at.checkbox(key=f"run_probe_{name}").set_value(name == probe)
    return at


def requests(store: Store) -> list[Request]:
    return [request for job in jobs.jobs(store) for request in job.requests]


@pytest.mark.parametrize("probe", tiers(PROBES, ("lgip", "series")))
def test_the_default_options_of_every_probe_can_be_started(
    monkeypatch, store: Store, unspawned: None, probe: str
):
    at = open_page(monkeypatch, store, "run")
    choose_probe(at, probe).run()
    at.multiselect(key="run_models").set_value(["control:random"]).run()
    assert not at.error
    at.button(key="start").click().run()
    assert requests(store) == [
        Request(
            ("control:random",),
            registry.load_probe(probe).dataset,
            probe,
            registry.load_probe(probe).defaults,
        )
    ]


@pytest.mark.parametrize("probe", PROBES)
def test_every_option_of_a_probe_and_every_setting_of_a_run_reaches_the_job(
    monkeypatch, store: Store, unspawned: None, probe: str, tmp_path: Path
):
    monkeypatch.setenv(access.RAY, "10.0.0.7:6379")
    (tmp_path / "edits.jsonl").write_text("{}\n")
    (tmp_path / "words.txt").write_text("zebra\nkettle\n")
    name = make(probe, tmp_path / "data", 3)
    at = open_form(monkeypatch, store)
    choose_probe(at, probe).run()
    at.multiselect(key="run_models").set_value(list(CONTROLS))
    at.text_input(key="run_own").set_value(f" {name} ")
    defaults = registry.load_probe(probe).defaults
    # A vocabulary and types of LGIP's flips need the default rules: the next test
    left = {"vocabulary", "flips"} if probe == "lgip" else set()
    options = [option for option in registry.load_probe(probe).options if option.name not in left]
    expected = {name: defaults[name] for name in left} | {
        option.name: fill(at, option, f"run_{probe}_{option.name}", tmp_path) for option in options
    }
    settings = {
        option.name: fill(at, option, f"run_{option.name}", tmp_path) for option in SETTINGS
    }
    lists = ("item", "where", "without", "without_tag", "errata")
    settings |= {name: tuple(settings.get(name, ())) for name in lists}
    at.run()
    assert not at.error, at.error[0].value
    at.button(key="start").click().run()
    assert not at.exception
    assert requests(store) == [Request(CONTROLS, name, probe, expected, **settings)]
    assert {key for key, value in defaults.items() if value == expected[key]} == left


def test_the_vocabulary_and_the_flip_types_reach_the_job(
    monkeypatch, store: Store, unspawned: None, tmp_path
):
    words = tmp_path / "words.txt"
    words.write_text("zebra\nkettle\n")
    at = open_form(monkeypatch, store)
    choose_probe(at, "lgip").run()
    at.multiselect(key="run_models").set_value(list(CONTROLS))
    at.text_input(key="run_own").set_value(make("lgip", tmp_path / "data", 3))
    at.button_group(key="run_lgip_flips").set_value(["color", "object"])
    at.text_input(key="run_lgip_vocabulary").set_value(str(words)).run()
    assert not at.error, at.error[0].value
    at.button(key="start").click().run()
    (request,) = requests(store)
    assert request.options["vocabulary"] == str(words)
    assert request.options["flips"] == ["color", "object"]


@pytest.mark.parametrize("probe", tiers(PROBES, ("lgip", "rococo")))
def test_a_job_started_from_the_form_runs_to_completion(
    monkeypatch, store: Store, unspawned: None, probe: str, tmp_path: Path
):
    at = open_form(monkeypatch, store)
    choose_probe(at, probe).run()
    at.multiselect(key="run_models").set_value(list(CONTROLS))
    at.text_input(key="run_own").set_value(make(probe, tmp_path / "data", 4))
    at.selectbox(key="run_device").set_value("cpu")
    at.toggle(key="run_examine").set_value(False)
    at.number_input(key="run_workers").set_value(1)
    if probe == "rococo":
        at.multiselect(key="run_rococo_policies").set_value(["danger:2"])
        at.multiselect(key="run_rococo_pictures").set_value(["patch:0.75"])
        at.multiselect(key="run_rococo_picture_seeds").set_value(["5"])
        at.multiselect(key="run_rococo_caption_seeds").set_value(["5", "6"])
    at.run()
    at.button(key="start").click().run()
    (job,) = jobs.jobs(store)
    assert jobs.work(store.address, job.id) == 0
    job = jobs.read(store, job.id)
    assert job.state == "done"
    assert [store.run(key).manifest()["run"]["model"] for key in job.keys] == list(CONTROLS)
    at.run()
    assert "Done" in words(at)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("coco:/nope", r"'/nope' does not exist"),
        ("csv:{folder}/wrong.csv", "has the columns picture, caption"),
        ("pairs:{folder}/wrong.json", "is not valid JSON"),
        ("cocoo:/nope", "No dataset named"),
        ("/nope/pictures", "'/nope/pictures' does not exist, or is not a dataset."),
        ("{folder}/plain", "1 of 1 pictures in"),  # without captions, which loading it finds
    ],
)
def test_an_invalid_dataset_shows_an_error_in_the_form_and_disables_start(
    monkeypatch, store: Store, unspawned: None, own: str, said: str, tmp_path: Path
):
    (tmp_path / "wrong.csv").write_text("picture,caption\n")
    (tmp_path / "wrong.json").write_text("{no")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.png").write_bytes(png("red"))
    at = open_page(monkeypatch, store, "run")
    at.multiselect(key="run_models").set_value(["control:random"])
    at.text_input(key="run_own").set_value(own.format(folder=tmp_path)).run()
    assert len(at.error) == 1 and said in at.error[0].value.replace("\\", "")
    assert at.button(key="start").disabled
    at.text_input(key="run_own").set_value(make_tiny(tmp_path / "tiny")).run()
    assert not at.error and not at.button(key="start").disabled


def test_a_dataset_that_is_deleted_before_the_click_starts_no_job(
    monkeypatch, store: Store, unspawned: None, tmp_path: Path
):
    at = open_page(monkeypatch, store, "run")
    at.multiselect(key="run_models").set_value(["control:random"])
    at.text_input(key="run_own").set_value(make_tiny(tmp_path / "tiny")).run()
    (tmp_path / "tiny" / "captions.csv").unlink()
    at.button(key="start").click().run()
    assert "does not exist" in at.error[0].value
    assert requests(store) == []


@pytest.mark.parametrize(
    ("probe", "field", "value", "said"),
    [
        ("lgip", "run_models", ["control:rondom"], "Did you mean 'control:random'"),
        ("lgip", "run_models", ["openclip:ViT-B-32@/nope.pt"], "'/nope.pt' does not exist"),
        ("lgip", "run_models", ["scores:/nope.csv"], "'/nope.csv' cannot be read"),
        ("lgip", "run_models", ["embeddings:/nope.npz"], "'/nope.npz' cannot be read"),
        ("lgip", "run_models", ["embeddings:/nope.npz+best"], "'best' in 'embeddings:"),
        ("lgip", "run_models", [f"embeddings:{__file__}"], "has an unknown file extension"),
        ("lgip", "run_lgip_kinds", [], "'kinds' has no value"),
        ("rococo", "run_rococo_policies", ["danger:9"], "'danger:9'. Expected NAME"),
        ("rococo", "run_rococo_policies", ["danger", "danger:1"], "contains the same edit twice"),
        ("rococo", "run_rococo_policies", ["delete:low-ei"], "needs EI scores"),
        ("rococo", "run_rococo_pictures", ["mix:2"], "0 < LAM < 1"),
        ("rococo", "run_rococo_picture_seeds", ["one"], "Expected whole numbers"),
        ("rococo", "run_rococo_caption_seeds", ["one"], "Expected whole numbers"),
        ("rococo", "run_rococo_vocabulary", "/nope.txt", "'/nope.txt' does not exist"),
        ("rococo", "run_rococo_influence", ["st:/nope"], "folder '/nope' does not exist"),
        ("lgip", "run_lgip_edits", "/nope.jsonl", "'/nope.jsonl' does not exist"),
    ],
)
def test_an_invalid_value_shows_one_line_and_disables_start(
    monkeypatch, store: Store, probe: str, field: str, value, said: str
):
    at = open_form(monkeypatch, store)
    choose_probe(at, probe).run()
    at.multiselect(key="run_models").set_value(["control:random"])
    at.get_by_key(field).set_value(value).run()
    assert len(at.error) == 1 and said in at.error[0].value.replace("\\", "")
    assert at.button(key="start").disabled


def test_imported_answers_are_checked_before_a_job_starts(
    monkeypatch, store: Store, unspawned: None, tmp_path: Path
):
    (tmp_path / "s.csv").write_text("label,score\na_c0_i0,0.5\n")
    np.save(tmp_path / "m.npy", np.zeros((2, 3)))
    np.save(tmp_path / "texts.npy", np.eye(2))
    scores, matrix = f"scores:{tmp_path}/s.csv", f"scores:{tmp_path}/m.npy+matrix"
    at = open_page(monkeypatch, store, "run")
    choose_probe(at, "prsm").run()
    at.multiselect(key="run_models").set_value([scores]).run()
    assert "every picture with every caption" in at.error[0].value
    assert at.button(key="start").disabled
    at.multiselect(key="run_models").set_value([f"embeddings:{tmp_path}"]).run()
    assert "only has text embeddings" in at.error[0].value
    (tmp_path / "texts.npy").write_bytes(b"no array")
    at.multiselect(key="run_models").set_value([f"embeddings:{tmp_path}"]).run()
    assert "cannot be read as numbers" in at.error[0].value
    at.multiselect(key="run_models").set_value([matrix]).run()
    assert not at.error
    at.button(key="start").click().run()
    assert [request.models for request in requests(store)] == [(matrix,)]


def test_a_score_file_for_another_test_disables_start_and_one_click_chooses_that_test(
    monkeypatch, store: Store, unspawned: None, tmp_path: Path
):
    (tmp_path / "sc").mkdir()
    dataset = make_foils(tmp_path / "sc", "swap_obj", 3)
    rows = "".join(f"swap_obj,{number},0.9,0.2\n" for number in range(3))
    (tmp_path / "s+b.csv").write_text(f"file,key,caption_score,foil_score\n{rows}")
    at = open_page(monkeypatch, store, "run")
    choose_probe(at, "lgip").run()
    at.text_input(key="run_own").set_value(dataset).run()
    at.text_input(key="run_own_model").set_value(f"scores:{tmp_path / 's+b.csv'}").run()
    (error,) = at.error
    assert "'s+b.csv' has scores for Near-identical pairs (EqBen)" in error.value
    assert "but not for Wording and meaning (LGIP)." in error.value
    assert at.button(key="start").disabled
    at.button(key="choose_fitting").click().run()
    assert not at.error
    at.button(key="start").click().run()
    assert [request.probe for request in requests(store)] == ["eqben"]


@pytest.mark.parametrize("has_ids", [True, False])
def test_a_score_file_of_a_bundled_dataset_is_refused_elsewhere_and_one_click_chooses_it(
    monkeypatch, store: Store, unspawned: None, tmp_path: Path, has_ids: bool
):
    rows = "".join(f"swap_obj,{number},0.9,0.2\n" for number in range(246))
    name = "s.csv" if has_ids else "s.json"
    text = f"file,key,caption_score,foil_score\n{rows}" if has_ids else "[[0.9, 0.2]]"
    (tmp_path / name).write_text(text)
    at = open_page(monkeypatch, store, "run")
    choose_probe(at, "lgip").run()
    at.text_input(key="run_own_model").set_value(str(tmp_path / name)).run()
    assert at.button(key="start").disabled == has_ids
    if not has_ids:  # numbers without ids fit any set of their size
        assert not at.error
        return
    (error,) = at.error
    assert "'s.csv' has scores for True caption or foil" in error.value
    assert error.value.endswith("on SugarCrepe, not on drawn scenes.")
    fix = at.button(key="choose_fitting")
    assert fix.label == "Choose SugarCrepe, True caption or foil"
    fix.click().run()
    assert not at.error
    at.button(key="start").click().run()
    assert [(each.dataset, each.probe) for each in requests(store)] == [
        ("bundled:SugarCrepe", "eqben")
    ]


def test_an_unavailable_device_starts_no_job(monkeypatch, store: Store, unspawned: None):
    at = open_form(monkeypatch, store)
    at.multiselect(key="run_models").set_value(["control:random"])
    # AppTest accepts only listed options, so this adds the typed one
    at.selectbox(key="run_device").options.append("cuda:99")
    at.selectbox(key="run_device").set_value("cuda:99").run()
    at.selectbox(key="run_device").options.append("cuda:99")
    at.button(key="start").click().run()
    assert "Device 'cuda:99' is not available here" in at.error[0].value.replace("\\", "")
    assert requests(store) == []


def test_the_order_of_picked_values_does_not_matter(monkeypatch, store: Store, unspawned: None):
    at = open_form(monkeypatch, store)
    at.multiselect(key="run_models").set_value(["control:random"])
    at.button_group(key="run_lgip_kinds").set_value(["combined", "paraphrase", "flip"]).run()
    at.button(key="start").click().run()
    assert requests(store)[0].options == registry.load_probe("lgip").defaults


def test_kinds_beyond_lgip_can_be_added_to_its_kinds(monkeypatch, store: Store, unspawned: None):
    at = open_form(monkeypatch, store)
    at.multiselect(key="run_models").set_value(["control:random"])
    kinds = at.button_group(key="run_lgip_kinds")
    assert "Wrong color, number or object" in kinds.options
    assert not {"flip", "attribute-swap"} & set(kinds.options)  # words, not the names of options
    kinds.set_value([*kind_edits.NAMES, "flip"]).run()
    at.button(key="start").click().run()
    assert requests(store)[0].options["kinds"] == ["flip", *kind_edits.NAMES]


def test_a_served_dashboard_does_not_reveal_whether_a_file_exists(
    monkeypatch, store: Store, tmp_path: Path
):
    (tmp_path / "root").mkdir()
    (tmp_path / "aaaa.csv").write_text("image,caption\n")
    monkeypatch.setenv(access.ROOTS, str(tmp_path / "root"))
    at = open_page(monkeypatch, store, "run")
    at.multiselect(key="run_models").set_value(["control:random"])
    errors = set()
    for name in ("aaaa", "bbbb"):
        at.text_input(key="run_own").set_value(f"csv:{tmp_path / name}.csv").run()
        errors.add(at.error[0].value.replace(name, ""))
        assert at.button(key="start").disabled
    assert len(errors) == 1 and "outside the folders" in errors.pop()


def test_one_click_plans_all_tests_for_every_model(monkeypatch, store: Store, unspawned: None):
    at = open_page(monkeypatch, store, "run")
    at.checkbox(key="run_model_demo:softmax").set_value(True)
    at.multiselect(key="run_models").set_value(["control:random", "demo:softmax"])
    at.button(key="all_probes").click().run()
    assert (
        not at.error
        and f"{len(PROBES)} of {len(PROBES)} tests" in words(at)
        and "2 models" in words(at)
    )
    at.button(key="start").click().run()
    (job,) = jobs.jobs(store)
    assert set(job.probes) == set(PROBES)
    assert {request.models for request in requests(store)} == {("demo:softmax", "control:random")}
    assert {request.dataset for request in requests(store)} == {
        registry.load_probe(name).dataset for name in PROBES
    }
    assert at.query_params["job"] in (job.id, [job.id])


def test_every_chosen_test_uses_the_dataset_of_an_earlier_run(
    monkeypatch, filled: Store, unspawned: None
):
    at = open_page(monkeypatch, filled, "run")
    at.checkbox(key="run_model_demo:weak").set_value(True)
    at.checkbox(key="run_probe_prsm").set_value(True).run()
    dataset = views.runs.runs(filled)["dataset"].iloc[0]
    at.radio(key="run_dataset").set_value(dataset).run()
    at.button(key="start").click().run()
    assert {request.dataset for request in requests(filled)} == {dataset}


def test_a_missing_choice_shows_a_hint_and_not_an_error(monkeypatch, store: Store):
    at = open_page(monkeypatch, store, "run")
    assert not at.error and "Choose at least one model." in words(at)
    at.checkbox(key="run_model_demo:weak").set_value(True)
    at.checkbox(key="run_probe_lgip").set_value(False).run()
    assert not at.error and "Choose at least one test." in words(at)
    assert at.button(key="start").disabled


def test_the_form_estimates_the_time_of_a_run(monkeypatch, filled: Store):
    at = open_page(monkeypatch, filled, "run")
    dataset = views.runs.runs(filled)["dataset"].iloc[0]
    at.text_input(key="run_own").set_value(dataset)
    at.multiselect(key="run_models").set_value(["control:random"]).run()
    assert "Less than a minute" in words(
        at
    ) and "The last run of these models and tests took" in words(at)
    at.number_input(key="run_limit").set_value(3).run()  # of 6 pictures
    assert "estimated from the last run of these models and tests" in words(at)
    assert "The last run of these models and tests took" not in words(at)
    at.number_input(key="run_limit").set_value(0)
    at.multiselect(key="run_models").set_value(["demo:weak"]).run()
    assert "Estimated from other models on the same pictures." in words(at)
    at.text_input(key="run_own").set_value("").run()
    assert "Time unknown until the run starts" in words(at)


def test_a_card_is_named_in_plain_text_for_screen_readers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    store = Store(tmp_path / "cache")
    display_names.rename(store, "demo:weak", "![**loud**](http://a.example/x.png) one")
    at = open_page(monkeypatch, store, "run")
    names = {box.key: box.label for box in at.checkbox}
    assert names["run_model_demo:softmax"] == "Tiny CLIP"
    assert names["run_model_demo:plain"] == "Longer-trained"
    assert not [name for name in names.values() if set(name) & set("\\*_`[]!<>")]
    assert "![**loud**](http://a.example/x.png) one" in words(at)


def test_a_typed_path_is_previewed_and_an_unreadable_one_shows_one_line(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    at = open_page(monkeypatch, store, "run")
    at.checkbox(key="run_model_demo:softmax").check().run()
    caution = "Tiny CLIP was trained on drawings. On photographs it mostly guesses."
    assert caution not in words(at)
    at.text_input(key="run_own").set_value(make_tiny(tmp_path / "tiny")).run()
    assert "pictures with captions." in words(at) and caution in words(at) and not at.error
    (preview,) = at.get("image")
    assert 1 <= len(preview.proto.imgs) <= 4
    n_pictures = re.search(r"(\d+) pictures with captions", words(at))
    assert n_pictures and f"1 model × 1 test × {n_pictures[1]} pictures." in words(at)
    reads = []
    read = registry.load_dataset
    monkeypatch.setattr(registry, "load_dataset", lambda *name: reads.append(name) or read(*name))
    at.checkbox(key="run_model_demo:sigmoid").check().run()
    assert "pictures with captions." in words(at) and not reads
    at.text_input(key="run_own").set_value(f"folder:{tmp_path / 'absent'}").run()
    assert "pictures with captions." not in words(at)
    assert len(at.error) == 1 and not at.exception


def png(color: str) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), color).save(buffer, "PNG")
    return buffer.getvalue()


def test_the_type_of_a_typed_model_is_shown_below_its_field(
    monkeypatch: pytest.MonkeyPatch, store: Store, unspawned: None, tmp_path: Path
):
    np.save(tmp_path / "m.npy", np.zeros((2, 3)))
    matrix = f"scores:{tmp_path}/m.npy+matrix"
    at = open_page(monkeypatch, store, "run")
    for name, said in (
        ("openclip:ViT-B-32/openai", "Recognized: OpenCLIP model."),
        (f"hf:{tmp_path}", "dual encoder from Hugging Face, a folder on this computer."),
        ("scores:/nope.csv", "Not recognized yet."),
        ("hf:google/siglip-base-patch16-224", "Recognized: dual encoder from Hugging Face."),
        (matrix, "Recognized: imported scores, a file on this computer."),
        (matrix.removeprefix("scores:"), "Recognized: imported scores, a file on this computer."),
    ):
        at.text_input(key="run_own_model").set_value(name).run()
        assert said in words(at)
    at.button(key="start").click().run()
    assert [request.models for request in requests(store)] == [(matrix,)]


@pytest.mark.parametrize(
    "typed", ["embeddings:/p/a.npz", "openclip:N@x.npz", "hf-itm:a.csv", "scores:a.npy", "a.npz"]
)
def test_only_a_path_without_a_prefix_gets_a_prefix(monkeypatch: pytest.MonkeyPatch, typed: str):
    monkeypatch.setattr(form.st, "text_input", lambda *args, **kwargs: typed)
    monkeypatch.setattr(form, "_card", lambda *args: False)
    expected = typed if ":" in typed else f"scores:{typed}"
    assert form._pick_models() == (expected,)


def test_dropped_pictures_become_the_choice_until_their_last_run_is_removed(
    monkeypatch: pytest.MonkeyPatch, store: Store, unspawned: None
):
    at = open_page(monkeypatch, store, "run")
    at.multiselect(key="run_models").set_value(["control:random"])
    files = [
        ("one.png", png("red"), "image/png"),
        ("../two.png", png("blue"), "image/png"),
        ("bad.png", b"no image", "image/png"),
        ("all.csv", b"image,caption\none.png,A red dog.\ntwo.png,A blue cat.\n", "text/csv"),
    ]
    at.file_uploader(key="run_files").set_value(files).run()
    assert "Skipped files that are not pictures: bad.png." in words(at)
    assert "2 pictures with captions." in words(at) and not at.error and not at.exception
    name = at.text_input(key="run_own").value
    folder = Path(name.removeprefix("csv:")).parent
    assert folder.parent == store.root.resolve() / "dropped"
    assert {file.name for file in folder.iterdir()} == {"one.png", "two.png", "all.csv"}
    at.button(key="start").click().run()
    (job,) = jobs.jobs(store)
    assert job.request.dataset == name
    assert verify._unfinished(store) and name in verify._unfinished(store)[0]
    assert jobs.work(store.address, job.id) == 0
    (key,) = jobs.read(store, job.id).keys
    assert verify._unfinished(store) == []
    verify.remove(store, verify.removable(store, [key]))
    assert not folder.exists()


def test_a_dropped_table_may_name_subfolders_and_is_deleted_after_a_day_if_it_has_no_run(
    monkeypatch: pytest.MonkeyPatch, store: Store, unspawned: None
):
    at = open_page(monkeypatch, store, "run")
    rows = b"image,caption\nval/one.png,A red dog.\n../two.png,A blue cat.\n"
    files = [
        ("one.png", png("red"), "image/png"),  # a browser sends no folder
        ("two.png", png("blue"), "image/png"),
        ("all.csv", rows, "text/csv"),
    ]
    at.file_uploader(key="run_files").set_value(files).run()
    folder = Path(at.text_input(key="run_own").value.removeprefix("csv:")).parent
    assert (folder / "val/one.png").is_file() and (folder / "two.png").is_file()
    assert not (folder.parent / "two.png").exists()
    files[2] = ("all.csv", rows.replace(b"../", b""), "text/csv")
    at.file_uploader(key="run_files").set_value(files).run()
    assert "2 pictures with captions." in words(at) and not at.error
    second = Path(at.text_input(key="run_own").value.removeprefix("csv:")).parent
    at.multiselect(key="run_models").set_value(["control:random"]).run()
    at.button(key="start").click().run()
    for name in (folder, second):  # the second one belongs to a job
        os.utime(name, (0, 0))
    at.file_uploader(key="run_files").set_value([files[0], ("one.txt", b"A dog.", "")]).run()
    third = Path(at.text_input(key="run_own").value.removeprefix("folder:"))
    assert sorted(folder.parent.iterdir()) == sorted([second, third])


def test_a_table_may_name_a_folder_with_the_name_of_the_table(tmp_path: Path):
    contents = {"all.csv": b"image,caption\nall.csv/1.png,A dog.\n", "1.png": png("red")}
    files = [
        SimpleNamespace(name=name, size=len(content), getvalue=lambda content=content: content)
        for name, content in contents.items()
    ]
    name, left_out = dropped.keep(files, tmp_path)
    file = Path(name.removeprefix("csv:"))
    assert (file.parent / "1.png").is_file() and file.is_file() and not left_out


def test_dropped_pictures_are_chosen_even_if_old_ones_cannot_be_removed(
    monkeypatch: pytest.MonkeyPatch, store: Store
):
    (store.root / "dropped").mkdir(parents=True)
    gone = store.root / "dropped" / "gone"
    gone.symlink_to("nowhere")  # as if another session removed it meanwhile
    assert verify.unused_drops(store) == []
    gone.unlink()

    def fail(store: Store) -> None:
        raise InvalidInput("'/old' cannot be removed (Busy). Remove it manually.")

    monkeypatch.setattr(verify, "remove_unused_drops", fail)
    at = open_page(monkeypatch, store, "run")
    files = [("one.png", png("red"), "image/png"), ("one.txt", b"A dog.", ""), ("a.exe", b"MZ", "")]
    at.file_uploader(key="run_files").set_value(files).run()
    assert at.text_input(key="run_own").value.startswith(f"folder:{store.root.resolve()}")
    assert "a.exe" in words(at) and "'/old' cannot be removed (Busy)" in words(at)
    assert not at.exception


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([("a.exe", b"MZ", "text/csv")], "No picture was dropped."),
        (
            [(f"{name}.csv", b"a", "text/csv") for name in "ab"] + [("a.png", png("red"), "")],
            "2 tables",
        ),
        ([("a.txt", b"", "")] * 5001, "5,001 files are too many."),
        ([("a/1.png", png("red"), ""), ("b/1.png", png("blue"), "")], "Two different files are"),
        ([("猫" * 90 + ".png", png("red"), "")], "cannot be used. Rename the file."),
        (
            [
                ("all.csv", b"image,caption\na/1.png,A dog.\nb/1.png,A cat.\n", "text/csv"),
                ("1.png", png("red"), ""),
            ],
            "The table names two pictures '1.png' in different folders.",
        ),
    ],
)
def test_rejected_files_show_one_line_and_keep_the_chosen_dataset(
    monkeypatch: pytest.MonkeyPatch, store: Store, tmp_path: Path, files: list, said: str
):
    at = open_page(monkeypatch, store, "run")
    name = make_tiny(tmp_path / "tiny")
    at.text_input(key="run_own").set_value(name).run()
    at.file_uploader(key="run_files").set_value(files).run()
    assert said in words(at) and not at.exception
    assert at.text_input(key="run_own").value == name
    assert not (store.root / "dropped").exists()


def write_photographs(shared_data: Path, folder: Path) -> str:
    """Write the first 6 photographs of COCO, 160 pixels wide, with their captions; return the dataset."""
    folder.mkdir()
    coco = shared_data / "coco_real"
    listed = json.loads((coco / "annotations" / "captions_val2017.json").read_text())
    captions = {}
    for image in listed["images"][:6]:
        of_image = [row for row in listed["annotations"] if row["image_id"] == image["id"]]
        captions[image["file_name"]] = [row["caption"] for row in of_image]
        with Image.open(coco / "val2017" / image["file_name"]) as opened:
            opened.convert("RGB").resize((160, 120)).save(folder / image["file_name"])
    (folder / "captions.json").write_text(json.dumps(captions))
    return f"folder:{folder}"


@pytest.mark.full  # 6 pictures changed in 22 ways, by two models
def test_all_picture_changes_and_half_truths_run_from_the_form_and_their_failures_show_both_pictures(
    monkeypatch, store: Store, unspawned: None, shared_data: Path, tmp_path: Path
):
    photographs, models = (
        write_photographs(shared_data, tmp_path / "data"),
        ["demo:weak", "demo:softmax"],
    )
    at = open_form(monkeypatch, store)
    for name in PROBES:
        at.checkbox(key=f"run_probe_{name}").set_value(name in ("pictures", "halftruths"))
    at.run()
    at.multiselect(key="run_models").set_value(models)
    at.text_input(key="run_own").set_value(photographs)
    at.button_group(key="run_pictures_changes").set_value(list(picture_changes.KINDS))
    at.button_group(key="run_pictures_severities").set_value(["3"])
    at.selectbox(key="run_device").set_value("cpu")
    at.toggle(key="run_examine").set_value(False)
    at.number_input(key="run_workers").set_value(1).run()
    at.button(key="start").click().run()
    done = [jobs.work(store.address, job.id) for job in jobs.jobs(store)]
    assert done and not any(done)
    manifests = [store.run(key).manifest() for job in jobs.jobs(store) for key in job.keys]
    ran = {(manifest["run"]["probe"], manifest["run"]["model"]) for manifest in manifests}
    assert ran == set(itertools.product(("pictures", "halftruths"), models))
    (cases,) = {m["case_key"] for m in manifests if m["run"]["probe"] == "pictures"}
    rows = store.cases(cases).table("cases").to_pylist()
    assert {row["rule"] for row in rows} <= {f"{kind}:3" for kind in picture_changes.KINDS}
    assert len({row["subtype"] for row in rows}) == len(picture_changes.KINDS)
    at = open_page(monkeypatch, store, "explore", set=cases, model=models[0])
    cards = wall(at)["cards"]
    assert cards
    for before, after in (card["frames"] for card in cards):
        assert before["source"] != after["source"] and after["text"].startswith(before["text"])
    at = open_page(monkeypatch, store, "tradeoff", set=cases)
    text = words(at)
    assert "Before" in text and "After: " in text
    (half,) = {m["case_key"] for m in manifests if m["run"]["probe"] == "halftruths"}
    assert wall(open_page(monkeypatch, store, "explore", set=half))["cards"]
