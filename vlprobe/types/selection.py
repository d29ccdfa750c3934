"""The item selection of a run, as stored in `Run.selection`: `item` (ids), `where` (TAG=VALUE), `sample` (a count), and
the excluded cases, `without` (ids) and `errata` (question digests). Unused criteria are absent.
"""

from collections.abc import Mapping
from typing import Any

LISTED = 6  # ids, tags or values to name before the rest are only counted


def request_fields(record: Mapping[str, object]) -> dict[str, Any]:
    """Convert a stored selection to the fields of a run request, with lists as tuples."""
    return {
        name: tuple(value) if isinstance(value, list | tuple) else value
        for name, value in record.items()
    }


def describe(record: Mapping[str, object]) -> list[str]:
    """Describe a selection in short phrases, one per criterion. Long lists of ids are counted instead.

    >>> describe({"where": ["thing=dog"], "sample": 50})
    ['where thing=dog', 'sample 50']
    """
    descriptions = []
    for name, value in record.items():
        entries = [str(entry) for entry in value] if isinstance(value, list | tuple) else [value]
        if name == "item" and len(entries) > LISTED:
            descriptions.append(f"{len(entries):,} items by id")
        elif name == "without" and len(entries) > LISTED:
            descriptions.append(f"without {len(entries):,} cases")
        elif name == "errata":
            descriptions.append(f"without {len(entries):,} rejected labels")
        else:
            descriptions.append(f"{name} {', '.join(map(str, entries))}")
    return descriptions
