"""Finds what the folders `datasets`, `models` and `probes` define: one module a family, no list to
edit.

A module of `datasets` or `models` defines PREFIX, `names()` (what can be typed without looking
anything up) and `load(name, ...)`, and may define `check_name(name)`, which raises what is wrong
with a name before anything is loaded; or it defines FAMILIES, a sequence of objects that have
these. A name is its prefix, or its prefix, a colon and whatever that family understands after it. A
module of `probes` defines PROBE. Modules are cheap to import: heavy libraries are imported where
they are used.
"""

import functools
import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import files
from vlprobe.storage.access import refuse_name
from vlprobe.types import Dataset, Model, Probe


class Family(Protocol):
    """Datasets or models whose names begin with one prefix: a module, or one of a module's
    FAMILIES.
    """

    @property
    def PREFIX(self) -> str:
        """What their names begin with."""
        ...

    def names(self) -> list[str]:
        """What can be typed without looking anything up."""
        ...

    @property
    def load(self) -> Callable[..., Any]:
        """Loads the dataset or the model of a name."""
        ...


@functools.cache
def _modules(folder: str) -> tuple[ModuleType, ...]:
    package = importlib.import_module(f"vlprobe.{folder}")
    stems = sorted(
        module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg
    )
    return tuple(importlib.import_module(f"vlprobe.{folder}.{stem}") for stem in stems)


@functools.cache
def families(folder: str) -> dict[str, Family]:
    """What the modules of `models` or `datasets` define, by prefix and in its order."""
    defined = [
        family
        for module in _modules(folder)
        for family in getattr(module, "FAMILIES", [module] if hasattr(module, "PREFIX") else [])
    ]
    return {family.PREFIX: family for family in sorted(defined, key=lambda family: family.PREFIX)}


SHIPPED_MODELS = (  # in the order in which they were made
    *("demo:softmax", "demo:sigmoid", "demo:weak", "demo:plain", "demo:eqsim", "demo:scvc"),
)


def names(folder: str) -> list[str]:
    """What a user can type for a `models`, `datasets` or `probes` choice, in the order of files
    or prefixes.
    """
    if folder == "probes":
        return [module.PROBE.name for module in _modules(folder) if hasattr(module, "PROBE")]
    return [name for family in families(folder).values() for name in family.names()]


def _family(folder: str, name: str) -> Family:
    family = families(folder).get(name.partition(":")[0])
    if family is None:
        raise NotFound(folder.removesuffix("s"), name, names(folder))
    return family


def check_name(folder: str, name: str) -> None:
    """Tells at once what is wrong with the name of one of `models` or `datasets`, before it is
    loaded.

    Nothing is fetched and no library imported: the family, the paths in the name and the head of a
    file are looked at. What is wrong inside of it, loading tells.

    Raises:
        NotFound: no such family, or nothing of that name in it.
        InvalidInput: a path that may not be read, where nothing is, or that holds something else.
    """
    _refuse_bytes(name)
    refuse_name(name)
    family = _family(folder, name)
    try:
        if check := getattr(family, "check_name", None):
            check(name)
    except OSError as error:
        raise InvalidInput(
            f"'{name}' cannot be read ({error.strerror}). Check the path and who may read it."
        ) from None


def _refuse_bytes(name: str) -> None:
    """Raises InvalidInput where the name has bytes that are not UTF-8: results are kept under
    it, as text.
    """
    if files.SURROGATE.search(name):
        raise InvalidInput(
            f"'{name}' is not UTF-8, and results are kept under that name. Rename the file or folder."
        )


def load_dataset(name: str, cache: Path) -> Dataset:
    """The dataset of that name, read and checked. Raises NotFound or InvalidInput."""
    _refuse_bytes(name)
    refuse_name(name)
    return _family("datasets", name).load(name, cache)


def redrawn(path: Path) -> bytes | None:
    """The file of a picture that a dataset draws, drawn again; None where the path names no such.

    Shipped results name their pictures by relative paths that are in no folder: a module of
    `datasets` that knows them defines `redraw(path)`.
    """
    for module in _modules("datasets"):
        redraw: Callable[[Path], bytes | None] | None = getattr(module, "redraw", None)
        if redraw and (content := redraw(path)):
            return content
    return None


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


def model_order(model: str) -> tuple[bool, int, str]:
    """A sort key of models wherever they are listed: those that come with vlprobe as they were made, others by name,
    controls last.
    """
    place = SHIPPED_MODELS.index(model) if model in SHIPPED_MODELS else len(SHIPPED_MODELS)
    return is_control(model), place, model


def is_control(model: str) -> bool:
    """Whether a model, by its name, knows nothing on purpose: its scores say what chance gives."""
    return model.startswith("control:")
