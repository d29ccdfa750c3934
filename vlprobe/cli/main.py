"""Command-line interface, with one command per public function. Data goes to stdout, progress and messages to
stderr.

Heavy modules are imported inside the commands, so that `vlprobe --help` answers at once.
"""

import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from vlprobe import __version__
from vlprobe.cli.arguments import allowances, completion, require
from vlprobe.cli.compare import compare, first_lists, gate, plan
from vlprobe.cli.edits import edits, sheet, verdicts
from vlprobe.cli.inputs import ask, check, doctor, influence, perturb, score
from vlprobe.cli.listing import jobs, list_, options
from vlprobe.cli.output import inform
from vlprobe.cli.report import export, figure, report, site
from vlprobe.cli.results import failures, leaderboard, named_slices, show, sql, steps
from vlprobe.cli.run import run
from vlprobe.cli.serve import dashboard, mcp
from vlprobe.cli.stored import pictures, remove, rename, verify
from vlprobe.cli.suspects import errata, suspects
from vlprobe.cli.train import train
from vlprobe.errors import VlprobeError, describe_shortage, plugin_errors
from vlprobe.storage.application import docs_folder

# Errors that may mean full memory or disk, and may be a bug.
SHORTAGES = (MemoryError, OSError, ImportError, RuntimeError)
# Commands that exit with 1 to report a regression, a failed check or damage: a mistake is 2 there.
FINDING = ("gate", "doctor", "verify")
PAGE = re.compile(r"(?<![\w/])docs/(?=[\w/-]+\.md)")  # start of a documentation page's name
EPILOG = f"\b\nDocumentation: {docs_folder()}"  # \b: click does not wrap the line, so the path stays whole
HELP = {"help_option_names": ["-h", "--help"]}


class _Commands(click.Group):
    """Command group that reports errors in one line.

    A VlprobeError, a full disk and a lack of memory exit with code 1, or 2 in the commands in FINDING. Ctrl-C prints a
    hint. Any other exception is a bug and keeps its traceback.
    """

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line, including `--help` and `--version`, which click prints before `invoke`."""
        try:
            return super().main(*arguments, **options)
        except SHORTAGES as error:
            self._report(error)
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> object:
        try:
            with plugin_errors():
                return super().invoke(ctx)
        except (VlprobeError, *SHORTAGES) as error:
            self._report(error)
            ctx.exit(2 if ctx.invoked_subcommand in FINDING else 1)
        except KeyboardInterrupt:
            inform("Stopped. Finished work is kept. Repeat the command to continue.")
            ctx.exit(130)

    def _report(self, error: Exception) -> None:
        """Print an error in one line, with full paths for documentation pages, or raise it again if it may be a
        bug.
        """
        line = str(error) if isinstance(error, VlprobeError) else describe_shortage(error)
        if not line:
            raise error
        inform(f"Error: {PAGE.sub(f'{docs_folder()}/', line)}")

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command. Its help is also available as -h, has the defaults of options (except "" and 0, which mean all
        or none), and ends with the location of the documentation.
        """
        cmd.context_settings = {**cmd.context_settings, **HELP}
        cmd.epilog = EPILOG
        for each in (cmd, *getattr(cmd, "commands", {}).values()):
            for option in (each for each in each.params if isinstance(each, click.Option)):
                option.show_default = option.show_default or bool(option.default)
        super().add_command(cmd, name)


@click.group(cls=_Commands, epilog=EPILOG, context_settings=HELP)
@click.version_option(__version__)
@click.option(
    "--cache",
    envvar="VLPROBE_CACHE",
    help="Folder or URL (s3://...) where results are stored. [default: cache]",
)
@allowances(
    (
        "Allow this plug-in to run its code: the name of a plug-in, py:FILE.py or py:MODULE; "
        "repeatable. Not needed for plug-ins named in the command."
    ),
    "Allow requests to this server, which hosts models named http:URL#MODEL; repeatable. "
    "Not needed for models named in the command.",
)
@click.pass_context
def main(
    ctx: click.Context, cache: str | None, plugins: Sequence[str], apis: Sequence[str]
) -> None:
    """Probe vision-language models: perturb captions and pictures, and see where a model is fooled."""
    ctx.obj = cache
    require(plugins, apis)


COMMANDS = (
    *(ask, check, compare, completion, dashboard, doctor, edits, errata, export, failures, figure),
    *(first_lists, gate, influence, jobs, leaderboard, list_, mcp, options, perturb, pictures),
    *(plan, remove, rename, report, run, score, sheet, show, site, named_slices, sql, steps),
    *(suspects, train, verdicts, verify),
)
for command in COMMANDS:
    main.add_command(command)
