"""Custom page elements that Streamlit has no widgets for: pictures, drawers, sliders and slides.

They need no build step and no network. Each consists of NAME.js, an ES module whose default export draws
`data` into `parentElement`, and of NAME.css; shared code is in base.js and base.css. Values reach the page
as text and properties, never as markup. Colors come from the custom properties in `render.html.style`,
which also apply inside a component's own style scope.
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
    """Return the component defined by NAME.js and NAME.css. Call it with `key`, `data` and callbacks to draw it.

    Its script includes history.js, which serves the whole page and starts with the first component on it.
    """
    script, css = source(name, "history")
    return declare(f"vlprobe_{name}", html="<div></div>", css=css, js=script)


def source(name: str, *parts: str) -> tuple[str, str]:
    """Return the JavaScript and the CSS for a component. Both include the shared base files, and the script also
    includes the scripts named in `parts`.
    """
    sheets = [FOLDER / "base.css", FOLDER / f"{name}.css"]
    css = "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets if sheet.is_file())
    scripts = [FOLDER / f"{stem}.js" for stem in ("base", *parts, name)]
    return "\n".join(file.read_text(encoding="utf-8") for file in scripts), css
