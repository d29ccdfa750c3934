import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import open_clip
import pytest
import safetensors.torch
import torch
from PIL import Image

from tests.models.conftest import pictures
from vlprobe import registry
from vlprobe.errors import InvalidInput, MissingDependency, NotFound
from vlprobe.models import open_clip as family
from vlprobe.models.checkpoint import without_draws

TEXTS = [
    "a cat",
    "Two red buses are parked in front of a large brick building on a rainy day.",
    "",
    "one two three " * 60,
    "A man rides a horse.",
]


pytestmark = pytest.mark.usefixtures("architectures")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    refuse = Mock(side_effect=socket.gaierror("no network in this test"))
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    for variable in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.upper(), raising=False)


UNKNOWN = """
import sys
from vlprobe.errors import NotFound
from vlprobe.models import open_clip as family
try:
    family.check_name("openclip:ViT-B32/openai")
except NotFound as error:
    print(error)
imported = "open_clip" in sys.modules
import open_clip
del sys.modules["open_clip"]
for name in set(open_clip.list_models()):
    family.check_name(f"openclip:{name}")
sys.exit(imported)
"""


@pytest.mark.full  # 3 s: one more process imports torch
def test_an_unknown_architecture_is_refused_without_importing_torch():
    ran = subprocess.run([sys.executable, "-c", UNKNOWN], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "Did you mean 'ViT-B-32'?" in ran.stdout


def test_every_suggested_name_exists_in_open_clip():
    for name in family.NAMES:
        architecture, _, tag = name.removeprefix("openclip:").partition("/")
        assert architecture in open_clip.list_models()
        assert not tag or tag in open_clip.list_pretrained_tags_by_model(architecture)


@pytest.mark.parametrize("mode", ["shortest", "longest", "squash"])
def test_pixels_equal_those_of_open_clips_transform(mode: str, trained: Callable):
    transform = open_clip.image_transform(32, is_train=False, resize_mode=mode)
    made, tokenizer = trained(), open_clip.get_tokenizer("test-tiny")
    model = family.OpenClipEncoder("test", made, transform, tokenizer, "digest", "cpu")
    for image in pictures(4):
        pixels = model.preprocess(image)
        assert pixels.dtype == np.float32
        np.testing.assert_array_equal(pixels, transform(image).numpy())


def test_a_custom_transform_is_applied_unchanged(trained: Callable):
    usual = open_clip.image_transform(32, is_train=False)
    steps = [*usual.transforms, lambda pixels: pixels.flip(2)]

    def transform(image: Image.Image) -> torch.Tensor:
        for step in steps:
            image = step(image)
        return image

    transform.transforms = steps
    made, tokenizer = trained(), open_clip.get_tokenizer("test-tiny")
    model = family.OpenClipEncoder("test", made, transform, tokenizer, "digest", "cpu")
    image = pictures(1)[0]
    np.testing.assert_array_equal(model.preprocess(image), usual(image).numpy()[:, :, ::-1])


def test_an_untrained_model_is_reproducible_and_its_note_states_untrained():
    torch.manual_seed(1)
    first = family.load("openclip:test-tiny", "cpu")
    torch.manual_seed(2)
    second = family.load("openclip:test-tiny", "cpu")
    assert first.digest == second.digest
    assert "untrained" in first.note
    np.testing.assert_array_equal(
        first.encode_texts(first.tokenize(TEXTS)), second.encode_texts(second.tokenize(TEXTS))
    )


def test_loading_does_not_change_the_global_random_state():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    family.load("openclip:test-tiny", "cpu")
    assert torch.equal(torch.rand(4), expected)


def test_embeddings_are_float32_unit_vectors_of_the_declared_dimension():
    model = family.load("openclip:test-wide", "cpu")
    images = model.encode_images(np.stack([model.preprocess(image) for image in pictures(3)]))
    texts = model.encode_texts(model.tokenize(TEXTS))
    assert model.dim == 24
    for vectors, count in ((images, 3), (texts, 5)):
        assert vectors.shape == (count, 24) and vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_pictures_and_texts_are_preprocessed_exactly_as_by_open_clip():
    _, _, transform = open_clip.create_model_and_transforms("test-tiny")
    model = family.load("openclip:test-tiny", "cpu")
    for image in pictures(3):
        np.testing.assert_array_equal(model.preprocess(image), transform(image).numpy())
    tokens = model.tokenize(TEXTS)
    assert tokens.dtype == np.int64
    np.testing.assert_array_equal(tokens, open_clip.get_tokenizer("test-tiny")(TEXTS).numpy())


@pytest.mark.parametrize("typed", ["epoch_3.pt", "openclip:epoch_3.pt", "openclip:./w.safetensors"])
def test_the_error_for_weights_without_an_architecture_shows_the_right_form(
    typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    file = typed.removeprefix("openclip:")
    state = family.load("openclip:test-tiny", "cpu").module.state_dict()
    if file.endswith(".pt"):
        torch.save(state, file)
    else:
        safetensors.torch.save_file(state, file)
    for refuse in (registry.load_model, lambda name: registry.check_name("models", name)):
        with pytest.raises(InvalidInput, match=r"[Ww]rite openclip:ARCH@") as caught:
            refuse(typed)
        assert f"openclip:ARCH@{file}, such as openclip:ViT-B-32@{file}" in str(caught.value)
    assert registry.load_model(f"openclip:test-tiny@{file}").name.endswith(file)


def test_preprocessing_in_several_threads_equals_a_single_thread():
    model = family.load("openclip:test-tiny", "cpu")
    alone = [model.preprocess(image) for image in pictures(24)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(model.preprocess, pictures(24)))
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("architecture", ["test-tiny", "test-custom-text", "test-eos"])
def test_cutting_columns_after_the_end_of_the_text_does_not_change_embeddings(
    architecture: str, tmp_path: Path, trained: Callable, reference: Callable
):
    weights = trained(architecture)
    safetensors.torch.save_file(weights.state_dict(), tmp_path / "w.safetensors")
    model = family.load(f"openclip:{architecture}@{tmp_path / 'w.safetensors'}", "cpu")
    assert model.cuts_columns
    expected = reference(weights, TEXTS)
    tokens = model.tokenize(TEXTS)
    assert np.abs(model.encode_texts(tokens) - expected).max() <= 1e-6
    for row in range(len(TEXTS)):  # a batch of one is cut at the end of its text
        assert np.abs(model.encode_texts(tokens[row : row + 1]) - expected[row]).max() <= 1e-6


@pytest.mark.parametrize("architecture", ["test-last", "test-sees-ahead", "test-class-token"])
def test_a_text_tower_that_attends_to_later_columns_is_not_cut(architecture: str):
    model = family.load(f"openclip:{architecture}", "cpu")
    assert not model.cuts_columns
    tokens = model.tokenize(TEXTS)
    alone = np.concatenate([model.encode_texts(row[None]) for row in tokens])
    assert np.abs(model.encode_texts(tokens) - alone).max() <= 1e-6


def test_a_causal_text_tower_is_not_cut_if_the_embedding_would_change(
    trained: Callable, reference: Callable
):
    class AveragesOverColumns(torch.nn.Module):
        def __init__(self, inner: torch.nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def get_cast_dtype(self) -> torch.dtype:
            return self.inner.get_cast_dtype()

        def forward(self, x: torch.Tensor, attn_mask: torch.Tensor) -> torch.Tensor:
            return self.inner(x, attn_mask=attn_mask) + 0.01 * x.mean(dim=1, keepdim=True)

    model = trained()
    model.transformer = AveragesOverColumns(model.transformer)
    encoder = family.OpenClipEncoder("x", model, None, open_clip.tokenize, "digest", "cpu")
    assert not encoder.cuts_columns
    np.testing.assert_allclose(
        encoder.encode_texts(encoder.tokenize(TEXTS)), reference(model, TEXTS), atol=1e-6
    )


def test_the_batch_size_does_not_change_image_embeddings():
    model = family.load("openclip:test-tiny", "cpu")
    pixels = np.stack([model.preprocess(image) for image in pictures(7)])
    alone = np.concatenate([model.encode_images(row[None]) for row in pixels])
    assert np.abs(model.encode_images(pixels) - alone).max() <= 1e-6


def test_the_same_weights_in_any_file_format_have_the_same_digest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, trained: Callable, reference: Callable
):
    state = trained().state_dict()
    safetensors.torch.save_file(state, tmp_path / "a.safetensors")
    torch.save(state, tmp_path / "b.pt")
    in_training = {
        "epoch": 3,
        "name": "x",
        "state_dict": {f"module.{key}": value for key, value in state.items()},
    }
    torch.save(in_training, tmp_path / "c.pt")
    caplog.clear()
    models = [
        family.load(f"openclip:test-tiny@{tmp_path / file}", "cpu")
        for file in ("a.safetensors", "b.pt", "c.pt")
    ]
    assert len({model.digest for model in models}) == 1
    assert "untrained" not in models[0].note and not caplog.records
    vectors = models[2].encode_texts(models[2].tokenize(TEXTS))
    np.testing.assert_allclose(vectors, reference(trained(), TEXTS), atol=1e-6)


def test_no_random_weights_are_drawn_if_a_file_replaces_them():
    before = torch.get_rng_state()
    with without_draws():
        torch.nn.MultiheadAttention(4, 2)
        torch.nn.Conv2d(3, 4, 2)
        assert not torch.zeros(3).normal_().any() and not torch.zeros(3).uniform_().any()
        torch.nn.init.trunc_normal_(torch.zeros(3))
    assert torch.equal(torch.get_rng_state(), before)
    torch.nn.Linear(3, 4)
    assert not torch.equal(torch.get_rng_state(), before)


def test_weights_of_the_old_text_layout_load_into_a_model_with_a_separate_text_tower(
    tmp_path: Path, trained: Callable, reference: Callable
):
    torch.save(trained("test-tiny").state_dict(), tmp_path / "old.pt")
    model = family.load(f"openclip:test-custom-text@{tmp_path / 'old.pt'}", "cpu")
    vectors = model.encode_texts(model.tokenize(TEXTS))
    np.testing.assert_allclose(vectors, reference(trained("test-tiny"), TEXTS), atol=1e-6)


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        (
            "test-wide",
            r"2 of another shape \((visual.proj|text_projection): \(32, 24\) for \(32, 16\)\)",
        ),
        ("test-tiny", r"1 missing \(ln_final.weight\) of \d+ tensors"),
        ("test-deep", r"12 unexpected \(transformer.resblocks.2"),
        (
            "test-large-picture",
            r"1 of another shape \(visual.positional_embedding: \(65, 32\) for \(17, 32\)\)",
        ),
    ],
)
def test_weights_of_another_architecture_are_refused_with_their_first_difference(
    architecture: str, message: str, tmp_path: Path, trained: Callable
):
    state = trained(architecture).state_dict()
    if architecture == "test-tiny":
        del state["ln_final.weight"]
    torch.save(state, tmp_path / "other.pt")
    with pytest.raises(InvalidInput, match=rf"does not fit 'openclip:test-tiny@.*': {message}"):
        family.load(f"openclip:test-tiny@{tmp_path / 'other.pt'}", "cpu")


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("keep", [0, 200, 100_000])
def test_a_truncated_checkpoint_is_refused_in_one_line(
    suffix: str, keep: int, tmp_path: Path, trained: Callable
):
    save = torch.save if suffix == ".pt" else safetensors.torch.save_file
    file = tmp_path / f"cut{suffix}"
    save(trained().state_dict(), file)
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(InvalidInput, match="cannot be read as plain tensors") as message:
        family.load(f"openclip:test-tiny@{file}", "cpu")
    assert "\n" not in str(message.value)


@pytest.mark.parametrize(
    "content", [[torch.zeros(2)], {}, {"state_dict": 3}, {"model": {"weight": torch.zeros(2)}}]
)
def test_a_checkpoint_without_a_state_dict_is_refused(content: object, tmp_path: Path):
    torch.save(content, tmp_path / "x.pt")
    with pytest.raises(InvalidInput, match="has no state dict"):
        family.load(f"openclip:test-tiny@{tmp_path / 'x.pt'}", "cpu")


def test_a_missing_checkpoint_is_refused_before_the_model_is_built(tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"Checkpoint '.*none.pt' does not exist"):
        family.load(f"openclip:ViT-bigG-14@{tmp_path / 'none.pt'}", "cpu")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ViT-B-33", r"No OpenCLIP architecture named 'ViT-B-33'. Did you mean 'ViT-B-32'\?"),
        ("ViT-B-33", r"Write openclip:ARCH/TAG, or openclip:ARCH@FILE"),
        ("ViT-B-32/opena", r"for openclip:ViT-B-32 named 'opena'. Did you mean 'openai'\?"),
    ],
)
def test_unknown_open_clip_names_are_refused_with_a_suggestion(name: str, message: str):
    with pytest.raises(NotFound, match=message):
        family.load(f"openclip:{name}", "cpu")


def test_the_error_for_a_failed_download_shows_how_to_pass_a_file(no_network: None):
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    with pytest.raises(
        InvalidInput,
        match=r"cannot be downloaded: .*pass it: openclip:ViT-B-32/openai@/path/to/checkpoint",
    ):
        family.load("openclip:ViT-B-32/openai", "cpu")
    assert before == constants.HF_HUB_OFFLINE


def test_local_weights_and_untrained_models_use_no_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trained: Callable
):
    connections = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args: connections.append(args))
    monkeypatch.setattr(socket.socket, "connect", lambda *args: connections.append(args))
    torch.save(trained().state_dict(), tmp_path / "w.pt")
    family.load(f"openclip:test-tiny@{tmp_path / 'w.pt'}", "cpu")
    family.load("openclip:test-tiny", "cpu")
    assert connections == []


def test_the_error_for_a_hub_tokenizer_without_transformers_shows_the_install_command(
    monkeypatch: pytest.MonkeyPatch, no_network: None
):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        MissingDependency,
        match=r"tokenizer of 'openclip:ViT-B-16-SigLIP' needs .*pip install transformers",
    ):
        family.load("openclip:ViT-B-16-SigLIP", "cpu")
