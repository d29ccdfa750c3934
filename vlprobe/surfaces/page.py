"""The HTML document around every page that vlprobe writes as a file. Its content security policy allows only what the
page needs.

A self-contained page includes its style sheet, and its script if it runs one. The policy names both by their hashes.
Captions and names are escaped, or stored as values in an element that browsers do not run.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence

import htpy

from vlprobe.render.html.elements import embed
from vlprobe.render.html.style import SHEET

CLOSED = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
SLIDES = """:root { color-scheme: light dark; }
body { margin: 0; background: var(--vp-bg); color: var(--vp-ink); padding: 24px; }
:root:has(.show[open]) { overflow: hidden; }
.root { font: 400 16px/1.5 "Source Sans", "Source Sans 3", system-ui, sans-serif; }
.show { font: inherit; }
"""
START = """
const values = JSON.parse(document.getElementById("values").textContent);
present({ data: values, parentElement: document.getElementById("slides") });
"""


def document(title: str, policy: str, head: htpy.Node, body: htpy.Element) -> str:
    """Return a complete HTML page.

    Args:
        title: Title of the page as plain text.
    """
    page = htpy.html(lang="en")[
        htpy.head[
            htpy.meta(charset="utf-8"),
            htpy.meta(http_equiv="Content-Security-Policy", content=policy),
            htpy.meta(name="viewport", content="width=device-width, initial-scale=1"),
            htpy.title[title],
            head,
        ],
        body,
    ]
    return "".join(page.iter_chunks())


def self_contained(
    title: str,
    style: str,
    nodes: htpy.Node,
    code: str = "",
    values: Mapping[str, object] | None = None,
    scripts_from: str = "",
) -> str:
    """Return a page that loads no external content and runs no script except `code`.

    Args:
        title: Title of the page as plain text.
        code: A script module. It can read the values as JSON from the element `values`.
        values: Input of the script. All numbers must be finite.
        scripts_from: Additional sources from which scripts may be loaded, in the syntax of content
            security policies.
    """
    content = embed("".join(htpy.fragment[nodes].iter_chunks()))
    policy = f"{CLOSED}; style-src '{_hash(style)}'"
    if ' style="' in content:  # colors of marks, lengths of bars
        policy += "; style-src-attr 'unsafe-inline'"
    if "url(data:font/" in style:
        policy += "; font-src data:"
    scripts: list[htpy.Node] = []
    if code:
        policy += f"; script-src '{_hash(code)}' {scripts_from}"
        written = embed(json_text(values or {}))
        scripts = [htpy.script(id="values", type="application/json")[written]]
        scripts += [htpy.script(type="module")[embed(code)]]
    return document(title, policy, htpy.style[embed(style)], htpy.body[content, scripts])


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def json_text(values: Mapping[str, object] | Sequence[str]) -> str:
    """Return values as JSON that is safe inside a script element: nothing in it closes the element or opens a comment.

    Raises ValueError if a number is not finite.

    >>> json_text({"a": "</script><!--"})
    '{"a":"\\\\u003c/script\\\\u003e\\\\u003c!--"}'
    """
    text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def slides_file(
    values: Mapping[str, object], script: str, sheets: str, title: str, font: bytes = b""
) -> str:
    """Return a talk as a single HTML page that loads no external content. The only script on the
    page shows the slides.

    Args:
        values: The input of the component `slides`.
        script: The component's script module, whose default export is called `present`.
        sheets: The component's style sheets.
        title: Title of the page as plain text.
        font: The page's font as a WOFF2 file; empty: a font of the system.
    """
    nodes, style = htpy.main(id="slides"), f"{SHEET}\n{SLIDES}{sheets}"
    if font:
        source = f"data:font/woff2;base64,{base64.b64encode(font).decode()}"
        style += (
            '@font-face { font-family: "Source Sans"; font-weight: 200 900; '
            f"src: url({source}); }}"
        )
    # Changes in a file would not be saved, and a visitor's deck has texts of slides that are left out
    values = {**values, "whole": True, "editable": False, "suggestions": [], "kept": None}
    return self_contained(title, style, nodes, script + START, values)
