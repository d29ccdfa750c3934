"""Location of the dashboard's application: `app.py` next to its pages and settings."""

import tomllib
from pathlib import Path

Setting = str | int | float | bool
# Sections; the theme is not a limit
PINNED = ("global", "server", "runner", "client", "browser")


def app_file() -> Path:
    """`app.py`: below the package if a wheel was installed, else at the top of the checkout."""
    here = Path(__file__).resolve()
    carried = here.parents[1] / "dashboard" / "app" / "app.py"
    return carried if carried.is_file() else here.parents[2] / "app.py"


def docs_folder() -> Path:
    """Return the folder with the pages of the documentation, to which errors and help texts refer."""
    return app_file().parent / "docs"


def settings() -> dict[str, Setting | list | dict]:
    """Return the application's own Streamlit settings without its theme: `server.maxUploadSize` and
    so on.
    """
    text = (app_file().parent / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    sections = tomllib.loads(text)
    return {
        f"{section}.{name}": value
        for section in PINNED
        for name, value in sections[section].items()
    }
