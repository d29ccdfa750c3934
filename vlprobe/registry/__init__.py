"""The registry that finds models, datasets, probes and edit rules by name.

It loads every module in the folders `datasets`, `models` and `probes`, so there is no list to edit, and plug-ins from
outside vlprobe (`plugins`). A module in `datasets` or `models` defines PREFIX, NAMES (the forms that can be typed
without a lookup) and `load(name, ...)`. It may define `check_name(name)`, which raises an error for a wrong name before
anything is loaded, `named_capabilities(name)` and, for models, `suggestion(path)`, which returns the name to use
instead of a path. Alternatively, it defines FAMILIES, a sequence of objects with these members. A name is a prefix,
or a prefix, a colon and a text that the family parses. A module in `probes` defines PROBE. Modules are cheap to import,
because heavy libraries are imported where they are used.
"""

import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from vlprobe.errors import InvalidInput, NotFound, VlprobeError
from vlprobe.registry import endpoints, plugins
from vlprobe.registry.plugins import Plugin
from vlprobe.storage import files
from vlprobe.storage.access import refuse_name
from vlprobe.types import Capabilities, Dataset, Model, Probe


class Family(Protocol):
    """A family of datasets or models whose names share a prefix: a module, or one of a module's FAMILIES."""

    @property
    def PREFIX(self) -> str:
        """The prefix of all names in the family."""
        ...

    @property
    def NAMES(self) -> Sequence[str]:
        """The forms of names that can be typed without a lookup."""
        ...

    @property
    def load(self) -> Callable[..., Any]:
        """The function that loads a dataset or model by name."""
        ...


@functools.cache  # reading the folder takes 1.7 ms, and each name needs it
def _modules(folder: str) -> tuple[ModuleType, ...]:
    package = importlib.import_module(f"vlprobe.{folder}")
    stems = sorted(
        module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg
    )
    return tuple(importlib.import_module(f"vlprobe.{folder}.{stem}") for stem in stems)


def families(folder: str) -> dict[str, Family]:
    """Return the families in the folder `models` or `datasets`, keyed and sorted by prefix."""
    defined = [
        family
        for module in _modules(folder)
        for family in getattr(module, "FAMILIES", [module] if hasattr(module, "PREFIX") else [])
    ]
    return {family.PREFIX: family for family in sorted(defined, key=lambda family: family.PREFIX)}


SHIPPED_MODELS = (  # the best-known published model, then the others in the order in which they were made
    "published:GPT-4V",
    *("demo:softmax", "demo:sigmoid", "demo:weak", "demo:plain", "demo:eqsim", "demo:scvc"),
)


_FORM = re.compile(r"[:@][A-Z]{3,}(?=[@+#]|$)")  # :FILE, @IMAGEDIR
NOUNS = {"models": "model", "datasets": "dataset", "probes": "probe", "rules": "rule set"}


@dataclass(frozen=True, slots=True)
class ModelName:
    """The name of a model or dataset and the family that loads it. `parse_name` has checked that the name may be used.

    The family parses the text after its prefix, including options such as `+chat`.
    """

    text: str  # the name in stored results: as typed, but with the full path of a plug-in's file
    family: Family

    def __str__(self) -> str:
        return self.text

    def check(self) -> None:
        """Raise an error for a wrong name before anything is loaded. Paths and file headers are checked, without a
        download or an import.

        Raises:
            NotFound: The family has no model or dataset with this name.
            InvalidInput: A path does not exist, has the wrong type, or may not be read.
        """
        try:
            if check := getattr(self.family, "check_name", None):
                check(self.text)
        except OSError as error:
            raise InvalidInput(
                f"'{self.text}' cannot be read ({error.strerror}). Check the path and its "
                "permissions."
            ) from None

    @property
    def capabilities(self) -> Capabilities | None:
        """The capabilities of a model, or None if its name and file headers do not determine them."""
        tell = getattr(self.family, "named_capabilities", None)
        return tell(self.text) if tell else None


def parse_name(folder: str, name: str) -> ModelName:
    """Parse the name of a model or dataset, and check that this process may use it.

    Raises:
        NotFound: No family has the name's prefix.
        InvalidInput: The name has a path that may not be read, a plug-in or server that was not allowed at the start,
            or text that is not UTF-8.
    """
    if files.SURROGATE.search(name):
        raise InvalidInput(
            f"'{name}' is not valid UTF-8, so results cannot be stored under this name. "
            "Rename the file or folder."
        )
    prefix = name.partition(":")[0]
    if family := families(folder).get(prefix):
        if folder == "models" and prefix == "http":
            endpoints.refuse_unnamed(name)
        else:
            refuse_name(name)
        return ModelName(name, family)
    imported = _imported(folder, name)
    if imported is None:
        refuse_name(name)
        raise _absent(folder, name)
    plugin_name, reference = plugins.split(name)
    text = f"{plugin_name}:{reference}" if reference else plugin_name
    return ModelName(text, plugins.PluginFamily(folder, imported))


def check_name(folder: str, name: str) -> None:
    """Raise an error if a model, dataset or rule set name is not valid. See `parse_name` and `ModelName.check`."""
    if folder == "rules":
        load_rules(name)
    else:
        parse_name(folder, name).check()


@functools.cache  # a page looks up all probes some forty times
def _own_probes() -> dict[str, Probe]:
    """Return the probes that vlprobe itself defines, in the order of files."""
    defined = [module.PROBE for module in _modules("probes") if hasattr(module, "PROBE")]
    return {probe.name: probe for probe in defined}


def _own_names(folder: str) -> tuple[str, ...]:
    """Return the names that vlprobe itself defines, in the order of files or prefixes."""
    if folder == "rules":
        from vlprobe.perturb import lgip

        return lgip.RULES
    if folder == "probes":
        return tuple(_own_probes())
    return tuple(name for family in families(folder).values() for name in family.NAMES)


def _taken(folder: str) -> tuple[str, ...]:
    """Return the names and prefixes that are reserved, so no plug-in can have them."""
    return tuple(families(folder)) if folder in ("models", "datasets") else _own_names(folder)


def names(folder: str) -> list[str]:
    """Return the names that a user can type to choose among `models`, `datasets`, `probes` or `rules`. vlprobe's own
    names come first, in the order of files or prefixes, then names from plug-ins that may be imported here.
    """
    listed = list(_own_names(folder))
    for name in plugins.named():
        is_code = name.startswith(plugins.PREFIX)
        try:
            imported = _imported(folder, name)
            if imported is None or (is_code and not plugins.offers(folder, imported.target)):
                continue
            is_family = folder in ("models", "datasets")
            listed += plugins.PluginFamily(folder, imported).NAMES if is_family else [name]
        except VlprobeError:  # raised again when the plug-in is used
            listed += [] if is_code or folder == "probes" else [name]
    return listed


def is_form(name: str) -> bool:
    """Return whether a string returned by `names` is a form with placeholders instead of a real name.

    >>> is_form("csv:FILE"), is_form("rococo:FILE@IMAGEDIR"), is_form("py:/mnt/DATA/mine.py")
    (True, True, False)
    """
    return _FORM.search(name) is not None


def _imported(folder: str, name: str) -> plugins.Imported | None:
    """Import the plug-in that a name begins with. Return None if there is no such plug-in. Raises InvalidInput."""
    plugin = plugins.find(folder, name, _taken(folder))
    return plugins.load(plugin) if plugin else None


def _required(folder: str, name: str) -> plugins.Imported:
    """Import the plug-in that a name begins with. Raises NotFound or InvalidInput if there is none."""
    if imported := _imported(folder, name):
        return imported
    raise _absent(folder, name)


def installed_plugins(folder: str) -> tuple[list[Plugin], list[str]]:
    """Return the installed plug-ins that can be used, and one line for each that cannot. Nothing is imported."""
    reasons = {
        plugin: plugins.problem(plugin, folder, _taken(folder))
        for plugin in plugins.installed(folder)
    }
    usable = [plugin for plugin, reason in reasons.items() if not reason]
    return usable, list(dict.fromkeys(filter(None, reasons.values())))


def allow_typed(*names: str) -> None:
    """Allow this process to import the plug-ins and query the servers that the user named on the command line or in a
    Python call.
    """
    for name in names:
        head = name.partition(":")[0]
        if name.startswith(endpoints.PREFIX):
            endpoints.allow(endpoints.of_name(name))
        elif head == plugins.PREFIX[:-1] or any(
            plugin.name == head for folder in NOUNS for plugin in plugins.installed(folder)
        ):
            plugins.allow(name)


def require_plugin(name: str) -> None:
    """Import the plug-in that the user named with `--plugin`, and allow this process to use it.

    Raises NotFound or InvalidInput if it cannot be used.
    """
    plugin_name, _ = plugins.split(name)
    entries = {
        folder: plugin
        for folder in NOUNS
        for plugin in plugins.installed(folder)
        if plugin.name == plugin_name
    }
    if not entries and not plugin_name.startswith(plugins.PREFIX):
        installed = {plugin.name for folder in NOUNS for plugin in plugins.installed(folder)}
        hint = "Files also work: py:FILE.py."
        raise NotFound("plug-in", plugin_name, sorted(installed), hint)
    for folder, plugin in entries.items():
        if reason := plugins.problem(plugin, folder, _taken(folder)):
            raise InvalidInput(reason)
    plugins.allow(name)
    for plugin in entries.values() if entries else [plugins.of_code(plugin_name)]:
        plugins.load(plugin)


def _absent(folder: str, name: str) -> NotFound | InvalidInput:
    if folder == "datasets" and (prefix := prefix_of_path(name)):
        return InvalidInput(
            f"'{name}' is a path without a prefix. To read it as a dataset, write "
            f"'{prefix}:{name}'."
        )
    if folder == "datasets" and "/" in name and ":" not in name:
        return InvalidInput(
            f"'{name}' does not exist, or is not a dataset. Expected a folder of pictures with captions, "
            "or a file such as captions.csv."
        )
    if folder == "models":
        for family in families(folder).values():
            if (suggestion := getattr(family, "suggestion", None)) and (form := suggestion(name)):
                return InvalidInput(
                    f"'{name}' is a path without a prefix. To load it as a model, write {form}."
                )
    installed, _ = installed_plugins(folder)
    every_name = [*names(folder), *(plugin.name for plugin in installed)]
    return NotFound(NOUNS[folder], name, dict.fromkeys(every_name))


def prefix_of_path(name: str) -> str:
    """Return the dataset prefix that can read a path that was typed without a prefix. Return "" for any other name, or
    if the path may not be read. A dataset family accepts paths if it defines `takes(path)`.
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


def load_dataset(name: str | ModelName, cache: Path) -> Dataset:
    """Load and check a dataset by name. Raises NotFound or InvalidInput."""
    parsed = parse_name("datasets", name) if isinstance(name, str) else name
    return parsed.family.load(parsed.text, cache)


def redrawn(path: Path) -> bytes | None:
    """Draw a synthetic picture again and return its file contents. Return None if the path is not a synthetic picture.

    Bundled results refer to their pictures by relative paths that have no file. The module in `datasets` that draws
    these pictures defines `redraw(path)`.
    """
    for module in _modules("datasets"):
        redraw: Callable[[Path], bytes | None] | None = getattr(module, "redraw", None)
        if redraw and (content := redraw(path)):
            return content
    return None


def load_model(name: str | ModelName, device: str = "auto", precision: str = "fp32") -> Model:
    """Load a model by name and freeze its weights. Raises NotFound or InvalidInput."""
    parsed = parse_name("models", name) if isinstance(name, str) else name
    return parsed.family.load(parsed.text, device=device, precision=precision)


def load_probe(name: str) -> Probe:
    """Return a probe by name. Raises NotFound."""
    return _own_probes().get(name) or plugins.probe_of(_required("probes", name))


def has_probe(name: str) -> bool:
    """Return whether a probe is built into vlprobe or provided by a plug-in that may be imported here."""
    if name in _own_probes():
        return True
    try:
        return name in plugins.named() and bool(load_probe(name))
    except VlprobeError:
        return False


def load_rules(name: str) -> plugins.PluginRules:
    """Load the edit rules from a plug-in. Raises NotFound or InvalidInput."""
    return plugins.PluginRules(_required("rules", name))


def natural_order(name: str) -> list[str | int]:
    """Return a sort key that orders names by the numbers in them.

    >>> sorted(["toy@100", "toy@50", "toy@0"], key=natural_order)
    ['toy@0', 'toy@50', 'toy@100']
    """
    parts = re.split(r"([0-9]{1,18})", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


def model_order(model: str) -> tuple[bool, int, list[str | int]]:
    """Return the sort key for models in all lists. Bundled models come first, in the order in which they were made,
    then other models by name, then controls.
    """
    place = SHIPPED_MODELS.index(model) if model in SHIPPED_MODELS else len(SHIPPED_MODELS)
    return is_control(model), place, natural_order(model)


def is_control(model: str) -> bool:
    """Return whether a model is a control, which should score at chance. Only the name is checked."""
    return model.startswith("control:")
