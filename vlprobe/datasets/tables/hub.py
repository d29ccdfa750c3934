"""Datasets of the Hugging Face hub, by the library `datasets`, which does not run a dataset's code:
hf://OWNER/NAME/SPLIT
or hf://OWNER/NAME/CONFIG/SPLIT.

A split is fetched once and kept as a Parquet file, with its pictures inside; again where the repository has a new
commit.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.scoring.pictures import digest
from vlprobe.storage import files
from vlprobe.storage.access import refuse_writing
from vlprobe.storage.file_systems import one_line

if TYPE_CHECKING:
    from datasets import Dataset

PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
URL = re.compile(rf"hf://({PART}/{PART})(?:/({PART}))?/({PART})")
FORM = "hf://OWNER/NAME/SPLIT or hf://OWNER/NAME/CONFIG/SPLIT"


class Split(NamedTuple):
    """A split of a dataset of the hub."""

    repository: str
    config: str  # "" for the one that the repository has, or calls its default
    name: str

    @property
    def file(self) -> str:
        """Return the name of its copy."""
        return f"{self.repository.partition('/')[2]}-{self.name}.parquet"


def split_of(url: str) -> Split:
    """The split that a URL names. Raises InvalidInput."""
    match = URL.fullmatch(url)
    if match is None:
        raise InvalidInput(f"'{url}' names no split of a dataset of the hub. Expected {FORM}.")
    return Split(match[1], match[2] or "", match[3])


def local_copy(url: str, cache: Path) -> Path:
    """The split's copy on this machine; it is fetched where there is none.

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
        # The library would take the folder for the dataset.
        raise InvalidInput(
            f"There is a '{split.repository}' in this folder, which is not the hub's. Run this elsewhere, or name "
            "its table with table:FILE."
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
        exceptions.DatasetsError,
        HfHubHTTPError,
        OfflineModeIsEnabled,
        OSError,
        ValueError,
        RuntimeError,
    ) as error:
        raise InvalidInput(
            f"'{url}' cannot be fetched from the hub ({one_line(error)[:300]}). Check the name, the network, and "
            "whether it takes a token (HF_TOKEN)."
        ) from None
    return target


def _commit(repository: str) -> str:
    """The newest commit of a dataset."""
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
