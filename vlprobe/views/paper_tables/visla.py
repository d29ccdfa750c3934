"""The tables of VISLA."""

from vlprobe.views.paper_tables.columns import Column, PaperTable


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


TABLES = (
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
)
