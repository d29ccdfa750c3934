"""Pieces of HTML that the dashboard and the report share.

Names, captions and notes come from users: they are always escaped.
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
    """HTML of this program as a node of a page; nothing else on a page is taken unescaped.

    Args:
        escaped: The result of a function of `render.html`, or a style sheet: all data in it is escaped.
    """
    return Markup(escaped)


def tag(name: str, text: str, **attributes: str) -> str:
    """One HTML element with its text escaped."""
    written = "".join(
        f' {key.rstrip("_")}="{html.escape(value)}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{html.escape(text)}</{name}>"


def mark(style: Look) -> str:
    """A model's color and shape, as in the charts."""
    return f'<span aria-hidden="true" style="color:{style.css}">{SHAPES[style.symbol]}</span>'


def breakable(name: str) -> str:
    """A long name as HTML that may be broken after its slashes, colons and hyphens."""
    return re.sub(r"([/:@_-])", r"\1<wbr>", html.escape(name, quote=False))


def marked(element: str, text: str) -> str:
    """Escaped, and inside the element but for the blank before it."""
    words = text.lstrip()
    return text[: len(text) - len(words)] + tag(element, words) if words else ""


def table(name: str, headings: str, rows: Sequence[str], css: str = "") -> str:
    """A table with a name for those who do not see it; narrow screens scroll it."""
    return (
        f'<div class="vp-scroll" role="region" tabindex="0" aria-label="{html.escape(name)}">'
        f'<table class="{f"vp-table {css}".strip()}">'
        f"<thead><tr>{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def column_heads(titles: Iterable[str]) -> str:
    """Headings of columns."""
    return "".join(tag("th", title, scope="col") for title in titles)


def model_label(style: Look, name: str) -> str:
    """A model's mark, and its name as HTML that may be broken."""
    return f"{mark(style)} {breakable(name)}"


def metric_row(heading: str, cells: str) -> str:
    """A row of a table of metrics; both are HTML."""
    return f'<tr><th scope="row" class="vp-metric">{heading}</th>{cells}</tr>'


def facts(values: Mapping[str, str]) -> str:
    """Names with their values, a line each."""
    lines = "".join(
        f"{tag('dt', name)}<dd>{breakable(value)}</dd>" for name, value in values.items()
    )
    return f'<dl class="vp-facts">{lines}</dl>'


def ordered(models: Iterable[str]) -> list[str]:
    """Models as every page lists them: those of vlprobe, then by name, controls last."""
    return sorted(models, key=model_order)
