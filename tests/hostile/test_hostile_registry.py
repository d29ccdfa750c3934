"""Every prefix of the registry with every hostile path, on a dashboard confined to a folder and on a read-only
dashboard: no file outside of the folder is opened.

A new family fails here until it has a row.
"""

from pathlib import Path

import pytest

from tests.hostile.conftest import AUDIT, PATHS, fill_template, limit
from vlprobe import registry
from vlprobe.errors import InvalidInput, VlprobeError

# Names after the colon that refer to a file at PATH; TABLE and FOLDER may be read. Empty: the family opens no file.
TABLES = ("PATH", "TABLE@PATH", "PATH@FOLDER")
DATASETS = {
    "coco": ("PATH",),
    "csv": ("PATH",),
    "demo": (),
    "demo-pairs": (),
    "demo-series": (),
    "demo-train": (),
    "demo-triplets": (),
    "folder": ("PATH",),
    "bundled": (),
    "frames": (
        *TABLES,
        "PATH+ag",
        "TABLE@PATH+available",
        "PATH@FOLDER+gebc+available",
        "PATH+boundaries+graph+video",
    ),
    "orders": (*TABLES, "PATH+available", "TABLE@PATH+available"),
    "pairs": (*TABLES, "PATH+available", "TABLE@PATH+available", "TABLE@PATH+unpictured"),
    "queries": ("PATH", "PATH+p2", "PATH+p3"),
    "rococo": (*TABLES, "TABLE@PATH+available"),
    "table": TABLES,
    "triplets": (*TABLES, "TABLE@PATH+available"),
}
MODELS = {
    "control": (),
    "published": (),
    "demo": ("weak@PATH",),
    "embeddings": ("PATH", "PATH+normalise", "PATH+key=a/b+vector=PATH"),
    "eqben": (),
    "hf": ("PATH",),
    "hf-gen": ("PATH",),
    "hf-itm": ("PATH",),
    "http": (),
    "lgip": (),
    "openclip": ("ViT-B-32@PATH", "ViT-B-32/openai@PATH", "local-dir:PATH", "local-dir:MODEL@PATH"),
    "rococo-clip": (),
    "scores": ("PATH", "PATH+probability", "PATH+key=a/b+score=PATH"),
    "st": ("PATH",),
    "visla": (),
}
# Paths that no file can have; each is refused with a one-line error and no traceback
NO_PATHS = {
    "a home of nobody": "~nosuchuser/x",
    "NUL": "ROOT/open/a\0b",
    "NUL alone": "a\0b",
    "too long": "x" * 5000,
    "too long in the folder": "ROOT/open/" + "x" * 5000,
    "links in a circle": "ROOT/open/circle",
    "a link in a circle as a folder": "ROOT/open/circle/captions.csv",
    "half a character": "ROOT/open/\ud800",
}


def refuse(load, name: str, read_only: bool, names_a_file: bool = True) -> None:
    with pytest.raises(InvalidInput if names_a_file else VlprobeError) as caught:
        load(name)
    message = str(caught.value)
    if names_a_file:
        assert ("read-only" if read_only else "outside the folders") in message, message
    assert message.isprintable()


def prefixes(folder: str) -> set[str]:
    return set(registry.families(folder))


def test_every_prefix_has_a_row_in_these_tables():
    assert prefixes("datasets") == set(DATASETS)
    assert prefixes("models") == set(MODELS)


@pytest.mark.parametrize("read_only", [False, True], ids=["confined", "read-only"])
@pytest.mark.parametrize("folder", ["datasets", "models"])
def test_no_dataset_or_model_name_opens_a_file_outside_of_the_folder(
    folder: str, read_only: bool, root: Path, monkeypatch: pytest.MonkeyPatch
):
    limit(monkeypatch, root, read_only)
    load = (
        registry.load_model
        if folder == "models"
        else lambda name: registry.load_dataset(name, root / "cache")
    )
    for prefix, templates in (MODELS if folder == "models" else DATASETS).items():
        for path in PATHS.values():
            for template in templates or ("PATH", "demo@PATH", "random:PATH"):
                name = fill_template(f"{prefix}:{template}", path, root)
                # A path that contains an @ may be split there, and then names no file
                refuse(load, name, read_only, bool(templates) and ("@" not in path or read_only))


@pytest.mark.parametrize("read_only", [False, True], ids=["confined", "read-only"])
@pytest.mark.parametrize("folder", ["datasets", "models"])
def test_a_path_that_no_file_can_have_is_refused_in_one_line_under_limits(
    folder: str, read_only: bool, root: Path, monkeypatch: pytest.MonkeyPatch
):
    limit(monkeypatch, root, read_only)
    load = (
        registry.load_model
        if folder == "models"
        else lambda name: registry.load_dataset(name, root / "cache")
    )
    for prefix, templates in (MODELS if folder == "models" else DATASETS).items():
        for path in NO_PATHS.values():
            for template in templates or ("PATH",):
                refuse(
                    load,
                    fill_template(f"{prefix}:{template}", path, root),
                    read_only,
                    names_a_file=False,
                )


def test_without_limits_the_files_outside_of_the_folder_are_opened(root: Path):
    """Without this test, the others would also pass if the files were unreadable."""
    assert registry.load_dataset(f"csv:{root}/closed/captions.csv", root / "cache").items
    assert registry.load_model(f"demo:weak@{root}/closed/weights.safetensors", "cpu").digest
    opened = {Path(path).name for path in AUDIT["opened"]}
    assert opened >= {"captions.csv", "0.png"}
    AUDIT["opened"] = []


def test_files_inside_the_allowed_folder_are_read(root: Path, monkeypatch: pytest.MonkeyPatch):
    limit(monkeypatch, root, read_only=False)
    assert registry.load_dataset("csv:captions.csv", root / "cache").items
    assert registry.load_model(f"demo:weak@{root}/open/weights.safetensors", "cpu").digest
    assert registry.load_model("openclip:local-dir:model", "cpu").digest
