"""Style sheets for pages. Each color is a pair of colors for light and dark pages."""

from pathlib import Path

# The sheet for every page, and the one for the dashboard only.
SHEET, STREAMLIT = (
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in ("style.css", "streamlit.css")
)
STYLE = f"<style>\n{SHEET}\n{STREAMLIT}</style>"


def style(theme: str | None) -> str:
    """Return the style sheets for a page. `theme` applies to elements that Streamlit puts outside the app, such as
    dialogs.

    Without it, dialogs would always be light.
    """
    return (
        f"{STYLE}<style>:root {{ color-scheme: {theme}; }}</style>"
        if theme in ("light", "dark")
        else STYLE
    )
