"""Item selection for a run: by id, by tag, by random sample, and by limit.

The random draw for an item depends only on the seed and the item's id, so larger samples contain
smaller ones.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vlprobe.errors import InvalidInput
from vlprobe.perturb.draws import draw
from vlprobe.runs.request import Request
from vlprobe.storage import annotations
from vlprobe.storage.store import Store
from vlprobe.types import Dataset, Item
from vlprobe.types.selection import LISTED, describe


class Selection(NamedTuple):
    """The part of a request's item selection that affects results."""

    record: Mapping[str, object]  # for `Run.selection`
    limit: int  # for `Run.limit`


def select(dataset: Dataset, request: Request) -> tuple[Sequence[Item], Selection]:
    """Select the items that a request names, in the order of the dataset.

    Args:
        request: Selects items by `item` and `where`, then samples `sample` of them, then takes the first `limit`.

    Raises:
        InvalidInput: no item has a requested id, tag or value, or no item remains.
    """
    items: Sequence[Item] = dataset.items
    record: dict[str, object] = {}
    if request.item:
        items, record["item"] = _named(items, request.item, dataset.name)
    if request.where:
        items, record["where"] = _tagged(items, request.where, dataset.name)
    if request.errata:
        record["errata"] = list(request.errata)
    if not items and record:
        raise InvalidInput(
            f"No item in dataset '{dataset.name}' matches all of these filters: "
            f"{'; '.join(describe(record))}. Use fewer filters."
        )
    if 0 < request.sample < len(items):
        draws = [draw(request.seed, item.id, 0, "sample") for item in items]
        drawn = sorted(range(len(items)), key=lambda number: (draws[number], number))
        items = [items[number] for number in sorted(drawn[: request.sample])]
        record["sample"] = request.sample
    limit = request.limit if request.limit < len(items) else 0
    return items[:limit] if limit else items, Selection(record, limit)


def left_out(store: Store, case_key: str, request: Request) -> list[str]:
    """Return the sorted ids of the cases that a request excludes.

    Args:
        case_key: Key of the same question set without exclusions, whose cases have the tags.
        request: The request, with `without` and `without_tag`.

    Raises:
        InvalidInput: no case in the question set has one of the tags.
    """
    tagged = annotations.read(store, case_key)
    tags = {annotations.current_name(tag) for tag in request.without_tag}
    for tag in sorted(tags):
        if tag not in tagged.tags:
            raise InvalidInput(
                f"No case in this question set has the tag '{tag}'. Available tags: "
                f"{_some(tagged.tags)}. To tag cases, open Explore for a run with the same items "
                "and options."
            )
    return sorted(
        {*request.without, *(case.id for case in tagged.current if tags.intersection(case.tags))}
    )


def _named(items: Sequence[Item], ids: Sequence[str], dataset: str) -> tuple[list[Item], list[str]]:
    id_set = frozenset(ids)
    matching = [item for item in items if item.id in id_set]
    if unknown_ids := sorted(id_set - {item.id for item in matching}):
        raise InvalidInput(
            f"Dataset '{dataset}' has no item '{unknown_ids[0]}'. The first ids are: "
            f"{', '.join(item.id for item in items[:LISTED])}."
        )
    return matching, sorted(id_set)


def _tagged(
    items: Sequence[Item], conditions: Sequence[str], dataset: str
) -> tuple[list[Item], list[str]]:
    values_by_tag: dict[str, set[str]] = {}
    for condition in conditions:
        tag, equals, value = condition.partition("=")
        if not tag or not equals:
            raise InvalidInput(
                f"'{condition}' is not valid. Expected TAG=VALUE, such as subset=color."
            )
        values_by_tag.setdefault(tag, set()).add(value)
    for tag, values in values_by_tag.items():
        values_of_tag = dict.fromkeys(item.tags[tag] for item in items if tag in item.tags)
        if not values_of_tag:
            tags = dict.fromkeys(name for item in items for name in item.tags)
            raise InvalidInput(
                f"No item in dataset '{dataset}' has the tag '{tag}'. Available tags: {_some(tags)}."
            )
        if unknown := sorted(values - values_of_tag.keys()):
            raise InvalidInput(
                f"No item in dataset '{dataset}' has the tag '{tag}={unknown[0]}'. Values of this "
                f"tag: {_some(values_of_tag)}."
            )
    tagged = [
        item
        for item in items
        if all(item.tags.get(tag) in values for tag, values in values_by_tag.items())
    ]
    return tagged, sorted(set(conditions))


def _some(names: Mapping[str, object]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return (", ".join(list(names)[:LISTED]) or "none") + more
