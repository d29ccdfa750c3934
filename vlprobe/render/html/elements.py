"""HTML elements that the dashboard and the report share.

Names, captions and notes come from users and are always escaped.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from vlprobe.registry import model_order
from vlprobe.render import charts
from vlprobe.render.charts.styles import Look

SHAPES = dict(zip(charts.styles.SYMBOLS, "●◆■▲★✚⬢▼⬟◄►", strict=True))


def embed(escaped: str) -> Markup:
    """Mark HTML that vlprobe generated as safe. Everything else on a page is escaped.

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
    """Return the colored symbol of a model, as in the charts."""
    return f'<span aria-hidden="true" style="color:{style.css}">{SHAPES[style.symbol]}</span>'


def breakable(name: str) -> str:
    """Return a long name as HTML that can wrap after slashes, colons, hyphens, underscores and at signs."""
    return re.sub(r"([/:@_-])", r"\1<wbr>", html.escape(name, quote=False))


def marked(element: str, text: str) -> str:
    """Escape a text and wrap it in an element. Leading spaces stay outside of the element."""
    words = text.lstrip()
    return text[: len(text) - len(words)] + tag(element, words) if words else ""


def table(name: str, headings: str, rows: Sequence[str], css: str = "") -> str:
    """Return a table with a name for screen readers. It scrolls on narrow screens."""
    return (
        f'<div class="vp-scroll" role="region" tabindex="0" aria-label="{html.escape(name)}">'
        f'<table class="{f"vp-table {css}".strip()}">'
        f"<thead><tr>{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def column_heads(titles: Iterable[str]) -> str:
    """Return the header cells for a list of column titles."""
    return "".join(tag("th", title, scope="col") for title in titles)


def model_label(style: Look, name: str) -> str:
    """Return the mark of a model and its name as HTML that can wrap."""
    return f"{mark(style)} {breakable(name)}"


def metric_row(heading: str, cells: str) -> str:
    """Return a row for a table of metrics. Heading and cells are HTML."""
    return f'<tr><th scope="row" class="vp-metric">{heading}</th>{cells}</tr>'


def facts(values: Mapping[str, str]) -> str:
    """Return names and values as a description list."""
    lines = "".join(
        f"{tag('dt', name)}<dd>{breakable(value)}</dd>" for name, value in values.items()
    )
    return f'<dl class="vp-facts">{lines}</dl>'


def ordered(models: Iterable[str]) -> list[str]:
    """Sort models as every page lists them: models of vlprobe first, then by name, controls last."""
    return sorted(models, key=model_order)
