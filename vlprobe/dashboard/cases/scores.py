"""The answers of every model to one case: verdict, texts and scores, for
the details of the drawer.
"""

from collections.abc import Mapping

from vlprobe.dashboard.state import PageSubject, model_name, store
from vlprobe.render.html import cards
from vlprobe.scoring import thumbnails
from vlprobe.views.filter import Filter
from vlprobe.views.records import AnswerRow, CaseRow


def scores(
    row: CaseRow, answers: Mapping[str, AnswerRow], stored: PageSubject, case_filter: Filter
) -> str:
    """The case as HTML, the filter's models first.

    Args:
        row: The case.
        answers: By model.
        stored: The question set.
        case_filter: Names the model whose verdict it is, and the one that it is compared with.
    """
    compared = filter(None, (case_filter.model, case_filter.other))
    models = tuple(dict.fromkeys((*compared, *stored.models)))
    card = cards.card(
        row,
        stored.presentation,
        answers,
        models,
        stored.looks,
        _source,
        everything=True,
        beside=bool(case_filter.other),
        called={name: model_name(name) for name in models},
    )
    return f'<div class="vp-card">{card}</div>'


def _source(name: str) -> str:
    """A small picture as what an <img> shows; "" where it cannot be read."""
    return thumbnails.addresses(store().root, [name])[name]
