"""A store on an object store: whole objects in and out under one URL, and the local folder that mirrors them.

    <mirror>/.vlprobe-remote    the URL; whoever has a path within the mirror finds the object store by it

Files of a store are written once, complete and with a checksum. So an object is fetched whole, once, compared with its
checksum, and read from the disk from then on. Any URL that fsspec opens will do; every failure is one line.
"""

import contextlib
import errno
import functools
import hashlib
import os
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from vlprobe.errors import InvalidInput, MissingDependency, VlprobeError
from vlprobe.storage.access import refuse_writing
from vlprobe.storage.files import REPAIR, cache_writer, read, require_regular

MIRROR = "VLPROBE_MIRROR"  # the folder that mirrors lie in
MARK = ".vlprobe-remote"
FOLDERS = ("file", "local")  # schemes of a folder, such as one that several machines have mounted
# What the file systems of fsspec raise beside OSError where they are refused or reach nothing.
RAISED = (
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("aiohttp", "ClientError"),
    ("gcsfs.retry", "HttpError"),
    ("azure.core.exceptions", "AzureError"),
)
LOST_SLASH = re.compile("[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
NO_SUCH_WAY = (NotImplementedError, TypeError, ValueError)  # of a file system that cannot create only


class Damaged(InvalidInput):
    """An object is gone, or its bytes are not those that were written."""


class MissingFileSystem(MissingDependency):
    """A package that opens URLs of a kind is needed and not installed."""

    def __init__(self, url: str, why: str) -> None:
        how = ": pip install -r requirements-ray.txt" if url.startswith("s3") else " with pip"
        VlprobeError.__init__(self, f"'{url}' needs a package that is not installed here ({why}). Install it{how}.")


def is_url(cache: object) -> bool:
    """Whether a cache is named by a URL, and not by a folder. Raises InvalidInput where it is no URL of a cache."""
    text = str(cache)
    if "@" in text and ("://" in text or LOST_SLASH.match(text)):  # before any of it is said again
        raise InvalidInput("The URL of the cache has a user or a password in it. Give those in the environment.")
    if LOST_SLASH.match(text):
        raise InvalidInput(f"'{cache}' is neither a folder nor a URL. Expected s3://BUCKET/FOLDER, with two slashes.")
    return "://" in text


def open_remote(url: str) -> "Remote":
    """The object store of this URL, with its folder on this machine, which is made. Raises InvalidInput."""
    address = url.rstrip("/")
    scheme, _, where = address.partition("://")
    if not where or scheme in ("http", "https"):
        raise InvalidInput(
            f"'{url}' names no bucket. Expected s3://BUCKET/FOLDER; a server of your own goes into AWS_ENDPOINT_URL."
        )
    if scheme in FOLDERS and not where.startswith("/"):
        raise InvalidInput(f"'{url}' is another folder wherever it is read. Expected file:///, with three slashes.")
    found = _remote(address, _place(address))
    found.mark()
    return found


def remote_of(folder: Path) -> "Remote | None":
    """The object store that this folder, or one that it lies in, is a mirror of; None where it is of none.

    Raises:
        InvalidInput: it says that it is one, and this machine keeps that mirror elsewhere: a folder that somebody made
            must not send what is written into it to an address that it names. Above it, such a folder is passed by.
    """
    for root in (folder, *folder.parents):
        try:
            address = read(root / MARK).decode()
        except (OSError, ValueError):
            continue
        if _place(address) == root:
            return _remote(address, root)
        if root == folder:
            raise InvalidInput(f"'{root}' is a copied mirror of '{address}'. Choose the URL itself with --cache.")
    return None


def publish(path: Path) -> None:
    """Sends a file that everybody is to know of to the object store whose mirror it lies in; elsewhere does nothing."""
    there = remote_of(path.parent)
    if there:
        there.put(f"index/{there.name(path)}", path)


def _place(address: str) -> Path:
    """The folder of an address: its name says which it is, its digest keeps two apart."""
    try:
        above = Path(os.environ.get(MIRROR) or Path.home() / ".cache" / "vlprobe").resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"There is no folder for a mirror ({error}). Name one in {MIRROR}.") from None
    words = re.sub("[^A-Za-z0-9]+", "-", address)[:60].strip("-")
    return above / f"{words}-{hashlib.sha256(address.encode()).hexdigest()[:12]}"


@functools.lru_cache(maxsize=64)
def _remote(address: str, root: Path) -> "Remote":
    return Remote(address, root)


class Remote:
    """Objects under one URL, by their names: paths with slashes, as those of files within the mirror."""

    def __init__(self, url: str, root: Path) -> None:
        self.url, self.root = url, root

    def mark(self) -> None:
        """Lets whoever has a path within the mirror find the object store."""
        if not (self.root / MARK).exists():
            with cache_writer(self.root / MARK) as handle:
                handle.write(self.url.encode())

    def make(self) -> None:
        """Makes the folder of a file:// address; a bucket is for others to make."""
        if self.is_folder:
            refuse_writing()
            with self._told():
                os.makedirs(self._root, exist_ok=True)

    def name(self, path: Path) -> str:
        """The name of the object that a file of the mirror is a copy of."""
        return path.relative_to(self.root).as_posix()

    def address(self, name: str) -> str:
        """An object's own URL."""
        return f"{self.url}/{name}"

    def names(self, folder: str) -> dict[str, str]:
        """All objects in a folder and below, each with a stamp that changes when its bytes do."""
        with self._told():
            try:
                found = self._files.find(self._path(folder), detail=True)
            except FileNotFoundError as error:
                raise InvalidInput(
                    f"There is no '{self.url}' ({_line(error)}). Make the bucket, or check the URL."
                ) from None
        start = len(self._root) + 1
        return {
            name[start:]: hashlib.sha256(str(sorted(facts.items())).encode()).hexdigest()[:16]
            for name, facts in found.items()
            if facts.get("type") == "file"  # no pipe in a folder, which would be waited for
        }

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""
        with self._told():
            return self._files.exists(self._path(name))

    def age(self, name: str) -> float:
        """Seconds since an object was written; 0 where it is gone."""
        with self._told(), contextlib.suppress(FileNotFoundError):
            return time.time() - self._files.modified(self._path(name)).timestamp()
        return 0.0

    def read(self, name: str) -> bytes | None:
        """The bytes of a small object; None where there is none."""
        with self._told(), contextlib.suppress(FileNotFoundError):
            return self._files.cat_file(self._readable(name))

    def read_all(self, names: Iterable[str]) -> dict[str, bytes]:
        """The bytes of small objects, at once; without those that are gone meanwhile."""
        paths = {self._path(name): name for name in names}
        if not paths:
            return {}
        with self._told():
            found = self._files.cat(list(paths), on_error="return")
            for answer in found.values():
                if isinstance(answer, Exception) and not isinstance(answer, FileNotFoundError):
                    raise answer
        return {paths[path]: data for path, data in found.items() if isinstance(data, bytes)}

    def fetch(self, name: str, path: Path, fits: Callable[[Path], bool]) -> None:
        """Copies an object to a file, which appears only where its bytes fit. Raises Damaged where they do not."""
        with cache_writer(path) as handle:
            with self._told():
                try:
                    self._files.get_file(self._readable(name), handle.name)
                except FileNotFoundError:
                    raise Damaged(f"'{self.address(name)}' is gone. {REPAIR}") from None
            if not fits(Path(handle.name)):
                raise Damaged(f"'{self.address(name)}' is not what was written: its checksum differs. {REPAIR}")

    def put(self, name: str, path: Path) -> None:
        """Copies a file to an object."""
        refuse_writing()
        with self._sent(), self._placing(name) as place:
            self._files.put_file(str(path), place)

    def write(self, name: str, data: bytes) -> None:
        """Makes or replaces a small object."""
        refuse_writing()
        with self._sent(), self._placing(name) as place:
            self._files.pipe_file(place, data)

    def create(self, name: str, data: bytes) -> bool:
        """Makes a small object unless there is one already, and says whether it did.

        The object store itself refuses the second of two who try at once; where it has no way to, who looks first wins.
        """
        refuse_writing()
        path = self._path(name)
        with self._sent():
            try:
                if self.is_folder:
                    with self._beside(name) as beside:
                        self._files.pipe_file(beside, data)
                        os.link(beside, path)
                else:
                    self._files.pipe_file(path, data, mode="create")
                return True
            except FileExistsError:
                return False
            except NO_SUCH_WAY:
                pass
            except OSError as error:
                if error.errno != errno.ENOSYS:
                    raise
            if self._files.exists(path):
                return False
            self._files.pipe_file(path, data)
            return True

    def remove(self, names: Iterable[str]) -> None:
        """Removes objects; what is gone already is no failure."""
        refuse_writing()
        for name in names:
            with self._sent(), contextlib.suppress(FileNotFoundError):
                self._files.rm_file(self._path(name))

    @contextlib.contextmanager
    def _placing(self, name: str) -> Iterator[str]:
        """Where to write an object to, so that it appears whole: an object store sees to that, a folder does not."""
        if not self.is_folder:
            yield self._path(name)
            return
        with self._beside(name) as beside:
            yield beside
            os.replace(beside, self._path(name))

    @contextlib.contextmanager
    def _beside(self, name: str) -> Iterator[str]:
        """A place that nobody looks at, to write to before the object's own, whose folder is made."""
        if not os.path.isdir(self._root):
            raise InvalidInput(f"There is no folder '{self._root}' any more. Mount it, then the same command goes on.")
        beside = self._path(f"sending/{uuid.uuid4().hex}")
        for path in (beside, self._path(name)):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            yield beside
        finally:
            with contextlib.suppress(OSError):
                os.unlink(beside)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _readable(self, name: str) -> str:
        """The path of an object. Raises OSError where that is a pipe or a device in a folder."""
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
        import fsspec

        try:
            # What was listed once would be taken for what is there now.
            files, root = fsspec.core.url_to_fs(self.url, use_listings_cache=False, **self._patience())
        except ImportError as error:
            raise MissingFileSystem(self.url, _line(error)) from None
        except ValueError as error:
            raise InvalidInput(
                f"'{self.url}' is no cache ({_line(error)}). Expected s3://BUCKET/FOLDER or a folder."
            ) from None
        if hasattr(files, "retries"):  # s3fs tries again what botocore gave up
            files.retries = min(files.retries, 2)
        return files, root.rstrip("/")

    def _patience(self) -> dict[str, dict]:
        """How long to wait for S3: a page waits, too. AWS_MAX_ATTEMPTS says how often, as elsewhere."""
        if self.url.partition("://")[0] not in ("s3", "s3a"):
            return {}
        import fsspec

        often = {} if "AWS_MAX_ATTEMPTS" in os.environ else {"retries": {"total_max_attempts": 2, "mode": "standard"}}
        named = fsspec.config.conf.get("s3", {}).get("config_kwargs", {})
        return {"config_kwargs": {"connect_timeout": 5, "read_timeout": 8} | often | named}

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What cannot be reached, in one line; whether there is an object is for who asked."""
        try:
            yield
        except (FileNotFoundError, FileExistsError, VlprobeError):
            raise
        except _raised() as error:
            raise InvalidInput(
                f"Cannot use '{self.url}' ({_line(error)}). Check the network, the endpoint and the credentials in "
                "the environment; what is finished is kept here, and the same command goes on from there."
            ) from None

    @contextlib.contextmanager
    def _sent(self) -> Iterator[None]:
        try:
            with self._told():
                yield
        except FileNotFoundError as error:
            raise InvalidInput(
                f"There is no '{self.url}' ({_line(error)}). Make the bucket, or check the URL."
            ) from None


def _raised() -> tuple[type[BaseException], ...]:
    own = [getattr(sys.modules[module], name) for module, name in RAISED if module in sys.modules]
    return (OSError, ValueError, NotImplementedError, *own)


def _line(error: BaseException) -> str:
    """What an error says, on one line; of a URL in it neither a user nor what follows, which may be a signature."""
    said = re.sub(r"//[^\s\"']*@", "//", " ".join(str(error).split()))
    return re.sub(r"\?[^\s\"')]*=[^\s\"')]*", "", said) or type(error).__name__
