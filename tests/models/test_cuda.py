"""Models on an NVIDIA GPU give the same scores as on a CPU. The tests are skipped on a machine without a GPU."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.conftest import make_tiny
from tests.models.conftest import pictures as noise
from vlprobe import registry, views
from vlprobe.errors import InvalidInput
from vlprobe.models import writers
from vlprobe.models.endpoint.budget import Budget
from vlprobe.models.frozen import PRECISIONS
from vlprobe.models.writers import Prompt
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.scoring.device import DeviceBatches
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.storage.store import Store
from vlprobe.training import outputs
from vlprobe.training.trainer import TrainRequest, train
from vlprobe.types import Picture

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")

TEXTS = [
    "a cat",
    "Two red cats on a very small boat next to a tree.",
    "",
    "A man rides a horse in the rain, and two dogs run behind him.",
]
# Largest difference of a coordinate of a unit vector from fp32 on a CPU
TOLERANCE = {"fp32": 5e-6, "fp16": 5e-3, "bf16": 3e-2}


def embeddings(model, pictures: Sequence[Image.Image]) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of TEXTS and of the pictures, float32, shape (n, dim)."""
    texts = model.encode_texts(model.tokenize(TEXTS))
    return texts, model.encode_images(np.stack([model.preprocess(image) for image in pictures]))


@pytest.fixture(
    params=["demo:softmax", "demo:sigmoid", "openclip:ViT-B-32", "hf:clip", "hf:siglip"]
)
def name(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the name of a dual encoder; for `hf:`, write a tiny one."""
    if not request.param.startswith("hf:"):
        return request.param
    tiny_hf = pytest.importorskip("tests.models.tiny_hf", reason="needs requirements-models.txt")
    tiny_hf.dual(request.param[3:], tmp_path)
    return f"hf:{tmp_path}"


@pytest.mark.parametrize("precision", PRECISIONS)
def test_embeddings_on_a_gpu_equal_those_on_a_cpu(name: str, precision: str):
    expected = embeddings(registry.load_model(name, "cpu"), noise(5))
    model = registry.load_model(name, "cuda", precision)
    assert model.capabilities.device == "cuda"
    for computed, exact in zip(embeddings(model, noise(5)), expected, strict=True):
        assert computed.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(computed, axis=1), 1, atol=1e-5)
        assert np.abs(computed - exact).max() <= TOLERANCE[precision]


def test_an_embedding_on_a_gpu_does_not_depend_on_its_batch(name: str):
    model = registry.load_model(name, "cuda")
    tokens = model.tokenize(TEXTS)
    pixels = np.stack([model.preprocess(image) for image in noise(5)])
    one_by_one = np.concatenate([model.encode_images(row[None]) for row in pixels])
    assert np.abs(model.encode_images(pixels) - one_by_one).max() <= TOLERANCE["fp32"]
    one_by_one = np.concatenate([model.encode_texts(row[None]) for row in tokens])
    assert np.abs(model.encode_texts(tokens) - one_by_one).max() <= TOLERANCE["fp32"]


@pytest.mark.parametrize("kind", ["clip", "qwen2_vl"])
def test_embeddings_of_sentence_transformers_on_a_gpu_equal_those_on_a_cpu(
    kind: str, tmp_path: Path
):
    written = pytest.importorskip(
        "tests.models.test_st_pictures", reason="needs requirements-models.txt"
    )
    folder = written.build(kind, tmp_path)
    expected, computed = (
        written.embeddings_of(
            registry.load_model(f"st:{folder}", device), TEXTS[:2], written.tiny_hf.pictures(3)
        )
        for device in ("cpu", "cuda")
    )
    for one, other in zip(computed, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=TOLERANCE["fp32"])


@pytest.mark.parametrize("kind", ["blip", "vilt", "llava", "qwen2_vl"])
def test_pair_scores_on_a_gpu_equal_those_on_a_cpu(kind: str, tmp_path: Path):
    tiny_hf = pytest.importorskip("tests.models.tiny_hf", reason="needs requirements-models.txt")
    is_generative = kind in ("llava", "qwen2_vl")
    (tiny_hf.generative if is_generative else tiny_hf.matching)(kind, tmp_path)
    scores = []
    for device in ("cpu", "cuda"):
        model = registry.load_model(f"hf-{'gen' if is_generative else 'itm'}:{tmp_path}", device)
        scores.append(model.match(*tiny_hf.pairs(model, noise(2), TEXTS[:2])))
    np.testing.assert_allclose(scores[1], scores[0], atol=5e-5)


@pytest.mark.parametrize("kind", ["llava", "qwen2_vl"])
def test_a_generative_model_chooses_and_writes_on_a_gpu_as_on_a_cpu(kind: str, tmp_path: Path):
    tiny_hf = pytest.importorskip("tests.models.tiny_hf", reason="needs requirements-models.txt")
    tiny_hf.generative(kind, tmp_path)
    left, right = noise(2)
    request = Prompt(({"role": "user", "content": "is this a red cat"},), 0.0, 5, 12, "a request")
    chances, texts = [], []
    for device in ("cpu", "cuda"):
        generator = registry.load_model(f"hf-gen:{tmp_path}", device)
        chances.append(
            [
                generator.first_is_left(left, right, *TEXTS[:2]),
                generator.first_is_true(left, *TEXTS[:2]),
            ]
        )
        writer = writers.load(f"hf-gen:{tmp_path}", device)
        writer.open(tmp_path / device, Budget(), Progress())
        texts.append(writers.answers_to(writer, [request])[request.name].text)
    np.testing.assert_allclose(chances[1], chances[0], atol=5e-5)
    assert texts[0] == texts[1] != ""


@pytest.mark.parametrize("probe", ["lgip", "rococo", "prsm", "pictures"])
def test_a_run_on_a_gpu_has_the_numbers_of_a_run_on_a_cpu(probe: str, tmp_path: Path):
    dataset = make_tiny(tmp_path / "pictures")
    tables = []
    for device in ("cpu", "cuda"):
        store = Store(tmp_path / device)
        manifest = execute(Request(("demo:softmax",), dataset, probe, device=device), store)[0]
        tables.append(
            views.estimates.estimates(views.runs.question_set(store, manifest["case_key"]))
        )
    one, other = tables
    assert one["metric"].tolist() == other["metric"].tolist()
    np.testing.assert_allclose(one["value"], other["value"], atol=1e-5)
    np.testing.assert_allclose(one["low"], other["low"], atol=1e-5)


def test_a_batch_that_does_not_fit_a_gpu_is_halved_and_scored_the_same(tmp_path: Path):
    pictures = []
    for number, image in enumerate(noise(96)):
        image.resize((224, 224)).save(tmp_path / f"{number}.png")
        pictures.append(Picture(tmp_path / f"{number}.png"))
    model = registry.load_model("openclip:ViT-B-32", "cuda")
    whole = CachedEncoder(model, batch_size=96).images(pictures)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(
        (torch.cuda.memory_allocated() + (100 << 20)) / total
    )
    try:
        encoder = CachedEncoder(model, batch_size=96)
        halved = encoder.images(pictures)
        texts = CachedEncoder(model, batch_size=2048).texts([f"{n} red cats" for n in range(8192)])
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    caps = encoder._device._oom_batch_caps
    assert caps.get("images", 96) < 96
    assert np.abs(halved - whole).max() <= TOLERANCE["fp32"]
    assert np.isfinite(texts).all()


def test_a_single_row_that_does_not_fit_a_gpu_is_refused_in_one_line():
    def fill(rows: np.ndarray) -> np.ndarray:
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
        return rows

    with pytest.raises(InvalidInput, match="even at batch size 1"):
        DeviceBatches("huge").run("images", fill, np.zeros((4, 1), dtype=np.float32))


@pytest.mark.parametrize("model", ["demo:softmax", "hf:clip", "hf-itm:blip"])
def test_training_losses_on_a_gpu_equal_those_on_a_cpu(model: str, tmp_path: Path):
    if (prefix := model.split(":")[0]) != "demo":
        tiny_hf = pytest.importorskip(
            "tests.models.tiny_hf", reason="needs requirements-models.txt"
        )
        (tiny_hf.dual if prefix == "hf" else tiny_hf.matching)(model.split(":")[1], tmp_path / "hf")
        model = f"{prefix}:{tmp_path / 'hf'}"
    dataset = make_tiny(tmp_path / "pictures")
    losses = {}
    for device in ("cpu", "cuda"):
        path = tmp_path / f"{device}.safetensors"
        request = TrainRequest(
            *(model, (dataset,), str(path)),
            loss="clip+0.5*eqsim",
            steps=6,
            batch_size=3,
            device=device,
        )
        train(request, tmp_path / device)
        losses[device] = [line["loss"] for line in outputs.read_log(path) if "loss" in line]
    assert len(losses["cpu"]) >= 6
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=1e-3, atol=1e-4)
