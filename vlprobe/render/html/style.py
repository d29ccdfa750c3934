"""The style sheet of pages, the dashboard's and those in files; colors are pairs for light and dark pages."""

from pathlib import Path

SHEET = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
STYLE = f"<style>\n{SHEET}</style>"


def style(theme: str | None) -> str:
    """The style, and the theme for what Streamlit puts outside of the app's own element: a dialog would stay light."""
    return (
        f"{STYLE}<style>:root {{ color-scheme: {theme}; }}</style>"
        if theme in ("light", "dark")
        else STYLE
    )
