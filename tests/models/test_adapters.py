"""LoRA adapters of text encoders and models without modules.json, on tiny models created by the tests."""

import pickle
import shutil
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.models import hub
from vlprobe.registry import model_memo
from vlprobe.storage import memo

peft = pytest.importorskip("peft", reason="needs requirements-models.txt")
pytest.importorskip("sentence_transformers", reason="needs requirements-models.txt")
import safetensors.torch  # noqa: E402
import torch  # noqa: E402

from tests.models.conftest import change_settings  # noqa: E402
from tests.models.tiny_hf import TEXTS, WIDTH, bert, transformers  # noqa: E402

# peft causes this with transformers 5.24; vlprobe does not pass this argument
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
POOLED = {
    "cls": lambda states: states[0],
    "mean": lambda states: states.mean(0),
    "last": lambda states: states[-1],
}


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """Create a tiny BERT in transformers' layout, which AnglE's BERT uses."""
    folder = tmp_path_factory.mktemp("base")
    tokenizer = bert(model_max_length=64)
    config = transformers.BertConfig(vocab_size=len(tokenizer), **WIDTH)
    torch.manual_seed(3)
    transformers.BertForMaskedLM(config).bert.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def adapt(base: Path, folder: Path, head: bool = False, **settings) -> Path:
    """Write an adapter with random weights, trained with or without a head around the base model."""
    architecture = transformers.AutoModelForMaskedLM if head else transformers.AutoModel
    model = architecture.from_pretrained(base)
    torch.manual_seed(4)
    settings = {"r": 2, "target_modules": ["query", "value"]} | settings
    config = peft.LoraConfig(init_lora_weights=False, **settings)
    peft.get_peft_model(model, config).save_pretrained(folder)
    return folder


def embed(name: str) -> np.ndarray:
    model = registry.load_model(name, "cpu")
    return model.encode_texts(model.tokenize(TEXTS))


def expected(model, base: Path, pooling: str, texts: list[str] = TEXTS) -> np.ndarray:
    """Compute the embeddings with transformers and peft only: one text at a time, pooled by hand."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    rows = []
    with torch.no_grad():
        for text in texts:
            inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=64)
            state = POOLED[pooling](model(**inputs).last_hidden_state[0])
            rows.append((state / state.norm()).numpy())
    return np.stack(rows)


@pytest.mark.parametrize("pooling", POOLED)
def test_a_model_without_modules_json_uses_the_named_pooling(base, pooling):
    model = transformers.AutoModel.from_pretrained(base).eval()
    embeddings = embed(f"st:{base}+pooling={pooling}")
    assert np.abs(embeddings - expected(model, base, pooling)).max() <= 1e-5
    framed = embed(f"st:{base}+pooling={pooling}+prompt=the photo {{}} in one")
    texts = [f"the photo {text} in one" for text in TEXTS[:2]]
    assert np.abs(framed[:2] - expected(model, base, pooling, texts)).max() <= 1e-5


def test_a_prompt_with_a_placeholder_is_digested_as_two_parts(base, monkeypatch):
    described = []
    monkeypatch.setattr(hub, "described", lambda parts: described.append(parts["prompt"]) or parts)
    for prompt in ("the photo {} in one", "the photo "):
        registry.load_model(f"st:{base}+pooling=cls+prompt={prompt}", "cpu")
    assert described == [["the photo ", " in one"], "the photo "]


@pytest.mark.parametrize("settings", [{}, {"use_rslora": True}, {"use_dora": True, "r": 4}])
@pytest.mark.parametrize("start", [False, "gaussian", "orthogonal", None])
def test_embeddings_equal_those_of_an_unmerged_peft_model(base, tmp_path, settings, start):
    folder = adapt(base, tmp_path / "adapter", **settings)
    change_settings(folder / "adapter_config.json", {"init_lora_weights": start})
    unmerged = peft.PeftModel.from_pretrained(
        transformers.AutoModel.from_pretrained(base), folder
    ).eval()
    name = f"st:{base}+adapter={folder}+pooling=cls"
    embeddings = embed(name)
    assert np.abs(embeddings - expected(unmerged, base, "cls")).max() <= 1e-5
    assert np.abs(embeddings - embed(f"st:{base}+pooling=cls")).max() > 0.01
    adapted, plain = (registry.load_model(n, "cpu") for n in (name, f"st:{base}+pooling=cls"))
    assert adapted.digest != plain.digest
    assert {folder / "adapter_config.json", folder / "adapter_model.safetensors"} <= {
        *adapted.sources
    }


def test_an_adapter_trained_with_a_head_is_loaded_completely(base, tmp_path):
    folder = adapt(base, tmp_path / "adapter", head=True)
    model = transformers.AutoModelForMaskedLM.from_pretrained(base)
    inner = peft.PeftModel.from_pretrained(model, folder).eval().base_model.model.bert
    embeddings = embed(f"st:{base}+adapter={folder}+pooling=mean")
    assert np.abs(embeddings - expected(inner, base, "mean")).max() <= 1e-5


@pytest.mark.parametrize(
    "planted",
    [
        {"target_modules": "(a+)+$"},
        {"target_modules": ["(a+)+$"]},
        {"target_modules": []},
        {"r": 10**9},
        {"r": "2"},
        {"peft_type": "PROMPT_TUNING"},
        {"megatron_config": {"a": 1}, "megatron_core": "planted"},
        {"layers_pattern": "(a+)+$"},
        {"rank_pattern": {"(a+)+$": 3}},
        {"modules_to_save": ["pooler"]},
        {"runtime_config": {"a": 1}},
        {"a_new_setting": True},
        {"bias": "all"},
        {"lora_alpha": -1},
        {"init_lora_weights": "pissa"},
        {"init_lora_weights": "pissa_niter_4"},
        {"init_lora_weights": "olora"},
        {"init_lora_weights": "a\nb"},
    ],
)
def test_adapter_settings_that_could_run_code_or_are_not_applied_are_refused(
    base, tmp_path, planted
):
    folder = adapt(base, tmp_path / "adapter")
    change_settings(folder / "adapter_config.json", planted)
    with pytest.raises(InvalidInput, match=r"adapter_config\.json") as error:
        embed(f"st:{base}+adapter={folder}+pooling=cls")
    assert "\n" not in str(error.value)


def test_a_hub_adapter_is_downloaded_in_either_format_and_reloaded_when_it_changes(
    base, tmp_path, monkeypatch
):
    import huggingface_hub

    monkeypatch.setattr(memo, "SETTLED_NS", -(10**18))
    written = adapt(base, tmp_path / "adapter")
    folder = tmp_path / "hub" / "models--some--adapter" / "snapshots" / "1"
    folder.mkdir(parents=True)
    refs = folder.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text("1")
    shutil.copy(written / "adapter_config.json", folder)
    weights = safetensors.torch.load_file(written / "adapter_model.safetensors")
    patterns = []

    def fetch(repository, allow_patterns, ignore_patterns):
        patterns.append(allow_patterns[len(hub.WANTED) :])
        if "adapter_model.bin" in patterns[-1]:
            torch.save(weights, folder / "adapter_model.bin")
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    name = registry.parse_name("models", f"st:{base}+adapter=some/adapter+pooling=cls")

    def load() -> str:
        digest = model_memo.load(name, "cpu", "fp32", tmp_path).digest
        assert model_memo.look_up(name, "fp32", tmp_path) == (name.text, digest)
        return digest

    digest = load()
    assert patterns == [["adapter_model.safetensors"], ["adapter_model.bin"]]
    assert digest == registry.load_model(f"st:{base}+adapter={written}+pooling=cls", "cpu").digest
    (refs / "main").write_text("2")
    assert model_memo.look_up(name, "fp32", tmp_path) is None
    load()
    shutil.copy(written / "adapter_model.safetensors", folder)
    assert model_memo.look_up(name, "fp32", tmp_path) is None
    assert "peft" in model_memo.LIBRARIES
    error = huggingface_hub.errors.LocalEntryNotFoundError("ConnectError")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", Mock(side_effect=error))
    with pytest.raises(InvalidInput, match=r"'some/adapter' of .*: \+adapter=/path/to/folder"):
        registry.load_model(name, "cpu")


def test_the_base_model_and_module_named_in_an_adapter_are_never_opened(base, tmp_path):
    folder = adapt(base, tmp_path / "adapter")
    (tmp_path / "planted.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    name = f"st:{base}+adapter={folder}+pooling=cls"
    before = embed(name)
    named = {
        "base_model_name_or_path": "planted/repository",
        "auto_mapping": {"base_model_class": "M", "parent_library": "planted"},
        "megatron_core": "planted",
    }
    change_settings(folder / "adapter_config.json", named)
    assert (embed(name) == before).all() and not (tmp_path / "ran").exists()


def test_pickled_or_mismatched_adapter_weights_are_refused_in_one_line(base, tmp_path):
    folder = adapt(base, tmp_path / "adapter")
    name = f"st:{base}+adapter={folder}+pooling=cls"
    other = transformers.BertConfig(vocab_size=100, **WIDTH | {"num_hidden_layers": 1})
    transformers.BertModel(other).save_pretrained(tmp_path / "other")
    adapt(tmp_path / "other", tmp_path / "small")
    weights = folder / "adapter_model.safetensors"
    for content, message in [
        (
            (tmp_path / "small" / weights.name).read_bytes(),
            "which has no counterpart for 4 tensors",
        ),
        (b"no tensors", "cannot be read as plain tensors"),
    ]:
        weights.write_bytes(content)
        with pytest.raises(InvalidInput, match=message) as error:
            embed(name)
        assert "\n" not in str(error.value)
    weights.unlink()
    with pytest.raises(InvalidInput, match="has no weights"):
        embed(name)

    class Planted:
        def __reduce__(self):
            return open, (str(tmp_path / "ran"), "w")

    (folder / "adapter_model.bin").write_bytes(pickle.dumps({"a": Planted()}))
    with pytest.raises(InvalidInput, match="other files could run code"):
        embed(name)
    assert not (tmp_path / "ran").exists()


def test_errors_for_adapter_names_state_the_missing_or_unknown_option(base, tmp_path):
    folder = adapt(base, tmp_path / "adapter")
    for name, message in [
        (f"st:{base}", r"no modules.json.*\+pooling=last, mean, cls"),
        (f"st:{folder}", r"contains an adapter .*st:BASE\+adapter=FOLDER"),
        (f"st:{base}+adapter=./nothing", "adapter folder './nothing' does not exist"),
        (f"st:{base}+pooling=max", "unknown option"),
        (f"st:{base}+pooling=cls+adapter={folder}", "unknown option"),
    ]:
        with pytest.raises(InvalidInput, match=message) as error:
            registry.load_model(name, "cpu")
        assert "\n" not in str(error.value)
    (base / "modules.json").write_text("[]")
    try:
        with pytest.raises(InvalidInput, match=r"modules\.json"):
            registry.load_model(f"st:{base}+pooling=cls", "cpu")
    finally:
        (base / "modules.json").unlink()
