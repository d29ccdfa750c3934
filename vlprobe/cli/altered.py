"""`vlprobe perturb --probe rococo`: altered captions and mixed pictures as files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from vlprobe.cli.output import Bar, parse_pairs
from vlprobe.cli.plugins import typed


def write_altered(
    ctx: click.Context,
    dataset: str,
    folder: Path | None,
    options: Sequence[str],
    seed: int,
    choices: Mapping[str, Any],
) -> None:
    """Write the altered captions and pictures into the folder, and report on stderr what was written and skipped.

    Args:
        ctx: The context of the command, with the cache.
        dataset: The name of the dataset.
        folder: OUT; None if it was not given, which is rejected.
        options: The options of the probe, as NAME=VALUE.
        seed: The seed of the words; the seed of mixed pictures is one of the options.
        choices: The selection of items, by the names of the fields of a request.
    """
    from vlprobe.runs.altered import write
    from vlprobe.runs.request import Request
    from vlprobe.storage.store import DEFAULT, Store

    if folder is None:
        raise click.UsageError("--probe rococo writes many files. Name a folder: DATASET FOLDER.")
    request = Request((), dataset, "rococo", parse_pairs(options), seed, **choices)
    typed(dataset, *request.options.values())
    with Bar() as bar:
        facts = write(request, folder, Store(ctx.obj or DEFAULT), bar)
    for name, file in facts["captions"].items():
        left_out = [f"{count:,} left out: {reason}" for reason, count in file["left_out"].items()]
        click.echo("; ".join([f"{name}: {file['pictures']:,} pictures", *left_out]), err=True)
    for name, count in facts["pictures"].items():
        click.echo(f"{name}/: {count:,} mixed pictures", err=True)
    for name in facts["read_as"]:
        click.echo(name)
