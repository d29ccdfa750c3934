"""The tables of VISLA."""

from collections.abc import Sequence

from vlprobe.views.paper_tables.columns import Column, PaperTable

_ABOUT = "Their data: VISLA, 973 generic and 640 spatial triplets."
_I2T, _T2T = (
    (title, f"{kind}_accuracy", kind, f"{kind}_accuracy")
    for kind, title in (("i2t", "Image to text"), ("t2t", "Text to text"))
)
_PAIRS_OF_TEXTS, _PAIRS_OF_PICTURES = (
    tuple(
        (title, f"{kind}_{name}", kind, name)
        for name, title in (("p1_n", "P1-N"), ("p2_n", "P2-N"))
    )
    for kind in ("t2t", "i2t")
)


def _visla(
    *columns: tuple[str, str, str, str], subsets: Sequence[str] = ("generic", "spatial")
) -> tuple[Column, ...]:
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
        for subset in subsets
        for title, metric, split, published_metric in columns
    )


TABLES = (
    PaperTable(4, "Models that see", _ABOUT, _visla(_T2T, _I2T)),
    PaperTable(2, "Text encoders", _ABOUT, _visla(_T2T)),
    PaperTable(3, "Text encoders, by pair", _ABOUT, _visla(*_PAIRS_OF_TEXTS)),
    PaperTable(5, "Text encoders, by pair (appendix)", _ABOUT, _visla(*_PAIRS_OF_TEXTS)),
    PaperTable(7, "The CLIP family", _ABOUT, _visla(_T2T, _I2T)),
    PaperTable(
        8,
        "Models that see, generic, by pair",
        _ABOUT,
        _visla(*_PAIRS_OF_PICTURES, _I2T, _T2T, subsets=("generic",)),
    ),
    PaperTable(
        9,
        "Models that see, spatial, by pair",
        _ABOUT,
        _visla(*_PAIRS_OF_PICTURES, _I2T, _T2T, subsets=("spatial",)),
    ),
)
