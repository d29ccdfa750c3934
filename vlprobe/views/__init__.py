"""Every table that a page, a report or the command line shows: all SQL but the store's own."""

from vlprobe.views import (
    cases,
    compare,
    estimates,
    export,
    figures,
    filter,
    leaders,
    paper_tables,
    papers,
    published,
    records,
    repair,
    rows,
    runs,
    tradeoff,
    versions,
)

__all__ = [
    "cases",
    "compare",
    "estimates",
    "export",
    "figures",
    "filter",
    "leaders",
    "paper_tables",
    "papers",
    "published",
    "records",
    "repair",
    "rows",
    "runs",
    "tradeoff",
    "versions",
]
