"""The results that commands show."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from vlprobe.storage.store import Store


def results_store(ctx: click.Context) -> "Store":
    """One's own results, in the cache that the command line names, and below them those that came with vlprobe."""
    from vlprobe.storage import shipped
    from vlprobe.storage.store import DEFAULT

    return shipped.opened(ctx.obj or DEFAULT)
