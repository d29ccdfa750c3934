"""Cache of the digest of each model by name, from its last load, so that torch is not needed.

    cache/model-digests.json    by name, precision and environment: the digest, and the stamps of
                                every file that the model was loaded from

It is valid for the same code of vlprobe, the same versions of the libraries that build models, the same machine,
working folder and folders of the hub, and while every file has its stamp (`storage.memo` describes the protection). A
name of the hub means the local files: a newer version on the hub is only looked for when a model is loaded, and so by
`vlprobe run --verify`. Plug-ins are not cached, nor are models that do not list their files (`sources`).

Measured on two demo models: a stored run is found in 1.1 s, and in 4.3 s if torch must load the models.
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


class ModelIdentity(NamedTuple):
    """Identity of the model of a run."""

    name: str  # of a preset, that of its weights
    digest: str


def look_up(name: ModelName, precision: str, cache: Path) -> ModelIdentity | None:
    """Return the identity of a checked name, if nothing that it depends on has changed; None if the model must be
    loaded, as on a server whose files are confined.
    """
    if not memo.is_used() or access.ROOTS in os.environ:
        return None
    row = memo.read(cache / MEMO).get(_key(name, precision))
    if row is None:
        return None
    try:
        if all(memo.stamp(path) == row["sources"][path] for path in row["sources"]):
            return ModelIdentity(str(row["name"]), str(row["digest"]))
    except (OSError, KeyError, TypeError):  # a file was deleted, or the row is damaged
        pass
    return None


def load(name: ModelName, device: str, precision: str, cache: Path) -> Model:
    """Return the model of that name, as `registry.load_model` does, and cache its identity."""
    began = time.time_ns()
    model = registry.load_model(name, device, precision)
    remember(model, name, precision, cache, began)
    return model


def remember(model: Model, name: ModelName, precision: str, cache: Path, began: int) -> None:
    """Store the identity of a name, if the model lists the files that it was loaded from.

    Args:
        model: The return value of `registry.load_model` for the name.
        name: The name of the model.
        precision: The precision of the loaded model.
        cache: The folder of the memo.
        began: The start of loading, in ns since 1970: files that changed since are not trusted.
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
    """Return a folder, the folders in it and all of their files: the paths that change when any of these does.

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


@functools.cache  # takes 150 ms, and each model of a command needs it
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
