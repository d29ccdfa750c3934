"""The tables of EqBen and EqSim."""

from dataclasses import replace

from vlprobe.metrics.series import BOUNDARY_THRESHOLDS
from vlprobe.views.paper_tables.columns import ALL_SLICES, Column, PaperTable

_SCORES = {"text_score": "Text", "image_score": "Image", "group_score": "Group"}
_SUBSETS = {
    "eq_youcook2": ("YouCook2", "youcook2"),
    "eq_gebc": ("GEBC", "gebc"),
    "eq_ag": ("AG", "ag"),
    "eq_kubric": ("Kubric", "kubric"),
    "eq_sd": ("SD", "sd"),
}
_AVERAGE = Column("All subsets", "Average", "average_score", ("eqben", "all", "avg"))
_EQBEN = "Their pictures: frames of YouCook2, GEBC and Action Genome, scenes of Kubric, edits by Stable Diffusion."

_TUNED = (
    "Rows are FIBER, fine-tuned with and without EqSim; `vlprobe train` makes such models. "
    "The average counts each subset of a run alike."
)


def _group(
    title: str,
    dataset: str,
    names: tuple[str, ...],
    split: str = "all",
    heading: str = "Group score",
) -> Column:
    """A column of group scores: the slice of a run that has one of the names."""
    published = (dataset, split, "group_score")
    return Column(heading, title, "group_score", published, (), "subtype", names)


_AG, _YOUCOOK2, _GEBC, _SD, _WINOGROUND = (
    _group("AG", "eq_ag", ("ag",)),
    _group("YouCook2", "eq_youcook2", ("youcook2",)),
    _group("GEBC", "eq_gebc", ("gebc",)),
    _group("SD", "eq_sd", ("sd",)),
    _group("Winoground", "winoground", ("winoground",)),
)
_KUBRIC = tuple(
    _group(title, "eq_kubric", names, split, "Group score, Kubric")
    for title, split, names in (
        ("Location", "location", ("location",)),
        ("Counting", "counting", ("counting", "number")),
        ("Attribute", "attribute", ("attribute", "color")),
    )
)
_ROW_MEAN = Column(
    "", "Average", "group_score", ("row_mean", "all", "avg"), (), "subtype", (ALL_SLICES,)
)
_ORDERS = {
    "matched_12": ("Captions in order", "T1 T2"),
    "matched_21": ("Captions exchanged", "T2 T1"),
}

TABLES = (
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
        tuple(replace(column, group="Group score") for column in _KUBRIC),
    ),
    PaperTable(
        2,
        "Before and after EqSim",
        "Their pictures: Winoground's 400 pairs, and VALSE's pictures with a caption and a foil. The two rates of "
        "VALSE take models that give probabilities. Its third part, Flickr30K, stands on Retrieval.",
        (
            *(
                Column("Winoground", title, name, ("winoground", "all", name))
                for name, title in _SCORES.items()
            ),
            Column("VALSE", "min(p_c, p_f)", "weaker_side", ("valse", "all", "min_pc_pf")),
            Column("VALSE", "acc", "judged_rightly", ("valse", "all", "acc")),
        ),
    ),
    PaperTable(
        5,
        "EqSim on more data",
        f"{_EQBEN} {_TUNED}",
        (_AG, _YOUCOOK2, _GEBC, _WINOGROUND, _ROW_MEAN),
    ),
    PaperTable(
        6,
        "EqSim's parts",
        f"Their pictures: scenes of Kubric, and Winoground. {_TUNED} `--eqsim` and `hardneg` are its variants.",
        (*_KUBRIC, _WINOGROUND, _ROW_MEAN),
    ),
    PaperTable(
        7,
        "A generative model",
        f"{_EQBEN} 20 samples of each subset (60 of Kubric), both pictures side by side, free answers "
        "read by people; here the probability of the answer's first word decides.",
        tuple(
            Column(
                heading,
                title,
                metric,
                (dataset, split, "group_accuracy"),
                breakdown="subtype",
                slices=(subset,),
            )
            for metric, (heading, split) in _ORDERS.items()
            for dataset, (title, subset) in _SUBSETS.items()
        ),
    ),
    PaperTable(
        9,
        "EqSim on more data, each subset",
        f"{_EQBEN} {_TUNED}",
        (_AG, _YOUCOOK2, _GEBC, *_KUBRIC, _SD, _WINOGROUND, _ROW_MEAN),
    ),
    PaperTable(
        10,
        "EqSim's parts, each subset",
        f"{_EQBEN} {_TUNED} `--eqsim` and `hardneg` are its variants.",
        (_AG, _YOUCOOK2, _GEBC, *_KUBRIC, _SD, _WINOGROUND, _ROW_MEAN),
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
)


def _retrieval(dataset: str) -> tuple[Column, ...]:
    """Recall in a clean gallery, in the form of tables 2 and 8."""
    directions = {"t2i": "Find the picture", "i2t": "Find the caption"}
    return tuple(
        Column(heading, f"R@{k}", f"{kind}_r{k}", (dataset, "all", f"{kind}_r{k}"))
        for kind, heading in directions.items()
        for k in (1, 5, 10)
    )


SERIES_TABLES = (
    PaperTable(
        12,
        "Boundaries found",
        "Their videos: presumably GEBC's, five frames a second. Rows are FIBER fine-tuned on these data, by analogy: "
        "the table names no model. A boundary is nearer in a short video.",
        (
            *(
                Column(
                    "Within seconds",
                    f"{seconds:g}",
                    f"boundary_within_{seconds:g}",
                    ("video_boundary_grounding", f"{seconds:.1f}s", "boundary_accuracy"),
                )
                for seconds in BOUNDARY_THRESHOLDS
            ),
            Column("", "Average", "boundary_accuracy", ("row_mean", "all", "avg")),
        ),
        paper="eqben",
    ),
)
RETRIEVAL_TABLES = (
    PaperTable(
        2,
        "EqSim and recall (EqBen), Flickr30K",
        "Their pictures: the 1,000 of Flickr30K's test split. Your recall is that in the clean gallery.",
        _retrieval("flickr30k"),
        paper="eqben",
    ),
    PaperTable(
        8,
        "EqSim and recall (EqBen), COCO",
        "Their pictures: the 5,000 of COCO's test split. Your recall is that in the clean gallery.",
        _retrieval("coco_5k"),
        paper="eqben",
    ),
)
