"""A talk as one self-contained web page: it runs the script of the slides and fetches nothing.

Its policy lets nothing run and nothing apply but this very script and style, which it names by
their hashes. Captions and names are in it only as values, in an element that no browser runs.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping

import htpy

from vlprobe.render.html.embed import embed
from vlprobe.render.html.style import STYLE

POLICY = (
    "default-src 'none'; img-src data:; script-src '{script}'; style-src '{style}'; "
    "base-uri 'none'; form-action 'none'"
)
SHEET = """:root { color-scheme: light dark; }
body { margin: 0; background: var(--vp-bg); color: var(--vp-ink); padding: 24px; }
.root { font: 400 16px/1.5 "Source Sans 3", "Source Sans", system-ui, sans-serif; }
.show { font: inherit; }
"""
BEGIN = """
const values = JSON.parse(document.getElementById("values").textContent);
present({ data: values, parentElement: document.getElementById("slides") });
"""


def slides_file(values: Mapping[str, object], script: str, sheets: str, title: str) -> str:
    """The page.

    Args:
        values: The input of the component `slides`.
        script: The component's module, whose default export is called `present`.
        sheets: Its style sheets.
        title: Plain text.
    """
    colors = re.search(r":root \{.*?\n\}", STYLE, re.DOTALL)
    style = f"{colors[0] if colors else ''}\n{SHEET}{sheets}"
    code = script + BEGIN
    policy = POLICY.format(script=_hash(code), style=_hash(style))
    document = htpy.html(lang="en")[
        htpy.head[
            htpy.meta(charset="utf-8"),
            htpy.meta(http_equiv="Content-Security-Policy", content=policy),
            htpy.meta(name="viewport", content="width=device-width, initial-scale=1"),
            htpy.title[title],
            htpy.style[embed(style)],
        ],
        htpy.body[
            htpy.main(id="slides"),
            htpy.script(id="values", type="application/json")[
                embed(json_text({**values, "whole": True}))
            ],
            htpy.script(type="module")[embed(code)],
        ],
    ]
    return "".join(document.iter_chunks())


def json_text(values: Mapping[str, object]) -> str:
    """Values as JSON that cannot end the element around it, nor begin a comment there.

    >>> json_text({"a": "</script><!--"})
    '{"a": "\\\\u003c/script\\\\u003e\\\\u003c!--"}'
    """
    text = json.dumps(values, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
