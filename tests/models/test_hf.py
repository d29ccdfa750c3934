"""Dual encoders of transformers, compared with the forward pass of transformers on tiny checkpoints."""

import functools
import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from tests.conftest import tiers
from tests.models.conftest import change_settings
from vlprobe import registry
from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.models import frozen, hf, hub

tiny_hf = pytest.importorskip("tests.models.tiny_hf", reason="needs vlprobe\[models\]")
import torch  # noqa: E402
import transformers  # noqa: E402

KINDS = ["clip", "siglip", "siglip2-fixed", "siglip2", "align", "altclip", "flava", "chinese_clip"]
KINDS += ["metaclip_2"]
QUICK = ("clip", "siglip2")  # in the default suite
CUT = {"clip", "align", "altclip", "flava", "chinese_clip", "metaclip_2"}
TEXTS = tiny_hf.TEXTS


@pytest.fixture
def make_model(tiny_model):
    return functools.partial(tiny_model, tiny_hf.dual, "hf")


@functools.cache
def parts(folder: Path) -> tuple:
    """Load the model, tokenizer and image processor with transformers."""
    return (
        transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval(),
        transformers.AutoTokenizer.from_pretrained(folder),
        transformers.AutoImageProcessor.from_pretrained(folder, backend="pil"),
    )


def unit_output(kind: str, model, inputs: dict, side: str) -> np.ndarray:
    """Run the complete forward pass and return the unit embeddings of one side, "text" or "image"."""
    with torch.inference_mode():
        out = model(**inputs)
        if kind == "flava":
            project = getattr(model, f"{side}_projection")
            found = project(getattr(out, f"{side}_embeddings")[:, 0])
        else:
            found = getattr(out, f"{side}_embeds")
    return torch.nn.functional.normalize(found, dim=-1).numpy()


def reference_texts(kind: str, folder: Path, texts: list[str], **changes) -> np.ndarray:
    """Compute unit embeddings as documented by transformers: its processor, then the complete forward pass."""
    model, tokenizer, processor = parts(folder)
    settings = {"padding": "max_length", "truncation": True, "return_tensors": "pt"}
    if kind.startswith("siglip"):
        settings |= {"max_length": 64, "padding_side": "right"} | changes
        lowered = [text.lower() for text in texts]
        inputs = {"input_ids": tokenizer(lowered, **settings)["input_ids"]}
    else:
        length = {"clip": 90, "metaclip_2": 90, "align": 64, "chinese_clip": 52}.get(kind, 77)
        inputs = dict(tokenizer(texts, max_length=length, **settings))
    inputs |= processor(images=tiny_hf.pictures(1) * len(texts), return_tensors="pt")
    return unit_output(kind, model, inputs, "text")


def reference_images(kind: str, folder: Path, images: list) -> np.ndarray:
    model, _, processor = parts(folder)
    inputs = dict(processor(images=images, return_tensors="pt"))
    inputs["input_ids"] = torch.ones((len(images), 64), dtype=torch.long)
    return unit_output(kind, model, inputs, "image")


@pytest.mark.parametrize("kind", tiers(KINDS, QUICK))
def test_embeddings_equal_the_forward_pass_of_transformers(kind, make_model):
    folder, model = make_model(kind)
    vectors = model.encode_texts(model.tokenize(TEXTS))
    assert vectors.dtype == np.float32 and vectors.shape == (len(TEXTS), model.dim)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert np.abs(vectors - reference_texts(kind, folder, TEXTS)).max() <= 1e-6
    images = tiny_hf.pictures(3)
    vectors = model.encode_images(np.stack([model.preprocess(image) for image in images]))
    assert np.abs(vectors - reference_images(kind, folder, images)).max() <= 1e-6


@pytest.mark.parametrize("kind", tiers(KINDS, QUICK))
def test_an_embedding_does_not_depend_on_its_batch(kind, make_model):
    _, model = make_model(kind)
    assert model.cuts_columns == (kind in CUT)
    tokens = model.tokenize(TEXTS)
    alone = np.concatenate([model.encode_texts(row[None]) for row in tokens])
    assert np.abs(model.encode_texts(tokens) - alone).max() <= 1e-6
    pixels = np.stack([model.preprocess(image) for image in tiny_hf.pictures(5)])
    alone = np.concatenate([model.encode_images(row[None]) for row in pixels])
    assert np.abs(model.encode_images(pixels) - alone).max() <= 1e-6


@pytest.mark.parametrize("kind", ["siglip", "siglip2-fixed", "siglip2"])
def test_padding_siglip_texts_to_the_longest_changes_the_embedding(kind, make_model):
    folder, model = make_model(kind)
    vectors = model.encode_texts(model.tokenize(TEXTS))
    wrong = reference_texts(kind, folder, TEXTS[:2], padding="longest")
    assert np.abs(vectors[:2] - wrong).max() > 1e-2
    assert model.tokenize(["a cat"]).shape == (1, 64)
    assert (model.tokenize(["a cat"]) != frozen.PAD).all()


def test_siglip_2_texts_are_lower_cased_although_its_tokenizer_keeps_case(make_model):
    folder, model = make_model("siglip2-fixed")
    rows = model.tokenize(["A Red CAT", "a red cat"])
    assert (rows[0] == rows[1]).all()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer("A Red CAT")["input_ids"] != tokenizer("a red cat")["input_ids"]
    assert "lower-cased" in model.note and make_model("siglip")[1].note == ""


def test_cutting_reduces_the_columns_that_the_text_tower_gets(make_model):
    _, model = make_model("clip")
    seen = []
    hook = model._model.text_model.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    model.encode_texts(model.tokenize(["a cat"]))
    model.encode_texts(model.tokenize(["a cat"]), cut=False)
    hook.remove()
    assert seen == [6, 90]


def test_columns_are_not_cut_if_the_embedding_would_change(tmp_path, monkeypatch):
    tiny_hf.dual("clip", tmp_path)
    monkeypatch.setitem(hf.KINDS, "siglip", hf.Kind("SiglipModel", "after"))
    folder = tmp_path / "siglip"
    tiny_hf.dual("siglip", folder)
    assert registry.load_model(f"hf:{tmp_path}", "cpu").cuts_columns
    assert not registry.load_model(f"hf:{folder}", "cpu").cuts_columns


def test_preprocessing_in_several_threads_equals_a_single_thread(make_model):
    for kind in ("clip", "siglip2"):
        _, model = make_model(kind)
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(model.preprocess, tiny_hf.pictures(16)))
        np.testing.assert_array_equal(
            [model.preprocess(image) for image in tiny_hf.pictures(16)], together
        )


def test_the_digest_depends_on_weights_settings_and_precision_but_not_on_the_path(tmp_path):
    model = tiny_hf.dual("clip", tmp_path / "one")
    first = registry.load_model(f"hf:{tmp_path / 'one'}", "cpu")
    (tmp_path / "one").rename(tmp_path / "two")
    assert registry.load_model(f"hf:{tmp_path / 'two'}", "cpu").digest == first.digest
    assert registry.load_model(f"hf:{tmp_path / 'two'}", "cpu", "bf16").digest != first.digest
    vision = json.loads((tmp_path / "two" / "config.json").read_text())["vision_config"]
    for file, changes in (
        ("config.json", {"vision_config": vision | {"layer_norm_eps": 1e-3}}),
        ("preprocessor_config.json", {"resample": 2}),
    ):
        path = tmp_path / "two" / file
        kept = path.read_text()
        change_settings(path, changes)
        assert registry.load_model(f"hf:{tmp_path / 'two'}", "cpu").digest != first.digest, file
        path.write_text(kept)
    with torch.no_grad():
        model.text_projection.weight[0, 0] += 1
    model.save_pretrained(tmp_path / "two")
    assert registry.load_model(f"hf:{tmp_path / 'two'}", "cpu").digest != first.digest


def test_loading_changes_no_random_state_and_prints_nothing(make_model, capfd):
    folder, _ = make_model("clip")
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    capfd.readouterr()
    registry.load_model(f"hf:{folder}", "cpu")
    assert torch.equal(torch.rand(4), expected)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precision_gives_close_float32_unit_vectors(precision, make_model):
    folder, exact = make_model("clip")
    model = registry.load_model(f"hf:{folder}", "cpu", precision)
    vectors = model.encode_texts(model.tokenize(TEXTS))
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert 0 < np.abs(vectors - exact.encode_texts(exact.tokenize(TEXTS))).max() < 0.05


def test_pickled_weights_are_read_and_a_pickle_with_code_is_refused(tmp_path):
    model = tiny_hf.dual("clip", tmp_path)
    expected = registry.load_model(f"hf:{tmp_path}", "cpu").digest
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    assert registry.load_model(f"hf:{tmp_path}", "cpu").digest == expected

    class Runs:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "it-ran",))

    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Runs()}, protocol=2))
    with pytest.raises(InvalidInput, match="could run code and are rejected"):
        registry.load_model(f"hf:{tmp_path}", "cpu")
    assert not (tmp_path / "it-ran").exists()


@pytest.mark.parametrize(
    "file", ["config.json", "tokenizer_config.json", "preprocessor_config.json"]
)
def test_a_folder_that_requests_remote_code_is_refused_without_running_it(file, tmp_path):
    tiny_hf.dual("clip", tmp_path)
    (tmp_path / "modeling.py").write_text(f"open({str(tmp_path / 'it-ran')!r}, 'w')")
    names = {"AutoModel": "M", "AutoTokenizer": "T", "AutoImageProcessor": "P"}
    auto_map = {name: f"modeling.{part}" for name, part in names.items()}
    change_settings(tmp_path / file, {"auto_map": auto_map})
    with pytest.raises(
        InvalidInput, match="requests to run code shipped with its weights"
    ) as error:
        registry.load_model(f"hf:{tmp_path}", "cpu")
    assert file in str(error.value)
    assert not (tmp_path / "it-ran").exists()


def put(file: str, text: str = "") -> Callable[[Path], None]:
    """Return a function that replaces a file in a folder, or removes it if there is no text."""

    def change(folder: Path) -> None:
        (folder / file).write_text(text) if text else (folder / file).unlink()

    return change


def cut_weights(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def remove_tokenizer(folder: Path) -> None:
    for file in folder.glob("*token*"):
        file.unlink()


def put_other_weights(folder: Path) -> None:
    torch.save({"x": torch.ones(2)}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def enlarge_pictures(folder: Path) -> None:
    file = folder / "preprocessor_config.json"
    file.write_text(file.read_text().replace("32", "40"))


def shrink_vocabulary(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["vocab_size"] = 300
    transformers.CLIPModel(transformers.CLIPConfig(**config)).save_pretrained(folder)


def keep_half(folder: Path) -> None:
    half = transformers.CLIPTextModel(transformers.CLIPTextConfig(**tiny_hf.WIDTH))
    half.save_pretrained(folder / "text")
    (folder / "text" / "model.safetensors").rename(folder / "model.safetensors")


UNKNOWN = "model type 'bert', which is not supported. Supported types: clip, siglip"
WRONG = '{"model_type": "clip", "projection_dim": "wide"}'


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (put("config.json"), "config.json' cannot be read"),
        (put("config.json", "{"), "cannot be read as JSON"),
        (put("config.json", '{"model_type": "bert"}'), UNKNOWN),
        (put("config.json", '{"model_type": "vilt"}'), "Load it as hf-itm:"),
        (put("config.json", WRONG), "cannot be opened"),
        (put("model.safetensors"), "cannot be opened"),
        (cut_weights, "cannot be opened"),
        (remove_tokenizer, "has no tokenizer. Expected one of: tokenizer.json"),
        (put("preprocessor_config.json"), "cannot be opened"),
        (put_other_weights, "is not a CLIPModel checkpoint"),
        (enlarge_pictures, "cannot be opened"),
        (shrink_vocabulary, "cannot be opened"),
        (keep_half, "is not a CLIPModel checkpoint|cannot be opened"),
    ],
)
def test_a_defective_model_folder_is_refused_in_one_line(damage, message, tmp_path):
    tiny_hf.dual("clip", tmp_path)
    damage(tmp_path)
    with pytest.raises(InvalidInput, match=message) as error:
        registry.load_model(f"hf:{tmp_path}", "cpu")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["hf:/nowhere/at/all", "hf:./nowhere", "hf:", "hf:a b"])
def test_a_name_that_is_neither_a_folder_nor_a_repository_is_refused_in_one_line(name):
    with pytest.raises(InvalidInput, match="does not exist"):
        registry.load_model(name, "cpu")


def test_the_error_for_an_unreachable_hub_shows_how_to_pass_a_folder(monkeypatch, tmp_path):
    import huggingface_hub

    error = huggingface_hub.errors.LocalEntryNotFoundError("Got: ConnectError\nmore")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", Mock(side_effect=error))
    with pytest.raises(InvalidInput, match="ConnectError") as error:
        registry.load_model("hf:google/siglip-base-patch16-224", "cpu")
    assert "hf:/path/to/folder" in str(error.value) and "\n" not in str(error.value)


def test_only_the_needed_files_of_a_repository_are_downloaded(monkeypatch, tmp_path):
    import huggingface_hub

    model = tiny_hf.dual("clip", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    downloads = []

    def fetch(repository, allow_patterns, ignore_patterns):
        downloads.append((repository, tuple(allow_patterns[len(hub.WANTED) :])))
        if downloads[-1][1] == ("*pytorch_model*.bin",):
            torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert registry.load_model("hf:some/model", "cpu").name == "hf:some/model"
    assert downloads == [
        ("some/model", ("*.safetensors",)),
        ("some/model", ("*pytorch_model*.bin",)),
    ]


def test_the_error_for_a_missing_package_names_the_extra_that_installs_it(monkeypatch):
    monkeypatch.setattr(hub.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        MissingDependency, match=r"'transformers', which is not installed.*vlprobe\[models\]"
    ):
        registry.load_model("hf:openai/clip-vit-base-patch32", "cpu")
