"""The tables of the papers that can be made again: their columns, and what of a run belongs in
each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

ALL_SLICES = "*"  # each slice of a breakdown, counted alike


@dataclass(frozen=True)
class Column:
    """One column of a paper's table, and what of a run belongs there."""

    group: str  # the heading that it shares with its neighbours
    title: str
    metric: str  # of the probe
    published: tuple[str, str, str]  # dataset, split, metric as published.csv has them
    datasets: tuple[str, ...] = ()  # printed in several datasets' columns: their mean
    breakdown: str = "all"
    slices: tuple[str, ...] = ()  # names of the slice that belongs here; empty: the whole
    # The paper's own file of this column, without its ending: a run over it belongs here, too.
    released: str = ""
    sign: int = 1  # -1: printed the other way round


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper."""

    number: int
    title: str  # in a picker
    about: str  # what its rows were scored on, and how that differs
    columns: tuple[Column, ...]
    # Where rows are not models: start of the split, name.
    rows: Mapping[str, str] = field(default_factory=dict)


def _rococo(kind: str, policies: Mapping[str, tuple[str, str]]) -> tuple[Column, ...]:
    """RoCOCO's columns: of each policy, by its name in published.csv, the title and the slice of a
    run.
    """
    columns = [Column("Clean gallery", "R@1", f"{kind}_r1", ("coco_5k", "clean", f"{kind}_r1"))]
    for split, (title, slice_name) in policies.items():
        for label, metric, sign in (
            ("R@1", "r1_new", 1),
            ("Drop", "drop_rate", -1),
            ("RSMS", "rsms", 1),
        ):
            columns.append(
                Column(
                    title,
                    label,
                    f"{kind}_{metric}",
                    ("rococo", split, f"{kind}_{metric}"),
                    breakdown="subtype",
                    slices=(slice_name,),
                    released=split if kind == "i2t" else "",
                    sign=sign,
                )
            )
    return tuple(columns)


def _pictures(*lams: float) -> tuple[Column, ...]:
    kinds = [(kind, lam) for kind in ("mix", "patch") for lam in lams]
    return _rococo(
        "t2i",
        {f"{kind}_{lam}": (f"{kind.capitalize()} {lam}", f"{kind}:{lam}") for kind, lam in kinds},
    )


def _visla(*columns: tuple[str, str, str, str]) -> tuple[Column, ...]:
    """VISLA's columns: of each the title, the metric, and split and metric in published.csv."""
    return tuple(
        Column(
            subset.capitalize(),
            title,
            metric,
            (f"visla_{subset}", split, published_metric),
            breakdown="subtype",
            slices=(subset,),
        )
        for subset in ("generic", "spatial")
        for title, metric, split, published_metric in columns
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
                    Column(
                        "All subsets",
                        title,
                        name,
                        ("", "all", name),
                        tuple(_SUBSETS),
                        "subtype",
                        (ALL_SLICES,),
                    )
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
                Column(
                    "Group score",
                    title,
                    "group_score",
                    ("eq_kubric", split, "group_score"),
                    (),
                    "subtype",
                    names,
                )
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
                    Column(heading, title, name, (dataset, "all", name), (), "subtype", (subset,))
                    for dataset, (heading, subset) in _SUBSETS.items()
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
                    breakdown="subtype",
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
