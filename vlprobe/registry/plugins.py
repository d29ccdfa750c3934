"""Plug-ins, which add models, datasets, probes and edit rules from outside vlprobe.

A plug-in is either an entry point of an installed distribution, in the group `vlprobe.models`, `vlprobe.datasets`,
`vlprobe.probes` or `vlprobe.rules`, with the name of the entry point, or code that is named by its path or module:
`py:FILE.py`, `py:FOLDER` or `py:MODULE`. The plug-in parses the text after its name and a colon.

The code runs only if the name is in VLPROBE_PLUGINS, one name per line. Typing a name on the command line or calling
vlprobe from Python adds it, as does `--plugin NAME`. Jobs and workers inherit it. Names from anywhere else (a
link, a form, a job file, a stored run) are rejected before anything is imported or opened.

Errors in plug-in code are reported in one line, here during import and loading, and later by `errors.plugin_errors`.
"""

import copy
import functools
import hashlib
import importlib
import importlib.machinery
import importlib.metadata
import inspect
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vlprobe.errors import InvalidInput, plugin_errors, register_plugin
from vlprobe.storage import files
from vlprobe.storage.access import PLUGINS, refuse_name
from vlprobe.types import Capabilities, Item, Metric, Probe
from vlprobe.types.presentation import Presentation

if TYPE_CHECKING:
    from vlprobe.perturb.lgip import CaptionEdits

PREFIX = "py:"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
FILE = re.compile(r"(.+?\.py)(?::(.*))?", re.DOTALL)
CODE = tuple(importlib.machinery.all_suffixes())
EXPECTED = {
    "models": "load(name, device, precision)",
    "datasets": "load(name, cache)",
    "probes": "PROBE, an instance of a subclass of vlprobe.types.Probe",
    "rules": "edits(captions, item_id, seed)",
}
METHODS = {  # methods that a model needs for each capability that it declares
    "embeds_texts": ("tokenize", "encode_texts"),
    "embeds_images": ("preprocess", "encode_images"),
    "scores_pairs": ("tokenize", "preprocess", "encode_pictures", "match"),
    "matches_side_by_side": ("first_is_left",),
    "answers_cases": ("check_cases", "answers"),
}


@dataclass(frozen=True, slots=True)
class Plugin:
    """The location of a plug-in's code, which is not imported yet."""

    name: str  # name of the entry point, or py: with a full path or a module
    module: str  # a module name, or the path of a file or a package folder
    attribute: str  # an attribute of the module; "": the module itself
    provider: str  # the distribution and its version, or the file

    @property
    def title(self) -> str:
        """The name of the plug-in in error messages."""
        return f"Plug-in '{self.name}' ({self.provider})"

    def refused(self, reason: str) -> InvalidInput:
        """Build the error raised when the plug-in cannot be used."""
        return InvalidInput(f"{self.title} {reason}")


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported plug-in object and the digest of its code."""

    plugin: Plugin
    target: Any
    digest: str

    def combined(self, digest: str) -> str:
        """Combine a digest that the plug-in returned with the digest of the plug-in's code."""
        return hashlib.blake2b(f"{digest}\0{self.digest}".encode(), digest_size=16).hexdigest()


@functools.cache  # scanning all distributions takes 11 ms, and each name from outside vlprobe needs it
def installed(folder: str) -> tuple[Plugin, ...]:
    """Return the installed plug-ins for a key of EXPECTED, sorted by name. Only metadata is read, without imports."""
    plugins = [
        Plugin(
            point.name,
            point.module,
            point.attr or "",
            f"{point.dist.name} {point.dist.version}" if point.dist else point.module,
        )
        for point in importlib.metadata.entry_points(group=f"vlprobe.{folder}")
    ]
    return tuple(sorted(plugins, key=lambda plugin: (plugin.name, plugin.provider)))


def problem(plugin: Plugin, folder: str, taken: Collection[str]) -> str:
    """Return a one-line reason why an installed plug-in cannot be used, or "" if it can be used.

    Args:
        plugin: A plug-in returned by `installed`.
        folder: A key of EXPECTED.
        taken: The names that vlprobe itself uses in this folder.
    """
    if not NAME.fullmatch(plugin.name):
        return f"{plugin.title} has an invalid name. Expected letters, digits, dots and dashes."
    if plugin.name in taken or plugin.name == PREFIX[:-1]:
        return (
            f"{plugin.title} has the name of one of vlprobe's {folder}. Its author has to "
            "rename it."
        )
    rivals = [entry.provider for entry in installed(folder) if entry.name == plugin.name]
    if len(rivals) > 1:
        return (
            f"Plug-in '{plugin.name}' is provided by several packages: {', '.join(rivals)}. "
            "Uninstall all but one."
        )
    return ""


def named() -> tuple[str, ...]:
    """Return the names in VLPROBE_PLUGINS, which are the plug-ins that may be imported here."""
    return tuple(split(name)[0] for name in os.environ.get(PLUGINS, "").split("\n") if name)


def allow(name: str) -> None:
    """Allow this process and its child processes to import the plug-in that a name begins with.

    Call this only for a name that the user typed, never for one in a link, a form or a file.
    """
    plugin_name, _ = split(name)
    if plugin_name.startswith(PREFIX) or NAME.fullmatch(plugin_name):
        os.environ[PLUGINS] = "\n".join(dict.fromkeys([*named(), plugin_name]))


def split(name: str) -> tuple[str, str]:
    """Split a name into the plug-in's name, with its full path, and the text after the colon.

    >>> split("mine:large"), split("py:/a/b.py:large"), split("py:a.b")
    (('mine', 'large'), ('py:/a/b.py', 'large'), ('py:a.b', ''))
    """
    if not name.startswith(PREFIX):
        head, _, reference = name.partition(":")
        return head, reference
    text = name.removeprefix(PREFIX)
    match = FILE.fullmatch(text)
    path, reference = (match[1], match[2] or "") if match else text.partition(":")[::2]
    if not match and MODULE.fullmatch(path):
        return f"{PREFIX}{path}", reference
    try:
        real_path = os.path.realpath(os.path.expanduser(path))
    except ValueError:  # NUL
        real_path = ""
    if not path or not real_path.isprintable() or files.SURROGATE.search(real_path):
        raise InvalidInput(
            f"'{name}' does not name a plug-in. Expected py:FILE.py, py:FOLDER or py:MODULE."
        )
    return f"{PREFIX}{real_path}", reference


def find(folder: str, name: str, taken: Collection[str]) -> Plugin | None:
    """Return the plug-in that a name begins with, or None if no plug-in has this name.

    Raises InvalidInput if the plug-in may not be imported here, or cannot be used.
    """
    is_code = name.startswith(PREFIX)
    plugin, subject, allowed_name = None, f"'{name}' is code", "py:FILE.py"
    if not is_code:
        plugin_name, _ = split(name)
        plugin = next((entry for entry in installed(folder) if entry.name == plugin_name), None)
        if plugin is None:
            return None
        if reason := problem(plugin, folder, taken):
            raise InvalidInput(reason)
        subject, allowed_name = f"'{plugin_name}' is a plug-in of {plugin.provider}", plugin_name
    # If no code is named, the existence of a file is not checked.
    if (is_code and not any(entry.startswith(PREFIX) for entry in named())) or (
        split(name)[0] not in named()
    ):
        raise InvalidInput(
            f"{subject} from outside vlprobe, and it was not allowed at startup. Restart with "
            f"--plugin {allowed_name}."
        )
    return plugin or of_code(split(name)[0])


def of_code(plugin_name: str) -> Plugin:
    """Return the plug-in for a name such as py:FILE.py, py:FOLDER or py:MODULE."""
    text = plugin_name.removeprefix(PREFIX)
    return Plugin(plugin_name, text, "", Path(text).name if text.startswith("/") else "a module")


@functools.cache  # running a file again would make second copies of its classes
def load(plugin: Plugin) -> Imported:
    """Import a plug-in once per process. Raises InvalidInput if the import fails."""
    with plugin_errors(plugin.title, "while it was imported"):
        run = _run_file if plugin.module.startswith("/") else _import_module
        target, digest = run(plugin)
        for name in filter(None, plugin.attribute.split(".")):
            target = getattr(target, name)
    return Imported(plugin, target, digest)


def _import_module(plugin: Plugin) -> tuple[ModuleType, str]:
    """Import an installed module, and return it with the digest of the outermost regular package that contains it."""
    try:
        module = importlib.import_module(plugin.module)
    except ModuleNotFoundError as error:
        if not f"{plugin.module}.".startswith(f"{error.name}."):
            raise
        raise InvalidInput(
            f"{plugin.title} names the module '{plugin.module}', which is not installed here."
        ) from None
    if not module.__file__:
        raise plugin.refused("has no source file.")
    root = Path(module.__file__)
    while (root.parent / "__init__.py").exists():
        root = root.parent
    register_plugin(root, plugin.title)
    version = plugin.provider
    if plugin.name.startswith(PREFIX):
        of_module = importlib.metadata.packages_distributions().get(module.__name__.split(".")[0])
        version = " ".join(
            f"{name} {importlib.metadata.version(name)}" for name in sorted(set(of_module or ()))
        )
    return module, code_digest(root, version)


def _run_file(plugin: Plugin) -> tuple[ModuleType, str]:
    """Run a file or a package folder as a module with a unique name, and return it with the digest of its code.

    The source is always compiled again, so stale bytecode is never used.
    """
    path = Path(plugin.module)
    file = path / "__init__.py" if path.is_dir() else path
    if not file.is_file():
        raise InvalidInput(
            f"'{plugin.name}' is neither a file nor a folder with an __init__.py. Check the path."
        )
    register_plugin(path, plugin.title)
    digest = code_digest(path)  # before its code can change the files
    module = ModuleType(f"vlprobe_plugin_{code_digest(file, str(path))}")
    module.__file__ = str(file)
    if path.is_dir():
        module.__path__, module.__package__ = [str(path)], module.__name__
    sys.modules[module.__name__] = module  # dataclasses and pickle look there
    try:
        exec(compile(file.read_bytes(), file, "exec"), vars(module))
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return module, digest


def code_digest(root: Path, version: str = "") -> str:
    """Compute a digest (32 hex digits) that changes with the version and with any file that Python could import.

    Args:
        root: A file, or the folder of a package. Files in a folder are identified by their relative paths.
        version: The version of the distribution, or "" if there is none.

    Raises:
        InvalidInput: A file cannot be read.
    """
    code_files = [] if root.is_dir() else [root]
    for folder, folders, names in os.walk(root):  # does not follow links to folders
        folders[:] = sorted(set(folders) - {"__pycache__"})
        code_files += [Path(folder, name) for name in sorted(names) if name.endswith(CODE)]
    blake = hashlib.blake2b(version.encode(), digest_size=16)
    try:
        for file in code_files:
            name = file.name if file == root else file.relative_to(root).as_posix()
            content = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
            blake.update(f"\0{name}\0{content}".encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise InvalidInput(
            f"'{error.filename or root}' of the plug-in cannot be read ({error.strerror}). "
            "Check the path and its permissions."
        ) from None
    return blake.hexdigest()


def offers(folder: str, target: object) -> bool:
    """Return whether a plug-in object provides what EXPECTED lists for a folder.

    A `load` function that takes `cache` loads datasets. Any other `load` function loads models.
    """
    if folder == "probes":
        return isinstance(getattr(target, "PROBE", target), Probe)
    if folder == "rules":
        return callable(getattr(target, "edits", None))
    try:
        parameters = inspect.signature(getattr(target, "load", None)).parameters  # type: ignore[arg-type] - may be None
    except (TypeError, ValueError):  # not a function of Python
        return False
    return ("cache" in parameters) == (folder == "datasets")


class PluginFamily:
    """A registry family for the models or datasets from one plug-in."""

    def __init__(self, folder: str, imported: Imported) -> None:
        self.PREFIX, self._folder, self._imported = imported.plugin.name, folder, imported
        prefix = getattr(imported.target, "PREFIX", None)
        if self.PREFIX.startswith(PREFIX):
            self._inner_prefix = str(prefix or Path(imported.plugin.module).stem)
        elif prefix in (None, self.PREFIX):
            self._inner_prefix = self.PREFIX
        else:
            raise imported.plugin.refused(f"has the PREFIX '{prefix}'. Expected '{self.PREFIX}'.")
        if not offers(folder, imported.target):
            raise imported.plugin.refused(
                f"does not implement vlprobe's {folder}. Expected {EXPECTED[folder]}."
            )

    @property
    def NAMES(self) -> Sequence[str]:
        """The names that can be typed, or only the prefix if the plug-in does not list any names."""
        list_names = getattr(self._imported.target, "names", None)
        if not callable(list_names):
            return [self.PREFIX]
        with plugin_errors(self._imported.plugin.title, "in names"):
            return [
                f"{self.PREFIX}{str(name).removeprefix(self._inner_prefix)}"
                for name in list_names()  # type: ignore[union-attr] - its own protocol says a list
            ]

    def check_name(self, name: str) -> None:
        """Let the plug-in check a name. Its error is raised for a wrong name."""
        if callable(check := getattr(self._imported.target, "check_name", None)):
            check(self._inner_name(name))

    def load(self, name: str, *arguments: Path, **settings: str) -> "PluginModel | PluginDataset":
        """Load and check a model or dataset by name."""
        with plugin_errors(self._imported.plugin.title, "in load"):
            loaded = self._imported.target.load(self._inner_name(name), *arguments, **settings)
            kind = PluginModel if self._folder == "models" else PluginDataset
            return kind(loaded, name, self._imported)

    def _inner_name(self, name: str) -> str:
        """Return the name with the prefix that the plug-in itself uses."""
        reference = name.removeprefix(self.PREFIX)
        refuse_name(f"py{reference}")
        return f"{self._inner_prefix}{reference}"


class PluginDataset:
    """A checked dataset from a plug-in. Its digest covers the plug-in's code."""

    def __init__(self, dataset: Any, name: str, imported: Imported) -> None:
        digest, items = dataset.digest, tuple(dataset.items)
        self.notes = tuple(map(str, getattr(dataset, "notes", ())))
        if not isinstance(digest, str) or not digest:
            raise imported.plugin.refused("returns a dataset without a digest. Expected a string.")
        strays = [item for item in items if not isinstance(item, Item)]
        if strays or not items:
            gift = f"a {type(strays[0]).__name__} among its items" if strays else "no items"
            raise imported.plugin.refused(f"returns {gift}. Expected vlprobe.types.Item.")
        if len({item.id for item in items}) < len(items):
            raise imported.plugin.refused("returns items with the same id. Ids must be unique.")
        self.name, self.digest, self.items = name, imported.combined(digest), items


class PluginModel:
    """A checked model from a plug-in, under the name that was typed. Its digest covers the plug-in's code."""

    def __init__(self, model: Any, name: str, imported: Imported) -> None:
        self._model, self._imported = model, imported
        digest, capabilities = model.digest, model.capabilities
        self.note = str(getattr(model, "note", ""))
        if not isinstance(digest, str) or not digest:
            raise imported.plugin.refused("returns a model without a digest. Expected a string.")
        if not isinstance(capabilities, Capabilities):
            raise imported.plugin.refused(
                "returns a model whose capabilities are not a Capabilities object."
            )
        declared = [flag for flag in METHODS if getattr(capabilities, flag)]
        if not declared:
            raise imported.plugin.refused("returns a model without any capability.")
        for flag in declared:
            for method in METHODS[flag]:
                if not callable(getattr(model, method, None)):
                    raise imported.plugin.refused(
                        f"returns a model that declares {flag} but has no {method}."
                    )
        self.name, self.digest = name, imported.combined(digest)

    def facts(self) -> Mapping[str, str]:
        """Return the facts that the model reports about itself, and the provider of the plug-in."""
        facts = self._model.facts() if hasattr(self._model, "facts") else {}
        return {**facts, "plug-in": self._imported.plugin.provider}

    def published(self) -> Mapping[str, str]:
        """Return the facts that the model's publisher states."""
        return self._model.published() if hasattr(self._model, "published") else {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._model, name)


def probe_of(imported: Imported) -> Probe:
    """Return the probe from a plug-in under the plug-in's name. Runs store its `code_digest` with their options.

    Raises InvalidInput if the plug-in is not a probe, or its probe has no presentation or no metrics.
    """
    plugin = imported.plugin
    if not offers("probes", imported.target):
        raise plugin.refused(f"is not a probe. Expected {EXPECTED['probes']}.")
    with plugin_errors(plugin.title, "where its probe describes itself"):
        probe = copy.copy(getattr(imported.target, "PROBE", imported.target))
        probe.name, probe.code_digest = plugin.name, imported.digest
        if not isinstance(probe.presentation, Presentation) or not probe.presentation.kinds:
            raise plugin.refused("returns a probe without a presentation for its kinds.")
        if not probe.metrics or not all(isinstance(metric, Metric) for metric in probe.metrics):
            raise plugin.refused("returns a probe without metrics.")
    return probe


class PluginRules:
    """A set of edit rules from a plug-in."""

    def __init__(self, imported: Imported) -> None:
        if not offers("rules", imported.target):
            raise imported.plugin.refused(
                f"is not a set of edit rules. Expected {EXPECTED['rules']}."
            )
        self.name, self.digest, self._imported = imported.plugin.name, imported.digest, imported

    def edits(
        self, captions: Sequence[str], item_id: str, seed: int, **limits: Any
    ) -> "CaptionEdits":
        """Return the edits for the captions of one image, checked and capped by `perturb.outside.kept`."""
        from vlprobe.perturb import outside

        edits = self._imported.target.edits(tuple(captions), item_id, seed)
        listed = [list(of_caption) for of_caption in edits]
        title = self._imported.plugin.title
        return outside.kept(captions, item_id, listed, title, seed=seed, **limits)
