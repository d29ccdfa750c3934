"""Command that serves the dashboard, with options for who may access it."""

import errno
import itertools
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import click

from vlprobe.cli.arguments import allowances, cache_store, require, require_cluster
from vlprobe.cli.output import inform
from vlprobe.errors import InvalidInput
from vlprobe.registry import endpoints
from vlprobe.registry.endpoints import is_this_machine
from vlprobe.storage import access
from vlprobe.storage.application import app_file, settings

EVERY_INTERFACE = ("0.0.0.0", "::")
ANY_HOST = "*"
MAX_PORT = 65535
# Of glibc: with 16 heaps a hundred visitors took 1,602 MiB, with two 1,264
HEAPS = "MALLOC_ARENA_MAX"
HEADLESS = "STREAMLIT_SERVER_HEADLESS"  # true: no browser is opened; other Streamlit variables are not read


@click.command()
@click.option("--port", default=8501, help="Port to listen on.")
@click.option(
    "--address",
    default="127.0.0.1",
    help="Address to listen on; with 0.0.0.0, everyone who can reach this machine can connect.",
)
@click.option(
    "--host",
    "names",
    multiple=True,
    metavar="NAME",
    help="Additional host name under which visitors reach the dashboard, such as the name of a "
    "proxy; *.example.com allows all subdomains, and * allows any name; repeatable.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help=("Folder from which datasets and models may be read; repeatable. [default: all folders]"),
)
@click.option(
    "--remote",
    "remotes",
    multiple=True,
    metavar="URL",
    help="URL below which tables may be downloaded even if --root is set; repeatable. "
    "[default: none]",
)
@click.option(
    "--read-only",
    is_flag=True,
    help="For public demos: visitors cannot run, write or upload anything.",
)
@click.option(
    "--sign-in",
    "people",
    multiple=True,
    metavar="WHO",
    help="Require a sign-in (docs/security.md), and admit WHO: an email address, @domain, or * "
    "for everyone with an account at the provider; repeatable.",
)
@click.option(
    "--quiz", is_flag=True, help="Enable rooms, in which a class takes the quiz together."
)
@allowances(
    "Plug-in whose code visitors may run: the name of a plug-in, py:FILE.py or py:MODULE; "
    "repeatable. [default: none]",
    "Server to which visitors may send requests at your cost; repeatable. [default: none]",
)
@click.option(
    "--ray",
    "cluster",
    default="",
    metavar="HOST:PORT",
    help="Ray cluster on which visitors may run models. [default: none]",
)
@click.pass_context
def dashboard(
    ctx: click.Context,
    port: int,
    address: str,
    names: Sequence[str],
    roots: Sequence[Path],
    remotes: Sequence[str],
    read_only: bool,
    people: Sequence[str],
    quiz: bool,
    plugins: Sequence[str],
    apis: Sequence[str],
    cluster: str,
) -> None:
    """Start the dashboard and open it in a browser."""
    from vlprobe.runs import processes
    from vlprobe.storage.mirror import MIRROR

    if not (is_this_machine(address) or roots or read_only):
        raise InvalidInput(
            f"With the address {address}, other people can reach the dashboard and read any "
            "file on this machine through it. Allow only some folders with --root FOLDER, or "
            "serve only stored results with --read-only."
        )
    hosts = _hosts(address, names)
    _refuse_port_in_use(address, port)
    require(plugins, apis)
    require_cluster(cluster)
    store = cache_store(ctx)
    app = app_file()
    named = [name for name in names if "*" not in name]  # the first is printed and opened
    shown = named[0] if named else "localhost" if address in EVERY_INTERFACE else address
    pinned = settings() | {
        "server.port": port,
        "server.address": address,
        "server.allowedHosts": hosts,
        "browser.serverAddress": f"[{shown}]" if ":" in shown and shown[0] != "[" else shown,
    }
    if read_only:  # the page has no upload button, but the server would still accept a file
        pinned["server.maxUploadSize"] = 0
    if HEADLESS in os.environ:
        pinned["server.headless"] = os.environ[HEADLESS].lower() not in ("", "0", "false", "no")
    if not is_this_machine(address) and ANY_HOST not in hosts:
        inform(
            f"This dashboard can only be opened under these host names: {', '.join(hosts)}. "
            "Add other names with --host NAME."
        )
    command = ["-m", "vlprobe.dashboard.server", str(app), json.dumps(pinned)]
    limits = access.settings(
        read_only, [*roots, store.root] if roots else [], people, quiz, remotes
    )
    # Streamlit reads its settings from the working folder.
    environment = {HEAPS: "2"} | processes.environment() | limits | {"VLPROBE_CACHE": store.address}
    if MIRROR in environment:
        environment[MIRROR] = str(Path(environment[MIRROR]).resolve())
    _become([sys.executable, *command], app.parent, environment)


def _become(command: list[str], folder: Path, environment: Mapping[str, str]) -> NoReturn:
    """Replace this process with the server, so that a signal that ends `vlprobe dashboard` also ends the server.

    Jobs continue, because they run in separate sessions.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir(folder)
    os.execve(command[0], command, environment)


def _hosts(address: str, names: Sequence[str]) -> list[str]:
    """Return the host names and addresses under which the dashboard accepts requests.

    Requests for any other name are refused, because a website can point its own name to this machine's
    address. Raises InvalidInput for an invalid host name.
    """
    hosts = ["localhost", "127.0.0.1", "::1", address.lower()]
    if address in EVERY_INTERFACE:
        import psutil

        name = socket.gethostname().lower()
        hosts += [name, f"{name}.local"]
        for entry in itertools.chain.from_iterable(psutil.net_if_addrs().values()):
            if entry.family in (socket.AF_INET, socket.AF_INET6):
                hosts.append(entry.address.partition("%")[0].lower())
    for text in names:
        host = text.lower().strip("[]")
        if host != ANY_HOST and not endpoints.HOST.fullmatch(host.removeprefix("*.")):
            raise InvalidInput(
                f"'{text}' is not a host name. Leave out the scheme and port, as in "
                "probe.example.com."
            )
        hosts.append(host)
    return list(dict.fromkeys(hosts))


def _refuse_port_in_use(address: str, port: int) -> None:
    """Raise InvalidInput unless the server can listen on the given port and address."""
    if not 0 < port <= MAX_PORT:
        raise InvalidInput(f"Port {port} is out of range. Expected 1 to {MAX_PORT}, such as 8501.")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.create_server((address, port), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InvalidInput(
                f"Port {port} is in use, perhaps by another dashboard. Stop that process "
                "or choose another port with --port."
            ) from None
        raise InvalidInput(
            f"The dashboard cannot listen on port {port} of '{address}' "
            f"({error.strerror or error}). Choose another address or port with --address "
            "and --port."
        ) from None


@click.command()
@click.option(
    "--allow-run",
    is_flag=True,
    help="Let the agent run probes, which uses this machine's processors, writes to the cache and reads "
    "files that the agent names.",
)
@click.pass_context
def mcp(ctx: click.Context, allow_run: bool) -> None:
    """Serve the results to an agent over stdin and stdout (Model Context Protocol). Access is read-only without
    --allow-run.

    Requires the package mcp ('vlprobe[agents]').
    """
    from vlprobe.storage.store import DEFAULT
    from vlprobe.surfaces import agent

    agent.server(str(ctx.obj or DEFAULT), allow_run).run("stdio")
