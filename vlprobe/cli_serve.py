"""The command that serves the dashboard, and to whom."""

import ipaddress
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from vlprobe import access
from vlprobe.errors import InvalidInput


@click.command()
@click.option("--port", default=8501, show_default=True)
@click.option("--address", default="127.0.0.1", show_default=True, help="0.0.0.0 serves everybody who can reach it.")
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder that datasets and models may be read from; may be given several times [everything].",
)
@click.option("--read-only", is_flag=True, help="For public demos: nothing can be run, written or uploaded.")
@click.option(
    "--sign-in",
    "people",
    multiple=True,
    metavar="WHO",
    help="Ask people to sign in (README, Security): an address, @domain, or * for all whom the provider lets in.",
)
@click.pass_context
def dashboard(
    ctx: click.Context, port: int, address: str, roots: Sequence[Path], read_only: bool, people: Sequence[str]
) -> None:
    """Open the dashboard in a browser."""
    from vlprobe.remote import MIRROR
    from vlprobe.store import DEFAULT, Store

    if not (_loopback(address) or roots or read_only):
        raise InvalidInput(
            f"At {address} others can reach the dashboard and read any file through it. Say which folders they may "
            "read with --root FOLDER, or serve what is stored with --read-only."
        )
    store = Store(ctx.obj or DEFAULT)
    app = Path(__file__).resolve().parent.parent / "app.py"
    command = [sys.executable, "-m", "streamlit", "run", str(app)]
    if read_only:
        command += [
            "--server.maxUploadSize",
            "0",
        ]  # a page has no place to upload to, but the server still would take it
    command += ["--server.port", str(port), "--server.address", address]
    limits = access.settings(read_only, [*roots, store.root] if roots else [], people)
    # Streamlit reads its settings from the folder that it is started in.
    environment = os.environ | limits | {"VLPROBE_CACHE": str(store.root)}
    if MIRROR in environment:
        environment[MIRROR] = str(Path(environment[MIRROR]).resolve())
    raise SystemExit(subprocess.call(command, cwd=app.parent, env=environment))


def _loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
