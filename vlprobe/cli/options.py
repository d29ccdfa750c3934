"""`vlprobe options`: the values of `--option NAME=VALUE` for a probe."""

from typing import TYPE_CHECKING

import click

from vlprobe.cli.completion import complete_names
from vlprobe.cli.output import FORMATS, print_table
from vlprobe.cli.plugins import typed

if TYPE_CHECKING:
    from vlprobe.types.options import Option


@click.command()
@click.argument("probe", shell_complete=complete_names("probes"))
@click.option("--format", "how", type=FORMATS, default="table")
def options(probe: str, how: str) -> None:
    """List what `--option NAME=VALUE` can say to PROBE."""
    import pandas as pd

    from vlprobe import registry

    typed(probe)
    rows = [
        (
            option.name,
            option.type,
            _typed_text(option.default),
            _values(option),
            " ".join(option.help.split()),
        )
        for option in registry.load_probe(probe).options
    ]
    columns = ["option", "type", "default", "values", "meaning"]
    table = pd.DataFrame(rows, columns=pd.Index(columns))
    print_table(table, how, f"Probe '{probe}' has no options.")


def _typed_text(value: object) -> str:
    """Format a value as it is typed."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _values(option: "Option") -> str:
    """Describe the values of an option."""
    texts = [_typed_text(option.choices)] if option.choices else []
    if option.pattern:
        texts.append(option.expected)
    if option.minimum is not None or option.maximum is not None:
        low, high = (
            "" if bound is None else str(bound) for bound in (option.minimum, option.maximum)
        )
        texts.append(
            f"{low} to {high}" if low and high else f"{low} or more" if low else f"{high} or less"
        )
    if option.off_value is not None:
        texts.append(f"{option.off_value}: off")
    if option.refers_to:
        texts.append(f"a {option.refers_to}")
    return "; ".join(filter(None, texts))
