import re
import socket
from unittest.mock import Mock

import numpy as np
import open_clip
import pytest
import torch

from tests.conftest import tiers
from tests.demo_folder import export_local_dir
from tools.train_demo import TEMPLATES, token_ids
from tools.world.captions import captions
from tools.world.scenes import distinct
from vlprobe.datasets.world.renderer import render
from vlprobe.errors import NotFound
from vlprobe.models import demo
from vlprobe.models.demo_weights import FOLDER, load_checkpoint
from vlprobe.registry import load_model

TEXTS = [
    "A red dog.",
    "Two blue cats to the left of a single green bus on a city street.",
    "two",
    "",
]


@pytest.fixture(scope="module")
def softmax():
    return demo.load("demo:softmax", device="cpu")


def test_the_demo_models_are_listed_shipped_and_small():
    assert list(demo.NAMES) == [
        f"demo:{name}" for name in ("softmax", "sigmoid", "weak", "plain", "eqsim", "scvc")
    ]
    for name in demo.NAMES:
        assert (FOLDER / f"{name.partition(':')[2]}.safetensors").stat().st_size < 4_000_000


def test_every_demo_model_gives_unit_vectors_of_its_dim_and_has_a_unique_digest():
    image = render(distinct("val", 1)[0])
    digests = {demo.load("demo:softmax", device="cpu", precision="bf16").digest}
    for name in demo.NAMES:
        model = load_model(name, device="cpu")
        digests.add(model.digest)
        images = model.encode_images(model.preprocess(image)[None])
        texts = model.encode_texts(model.tokenize(TEXTS))
        assert images.shape == (1, model.dim)
        assert texts.shape == (len(TEXTS), model.dim)
        assert np.allclose(np.linalg.norm(np.concatenate([images, texts]), axis=1), 1, atol=1e-6)
    assert len(digests) == len(demo.NAMES) + 1


def test_loading_a_demo_model_again_gives_the_same_numbers_and_digest(softmax):
    again = demo.load("demo:softmax", device="cpu")
    assert again.digest == softmax.digest
    assert np.array_equal(
        again.encode_texts(again.tokenize(TEXTS)), softmax.encode_texts(softmax.tokenize(TEXTS))
    )


def test_cutting_the_columns_after_the_end_of_text_does_not_change_embeddings(softmax):
    assert softmax.cuts_columns
    tokens = softmax.tokenize(TEXTS)
    uncut = softmax.encode_texts(tokens, cut=False)
    assert np.abs(softmax.encode_texts(tokens) - uncut).max() < 1e-6


def test_a_loaded_demo_model_has_the_whole_token_table_with_unused_rows_zero():
    model, _, _ = load_checkpoint(FOLDER / "softmax.safetensors")
    table = model.token_embedding.weight
    assert table.shape == (49408, 64)
    used = torch.zeros(49408, dtype=torch.bool)
    used[list(token_ids())] = True
    assert not table[~used].any()
    assert table[used].abs().sum(dim=1).min() > 0


def test_no_caption_in_a_template_exceeds_the_context_length(softmax):
    texts = [text for scene in distinct("test", 100) for text in captions(scene)]
    longest = max(texts, key=len)
    tokens = softmax.tokenize(
        [template.format(c=text) for template in TEMPLATES for text in (*texts[:50], longest)]
    )
    assert (tokens[:, -1] == 0).all()


@pytest.mark.parametrize("name", tiers(["demo:softmax", "demo:sigmoid"], ["demo:softmax"]))
def test_an_exported_folder_loads_in_open_clip_offline(tmp_path, monkeypatch, name: str):
    offline = Mock(side_effect=OSError("no network in this test"))
    monkeypatch.setattr(socket.socket, "connect", offline)
    export_local_dir(name, tmp_path)
    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{tmp_path}")
    tokenize = open_clip.get_tokenizer(f"local-dir:{tmp_path}")
    ours = demo.load(name, device="cpu")
    image = render(distinct("val", 1)[0])
    assert np.array_equal(transform(image).numpy(), ours.preprocess(image))
    assert np.array_equal(tokenize(TEXTS).numpy(), ours.tokenize(TEXTS))
    with torch.inference_mode():
        texts = model.eval().encode_text(tokenize(TEXTS), normalize=True).numpy()
    assert np.abs(texts - ours.encode_texts(ours.tokenize(TEXTS))).max() < 1e-6


def test_an_exported_folder_has_the_digest_of_the_demo_model(softmax, tmp_path):
    export_local_dir("demo:softmax", tmp_path)
    assert load_model(f"openclip:local-dir:{tmp_path}", device="cpu").digest == softmax.digest


def test_an_unknown_demo_model_is_refused_with_a_suggestion():
    with pytest.raises(NotFound, match=r"demo:softmaxx.*Did you mean 'demo:softmax'"):
        demo.load("demo:softmaxx")


def test_the_model_card_names_every_shipped_file_and_how_it_was_made():
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in demo.NAMES:
        assert f"{name.partition(':')[2]}.safetensors" in card
    assert len(re.findall(r"tools\.train_demo --loss", card)) == 3
