"""HTML that `render.html` has escaped already, as part of a page; nothing else in a report is taken
unescaped.
"""

from markupsafe import Markup


def embed(escaped: str) -> Markup:
    """HTML of this program as a node of a page.

    Args:
        escaped: The result of a function of `render.html`, or a style sheet: all data in it is
            escaped.
    """
    return Markup(escaped)
