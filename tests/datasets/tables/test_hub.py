"""Datasets of the hub, tested offline: the library reads a folder in the layout of a repository."""

from pathlib import Path

import pytest
from PIL import Image

from vlprobe import registry
from vlprobe.datasets import table
from vlprobe.datasets.tables import remote
from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.scoring import pictures

library = pytest.importorskip("datasets", reason="needs requirements-models.txt")
NAME = "table:hf://imirandam/BiVLC/test"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a folder in place of imirandam/BiVLC, with pictures in the format of the hub."""
    folder = tmp_path / "repository"
    rows = library.Dataset.from_dict(
        {
            "image": [Image.new("RGB", (6, 6), "red")],
            "caption": ["A man and a ball."],
            "negative_caption": ["A man, a child and a ball."],
            "negative_image": [Image.new("RGB", (6, 6), "blue")],
            "type": ["add"],
            "subtype": ["obj"],
        },
        features=library.Features(
            {
                "image": library.Image(),
                "caption": library.Value("string"),
                "negative_caption": library.Value("string"),
                "negative_image": library.Image(),
                "type": library.Value("string"),
                "subtype": library.Value("string"),
            }
        ),
    )
    (folder / "data").mkdir(parents=True)
    rows.to_parquet(folder / "data" / "test-00000-of-00001.parquet")
    load = library.load_dataset

    def of_folder(path: str, name: str | None, *, revision: str, **settings):
        assert (path, name, revision) == ("imirandam/BiVLC", None, "c0ffee")
        return load(str(folder), **settings)

    monkeypatch.setattr(library, "load_dataset", of_folder)
    monkeypatch.setattr(remote, "_commit", lambda repository: "c0ffee")
    return folder


def test_a_hub_split_is_read_as_a_table_with_embedded_pictures(repository: Path, tmp_path: Path):
    first = table.load(NAME, tmp_path / "cache")
    (item,) = first.items
    assert (item.id, item.captions, item.foils, item.tags["subset"]) == (
        "BiVLC-test/0",
        ("A man and a ball.",),
        ("A man, a child and a ball.",),
        "add",
    )
    assert pictures.open_picture(item.foil_image).getpixel((0, 0)) == (0, 0, 255)
    (repository / "data" / "test-00000-of-00001.parquet").unlink()
    assert table.load(NAME, tmp_path / "cache").digest == first.digest


def test_a_missing_hub_split_is_refused_in_one_line(repository: Path, tmp_path: Path):
    with pytest.raises(
        InvalidInput, match=r"'hf://imirandam/BiVLC/dev' cannot be fetched"
    ) as refusal:
        table.load("table:hf://imirandam/BiVLC/dev", tmp_path / "cache")
    assert "\n" not in str(refusal.value)


def test_an_unreachable_hub_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InvalidInput, match="cannot be fetched from the hub") as refusal:
        table.load(NAME, tmp_path / "cache")
    assert "\n" not in str(refusal.value)


def test_a_local_folder_with_the_name_of_a_hub_dataset_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "imirandam" / "BiVLC").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="which hides the dataset on the hub"):
        table.load(NAME, tmp_path / "cache")


@pytest.mark.parametrize("url", ["hf://a/b", "hf://a/../c", "hf://a/b/c/d/e", "hf://a/b/.."])
def test_an_invalid_hub_split_name_is_refused_before_any_request(url: str):
    with pytest.raises(InvalidInput, match=r"is not a dataset split|not the plain URL"):
        registry.check_name("datasets", f"table:{url}")


def test_the_error_for_the_missing_datasets_library_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingDependency, match=r"vlprobe\[data\]"):
        table.load(NAME, tmp_path / "cache")
