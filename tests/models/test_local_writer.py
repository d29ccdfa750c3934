"""Local transformers models that write texts: their output equals a direct call of `generate`."""

import json
from pathlib import Path

import pytest

from tests.conftest import call
from vlprobe.errors import InvalidInput
from vlprobe.models import writers as writers
from vlprobe.models.endpoint.budget import Budget
from vlprobe.models.writers import Prompt
from vlprobe.runs.request import Progress
from vlprobe.storage.store import Store

tiny_hf = pytest.importorskip("tests.models.tiny_hf", reason="needs requirements-models.txt")
torch, transformers = tiny_hf.torch, tiny_hf.transformers
MESSAGES = ({"role": "user", "content": "is this a red cat"},)


def language_model(folder: Path) -> Path:
    """Write a tiny llama, a model without image input."""
    tokenizer = tiny_hf.letters([])
    tokenizer.chat_template = (
        "{% for m in messages %}USER: {{ m['content'] }} {% endfor %}ASSISTANT:"
    )
    text = tiny_hf.WIDTH | {"num_key_value_heads": 2, "max_position_embeddings": 512}
    config = transformers.LlamaConfig(**text, vocab_size=280)
    tiny_hf.random_weights(transformers.LlamaForCausalLM, config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    llava = tmp_path_factory.mktemp("llava")
    tiny_hf.generative("llava", llava)
    return {"llava": llava, "llama": language_model(tmp_path_factory.mktemp("llama"))}


def answer_text(store: Store, folder: Path, prompt: Prompt) -> str:
    writer = writers.load(f"hf-gen:{folder}", "cpu")
    writer.open(store.root, Budget(), Progress())
    return writers.answers_to(writer, [prompt])[prompt.name].text


def expected(kind: str, folder: Path, prompt: Prompt) -> str:
    """Generate the text with transformers only."""
    content = prompt.messages[0]["content"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    architecture = {
        "llava": transformers.AutoModelForImageTextToText,
        "llama": transformers.AutoModelForCausalLM,
    }[kind]
    model = architecture.from_pretrained(folder, dtype=torch.float32).eval()
    inputs = tokenizer(f"USER: {content} ASSISTANT:", return_tensors="pt", add_special_tokens=False)
    torch.manual_seed(prompt.seed)
    how = {"do_sample": True, "temperature": prompt.temperature, "top_k": 0, "top_p": 1.0}
    how = how if prompt.temperature else {"do_sample": False}
    rows = model.generate(**inputs, max_new_tokens=prompt.max_tokens, **how)
    return tokenizer.decode(rows[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)


@pytest.mark.parametrize("kind", ["llava", "llama"])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_an_answer_equals_the_output_of_transformers(
    folders: dict[str, Path], store: Store, kind: str, temperature: float
):
    prompt = Prompt(MESSAGES, temperature, 5, 12, "a request")
    text = answer_text(store, folders[kind], prompt)
    assert text and text == expected(kind, folders[kind], prompt)


def test_another_seed_gives_another_text_and_the_global_random_state_is_unchanged(
    folders: dict[str, Path], store: Store
):
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    texts = {
        answer_text(store, folders["llama"], Prompt(MESSAGES, 0.9, seed, 12, ""))
        for seed in (1, 2, 1)
    }
    assert len(texts) == 2 and torch.equal(torch.random.get_rng_state(), before)


def test_texts_of_a_local_writer_are_checked_by_the_rules_and_stored(
    folders: dict[str, Path], tiny: str, tmp_path: Path
):
    cache, out = tmp_path / "cache", tmp_path / "edits.jsonl"
    words = ["edits", tiny, str(out), "--with", f"hf-gen:{folders['llava']}"]
    words += ["--kind", "P1", "--item", "0.png", "--captions", "1", "--attempts", "2"]
    call(cache, *words, "--device", "cpu", "--precision", "fp32")
    rejected = out.with_suffix(".rejected.jsonl")
    row = json.loads(rejected.read_text())
    assert row["reason"] and row["made"] and "weights " in row["maker"] and not out.exists()
    log = next((cache / "mine" / "answers").rglob("answers.jsonl"))
    answers = log.read_bytes()
    assert answers.count(b"\n") in (2, 3, 4)
    call(cache, *words)
    assert log.read_bytes() == answers


def test_a_local_model_that_cannot_write_texts_is_refused(tmp_path: Path):
    tiny_hf.dual("clip", tmp_path)
    with pytest.raises(InvalidInput, match="cannot generate text"):
        writers.load(f"hf-gen:{tmp_path}", "cpu")
    tiny_hf.generative("llava", tmp_path / "mute", chat=None)
    with pytest.raises(InvalidInput, match="no chat template"):
        writers.load(f"hf-gen:{tmp_path / 'mute'}", "cpu")
