"""Finds what the folders `datasets`, `models` and `probes` define: one module a family, no list to edit.

A module of `datasets` or `models` defines PREFIX, `names()` (what can be typed without looking anything up) and
`load(name, ...)`; a name is its prefix, or its prefix, a colon and whatever that family understands after it. A module
of `probes` defines PROBE. Modules are cheap to import: heavy libraries are imported where they are used.
"""

import functools
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

from vlprobe.access import refuse_name
from vlprobe.errors import NotFound
from vlprobe.types import Dataset, DualEncoder, Probe


@functools.cache
def _modules(folder: str) -> tuple[ModuleType, ...]:
    package = importlib.import_module(f"vlprobe.{folder}")
    found = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
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


def load_dataset(name: str, cache: Path) -> Dataset:
    """The dataset of that name, read and checked. Raises NotFound or InvalidInput."""
    refuse_name(name)
    return _family("datasets", name).load(name, cache)


def load_model(name: str, device: str = "auto", precision: str = "fp32") -> DualEncoder:
    """The model of that name, its weights loaded and frozen. Raises NotFound or InvalidInput."""
    refuse_name(name)
    return _family("models", name).load(name, device=device, precision=precision)


def load_probe(name: str) -> Probe:
    """The probe of that name. Raises NotFound."""
    for module in _modules("probes"):
        if hasattr(module, "PROBE") and module.PROBE.name == name:
            return module.PROBE
    raise NotFound("probe", name, names("probes"))
