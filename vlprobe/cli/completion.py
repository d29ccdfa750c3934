"""Completion of commands in a shell, by click: names of commands and options, runs, models, datasets and
probes.
"""

import os
from collections.abc import Callable

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS = ("bash", "zsh", "fish")
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what a shell sources to complete vlprobe's commands.

    bash, in ~/.bashrc: eval "$(vlprobe completion bash)"; zsh likewise; fish: vlprobe completion fish | source
    """
    kind = get_completion_class(shell)
    assert kind is not None  # one of SHELLS, which click has
    click.echo(kind(ctx.find_root().command, {}, "vlprobe", "_VLPROBE_COMPLETE").source())


def complete_names(collection: str) -> Completer:
    """Complete names in the registry; only the metadata of plug-ins is read.

    Args:
        collection: models, datasets or probes.
    """

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from vlprobe import registry

        return [
            CompletionItem(name)
            for name in registry.names(collection)
            if name.startswith(incomplete)
        ]

    return complete


def complete_runs(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete keys of stored runs, each with its model, and names of models that have a run; return nothing if
    results cannot be read.
    """
    from vlprobe.errors import VlprobeError
    from vlprobe.storage import shipped
    from vlprobe.storage.store import DEFAULT

    cache = ctx.find_root().params.get("cache") or os.environ.get("VLPROBE_CACHE") or DEFAULT
    try:
        manifests = shipped.opened(cache).runs()
    except VlprobeError:
        return []
    models = dict.fromkeys(manifest["run"]["model"] for manifest in manifests)
    keys = [
        CompletionItem(
            manifest["key"], help=f"{manifest['run']['model']}, {manifest['run']['probe']}"
        )
        for manifest in manifests
    ]
    names = [*keys, *(CompletionItem(model) for model in models)]
    return [name for name in names if name.value.startswith(incomplete)]
