"""Finds what the folders `datasets`, `models` and `probes` define: one module a family, no list to edit.

A module of `datasets` or `models` defines PREFIX, `names()` (what can be typed without looking anything up) and
`load(name, ...)`, and may define `check_name(name)`, which raises what is wrong with a name before anything is loaded.
A name is its prefix, or its prefix, a colon and whatever that family understands after it. A module of `probes` defines
PROBE.
Modules are cheap to import: heavy libraries are imported where they are used.
"""

import functools
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import files
from vlprobe.storage.access import refuse_name
from vlprobe.types import Dataset, Model, Probe


@functools.cache
def _modules(folder: str) -> tuple[ModuleType, ...]:
    package = importlib.import_module(f"vlprobe.{folder}")
    found = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg)
    return tuple(importlib.import_module(f"vlprobe.{folder}.{name}") for name in found)


def names(folder: str) -> list[str]:
    """What a user can type for a `models`, `datasets` or `probes` choice, in the order of the files."""
    if folder == "probes":
        return [module.PROBE.name for module in _modules(folder) if hasattr(module, "PROBE")]
    return [name for module in _modules(folder) if hasattr(module, "PREFIX") for name in module.names()]


def _family(folder: str, name: str) -> ModuleType:
    prefix = name.partition(":")[0]
    for module in _modules(folder):
        if getattr(module, "PREFIX", None) == prefix:
            return module
    raise NotFound(folder.removesuffix("s"), name, names(folder))


def check_name(folder: str, name: str) -> None:
    """Tells at once what is wrong with the name of one of `models` or `datasets`, before it is loaded.

    Nothing is fetched and no library imported: the family, the paths in the name and the head of a file are looked at.
    What is wrong inside of it, loading tells.

    Raises:
        NotFound: no such family, or nothing of that name in it.
        InvalidInput: a path that may not be read, where nothing is, or that holds something else.
    """
    _refuse_bytes(name)
    refuse_name(name)
    family = _family(folder, name)
    try:
        if hasattr(family, "check_name"):
            family.check_name(name)
        elif hasattr(family, "PRESETS") and name not in family.names():
            raise NotFound(folder.removesuffix("s"), name, family.names())
    except OSError as error:
        raise InvalidInput(f"'{name}' cannot be read ({error.strerror}). Check the path and who may read it.") from None


def _refuse_bytes(name: str) -> None:
    """Raises InvalidInput where the name has bytes that are not UTF-8: results are kept under it, as text."""
    if files.SURROGATE.search(name):
        raise InvalidInput(f"'{name}' is not UTF-8, and results are kept under that name. Rename the file or folder.")


def load_dataset(name: str, cache: Path) -> Dataset:
    """The dataset of that name, read and checked. Raises NotFound or InvalidInput."""
    _refuse_bytes(name)
    refuse_name(name)
    return _family("datasets", name).load(name, cache)


def load_model(name: str, device: str = "auto", precision: str = "fp32") -> Model:
    """The model of that name, its weights loaded and frozen. Raises NotFound or InvalidInput."""
    _refuse_bytes(name)
    refuse_name(name)
    return _family("models", name).load(name, device=device, precision=precision)


def load_probe(name: str) -> Probe:
    """The probe of that name. Raises NotFound."""
    for module in _modules("probes"):
        if hasattr(module, "PROBE") and module.PROBE.name == name:
            return module.PROBE
    raise NotFound("probe", name, names("probes"))


def is_control(model: str) -> bool:
    """Whether a model, by its name, knows nothing on purpose: its scores say what chance gives."""
    return model.startswith("control:")
