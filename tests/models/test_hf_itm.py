"""Image-text matching heads on cases and galleries, compared with the forward pass of transformers on tiny
checkpoints.
"""

import functools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.conftest import make_tiny, tiers
from vlprobe import registry
from vlprobe.probes.fit import score_type
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring import gallery, spread
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.storage.store import Store
from vlprobe.types import Picture

tiny_hf = pytest.importorskip("tests.models.tiny_hf", reason="needs requirements-models.txt")
import torch  # noqa: E402
import transformers  # noqa: E402

KINDS = ["blip", "blip-2", "vilt", "flava", "bridgetower"]
QUICK = ("blip", "vilt")  # in the default suite
TWO_SIDED = ["blip", "blip-2", "flava"]
CONTEXT = {"blip": 35, "blip-2": 35, "vilt": 40, "flava": 77, "bridgetower": 50}
TEXTS = tiny_hf.TEXTS
# With random weights, rounding changes BridgeTower's logits by up to 2e-5 in fp32; on some CPUs it depends on the
# batch.
LOGIT_ROUNDING = dict.fromkeys(KINDS, 2e-6) | {"bridgetower": 2e-5}
ROUNDING = dict.fromkeys(KINDS, 1e-6) | {"bridgetower": 5e-6}
MODELS = {
    "blip": transformers.BlipForImageTextRetrieval,
    "blip-2": transformers.Blip2ForImageTextRetrieval,
    "vilt": transformers.ViltForImageAndTextRetrieval,
    "flava": transformers.FlavaForPreTraining,
    "bridgetower": transformers.BridgeTowerForImageAndTextRetrieval,
}


@pytest.fixture
def make_model(tiny_model):
    return functools.partial(tiny_model, tiny_hf.matching, "hf-itm")


@pytest.fixture
def photos(tmp_path):
    found = []
    for number, image in enumerate(tiny_hf.pictures(5)):
        image.save(tmp_path / f"{number}.png")
        found.append(Picture(tmp_path / f"{number}.png"))
    return found


@functools.cache
def parts(kind: str, folder: Path) -> tuple:
    """Load the model, tokenizer and image processor with transformers."""
    return (
        MODELS[kind].from_pretrained(folder, dtype=torch.float32).eval(),
        transformers.AutoTokenizer.from_pretrained(folder),
        transformers.AutoImageProcessor.from_pretrained(folder, backend="pil"),
    )


def forward(kind: str, folder: Path, image, text: str, itm: bool = True) -> torch.Tensor:
    """Return the output of transformers' forward pass for one pair."""
    model, tokenizer, processor = parts(kind, folder)
    inputs = dict(tokenizer(text, truncation=True, max_length=CONTEXT[kind], return_tensors="pt"))
    inputs |= processor(images=image, return_tensors="pt")
    if kind in ("blip", "blip-2"):
        inputs.pop("token_type_ids", None)
        inputs |= {"use_itm_head" if kind == "blip" else "use_image_text_matching_head": itm}
    if kind == "blip" and itm:
        inputs["input_ids"][0, 0] = 131  # [ENC], as in BLIP's released retrieval code
    if kind == "flava":
        inputs |= {"return_loss": False}
    with torch.inference_mode():
        out = model(**inputs)
    if kind == "flava":
        if itm:
            return out.itm_logits
        return out.contrastive_logits_per_image / model.flava.logit_scale.exp().item()
    return getattr(out, {"blip": "itm_score", "blip-2": "logits_per_image"}.get(kind, "logits"))


@pytest.mark.parametrize("kind", tiers(KINDS, QUICK))
def test_the_score_of_a_pair_equals_the_forward_pass_of_transformers(kind, make_model):
    folder, model = make_model(kind)
    images = tiny_hf.pictures(len(TEXTS))
    together = tiny_hf.pairs(model, images, TEXTS)
    scores, logits = model.match(*together), model.match(*together, logits=True)
    assert scores.dtype == np.float32
    for row, (image, text) in enumerate(zip(images, TEXTS, strict=True)):
        logit = forward(kind, folder, image, text)[0]
        expected = float(logit[0]) if kind == "vilt" else float(logit.softmax(dim=0)[1])
        alone = tiny_hf.pairs(model, [image], [text])
        assert model.match(*alone, logits=True)[0] == pytest.approx(float(logit[-1]), abs=2e-6)
        assert model.match(*alone)[0] == pytest.approx(expected, abs=1e-6)
        assert logits[row] == pytest.approx(float(logit[-1]), abs=LOGIT_ROUNDING[kind])
        assert scores[row] == pytest.approx(expected, abs=ROUNDING[kind])
    assert model.capabilities.score_type == ("logit" if kind == "vilt" else "probability")


@pytest.mark.parametrize("kind", tiers(TWO_SIDED, QUICK))
def test_the_similarity_for_short_lists_equals_that_of_transformers(kind, make_model):
    folder, model = make_model(kind)
    images = tiny_hf.pictures(len(TEXTS))
    left = model.encode_images(np.stack([model.preprocess(image) for image in images]))
    right = model.encode_texts(model.tokenize(TEXTS))
    similarities = gallery.similarity_matrix(left, right)
    assert (right.shape[1], left.shape[1]) == (model.capabilities.dim, model.capabilities.image_dim)
    for row, (image, text) in enumerate(zip(images, TEXTS, strict=True)):
        assert similarities[row, row] == pytest.approx(
            float(forward(kind, folder, image, text, itm=False)[0, 0]), abs=1e-6
        )
    np.testing.assert_array_equal(gallery.similarity_matrix(right, left), similarities.T)


@pytest.mark.parametrize("kind", tiers(KINDS, QUICK))
def test_a_score_does_not_depend_on_its_batch(kind, make_model):
    _, model = make_model(kind)
    images = tiny_hf.pictures(len(TEXTS))
    seen, tokens = tiny_hf.pairs(model, images, TEXTS)
    alone = [
        model.match(model.encode_pictures([model.preprocess(i)]), row[None])[0]
        for i, row in zip(images, tokens, strict=True)
    ]
    assert np.abs(model.match(seen, tokens) - alone).max() <= ROUNDING[kind]


def test_vilt_does_not_change_the_global_random_state(make_model):
    _, model = make_model("vilt")
    inputs = tiny_hf.pairs(model, tiny_hf.pictures(2), TEXTS[:2])
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first = model.match(*inputs)
    assert torch.equal(torch.rand(2), expected)
    np.testing.assert_array_equal(first, model.match(*inputs))


@pytest.mark.parametrize("kind", tiers(KINDS, QUICK))
@pytest.mark.parametrize("batch", [1, 3, 64])
def test_each_pair_is_scored_once_in_the_given_order_with_any_batch_size(
    kind, batch, make_model, photos, monkeypatch
):
    _, model = make_model(kind)
    batch_sizes = []
    original = type(model).match

    def counted(self, seen, tokens, logits=False):
        batch_sizes.append(len(tokens))
        return original(self, seen, tokens, logits)

    monkeypatch.setattr(type(model), "match", counted)
    left, right = np.array([4, 0, 0, 2, 4, 0]), np.array([0, 1, 5, 1, 0, 1])
    # BridgeTower's tokenizer keeps case
    again = TEXTS[1] if kind == "bridgetower" else TEXTS[1].upper()
    scores = CachedEncoder(model, batch_size=batch).pairs(photos, [*TEXTS, again], left, right)
    # the fifth pair repeats the first; the last pair repeats the second, and with a lower-casing tokenizer so does the
    # third
    assert sum(batch_sizes) == 3
    assert scores[0] == scores[4] and scores[1] == scores[2] == scores[5]
    plain = [
        original(model, *tiny_hf.pairs(model, [tiny_hf.pictures(5)[one]], [TEXTS[two]]))[0]
        for one, two in ((4, 0), (0, 1), (2, 1))
    ]
    assert np.abs(scores[[0, 1, 3]] - plain).max() <= ROUNDING[kind]


def test_a_picture_is_encoded_once_for_all_its_pairs(make_model, photos, monkeypatch):
    _, model = make_model("blip")
    looked = []
    original = type(model).encode_pictures
    monkeypatch.setattr(
        type(model),
        "encode_pictures",
        lambda self, pixels: looked.append(len(pixels)) or original(self, pixels),
    )
    encoder = CachedEncoder(model, batch_size=2)
    for _ in range(2):
        encoder.pairs(photos, TEXTS, np.repeat(np.arange(5), 5), np.tile(np.arange(5), 5))
    assert sum(looked) == 5
    looked.clear()
    encoder = CachedEncoder(model, batch_size=2, memory=1)
    for _ in range(2):
        encoder.pairs(photos, TEXTS, np.arange(5), np.arange(5))
    assert sum(looked) > 5  # entries beyond the cache size are dropped


@pytest.mark.parametrize("kind", tiers(KINDS, QUICK))
def test_cases_are_scored_by_pair_and_texts_by_their_embeddings_if_the_model_has_any(
    kind, make_model, photos
):
    _, model = make_model(kind)
    cases = pa.table(
        {
            **{key: ["", ""] for key in ("kind", "subtype", "rule")},
            "images": [[photos[0].name, str(photos[1].path)], [photos[2].name]],
            "texts": [["a cat", "a dog"], ["a cat", "A man rides a horse."]],
        }
    )
    encoder = CachedEncoder(model)
    found = scoring_cases.case_scorer(encoder, lambda rows: rows["score_0"].to_numpy())(cases)
    expected = encoder.pairs(
        photos, ["a cat", "a dog"], np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    )
    np.testing.assert_allclose(found["scores"][0].as_py(), expected, atol=1e-6)
    cosine = found["text_scores"][0].as_py()[0]
    if kind not in TWO_SIDED:
        assert np.isnan(cosine)
    else:
        one, two = encoder.texts(["a cat", "a dog"])
        assert cosine == pytest.approx(float(one @ two), abs=1e-6)


def test_the_spread_of_a_head_is_the_spread_of_its_mismatched_pair_scores(
    make_model, photos, monkeypatch
):
    _, model = make_model("blip")
    encoder, captions = CachedEncoder(model), [[text] for text in TEXTS]
    apart = [
        encoder.pairs(photos, TEXTS, np.array([one]), np.array([two]))[0]
        for one in range(5)
        for two in range(5)
        if one != two
    ]
    assert spread.similarity_spread(encoder, photos, captions) == pytest.approx(
        np.std(apart), abs=1e-6
    )
    monkeypatch.setattr(spread, "SPREAD_PAIRS", 7)
    sampled = spread.similarity_spread(encoder, photos, captions)
    assert sampled == spread.similarity_spread(encoder, photos, captions) and 0 < sampled != np.std(
        apart
    )


@pytest.mark.parametrize("probe", tiers(["rococo", "prsm"], ("rococo",)))
def test_a_gallery_is_searched_by_cosine_and_the_head_ranks_the_short_list(
    probe, make_model, tmp_path, monkeypatch
):
    monkeypatch.setattr(gallery, "SHORT_LIST", 4)
    folder, model = make_model("blip")
    store = Store(tmp_path / "cache")
    options = (
        {"policies": ["same-concept"], "pictures": ["mix:0.6"], "picture_seeds": [1]}
        if probe == "rococo"
        else {}
    )
    request = Request(
        (f"hf-itm:{folder}",), make_tiny(tmp_path / "data"), probe, options, device="cpu"
    )
    manifest = execute(request, store)[0]
    rows = store.run(manifest["key"]).table("scores").to_pylist()
    cases = store.cases(manifest["case_key"]).table("cases").to_pylist()
    encoder = CachedEncoder(model)
    assert score_type(model, registry.load_probe(probe)) == "logit + cosine"
    if probe == "prsm":
        assert len(rows) == len(cases) and not any(np.isnan(row["margin"]) for row in rows)
        return
    done = 0
    for case, row in zip(cases, rows, strict=True):
        if case["kind"] != "i2t":
            continue
        picture = Picture.from_name(case["images"][0])
        texts = [text for one in cases if one["kind"] == "i2t" for text in one["texts"]]
        mine = [
            one["item"] == case["item"]
            for one in cases
            if one["kind"] == "i2t"
            for _ in one["texts"]
        ]
        altered = [
            role == "different" for one in cases if one["kind"] == "i2t" for role in one["roles"]
        ]
        cosines = (encoder.images([picture]) @ encoder.texts(texts).T)[0]
        logits = encoder.pairs(
            [picture] * len(texts), texts, np.arange(len(texts)), np.arange(len(texts)), logits=True
        )
        listed = cosines >= np.sort(np.unique(cosines))[-4]
        total = np.where(listed, logits + cosines, -100 + cosines)
        own = max(s for s, m, a in zip(total, mine, altered, strict=True) if m and not a)
        ahead = sum(s >= own for s, m, a in zip(total, mine, altered, strict=True) if a or not m)
        assert row["rank"] == 1 + ahead
        done += 1
    assert done == 6


@pytest.mark.parametrize("kind", tiers(["vilt", "bridgetower"], QUICK))
def test_a_head_without_embeddings_ranks_pictures_by_the_logits_of_all_pairs(
    kind, make_model, tmp_path
):
    folder, model = make_model(kind)
    store, data = Store(tmp_path / "cache"), make_tiny(tmp_path / "data")
    manifest = execute(Request((f"hf-itm:{folder}",), data, "prsm", device="cpu"), store)[0]
    pictures = [item.image for item in registry.load_dataset(data, store.root).items]
    encoder = CachedEncoder(model)
    texts = [
        row["texts"][0]
        for row in store.cases(manifest["case_key"]).table("cases", ["texts"]).to_pylist()
    ]
    n = len(pictures)
    tops = [
        pictures[
            int(np.argmax(encoder.pairs(pictures, [text], np.arange(n), np.zeros(n, int), True)))
        ]
        for text in texts
    ]
    rows = store.run(manifest["key"]).table("scores").to_pylist()
    assert [Picture.from_name(json.loads(row["top"])[0][0]).path.name for row in rows] == [
        top.path.name for top in tops
    ]
    assert manifest["score_type"] == "logit"


@pytest.mark.parametrize("kind", tiers(["blip-2", "vilt", "flava", "bridgetower"], QUICK))
def test_a_run_on_cases_is_complete_with_every_head(kind, make_model, tmp_path):
    folder, _ = make_model(kind)
    store = Store(tmp_path / "cache")
    manifest = execute(
        Request((f"hf-itm:{folder}",), make_tiny(tmp_path / "data"), "lgip", device="cpu"), store
    )[0]
    rows = store.run(manifest["key"]).table("scores").to_pandas()
    assert len(rows) == manifest["n_cases"] and manifest["spread"] > 0
    assert rows["margin"].notna().all()


def test_the_note_of_a_blip_without_enc_states_that_its_head_reads_cls(tmp_path):
    tiny_hf.matching("blip", tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"bos_token_id": 130', '"bos_token_id": 131'))
    assert "reads [CLS]" in registry.load_model(f"hf-itm:{tmp_path}", "cpu").note
