"""Generative models, against a plain forward pass of transformers on tiny checkpoints."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.probes.test_common import make
from vlprobe import registry, views
from vlprobe.errors import InvalidInput
from vlprobe.models import hf_gen
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.storage.store import Store

tiny_hf = pytest.importorskip("tests.models.tiny_hf", reason="needs requirements-models.txt")
import torch  # noqa: E402
import transformers  # noqa: E402

KINDS = ["llava", "qwen2_vl", "idefics3"]
CAPTIONS = ["a cat", "A man's horse, in the rain."]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    done = {}

    def make_one(kind: str):
        if kind not in done:
            folder = tmp_path_factory.mktemp(kind)
            tiny_hf.generative(kind, folder)
            done[kind] = folder, registry.load_model(f"hf-gen:{folder}", "cpu")
        return done[kind]

    return make_one


def probabilities(
    kind: str, folder: Path, image: Image.Image, question: str
) -> tuple[torch.Tensor, object]:
    """What transformers says of the first token of the answer, and its tokenizer."""
    model = transformers.AutoModelForImageTextToText.from_pretrained(
        folder, dtype=torch.float32
    ).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    processor.image_processor = transformers.AutoImageProcessor.from_pretrained(
        folder, backend="pil"
    )
    place = "<|vision_start|><|image_pad|><|vision_end|>" if kind == "qwen2_vl" else "<image>"
    inputs = processor(
        images=image, text=f"USER: {place}{question} ASSISTANT:", return_tensors="pt"
    )
    made = model.generate(
        **inputs,
        max_new_tokens=1,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
    )
    return made.logits[0][0].softmax(dim=0), processor.tokenizer


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_is_the_probability_of_yes_against_no_as_the_first_token(kind, made):
    folder, model = made(kind)
    images = tiny_hf.pictures(2)
    found = model.match(
        model.encode_pictures([model.preprocess(image) for image in images]),
        model.tokenize(CAPTIONS),
    )
    for row, (image, caption) in enumerate(zip(images, CAPTIONS, strict=True)):
        question = f"Does this picture show: '{caption}'? Answer yes or no."
        said, tokenizer = probabilities(kind, folder, image, question)
        # a byte a token: what begins with a blank begins both answers
        yes, no = (
            sum(float(said[tokenizer.convert_tokens_to_ids(one)]) for one in pair)
            for pair in ("Yy", "Nn")
        )
        assert found[row] == pytest.approx(yes / (yes + no), abs=1e-5)
    assert model.capabilities.score_type == "probability" and "Answer yes or no." in model.note


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_does_not_depend_on_its_neighbours(kind, made, tmp_path):
    _, model = made(kind)
    seen, tokens = tiny_hf.pictures(2), model.tokenize(CAPTIONS)
    pixels = [model.preprocess(image) for image in seen]
    both = model.match(pixels, tokens)
    alone = [model.match([one], row[None])[0] for one, row in zip(pixels, tokens, strict=True)]
    np.testing.assert_array_equal(both, alone)


def test_log_odds_are_what_the_probability_is_made_of(made):
    _, model = made("llava")
    pixels, tokens = [model.preprocess(tiny_hf.pictures(1)[0])], model.tokenize(CAPTIONS[:1])
    odds = float(model.match(pixels, tokens, logits=True)[0])
    assert model.match(pixels, tokens)[0] == pytest.approx(1 / (1 + np.exp(-odds)), abs=1e-6)


def test_texts_are_told_apart_by_every_character(made):
    _, model = made("llava")
    rows = model.tokenize(["a cat", "A cat", "a cat "])
    assert len({row.tobytes() for row in rows}) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_two_pictures_side_by_side_are_asked_about_in_the_paper_s_words(kind, made):
    folder, model = made(kind)
    left, right = tiny_hf.pictures(2)
    both = Image.new(
        "RGB", (left.width + round(right.width * left.height / right.height), left.height)
    )
    both.paste(left, (0, 0))
    both.paste(
        right.resize((both.width - left.width, left.height), Image.Resampling.BICUBIC),
        (left.width, 0),
    )
    said, tokenizer = probabilities(kind, folder, both, hf_gen.MATCHING.format("a cat", "a dog"))
    one, two = (float(said[tokenizer.convert_tokens_to_ids(digit)]) for digit in "12")
    assert model.first_is_left(left, right, "a cat", "a dog") == pytest.approx(
        one / (one + two), abs=1e-5
    )


def test_a_model_that_follows_the_order_of_captions_is_right_in_one_order_and_wrong_in_the_other(
    made, tmp_path, monkeypatch
):
    _, model = made("llava")
    asked = []

    def first_is_left(self, left, right, one, two):
        asked.append((left.getpixel((0, 0)), right.getpixel((0, 0)), one, two))
        return 0.9  # always "1;2", as LLaVA in table 7

    monkeypatch.setattr(type(model), "first_is_left", first_is_left)
    monkeypatch.setattr(
        type(model),
        "match",
        lambda self, seen, tokens, logits=False: np.ones(len(seen), np.float32),
    )
    monkeypatch.setattr(registry, "load_model", lambda *names: model)
    store = Store(tmp_path / "cache")
    manifest = execute(
        Request((model.name,), make("eqben", tmp_path / "data", 3), "eqben", device="cpu"), store
    )[0]
    found = views.estimates.estimates(
        store, views.runs.question_set(store, manifest["case_key"])
    ).set_index("metric")["value"]
    assert (found["matched_12"], found["matched_21"], found["matched_both"]) == (1, 0, 0)
    assert found["group_score"] == 0  # all probabilities tie
    lefts, rights, ones, twos = zip(*asked, strict=True)
    assert lefts[0] == lefts[1] and rights[0] == rights[1]
    assert (ones[0], twos[0]) == (twos[1], ones[1]) == ("first 0", "second 0")


def test_a_run_over_foils_counts_what_is_accepted_and_rejected(made, tmp_path):
    folder, model = made("llava")
    tiny_hf.pictures(1)[0].save(tmp_path / "a.png")
    rows = {"0": {"filename": "a.png", "caption": "a cat", "negative_caption": "a dog"}}
    (tmp_path / "foils.json").write_text(json.dumps(rows))
    store = Store(tmp_path / "cache")
    name = f"triplets:{tmp_path / 'foils.json'}@{tmp_path}"
    manifest = execute(Request((f"hf-gen:{folder}",), name, "eqben", device="cpu"), store)[0]
    from vlprobe.types import Picture

    true, false = CachedEncoder(model).pairs(
        [Picture(tmp_path / "a.png")], ["a cat", "a dog"], np.array([0, 0]), np.array([0, 1])
    )
    found = views.estimates.estimates(
        store, views.runs.question_set(store, manifest["case_key"])
    ).set_index("metric")["value"]
    assert found["caption_accepted"] == float(true > 0.5) and found["foil_rejected"] == float(
        false < 0.5
    )
    assert np.isnan(found["matched_both"])


@pytest.mark.parametrize("probe", ["rococo", "prsm"])
def test_a_gallery_is_refused_in_one_line(probe, made, tmp_path):
    folder, _ = made("llava")
    request = Request((f"hf-gen:{folder}",), make(probe, tmp_path / "data"), probe, device="cpu")
    with pytest.raises(InvalidInput, match="searches a gallery"):
        execute(request, Store(tmp_path / "cache"))


def test_a_model_without_a_chat_template_is_refused(tmp_path):
    tiny_hf.generative("llava", tmp_path, chat=None)
    with pytest.raises(InvalidInput, match="has no chat template"):
        registry.load_model(f"hf-gen:{tmp_path}", "cpu")


def test_answers_that_begin_with_the_same_token_are_refused(made, monkeypatch):
    folder, _ = made("llava")
    monkeypatch.setattr(hf_gen, "YES_NO", ((" Yes",), (" No",)))
    with pytest.raises(InvalidInput, match="begin with the same token"):
        registry.load_model(f"hf-gen:{folder}", "cpu")


def test_a_model_that_answers_nothing_is_refused(tmp_path):
    tiny_hf.dual("clip", tmp_path)
    with pytest.raises(InvalidInput, match="of type 'clip' and cannot answer questions"):
        registry.load_model(f"hf-gen:{tmp_path}", "cpu")


def test_the_digest_names_what_is_asked(made, monkeypatch):
    folder, model = made("llava")
    assert registry.load_model(f"hf-gen:{folder}", "cpu").digest == model.digest
    monkeypatch.setattr(hf_gen, "QUESTION", "Is this '{}'?")
    assert registry.load_model(f"hf-gen:{folder}", "cpu").digest != model.digest
