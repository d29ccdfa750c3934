"""The same checkpoint scored by the cosine of its towers (hf:) and by its matching head (hf-itm:)."""

import functools

import numpy as np
import pytest

from tests.conftest import make_tiny, tiers
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring.gallery import similarity_matrix
from vlprobe.storage.store import Store

tiny_hf = pytest.importorskip("tests.models.tiny_hf", reason="needs requirements-models.txt")
import torch  # noqa: E402
import transformers  # noqa: E402

TEXTS = tiny_hf.TEXTS


@pytest.fixture
def make_model(tiny_model):
    return functools.partial(tiny_model, tiny_hf.matching, "hf")


def vectors(model) -> tuple[np.ndarray, np.ndarray]:
    images = np.stack([model.preprocess(image) for image in tiny_hf.pictures(3)])
    return model.encode_images(images), model.encode_texts(model.tokenize(TEXTS))


def test_the_tower_embeddings_of_bridgetower_equal_its_full_forward_pass(make_model):
    folder, model = make_model("bridgetower-itc")
    images, texts = vectors(model)
    whole = transformers.BridgeTowerForContrastiveLearning.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    for row, text in enumerate(TEXTS):
        inputs = tokenizer(text, truncation=True, max_length=50, return_tensors="pt")
        pixels = processor(images=tiny_hf.pictures(3)[row % 3], return_tensors="pt")
        with torch.inference_mode():
            out = whole(**inputs, pixel_values=pixels["pixel_values"])
        assert np.abs(texts[row] - out.text_embeds[0].numpy()).max() <= 1e-6
        assert np.abs(images[row % 3] - out.image_embeds[0].numpy()).max() <= 1e-6


@pytest.mark.parametrize("kind", tiers(["blip", "blip-2"], ("blip",)))
def test_the_towers_give_the_similarity_of_the_whole_model(kind, make_model):
    folder, towers = make_model(kind)
    similarities = similarity_matrix(*vectors(towers))
    names = {"blip": "Blip", "blip-2": "Blip2"}
    whole = getattr(transformers, f"{names[kind]}ForImageTextRetrieval").from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    pixels = processor(images=tiny_hf.pictures(3), return_tensors="pt")["pixel_values"]
    head = "use_itm_head" if kind == "blip" else "use_image_text_matching_head"
    for column, text in enumerate(TEXTS):
        inputs = tokenizer(text, truncation=True, max_length=35, return_tensors="pt")
        arguments = {key: inputs[key] for key in ("input_ids", "attention_mask")} | {head: False}
        with torch.inference_mode():
            out = whole.eval()(pixel_values=pixels, **arguments)
        expected_scores = out.itm_score if kind == "blip" else out.logits_per_image
        assert similarities[:, column] == pytest.approx(expected_scores[:, 0].numpy(), abs=1e-6)


@pytest.mark.parametrize("kind", tiers(["blip", "flava"], ("blip",)))
def test_towers_and_head_of_a_checkpoint_are_two_models_with_equal_embeddings(
    kind, make_model, tmp_path
):
    folder, towers = make_model(kind)
    names = (f"hf:{folder}", f"hf-itm:{folder}")
    head = registry.load_model(names[1], "cpu")
    assert towers.digest != head.digest
    assert towers.capabilities.score_type == "cosine" and not towers.capabilities.scores_pairs
    assert head.capabilities.scores_pairs and head.capabilities.score_type == "probability"
    for cosine, beside in zip(vectors(towers), vectors(head), strict=True):
        assert np.abs(cosine - beside).max() <= 1e-6
    if kind == "flava":
        return
    store = Store(tmp_path / "cache")
    request = Request(names, make_tiny(tmp_path / "data"), "lgip", device="cpu", limit=2)
    one, two = execute(request, store)
    assert one["key"] != two["key"] and one["case_key"] == two["case_key"]
    margins = [
        store.run(manifest["key"]).table("scores").to_pandas()["margin"] for manifest in (one, two)
    ]
    assert not np.allclose(*margins)


@pytest.mark.parametrize(
    ("prefix", "kind", "message"),
    [
        (
            "hf",
            "bridgetower",
            "is not a BridgeTowerForContrastiveLearning checkpoint: .* are missing",
        ),
        (
            "hf",
            "bridgetower without its size",
            "no contrastive encoders.*Load its matching head as hf",
        ),
        ("hf", "vilt", "model type 'vilt', which is not supported.*Load it as hf-itm:"),
        (
            "hf-itm",
            "bridgetower-itc",
            "is not a BridgeTowerForImageAndTextRetrieval checkpoint: 2 of",
        ),
        (
            "hf-itm",
            "towers of flava",
            r"is not a FlavaForPreTraining checkpoint: \d+ of .*itm_head",
        ),
        (
            "hf-itm",
            "metaclip_2",
            "model type 'metaclip_2'.*If it is a dual encoder, load it as hf:",
        ),
        ("hf", "metaclip_2 with another tokenizer", "does not end texts with token 2, which"),
    ],
)
def test_a_checkpoint_without_the_requested_parts_is_refused_in_one_line(
    prefix, kind, message, tmp_path
):
    model, _, change = kind.partition(" with")
    if kind == "towers of flava":
        tiny_hf.dual("flava", tmp_path)
    elif model == "metaclip_2":
        tiny_hf.dual(model, tmp_path)
    else:
        tiny_hf.matching(model, tmp_path)
    if change.endswith("size"):
        config = tmp_path / "config.json"
        config.write_text(config.read_text().replace('"contrastive_hidden_size": 12,', ""))
    if change.endswith("tokenizer"):
        (tmp_path / "tokenizer.json").unlink()
        tiny_hf.byte_pairs().save_pretrained(tmp_path)
    with pytest.raises(InvalidInput, match=message) as error:
        registry.load_model(f"{prefix}:{tmp_path}", "cpu")
    assert "\n" not in str(error.value)
