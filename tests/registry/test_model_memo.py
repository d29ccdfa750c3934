"""The digest of a model is cached as long as all files from which it was loaded are unchanged."""

import json
import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.registry.conftest import FILES
from vlprobe import registry
from vlprobe.models import open_clip
from vlprobe.models.demo_weights import FOLDER
from vlprobe.probes import caption_foils
from vlprobe.registry import model_memo, plugins
from vlprobe.scoring import pictures
from vlprobe.storage import access, memo


@pytest.fixture
def weights(tmp_path: Path, monkeypatch) -> Path:
    """Return a demo model's checkpoint. Loading is replaced by a digest of its bytes, and new files are cached at
    once.
    """
    file = tmp_path / "weights.safetensors"
    shutil.copy(FOLDER / "weak.safetensors", file)

    def load(name: registry.ModelName | str, device: str, precision: str) -> SimpleNamespace:
        text = getattr(name, "text", name)
        path = Path(text.partition("@")[2])
        return SimpleNamespace(name=text, digest=pictures.digest(path.read_bytes()), sources=[path])

    monkeypatch.setattr(registry, "load_model", load)
    monkeypatch.setattr(memo, "SETTLED_NS", -(10**18))
    return file


def name_of(weights: Path) -> registry.ModelName:
    return registry.parse_name("models", f"demo:weak@{weights}")


def loaded(weights: Path, cache: Path) -> str:
    return model_memo.load(name_of(weights), "cpu", "fp32", cache).digest


def remembered(weights: Path, cache: Path, precision: str = "fp32") -> str | None:
    identity = model_memo.look_up(name_of(weights), precision, cache)
    return identity.digest if identity else None


def other_weights(weights: Path) -> bytes:
    """Return different weights of the same size."""
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    return bytes(content)


def rewrite(weights: Path) -> None:
    """Overwrite the file with other weights and restore its modification time."""
    times = os.stat(weights)
    with weights.open("r+b") as handle:
        handle.write(other_weights(weights))
    os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))


def replace(weights: Path) -> None:
    """Replace the file by another one of the same size and modification time."""
    times = os.stat(weights)
    other = weights.with_name("other")
    other.write_bytes(other_weights(weights))
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(weights)


def relink(weights: Path) -> None:
    """Replace the file by a link to other weights of the same size and modification time."""
    replace(weights)
    weights.symlink_to(weights.rename(weights.with_name("other")))


def touch(weights: Path) -> None:
    """Change the modification time."""
    os.utime(weights, ns=(1, 1))


def grow(weights: Path) -> None:
    """Append a byte."""
    with weights.open("ab") as handle:
        handle.write(b"\0")


def test_the_digest_of_a_loaded_model_is_known_without_loading_it_again(
    weights: Path, tmp_path: Path
):
    assert remembered(weights, tmp_path) is None
    digest = loaded(weights, tmp_path)
    assert remembered(weights, tmp_path) == digest
    assert remembered(weights, tmp_path, "fp16") is None


@pytest.mark.parametrize("change", [rewrite, replace, relink, touch, grow])
def test_weights_changed_in_any_way_are_loaded_again(
    weights: Path, tmp_path: Path, monkeypatch, change
):
    monkeypatch.setattr(registry.ModelName, "check", lambda name: None)
    first = loaded(weights, tmp_path)
    before = memo.stamp(weights)
    change(weights)
    assert memo.stamp(weights) != before
    assert remembered(weights, tmp_path) is None
    second = loaded(weights, tmp_path)
    assert (second == first) == (change is touch)
    assert remembered(weights, tmp_path) == second


def test_a_link_that_points_to_other_weights_is_not_served_from_the_memo(
    weights: Path, tmp_path: Path
):
    link, other = tmp_path / "link.safetensors", tmp_path / "b.safetensors"
    other.write_bytes(other_weights(weights))
    link.symlink_to(weights)
    digest = loaded(link, tmp_path)
    assert remembered(link, tmp_path) == digest
    link.unlink()
    link.symlink_to(other)
    assert remembered(link, tmp_path) is None


def test_a_recently_changed_file_is_not_remembered(weights: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(memo, "SETTLED_NS", 2_000_000_000)
    loaded(weights, tmp_path)
    assert remembered(weights, tmp_path) is None
    assert not (tmp_path / model_memo.MEMO).exists()
    picture = tmp_path / "a.png"
    picture.write_bytes(b"a")
    pictures.file_digests([picture], tmp_path)
    assert json.loads((tmp_path / pictures.DIGEST_MEMO).read_text()) == {}


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_memo_that_other_users_can_write_is_not_trusted(weights: Path, tmp_path: Path, mode: int):
    loaded(weights, tmp_path)
    (tmp_path / model_memo.MEMO).chmod(mode)
    assert remembered(weights, tmp_path) is None
    assert loaded(weights, tmp_path) == remembered(weights, tmp_path)  # the memo is written again
    assert (tmp_path / model_memo.MEMO).stat().st_mode & 0o777 == 0o600


def test_a_memo_of_another_user_or_behind_a_link_is_not_trusted(
    weights: Path, tmp_path: Path, monkeypatch
):
    digest = loaded(weights, tmp_path)
    file = tmp_path / model_memo.MEMO
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: os.stat(file).st_uid + 1)
        assert remembered(weights, tmp_path) is None
    assert remembered(weights, tmp_path) == digest
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    assert remembered(weights, tmp_path) is None


@pytest.mark.parametrize("content", ["", "[1]", "{", '{"KEY": 1}', '{"KEY": {"sources": 3}}'])
def test_a_damaged_memo_is_rewritten(weights: Path, tmp_path: Path, content: str):
    digest = loaded(weights, tmp_path)
    file = tmp_path / model_memo.MEMO
    (key,) = json.loads(file.read_text())
    file.write_text(content.replace("KEY", key))
    assert remembered(weights, tmp_path) is None
    assert loaded(weights, tmp_path) == digest == remembered(weights, tmp_path)


def test_reading_all_files_ignores_the_memo_and_rewrites_it(weights: Path, tmp_path: Path):
    digest = loaded(weights, tmp_path)
    picture = tmp_path / "a.png"
    picture.write_bytes(b"a")
    expected = pictures.file_digests([picture], tmp_path)
    rows = json.loads((tmp_path / pictures.DIGEST_MEMO).read_text())
    rows[str(picture)][-1] = "0" * 32  # as if the bytes had changed without a new stamp
    memo.write(tmp_path / pictures.DIGEST_MEMO, rows, 9)
    assert pictures.file_digests([picture], tmp_path) == ["0" * 32]
    with memo.reading_all():
        assert remembered(weights, tmp_path) is None
        assert pictures.file_digests([picture], tmp_path) == expected
    assert remembered(weights, tmp_path) == digest
    assert pictures.file_digests([picture], tmp_path) == expected


def test_a_memo_is_not_trusted_with_other_versions_folders_or_limits(
    weights: Path, tmp_path: Path, monkeypatch
):
    digest = loaded(weights, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(model_memo, "_code_and_libraries", lambda: ["torch 9"])
        assert remembered(weights, tmp_path) is None
    with monkeypatch.context() as patch:
        patch.chdir(weights.parent / "..")  # a relative name would be another file in this folder
        assert remembered(weights, tmp_path) is None
    with monkeypatch.context() as patch:
        patch.setenv(access.ROOTS, str(tmp_path))
        assert remembered(weights, tmp_path) is None
    assert remembered(weights, tmp_path) == digest


def test_the_number_of_remembered_digests_is_limited(weights: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(model_memo, "MOST", 2)
    copies = [weights.with_name(f"{number}.safetensors") for number in range(4)]
    for copy in copies:
        shutil.copy(weights, copy)
        loaded(copy, tmp_path)
    assert [remembered(copy, tmp_path) is not None for copy in copies] == [False, False, True, True]
    monkeypatch.setattr(pictures, "MOST_DIGESTS", 2)
    for copy in copies:
        pictures.file_digests([copy], tmp_path)
    rows = json.loads((tmp_path / pictures.DIGEST_MEMO).read_text())
    assert list(rows) == [str(copy) for copy in copies[2:]]
    pictures.file_digests(copies, tmp_path)  # all digests of a single call are remembered
    assert len(json.loads((tmp_path / pictures.DIGEST_MEMO).read_text())) == 4


def test_plugins_and_models_without_known_files_are_not_remembered(weights: Path, tmp_path: Path):
    model = registry.load_model(name_of(weights), "cpu", "fp32")
    began = time.time_ns()
    plugins.allow(f"py:{FILES['model']}")
    of_plugin = registry.parse_name("models", f"py:{FILES['model']}")
    model_memo.remember(model, of_plugin, "fp32", tmp_path, began)
    model.sources = None
    model_memo.remember(model, name_of(weights), "fp32", tmp_path, began)
    assert not (tmp_path / model_memo.MEMO).exists()


def test_the_sources_of_a_folder_model_are_all_its_files(tmp_path: Path):
    def named(source: str) -> open_clip.OpenClipName:
        return open_clip._parse(f"openclip:{source}")

    folder = tmp_path / "model"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "vocab.json").write_text("{}")
    sources = open_clip._sources(named(f"local-dir:{folder}"), {"text_cfg": {}}, None)
    assert sources == [folder, folder / "inner", folder / "inner" / "vocab.json"]
    assert open_clip._sources(named("ViT-B-32"), {"text_cfg": {}}, None) == []
    assert open_clip._sources(named("ViT-B-16-SigLIP"), {"text_cfg": {}}, folder) is None
    snapshot = tmp_path / "models--a" / "snapshots" / "1" / "weights.bin"
    snapshot.parent.mkdir(parents=True)
    snapshot.write_bytes(b"")
    (tmp_path / "models--a" / "refs").mkdir()
    (tmp_path / "models--a" / "refs" / "main").write_text("1")
    of_hub = open_clip._sources(named("ViT-B-32"), {"text_cfg": {}}, snapshot)
    assert of_hub is not None
    assert tmp_path / "models--a" / "refs" / "main" in of_hub


def test_the_digest_of_a_voting_encoder_is_remembered_too(
    weights: Path, tmp_path: Path, monkeypatch
):
    loads: list[str] = []
    real = registry.load_model
    monkeypatch.setattr(caption_foils, "embeds_texts", lambda model: True)
    monkeypatch.setattr(caption_foils, "looks_up", lambda model: False)
    monkeypatch.setattr(
        registry,
        "load_model",
        lambda name, device="auto", precision="fp32": (
            loads.append(name) or real(name, device, precision)
        ),
    )
    digest = caption_foils.voter_digest(name_of(weights).text, tmp_path)
    caption_foils._loaded_voter.cache_clear()  # simulates another process
    assert caption_foils.voter_digest(name_of(weights).text, tmp_path) == digest
    assert len(loads) == 1
