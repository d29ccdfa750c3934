"""Download remote tables into the cache. Supported URLs: s3://, gs://, https://, and hf:// for the Hugging Face hub.

A table is downloaded once, and again if its remote size, time or tag has changed. The name of the local copy depends
on these and on the URL; results are stored under the URL.

hf://OWNER/NAME/SPLIT and hf://OWNER/NAME/CONFIG/SPLIT are read with the library `datasets`, which does not run a
dataset's code. A split is downloaded once, and again if the repository has a new commit. It is stored as a Parquet
file that contains its pictures.
"""

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.scoring.pictures import digest
from vlprobe.storage import file_systems, files
from vlprobe.storage.access import refuse_remote, refuse_writing
from vlprobe.storage.file_systems import one_line

if TYPE_CHECKING:
    from datasets import Dataset

PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
URL = re.compile(rf"hf://({PART}/{PART})(?:/({PART}))?/({PART})")
FORM = "hf://OWNER/NAME/SPLIT or hf://OWNER/NAME/CONFIG/SPLIT"


class Split(NamedTuple):
    """One split of a dataset on the Hugging Face hub."""

    repository: str
    config: str  # "" for the only or default configuration
    name: str

    @property
    def file(self) -> str:
        """File name for the local copy of the split."""
        return f"{self.repository.partition('/')[2]}-{self.name}.parquet"


def split_of(url: str) -> Split:
    """Parse an hf:// URL into repository, configuration and split. Raises InvalidInput."""
    match = URL.fullmatch(url)
    if match is None:
        raise InvalidInput(f"'{url}' is not a dataset split on the hub. Expected {FORM}.")
    return Split(match[1], match[2] or "", match[3])


def local_split(url: str, cache: Path) -> Path:
    """Return the path to the local copy of a hub split. Download the split if necessary.

    Raises:
        MissingDependency: the library `datasets` is not installed.
        InvalidInput: the hub cannot be reached, or has no such dataset, configuration or split.
    """
    split = split_of(url)
    try:
        from datasets import exceptions
        from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
    except ImportError:
        raise MissingDependency(f"'{url}'", "datasets", "'vlprobe[data]'") from None
    if Path(split.repository).exists():
        # The library would read the folder instead of the dataset.
        raise InvalidInput(
            f"The working folder contains '{split.repository}', which hides the dataset on the "
            "hub. Use another working folder, or read the local table with table:FILE."
        )
    try:
        commit = _commit(split.repository)
        target = cache / "fetched" / digest(f"{url} {commit}".encode()) / split.file
        if not target.is_file():
            refuse_writing()
            dataset = _dataset(split, commit, cache)
            with files.atomic_writer(target, durable=False) as copy:
                dataset.to_parquet(copy)
    except (
        *(exceptions.DatasetsError, HfHubHTTPError, OfflineModeIsEnabled),
        *(OSError, ValueError, RuntimeError),
    ) as error:
        raise InvalidInput(
            f"'{url}' cannot be fetched from the hub ({one_line(error)[:300]}). Check the "
            "name, the network, and whether the dataset needs a token (HF_TOKEN)."
        ) from None
    return target


def _commit(repository: str) -> str:
    """Return the hash of the newest commit in a dataset repository."""
    from huggingface_hub import HfApi

    return str(HfApi().dataset_info(repository, timeout=20).sha)


def _dataset(split: Split, commit: str, cache: Path) -> "Dataset":
    import datasets

    return datasets.load_dataset(
        split.repository,
        split.config or None,
        split=split.name,
        revision=commit,
        cache_dir=str(cache / "fetched" / "hub"),
    )


SCHEMES = ("s3", "gs", "https", "hf")
MOST_BYTES = 50 << 30  # of a downloaded table
BLOCK_BYTES = 1 << 22
STAMPS = ("ETag", "etag", "LastModified", "mtime", "updated", "md5Hash", "size")


def require_url(url: str) -> None:
    """Raise InvalidInput, without using the network, if the URL is not supported or its download is not allowed."""
    parts = urlsplit(url)
    name = PurePosixPath(parts.path).name
    if "::" in url or parts.scheme not in SCHEMES:
        raise InvalidInput(
            f"Tables cannot be downloaded from '{url}'. Expected a URL with exactly one "
            f"protocol, one of {', '.join(f'{s}://' for s in SCHEMES)}."
        )
    if "@" in parts.netloc or parts.query or parts.fragment or not parts.netloc or not name:
        raise InvalidInput(
            f"'{url}' is not the plain URL of a file. Expected "
            f"{parts.scheme}://HOST/FOLDER/FILE, without a user, a password or anything after a "
            "question mark, because results are stored under that URL."
        )
    if parts.scheme == "hf":
        split_of(url)
    refuse_remote(url)


def file_name(url: str) -> str:
    """Return the file name under which a remote table is stored locally."""
    if url.startswith("hf://"):
        return split_of(url).file
    return PurePosixPath(urlsplit(url).path).name


def local_copy(url: str, cache: Path) -> Path:
    """Return the path to the local copy of a remote table. Download the table if necessary.

    Raises:
        MissingDependency: the package for such URLs is not installed.
        InvalidInput: the table does not exist, cannot be reached or is too large, or the cache cannot be written.
    """
    require_url(url)
    if url.startswith("hf://"):
        return local_split(url, cache)
    files_there, path = file_systems.open_file_system(url)
    with file_systems.translate_errors(url):
        try:
            facts = files_there.info(path)
            version = [url, *(str(facts.get(name)) for name in STAMPS)]
            target = cache / "fetched" / digest(repr(version).encode()) / file_name(url)
            if not target.is_file():
                refuse_writing()
                _fetch(url, files_there, path, facts, target)
        except FileNotFoundError as error:
            # fsspec hides that a redirect was rejected
            if isinstance(error.__cause__, InvalidInput):
                raise error.__cause__ from None
            raise InvalidInput(
                f"'{url}' does not exist or cannot be reached. Check the address and the network."
            ) from None
    return target


def _fetch(url: str, files_there: Any, path: str, facts: dict[str, Any], target: Path) -> None:
    n_bytes = 0
    _refuse_large(url, facts.get("size") or 0)
    with files_there.open(path, "rb") as source, files.atomic_writer(target, durable=False) as copy:
        while block := source.read(BLOCK_BYTES):
            n_bytes += len(block)
            _refuse_large(url, n_bytes)
            copy.write(block)
        stated = facts.get("size")
        if stated is not None and stated != n_bytes:
            raise InvalidInput(
                f"'{url}' is truncated: {n_bytes:,} of {stated:,} bytes arrived. Download it again."
            )


def _refuse_large(url: str, n_bytes: int) -> None:
    if n_bytes > MOST_BYTES:
        raise InvalidInput(
            f"'{url}' has {n_bytes:,} bytes or more. The maximum is {MOST_BYTES:,}; split the file."
        )
