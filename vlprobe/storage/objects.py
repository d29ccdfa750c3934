"""Objects under one URL, and the local folder that mirrors them.

    <mirror>/.vlprobe-remote    the URL, by which the object store of any path within the mirror is found

Files of a store are written once and have a checksum. So an object is fetched once, compared with
its checksum, and read from the disk from then on. Any URL that fsspec opens is allowed; every
failure is one line.
"""

import contextlib
import errno
import functools
import hashlib
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from vlprobe.errors import InvalidInput, StoredDamage
from vlprobe.storage.access import refuse_writing
from vlprobe.storage.file_systems import (
    missing_bucket,
    open_file_system,
    translate_errors,
    translate_write_errors,
)
from vlprobe.storage.files import cache_writer, read, require_regular

MIRROR = "VLPROBE_MIRROR"  # the folder that mirrors lie in
MARK = ".vlprobe-remote"
FOLDERS = ("file", "local")  # schemes of a folder, such as one that several machines have mounted
LOST_SLASH = re.compile("[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
NO_EXCLUSIVE_CREATE = (
    NotImplementedError,
    TypeError,
    ValueError,
)  # of a file system without create-if-absent


class Damaged(StoredDamage):
    """An object is missing, or its checksum differs."""


def is_url(cache: object) -> bool:
    """Whether a cache is named by a URL, and not by a folder. Raises InvalidInput where it is no
    URL of a cache.
    """
    text = str(cache)
    if "@" in text and ("://" in text or LOST_SLASH.match(text)):  # before an error repeats it
        raise InvalidInput(
            "The URL of the cache has a user or a password in it. Give those in the environment."
        )
    if LOST_SLASH.match(text):
        raise InvalidInput(
            f"'{cache}' is neither a folder nor a URL. Expected s3://BUCKET/FOLDER, with two slashes."
        )
    return "://" in text


def open_remote(url: str) -> "Remote":
    """The object store of this URL; makes its mirror on this machine. Raises InvalidInput."""
    address = url.rstrip("/")
    scheme, _, path = address.partition("://")
    if not path or scheme in ("http", "https"):
        raise InvalidInput(
            f"'{url}' names no bucket. Expected s3://BUCKET/FOLDER; a server of your own goes into AWS_ENDPOINT_URL."
        )
    if scheme in FOLDERS and not path.startswith("/"):
        raise InvalidInput(
            f"'{url}' is another folder wherever it is read. Expected file:///, with three slashes."
        )
    remote = _remote(address, _mirror_folder(address))
    remote.mark()
    return remote


def remote_of(folder: Path) -> "Remote | None":
    """The object store whose mirror the folder or a parent of it is; None where there is none.

    Raises:
        InvalidInput: the folder claims to be a mirror that this machine has elsewhere: an untrusted
            folder must not redirect results to an address that it names. Such a claim of a parent
            is ignored.
    """
    for root in (folder, *folder.parents):
        try:
            address = read(root / MARK).decode()
        except (OSError, ValueError):
            continue
        if _mirror_folder(address) == root:
            return _remote(address, root)
        if root == folder:
            raise InvalidInput(
                f"'{root}' is a copied mirror of '{address}'. Choose the URL itself with --cache."
            )
    return None


def publish(path: Path) -> None:
    """Uploads a file to the index of the object store whose mirror it lies in; elsewhere does
    nothing.
    """
    remote = remote_of(path.parent)
    if remote:
        remote.put(f"index/{remote.name(path)}", path)


def _mirror_folder(address: str) -> Path:
    """The mirror's folder: readable words of the address, and its digest."""
    try:
        above = Path(os.environ.get(MIRROR) or Path.home() / ".cache" / "vlprobe").resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInput(
            f"There is no folder for a mirror ({error}). Name one in {MIRROR}."
        ) from None
    words = re.sub("[^A-Za-z0-9]+", "-", address)[:60].strip("-")
    return above / f"{words}-{hashlib.sha256(address.encode()).hexdigest()[:12]}"


@functools.lru_cache(maxsize=64)
def _remote(address: str, root: Path) -> "Remote":
    return Remote(address, root)


class Remote:
    """Objects under one URL, by their names: paths with slashes, as those of files within the
    mirror.
    """

    def __init__(self, url: str, root: Path) -> None:
        self.url, self.root = url, root

    def mark(self) -> None:
        """Writes the URL into the mirror, for `remote_of`."""
        if not (self.root / MARK).exists():
            with cache_writer(self.root / MARK) as handle:
                handle.write(self.url.encode())

    def make(self) -> None:
        """Makes the folder of a file:// address; a bucket must exist."""
        if self.is_folder:
            refuse_writing()
            with translate_errors(self.url):
                os.makedirs(self._root, exist_ok=True)

    def name(self, path: Path) -> str:
        """The name of the object of a file of the mirror."""
        return path.relative_to(self.root).as_posix()

    def address(self, name: str) -> str:
        """The URL of an object."""
        return f"{self.url}/{name}"

    def names(self, folder: str) -> dict[str, str]:
        """All objects in a folder and below, each with a stamp that changes when its bytes do."""
        with translate_errors(self.url):
            try:
                listing = self._files.find(self._path(folder), detail=True)
            except FileNotFoundError as error:
                raise missing_bucket(self.url, error) from None
        start = len(self._root) + 1
        return {
            name[start:]: hashlib.sha256(str(sorted(details.items())).encode()).hexdigest()[:16]
            for name, details in listing.items()
            if details.get("type") == "file"  # reading a pipe would block
        }

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""
        with translate_errors(self.url):
            return self._files.exists(self._path(name))

    def age(self, name: str) -> float:
        """Seconds since an object was written; 0 where it is missing."""
        with translate_errors(self.url), contextlib.suppress(FileNotFoundError):
            return time.time() - self._files.modified(self._path(name)).timestamp()
        return 0.0

    def read(self, name: str) -> bytes | None:
        """The bytes of a small object; None where there is none."""
        with translate_errors(self.url), contextlib.suppress(FileNotFoundError):
            return self._files.cat_file(self._readable(name))

    def read_all(self, names: Iterable[str]) -> dict[str, bytes]:
        """The bytes of small objects, fetched concurrently; without those that are missing."""
        paths = {self._path(name): name for name in names}
        if not paths:
            return {}
        with translate_errors(self.url):
            contents = self._files.cat(list(paths), on_error="return")
            for content in contents.values():
                if isinstance(content, Exception) and not isinstance(content, FileNotFoundError):
                    raise content
        return {
            paths[path]: content for path, content in contents.items() if isinstance(content, bytes)
        }

    def fetch(self, name: str, path: Path, is_intact: Callable[[Path], bool]) -> None:
        """Copies an object to a file, which appears only if `is_intact`. Raises Damaged where it
        is not.
        """
        with cache_writer(path) as handle:
            with translate_errors(self.url):
                try:
                    self._files.get_file(self._readable(name), handle.name)
                except FileNotFoundError:
                    raise Damaged(f"'{self.address(name)}' is gone.") from None
            if not is_intact(Path(handle.name)):
                raise Damaged(
                    f"'{self.address(name)}' is not what was written: its checksum differs."
                )

    def put(self, name: str, path: Path) -> None:
        """Copies a file to an object."""
        refuse_writing()
        with translate_write_errors(self.url), self._atomic_target(name) as target:
            self._files.put_file(str(path), target)

    def write(self, name: str, content: bytes) -> None:
        """Writes or replaces a small object."""
        refuse_writing()
        with translate_write_errors(self.url), self._atomic_target(name) as target:
            self._files.pipe_file(target, content)

    def create(self, name: str, content: bytes) -> bool:
        """Writes a small object unless it exists; returns whether it did.

        Atomic where the file system can create exclusively; elsewhere two concurrent calls may both
        succeed.
        """
        refuse_writing()
        path = self._path(name)
        with translate_write_errors(self.url):
            try:
                if self.is_folder:
                    with self._temporary_file(name) as temporary:
                        self._files.pipe_file(temporary, content)
                        os.link(temporary, path)
                else:
                    self._files.pipe_file(path, content, mode="create")
                return True
            except FileExistsError:
                return False
            except NO_EXCLUSIVE_CREATE:
                pass
            except OSError as error:
                if error.errno != errno.ENOSYS:
                    raise
            if self._files.exists(path):
                return False
            self._files.pipe_file(path, content)
            return True

    def remove(self, names: Iterable[str]) -> None:
        """Removes objects; missing ones are ignored."""
        refuse_writing()
        for name in names:
            with translate_write_errors(self.url), contextlib.suppress(FileNotFoundError):
                self._files.rm_file(self._path(name))

    @contextlib.contextmanager
    def _atomic_target(self, name: str) -> Iterator[str]:
        """The path to write to so that the object appears atomically; in a folder a temporary
        file that is renamed.
        """
        if not self.is_folder:
            yield self._path(name)
            return
        with self._temporary_file(name) as temporary:
            yield temporary
            os.replace(temporary, self._path(name))

    @contextlib.contextmanager
    def _temporary_file(self, name: str) -> Iterator[str]:
        """The path of a temporary file, removed afterwards; makes its folder and that of the
        object.
        """
        if not os.path.isdir(self._root):
            raise InvalidInput(
                f"There is no folder '{self._root}' any more. Mount it, then the same command goes on."
            )
        temporary = self._path(f"sending/{uuid.uuid4().hex}")
        for path in (temporary, self._path(name)):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            yield temporary
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _readable(self, name: str) -> str:
        """The path of an object. Raises OSError for a pipe or a device in a folder."""
        if self.is_folder:
            require_regular(Path(self._path(name)))
        return self._path(name)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, such as one that several machines have mounted."""
        return self.url.partition("://")[0] in FOLDERS

    @property
    def _files(self) -> Any:
        return self._opened[0]

    @property
    def _root(self) -> str:
        return self._opened[1]

    @functools.cached_property
    def _opened(self) -> tuple[Any, str]:
        return open_file_system(self.url)
