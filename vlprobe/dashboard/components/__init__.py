"""Parts of pages that Streamlit has no widget for: pictures, drawers, sliders, slides. No build
step, no network.

Each is a file NAME.js, an ES module whose default export draws `data` into `parentElement`, and a
file NAME.css; their common parts are in base.js and base.css. Values reach the page as text
and properties, never as markup. Colors come from the custom properties of `render.html.style`,
which reach into the part's own style scope.
"""

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from streamlit.components.v2 import component as declare

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

FOLDER = Path(__file__).resolve().parent


@functools.cache  # Streamlit registers a component once
def component(name: str) -> "ComponentRenderer":
    """The component of NAME.js and NAME.css; called with `key`, `data` and callbacks, it draws
    itself on the page.

    Before it comes history.js, which is for the whole page and starts with the first component on it.
    """
    script, css = source(name, "history")
    return declare(f"vlprobe_{name}", html="<div></div>", css=css, js=script)


def source(name: str, *parts: str) -> tuple[str, str]:
    """Return the script of a component after the common one and its parts, and its style sheets."""
    sheets = [FOLDER / "base.css", FOLDER / f"{name}.css"]
    css = "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets if sheet.is_file())
    scripts = [FOLDER / f"{stem}.js" for stem in ("base", *parts, name)]
    return "\n".join(file.read_text(encoding="utf-8") for file in scripts), css
