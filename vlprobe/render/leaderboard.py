"""The leaderboard as a table of text, with one row per model and one column per question set."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from vlprobe.render.attribution import with_source
from vlprobe.render.numbers import (
    TOO_FEW,
    WAYS,
    interval,
    number,
    signed,
    unit_of,
    with_interval,
)
from vlprobe.render.sentences import capitalized, count_word, joined, listed, sentence_names
from vlprobe.render.text_tables import BELOW
from vlprobe.render.words import dataset_name, edit_title
from vlprobe.views.estimates import SOLVED
from vlprobe.views.leaderboard import LeaderboardCell, LeaderboardColumn, ranked_models

LEGEND = "95 % intervals in parentheses. Models that share a letter are tied. Bold: clearly best."


def solved_note(blind: Mapping[str, float], noun: str) -> str:
    """Name the columns or rows (the `noun`) that can be solved without the picture, or return "".

    Args:
        blind: How often choosing the caption with fewer words is wrong (`estimates.fewer_words`), by title.

    >>> solved_note({"All": 0.5, "Added object": 0.024}, "rows").partition(": ")[2]
    'the caption with fewer words is right in 97.6 % of “Added object”.'
    """
    shares = [
        f"{number(1 - share, 'rate')} of “{head}”"
        for head, share in blind.items()
        if share < SOLVED
    ]
    if not shares:
        return ""
    subject = f"{capitalized(count_word(len(shares)))} {noun if shares[1:] else noun[:-1]}"
    rule = f"the caption with fewer words is right in {listed(shares)}"
    return f"{subject} can be solved without the picture: {rule}."


def formatted_table(
    columns: Sequence[LeaderboardColumn], renamed: Mapping[str, str], how: str
) -> str:
    """Format the leaderboard as "markdown" or "latex", with tie letters, clearly best values in bold, and the source.

    Question sets that have no model in common are tables below each other.

    Args:
        columns: The columns that `views.leaderboard.leaderboard` returns.
        renamed: Display names of models and datasets.
    """
    parts = parts_of(columns)
    tables = []
    for number_of_part, part in enumerate(parts, 1):
        models = ranked_models(part)
        table = in_words(part, renamed, how, models)
        groups = [[column.cell(model).group for model in models] for column in part]
        measured: dict[str, list[str]] = {}
        for column, head in zip(part, table.columns[1:], strict=True):
            measure = f"{column.metric.label}, {WAYS[column.metric.direction]}"
            measured.setdefault(measure, []).append(head)
        *others, (most, heads) = sorted(measured.items(), key=lambda entry: len(entry[1]))
        of_most = "" if not others else f": {heads[0] if len(heads) == 1 else 'all other columns'}"
        caption = joined(f"{most}." if not others else "", LEGEND)
        details = joined(*(f"{name}: {'; '.join(where)}." for name, where in others))
        details = joined(details, f"{most}{of_most}.") if others else ""
        runs = [run for column in part for run in column.question_set.runs if run.model in models]
        letters = dict(zip(table.columns[1:], groups, strict=True))
        label = "leaderboard" + f"-{number_of_part}" * (len(parts) > 1)
        details = details if how == "latex" else ""  # the command prints them above the tables
        tables.append(with_source(table, how, runs, renamed, letters, caption, details, label))
    return "\n".join(tables)


def parts_of(columns: Sequence[LeaderboardColumn]) -> list[list[LeaderboardColumn]]:
    """Split columns into parts without a common model, in the order of their first columns."""
    parts: list[list[LeaderboardColumn]] = []
    for column in columns:
        linked = [
            part
            for part in parts
            if any(not each.cells or column.cells.keys() & each.cells for each in part)
            or not column.cells
        ]
        joint = [*(each for part in linked for each in part), column]
        parts = [joint if part in linked[:1] else part for part in parts if part not in linked[1:]]
        parts += [joint] * (not linked)
    return parts


def in_words(
    columns: Sequence[LeaderboardColumn],
    renamed: Mapping[str, str],
    how: str = "table",
    models: Sequence[str] = (),
    heads: Sequence[str] = (),
) -> pd.DataFrame:
    """Format the leaderboard: each cell has a value with its interval and tie letters, or the reason why there is no
    value.

    Args:
        columns: The columns that `views.leaderboard.leaderboard` returns.
        renamed: Display names of models and datasets.
        how: "table" for cells with the tie letters; "latex" for intervals below the values.
        models: Models of the rows, in order; empty means all, best first.
        heads: Different headings of the columns; empty means dataset, probe, kind and type of edit.
    """
    models = models or ranked_models(columns)
    names = sentence_names(models, renamed)
    table = pd.DataFrame({"model": [names[model] for model in models]})
    for head, column in zip(heads or _heads(columns, renamed), columns, strict=True):
        unit = unit_of(column.metric, "cosine")
        texts = []
        for model in models:
            cell = column.cell(model)
            row = cell.estimate
            value = with_interval(row.value, row.low, row.high, unit) if row else ""
            if row and how == "latex":
                limits = interval(row.low, row.high, unit) or f"-, {TOO_FEW}"
                if unit == "rate":  # short, because the value has the unit
                    limits = limits.replace(" to ", "–").removesuffix(" %")
                value = f"{number(row.value, unit)}{BELOW}({limits})"
            value = ", ".join(filter(None, [value, compared(cell, unit)]))
            letters = cell.group if how == "table" else ""
            texts.append(" ".join(filter(None, [value, letters or cell.note])))
        table[head] = texts
    return table


def compared(cell: LeaderboardCell, unit: str) -> str:
    """Return a cell's difference from the baseline, "tied", or "" if there was no test."""
    if cell.verdict in ("fewer", "more"):
        return signed(cell.difference, unit).removesuffix(" points")
    return "tied" if cell.verdict == "tied" else ""


def describe_columns(columns: Sequence[LeaderboardColumn], renamed: Mapping[str, str]) -> list[str]:
    """Describe each column of the leaderboard in a sentence: its question set, its metric and the better direction."""
    return [
        f"{head}: {column.metric.label} ({column.metric.name}), {WAYS[column.metric.direction]}; "
        f"{column.question_set.label}."
        for head, column in zip(_heads(columns, renamed), columns, strict=True)
    ]


def _heads(columns: Sequence[LeaderboardColumn], renamed: Mapping[str, str]) -> list[str]:
    """Return a heading for each column: dataset, probe, kind and type of edit. If all columns have the same dataset,
    probe and kind, the headings of types have only the type. Equal headings are extended by the start of the key.
    """
    types = [edit_title(column.subtype) for column in columns if column.subtype]
    kinds = {(column.question_set.key, column.kind) for column in columns}
    # "model" is the heading of the first column
    is_short = len(kinds) == 1 and "model" not in types
    heads = []
    for column in columns:
        dataset = dataset_name(column.question_set.runs[0].dataset, renamed)
        of_type = [edit_title(column.subtype)] if column.subtype else []
        of_kind = [dataset, column.question_set.probe, *filter(None, [column.kind])]
        heads.append(", ".join(of_type if of_type and is_short else of_kind + of_type))
    return distinct_heads(heads, columns)


def distinct_heads(heads: Sequence[str], columns: Sequence[LeaderboardColumn]) -> list[str]:
    """Return headings of columns. Equal ones are extended by the start of the question set's key or, within a question
    set, by the stored names of the kind and the type of edit.
    """
    keys = [column.question_set.key[:8] for column in columns]
    counts, of_sets = Counter(heads), Counter(zip(heads, keys, strict=True))
    extended = []
    for head, key, column in zip(heads, keys, columns, strict=True):
        n_equal = of_sets[head, key]
        names = ", ".join(filter(None, (column.kind, column.subtype)))
        parts = [head, *[key] * (counts[head] > n_equal), *[f"({names})"] * (n_equal > 1)]
        extended.append(" ".join(parts))
    return extended
