"""The tables of EqBen and EqSim."""

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
)
