"""The tables of `vlprobe list`."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import pandas as pd


def names_table(collection: str) -> "pd.DataFrame":
    """What can be typed for models, datasets, probes or rules, and where it is from.

    Of a plug-in that was not named with --plugin, its metadata alone is read; what cannot be used is
    said on stderr.
    """
    import pandas as pd

    from vlprobe import __version__, registry

    usable, problems = registry.installed_plugins(collection)
    providers = {plugin.name: plugin.provider for plugin in usable}
    listed = registry.names(collection)
    prefixes = {name.partition(":")[0] for name in listed}
    listed += [name for name in providers if name not in prefixes]
    origin = f"vlprobe {__version__}"
    rows = [(name, _origin(name, providers, origin)) for name in listed]
    for line in problems:
        click.echo(f"Left out: {line}", err=True)
    return pd.DataFrame(rows, columns=pd.Index([collection.removesuffix("s"), "from"]))


def _origin(name: str, providers: dict[str, str], origin: str) -> str:
    return "a file" if name.startswith("py:") else providers.get(name.partition(":")[0], origin)


def metrics_table() -> "pd.DataFrame":
    """The metrics of all probes, with unit, direction, chance and source."""
    import pandas as pd

    from vlprobe import registry, views

    rows = [
        (
            metric.name,
            probe,
            metric.unit,
            metric.direction,
            metric.chance,
            metric.source,
            metric.help,
        )
        for probe in registry.names("probes")
        for metric in views.runs.metrics(probe).values()
    ]
    columns = ["metric", "probe", "unit", "better", "chance", "source", "meaning"]
    return pd.DataFrame(rows, columns=pd.Index(columns))
