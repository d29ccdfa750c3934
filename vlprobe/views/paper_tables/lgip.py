"""The tables of LGIP."""

from collections.abc import Sequence

from vlprobe.views.paper_tables.columns import Column, PaperTable

_ABOUT = "Their pictures: 40,000 of COCO with five captions each. Cosines; means per caption."
_OBJECT, _COLOR, _NUMBER = ("object", "Object"), ("color", "Colour"), ("number", "Number")


def _whole(*columns: tuple[str, str, str]) -> tuple[Column, ...]:
    """Columns of all captions: of each the metric, the split in print and the title."""
    return tuple(Column("", title, name, ("coco", split, name)) for name, split, title in columns)


def _sliced(
    metric: str, breakdown: str, slices: Sequence[tuple[str, str]], group: str = ""
) -> tuple[Column, ...]:
    """A column a slice: of each its name, which is the split in print, and the title."""
    return tuple(
        Column(group, title, metric, ("coco", name, metric), (), breakdown, (name,))
        for name, title in slices
    )


TABLES = (
    PaperTable(
        2,
        "Invariance and sensitivity",
        _ABOUT,
        _whole(
            ("invariance_error", "all", "Invariance error"),
            ("sensitivity_gap", "all", "Sensitivity gap"),
            ("positive_rate", "all", "Positive rate"),
        ),
    ),
    PaperTable(
        3,
        "Reworded and made wrong",
        f"{_ABOUT} The rewording is flipped, and compared with the caption.",
        _whole(
            ("invariance_error", "all", "Invariance error"),
            ("combined_gap", "combined", "Combined gap"),
            ("combined_positive_rate", "combined", "Combined positive rate"),
        ),
    ),
    PaperTable(
        4,
        "Simple and advanced rewordings",
        f"{_ABOUT} Adv % is how much larger the error of advanced rewordings is than that of simple ones. Theirs "
        "count two of nine templates as advanced; with the option tag=marker yours do, too.",
        (
            *_sliced(
                "invariance_error",
                "subtype",
                (("simple", "Error, simple"), ("advanced", "Error, advanced")),
            ),
            Column(
                "",
                "Adv %",
                "invariance_error",
                ("coco", "advanced", "invariance_increase"),
                (),
                "subtype",
                ("advanced",),
                relative_to=("simple",),
            ),
        ),
    ),
    PaperTable(
        5,
        "Weak, medium and strong flips",
        f"{_ABOUT} Strength is that which the model itself sees; quarters of its own flips are weak and "
        "strong, as we read the paper's global quantiles; quarters of the printed rates do not give those of "
        "table 2.",
        _sliced(
            "positive_rate",
            "strength_bin",
            (("weak", "Weak"), ("medium", "Medium"), ("strong", "Strong")),
            "Positive rate",
        ),
    ),
    PaperTable(
        6,
        "Positive rate by what is wrong",
        _ABOUT,
        _sliced("positive_rate", "subtype", (_COLOR, _NUMBER, _OBJECT), "Positive rate"),
    ),
    PaperTable(
        7,
        "Gap and positive rate by what is wrong",
        _ABOUT,
        tuple(
            column
            for name, title in (_OBJECT, _COLOR, _NUMBER)
            for metric, words in (("sensitivity_gap", "Gap"), ("positive_rate", "Positive rate"))
            for column in _sliced(metric, "subtype", ((name, words),), title)
        ),
    ),
)
