"""Code and files planted in a model folder or a checkpoint never run and are not opened, even if the check of the
folder misses them."""

import json
from pathlib import Path

import pytest

from tests.conftest import make_tiny, tiers
from tests.hostile.conftest import PREFIXES, merged
from tests.hostile.test_hostile_folders import AUTO_MAP
from vlprobe import registry
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.models import folder_policy
from vlprobe.storage import access
from vlprobe.training.request import TrainRequest
from vlprobe.training.trainer import train

transformers = pytest.importorskip("transformers", reason="needs requirements-models.txt")

TRUSTING = {
    "model_cfg": {
        "text_cfg": {"hf_tokenizer_name": "x", "tokenizer_kwargs": {"trust_remote_code": True}}
    }
}


def trusting(plant) -> Path:
    folder = plant("openclip", "open_clip_config.json", TRUSTING)
    (folder / "tokenizer_config.json").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps(AUTO_MAP))
    return folder


def test_open_clip_itself_runs_the_planted_code(plant, calls, tmp_path: Path):
    """Without this test, the others would also pass if the planted code could never run."""
    import open_clip

    # the planted module has no class T: transformers notices this after it ran the module
    with pytest.raises(AttributeError):
        open_clip.get_tokenizer(f"local-dir:{trusting(plant)}")
    assert (tmp_path / "ran").exists()


def test_open_clip_folder_code_does_not_run_even_if_the_folder_check_misses_it(
    plant, calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(folder_policy, "_check_file", lambda *_: None)
    assert registry.load_model(f"openclip:local-dir:{trusting(plant)}", "cpu").digest
    assert not (tmp_path / "ran").exists()
    assert calls == []


@pytest.mark.parametrize("family", ["hf", "hf-itm", "hf-gen", "st"])
def test_no_family_runs_folder_code_even_if_the_folder_check_misses_it(
    family: str, plant, calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = plant(family, "tokenizer_config.json", AUTO_MAP)
    for file in ("config.json", "preprocessor_config.json"):
        path = folder / file
        before = json.loads(path.read_text()) if path.is_file() else {}
        path.unlink(missing_ok=True)
        path.write_text(json.dumps(before | AUTO_MAP))
    monkeypatch.setattr(folder_policy, "_check_file", lambda *_: None)
    try:
        registry.load_model(f"{PREFIXES[family]}{folder}", "cpu")
    except VlprobeError as error:
        assert str(error).isprintable()
    assert not (tmp_path / "ran").exists()
    assert calls == []


DEMO = {
    "a text tower from the hub": {"text_cfg": {"hf_model_name": "planted/repository"}},
    "a text tower in a folder": {"text_cfg": {"hf_model_name": "FOLDER"}},
    "a picture tower from the hub": {
        "vision_cfg": {"timm_model_name": "hf-hub:planted/repository"}
    },
    "a picture tower in a folder": {"vision_cfg": {"timm_model_name": "local-dir:FOLDER"}},
    "no vocabulary": {"text_cfg": {"vocab_size": None}},
    "a vocabulary below nothing": {"text_cfg": {"vocab_size": -1}},
    "an option of nobody": {"text_cfg": {"no_such_option": 1}},
    "a tower that is a number": {"vision_cfg": 5},
    "a list": [1],
    "half of an object": "HALF",
    "a hundred thousand lists": "DEEP",
}


@pytest.mark.parametrize("what", DEMO)
def test_a_demo_checkpoint_with_forbidden_settings_is_refused_in_one_line(
    what: str, plant, calls, tmp_path: Path
):
    """The settings are in the metadata of the safetensors file."""
    from safetensors.torch import load_file, save_file

    from vlprobe.models.demo_weights import FOLDER, config_of

    folder, settings = plant("hf", "config.json", AUTO_MAP), DEMO[what]
    if isinstance(settings, str):
        text = {"HALF": '{"a": ', "DEEP": "[" * 100_000}[settings]
    else:
        text = json.dumps(merged(config_of(FOLDER / "weak.safetensors"), settings)).replace(
            "FOLDER", str(folder)
        )
    path = tmp_path / "w.safetensors"
    save_file(
        load_file(FOLDER / "weak.safetensors"), path, metadata={"config": text, "training": "{}"}
    )
    with pytest.raises(InvalidInput) as caught:
        registry.load_model(f"demo:weak@{path}", "cpu")
    assert str(caught.value).isprintable()
    assert not (tmp_path / "ran").exists()
    assert calls == []


def test_training_refuses_a_folder_that_requests_remote_code(plant, calls, tmp_path: Path):
    request = TrainRequest(
        f"openclip:local-dir:{trusting(plant)}",
        (make_tiny(tmp_path / "data"),),
        str(tmp_path / "o.safetensors"),
    )
    with pytest.raises(InvalidInput, match="requests to run code"):
        train(request, tmp_path / "cache")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "o.safetensors").exists()
    assert calls == []


def test_a_hub_tokenizer_named_in_an_open_clip_config_is_loaded_from_the_folder(plant, calls):
    named = {
        "model_cfg": {"text_cfg": {"hf_tokenizer_name": "planted/repository", "context_length": 32}}
    }
    folder = plant("openclip", "open_clip_config.json", named)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = registry.load_model(f"openclip:local-dir:{folder}", "cpu")
    ids = tokenizer(["a cat"], max_length=32, padding="max_length", truncation=True)["input_ids"]
    assert model.tokenize(["a cat"]).tolist() == ids
    for file in ("tokenizer.json", "vocab.json"):
        (folder / file).unlink(missing_ok=True)
    with pytest.raises(InvalidInput, match="refers to a tokenizer that is not in the folder"):
        registry.load_model(f"openclip:local-dir:{folder}", "cpu")
    assert calls == []


@pytest.mark.parametrize("family", PREFIXES)
def test_pickled_weights_with_code_are_not_unpickled(family: str, plant, calls, tmp_path: Path):
    import torch

    from tests.hostile.test_hostile_names import Runs

    folder = plant(family)
    for path in folder.glob("*.safetensors"):
        path.unlink()
    for file in ("pytorch_model.bin", "open_clip_pytorch_model.bin"):
        torch.save({"a": torch.zeros(1), "b": Runs(tmp_path / "ran")}, folder / file)
    with pytest.raises(InvalidInput):
        registry.load_model(f"{PREFIXES[family]}{folder}", "cpu")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("family", PREFIXES)
@pytest.mark.parametrize(
    "file", tiers(["*.safetensors", "*config.json", "tokenizer.json"], ("*.safetensors",))
)
def test_a_model_file_that_links_out_of_the_root_is_refused(
    family: str, file: str, plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = plant(family)
    path = sorted(folder.glob(file))[0]
    (tmp_path / "outside").mkdir()
    path.rename(tmp_path / "outside" / path.name)
    path.symlink_to(tmp_path / "outside" / path.name)
    monkeypatch.setenv(access.ROOTS, str(folder))
    with pytest.raises(InvalidInput, match="outside the folders"):
        registry.load_model(f"{PREFIXES[family]}{folder}", "cpu")
