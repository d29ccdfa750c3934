"""Selection of the items of a run, stored in `Run.selection`: `item` (ids), `where` (TAG=VALUE), `sample` (a count),
and the cases to leave out, `without` (ids) and `errata` (digests of questions). Unused criteria are absent.
"""

from collections.abc import Mapping
from typing import Any

LISTED = 6  # ids, tags or values that are named; more are counted


def request_fields(record: Mapping[str, object]) -> dict[str, Any]:
    """The settings of a request that make up a run's selection."""
    return {
        name: tuple(value) if isinstance(value, list | tuple) else value
        for name, value in record.items()
    }


def describe(record: Mapping[str, object]) -> list[str]:
    """A selection in short words, part by part; many ids are counted.

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
