"""The dashboard's own components as scripts that run from a file: a browser loads no module from there.

The file in the repository stays one; its text is read when a site is written. A component is then a
function of `vlprobe.components`, with the same argument as the module's default export.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import vlprobe

COMPONENTS = Path(vlprobe.__file__).parent / "dashboard" / "components"
HERE = Path(__file__).parent
EXPORT = re.compile(r"^export default function ?(\w*) ?\(", re.MULTILINE)
MODULE = re.compile(r"^\s*(import|export)\b", re.MULTILINE)


def component(name: str, *parts: str) -> str:
    """The script of a component, after the common one and those of its parts."""
    text = "\n".join(
        (COMPONENTS / f"{stem}.js").read_text(encoding="utf-8") for stem in ("base", *parts, name)
    )
    return f"window.vlprobe.components[{json.dumps(name)}] = (() => {{\n{classic(text)}\n}})();\n"


def classic(text: str) -> str:
    """The body of a function that returns a module's default export.

    Raises ValueError where the module imports something, or exports anything else.

    >>> classic("export default function ({ data }) {}")
    '"use strict";\\nfunction exported({ data }) {}\\nreturn exported;'
    """
    exports = EXPORT.findall(text)
    name = exports[0] or "exported" if exports else ""
    body = EXPORT.sub(f"function {name}(", text)
    if len(exports) != 1 or MODULE.search(body):
        raise ValueError("A component exports one function, its default, and imports nothing.")
    return f'"use strict";\n{body}\nreturn {name};'


def sheets(name: str) -> str:
    """The style sheets of a component."""
    files = [COMPONENTS / "base.css", COMPONENTS / f"{name}.css"]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def asset(name: str) -> str:
    """A script or a style sheet of the site itself."""
    return (HERE / name).read_text(encoding="utf-8")


def table(name: str, values: Mapping[str, object] | list[str]) -> str:
    """Values as a plain script: `vlprobe.tables[name] = ...`, with nothing in it that could end the
    element of a script or begin a comment there. Raises ValueError where a number is not finite.
    """
    text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return f"window.vlprobe.tables[{json.dumps(name)}] = {text};\n"
