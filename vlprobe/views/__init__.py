"""Every table that a page, a report or the command line shows: all SQL but the store's own.

A module is imported when it is first named: a command needs two or three of them.
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
