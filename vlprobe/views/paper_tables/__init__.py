"""The tables of the papers that can be made again, a file a paper."""

from collections.abc import Mapping

from vlprobe.views.paper_tables import eqben, lgip, prsm, rococo, visla
from vlprobe.views.paper_tables.columns import ALL_SLICES, Column, PaperTable

__all__ = ["ALL_SLICES", "TABLES", "Column", "PaperTable", "paper_tables"]

TABLES: Mapping[str, tuple[PaperTable, ...]] = {
    "lgip": lgip.TABLES,
    "rococo": (*rococo.TABLES, *eqben.RETRIEVAL_TABLES),
    "eqben": eqben.TABLES,
    "visla": visla.TABLES,
    "prsm": prsm.TABLES,
    "series": eqben.SERIES_TABLES,
}


def paper_tables(probe: str) -> tuple[PaperTable, ...]:
    """The tables of the probe's paper that can be made again."""
    return TABLES[probe]
