"""Generative models, compared with a forward pass of transformers on tiny checkpoints."""

import functools
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import tiers
from tests.models.test_scores import values
from tests.probes.test_common import make
from vlprobe import registry
from vlprobe.dashboard.embeddings import may_embed
from vlprobe.errors import InvalidInput
from vlprobe.models import hf_gen
from vlprobe.probes import fit
from vlprobe.probes.rococo_galleries import CAPTIONS as CAPTION_SEARCHES
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.scoring.pictures import open_picture
from vlprobe.storage.store import Store
from vlprobe.types import Picture

tiny_hf = pytest.importorskip("tests.models.tiny_hf", reason="needs requirements-models.txt")
import torch  # noqa: E402
import transformers  # noqa: E402

KINDS = ["llava", "qwen2_vl", "idefics3"]
QUICK = ("llava",)  # in the default suite
CAPTIONS = ["a cat", "A man's horse, in the rain."]


@pytest.fixture
def make_model(tiny_model):
    return functools.partial(tiny_model, tiny_hf.generative, "hf-gen")


def probabilities(
    kind: str, folder: Path, image: Image.Image, question: str, *answers: str
) -> list[float]:
    """Return transformers' probability that the first token is one of the letters of each answer."""
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
    first_token, ids = made.logits[0][0].softmax(dim=0), processor.tokenizer.convert_tokens_to_ids
    return [sum(float(first_token[ids(letter)]) for letter in answer) for answer in answers]


@pytest.mark.parametrize("kind", tiers(KINDS, QUICK))
def test_a_score_is_the_probability_of_yes_versus_no_as_the_first_token(kind, make_model):
    folder, model = make_model(kind)
    images = tiny_hf.pictures(2)
    scores = model.match(*tiny_hf.pairs(model, images, CAPTIONS))
    for row, (image, caption) in enumerate(zip(images, CAPTIONS, strict=True)):
        question = f"Does this picture show: '{caption}'? Answer yes or no."
        # each token is a byte, so a leading blank would begin both answers
        yes, no = probabilities(kind, folder, image, question, "Yy", "Nn")
        assert scores[row] == pytest.approx(yes / (yes + no), abs=1e-5)
    assert model.capabilities.score_type == "probability" and "Answer yes or no." in model.note
    assert registry.parse_name("models", f"hf-gen:{folder}").capabilities == model.capabilities
    assert not may_embed(f"hf-gen:{folder}")


@pytest.mark.parametrize("kind", tiers(KINDS, QUICK))
def test_a_score_does_not_depend_on_other_pairs_in_the_batch(kind, make_model, tmp_path):
    _, model = make_model(kind)
    pixels, tokens = tiny_hf.pairs(model, tiny_hf.pictures(2), CAPTIONS)
    both = model.match(pixels, tokens)
    alone = [model.match([one], row[None])[0] for one, row in zip(pixels, tokens, strict=True)]
    np.testing.assert_array_equal(both, alone)


def test_the_probability_is_the_sigmoid_of_the_log_odds(make_model):
    _, model = make_model("llava")
    inputs = tiny_hf.pairs(model, tiny_hf.pictures(1), CAPTIONS[:1])
    odds = float(model.match(*inputs, logits=True)[0])
    assert model.match(*inputs)[0] == pytest.approx(1 / (1 + np.exp(-odds)), abs=1e-6)


def test_texts_that_differ_in_one_character_have_different_tokens(make_model):
    _, model = make_model("llava")
    rows = model.tokenize(["a cat", "A cat", "a cat "])
    assert len({row.tobytes() for row in rows}) == 3


@pytest.mark.parametrize("kind", tiers(KINDS, QUICK))
def test_two_pictures_side_by_side_get_the_question_of_the_paper(kind, make_model):
    folder, model = make_model(kind)
    left, right = tiny_hf.pictures(2)
    both = Image.new(
        "RGB", (left.width + round(right.width * left.height / right.height), left.height)
    )
    both.paste(left, (0, 0))
    both.paste(
        right.resize((both.width - left.width, left.height), Image.Resampling.BICUBIC),
        (left.width, 0),
    )
    question = hf_gen.MATCHING.format("a cat", "a dog")
    one, two = probabilities(kind, folder, both, question, "1", "2")
    assert model.first_is_left(left, right, "a cat", "a dog") == pytest.approx(
        one / (one + two), abs=1e-5
    )


def test_a_model_that_follows_the_caption_order_is_right_in_one_order_only(
    make_model, tmp_path, monkeypatch
):
    _, model = make_model("llava")
    inputs = []

    def first_is_left(self, left, right, one, two):
        inputs.append((left.getpixel((0, 0)), right.getpixel((0, 0)), one, two))
        return 0.9  # always "1;2", like LLaVA in table 7

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
    metrics = values(store, manifest)
    assert (metrics["matched_12"], metrics["matched_21"], metrics["matched_both"]) == (1, 0, 0)
    assert metrics["group_score"] == 0  # all probabilities are tied
    lefts, rights, ones, twos = zip(*inputs, strict=True)
    assert lefts[0] == lefts[1] and rights[0] == rights[1]
    assert (ones[0], twos[0]) == (twos[1], ones[1]) == ("first 0", "second 0")


def foils(folder: Path, n: int = 3) -> str:
    """Write pictures with a caption and a foil each, and return the name of the dataset."""
    for number, image in enumerate(tiny_hf.pictures(n)):
        image.save(folder / f"{number}.png")
    rows = {
        str(number): {
            "filename": f"{number}.png",
            "caption": f"a cat {number}",
            "negative_caption": f"a dog {number}",
        }
        for number in range(n)
    }
    (folder / "foils.json").write_text(json.dumps(rows))
    return f"triplets:{folder / 'foils.json'}@{folder}"


def test_a_run_on_foils_counts_accepted_captions_and_rejected_foils(make_model, tmp_path):
    folder, model = make_model("llava")
    store, data = Store(tmp_path / "cache"), foils(tmp_path, 1)
    manifest = execute(Request((f"hf-gen:{folder}",), data, "eqben", device="cpu"), store)[0]
    picture, texts = Picture(tmp_path / "0.png"), ["a cat 0", "a dog 0"]
    true, false = CachedEncoder(model).pairs([picture], texts, np.zeros(2, int), np.arange(2))
    metrics = values(store, manifest)
    assert metrics["caption_accepted"] == float(true > 0.5) and metrics["foil_rejected"] == float(
        false < 0.5
    )
    assert np.isnan(metrics["matched_both"])


def test_a_gallery_is_ranked_by_the_log_odds_of_all_pairs_after_printing_their_number(
    make_model, tmp_path
):
    folder, model = make_model("llava")
    lines = []

    class Recorder(Progress):
        def tell(self, line: str) -> None:
            lines.append(line)

    store, data = Store(tmp_path / "cache"), make("rococo", tmp_path / "data")
    clean = {"policies": [], "pictures": []}
    request = Request((f"hf-gen:{folder}",), data, "rococo", clean, device="cpu", examine=False)
    manifest = execute(request, store, Recorder())[0]
    items = registry.load_dataset(data, store.root).items
    captions = list(dict.fromkeys(caption for item in items for caption in item.captions))
    n_passes = len(items) * len(captions)
    assert lines == [
        f"hf-gen:{folder} has no embeddings: up to {n_passes:,} forward passes "
        f"({len(items)} pictures x {len(captions)} texts)."
    ]
    tokens = model.tokenize(captions)
    pixels = [model.preprocess(open_picture(item.image)) for item in items]
    odds = np.array([model.match([one] * len(captions), tokens, logits=True) for one in pixels])
    ranks = []
    for item, row in zip(items, odds, strict=True):
        own = [captions.index(caption) for caption in item.captions]
        others = np.delete(row, own)
        ranks.append(1 + int((others >= row[own].max()).sum()))  # a tie is a failure
    rows = store.run(manifest["key"]).table("scores").to_pylist()
    kinds = store.cases(manifest["case_key"]).table("cases", ["kind"])["kind"].to_pylist()
    stored_ranks = [
        row["rank_clean"] for row, kind in zip(rows, kinds, strict=True) if kind == CAPTION_SEARCHES
    ]
    assert stored_ranks == ranks
    assert manifest["score_type"] == "logit"


def test_a_gallery_with_too_many_candidates_is_refused_in_one_line(
    make_model, tmp_path, monkeypatch
):
    folder, _ = make_model("llava")
    monkeypatch.setattr(fit, "MOST_CANDIDATES", 5)
    request = Request((f"hf-gen:{folder}",), make("prsm", tmp_path / "data"), "prsm", device="cpu")
    with pytest.raises(
        InvalidInput, match=r"forward pass for every picture .*at most 5 candidates"
    ):
        execute(request, Store(tmp_path / "cache"))


def test_caption_choices_in_both_orders_equal_those_of_transformers(make_model, tmp_path):
    folder, _ = make_model("llava")
    store, data = Store(tmp_path / "cache"), foils(tmp_path)
    manifest = execute(Request((f"hf-gen:{folder}+choice",), data, "eqben", device="cpu"), store)[0]
    orders = []
    for number, image in enumerate(tiny_hf.pictures(3)):
        captions = [f"a cat {number}", f"a dog {number}"]
        rights = []
        for first, second in (captions, captions[::-1]):
            question = (
                f"Which caption describes this picture? A: '{first}' B: '{second}' Answer A or B."
            )
            one, two = probabilities("llava", folder, image, question, "A", "B")
            rights.append(one > two if first == captions[0] else two > one)
        orders.append(rights)
    expected = np.array(orders, dtype=float)
    metrics = values(store, manifest)
    assert metrics["foil_accuracy"] == pytest.approx(expected.mean())
    assert metrics["right_true_first"] == pytest.approx(expected[:, 0].mean())
    assert metrics["right_wrong_first"] == pytest.approx(expected[:, 1].mean())
    assert metrics["right_in_both_orders"] == pytest.approx(expected.all(axis=1).mean())
    assert metrics["order_flips"] == pytest.approx((expected[:, 0] != expected[:, 1]).mean())
    assert manifest["n_orders"] == 2 and manifest["score_type"] == "verdict"
    rows = store.run(manifest["key"]).table("scores").to_pylist()
    np.testing.assert_allclose([row["scores"][0] for row in rows], expected.mean(axis=1))


def test_a_question_template_is_used_and_changes_the_digest(make_model, tmp_path):
    folder, model = make_model("llava")
    name = f"hf-gen:{folder}+template=Is '{{}}' here? Say yes or no."
    other = registry.load_model(name, "cpu")
    assert other.digest != model.digest and "Is '...' here?" in other.note
    image = tiny_hf.pictures(1)[0]
    question = "Is 'a cat' here? Say yes or no."
    yes, no = probabilities("llava", folder, image, question, "Yy", "Nn")
    score = other.match([other.preprocess(image)], other.tokenize(["a cat"]))[0]
    assert score == pytest.approx(yes / (yes + no), abs=1e-5)


@pytest.mark.parametrize(
    "option", ["template=Is it here?", "template={} or {x}", "choice+template={}"]
)
def test_a_template_with_wrong_placeholders_is_refused_in_one_line(option, tmp_path):
    with pytest.raises(InvalidInput, match="is not a question template"):
        registry.parse_name("models", f"hf-gen:{tmp_path / 'x'}+{option}").check()


def test_a_choice_requires_one_true_and_one_wrong_caption(make_model, tmp_path):
    folder, _ = make_model("llava")
    name, store = f"hf-gen:{folder}+choice", Store(tmp_path / "cache")
    with pytest.raises(InvalidInput, match="no case has exactly these two"):
        execute(Request((name,), make("visla", tmp_path / "visla"), "visla", device="cpu"), store)
    data = make("lgip", tmp_path / "lgip")
    manifest = execute(Request((name,), data, "lgip", device="cpu"), store)[0]
    roles = store.cases(manifest["case_key"]).table("cases", ["roles"])["roles"].to_pylist()
    rows = store.run(manifest["key"]).table("scores").to_pylist()
    for row, of_case in zip(rows, roles, strict=True):
        assert np.isnan(row["scores"]).any() == (of_case != ["original", "different"])
    assert "are not a choice of two captions: unknown" in manifest["note"]
    with pytest.raises(InvalidInput, match="searches a gallery"):
        execute(Request((name,), data, "prsm", device="cpu"), store)


def test_a_model_without_a_chat_template_is_refused(tmp_path):
    tiny_hf.generative("llava", tmp_path, chat=None)
    with pytest.raises(InvalidInput, match="has no chat template"):
        registry.load_model(f"hf-gen:{tmp_path}", "cpu")


def test_answers_that_start_with_the_same_token_are_refused(make_model, monkeypatch):
    folder, _ = make_model("llava")
    monkeypatch.setattr(hf_gen, "YES_NO", ((" Yes",), (" No",)))
    with pytest.raises(InvalidInput, match="begin with the same token"):
        registry.load_model(f"hf-gen:{folder}", "cpu")


def test_a_model_that_cannot_answer_questions_is_refused(tmp_path):
    tiny_hf.dual("clip", tmp_path)
    with pytest.raises(InvalidInput, match="model type 'clip' and cannot answer questions"):
        registry.load_model(f"hf-gen:{tmp_path}", "cpu")


def test_the_digest_depends_on_the_question(make_model, monkeypatch):
    folder, model = make_model("llava")
    assert registry.load_model(f"hf-gen:{folder}", "cpu").digest == model.digest
    monkeypatch.setattr(hf_gen, "QUESTION", "Is this '{}'?")
    assert registry.load_model(f"hf-gen:{folder}", "cpu").digest != model.digest
