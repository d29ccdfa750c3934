"""Locations of the dashboard's files: `app.py`, with its pages, settings and documentation next to it."""

import tomllib
from pathlib import Path

Setting = str | int | float | bool
# Sections; the theme is not a limit
PINNED = ("global", "server", "runner", "client", "browser")


def app_file() -> Path:
    """Return the path to `app.py`: inside the package if a wheel is installed, otherwise at the top of the checkout."""
    module = Path(__file__).resolve()
    carried = module.parents[1] / "dashboard" / "app" / "app.py"
    return carried if carried.is_file() else module.parents[2] / "app.py"


def docs_folder() -> Path:
    """Return the folder with the documentation pages that errors and help texts refer to."""
    return app_file().parent / "docs"


def settings() -> dict[str, Setting | list | dict]:
    """Return the application's own Streamlit settings, such as `server.maxUploadSize`, without the theme."""
    text = (app_file().parent / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    sections = tomllib.loads(text)
    return {
        f"{section}.{name}": value
        for section in PINNED
        for name, value in sections[section].items()
    }
