"""`vlprobe verify`: compare the cache with its checksums."""

import click


@click.command()
@click.option(
    "--repair", is_flag=True, help="Remove what is damaged, so that the same runs make it anew."
)
@click.pass_context
def verify(ctx: click.Context, repair: bool) -> None:
    """Compare stored results with their checksums; exit with 1 if something is damaged, with 2 for a mistake.

    One line on stdout for each damage. With --repair they go; then the same `vlprobe run` makes
    them again.
    """
    from vlprobe.runs import thumbnails, verify
    from vlprobe.storage.store import DEFAULT, Store

    store = Store(ctx.obj or DEFAULT)
    if repair:
        store.require_local_writable()
    damages = verify.damages(store)
    for damage in damages:
        click.echo(f"{damage.path}: {damage.why}")
    still = (
        verify.damages(store, again=damages) if repair and damages else []
    )  # without files that were created again in the meantime
    verify.repair(still)
    gone = sum(bool(damage.drop) for damage in still)
    click.echo(thumbnails.summary(thumbnails.usage(store)), err=True)
    if repair:
        thumbnails.clean(store)
    if not damages:
        click.echo("Everything is as it was written.", err=True)
    elif repair:
        click.echo(
            f"{gone} of {len(damages)} removed. The runs that they belong to make them again.",
            err=True,
        )
    else:
        click.echo(
            f"{len(damages)} damaged. `vlprobe verify --repair` removes what can be made again.",
            err=True,
        )
    ctx.exit(1 if damages and not (repair and all(damage.drop for damage in damages)) else 0)
