"""The tables of LGIP."""

from vlprobe.views.paper_tables.columns import Column, PaperTable

TABLES = (
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
)
