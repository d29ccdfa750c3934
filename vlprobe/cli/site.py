"""The command that writes question sets as web pages that need no Python."""

from collections.abc import Sequence
from pathlib import Path

import click

from vlprobe.cli.results import results_store
from vlprobe.errors import InvalidInput


@click.command()
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--set",
    "keys",
    multiple=True,
    metavar="KEY",
    help="A question set, or a run of it; several times: these, the first shown first [the most complete].",
)
@click.option(
    "--cases",
    default=60,
    show_default=True,
    type=click.IntRange(1, 5000),
    help="Cases of each model and kind that go out for each outcome, the worst first.",
)
@click.option(
    "--max-size",
    default=50.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="MB",
    help="Larger sites are not written.",
)
@click.option(
    "--with-notes", is_flag=True, help="Tags, notes and where files lie on this machine go out too."
)
@click.option(
    "--i-may-publish",
    is_flag=True,
    help="Pictures that vlprobe did not draw go out too: you may publish them.",
)
@click.option("--dry-run", is_flag=True, help="Only say how large it would be.")
@click.pass_context
def site(
    ctx: click.Context,
    output: Path,
    keys: Sequence[str],
    cases: int,
    max_size: float,
    with_notes: bool,
    i_may_publish: bool,
    dry_run: bool,
) -> None:
    """Write question sets into the new folder OUTPUT as web pages that open from a file or any web server.

    Results that come with vlprobe can be named, too, and are taken where nothing else is stored.
    """
    from vlprobe import views
    from vlprobe.surfaces.site import bundle
    from vlprobe.surfaces.site.subject import Limits

    store = results_store(ctx)
    bundle.check_output(output)
    stored = views.runs.question_sets(store)["case_key"].tolist()
    if not stored:
        raise InvalidInput(
            "Nothing is stored yet, so there is nothing to publish. Run a probe first: vlprobe run --help."
        )
    case_keys = []
    for key in keys or stored[:1]:
        matching = [case_key for case_key in stored if key and case_key.startswith(key)]
        case_keys.append(matching[0] if len(matching) == 1 else store.find(key)["case_key"])
    question_sets = [views.runs.question_set(store, key) for key in dict.fromkeys(case_keys)]
    contents = bundle.site(store, question_sets, Limits(cases, with_notes, i_may_publish))
    click.echo(
        f"{output}: {len(contents.files)} files, {contents.n_bytes / 1e6:.1f} MB; {contents.n_cases:,} cases, "
        f"{contents.n_pictures:,} pictures",
        err=True,
    )
    if contents.n_held_back:
        click.echo(
            f"{contents.n_held_back:,} pictures stay here: vlprobe did not draw them, so that they may be under "
            "others' rights. With --i-may-publish they go out.",
            err=True,
        )
    bundle.check_size(contents, output, int(max_size * 1e6))
    if not dry_run:
        bundle.write(contents, output)
