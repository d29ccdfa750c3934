"""Ordered pictures: find the change in a video, and rank candidates as people do (papers/eqben.txt,
table 12, figures 1 and 7).

An item with a `series` has one case. A case of kind `boundary` has the frames of a video and the
captions before and after a boundary. A case of kind `order` has candidates in the order in which
people ranked them for a query, and an edit of the query if there is one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe.metrics import series as metrics
from vlprobe.scoring import cases as scoring_cases
from vlprobe.types import Case, Edit, Encoder, Item, Probe, Reader, Role, Run, Series
from vlprobe.types.presentation import KindPresentation, Presentation

LEAST = 3  # pictures; two frames allow only one boundary, and two candidates hardly have an order
COLUMNS = (  # columns in the table of scores; NaN for cases of the other kind
    *("right_index", "model_index", "seconds_off", "boundary_tied"),
    *("agreement", "agreement_edit", "kept", "kept_people"),
)

PRESENTATION = Presentation(
    title="Series (EqBen)",
    name="Video changes and human order (EqBen)",
    asks="Where in a video does the scene change, and which pictures fit a query best?",
    position=6,
    sentence="A video changes at one moment, and a model has to find it. Or people ranked "
    "pictures for a query, and the model ranks them too. **Higher is better**: the model finds "
    "more boundaries, and its order agrees with people.",
    headlines=("boundary_accuracy", "boundary_within_1", "order_first"),
    subtype_label="Subset",
    value_labels={
        "video-color": "A color changes",
        "video-number": "A number changes",
        "video-object": "An object changes",
        "order": "Orders",
    },
    kinds={
        "boundary": KindPresentation(
            label="A video, before and after a change",
            lie="another moment",
            lies="changes",
            winner="another moment",
            question="The last frame before the boundary and the first frame after it should fit their captions best "
            "of all neighboring frames.",
            body="series",
            legend="Solid frame: the frames next to the true boundary. Dashed frame: the "
            "boundary that the model predicts.",
            several_comparisons=True,
        ),
        "order": KindPresentation(
            label="Candidates in human order",
            lie="another candidate",
            accuracy="order_first",
            lies="first choices",
            winner="another candidate",
            question="The candidate that people ranked first should score highest.",
            body="series",
            legend="From left to right in human order. Solid frame: ranked first by people. "
            "Dashed frame: ranked first by the model.",
            several_comparisons=True,
        ),
    },
)


class SeriesProbe(Probe):
    """Measures how well a model finds changes in videos, and how well it ranks candidates as people do."""

    name = "series"
    version = 1
    needs = "pictures"
    dataset = "demo-series"
    presentation = PRESENTATION
    metrics = metrics.METRICS

    def cases(
        self, item: Item, options: Mapping[str, object], seed: int
    ) -> tuple[list[Case], Mapping[str, int]]:
        """Create one case for an item with a series. Items without a series or with too few pictures are counted."""
        if item.series is None:
            return [], {"no series of pictures": 1}
        if len(item.series.pictures) < LEAST:
            return [], {f"fewer than {LEAST} pictures": 1}
        kind = "boundary" if item.series.times else "order"
        texts = (item.captions[0], *item.foils[:1])
        roles: tuple[Role, ...] = ("original", "different")
        subset = item.tags.get("subset", "")
        edit, images = Edit(kind, subset, subset or kind), item.series.pictures
        return [Case(item.id, item.id, item.id, images, texts, roles[: len(texts)], edit)], {}

    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> scoring_cases.Scorer:
        """Return a scorer. Its margin is the score of the right answer (the true boundary, or the candidate that people
        rank first) minus the score of the best other boundary or candidate. Its table also has all columns in COLUMNS,
        as float64.
        """
        series_of_item = {item.id: item.series for item in items if item.series}
        score = scoring_cases.case_scorer(encoder, lambda rows: np.full(len(rows), np.nan))

        def score_series(cases: pa.Table) -> pa.Table:
            table = score(cases)
            rows = []
            for item_id, texts, scores in zip(
                cases["item"].to_pylist(),
                cases["texts"].to_pylist(),
                table["scores"].to_pylist(),
                strict=True,
            ):
                scored = np.array(scores, dtype=np.float64).reshape(-1, len(texts))
                series = series_of_item[item_id]
                rows.append(_boundary(series, scored) if series.times else _order(series, scored))
            columns = pd.DataFrame(rows, columns=pd.Index(["margin", *COLUMNS])).astype(np.float64)
            table = table.set_column(
                table.column_names.index("margin"),
                "margin",
                pa.array(columns["margin"].to_numpy(np.float32)),
            )
            for name in COLUMNS:
                table = table.append_column(name, pa.array(columns[name].to_numpy()))
            return table

        return score_series


def _boundary(series: Series, scores: np.ndarray) -> dict[str, float]:
    """Compute the margin and the columns in COLUMNS for a video. If several boundaries have the best score, the one
    farthest from the true boundary counts.

    Args:
        series: A series with times.
        scores: Scores of each frame with both captions, shape (n_frames, 2).
    """
    if np.isnan(scores).any():
        return {}
    fit, index = metrics.boundary_scores(scores), series.boundary_index
    best = np.flatnonzero(fit == fit.max())
    moments = (np.array(series.times)[:-1] + np.array(series.times)[1:]) / 2
    # Ignore the last bits of floats: .1 s off is within .1 s.
    off = np.abs(moments[best] - series.boundary).round(9)
    return {
        "margin": fit[index] - np.delete(fit, index).max(),
        "right_index": index,
        "model_index": best[off.argmax()],
        "seconds_off": off.max(),
        "boundary_tied": len(best) > 1,
    }


def _order(series: Series, scores: np.ndarray) -> dict[str, float]:
    """Compute the margin and the columns in COLUMNS for ranked candidates. A column is NaN if it needs an edited query,
    or the human order for one, that does not exist.

    Args:
        series: A series without times.
        scores: Scores of each candidate with the query, and with the edited query, shape (n, 1) or (n, 2).
    """
    people = -np.arange(len(scores), dtype=np.float64)
    people_edit = np.full(len(scores), np.nan)
    people_edit[list(series.edit_order)] = people[: len(series.edit_order)]
    query, edit = scores[:, 0], scores[:, -1]
    has_edit = scores.shape[1] > 1
    others = query[1:]
    columns = {
        "margin": query[0] - others.max(),
        "agreement": _correlation(people, query),
        "kept_people": _correlation(people, people_edit),
        "right_index": 0,
        "model_index": 0 if query[0] > others.max() else 1 + int(others.argmax()),
    }
    if has_edit:
        columns["kept"] = _correlation(query, edit)
        columns["agreement_edit"] = _correlation(people_edit, edit)
    return columns


def _correlation(scores: np.ndarray, other_scores: np.ndarray) -> float:
    if np.isnan(scores).any() or np.isnan(other_scores).any():
        return np.nan
    return metrics.rank_correlation(scores, other_scores)


PROBE = SeriesProbe()
