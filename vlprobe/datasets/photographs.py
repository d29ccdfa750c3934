"""Find and download the COCO photographs that a question set needs and that are missing on this machine.

Photographs are only downloaded with `vlprobe pictures DATASET`. The licenses of COCO's photographs differ; you may
view the photographs, but most may not be redistributed.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from vlprobe.datasets.sources import COCO_FILE_NAME
from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.storage import access, downloads
from vlprobe.storage.downloads import DownloadReport
from vlprobe.storage.store import Store
from vlprobe.types import Item

HOST = "http://images.cocodataset.org"  # http as in COCO's own `coco_url`, because its certificate is for another host
PAGES = "https://cocodataset.org/#explore?id="
SPLITS = ("val2017", "train2017", "val2014", "train2014")


def url(path: Path, host: str = HOST) -> str | None:
    """Return the URL of a COCO photograph, or None for any other picture.

    >>> url(Path("pictures/coco/val2017/000000000139.jpg"))
    'http://images.cocodataset.org/val2017/000000000139.jpg'
    """
    if path.parent.name not in SPLITS or not COCO_FILE_NAME.fullmatch(path.name):
        return None
    return f"{host}/{path.parent.name}/{path.name}"


def missing(items: Iterable[Item], host: str = HOST) -> tuple[dict[Path, str], int]:
    """Return the photographs that are not on this machine.

    Args:
        items: Items from a dataset that keeps questions whose picture is missing.
        host: Server with COCO's folders.

    Returns:
        A dict from the file of each missing COCO photograph to its URL, and the number of other missing pictures.
    """
    absent = {picture.path for item in items for picture in item.pictures if picture.absent}
    addresses = {path: address for path in sorted(absent) if (address := url(path, host))}
    return addresses, len(absent) - len(addresses)


def page(path: Path) -> str:
    """Return the public page of a COCO photograph, or "" for any other picture.

    >>> page(Path("pictures/coco/val2017/000000000139.jpg"))
    'https://cocodataset.org/#explore?id=139'
    """
    return f"{PAGES}{int(path.stem[-12:])}" if url(path) else ""


def announcement(addresses: dict[Path, str], command: str, host: str = HOST) -> str:
    """Ask the server for the sizes of the photographs, and return a sentence that states their number and total
    size.

    Args:
        command: What to run after an error, such as the command that downloads them.

    Raises:
        InvalidInput: the server reports no size for any photograph.
    """
    n_bytes, n_unknown, reason = downloads.total_bytes(addresses.values())
    if n_unknown == len(addresses):
        elsewhere = ", with --from URL for a copy of COCO elsewhere" * (host == HOST)
        raise InvalidInput(
            f"The sizes of the {len(addresses):,} photographs could not be read from '{host}' ({reason}). Check this "
            f"computer's network, and run {command}{elsewhere}."
        )
    unknown = f", {n_unknown:,} of unknown size" if n_unknown else ""
    return f"{len(addresses):,} photographs are missing: {n_bytes / 1e6:,.1f} MB{unknown}."


def summary(report: DownloadReport) -> str:
    """Return a sentence that reports the number and total size of the downloaded photographs."""
    return f"{report.n_written:,} photographs downloaded, {report.n_bytes / 1e6:,.1f} MB."


def download(
    store: Store, addresses: dict[Path, str], on_progress: Callable[[int, int], None]
) -> DownloadReport:
    """Download photographs. Only files that are intact images are written.

    Args:
        addresses: URL of each photograph, by file.
        on_progress: See `downloads.download`.

    Raises:
        InvalidInput: the cache is read-only.
    """
    access.refuse_writing()
    try:
        return downloads.download(addresses, _verify, on_progress)
    finally:
        store.note_downloads()


def _verify(content: bytes) -> None:
    try:
        pictures.decode(content, "the photograph")
    except InvalidInput as error:
        raise ValueError(str(error)) from None
