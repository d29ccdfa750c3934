"""Kinds of cases in a question set, and the default kind."""

from collections.abc import Sequence

from vlprobe import registry
from vlprobe.errors import NotFound
from vlprobe.storage.store import Store
from vlprobe.views.runs import QuestionSet


def stored_kinds(store: Store, case_key: str, probe: str) -> list[str]:
    """Return the kinds that have cases in a question set, in the probe's order.

    Args:
        case_key: The key of the question set.
    """
    with store.cursor() as cursor:
        rows = cursor.execute(
            "SELECT DISTINCT kind FROM read_parquet(?)", [store.files([case_key], "cases")]
        ).fetchall()
    stored = {row[0] for row in rows}
    return [kind for kind in registry.load_probe(probe).kinds if kind in stored]


def default_kind(store: Store, question_set: QuestionSet, models: Sequence[str] = ()) -> str:
    """Return the first kind with a case that every model answered, or else the first kind with
    cases.

    Args:
        models: Models that must have answers; by default, all.

    Raises:
        NotFound: No kind of the probe has cases.
    """
    kinds = stored_kinds(store, question_set.key, question_set.probe)
    if not kinds:
        raise NotFound(f"kind of {question_set.probe} with cases", "", kinds)
    run_keys = [question_set.run(model).key for model in models or question_set.models]
    return next((kind for kind in kinds if _is_answered(store, run_keys, kind)), kinds[0])


def choose_kind(
    store: Store, question_set: QuestionSet, kind: str = "", models: Sequence[str] = ()
) -> str:
    """Return the given kind, or the `default_kind` if none is given.

    Raises:
        NotFound: The question set has no cases of the given kind.
    """
    if not kind:
        return default_kind(store, question_set, models)
    kinds = stored_kinds(store, question_set.key, question_set.probe)
    if kind not in kinds:
        raise NotFound(f"kind of {question_set.probe} with cases here", kind, kinds)
    return kind


def _is_answered(store: Store, run_keys: Sequence[str], kind: str) -> bool:
    """Return whether every run knows the margin of some case of this kind; each stops at its first."""
    with store.cursor() as cursor:  # isfinite, not isnan: see `showcase.lie_counts`
        return all(
            cursor.execute(
                "SELECT 1 FROM read_parquet(?) WHERE kind = ? AND isfinite(margin) LIMIT 1",
                [store.files([key], "scores"), kind],
            ).fetchone()
            for key in run_keys
        )
