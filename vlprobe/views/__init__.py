"""Tables for pages, reports and the command line, and all SQL except the SQL of the store.

Submodules are imported on first use, because a command needs only two or three of them.
"""

# ruff: noqa: F401 - the imports are for the type checker

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlprobe.views import (
        cases,
        causes,
        estimates,
        export,
        facets,
        figures,
        filter,
        fitness,
        gate,
        leaderboard,
        mixed,
        named_slices,
        paired_outcomes,
        paired_tests,
        papers,
        pattern_groups,
        patterns,
        plan,
        points,
        progress,
        published,
        quiz,
        records,
        repair,
        rows,
        runs,
        showcase,
        sql,
        suspects,
        tables,
        totals,
        tradeoff,
        training_steps,
        wall,
    )


def __getattr__(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'") from None
