"""Commands that prepare a run: write edits and questions for a dataset, audit the dataset, and check a model."""

import datetime
import functools
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from vlprobe import __version__, registry
from vlprobe.cli.arguments import (
    COSTS,
    FORMAT,
    FORMATS,
    LOADING,
    SEED,
    cache_store,
    case_choices,
    complete_names,
    item_choices,
    loadable_names,
    parse_pairs,
    probe_options,
    rejected_labels,
    typed,
)
from vlprobe.cli.output import ProgressBar, inform, print_rows, print_table, text_output
from vlprobe.errors import NotFound
from vlprobe.runs.request import Request
from vlprobe.types import Item


@click.command()
@click.argument("dataset")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--probe",
    type=click.Choice(["lgip", "rococo"]),
    default="lgip",
    help="Probe whose edits to write; rococo writes altered captions and mixed pictures to FOLDER.",
)
@probe_options("Set an option of the rococo probe, as in `vlprobe run`; repeatable.")
@click.option(
    "--rules",
    default="strict",
    help="Rules that make the edits: strict, paper, or the name of a plug-in.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    help="Kind of edit to write; repeatable. [default: paraphrase, flip and combined]",
)
@SEED
@item_choices
@click.option(
    "--format",
    "how",
    type=click.Choice(["lgip", "edits"]),
    default="lgip",
    help="Format of the lines: lgip has one picture per line, edits has one edit per line.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file instead of stdout.",
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
    """Write the edited captions of DATASET as JSON lines, without running a model.

    The lgip format follows the paper's appendix and has one picture per line. The edits format has one edit per line,
    along with its rule; pass such a file to any probe with --option edits=FILE.

    With --probe rococo, FOLDER receives one file per policy in the layout that RoCOCO was released in, which the
    dataset rococo:FILE reads, and one folder of mixed pictures per strength and seed.
    """
    if probe == "rococo":
        request = Request((), dataset, probe, parse_pairs(options), seed, **choices)
        write_altered(ctx, folder, request)
        return
    if folder is not None or options:
        raise click.UsageError(
            "FOLDER and --option require --probe rococo. To write LGIP edits, use --output FILE."
        )

    from vlprobe.datasets.languages import foreign_captions
    from vlprobe.perturb import edits_file, lgip, lgip_format
    from vlprobe.runs.selection import select

    typed(dataset, rules)
    for kind in kinds:
        if kind not in lgip.ALL_KINDS:
            raise NotFound("kind of edit", kind, lgip.ALL_KINDS)
    kinds = kinds or lgip.KINDS
    of_plugin = None if rules in lgip.RULES else registry.load_rules(rules)
    root = cache_store(ctx).root
    items, _ = select(
        registry.load_dataset(dataset, root), Request((), dataset, "", seed=seed, **choices)
    )
    captions = {caption for item in items for caption in item.captions}
    foreign = {} if of_plugin else foreign_captions(captions, root)
    if foreign:
        flipped = lgip.has_tables(rules, kinds)
        inform(
            f"{len(foreign):,} of {len(captions):,} captions are not in English. The rules do "
            "not edit these "
            f"captions{', except for colors and numbers in eight languages' if flipped else ''} "
            "(see docs/limits.md)."
        )
    maker = f"vlprobe {__version__}, rules {rules}, seed {seed}"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    with text_output(output) as handle:
        for item in items:
            lgip_edits = (
                of_plugin.edits(item.captions, item.id, seed, kinds=kinds)
                if of_plugin
                else lgip.edits(
                    item.captions, item.id, rules=rules, seed=seed, kinds=kinds, foreign=foreign
                )
            )
            if how == "lgip":
                name = item.image.name if item.image else ""
                handle.write(lgip_format.line(name, item.captions, lgip_edits) + "\n")
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
    help="Check only the texts. A table can then be checked without its pictures.",
)
@click.option(
    "--blind",
    is_flag=True,
    help="Print how often the true caption can be guessed without the picture, from its length "
    "or by a classifier trained on the words of other captions.",
)
@FORMAT
@click.pass_context
def check(ctx: click.Context, dataset: str, no_pictures: bool, blind: bool, how: str) -> None:
    """Count the defects in DATASET that can make scores unreliable."""
    from vlprobe.datasets import audit

    typed(dataset)
    root = cache_store(ctx).root
    if blind:
        _print_blind(registry.load_dataset(dataset, root).items, how)
        return
    if no_pictures:
        findings = audit.check_texts(dataset, root)
    else:
        findings = audit.check(registry.load_dataset(dataset, root).items, root)
    rows = [(f.name, f.count, f.of, ", ".join(f.examples), f.meaning) for f in findings]
    print_rows("defect count of examples meaning", rows, how)


def _print_blind(items: Sequence[Item], how: str) -> None:
    """Print how accurately the true caption can be guessed without the picture, for all pairs and for each subset."""
    from vlprobe.datasets import audit
    from vlprobe.metrics import blind

    item_of_id = {item.id: item for item in items}
    pairs = []
    for item_id, true, wrong in audit.alterations(items):
        item = item_of_id[item_id]
        picture = str(item.image.path) if item.image else item.unit
        pairs.append(blind.Pair(picture, item.tags.get("subset", ""), true, wrong))
    rows = []
    for row in blind.check_pairs(pairs):
        share = row.accuracy
        numbers = share.value, share.low, share.high, row.n_pairs, row.n_tied, share.n_items
        rows.append((row.subset or "all", row.method, *numbers, blind.METHODS[row.method]))
    print_rows("subset guess accuracy low high pairs tied pictures meaning", rows, how)


@click.command()
@click.argument("model")
@click.option("--dataset", default="demo", help="Dataset to check the model on.")
@LOADING
@click.option(
    "--format",
    "how",
    type=FORMATS,
    default="table",
    help="Format of the checks on stdout; json also contains the description of the model.",
)
@click.pass_context
def doctor(
    ctx: click.Context, model: str, dataset: str, device: str, precision: str, how: str
) -> None:
    """Describe MODEL and check whether its scores can be trusted. Exit with 1 if a check fails, and with 2 on a
    usage error such as an unknown model.
    """
    from vlprobe.models.doctor import examine as doctor_examine
    from vlprobe.views import totals

    typed(model, dataset)
    (model,) = loadable_names(ctx, [model])
    store = cache_store(ctx)
    root = store.root
    name, tried_on = registry.parse_name("models", model), registry.parse_name("datasets", dataset)
    with ProgressBar() as bar:
        name.check()
        tried_on.check()
        loaded = registry.load_model(name, device, precision)
        data = registry.load_dataset(tried_on, root)
        examination = doctor_examine.examine(loaded, data, root, bar.update)
    failed = 1 if any(check.passed is False for check in examination.checks) else 0
    if how == "json":
        content = json.loads(json.dumps(asdict(examination)), parse_constant=lambda name: None)
        click.echo(json.dumps(content, indent=1))
        ctx.exit(failed)
    for subject, words in examination.passport.items():
        inform(f"{subject}: {words or '-'}")
    words = {True: "passed", False: "FAILED", None: "not judged"}
    rows = [
        (c.name, words[c.passed], f"{c.value:.3g}", f"{c.limit:.3g}", c.detail)
        for c in examination.checks
    ]
    print_rows("check outcome value limit detail", rows, how)
    for comparison in totals.compare(store, model):
        inform(comparison.sentence)
    for row in examination.erased:
        inform(
            f"The model cannot see {row.count} of {row.of} edits of {row.rule}, because of {row.reason}."
        )
    ctx.exit(failed)


def write_altered(ctx: click.Context, folder: Path | None, request: Request) -> None:
    """Write the altered captions and pictures to a folder, and print to stderr what was written and skipped."""
    from vlprobe.runs.altered import write

    if folder is None:
        raise click.UsageError(
            "--probe rococo writes several files, so it needs an output folder. Run: "
            "vlprobe perturb DATASET FOLDER"
        )
    typed(request.dataset, *request.options.values())
    with ProgressBar() as bar:
        facts = write(request, folder, cache_store(ctx), bar)
    for name, file in facts["captions"].items():
        left_out = [f"{count:,} left out: {reason}" for reason, count in file["left_out"].items()]
        inform("; ".join([f"{name}: {file['pictures']:,} pictures", *left_out]))
    for name, count in facts["pictures"].items():
        inform(f"{name}/: {count:,} mixed pictures")
    for name in facts["read_as"]:
        click.echo(name)


@click.command()
@click.argument("dataset")
@click.option(
    "--model",
    "models",
    multiple=True,
    help="Text encoder to compare; pass two or more. embeddings:FOLDER reads embeddings of the "
    "texts that --texts wrote.",
)
@click.option(
    "--texts",
    "texts_folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the texts to this folder and stop, so that you can embed them with another program.",
)
@click.option(
    "--words",
    "n_words",
    type=click.IntRange(1),
    help="Print the N words that are most often the least influential (RoCOCO, figure 11 b) "
    "instead of the agreement.",
)
@click.option(
    "--all-words",
    is_flag=True,
    help="Consider every word, not just the nouns that a run would edit.",
)
@click.option(
    "--seed",
    default=42,
    help="Seed for breaking ties between nouns with equal influence.",
)
@item_choices
@FORMAT
@click.pass_context
def influence(
    ctx: click.Context,
    dataset: str,
    models: Sequence[str],
    texts_folder: Path | None,
    n_words: int | None,
    all_words: bool,
    seed: int,
    how: str,
    **choices: Any,
) -> None:
    """Measure how often models agree on the least influential noun of each caption in DATASET (RoCOCO, figure 11).

    A noun has little influence if the caption's embedding hardly changes when the noun is deleted. The agreement
    expected by chance is printed next to the measured one.
    """
    from vlprobe.probes.caption_foils import load_voter, text_encoder
    from vlprobe.runs.ask import write_texts
    from vlprobe.runs.consensus import PRINTED, consensus, voting_texts
    from vlprobe.runs.selection import select

    typed(dataset, *models)
    models = loadable_names(ctx, models)
    with ProgressBar() as bar:
        bar.update("Reading the data", 0, 1)
        loaded = registry.load_dataset(dataset, cache_store(ctx).root)
        items, _ = select(loaded, Request((), dataset, "", seed=seed, **choices))
        if texts_folder:
            captions = (caption for item in items for caption in item.captions)
            n_texts = write_texts(texts_folder, voting_texts(captions, all_words))
            inform(
                f"{n_texts:,} texts were written to '{texts_folder}', as texts.parquet and "
                "texts.jsonl. Save their embeddings in the same folder as texts.npy, with one "
                f"row per text. Then pass --model embeddings:{texts_folder}."
            )
            return
        encoders = []
        for name in dict.fromkeys(models):
            bar.update(f"Loading {name}", 0, 1)
            encoders.append(text_encoder(load_voter(name)))
        bar.update("Comparing the models", 0, 1)
        votes = consensus({item.id: item.captions for item in items}, encoders, seed, all_words)
    print_table(votes.source_words.head(n_words) if n_words else votes.agreement, how)
    inform(
        f"Two or more models choose the same word in {votes.share_of_two:.1%} of "
        f"{votes.n_captions:,} captions; the chance level is {votes.chance_of_two:.1%}. "
        f"{votes.n_single:,} of these captions have only one word to choose from. The paper "
        f"reports over {PRINTED:.0%} for four models on COCO."
    )


@click.command()
@click.argument("dataset")
@click.argument("output", type=click.Path(path_type=Path, file_okay=False))
@click.option("--probe", default="lgip", help="Probe whose questions to write.")
@probe_options("Set an option of the probe, as in `vlprobe run`; repeatable.")
@SEED
@item_choices
@case_choices
@click.option("--copy", "copies", is_flag=True, help="Also copy all pictures into OUTPUT.")
@click.pass_context
def ask(
    ctx: click.Context,
    dataset: str,
    output: Path,
    probe: str,
    options: Sequence[str],
    seed: int,
    copies: bool,
    **choices: Any,
) -> None:
    """Write a probe's questions about DATASET to the folder OUTPUT, so that a model outside vlprobe can answer
    them.

    To import the answers, run the probe on a model named embeddings:OUTPUT, scores:OUTPUT or scores:FILE.
    """
    from vlprobe.runs.ask import ask as write

    choices["errata"] = rejected_labels(choices["errata"])
    request = Request((), dataset, probe, parse_pairs(options), seed, **choices)
    typed(dataset, probe, *request.options.values())
    with ProgressBar() as bar:
        facts = write(request, output, cache_store(ctx), bar, copies)
    inform(
        f"{output}: {facts['n_pictures']:,} pictures, {facts['n_texts']:,} texts, "
        f"{facts['n_cases']:,} cases; {facts['n_pairs']:,} scores are needed "
        f"({facts['needs']})"
    )


@click.command()
@click.argument("file", metavar="FILE[@FOLDER][+OPTION...]")
@click.option(
    "--model",
    required=True,
    shell_complete=complete_names("models"),
    help="Model that scores the pairs.",
)
@click.option(
    "--out",
    "output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="New file to write, in the same format as FILE. [default: FILE-scored]",
)
@click.option("--column", default="score", help="Name of the new column.")
@LOADING
@COSTS
@click.pass_context
def score(
    ctx: click.Context,
    file: str,
    model: str,
    output: Path | None,
    column: str,
    device: str,
    precision: str,
    price: str,
    max_cost: str,
) -> None:
    """Score how well the picture and the text in each row of a table match, and add the scores as a column.

    FILE is a .csv, .tsv, .jsonl or .parquet file; FOLDER contains its pictures, and is the folder of FILE by
    default. A Parquet file can contain the pictures itself. Add +image=COLUMN+caption=COLUMN to choose the columns,
    and +unpictured to leave the score empty if a picture is missing. To resume after an interruption, repeat the
    command.
    """
    from vlprobe.models.endpoint.budget import Budget
    from vlprobe.runs import pair_scores

    typed(model)
    (name,) = loadable_names(ctx, [model])
    registry.check_name("models", name)
    load = functools.partial(registry.load_model, name, device, precision)
    budget, store = Budget(price, max_cost), cache_store(ctx)
    with ProgressBar() as bar:
        scored_file, scores = pair_scores.score_table(
            file, load, output, column, store, bar, budget
        )
    n_unknown = sum(scores != scores)
    unknown = f", {n_unknown:,} of them unknown" if n_unknown else ""
    inform(f"{scored_file}: {len(scores):,} scores{unknown}")
