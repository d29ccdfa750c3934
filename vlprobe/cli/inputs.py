"""The commands for the inputs of a run: the edits and the defects of a dataset, and model checks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from vlprobe.cli.altered import write_altered
from vlprobe.cli.output import FORMATS, Bar, item_choices, print_table, text_output
from vlprobe.cli.plugins import typed
from vlprobe.cli.results import loadable_names


@click.command()
@click.argument("dataset")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--probe",
    type=click.Choice(["lgip", "rococo"]),
    default="lgip",
    show_default=True,
    help="rococo: its altered captions and mixed pictures, into FOLDER.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Of the probe rococo, as for run.",
)
@click.option(
    "--rules", default="strict", show_default=True, help="strict, paper, or a plug-in's name."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    help="Of edits; may come again. [paraphrase, flip and combined]",
)
@click.option("--seed", default=42, show_default=True)
@item_choices
@click.option(
    "--format", "how", type=click.Choice(["lgip", "edits"]), default="lgip", show_default=True
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file instead of stdout."
)
@click.pass_context
def perturb(
    ctx: click.Context,
    dataset: str,
    folder: Path | None,
    probe: str,
    options: Sequence[str],
    rules: str,
    kinds: tuple[str, ...],
    seed: int,
    how: str,
    output: Path | None,
    **choices: Any,
) -> None:
    """Write the edited captions of DATASET as JSON lines, without a model.

    Format lgip is that of the paper's appendix, a picture a line; format edits has an edit a line, with its rule:
    every probe takes it as --option edits=FILE.

    With --probe rococo FOLDER gets a file a policy in the layout in which RoCOCO was released, which the dataset
    rococo:FILE reads, and a folder of mixed pictures a strength and seed.
    """
    if probe == "rococo":
        write_altered(ctx, dataset, folder, options, seed, choices)
        return
    if folder is not None or options:
        raise click.UsageError(
            "FOLDER and --option belong to --probe rococo. LGIP's edits go to --output FILE."
        )
    import datetime

    from vlprobe import __version__, registry
    from vlprobe.datasets.languages import foreign_captions
    from vlprobe.errors import NotFound
    from vlprobe.perturb import edits_file, lgip, lgip_format
    from vlprobe.runs.request import Request
    from vlprobe.runs.selection import select
    from vlprobe.storage.store import DEFAULT, Store

    typed(dataset, rules)
    for kind in kinds:
        if kind not in lgip.OFFERED_KINDS:
            raise NotFound("kind of edit", kind, lgip.OFFERED_KINDS)
    of_plugin = None if rules in lgip.RULES else registry.load_rules(rules)
    loaded = registry.load_dataset(dataset, Store(ctx.obj or DEFAULT).root)
    items, _ = select(loaded, Request((), dataset, "", seed=seed, **choices))
    captions = {caption for item in items for caption in item.captions}
    foreign = set() if of_plugin else foreign_captions(captions, Store(ctx.obj or DEFAULT).root)
    if foreign:
        click.echo(
            f"{len(foreign):,} of {len(captions):,} captions are not in English: rules for English leave "
            "these unedited.",
            err=True,
        )
    maker = f"vlprobe {__version__}, rules {rules}, seed {seed}"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    with text_output(output) as handle:
        for item in items:
            lgip_edits = (
                of_plugin.edits(item.captions, item.id, seed, kinds=kinds or lgip.KINDS)
                if of_plugin
                else lgip.edits(
                    item.captions, item.id, rules=rules, seed=seed, kinds=kinds or lgip.KINDS
                )
            )
            lgip_edits = lgip.in_english(item.captions, lgip_edits, foreign)
            if how == "lgip":
                handle.write(
                    lgip_format.line(
                        item.image.name if item.image else "", item.captions, lgip_edits
                    )
                    + "\n"
                )
                continue
            for caption, edits in zip(item.captions, lgip_edits.edits, strict=True):
                for text, edit in edits:
                    row = edits_file.line(item.id, caption, text, edit, maker, today)
                    handle.write(row + "\n")


@click.command()
@click.argument("dataset")
@click.option(
    "--no-pictures",
    is_flag=True,
    help="Look at the texts alone; pictures of a table need not be here.",
)
@click.option("--format", "how", type=FORMATS, default="table")
@click.pass_context
def check(ctx: click.Context, dataset: str, no_pictures: bool, how: str) -> None:
    """Count what is wrong with DATASET before you believe a score on it."""
    import pandas as pd

    from vlprobe import registry
    from vlprobe.datasets import audit
    from vlprobe.storage.store import DEFAULT, Store

    typed(dataset)
    root = Store(ctx.obj or DEFAULT).root
    if no_pictures:
        findings = audit.check_texts(dataset, root)
    else:
        findings = audit.check(registry.load_dataset(dataset, root).items, root)
    rows = [(f.name, f.count, f.of, ", ".join(f.examples), f.meaning) for f in findings]
    print_table(pd.DataFrame(rows, columns=["defect", "count", "of", "examples", "meaning"]), how)


@click.command()
@click.argument("model")
@click.option("--dataset", default="demo", show_default=True, help="What the model is tried on.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 or mps.")
@click.option(
    "--precision", type=click.Choice(["fp32", "fp16", "bf16"]), default="fp32", show_default=True
)
@click.option(
    "--format",
    "how",
    type=FORMATS,
    default="table",
    help="table and csv: the checks alone on stdout.",
)
@click.pass_context
def doctor(
    ctx: click.Context, model: str, dataset: str, device: str, precision: str, how: str
) -> None:
    """Report what MODEL is and check whether its numbers can be believed; exit with 1 if a check
    fails, and with 2 for a mistake such as an unknown model.
    """
    import json
    from dataclasses import asdict

    import pandas as pd

    from vlprobe import registry
    from vlprobe.models.doctor import examine as doctor_examine
    from vlprobe.storage.store import DEFAULT, Store
    from vlprobe.views import totals

    typed(model, dataset)
    (model,) = loadable_names(ctx, [model])
    root = Store(ctx.obj or DEFAULT).root
    with Bar() as bar:
        tried_on = registry.load_dataset(dataset, root)
        examination = doctor_examine.examine(
            registry.load_model(model, device, precision), tried_on, root, bar.update
        )
    failed = 1 if any(check.passed is False for check in examination.checks) else 0
    if how == "json":
        click.echo(
            json.dumps(
                json.loads(json.dumps(asdict(examination)), parse_constant=lambda name: None),
                indent=1,
            )
        )
        ctx.exit(failed)
    for subject, words in examination.passport.items():
        click.echo(f"{subject}: {words or '-'}", err=True)
    words = {True: "passed", False: "FAILED", None: "not judged"}
    rows = [
        (c.name, words[c.passed], f"{c.value:.3g}", f"{c.limit:.3g}", c.detail)
        for c in examination.checks
    ]
    print_table(pd.DataFrame(rows, columns=["check", "outcome", "value", "limit", "detail"]), how)
    for comparison in totals.compare(Store(root), model):
        click.echo(comparison.sentence, err=True)
    for row in examination.erased:
        click.echo(
            f"Erased before the model by {row.reason}: {row.rule}, {row.count} of {row.of}",
            err=True,
        )
    ctx.exit(failed)
