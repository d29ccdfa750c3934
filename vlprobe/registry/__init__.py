"""Finds what the folders `datasets`, `models` and `probes` define: one module a family, no list to
edit; and what plug-ins define outside of vlprobe, where their names may be asked for (`plugins`).

A module of `datasets` or `models` defines PREFIX, `names()` (what can be typed without looking
anything up) and `load(name, ...)`, and may define `check_name(name)`, which raises what is wrong
with a name before anything is loaded, `named_capabilities(name)` and, of models, `suggestion(path)`:
the name to write in place of a path alone; or it defines FAMILIES, a sequence of objects that have
these. A name is its prefix, or its prefix, a colon and whatever that
family understands after it. A module of `probes` defines PROBE. Modules are cheap to import: heavy
libraries are imported where they are used.
"""

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from vlprobe.errors import InvalidInput, NotFound, VlprobeError
from vlprobe.registry import endpoints, guarded, plugins
from vlprobe.registry.plugins import Plugin
from vlprobe.storage import files
from vlprobe.storage.access import refuse_name
from vlprobe.types import Capabilities, Dataset, Model, Probe


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


_FORM = re.compile(r"[:@][A-Z]{3,}(?=[@+#]|$)")  # :FILE, @IMAGEDIR
NOUNS = {"models": "model", "datasets": "dataset", "probes": "probe", "rules": "rule set"}


@functools.cache
def _own_names(folder: str) -> tuple[str, ...]:
    """What vlprobe itself has, in the order of files or prefixes."""
    if folder == "rules":
        from vlprobe.perturb import lgip

        return lgip.RULES
    if folder == "probes":
        return tuple(module.PROBE.name for module in _modules(folder) if hasattr(module, "PROBE"))
    return tuple(name for family in families(folder).values() for name in family.names())


def _taken(folder: str) -> tuple[str, ...]:
    """Names and prefixes that no plug-in can have."""
    return (
        tuple(families(folder)) if folder in ("models", "datasets") else tuple(_own_names(folder))
    )


def names(folder: str) -> list[str]:
    """What a user can type for a `models`, `datasets`, `probes` or `rules` choice, in the order of
    files or prefixes; then what plug-ins have that may be imported here.
    """
    return [*_own_names(folder), *_names_of_plugins(folder, plugins.named())]


def is_form(name: str) -> bool:
    """Whether one of `names` says what can be typed instead of naming something.

    >>> is_form("csv:FILE"), is_form("rococo:FILE@IMAGEDIR"), is_form("py:/mnt/DATA/mine.py")
    (True, True, False)
    """
    return _FORM.search(name) is not None


def _names_of_plugins(folder: str, named: tuple[str, ...]) -> list[str]:
    listed: list[str] = []
    for plugin_name in named:
        try:
            imported = _imported(folder, plugin_name)
            if imported is None or (
                plugin_name.startswith(plugins.PREFIX)
                and not guarded.offers(folder, imported.target)
            ):
                continue
            is_family = folder in ("models", "datasets")
            listed += guarded.Family(folder, imported).names() if is_family else [plugin_name]
        except VlprobeError:  # it says what is wrong with it when it is asked for
            listed += (
                []
                if plugin_name.startswith(plugins.PREFIX) or folder == "probes"
                else [plugin_name]
            )
    return listed


def _imported(folder: str, name: str) -> plugins.Imported | None:
    """The plug-in that a name begins with, imported; None where there is none of that name.

    Raises InvalidInput where it may not be imported, or cannot be.
    """
    plugin = plugins.find(folder, name, _taken(folder))
    return plugins.load(plugin[0]) if plugin else None


def installed_plugins(folder: str) -> tuple[list[Plugin], list[str]]:
    """The plug-ins that are installed, and a line for each that cannot be used; imports nothing."""
    usable, problems = [], []
    for plugin in plugins.installed(folder):
        if reason := plugins.problem(plugin, folder, _taken(folder)):
            problems.append(reason)
        else:
            usable.append(plugin)
    return usable, list(dict.fromkeys(problems))


def allow_typed(*names: str) -> None:
    """Lets the plug-ins be imported, and the servers be asked, that a person named: on the command
    line, or in a call from Python.
    """
    for name in names:
        head = name.partition(":")[0]
        if name.startswith(endpoints.PREFIX):
            endpoints.allow(endpoints.of_name(name))
        elif head == plugins.PREFIX[:-1] or any(
            plugin.name == head for folder in plugins.GROUPS for plugin in plugins.installed(folder)
        ):
            plugins.allow(name)


def require_plugin(name: str) -> None:
    """Lets the plug-in of a `--plugin` be imported, and imports it. Raises NotFound or InvalidInput."""
    plugins.require(name, {folder: _taken(folder) for folder in plugins.GROUPS})


def _absent(folder: str, name: str) -> NotFound | InvalidInput:
    if folder == "datasets" and (prefix := _prefix_of_path(name)):
        return InvalidInput(
            f"'{name}' is a path without a prefix that says how to read it. Write '{prefix}:{name}'."
        )
    if folder == "models":
        for family in families(folder).values():
            if (suggestion := getattr(family, "suggestion", None)) and (form := suggestion(name)):
                return InvalidInput(
                    f"'{name}' is a path without a prefix that says how to load it. Write {form}."
                )
    installed, _ = installed_plugins(folder)
    every_name = [*names(folder), *(plugin.name for plugin in installed)]
    return NotFound(NOUNS[folder], name, dict.fromkeys(every_name))


def _prefix_of_path(name: str) -> str:
    """The prefix with which a path that was typed alone can be read; "" of any other name, and of a path that may
    not be read. A family of datasets may define `takes(path)`.
    """
    for text in (name, name.partition("+")[0], name.rpartition("@")[0]):
        try:
            path = files.parse_path(text)
            for family in families("datasets").values() if text else ():
                if (takes := getattr(family, "takes", None)) and takes(path):
                    return family.PREFIX
        except (InvalidInput, OSError):
            return ""
    return ""


def _family(folder: str, name: str) -> Family | guarded.Family:
    """The family of a name. Raises NotFound, and InvalidInput for a plug-in that may not be imported."""
    if family := families(folder).get(name.partition(":")[0]):
        if folder == "models" and name.startswith(endpoints.PREFIX):
            endpoints.refuse_unnamed(name)
        else:
            refuse_name(name)
        return family
    imported = _imported(folder, name)
    if imported is None:
        refuse_name(name)
        raise _absent(folder, name)
    return guarded.Family(folder, imported)


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
    if folder == "rules":
        _rules(name)
        return
    family = _family(folder, name)
    name = whole_name(name)
    try:
        if check := getattr(family, "check_name", None):
            check(name)
    except OSError as error:
        raise InvalidInput(
            f"'{name}' cannot be read ({error.strerror}). Check the path and who may read it."
        ) from None


def named_capabilities(name: str) -> Capabilities | None:
    """What a model of that name can be asked, where its name and the heads of its files say that;
    None where loading tells. `check_name` comes first.
    """
    tell = getattr(_family("models", name), "named_capabilities", None)
    return tell(name) if tell else None


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
    family = _family("datasets", name)
    if isinstance(family, guarded.Family):
        return family.load_dataset(whole_name(name), cache)
    return family.load(name, cache)


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
    family = _family("models", name)
    if isinstance(family, guarded.Family):
        return family.load_model(whole_name(name), device, precision)
    return family.load(name, device=device, precision=precision)


def load_probe(name: str) -> Probe:
    """The probe of that name. Raises NotFound."""
    for module in _modules("probes"):
        if hasattr(module, "PROBE") and module.PROBE.name == name:
            return module.PROBE
    return _probe_of_plugin(name, plugins.named())


def has_probe(name: str) -> bool:
    """Whether a probe is vlprobe's, or one of a plug-in that may be imported here."""
    if name in _own_names("probes"):
        return True
    try:
        return name in plugins.named() and bool(load_probe(name))
    except VlprobeError:
        return False


@functools.lru_cache(maxsize=32)
def _probe_of_plugin(name: str, named: tuple[str, ...]) -> Probe:
    imported = _imported("probes", name)
    if imported is None:
        raise _absent("probes", name)
    return guarded.probe_of(imported)


def load_rules(name: str) -> guarded.GuardedRules:
    """The edit rules of a plug-in. Raises NotFound or InvalidInput."""
    return _rules(name)


def _rules(name: str) -> guarded.GuardedRules:
    imported = _imported("rules", name)
    if imported is None:
        raise _absent("rules", name)
    return guarded.GuardedRules(imported)


def whole_name(name: str) -> str:
    """The name with the whole path of a plug-in's file, by which results are kept.

    >>> whole_name("demo:weak"), whole_name("py:/a/b.py:large")
    ('demo:weak', 'py:/a/b.py:large')
    """
    if not name.startswith(plugins.PREFIX):
        return name
    plugin_name, rest = plugins.split(name)
    return f"{plugin_name}:{rest}" if rest else plugin_name


def natural_order(name: str) -> list[str | int]:
    """A sort key of names with numbers in them.

    >>> sorted(["toy@100", "toy@50", "toy@0"], key=natural_order)
    ['toy@0', 'toy@50', 'toy@100']
    """
    parts = re.split(r"([0-9]{1,18})", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


def model_order(model: str) -> tuple[bool, int, list[str | int]]:
    """A sort key of models wherever they are listed: those that come with vlprobe as they were made, others by name,
    controls last.
    """
    place = SHIPPED_MODELS.index(model) if model in SHIPPED_MODELS else len(SHIPPED_MODELS)
    return is_control(model), place, natural_order(model)


def is_control(model: str) -> bool:
    """Whether a model, by its name, knows nothing on purpose: its scores say what chance gives."""
    return model.startswith("control:")
