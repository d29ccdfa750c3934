"""The tables of `vlprobe list`."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import pandas as pd

    from vlprobe.storage.store import Store

PAPERS = ["lgip", "rococo", "eqben", "visla", "prsm"]  # as `views.published.SOURCES` has them


def names_table(collection: str) -> "pd.DataFrame":
    """List the names that can be typed for models, datasets, probes or rules, with their origin.

    For a plug-in that was not named with --plugin only its metadata is read; unusable ones are reported on stderr.
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
    """Return the metrics of all probes, with unit, direction, chance and source."""
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


def published_table(store: "Store", paper: str, table: int, mark: str, key: str) -> "pd.DataFrame":
    """Return the printed cells of the papers, with the numbers of one run next to those of its paper.

    Args:
        store: The store of the results.
        paper: Only this paper; "": all.
        table: Only the table of this number; 0: all.
        mark: Only cells with this mark of `views.papers.MARKS`; "": all.
        key: The key of the run; "": the newest one of each paper's probe.

    Raises:
        NotFound: no run has this key.
        InvalidInput: the run belongs to another paper's probe.
    """
    import pandas as pd

    from vlprobe import views
    from vlprobe.errors import InvalidInput
    from vlprobe.render.model_lookup import find_run
    from vlprobe.views.published import SOURCES

    manifest = find_run(store, key) if key else None
    names = [paper] if paper else list(SOURCES)
    if manifest:
        probe = manifest["run"]["probe"]
        names = [name for name in views.papers.papers_of(probe) if paper in ("", name)]
        if not names:
            raise InvalidInput(
                f"Run {key} is of the probe '{probe}', which fills no cell of {paper or 'a paper'}. Expected a run of "
                f"{', '.join(views.papers.probes_of(paper) or SOURCES)}: `vlprobe show` has their keys."
            )
    by_paper = []
    for name in names:
        newest = manifest or _newest_run(store, name)
        if newest is None:
            by_paper.append(views.papers.cells(name).assign(run_of=""))
            continue
        model = newest["run"]["model"]
        question_set = views.runs.question_set(
            store, newest["case_key"], version_of=newest["key"], model=model
        )
        of_run = views.papers.beside(store, question_set, model, name)
        by_paper.append(of_run.assign(run_of=f"{model} on {newest['run']['dataset']}"))
    cells = pd.concat(by_paper, ignore_index=True)
    cells = cells.loc[cells["table"] == table] if table else cells
    return cells.loc[cells["mark"] == mark] if mark else cells


def _newest_run(store: "Store", probe: str) -> dict | None:
    """Return the manifest of the newest run of a probe; None if there is none."""
    from vlprobe import views

    manifests = views.runs.known_manifests(store)
    return next((each for each in reversed(manifests) if each["run"]["probe"] == probe), None)
