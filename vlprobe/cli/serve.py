"""The command that serves the dashboard, and to whom."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import click

from vlprobe.cli.plugins import require, require_cluster, require_servers
from vlprobe.errors import InvalidInput
from vlprobe.registry.endpoints import is_this_machine
from vlprobe.storage import access
from vlprobe.storage.application import app_file, scalars, unpinned

QUOTE = '"'  # of a word as JSON, which an argument goes without


@click.command()
@click.option("--port", default=8501, show_default=True)
@click.option(
    "--address",
    default="127.0.0.1",
    show_default=True,
    help="0.0.0.0 serves everybody who can reach it.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder that datasets and models may be read from; may be given several times [everything].",
)
@click.option(
    "--remote",
    "remotes",
    multiple=True,
    metavar="URL",
    help="Tables below this URL may be fetched, although there are roots; may be given several times [none].",
)
@click.option(
    "--read-only", is_flag=True, help="For public demos: nothing can be run, written or uploaded."
)
@click.option(
    "--sign-in",
    "people",
    multiple=True,
    metavar="WHO",
    help="Ask people to sign in (docs/security.md): an address, @domain, or * for all whom the provider lets in.",
)
@click.option(
    "--quiz", is_flag=True, help="Rooms for a class: many people take the quiz on Play at once."
)
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="NAME",
    help="A plug-in whose code visitors may run: its name, py:FILE.py or py:MODULE; may be given several times [none].",
)
@click.option(
    "--api",
    "apis",
    multiple=True,
    metavar="URL[#MODEL]",
    help="A server that visitors may have models asked at, at your cost; may be given several times [none].",
)
@click.option(
    "--ray",
    "cluster",
    default="",
    metavar="HOST:PORT",
    help="A Ray cluster that visitors may run models on [none].",
)
@click.pass_context
def dashboard(
    ctx: click.Context,
    port: int,
    address: str,
    roots: Sequence[Path],
    remotes: Sequence[str],
    read_only: bool,
    people: Sequence[str],
    quiz: bool,
    plugins: Sequence[str],
    apis: Sequence[str],
    cluster: str,
) -> None:
    """Open the dashboard in a browser."""
    from vlprobe.runs import processes
    from vlprobe.storage.objects import MIRROR
    from vlprobe.storage.store import DEFAULT, Store

    if not (is_this_machine(address) or roots or read_only):
        raise InvalidInput(
            f"At {address} others can reach the dashboard and read any file through it. Say which folders they may "
            "read with --root FOLDER, or serve what is stored with --read-only."
        )
    require(plugins)
    require_servers(apis)
    require_cluster(cluster)
    store = Store(ctx.obj or DEFAULT)
    app = app_file()
    # A page has no place to upload to where it is read-only, but the server still would take it.
    limited = {"server.maxUploadSize": 0} if read_only else {}
    pinned = scalars() | {"server.port": port, "server.address": address} | limited
    if people or _provider(app.parent):
        command = ["-m", "vlprobe.dashboard.uploads", str(app), json.dumps(pinned)]
    else:
        spoken = [f"--{name}={json.dumps(value).strip(QUOTE)}" for name, value in pinned.items()]
        command = ["-m", "vlprobe.dashboard.server", "run", str(app), *spoken]
    limits = access.settings(
        read_only, [*roots, store.root] if roots else [], people, quiz, remotes
    )
    # Streamlit reads its settings from the folder that it is started in.
    environment = unpinned(processes.environment()) | limits | {"VLPROBE_CACHE": str(store.root)}
    if MIRROR in environment:
        environment[MIRROR] = str(Path(environment[MIRROR]).resolve())
    _become([sys.executable, *command], app.parent, environment)


def _become(command: list[str], folder: Path, environment: Mapping[str, str]) -> NoReturn:
    """This process goes on as the command: whatever signal ends `vlprobe dashboard` ends the
    server.

    Its jobs are sessions of their own and go on.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir(folder)
    os.execve(command[0], command, environment)


def _provider(folder: Path) -> bool:
    """Whether there are Streamlit secrets, which may configure a provider: then people have to
    sign in, too.
    """
    return any((root / ".streamlit" / "secrets.toml").exists() for root in (folder, Path.home()))
