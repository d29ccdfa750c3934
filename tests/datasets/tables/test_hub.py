"""Datasets of the hub, without a hub: the library reads a folder that is laid out as a repository."""

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
    """Stands for imirandam/BiVLC, with pictures as the hub has them."""
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


def test_a_split_of_the_hub_is_a_table_with_its_pictures_inside(repository: Path, tmp_path: Path):
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


def test_a_split_that_is_not_there_is_one_line(repository: Path, tmp_path: Path):
    with pytest.raises(
        InvalidInput, match=r"'hf://imirandam/BiVLC/dev' cannot be fetched"
    ) as refusal:
        table.load("table:hf://imirandam/BiVLC/dev", tmp_path / "cache")
    assert "\n" not in str(refusal.value)


def test_a_hub_that_cannot_be_reached_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InvalidInput, match="cannot be fetched from the hub") as refusal:
        table.load(NAME, tmp_path / "cache")
    assert "\n" not in str(refusal.value)


def test_a_folder_of_that_name_is_not_taken_for_the_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "imirandam" / "BiVLC").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="which hides the dataset on the hub"):
        table.load(NAME, tmp_path / "cache")


@pytest.mark.parametrize("url", ["hf://a/b", "hf://a/../c", "hf://a/b/c/d/e", "hf://a/b/.."])
def test_a_name_of_no_split_is_refused_before_anything_is_asked(url: str):
    with pytest.raises(InvalidInput, match=r"is not a dataset split|not the plain URL"):
        registry.check_name("datasets", f"table:{url}")


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingDependency, match=r"vlprobe\[data\]"):
        table.load(NAME, tmp_path / "cache")
