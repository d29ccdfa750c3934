"""Questions that come with vlprobe, with the answers that other people published to them.

    bundled:SugarCrepe    7,512 captions of COCO val2017 with a foil each; 148 have their photograph
    bundled:VALSE         7,702 captions with a foil each; 16 have their photograph
                          +available: only those whose photograph is here

They are read from the bundled results (`tools.ship_published` builds these), so that anyone can ask
another model the same questions: `vlprobe run --probe eqben --dataset bundled:SugarCrepe`. The
photographs that may be redistributed are bundled, too; another one is used where its file is in the
cache, as `pictures/coco/val2017/000000000139.jpg`. A picture is told from others by its name,
whether or not its file is here, so that all runs over a set have one key.
"""

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vlprobe.datasets import sources
from vlprobe.datasets.validation import LoadedDataset, dataset_digest, validated
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import files, shipped
from vlprobe.storage.store import Store
from vlprobe.types import Item, Picture

PREFIX = "bundled"
NAMES = ("SugarCrepe", "VALSE")
NOTES = {  # what a reader of their numbers must know
    "SugarCrepe": (
        "Six questions are in two subsets and count in both: 7,512 rows, 7,506 distinct questions.",
        "swap_obj/108 was removed from SugarCrepe later; all published answers include it.",
    ),
    "VALSE": ("Foils that fewer than two of three annotators told from the caption are left out.",),
}
PICTURES = Path("pictures")  # below a cache: what names of pictures begin with
COCO = PICTURES / "coco" / "val2017"
PICTURED_NOTE = "questions have their photograph here."  # the end of a note, of the time of a run
PHOTOGRAPHS = "photographs"  # folder of the bundled results


def names() -> list[str]:
    """The question sets."""
    return [f"{PREFIX}:{name}" for name in NAMES]


def check_name(name: str) -> None:
    """Raises NotFound where there is no such set or option."""
    _parse(name)


def _parse(name: str) -> tuple[str, bool]:
    """The name of a set as it is stored, and whether `+available` follows it."""
    set_name, plus, option = name.partition(":")[2].partition("+")
    found = next((known for known in NAMES if known.lower() == set_name.lower()), "")
    if not found:
        raise NotFound("bundled question set", set_name, NAMES)
    if plus and option != sources.AVAILABLE:
        raise NotFound("option", option, [sources.AVAILABLE])
    return f"{PREFIX}:{found}", bool(plus)


def load(name: str, cache: Path) -> LoadedDataset:
    """The questions in the order in which they are stored.

    Raises:
        NotFound: There is no such set or option.
        InvalidInput: The bundled results are not here.
    """
    stored_name, is_available = _parse(name)
    store = Store(shipped.PUBLISHED_FOLDER)
    manifest = next((run for run in store.runs() if run["run"]["dataset"] == stored_name), None)
    if manifest is None:
        raise InvalidInput(
            f"'{stored_name}' is not among the bundled results. Install vlprobe again."
        )
    columns = ["item", "cluster", "images", "texts", "tags"]
    rows = store.cases(manifest["case_key"]).table("cases", columns).to_pylist()
    n_of_cluster = Counter(row["cluster"] for row in rows)
    items = []
    for row in rows:
        is_alone = row["cluster"] == row["item"] and n_of_cluster[row["cluster"]] == 1
        (picture,), (caption, foil) = row["images"], row["texts"]
        items.append(
            Item(
                row["item"],
                Picture(Path(picture)),
                (caption,),
                dict(row["tags"]),
                (foil,),
                cluster="" if is_alone else row["cluster"],
            )
        )
    for name_of_file in sorted(_bundled_names()):
        relative = COCO / name_of_file
        content = None if files.is_file(cache / relative) else redraw(relative)
        if content:
            files.write_bytes(cache / relative, content, durable=False)
    return with_pictures(stored_name, items, cache, is_available)


def with_pictures(
    name: str, items: Sequence[Item], cache: Path, is_available: bool = False
) -> LoadedDataset:
    """Questions about pictures of relative names as a dataset; its digest is of these names.

    Args:
        name: Of the dataset, without an option.
        items: Their pictures have names relative to the cache.
        cache: Where the files of pictures are.
        is_available: Whether questions without the file of their picture are left out.
    """
    known, here = [], []
    for item in items:
        assert item.image is not None  # every question is about a picture
        relative = item.image.path
        marked = Picture(cache / relative, absent=sources.absent_name(relative.name))
        is_here = files.is_file(marked.path)
        if is_here or not is_available:
            known.append(replace(item, image=marked))
            here.append(replace(item, image=Picture(marked.path) if is_here else marked))
    n_pictured = sum(not (item.image and item.image.absent) for item in here)
    notes = list(NOTES[name.partition(":")[2]])
    if n_pictured < len(here):
        notes.append(f"{n_pictured:,} of {len(here):,} {PICTURED_NOTE}")
    option = f"+{sources.AVAILABLE}" if is_available else ""
    dataset = validated(f"{name}{option}", here, cache, notes)
    return replace(dataset, digest=dataset_digest(known, cache))


def redraw(path: Path) -> bytes | None:
    """The bundled photograph of a relative name, None where there is none; see `registry.redrawn`."""
    if not is_bundled(path):
        return None
    return files.read(shipped.PUBLISHED_FOLDER / PHOTOGRAPHS / path.name)


def located(name: str, cache: Path) -> str:
    """Return the path of a picture that was downloaded into a cache; another name is returned as it is.

    Args:
        name: The stored name of the picture.
        cache: Where `vlprobe pictures` puts pictures.
    """
    path = Path(name)
    is_relative = path.parts[:1] == PICTURES.parts and ".." not in path.parts
    if is_relative and not is_bundled(path) and files.is_file(cache / path):
        return str(cache / path)
    return name


def is_absent(name: str) -> bool:
    """Return whether a stored name is of a picture of a bundled question set that is neither bundled
    nor downloaded (`located` returns another name of these).
    """
    path = Path(name)
    return path.parts[:1] == PICTURES.parts and not is_bundled(path)


def is_bundled(path: Path) -> bool:
    """Return whether a relative name is that of a bundled photograph."""
    return path.parent == COCO and path.name in _bundled_names()


@functools.cache
def _bundled_names() -> frozenset[str]:
    folder = shipped.PUBLISHED_FOLDER / PHOTOGRAPHS
    return frozenset(path.name for path in folder.glob("*.jpg"))
