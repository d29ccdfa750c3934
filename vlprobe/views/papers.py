"""The tables of the papers made again: a user's runs in the columns that a paper prints, above the rows that it prints.

A cell of a user's run is filled only where it means the same as the printed one: the same metric on the same kind of
question. The pictures are others unless somebody ran the paper's own.
"""

import functools
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from vlprobe.metrics import pairs
from vlprobe.probes.rococo import RELEASED
from vlprobe.storage.store import Store
from vlprobe.views import estimates
from vlprobe.views import runs as views_runs

ROW_COLUMNS = ["source", "model", "column", "value", "low", "high", "n_items", "ties", "note"]
EVERY = "*"  # each slice of a breakdown, counted alike
SHOWN = 0.995  # of all deviations have a place of their own on the axis
SCALE = {"percent": 0.01}  # of printed units; rates are shares here


@dataclass(frozen=True)
class Column:
    """One column of a paper's table, and what of a run belongs there."""

    group: str  # the heading that it shares with its neighbours
    title: str
    metric: str  # of the probe
    printed: tuple[str, str, str]  # dataset, split, metric as published.csv has them
    datasets: tuple[str, ...] = ()  # printed in several datasets' columns: their mean
    by: str = "all"
    slices: tuple[str, ...] = ()  # names of the slice that belongs here; empty: the whole
    released: str = ""  # the paper's own file of this column, without its ending: a run over it belongs here, too
    sign: int = 1  # -1: printed the other way round


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper."""

    number: int
    title: str  # in a picker
    about: str  # what its rows were scored on, and how that differs
    columns: tuple[Column, ...]
    rows: Mapping[str, str] = field(default_factory=dict)  # where rows are not models: start of the split, name


def _rococo(kind: str, policies: Mapping[str, tuple[str, str]]) -> tuple[Column, ...]:
    found = [Column("Clean gallery", "R@1", f"{kind}_r1", ("coco_5k", "clean", f"{kind}_r1"))]
    for printed, (title, own) in policies.items():
        place = {"by": "subtype", "slices": (own,), "released": printed if kind == "i2t" else ""}
        found += [
            Column(title, "R@1", f"{kind}_r1_new", ("rococo", printed, f"{kind}_r1_new"), **place),
            Column(title, "Drop", f"{kind}_drop_rate", ("rococo", printed, f"{kind}_drop_rate"), sign=-1, **place),
            Column(title, "RSMS", f"{kind}_rsms", ("rococo", printed, f"{kind}_rsms"), **place),
        ]
    return tuple(found)


def _pictures(*lams: float) -> tuple[Column, ...]:
    kinds = [(kind, lam) for kind in ("mix", "patch") for lam in lams]
    return _rococo("t2i", {f"{kind}_{lam}": (f"{kind.capitalize()} {lam}", f"{kind}:{lam}") for kind, lam in kinds})


def _visla(*columns: tuple[str, str, str, str]) -> tuple[Column, ...]:
    return tuple(
        Column(subset.capitalize(), title, own, (f"visla_{subset}", split, printed), by="subtype", slices=(subset,))
        for subset in ("generic", "spatial")
        for title, own, split, printed in columns
    )


_SCORES = {"text_score": "Text", "image_score": "Image", "group_score": "Group"}
_SUBSETS = {
    "eq_youcook2": ("YouCook2", "youcook2"),
    "eq_gebc": ("GEBC", "gebc"),
    "eq_ag": ("AG", "ag"),
    "eq_kubric": ("Kubric", "kubric"),
    "eq_sd": ("SD", "sd"),
}
_AVERAGE = Column("All subsets", "Average", "average_score", ("eqben", "all", "avg"))
_COCO = "Their pictures: the 5,000 of COCO's test split."
_DROP = "The paper prints drop rates with a minus sign; here a loss is positive."
_PRSM_SETS = {"P1": "p1/o-c1-c2", "P2": "p2/p1-p2-p3-np", "P3": "p3/o-a1-a2-a12"}
_EQBEN = "Their pictures: frames of YouCook2, GEBC and Action Genome, scenes of Kubric, edits by Stable Diffusion."

TABLES: Mapping[str, tuple[PaperTable, ...]] = {
    "lgip": (
        PaperTable(
            2,
            "Invariance and sensitivity",
            "Their pictures: 40,000 of COCO with five captions each. Cosines; means per caption.",
            tuple(
                Column("", title, name, ("coco", "all", name))
                for name, title in (
                    ("invariance_error", "Invariance error"),
                    ("sensitivity_gap", "Sensitivity gap"),
                    ("positive_rate", "Positive rate"),
                )
            ),
        ),
    ),
    "rococo": (
        PaperTable(
            3,
            "Find the caption",
            f"{_COCO} {_DROP}",
            _rococo(
                "i2t",
                {
                    "rand_voca": ("Random word", "rand-voca"),
                    "same_concept": ("Same concept", "same-concept"),
                    "diff_concept": ("Another concept", "diff-concept"),
                    "danger": ("Danger", "danger"),
                },
            ),
        ),
        PaperTable(4, "Find the picture", f"{_COCO} {_DROP}", _pictures(0.9, 0.8)),
        PaperTable(7, "Find the picture, stronger", f"{_COCO} {_DROP}", _pictures(0.7, 0.6)),
    ),
    "eqben": (
        PaperTable(
            3,
            "Average",
            f"{_EQBEN} Text, image and group are the means of the five printed columns; the average is printed.",
            (
                *(
                    Column("All subsets", title, name, ("", "all", name), tuple(_SUBSETS), "subtype", (EVERY,))
                    for name, title in _SCORES.items()
                ),
                _AVERAGE,
            ),
        ),
        PaperTable(
            4,
            "Kubric by kind",
            "Their pictures: scenes of the engine Kubric.",
            tuple(
                Column("Group score", title, "group_score", ("eq_kubric", split, "group_score"), (), "subtype", names)
                for title, split, names in (
                    ("Location", "location", ("location",)),
                    ("Counting", "counting", ("counting", "number")),
                    ("Attribute", "attribute", ("attribute", "color")),
                )
            ),
        ),
        PaperTable(
            11,
            "Each subset",
            _EQBEN,
            (
                *(
                    Column(heading, title, name, (dataset, "all", name), (), "subtype", (own,))
                    for dataset, (heading, own) in _SUBSETS.items()
                    for name, title in _SCORES.items()
                ),
                _AVERAGE,
            ),
        ),
    ),
    "visla": (
        PaperTable(
            4,
            "Models that see",
            "Their data: VISLA, 973 generic and 640 spatial triplets.",
            _visla(
                ("Text to text", "t2t_accuracy", "t2t", "t2t_accuracy"),
                ("Image to text", "i2t_accuracy", "i2t", "i2t_accuracy"),
            ),
        ),
        PaperTable(
            2,
            "Text encoders",
            "Their data: VISLA, 973 generic and 640 spatial triplets.",
            _visla(("Text to text", "t2t_accuracy", "t2t", "t2t_accuracy")),
        ),
        PaperTable(
            3,
            "Text encoders, by pair",
            "Their data: VISLA, 973 generic and 640 spatial triplets.",
            _visla(("P1-N", "t2t_p1_n", "t2t", "p1_n"), ("P2-N", "t2t_p2_n", "t2t", "p2_n")),
        ),
    ),
    "prsm": (
        PaperTable(
            1,
            "Overlap",
            "Their gallery: 170,832 pictures of SocialCounterfactuals, and 72,876 of women or men. An overlap depends "
            "on the size of the gallery, so compare only with equal ones. The paper's rank correlations (0.02 to 0.04) "
            "cannot be correlations of ranks beside such overlaps, so they are left out.",
            tuple(
                Column(
                    setting,
                    f"Top {k:,}",
                    f"prsm_local_{k}",
                    ("socialcounterfactuals", split, f"local_{k}"),
                    by="subtype",
                    slices=(setting,),
                )
                for setting, split in _PRSM_SETS.items()
                for k in (100, 1000)
            ),
            {"overall": "CLIP, everyone", "female": "CLIP, women", "male": "CLIP, men"},
        ),
    ),
}


def paper_tables(probe: str) -> tuple[PaperTable, ...]:
    """The tables of the probe's paper that can be made again."""
    return TABLES[probe]


def remade(store: Store, case_key: str, number: int) -> pd.DataFrame:
    """A paper's table with the runs of one question set above what is printed.

    Args:
        store: Where results are.
        case_key: The question set; its probe's paper is meant.
        number: The table's number in the paper.

    Returns:
        source ("run" or "published"), model, column (place in `columns`), value, low, high, n_items, ties, note; in the
        order of the rows. A run without the kind of question that a column asks has no value there: NaN.
    """
    sets = views_runs.question_sets(store).set_index("case_key")
    probe = sets.loc[case_key, "probe"]
    table = _table(probe, number)
    own = _own(store, case_key, table, sets.loc[case_key, "models"])
    return pd.DataFrame(own + _printed(probe, number), columns=ROW_COLUMNS)


def _table(probe: str, number: int) -> PaperTable:
    return next(table for table in TABLES[probe] if table.number == number)


def _own(store: Store, case_key: str, table: PaperTable, models: list[str]) -> list[tuple]:
    parts = {by: estimates.estimates(store, case_key, by) for by in {column.by for column in table.columns}}
    files = _by_released_file(store, case_key, parts.get("subtype")) if any(c.released for c in table.columns) else None
    rows = []
    for model in sorted(models, key=lambda name: (name.startswith("control:"), name)):
        for place, column in enumerate(table.columns):
            part = parts[column.by]
            found = part[(part["model"] == model) & (part["metric"] == column.metric)].dropna(subset=["value"])
            if column.slices == (EVERY,):
                value = found["value"].mean() if len(found) else math.nan
                counts = int(found["n_items"].sum()), int(found["ties"].sum())
                rows.append(("run", model, place, value, math.nan, math.nan, *counts, ""))
                continue
            found = found[found["slice"].map(lambda name, column=column: _belongs(name, column.slices)).astype(bool)]
            if column.released and files is not None:
                found = files[(files["model"] == model) & (files["metric"] == column.metric)].dropna(subset=["value"])
                found = found[found["file"] == column.released]
            if len(found) == 1:
                one = found.iloc[0]
                counts = int(one["n_items"]), int(one["ties"])
                rows.append(("run", model, place, one["value"], one["low"], one["high"], *counts, ""))
            else:
                rows.append(("run", model, place, math.nan, math.nan, math.nan, 0, 0, ""))
    return rows


def _by_released_file(store: Store, case_key: str, subtypes: pd.DataFrame) -> pd.DataFrame | None:
    """RoCOCO's numbers by the released file that they are of; None where captions were altered here.

    All captions of a released file have the subtype "released"; which file it is, its tag `subset` says.

    Returns:
        What `views.estimates` returns, and `file`: the name as the paper's column has it, "" of any other file.
    """
    policies = set(subtypes["slice"][subtypes["metric"] == "i2t_r1_new"])
    if policies != {RELEASED} or "tag:subset" not in estimates.slices(store, case_key):
        return None
    found = estimates.estimates(store, case_key, "tag:subset")
    names = [column.released for table in TABLES["rococo"] for column in table.columns if column.released]
    return found.assign(file=found["slice"].map(lambda stem: _released_file(stem, names)))


def _released_file(stem: str, names: Collection[str]) -> str:
    """Which of the released files a file's name without its ending means; "" where that is none or not certain.

    >>> names = ["rand_voca", "danger"]
    >>> [_released_file(stem, names) for stem in ("danger", "RoCOCO-Rand-Voca", "danger_rand_voca", "endangered")]
    ['danger', 'rand_voca', '', '']
    """
    words = f"_{'_'.join(re.split('[^a-z0-9]+', stem.lower()))}_"
    found = {name for name in names if f"_{name}_" in words}
    return found.pop() if len(found) == 1 else ""


def _belongs(name: str, slices: tuple[str, ...]) -> bool:
    """Whether a slice has one of the names, or a word of its name is one: a file `eqkubric_counting` is `counting`."""
    return not slices or name in slices or bool(set(re.split("[^a-z0-9]+", name.lower())) & set(slices))


@functools.cache  # what is printed does not change, and looking for it takes longer than the rest of a table
def _printed(probe: str, number: int) -> list[tuple]:
    table = _table(probe, number)
    known = views_runs.published(probe)
    known = known[known["table"] == table.number]
    rows = []
    for start, label in table.rows.items() or [("", "")]:
        for model in known["model"].unique():
            own = known[known["model"] == model]
            for place, column in enumerate(table.columns):
                dataset, split, metric = column.printed
                asked = f"{start}/{split}" if start else split
                datasets = column.datasets or (dataset,)
                cells = own[(own["metric"] == metric) & (own["split"] == asked) & own["dataset"].isin(datasets)]
                value, note = math.nan, ""
                if len(cells) == len(datasets):
                    value = column.sign * (cells["value"] * cells["unit"].map(SCALE).fillna(1.0)).mean()
                    note = "; ".join(dict.fromkeys(cells["note"][cells["note"] != ""]))
                rows.append(("published", label or model, place, value, math.nan, math.nan, 0, 0, note))
    return rows


def deviations(store: Store, case_key: str, unit: str = "cosine", subset: str = "", bins: int = 40) -> pd.DataFrame:
    """How EqBen's equivariance deviation is spread over the pairs (of a subset), in bins that all models share.

    Returns:
        model, left, right, share (of the model's pairs; the last bin has all beyond); empty without two pictures.
    """
    found = {}
    for run in views_runs.runs_of(store, case_key).itertuples():
        with store.cursor() as cursor:
            rows = cursor.execute(
                "SELECT scores[1] AS score_0, scores[2] AS score_1, scores[3] AS score_2, scores[4] AS score_3 "
                "FROM read_parquet(?) WHERE kind = 'pair' AND (? = '' OR subtype = ?)",
                [store.files([run.key], "scores"), subset, subset],
            ).df()
        values = pairs.equivariance_deviation(rows) / ((run.spread or math.nan) if unit == "spread" else 1.0)
        found[run.model] = values[~np.isnan(values)]
    pooled = np.concatenate([*found.values(), [0.0]])
    edges = np.linspace(0, np.quantile(pooled, SHOWN) or 1.0, bins + 1)
    parts = [
        pd.DataFrame(
            {
                "model": model,
                "left": edges[:-1],
                "right": edges[1:],
                "share": np.histogram(np.minimum(values, edges[-1]), edges)[0] / len(values),
            }
        )
        for model, values in found.items()
        if len(values)
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["model", "left", "right", "share"])


def gallery_size(store: Store, case_key: str) -> float:
    """How many pictures PRSM's queries were asked of; NaN where galleries differ in size."""
    key = views_runs.runs_of(store, case_key)["key"].iloc[0]
    with store.cursor() as cursor:
        found = cursor.execute(
            "SELECT min(gallery_size), max(gallery_size) FROM read_parquet(?)", [store.files([key], "scores")]
        ).fetchall()
    low, high = found[0]
    return float(low) if low == high else math.nan


def chances(store: Store, case_key: str) -> dict[str, float]:
    """What guessing gets on each metric of a question set, by name; NaN where that is not defined."""
    runs = views_runs.runs_of(store, case_key)
    probe = runs["probe"].iloc[0]
    known = {name: metric.chance for name, metric in views_runs.metrics(probe).items()}
    if probe == "prsm":
        size = gallery_size(store, case_key)
        sizes = {name: int(name.rpartition("_")[2]) for name in known if name.startswith("prsm_local_")}
        known |= {name: k / size if k < size else math.nan for name, k in sizes.items()}
    return known
