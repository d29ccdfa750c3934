"""Accuracy of the best guess without the picture on the questions of a kind, shown next to the
models' shares.
"""

from vlprobe.metrics import blind
from vlprobe.metrics.blind import BlindAccuracy, Pair
from vlprobe.storage.store import Store
from vlprobe.views.runs import QuestionSet


def best_guess(store: Store, question_set: QuestionSet, kind: str) -> BlindAccuracy | None:
    """Compute the accuracy of the best method of `metrics.blind` on the stored texts.

    Returns:
        None if cases are not one picture with a true and a wrong caption, or if there are too few
        pictures.
    """
    files = [store.files([question_set.key], "cases")]
    with store.cursor() as cursor:
        names = [
            row[0]
            for row in cursor.execute("DESCRIBE SELECT * FROM read_parquet(?)", files).fetchall()
        ]
        unit = "cluster" if "cluster" in names else "item"
        rows = cursor.execute(
            f'SELECT {unit}, texts, roles, len(images) FROM read_parquet(?) WHERE kind = ? ORDER BY "case"',
            [*files, kind],
        ).fetchall()
    is_pair = all(roles == ["original", "different"] and n == 1 for _, _, roles, n in rows)
    if not is_pair or len({row[0] for row in rows}) < blind.FEWEST_PICTURES:
        return None
    pairs = [Pair(str(picture), "", true, wrong) for picture, (true, wrong), _, _ in rows]
    return max(blind.check_pairs(pairs), key=lambda guess: guess.accuracy.value)
