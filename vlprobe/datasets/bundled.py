"""Bundled question sets for which other people have published answers.

    bundled:SugarCrepe    7,512 captions of COCO val2017 with a foil each; 148 have their photograph
    bundled:VALSE         7,702 captions with a foil each; 16 have their photograph
                          +available: only those with a local photograph

The questions are read from the bundled results (built by `tools.ship_published`), so that you can test
another model on the same questions: `vlprobe run --probe eqben --dataset bundled:SugarCrepe`. Photographs
that may be redistributed are bundled, too. Other photographs are used if their files are in the
cache, for example as `pictures/coco/val2017/000000000139.jpg`. A picture is identified by its name,
whether or not its file exists, so that all runs on a question set have the same key.
"""

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
SETS = ("SugarCrepe", "VALSE")
NAMES = tuple(f"{PREFIX}:{name}" for name in SETS)
NOTES = {  # for people who read the numbers
    "SugarCrepe": (
        "Six questions are in two subsets and count in both: 7,512 rows, 7,506 distinct questions.",
        "swap_obj/108 was removed from SugarCrepe later; all published answers include it.",
    ),
    "VALSE": (
        "Foils that fewer than two of three annotators distinguished from the caption are excluded.",
    ),
}
PICTURES = Path("pictures")  # start of the names of pictures, relative to a cache
COCO = PICTURES / "coco" / "val2017"
# End of a note that holds at the time of a run
PICTURED_NOTE = "questions have their photograph here."
PHOTOGRAPHS = "photographs"  # folder of the bundled results


def check_name(name: str) -> None:
    """Raise NotFound if a name contains an unknown question set or option."""
    _parse(name)


def _parse(name: str) -> tuple[str, bool]:
    """Return the stored name of a question set, and whether the name ends with `+available`."""
    set_name, plus, option = name.partition(":")[2].partition("+")
    known_name = next((known for known in SETS if known.lower() == set_name.lower()), "")
    if not known_name:
        raise NotFound("bundled question set", set_name, SETS)
    if plus and option != sources.AVAILABLE:
        raise NotFound("option", option, [sources.AVAILABLE])
    return f"{PREFIX}:{known_name}", bool(plus)


def load(name: str, cache: Path) -> LoadedDataset:
    """Read a question set in its stored order.

    Raises:
        NotFound: The question set or option does not exist.
        InvalidInput: The bundled results are missing.
    """
    stored_name, is_available = _parse(name)
    store = Store(shipped.PUBLISHED_FOLDER)
    manifest = next((run for run in store.runs() if run["run"]["dataset"] == stored_name), None)
    if manifest is None:
        raise InvalidInput(f"'{stored_name}' is not among the bundled results. Reinstall vlprobe.")
    columns = ["item", "cluster", "images", "texts", "tags"]
    rows = store.cases(manifest["case_key"]).table("cases", columns).to_pylist()
    n_of_cluster = Counter(row["cluster"] for row in rows)
    items = []
    for row in rows:
        is_alone = row["cluster"] == row["item"] and n_of_cluster[row["cluster"]] == 1
        (picture,), (caption, foil) = row["images"], row["texts"]
        cluster, image = "" if is_alone else row["cluster"], Picture(Path(picture))
        tags = dict(row["tags"])
        items.append(Item(row["item"], image, (caption,), tags, (foil,), cluster=cluster))
    for photograph in sorted((shipped.PUBLISHED_FOLDER / PHOTOGRAPHS).glob("*.jpg")):
        relative = COCO / photograph.name
        content = None if files.is_file(cache / relative) else redraw(relative)
        if content:
            files.write_bytes(cache / relative, content, durable=False)
    return with_pictures(stored_name, items, cache, is_available)


def with_pictures(
    name: str, items: Sequence[Item], cache: Path, is_available: bool = False
) -> LoadedDataset:
    """Build a dataset from questions whose picture names are relative to the cache. Its digest depends on the names.

    Args:
        items: Items whose pictures have names relative to the cache.
        is_available: Whether to leave out questions whose picture file is missing.
    """
    known, kept = [], []
    for item in items:
        assert item.image is not None  # every question is about a picture
        relative = item.image.path
        marked = Picture(cache / relative, absent=sources.absent_name(relative.name))
        is_here = files.is_file(marked.path)
        if is_here or not is_available:
            known.append(replace(item, image=marked))
            kept.append(replace(item, image=Picture(marked.path) if is_here else marked))
    n_pictured = sum(not (item.image and item.image.absent) for item in kept)
    notes = list(NOTES[name.partition(":")[2]])
    if n_pictured < len(kept):
        notes.append(f"{n_pictured:,} of {len(kept):,} {PICTURED_NOTE}")
    option = f"+{sources.AVAILABLE}" if is_available else ""
    dataset = validated(f"{name}{option}", kept, cache, notes)
    return replace(dataset, digest=dataset_digest(known, cache))


def redraw(path: Path) -> bytes | None:
    """Return the bytes of the bundled photograph at a relative path; None for other paths. See `registry.redrawn`."""
    if not is_bundled(path):
        return None
    return files.read(shipped.PUBLISHED_FOLDER / PHOTOGRAPHS / path.name)


def located(name: str, cache: Path) -> str:
    """Return the full path if the picture was downloaded into the cache. Return any other name unchanged.

    Args:
        name: The stored name of the picture.
        cache: Folder into which `vlprobe pictures` downloads.
    """
    path = Path(name)
    is_relative = path.parts[:1] == PICTURES.parts and ".." not in path.parts
    if is_relative and not is_bundled(path) and files.is_file(cache / path):
        return str(cache / path)
    return name


def is_absent(name: str) -> bool:
    """Return whether a stored name belongs to a picture in a bundled question set whose file is neither bundled nor
    downloaded (for a downloaded picture, `located` returns another name).
    """
    path = Path(name)
    return path.parts[:1] == PICTURES.parts and not is_bundled(path)


def is_bundled(path: Path) -> bool:
    """Return whether a relative path is the name of a bundled photograph."""
    return path.parent == COCO and files.is_file(shipped.PUBLISHED_FOLDER / PHOTOGRAPHS / path.name)
