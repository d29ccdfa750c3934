"""Models, datasets, probes and edit rules from outside of vlprobe: which there are, which may be
imported, and how.

A plug-in is an entry point of an installed distribution, in the group `vlprobe.models`,
`vlprobe.datasets`, `vlprobe.probes` or `vlprobe.rules`, and goes by the entry point's name; or it is
a file, a package's folder or a module: `py:FILE.py`, `py:FOLDER`, `py:MODULE`. What stands after it
and a colon is for the plug-in to understand.

Its code runs only where its name is in VLPROBE_PLUGINS, a name a line. A person who types a name on
the command line, or calls vlprobe from Python, puts it there; `vlprobe dashboard --plugin NAME` puts
it there for the server, and jobs and workers inherit it. Names from anywhere else (a link, a form,
the file of a job, a stored run) are refused before anything is imported or opened. What there is, is
read from the metadata of distributions alone.
"""

import contextlib
import functools
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

from vlprobe.errors import InvalidInput, NotFound, VlprobeError, is_out_of_memory
from vlprobe.registry import sources
from vlprobe.storage import files
from vlprobe.storage.access import PLUGINS

GROUPS = {name: f"vlprobe.{name}" for name in ("models", "datasets", "probes", "rules")}
PREFIX = "py:"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
FILE = re.compile(r"(.+?\.py)(?::(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Plugin:
    """Where the code of one plug-in is; nothing of it is imported yet."""

    name: (
        str  # by which it may be imported: of its entry point, or py: and a whole path or a module
    )
    module: str  # or the path of a file, or of a package's folder
    attribute: str  # of the module; "": the module itself
    provider: str  # the distribution and its version, or the file

    @property
    def title(self) -> str:
        """What an error calls it."""
        return f"Plug-in '{self.name}' ({self.provider})"


@dataclass(frozen=True, slots=True)
class Imported:
    """A plug-in's object, and the digest of its code."""

    plugin: Plugin
    target: object
    digest: str


def installed(folder: str) -> tuple[Plugin, ...]:
    """The entry points of one of GROUPS, by their names; reads metadata and imports nothing."""
    return _installed(GROUPS[folder], tuple(sys.path))


@functools.lru_cache(maxsize=16)
def _installed(group: str, search_path: tuple[str, ...]) -> tuple[Plugin, ...]:
    entry_points = importlib.metadata.entry_points(group=group)
    every = [
        Plugin(point.name, point.module, point.attr or "", _provider(point))
        for point in entry_points
    ]
    return tuple(sorted(every, key=lambda plugin: (plugin.name, plugin.provider)))


def _provider(point: importlib.metadata.EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.module


def problem(plugin: Plugin, folder: str, taken: Collection[str]) -> str:
    """Why an entry point cannot be used, in one line; "" where it can.

    Args:
        plugin: One of `installed`.
        folder: One of GROUPS.
        taken: Names that vlprobe itself has there.
    """
    if not NAME.fullmatch(plugin.name):
        return f"{plugin.title} has no name that can be typed. Expected letters, digits, dots and dashes."
    if plugin.name in taken or plugin.name == PREFIX[:-1]:
        return f"{plugin.title} shadows a name of vlprobe's {folder}. Its author has to give it another."
    rivals = [entry.provider for entry in installed(folder) if entry.name == plugin.name]
    if len(rivals) > 1:
        return f"Plug-in '{plugin.name}' comes from several: {', '.join(rivals)}. Uninstall all but one."
    return ""


def named() -> tuple[str, ...]:
    """The plug-ins that may be imported here, as VLPROBE_PLUGINS has them."""
    names = filter(None, os.environ.get(PLUGINS, "").split("\n"))
    return tuple(split(name)[0] for name in names)


def allow(name: str) -> None:
    """Lets the plug-in of a name be imported by this process and by those that it starts.

    For names that a person typed, never for what a link, a form or a file says.
    """
    plugin_name, _ = split(name)
    if plugin_name.startswith(PREFIX) or NAME.fullmatch(plugin_name):
        os.environ[PLUGINS] = "\n".join(dict.fromkeys([*named(), plugin_name]))


def split(name: str) -> tuple[str, str]:
    """The plug-in that a name begins with, as VLPROBE_PLUGINS has it, and what follows its colon.

    >>> split("mine:large"), split("py:/a/b.py:large"), split("py:a.b")
    (('mine', 'large'), ('py:/a/b.py', 'large'), ('py:a.b', ''))
    """
    if not name.startswith(PREFIX):
        head, _, rest = name.partition(":")
        return head, rest
    text = name.removeprefix(PREFIX)
    match = FILE.fullmatch(text)
    path, rest = (match[1], match[2] or "") if match else text.partition(":")[::2]
    if not match and MODULE.fullmatch(path):
        return f"{PREFIX}{path}", rest
    try:
        whole = os.path.realpath(os.path.expanduser(path))
    except ValueError:  # NUL
        whole = ""
    if not path or not whole.isprintable() or files.SURROGATE.search(whole):
        raise InvalidInput(
            f"'{name}' names no plug-in. Expected py:FILE.py, py:FOLDER or py:MODULE."
        )
    return f"{PREFIX}{whole}", rest


def find(folder: str, name: str, taken: Collection[str]) -> tuple[Plugin, str] | None:
    """The plug-in that a name begins with, and what follows; None where there is none of that name.

    Raises:
        InvalidInput: it may not be imported here, or cannot be used.
    """
    if name.startswith(PREFIX):
        if not any(allowed.startswith(PREFIX) for allowed in named()):
            raise _refusal(f"'{name}' is code", "py:FILE.py")  # nobody looks whether it is there
        plugin_name, rest = split(name)
        if plugin_name not in named():
            raise _refusal(f"'{name}' is code", "py:FILE.py")
        return _of_python(plugin_name), rest
    plugin_name, rest = split(name)
    plugin = next((entry for entry in installed(folder) if entry.name == plugin_name), None)
    if plugin is None:
        return None
    if reason := problem(plugin, folder, taken):
        raise InvalidInput(reason)
    if plugin_name not in named():
        raise _refusal(f"'{plugin_name}' is a plug-in of {plugin.provider}", plugin_name)
    return plugin, rest


def _refusal(subject: str, name: str) -> InvalidInput:
    return InvalidInput(
        f"{subject} from outside of vlprobe, and it runs only where whoever started this named it. "
        f"Start with --plugin {name}."
    )


def _of_python(plugin_name: str) -> Plugin:
    """The plug-in of py:FILE.py, py:FOLDER or py:MODULE."""
    text = plugin_name.removeprefix(PREFIX)
    return Plugin(plugin_name, text, "", Path(text).name if text.startswith("/") else "a module")


@functools.cache
def load(plugin: Plugin) -> Imported:
    """Imports a plug-in, once a process. Raises InvalidInput where that fails."""
    if plugin.module.startswith("/"):
        root, version = Path(plugin.module), ""
        if not (root.is_file() or (root / "__init__.py").is_file()):
            raise InvalidInput(
                f"'{plugin.name}' is no file, and no folder with an __init__.py. Check the path."
            )
    else:
        root = sources.package_root(plugin.module)
        if root is None:
            raise InvalidInput(
                f"{plugin.title} names the module '{plugin.module}', which is not installed here."
            )
        version = _version(plugin)
    digest = sources.digest(root, version)
    with translated(plugin, "while it was imported"):
        target: object = (
            _module_of_file(root)
            if plugin.module.startswith("/")
            else importlib.import_module(plugin.module)
        )
        for name in filter(None, plugin.attribute.split(".")):
            target = getattr(target, name)
    return Imported(plugin, target, digest)


def _version(plugin: Plugin) -> str:
    """The distribution of a module and its version; "" where it has none."""
    if not plugin.name.startswith(PREFIX):
        return plugin.provider
    first = plugin.module.partition(".")[0]
    distributions = importlib.metadata.packages_distributions().get(first, [])
    return " ".join(
        f"{name} {importlib.metadata.version(name)}" for name in sorted(set(distributions))
    )


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Runs what the file says now: no bytecode of an earlier text is read, and none is written."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _module_of_file(path: Path) -> ModuleType:
    """The module that a file or a package's folder defines, by a name that nothing else has."""
    file = path / "__init__.py" if path.is_dir() else path
    name = f"vlprobe_plugin_{sources.digest(file, str(path))}"
    spec = importlib.util.spec_from_file_location(
        name,
        file,
        loader=_SourceLoader(name, str(file)),
        submodule_search_locations=[str(path)] if path.is_dir() else None,
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextlib.contextmanager
def translated(plugin: Plugin, doing: str) -> Iterator[None]:
    """Turns whatever a plug-in's code raises into one line that names it; its own VlprobeErrors,
    and a full memory, stay as they are.
    """
    try:
        yield
    except VlprobeError:
        raise
    except (Exception, SystemExit) as error:  # code of others raises what it likes
        if is_out_of_memory(error):
            raise
        message = " ".join(str(error).split()) or "no reason given"
        raise InvalidInput(
            f"{plugin.title} raised {type(error).__name__} {doing}{_place(plugin, error)}: {message}"
        ) from error


def _place(plugin: Plugin, error: BaseException) -> str:
    """The file and line of the plug-in that raised, else the last of any."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    root = (
        Path(plugin.module)
        if plugin.module.startswith("/")
        else sources.package_root(plugin.module)
    )
    inside = [frame for frame in frames if root and Path(frame.filename).is_relative_to(root)]
    frame = (inside or frames or [None])[-1]
    return f" ({Path(frame.filename).name}, line {frame.lineno})" if frame else ""


def require(name: str, taken: dict[str, Collection[str]]) -> None:
    """Imports a plug-in that a starter named. Raises NotFound or InvalidInput where it cannot be used.

    Args:
        name: Of the plug-in alone, or with what follows it.
        taken: Names that vlprobe itself has, by folder.
    """
    plugin_name, _ = split(name)
    entries = [
        (folder, plugin)
        for folder in GROUPS
        for plugin in installed(folder)
        if plugin.name == plugin_name
    ]
    if not entries and not plugin_name.startswith(PREFIX):
        every = {plugin.name for folder in GROUPS for plugin in installed(folder)}
        raise NotFound("plug-in", plugin_name, sorted(every), "A file is one, too: py:FILE.py.")
    for folder, plugin in entries:
        if reason := problem(plugin, folder, taken[folder]):
            raise InvalidInput(reason)
    allow(name)
    if not entries:
        load(_of_python(plugin_name))
    for _, plugin in entries:
        load(plugin)
