"""Tables for pages, reports and the command line, and all SQL except the SQL of the store.

Modules are imported on first use, because a command needs only two or three of them.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlprobe.views import (
        blind,
        cases,
        changes,
        comparisons,
        crossed,
        estimates,
        export,
        facets,
        failure_table,
        figures,
        filter,
        fitness,
        gate,
        kinds,
        mixed,
        paired_outcomes,
        paired_tests,
        papers,
        pattern_groups,
        patterns,
        plan,
        published,
        quiz,
        records,
        repair,
        rows,
        runs,
        selection,
        showcase,
        so_far,
        sql,
        suspects,
        totals,
        tradeoff,
        versions,
        wall,
    )

__all__ = [
    "blind",
    "cases",
    "changes",
    "comparisons",
    "crossed",
    "estimates",
    "export",
    "facets",
    "failure_table",
    "figures",
    "filter",
    "fitness",
    "gate",
    "kinds",
    "mixed",
    "paired_outcomes",
    "paired_tests",
    "papers",
    "pattern_groups",
    "patterns",
    "plan",
    "published",
    "quiz",
    "records",
    "repair",
    "rows",
    "runs",
    "selection",
    "showcase",
    "so_far",
    "sql",
    "suspects",
    "totals",
    "tradeoff",
    "versions",
    "wall",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return importlib.import_module(f"{__name__}.{name}")
