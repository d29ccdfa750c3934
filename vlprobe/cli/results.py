"""The results that commands show."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from vlprobe.storage.store import Store


def results_store(ctx: click.Context) -> "Store":
    """Open the results in the cache that the command line names, with the bundled results below them."""
    from vlprobe.storage import shipped
    from vlprobe.storage.store import DEFAULT

    return shipped.opened(ctx.obj or DEFAULT)


def loadable_names(ctx: click.Context, names: Sequence[str]) -> list[str]:
    """Return names that models are loaded by: a name without a family of models in front may be
    the display name of a stored model.

    Raises:
        InvalidInput: Several stored models have this display name.
    """
    from vlprobe import registry
    from vlprobe.render.model_lookup import find_model

    families = registry.families("models")
    return [
        name if name.partition(":")[0] in families else find_model(results_store(ctx), name)
        for name in names
    ]
