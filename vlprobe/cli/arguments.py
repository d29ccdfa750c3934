"""Options that several commands share, shell completion of names, and access to the stored results."""

import functools
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem, get_completion_class

from vlprobe import registry, views
from vlprobe.errors import MissingDependency, VlprobeError
from vlprobe.runs.settings import SETTINGS
from vlprobe.storage import errata
from vlprobe.storage.files import parse_path
from vlprobe.types import AVERAGINGS, POOLED
from vlprobe.types.options import Option

if TYPE_CHECKING:
    from vlprobe.storage.store import Store
    from vlprobe.views.runs import QuestionSet

Command = TypeVar("Command", bound=Callable[..., Any])
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

FORMATS = click.Choice(["table", "csv", "json", "markdown", "latex"])
FORMAT = click.option("--format", "how", type=FORMATS, default="table", help="Output format.")
AVERAGING = click.option(
    "--averaging",
    type=click.Choice(AVERAGINGS),
    default=POOLED,
    help="How to average: micro pools all cases, as the pages do; macro averages the "
    "per-caption means, as the papers do.",
)


def kind_option(models: str) -> Callable[[Command], Command]:
    """Build the option for the kind of case. `models` names the models that must have answered the default kind."""
    return click.option(
        "--kind",
        default="",
        help="Kind of case, such as flip, combined or paraphrase. [default: the first kind that "
        f"{models} answered]",
    )


UNIT = click.option(
    "--unit",
    type=click.Choice(["cosine", "spread"]),
    default="cosine",
    help="Unit of scores: cosine, or multiples of the model's spread, which is the standard deviation of its "
    "cosines over mismatched pairs.",
)
METAVARS = {
    **{"item": "ID", "where": "TAG=VALUE", "without": "CASE", "without_tag": "TAG"},
    **{"price": "SENT[/RECEIVED]", "max_cost": "AMOUNT"},
}


def option_group(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Build a decorator that adds the given options to a command, in order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def run_settings(*names: str) -> Callable[[Command], Command]:
    """Build options for run settings, with the defaults, limits and help texts that the Run page has."""
    settings = {setting.name: setting for setting in SETTINGS}
    return option_group(*(_option(settings[name]) for name in names))


def _option(setting: Option) -> Callable[[Command], Command]:
    is_list = setting.type == "list"
    kind = None if setting.open else click.Choice(setting.choices)
    if setting.minimum is not None:
        kind = click.IntRange(setting.minimum, setting.maximum)
    return click.option(
        f"--{setting.name.replace('_', '-')}",
        default=setting.default,
        multiple=is_list,
        type=kind,
        metavar=METAVARS.get(setting.name),
        help=f"{setting.help} Repeatable." if is_list else setting.help,
    )


def probe_options(meaning: str) -> Callable[[Command], Command]:
    """Build the `--option` option, which passes NAME=VALUE pairs to a probe."""
    return click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help=meaning)


def allowances(plugin_meaning: str, api_meaning: str) -> Callable[[Command], Command]:
    """Build the options that allow plug-in code to run and servers to receive requests."""
    return option_group(
        click.option("--plugin", "plugins", multiple=True, metavar="NAME", help=plugin_meaning),
        click.option("--api", "apis", multiple=True, metavar="URL[#MODEL]", help=api_meaning),
    )


SEED = run_settings("seed")
LOADING = run_settings("device", "precision")
COSTS = run_settings("price", "max_cost")
item_choices = run_settings("item", "where", "sample", "limit")
case_choices = option_group(
    click.option(
        "--errata",
        metavar="FILE",
        help="Exclude cases whose label is rejected in FILE, a file written by `vlprobe errata "
        "export`.",
    ),
    run_settings("without_tag", "without"),
)


def rejected_labels(path: str | None) -> tuple[str, ...]:
    """Return the digests of the questions that an errata file rejects. Raises InvalidInput."""
    return tuple(sorted(errata.rejected(errata.read(parse_path(path))))) if path else ()


def parse_pairs(pairs: Sequence[str]) -> dict[str, object]:
    """Parse `name=value` pairs into options. A value with commas becomes a list. The probe converts values to
    types.
    """
    options: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(
                f"'{pair}' does not have the form NAME=VALUE", param_hint="--option"
            )
        if name in options:
            raise click.BadParameter(
                f"'{name}' is set more than once. Set it once; separate several values with commas",
                param_hint="--option",
            )
        options[name] = value.split(",") if "," in value else value
    return options


def cache_store(ctx: click.Context) -> "Store":
    """Open the cache given on the command line, without the bundled results."""
    from vlprobe.storage.store import DEFAULT, Store

    return Store(ctx.obj or DEFAULT)


def results_store(ctx: click.Context) -> "Store":
    """Open the cache given on the command line, combined with the bundled results."""
    from vlprobe.storage import shipped
    from vlprobe.storage.store import DEFAULT

    return shipped.opened(ctx.obj or DEFAULT)


def pass_results(command: Command) -> Command:
    """Decorate a command so that it receives a snapshot of the `results_store` as its first argument."""

    @click.pass_context
    @functools.wraps(command)
    def with_store(ctx: click.Context, *arguments: Any, **options: Any) -> Any:
        return command(results_store(ctx).snapshot(), *arguments, **options)

    return cast(Command, with_store)


def question_set_of(store: "Store", key: str) -> "QuestionSet":
    """Find a question set by its key, or by the key or the model name of one of its runs (see `find_run`).

    Raises NotFound or InvalidInput.
    """
    from vlprobe.render.model_lookup import find_run

    rows = views.runs.question_set_rows(store)
    matching = [row.case_key for row in rows if key and row.case_key.startswith(key)]
    case_key = matching[0] if len(matching) == 1 else find_run(store, key)["case_key"]
    return views.runs.question_set(store, case_key)


def question_sets_of(store: "Store", keys: Sequence[str]) -> "list[QuestionSet]":
    """Find several question sets as `question_set_of` does, each only once."""
    question_sets = (question_set_of(store, key) for key in keys)
    return list({question_set.key: question_set for question_set in question_sets}.values())


def loadable_names(ctx: click.Context, names: Sequence[str]) -> list[str]:
    """Replace display names of stored models with names that the models can be loaded by. Names with a model-family
    prefix are returned unchanged.

    Raises:
        InvalidInput: several stored models have the same display name.
    """
    from vlprobe.render.model_lookup import find_model

    families = registry.families("models")
    return [
        name if name.partition(":")[0] in families else find_model(results_store(ctx), name)
        for name in names
    ]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a shell script that enables tab completion for vlprobe.

    For bash, add this line to ~/.bashrc: eval "$(vlprobe completion bash)". For zsh, add the same line with zsh
    instead of bash to ~/.zshrc. For fish, run: vlprobe completion fish | source
    """
    kind = get_completion_class(shell)
    assert kind is not None  # click has one for each choice
    click.echo(kind(ctx.find_root().command, {}, "vlprobe", "_VLPROBE_COMPLETE").source())


def complete_names(collection: str) -> Completer:
    """Build a shell completer for model, dataset or probe names. It reads only the metadata of plug-ins."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:

        names = registry.names(collection)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    return complete


def complete_runs(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete keys of stored runs and names of models with runs. Returns nothing if the results cannot be read."""
    from vlprobe.storage import shipped
    from vlprobe.storage.store import DEFAULT

    cache = ctx.find_root().params.get("cache") or os.environ.get("VLPROBE_CACHE") or DEFAULT
    try:
        manifests = shipped.opened(cache).runs()
    except VlprobeError:
        return []
    runs = {manifest["key"]: manifest["run"] for manifest in manifests}
    keys = [
        CompletionItem(key, help=f"{run['model']}, {run['probe']}") for key, run in runs.items()
    ]
    models = dict.fromkeys(run["model"] for run in runs.values())
    names = [*keys, *map(CompletionItem, models)]
    return [name for name in names if name.value.startswith(incomplete)]


def require(plugins: Sequence[str], urls: Sequence[str]) -> None:
    """Import the plug-ins given with `--plugin`, and allow this process and its child processes to use them and
    to send requests to the servers given with `--api`. Raises NotFound or InvalidInput if one cannot be used.
    """
    if plugins or urls:
        from vlprobe.registry import endpoints

        for name in plugins:
            registry.require_plugin(name)
        for url in urls:
            endpoints.allow(endpoints.parse(url))


def require_cluster(address: str) -> None:
    """Allow child processes to use the Ray cluster given with `--ray`, if any.

    Raises MissingDependency if Ray is not installed, and InvalidInput unless the address is HOST:PORT.
    """
    if address:
        from vlprobe.runs import ray_cluster

        if find_spec("ray") is None:
            raise MissingDependency("--ray", "ray", "'vlprobe[scale]'")
        ray_cluster.allow(address, accepts_local=False)


def typed(*values: object) -> None:
    """Allow this process to use the plug-ins and servers that a user named in the arguments of a command."""
    for value in values:
        names = value if isinstance(value, list | tuple) else [value]
        registry.allow_typed(*(name for name in names if isinstance(name, str) and name))
