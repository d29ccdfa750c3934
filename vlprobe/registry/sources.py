"""The digest of a plug-in: every source file of its package, and the version of its distribution."""

import hashlib
import importlib.machinery
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from vlprobe.errors import InvalidInput

CODE = tuple(importlib.machinery.all_suffixes())


def digest(root: Path, version: str) -> str:
    """32 hex digits that change with any source file and with the version.

    Args:
        root: A file, or the folder of a package, whose files are known by their paths in it.
        version: Of the distribution; "" where there is none.

    Raises:
        InvalidInput: a file cannot be read.
    """
    blake = hashlib.blake2b(version.encode(), digest_size=16)
    try:
        for file in code_files(root):
            name = file.name if file == root else file.relative_to(root).as_posix()
            content = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
            blake.update(f"\0{name}\0{content}".encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise InvalidInput(
            f"'{error.filename or root}' of a plug-in cannot be read ({error.strerror}). "
            "Check the path and who may read it."
        ) from None
    return blake.hexdigest()


def code_files(root: Path) -> Iterator[Path]:
    """The file itself, or all files of a folder that Python could import, sorted; no folder is
    entered by a link.
    """
    if not root.is_dir():
        yield root
        return
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(CODE))


def package_root(module: str) -> Path | None:
    """The folder of the package that a module belongs to, or its one file; None where nobody finds it.

    Nothing is imported: only the first part of the name is looked up. Of a folder without
    `__init__.py`, which several distributions may share, it is the first package inside of it.
    """
    package, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations is None:
        return Path(spec.origin) if spec.has_location and spec.origin else None
    for location in spec.submodule_search_locations:
        root = Path(location)
        inner_names = iter(rest)
        while not (root / "__init__.py").exists() and (inner := next(inner_names, None)):
            root = root / inner if (root / inner).is_dir() else root / f"{inner}.py"
        if root.exists():
            return root
    return None
