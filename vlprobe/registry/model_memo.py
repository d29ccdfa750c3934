"""What a model's name stood for when it was last loaded: the digest of a model, without torch.

    cache/model-digests.json    by name, precision and surroundings: the digest, and the stamps of
                                every file that the model was loaded from

It is valid for the same code of vlprobe, the same versions of the libraries that build models, the same machine,
working folder and folders of the hub, and while every file has its stamp (`storage.memo`, which says whom that keeps
out). A name of the hub stands for the files that are here: a newer version on the hub is looked for only when a model
is loaded, and so by `vlprobe run --verify`. Not remembered are plug-ins, and models that do not say which files they
are (`sources`).

Measured on two demo models: a run that is stored is found in 1.1 s, and in 4.3 s where torch has to load the models.
"""

import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from vlprobe import __version__, registry
from vlprobe.registry import ModelName
from vlprobe.registry.plugins import PluginFamily
from vlprobe.storage import access, memo
from vlprobe.types import Model

MEMO = "model-digests.json"
MOST = 256  # names that are remembered, those loaded last
LIBRARIES = (  # that change what a name builds
    *("torch", "torchvision", "open_clip_torch", "timm", "transformers", "tokenizers"),
    *("sentence-transformers", "safetensors", "huggingface_hub", "numpy", "pillow"),
)
PLACES = ("HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
CODE = (".py", ".toml", ".json")


class Identity(NamedTuple):
    """Which model a run is about."""

    name: str  # of a preset, that of its weights
    digest: str


def look_up(name: ModelName, precision: str, cache: Path) -> Identity | None:
    """Return what a checked name stands for, if nothing that it depends on has changed; None if only loading tells,
    as on a server whose files are confined.
    """
    if not memo.believed() or access.ROOTS in os.environ:
        return None
    row = memo.read(cache / MEMO).get(_key(name, precision))
    if row is None:
        return None
    try:
        if all(memo.stamp(path) == row["sources"][path] for path in row["sources"]):
            return Identity(str(row["name"]), str(row["digest"]))
    except (OSError, KeyError, TypeError):  # a file is gone, or the row is damaged
        pass
    return None


def load(name: ModelName, device: str, precision: str, cache: Path) -> Model:
    """Return the model of that name, as `registry.load_model` does, and remember what it is."""
    began = time.time_ns()
    model = registry.load_model(name, device, precision)
    remember(model, name, precision, cache, began)
    return model


def remember(model: Model, name: ModelName, precision: str, cache: Path, began: int) -> None:
    """Store what a name stands for, if the model says what it was loaded from.

    Args:
        model: As `registry.load_model` gave it for the name.
        name: Of the model.
        precision: That it was loaded with.
        cache: Of the memo.
        began: When loading began, in ns since 1970: files that changed since are not trusted.
    """
    if isinstance(name.family, PluginFamily) or model.sources is None:
        return
    try:
        stamps = {os.path.abspath(path): memo.stamp(path) for path in model.sources}
    except OSError:  # replaced at this moment
        return
    if all(memo.is_settled(file_stamp, began) for file_stamp in stamps.values()):
        rows, key = dict(memo.read(cache / MEMO)), _key(name, precision)
        rows.pop(key, None)
        rows[key] = {"name": model.name, "digest": model.digest, "sources": stamps}
        memo.write(cache / MEMO, rows, MOST)


def files_below(folder: Path) -> list[Path]:
    """Return a folder, the folders in it and all of their files: what changes when any of these does.

    >>> [path.name for path in files_below(Path(__file__).parent.parent / "models" / "demo_weights")][0]
    'demo_weights'
    """
    paths = []
    for parent, _, names in os.walk(folder):
        paths += [Path(parent), *(Path(parent, name) for name in sorted(names))]
    return paths


def _key(name: ModelName, precision: str) -> str:
    try:
        working_folder = os.getcwd()
    except OSError:
        working_folder = ""
    folders = [os.environ.get(place, "") for place in PLACES]
    parts = [name.text, precision, working_folder, folders, _code_and_libraries()]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


@functools.cache
def _code_and_libraries() -> Sequence[str]:
    """Return the machine, Python, vlprobe's own code by its stamps, and the libraries by their versions."""
    blake = hashlib.blake2b(digest_size=16)
    root = Path(__file__).parent.parent
    for path in files_below(root):
        if path.suffix in CODE and not {"shipped_results", "published_results"} & set(path.parts):
            blake.update(f"{path} {memo.stamp(path)}\0".encode("utf-8", "surrogateescape"))
    versions = {
        package.name: package.version
        for library in LIBRARIES
        for package in importlib.metadata.distributions(name=library)
    }
    machine = [platform.node(), platform.machine(), sys.version, __version__, blake.hexdigest()]
    return [*machine, *(f"{name} {version}" for name, version in versions.items())]
