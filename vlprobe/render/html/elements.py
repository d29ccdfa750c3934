"""HTML elements that the dashboard and the report share.

Names, captions and notes come from users and are always escaped.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from vlprobe.registry import model_order
from vlprobe.render.charts.styles import Look


def embed(escaped: str) -> Markup:
    """Mark HTML that vlprobe generated as safe, so that it is not escaped. All other text on a page is escaped.

    Args:
        escaped: The result of a function in `render.html`, or a style sheet. All data in it is already escaped.
    """
    return Markup(escaped)


def tag(name: str, text: str, **attributes: str) -> str:
    """Return one HTML element with its text escaped."""
    written = "".join(
        f' {key.rstrip("_")}="{html.escape(value)}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{html.escape(text)}</{name}>"


def mark(style: Look) -> str:
    """Return a model's colored symbol as HTML, the same symbol as in the charts."""
    return f'<span aria-hidden="true" style="{style.shape}"></span>'


def marked_before(selector: str, style: Look) -> str:
    """Return the CSS rule that draws a model's symbol before the text of an element."""
    return f'{selector}::before {{ content: ""; {style.shape}; }}'


def breakable(name: str) -> str:
    """Return a long name as HTML that can wrap after slashes, colons, hyphens, underscores and at signs."""
    return re.sub(r"([/:@_-])", r"\1<wbr>", html.escape(name, quote=False))


def marked(element: str, text: str) -> str:
    """Escape text and wrap it in an element. Leading spaces stay outside the element."""
    words = text.lstrip()
    return text[: len(text) - len(words)] + tag(element, words) if words else ""


def table(name: str, headings: str, rows: Sequence[str], css: str = "") -> str:
    """Return an HTML table with a name for screen readers. The table scrolls on narrow screens."""
    return (
        f'<div class="vp-scroll" role="region" tabindex="0" aria-label="{html.escape(name)}">'
        f'<table class="{f"vp-table {css}".strip()}">'
        f"<thead><tr>{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def column_heads(titles: Iterable[str]) -> str:
    """Return the header cells for a list of column titles."""
    return "".join(tag("th", title, scope="col") for title in titles)


def model_label(style: Look, name: str) -> str:
    """Return a model's symbol and name as HTML that can wrap."""
    return f"{mark(style)} {breakable(name)}"


def metric_row(heading: str, cells: str) -> str:
    """Return an HTML row for a table of metrics. `heading` and `cells` must already be HTML."""
    return f'<tr><th scope="row" class="vp-metric">{heading}</th>{cells}</tr>'


def facts(values: Mapping[str, str]) -> str:
    """Return names and values as an HTML description list."""
    lines = "".join(
        f"{tag('dt', name)}<dd>{breakable(value)}</dd>" for name, value in values.items()
    )
    return f'<dl class="vp-facts">{lines}</dl>'


def ordered(models: Iterable[str]) -> list[str]:
    """Sort model names in the order used on all pages: bundled models first, then others by name, controls last."""
    return sorted(models, key=model_order)
