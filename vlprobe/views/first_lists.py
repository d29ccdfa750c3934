"""The first five pictures of a search before a fine-tuning and after it (EqBen, figure 9), from the
galleries that RoCOCO's probe has ranked.
"""

from dataclasses import dataclass

from vlprobe.probes import rococo_fronts
from vlprobe.storage.store import Store
from vlprobe.views.mixed.case import item_pictures
from vlprobe.views.runs import QuestionSet

FIVE = 5
KIND = "t2i"


@dataclass(frozen=True, slots=True)
class FirstLists:
    """A caption, and what two models rank first for it in the gallery without altered pictures."""

    caption: str
    item: str  # whose caption it is
    before: tuple[str, ...]  # items, best first
    after: tuple[str, ...]
    place_before: int  # of the item among the first five; FIVE + 1: further down
    place_after: int


def first_lists(
    store: Store, question_set: QuestionSet, before: str, after: str, count: int
) -> list[FirstLists]:
    """Captions whose first five pictures differ between two models, those first whose own picture
    rose most.

    Args:
        store: Where results are.
        question_set: Of `rococo`, which both models answered.
        before: A model.
        after: Another one.
        count: So many captions at most.

    Returns:
        An empty list where a run did not keep what stands first in its galleries.
    """
    runs = [question_set.run(model).key for model in (before, after)]
    if not all(store.run(key).has_table(rococo_fronts.TABLE) for key in runs):
        return []
    own = "coalesce(nullif(list_position({}.clean_items[1:5], c.item), 0), 6)"
    places = [own.format(table) for table in ("b", "a")]
    with store.cursor() as cursor:
        rows = cursor.execute(
            "SELECT c.texts[1] AS caption, any_value(c.item) AS item, "
            "any_value(b.clean_items[1:5]) AS before, any_value(a.clean_items[1:5]) AS after, "
            f"any_value({places[0]}) AS place_before, any_value({places[1]}) AS place_after "
            'FROM read_parquet(?) AS c JOIN read_parquet(?) AS b USING ("case") '
            'JOIN read_parquet(?) AS a USING ("case") '
            f"WHERE c.kind = '{KIND}' AND b.clean_items[1:5] <> a.clean_items[1:5] "
            "GROUP BY caption ORDER BY place_before - place_after DESC, caption LIMIT ?",
            [
                store.files([question_set.key], "cases"),
                *(store.files([key], rococo_fronts.TABLE) for key in runs),
                count,
            ],
        ).fetchall()
    return [
        FirstLists(caption, item, tuple(first), tuple(second), int(place), int(new_place))
        for caption, item, first, second, place, new_place in rows
    ]


def pictures(store: Store, question_set: QuestionSet) -> dict[str, str]:
    """Names of the pictures of the gallery by item."""
    return {item: entry.name for item, entry in item_pictures(store, question_set).items()}
