"""Settings that the check of a model folder allows, and its lists compared with the installed libraries."""

import json
from pathlib import Path

import pytest

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.models import folder_policy

transformers = pytest.importorskip("transformers", reason="needs requirements-models.txt")


def test_the_listed_kernel_architectures_match_the_installed_transformers():
    root = Path(transformers.__file__).parent / "models"
    fetching = {
        file.parent.name
        for file in root.glob("*/modeling_*.py")
        if " get_kernel(" in file.read_text("utf-8")
    }
    assert fetching == set(folder_policy.KERNEL_ARCHITECTURES)


def test_a_model_folder_with_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(folder_policy, "MOST_FILES", 3)
    for number in range(4):
        (tmp_path / f"{number}.txt").touch()
    with pytest.raises(InvalidInput, match="more than 3 files"):
        registry.load_model(f"hf:{tmp_path}", "cpu")


def test_settings_of_published_hub_models_are_allowed(tmp_path: Path):
    """Use settings of the published repositories of CLIP, SigLIP, SmolVLM and all-MiniLM."""
    settings = {
        "config.json": {
            "_name_or_path": "/home/somebody/checkpoints",
            "architectures": ["Idefics3ForConditionalGeneration"],
            "model_type": "idefics3",
            "text_config": {
                "_attn_implementation_autoset": True,
                "_flash_attn_2_enabled": True,
                "model_type": "llama",
            },
            "vision_config": {
                "_attn_implementation": "sdpa",
                "model_type": "idefics3_vision",
                "use_base_siglip": False,
            },
            "attn_implementation": None,
            "auto_map": None,
            "id2label": {"0": "backbone"},
            "label2id": {"backbone": 1},
        },
        "tokenizer_config.json": {
            "name_or_path": "openai/clip-vit-base-patch32",
            "special_tokens_map_file": "./special_tokens_map.json",
            "tokenizer_class": "CLIPTokenizer",
            "tokenizer_file": "/home/somebody/tokenizer.json",
        },
        "preprocessor_config.json": {
            "feature_extractor_type": "CLIPFeatureExtractor",
            "processor_class": "CLIPProcessor",
        },
        "open_clip_config.json": {
            "model_cfg": {
                "vision_cfg": {
                    "timm_model_name": "vit_base_patch16_siglip_224",
                    "timm_model_pretrained": False,
                },
                "text_cfg": {
                    "hf_tokenizer_name": "timm/ViT-B-16-SigLIP",
                    "tokenizer_kwargs": {"clean": "canonicalize"},
                },
            }
        },
        "2_Dense/config.json": {"activation_function": "torch.nn.modules.activation.Tanh"},
        "model.safetensors.index.json": {
            "metadata": {},
            "weight_map": {"a": "model-00001-of-00002.safetensors"},
        },
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {
                "idx": 1,
                "name": "1",
                "path": "1_Pooling",
                "type": "sentence_transformers.models.Pooling",
            },
            {
                "idx": 2,
                "name": "2",
                "path": "2_Normalize",
                "type": "sentence_transformers.models.Normalize",
            },
        ],
        "sentence_bert_config.json": {"max_seq_length": 256, "do_lower_case": False},
        "unigram.json": {"backbone": 17, "repo_path": 18},
    }
    for file, content in settings.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(json.dumps(content))
    folder_policy.check_folder("hf:x", tmp_path)
