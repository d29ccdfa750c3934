"""The option `edits` of every probe: a file of edits in place of what its rules or its dataset would give."""

import functools
from collections.abc import Mapping, Sequence

from vlprobe.errors import InvalidInput
from vlprobe.perturb import edits_file
from vlprobe.perturb.edits_file import EditsFile
from vlprobe.probes.file_option import FileOption
from vlprobe.types import Item
from vlprobe.types.options import Option

_FILE = FileOption(
    name="edits",
    kind="the edits",
    called="Edits",
    is_plural=True,
    max_bytes=512 << 20,
    when_large="Expected a smaller file; cut it in parts.",
    when_unreadable="Write some: vlprobe perturb.",
)


def option(uses: str) -> Option:
    """The option of a probe. `uses` says in a sentence what becomes of the edits."""
    return Option(
        name="edits",
        default="",
        label="Edits from a file",
        help=f"JSON lines with an edit each (docs/edits.md). {uses}",
        refers_to="file",
    )


def pinned(options: Mapping[str, object]) -> dict[str, object]:
    """The options with the file's digest, or without `edits` where there is no file: a run without it keeps its key."""
    if not options["edits"]:
        return {name: value for name, value in options.items() if name != "edits"}
    return with_digest(options)


def with_digest(options: Mapping[str, object]) -> dict[str, object]:
    """The options with the full path of the file, and its digest. Raises InvalidInput if it cannot be read."""
    return _FILE.with_digest(options)


def loaded(options: Mapping[str, object]) -> EditsFile | None:
    """The edits of the file that pinned options name; None without one."""
    if not options.get("edits"):
        return None
    edits = _loaded(str(options["edits"]), str(options.get("edits_digest", "")))
    if edits is None:
        raise InvalidInput(
            f"Edits '{options['edits']}' are in LGIP's form, which the probe lgip alone takes. Expected an edit a "
            "line: vlprobe perturb --format edits."
        )
    return edits


def is_lgip_form(options: Mapping[str, object]) -> bool:
    """Return whether the file that pinned options name has one picture per line, as LGIP writes it."""
    return _loaded(str(options["edits"]), str(options.get("edits_digest", ""))) is None


def check_items(items: Sequence[Item], options: Mapping[str, object]) -> None:
    """Raise InvalidInput where the file has an edit of a caption that no item of the dataset has."""
    if edits := loaded(options):
        edits.check(items)


@functools.lru_cache(maxsize=2)  # each item asks for the edits of the whole file
def _loaded(path: str, digest: str) -> EditsFile | None:
    """The file's edits, None in LGIP's form; one that changed is not read for another."""
    content = _FILE.content(path, digest)
    return None if edits_file.is_lgip_form(content) else edits_file.read(content, path)
