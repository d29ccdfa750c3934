"""Formatting of tables as lines of text that fit a terminal, Markdown for a model card, or LaTeX for a paper."""

import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, groupby, product
from typing import TYPE_CHECKING

from vlprobe.errors import printable
from vlprobe.storage.spreadsheets import defused

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("key", "case_key", "model_digest", "dataset_digest")
KEY_LETTERS = 8  # letters of a key shown on a terminal; commands accept the first letters
P_VALUES = ("p", "p_holm")
LEAST_P = 0.001  # smaller p-values are shown as a bound
NARROWEST = 10  # minimum width for a column of sentences
NAME = 28  # minimum width for a column of names, which often differ only at the end
GAP = "  "
UNKNOWN = "-"
BELOW = "\v"  # in a cell or a name, before text that LaTeX shows on a second line
LONG, HEAD = 40, 12  # rows of a LaTeX table, letters in a line of its titles
WIDE = 5  # columns of values in a part of a LaTeX table
CAPTION_LETTERS = 4000  # letters of a caption that would fill a page
COLUMN = 48  # letters of a row that fit one of two columns of text
NUMBER = re.compile(
    r"[-+−<]? ?\.?\d[\d.,]*( %)?( \([^)]*\))?(\v.*)?|-|n/a|not run|no value|", re.DOTALL
)
LATEX = {  # special characters that a backslash cannot escape
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # at the start of a row it would begin an option
}


def folded(text: str, width: int) -> str:
    """Shorten text to one line of at most `width` characters. It is cut after a word, and "…" replaces the rest.

    >>> folded("an untrained model: nothing follows", 20)
    'an untrained model:…'
    """
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    return (line[:width].rpartition(" ")[0] or line[: width - 1]).rstrip() + "…"


def terminal_width() -> int | None:
    """Return the terminal width in columns, or None if stdout is not a terminal, so that nothing is cut."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns or None
    return None


def cell(value: object, column: str = "") -> str:
    """Format a value as text: numbers with four decimals, unknown values as "-", and a p-value
    below .001 as "<.001".

    >>> cell(0.5), cell(float("nan")), cell(None), cell(7), cell(["a", "b"])
    ('0.5000', '-', '-', '7', 'a, b')
    >>> cell(0.0, "p"), cell(0.0009, "p_holm"), cell(0.001, "p"), cell(0.0, "value")
    ('<.001', '<.001', '0.0010', '0.0000')
    """
    import pandas as pd

    if value is None or value is pd.NA or value != value:
        return UNKNOWN
    if isinstance(value, float):
        if column in P_VALUES and value < LEAST_P:
            return f"<{LEAST_P:.3f}".replace("0.", ".")
        return f"{value:.4f}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)


def text_lines(table: "pd.DataFrame", width: int | None) -> tuple[list[str], list[str]]:
    """Format a table as lines of text. Return the lines, and the names of all columns that were shortened or omitted.

    Numbers are right-aligned and text is left-aligned. If a width is given, keys are cut to their first letters, and
    the longest text is shortened first. If that is not enough, columns are omitted: first digests, then columns in
    which all values are equal, then columns from the right.
    """
    columns = {
        str(name): [printable(cell(value, str(name))) for value in table[name]] for name in table
    }
    is_number = _are_numbers(table)
    short = dict(columns)
    if width is not None:
        for name in (name for name in KEYS if name in short):
            short[name] = _beginnings(short[name])
        short = _fit(short, is_number, width)
    widths = {name: _width(name, texts) for name, texts in short.items()}
    rows = [list(short), *zip(*short.values(), strict=True)]
    lines = [
        GAP.join(
            text.rjust(widths[name]) if is_number[name] else text.ljust(widths[name])
            for name, text in zip(short, row, strict=True)
        ).rstrip()
        for row in rows
    ]
    changed = [
        name
        for name, texts in columns.items()
        if name not in short or (name not in KEYS and short[name] != texts)
    ]
    return lines, changed


def formatted(
    table: "pd.DataFrame",
    how: str,
    tie_letters: Mapping[str, Sequence[str]] | None = None,
    note: str = "",
    label: str = "table",
    details: str = "",
    sources: Sequence[str] = (),
) -> str:
    """Format a table as "csv", "json", "markdown" or "latex", for commands and for the pages' *Export* menus.

    A note and its details are a paragraph below a table in Markdown. In LaTeX, the note is the caption, the details are
    small text below the table, the sources (lines of BibTeX) are comments after it, and the label is "tab:vlprobe-" and
    `label`.

    Text in cells is untrusted. It is escaped so that a spreadsheet does not run it as a formula, and Markdown and LaTeX
    do not treat it as markup.
    """
    if how == "csv":
        return table.map(defused).to_csv(index=False)
    if how == "json":
        return f"{table.to_json(orient='records', indent=1, date_format='iso')}\n"
    if how == "latex":
        lines = latex_lines(table, tie_letters, note, label, details)
        lines += ["% Sources, as BibTeX:"] * bool(sources) + [f"% {line}" for line in sources]
    else:
        paragraph = markdown_text(f"{details} {note}")
        lines = [*markdown_lines(table, tie_letters), *(["", paragraph] if paragraph else [])]
    return "".join(f"{line}\n" for line in lines)


def markdown_lines(
    table: "pd.DataFrame", tie_letters: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """Format a table as Markdown, with all markup and HTML in its text escaped (see `formatted`)."""
    head = [markdown_text(str(name)) for name in table]
    rule = ["---:" if number else "---" for number in _are_numbers(table).values()]
    columns = {
        str(name): [markdown_text(cell(value, str(name))) for value in table[name]]
        for name in table
    }
    for name, letters in (tie_letters or {}).items():
        columns[name] = _marked_values(
            [name] * len(letters), columns[name], letters, "**{}**", " {}"
        )
    rows = zip(*columns.values(), strict=True)
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


def latex_lines(
    table: "pd.DataFrame",
    tie_letters: Mapping[str, Sequence[str]] | None = None,
    caption: str = "",
    label: str = "table",
    details: str = "",
) -> list[str]:
    """Format a table as a LaTeX float with a caption, and with all commands in its text escaped (see `formatted`).

    The float is as wide as the page (`table*`) if its rows do not fit one of two columns of text. A table that is
    larger than a page is shrunk. One with more than LONG rows is split into several floats, between groups of rows with
    the same first cell if it can be. One with tie letters and more than WIDE columns of values has parts below each
    other, or one float each if their lines are more than LONG. Text after BELOW in a cell becomes a row with small
    letters, and columns whose names begin with the same text before BELOW have it as a common title. The column `group`
    of a table of metrics becomes superscripts of values. If the first column has the titles of groups of rows, each
    title is printed once on a page.
    """
    texts = {str(name): [cell(value, str(name)) for value in table[name]] for name in table}
    columns = {
        name: [latex_text(text.partition(BELOW)[0]) for text in column]
        for name, column in texts.items()
    }
    if {"metric", "value", "group"} <= columns.keys():
        groups = columns.pop("group")
        columns["value"] = _marked_values(columns["metric"], columns["value"], groups)
    for name, letters in (tie_letters or {}).items():
        columns[name] = _marked_values([name] * len(letters), columns[name], letters)
    parts = _balanced_parts(list(columns)) if tie_letters else [list(columns)]
    label = f"tab:vlprobe-{label}"
    captions = [rf"\caption{{{_breakable(caption)}}}", rf"\label{{{label}}}"]
    is_wide = (
        max(sum(_width_in_print(name, texts[name]) for name in part) for part in parts) > COLUMN
    )
    kind = "table*" if is_wide else "table"
    has_small = any(BELOW in text for column in texts.values() for text in column)
    n_lines = len(parts) * len(table) * (1 + has_small)
    floats = [parts] if n_lines <= LONG else [[part] for part in parts]
    n_letters = len(caption) + len(details)
    height = max(0.3, 0.88 - n_letters / CAPTION_LETTERS * (1 if is_wide else 2))
    height /= len(floats[0])
    room = rf"max width=\linewidth, max totalheight={height:.2f}\textheight"
    lines = [r"% Needs \usepackage{booktabs} and \usepackage{adjustbox}"]
    titles = columns[parts[0][0]]
    pages = _pages(titles)
    if 1 < len({*titles}) == len([*groupby(titles)]) < len(titles):
        columns[parts[0][0]] = [
            title if row in dict(pages) else "" if title == above else rf"\addlinespace {title}"
            for row, (above, title) in enumerate(zip(["", *titles[:-1]], titles, strict=True))
        ]
    for (start, end), together in product(pages, floats):
        if len(lines) > 1:
            lines.append("")
        lines += [rf"\begin{{{kind}}}[tbp]", r"\centering", *captions, r"\smallskip"]
        for names in together:
            sides = {
                name: "r" if all(map(NUMBER.fullmatch, texts[name])) else "l" for name in names
            }
            head = [_latex_head(name.rpartition(BELOW)[2], side) for name, side in sides.items()]
            below = zip(*(_small_lines(texts[name]) for name in names), strict=True)
            rows = [
                f"{' & '.join(row)} \\\\"
                + (f"\n{' & '.join(small)} \\\\[2pt]" if any(small) else "")
                for row, small in zip(
                    zip(*map(columns.get, names), strict=True), below, strict=True
                )
            ]
            lines += [
                *([] if names is together[0] else ["", r"\medskip"]),  # below the previous part
                rf"\begin{{adjustbox}}{{{room}}}",
                rf"\begin{{tabular}}{{{''.join(sides.values())}}}",
                *(r"\toprule", *_group_lines(names), f"{' & '.join(head)} \\\\", r"\midrule"),
                *rows[start:end],
                *(r"\bottomrule", r"\end{tabular}", r"\end{adjustbox}"),
            ]
        if details:
            lines += [
                "",
                r"\smallskip",
                rf"\parbox{{\linewidth}}{{\footnotesize {latex_text(details)}}}",
            ]
            details = ""  # below the first part only
        lines.append(rf"\end{{{kind}}}")
        captions = [rf"\caption{{Continued from Table~\ref{{{label}}}.}}"]
    return lines


def _width_in_print(name: str, texts: Sequence[str]) -> int:
    """Return the letters of the longest line in a column of a LaTeX table, and the gap beside it."""
    lines = chain(textwrap.wrap(name, HEAD), *(text.split(BELOW) for text in texts))
    return max(map(len, lines), default=0) + len(GAP)


def _breakable(text: str) -> str:
    r"""Format text for a LaTeX caption, in which lines may end after a slash of an address.

    >>> _breakable("Source: https://a.org/b_c")
    'Source: https:/\\allowbreak /\\allowbreak a.org/\\allowbreak b\\_c'
    """
    return latex_text(text).replace("/", r"/\allowbreak ")


def _balanced_parts(names: Sequence[str]) -> list[list[str]]:
    """Split columns into parts with at most WIDE columns of values, each after the first column.

    >>> [len(part) for part in _balanced_parts(["model", *"abcdefgh"])]
    [5, 5]
    """
    first, *values = names
    width = -(-len(values) // -(-len(values) // WIDE))
    return [[first, *values[start : start + width]] for start in range(0, len(values), width)]


def _pages(firsts: Sequence[str]) -> list[tuple[int, int]]:
    """Return the first row of each part with at most LONG rows, and the row after it. Rows with the same first cell
    stay together, unless there are more than LONG of them.
    """
    pages, start = [], 0
    while len(firsts) - start > LONG:
        end = start + LONG
        kept = end
        while kept > start and firsts[kept] == firsts[kept - 1]:
            kept -= 1
        pages.append((start, kept if kept > start else end))
        start = pages[-1][1]
    return [*pages, (start, len(firsts))]


def _small_lines(texts: Sequence[str]) -> list[str]:
    """Return the second lines of cells as LaTeX with small letters."""
    second = [latex_text(text.partition(BELOW)[2]) for text in texts]
    return [rf"{{\footnotesize {text}}}" if text else "" for text in second]


def _group_lines(names: Sequence[str]) -> list[str]:
    """Return the titles above groups of columns as LaTeX, with a line below each; an empty list without groups. A title
    is the part of a column's name before BELOW.
    """
    cells, rules, end = list[str](), "", 0
    for group, members in groupby(name.rpartition(BELOW)[0] for name in names):
        n_columns = len(list(members))
        title = _latex_head(group, "c", HEAD * n_columns)
        cells.append(rf"\multicolumn{{{n_columns}}}{{c}}{{{title}}}")
        rules += rf"\cmidrule(lr){{{end + 1}-{end + n_columns}}}" * bool(group)
        end += n_columns
    return [f"{' & '.join(cells)} \\\\", rules] if rules else []


def _latex_head(name: str, side: str, width: int = HEAD) -> str:
    """Return a title as LaTeX, on several lines if it is longer than `width` letters."""
    lines = textwrap.wrap(name, width, break_long_words=False)
    text = r" \\ ".join(map(latex_text, lines))
    return rf"\begin{{tabular}}[b]{{@{{}}{side}@{{}}}}{text}\end{{tabular}}" if lines[1:] else text


def _marked_values(
    metrics: Sequence[str],
    values: Sequence[str],
    groups: Sequence[str],
    bold: str = r"\textbf{{{}}}",
    letters: str = r"\textsuperscript{{{}}}",
) -> list[str]:
    r"""Add the letters of tied models to values, and print the best value of a metric in bold if no model is tied with
    it.

    >>> _marked_values("mmnn", ["1", "2", "3", "4"], ["a", "b", "a", "ab"])
    ['\\textbf{1}\\textsuperscript{a}', '2\\textsuperscript{b}', '3\\textsuperscript{a}', '4\\textsuperscript{ab}']
    """
    rows = list(zip(metrics, values, groups, strict=True))
    n_compared = Counter(metric for metric, _, group in rows if group)
    n_best = Counter(metric for metric, _, group in rows if "a" in group)
    marked = []
    for metric, value, group in rows:
        if "a" in group and n_best[metric] == 1 < n_compared[metric]:
            value = bold.format(value)
        marked.append(value + letters.format(group) if group else value)
    return marked


def latex_text(text: str) -> str:
    r"""Format untrusted text on one line, and escape the characters that are special in LaTeX.

    >>> latex_text("50 % of a_b\n\\input{x} <.001 -0.5")
    '50 \\% of a\\_b \\textbackslash{}input\\{x\\} \\textless{}.001 $-$0.5'
    """
    line = printable(" ".join(text.split()))
    line = re.sub(r"[\\~^<>|[#$%&_{}]", lambda match: LATEX.get(match[0], rf"\{match[0]}"), line)
    return re.sub(r"^-(?=[\d.])|(?<=[ (])-(?=[\d.])", "$-$", line)


def markdown_text(text: str) -> str:
    r"""Format untrusted text on one line, and escape Markdown and HTML syntax.

    >>> markdown_text("a|b <i>x</i>\n[link](javascript:1) _m_")
    'a\\|b &lt;i&gt;x&lt;/i&gt; \\[link\\](javascript:1) \\_m\\_'
    """
    line = printable(" ".join(text.split())).replace("&", "&amp;").replace(">", "&gt;")
    line = re.sub(r"<(?![\s.\d])", "&lt;", line)  # no tag begins with a dot, a digit or a space
    return re.sub(r"[\\|`*\[\]#~]|(?<!\w)_|_(?!\w)", r"\\\g<0>", line)


def _are_numbers(table: "pd.DataFrame") -> dict[str, bool]:
    return {str(name): kind.kind in "iuf" for name, kind in table.dtypes.items()}


def _width(name: str, texts: Sequence[str]) -> int:
    return max(map(len, [name, *texts]))


def _beginnings(keys: Sequence[str]) -> list[str]:
    """Cut all keys to the same length, long enough that different keys stay different."""
    distinct = set(keys)
    letters = KEY_LETTERS
    while len({key[:letters] for key in distinct}) < len(distinct):
        letters += 1
    return [key[:letters] for key in keys]


def _fit(
    columns: dict[str, list[str]], is_number: dict[str, bool], width: int
) -> dict[str, list[str]]:
    """Shorten or omit columns until a line has at most `width` letters."""
    wide = {name: _width(name, texts) for name, texts in columns.items()}
    least = dict(wide)
    for name in (name for name in columns if not is_number[name] and name not in KEYS):
        narrowest = NARROWEST if any(" " in text for text in columns[name]) else NAME
        least[name] = min(wide[name], max(len(name), narrowest))
    names = list(columns)
    for name in _dispensable(columns):
        if _total(least, names) <= width:
            break
        names.remove(name)
    room = dict(wide)
    while _total(room, names) > width:
        foldable = [name for name in names if room[name] > least[name]]
        if not foldable:
            break
        widest = max(foldable, key=room.__getitem__)
        room[widest] -= 1
    return {
        name: [folded(text, room[name]) for text in columns[name]]
        if room[name] < wide[name]
        else columns[name]
        for name in names
    }


def _dispensable(columns: dict[str, list[str]]) -> list[str]:
    """Return the names of all columns except the first, in the order in which to omit them: digests, then columns in
    which all values are equal, then columns from the right.
    """
    names = list(columns)[:0:-1]
    digests = [name for name in names if name.endswith("_digest")]
    constant = [name for name in names if len(columns[name]) > 1 and len(set(columns[name])) == 1]
    return list(dict.fromkeys([*digests, *constant, *names]))


def _total(widths: dict[str, int], names: Sequence[str]) -> int:
    return sum(widths[name] for name in names) + len(GAP) * (len(names) - 1)
