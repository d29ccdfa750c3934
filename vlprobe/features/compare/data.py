"""Compare's scorecard: one row per model, one column per kind of case or type of edit, as HTML and in words.

To add a column, append a `LeaderboardColumn` to the result of `scorecard_columns`; to add a line to each cell, change
`_cell`.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import htpy
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from vlprobe.render.attribution import with_source
from vlprobe.render.charts.styles import Looks
from vlprobe.render.charts.theme import (
    LETTERS,
    PAGE,
    QUIET,
    arms,
    finished,
    safe,
    tick_step,
    wrapped,
)
from vlprobe.render.forest import MINUS, correction
from vlprobe.render.html.elements import breakable, embed, mark
from vlprobe.render.leaderboard import compared, distinct_heads, in_words, parts_of, solved_note
from vlprobe.render.numbers import RESAMPLED, TOO_FEW, interval, number
from vlprobe.render.sentences import (
    capitalized,
    count_halves,
    count_word,
    counted,
    every_model,
    halves_note,
    joined,
    listed,
)
from vlprobe.render.slides.models import full_names
from vlprobe.render.text_tables import BELOW
from vlprobe.render.words import as_title, dataset_name, edit_title, probe_name, value_label, wrong
from vlprobe.views.estimates import LEAST_DIFFERENT, SOLVED
from vlprobe.views.leaderboard import (
    FAILED,
    SHARE,
    LeaderboardCell,
    LeaderboardColumn,
    ranked_models,
    table,
)
from vlprobe.views.records import RunRow

FULL = 0.5  # share at which bars are full, unless one would pass it
MOST_NAMED = 3  # columns that the heading names for a model
MOST_TIED = 3  # tied models that the heading names
UNDECIDED = (
    f"fewer than {100 * LEAST_DIFFERENT:.0f} % of the cases have two captions of different lengths, so "
    "the rule cannot choose."
)
RULE, RULE_NAME = "Fewer words", "rule:fewer-words"  # on the page, in the CSV file
RIGHT = replace(
    SHARE,
    name="rejected",
    label="Wrong captions rejected",
    help="Share of wrong captions that score lower than the true one.",
    direction="up",
)
MOST_PANELS = 4  # in a row of the figure
HEAD = 50, 66  # pixels of the lines above a panel: of one question set, of several
LANE, MARGIN, TICKS = 16, 60, 24  # pixels of the figure: a model, title, numbers of an axis
GOOD_LANE = 10  # pixels of a model, at least: text of 6.75 points
MARK = 6  # pixels, less than most intervals
ROOM = 0.06  # share of an axis of the figure, left and right of the intervals
FIGURE_SPACE = "\u2007"  # as wide as a digit
WIDE = 40  # letters in a line
LETTER, BOLD, LINE = 0.55, 0.62, 1.3  # sizes of a font: width of a letter, height of a line
IN_SEARCHES = (
    "RoCOCO columns show the share of altered captions ranked above the true one. Trade-off "
    "shows the drop rate: the share of searches that altered captions spoil."
)
Address = Callable[[LeaderboardColumn, str], str]  # URL for a column and a model


@dataclass(frozen=True)
class Scorecard:
    """The scorecard's columns and choices.

    Attributes:
        columns: The columns, those of one question set next to each other, with cells of the models to show.
        names: Display names of models.
        looks: Colors and symbols of models.
        baseline: The model whose row is marked.
        is_right: Whether to show the share of cases in which a model is not fooled.
        sort: Number of the column that sorts the rows.
        is_reversed: Whether the worst model comes first.
        renamed: Display names of datasets.
        has_intervals: Whether cells show 95 % intervals instead of counts.
        every: All columns of the page, if a figure shows only the first ones.
        left_out: Titles of the columns that the user left out.
        unsolved: The columns without those that can be solved without the picture, if there are any.
    """

    columns: Sequence[LeaderboardColumn]
    names: Mapping[str, str]
    looks: Looks
    baseline: str = ""
    is_right: bool = False
    sort: int = 0
    is_reversed: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)
    has_intervals: bool = False
    every: Sequence[LeaderboardColumn] = ()
    left_out: Sequence[str] = ()
    unsolved: Sequence[LeaderboardColumn] = ()

    @cached_property  # each column of the table goes through it
    def rows(self) -> list[str]:
        """The models in the order of the rows. Models without a value come last."""
        models = ranked_models(self.columns, self.sort)
        if self.is_reversed:
            is_missing = {model: self.columns[self.sort].rank(model)[0] for model in models}
            models = sorted(reversed(models), key=is_missing.__getitem__)
        return models

    def table(self) -> pd.DataFrame:
        """Return one row per model and column, as `vlprobe leaderboard --format csv` prints it, with display names, and
        a row per column for the rule without the picture. If `is_right`, `n_right` replaces `n_fooled`.
        """
        columns = [
            replace(column, metric=RIGHT) if self._is_mirrored(column) else column
            for column in self._shown
        ]
        rows = table(columns, self.baseline)
        if self._has_rule:
            keys = ("set", "dataset", "probe", "kind", "subtype", "metric", "better")
            rules = rows.drop_duplicates(["set", "kind", "subtype"]).loc[:, list(keys)]
            rules = rules.assign(model=RULE_NAME, value=[column.blind for column in columns])
            rules["n_cases"] = [column.n_cases for column in columns]
            counts = {name: "Int64" for name in ("n_items", "n_cases", "n_fooled", "n_halves")}
            rows = pd.concat([rows, rules], ignore_index=True).astype(counts)
        if self.is_right:
            rows = rows.rename(columns={"n_fooled": "n_right"})
        names = {**self.names, RULE_NAME: f"{RULE} (no picture)"}
        datasets = [dataset_name(dataset, self.renamed) for dataset in rows["dataset"]]
        rows.insert(1, "model_name", [names[model] for model in rows["model"]])
        rows.insert(4, "dataset_name", datasets)
        return rows

    def text(self, how: str) -> str:
        """Format the table on the page as `vlprobe leaderboard` prints it: `how` is "latex" or "markdown".

        Question sets that different models answered are tables below each other.
        """
        places, models = self._grid(len(self.columns))
        heads, shown = self.heads(BELOW if how == "latex" else ": "), self._shown
        tables = []
        for number_of_table, rows in enumerate(models, 1):
            here = [index for index, (row, _) in enumerate(places) if row == number_of_table]
            columns = [shown[index] for index in here]
            table = in_words(columns, self.renamed, how, rows, [heads[index] for index in here])
            table["model"] = [
                f"{self.names[model]} (baseline)" if model == self.baseline else self.names[model]
                for model in rows
            ]
            counts = [f"{column.n_cases:,}" for column in columns]
            around = [pd.DataFrame([["Cases", *counts]], columns=list(table)), table]
            if self._has_rule:
                shares = [number(column.blind, "rate") for column in columns]
                row = [f"{RULE} (no picture)", *shares]
                around.append(pd.DataFrame([row], columns=list(table)))
            whole = pd.concat(around).rename(columns={"model": "Model"})
            n_after = len(whole) - len(table) - 1
            groups = [[column.cell(model).group for model in rows] for column in columns]
            letters = {
                head: ["", *group, *[""] * n_after]
                for head, group in zip(table.columns[1:], groups, strict=True)
            }
            baseline = self.baseline if self.baseline in rows else ""
            part = replace(self, columns=[self.columns[i] for i in here], sort=0, baseline=baseline)
            label = "scorecard" + f"-{number_of_table}" * (len(models) > 1)
            sources = part.runs, self.renamed
            tables.append(with_source(whole, how, *sources, letters, *part._facts(), label))
        return "\n".join(tables)

    @property
    def runs(self) -> list[RunRow]:
        """The runs of the shown models, by question set."""
        sets = {column.question_set.key: column.question_set for column in self.columns}
        return [run for each in sets.values() for run in each.runs if run.model in self.rows]

    def heads(self, between: str = ": ") -> list[str]:
        """Return titles of the columns. For several question sets, the dataset and test come before `between`."""
        heads = [
            f"{self.title(column)} ({kind})"
            if (kind := self._kind_of_type(column))
            else self.title(column)
            for column in self.columns
        ]
        if self.is_right and not all(map(self._moves, self.columns)):
            heads = [
                f"{head}, lower is better" if self._moves(column) else head
                for head, column in zip(heads, self.columns, strict=True)
            ]
        if len({column.question_set.key for column in self.columns}) > 1:
            is_one_test = len({each.question_set.probe for each in self.columns}) == 1
            sets = [
                self._dataset(each) if is_one_test else self._set_name(each, is_short=True)
                for each in self.columns
            ]
            heads = [f"{name}{between}{head}" for name, head in zip(sets, heads, strict=True)]
        return distinct_heads(heads, self.columns)

    def _dataset(self, column: LeaderboardColumn) -> str:
        return dataset_name(column.question_set.runs[0].dataset, self.renamed)

    def _set_name(self, column: LeaderboardColumn, is_short: bool = False) -> str:
        """Return the dataset and the test, in short by its abbreviation if it has one ("Drawn scenes, LGIP")."""
        run = column.question_set.runs[0]
        test = probe_name(run.probe, run.dataset)
        test = re.sub(r"^.*\((\w+)\)$", r"\1", test) if is_short else test
        return f"{self._dataset(column)}, {test}"

    def _facts(self, is_figure: bool = False) -> tuple[str, str]:
        """Return the facts for the caption of the table, or of the figure, which has no differences, and details."""
        base = self.names.get(self.baseline, "")
        measured = self._measured.replace("fooled", "share of cases that fool a model")
        measured = measured.replace("right", "share of cases in which a model is right")
        measured = measured.replace(" or m", ", or (columns of that name) mean m")
        caption = joined(
            f"{capitalized(measured)}, with 95 % intervals.",
            f"Differences from {base} are in points; tied: no clear difference."
            if base and not is_figure
            else "",
            "Models that share a letter are tied." if self._has_letters else "",
            "Bold: clearly best.",
            "Each panel has its own axis." if is_figure and self.columns[1:] else "",
            f"Dashed line and bold name: {base}, the baseline." if base and is_figure else "",
        )
        return caption, joined(
            f"{', '.join(filter(None, ['Paired tests by picture', self._correction]))}.",
            halves_note(self._both_orders),
            self.note(),
            f"Left out: {listed(self.left_out)}." if self.left_out else "",
            "" if is_figure else self._rule_note,
        )

    @property
    def _rule_note(self) -> str:
        gap = f" -: {UNDECIDED}" * any(math.isnan(column.blind) for column in self.columns)
        return f"“{RULE}” counts captions of equal length as wrong.{gap}" if self._has_rule else ""

    @property
    def _measured(self) -> str:
        """What the values are: "fooled", "right", "movement", or a share and "movement" for columns of both types."""
        share = "right" if self.is_right else "fooled"
        measures = {"movement" if self._moves(column) else share for column in self.columns}
        return " or ".join(sorted(measures, key="movement".__eq__))

    def caption(self) -> str:
        """Return the facts for the caption of `figure`: the findings on the page and what the letters mean."""
        parts = parts_of(self.columns)
        headings = [
            f"{self._dataset(part[0])}: " * (len(parts) > 1)
            + replace(self, columns=part, sort=0).finding()[0]
            for part in parts
        ]
        return joined(*headings, *self._facts(is_figure=True), RESAMPLED)

    def arrangement(self, width: int = PAGE[0]) -> tuple[int, float]:
        """Return the most panels in a row of the figure, and the height of a model in pixels so that it fits a page."""
        across, lane = 0, 0.0
        head = HEAD[len({each.question_set.key for each in self.columns}) > 1]
        for across in range(3, 1 + MOST_PANELS) if width == PAGE[0] else (2,):
            shown = self._grid(across)[1]
            room = PAGE[1] - MARGIN - len(shown) * (head + TICKS)
            lane = min(LANE, room / max(1, sum(map(len, shown))))
            if lane >= GOOD_LANE:
                break
        return across, lane

    def figure(self, width: int = PAGE[0]) -> go.Figure:
        """Draw a panel for each column, with one row per model: its share with 95 % interval, in print next to the mark
        with the letters of ties. Each panel has its own axis, because intervals are narrow.

        Args:
            width: Pixels. Rows, letters and marks shrink until the figure fits a page or has GOOD_LANE.
        """
        columns, rows = self._shown, self.rows
        across, lane = self.arrangement(width)
        places, shown = self._grid(across)
        down, across = len(shown), max(col for _, col in places)
        largest = LETTERS - (3 if width == PAGE[0] else 4)
        letters = min(largest, max(GOOD_LANE, int(lane)) - 1)
        names = {model: wrapped(self.names[model], WIDE * width // PAGE[0]) for model in rows}
        longest = max(len(part) for name in names.values() for part in name.split("<br>"))
        left = min(10 + LETTER * letters * longest, width / 2)
        longest = max(5 + 0.7 * len(c.cell(model).group) for c in columns for model in rows)
        gap = min(max(30, LETTER * letters * longest + 8), (width - left) / (1.5 * across))
        panel = (width - left) / across
        titles = [
            "<br>".join(wrapped(part, int((panel - 6) / (BOLD * letters))) for part in parts)
            for parts in (head.split(BELOW) for head in self.heads(BELOW))
        ]
        head = LINE * letters * (2 + max(title.count("<br>") for title in titles)) + 8
        room = PAGE[1] - MARGIN - down * (head + TICKS)
        lane = max(GOOD_LANE, min(lane, room / sum(map(len, shown))))
        letters = min(letters, int(lane) - 1)
        height, between = lane * sum(map(len, shown)) / down, head + TICKS
        figure: Any = make_subplots(
            *(down, across),
            shared_yaxes=True,
            specs=[
                [{} if (row, col) in places else None for col in range(1, across + 1)]
                for row in range(1, down + 1)
            ],
            row_heights=[len(models) for models in shown],
            horizontal_spacing=gap / (width - left - gap),
            vertical_spacing=between / (down * (height + between) - between) if down > 1 else 0,
        )
        if self.baseline in rows:
            names[self.baseline] = f"<b>{names[self.baseline]}</b>"
        annotations: list[dict[str, Any]] = []  # set at once: each `add_annotation` checks all
        for place, (column, (down_to, col)) in enumerate(zip(columns, places, strict=True)):
            axes = {"row": down_to, "col": col}
            axis = place + 1 if place else ""
            models = shown[down_to - 1]
            text = {"showarrow": False, "xanchor": "left", "font": {"size": letters}}
            text |= {"xref": f"x{axis} domain", "yref": f"y{axis} domain"}
            title = f"<b>{titles[place]}</b><br>{column.n_cases:,} cases"
            at_top = {"x": 0, "y": 1, "yanchor": "bottom", "align": "left"}
            annotations.append(text | at_top | {"text": title})
            figure.update_yaxes(
                tickvals=list(range(len(models))),
                ticktext=[names[model] for model in models],
                range=[len(models) - 0.5, -0.5],
                **axes,
            )
            if base := column.cell(self.baseline).estimate:  # a shape would be below the grid
                line = {"color": QUIET, "dash": "3px,2px", "width": 1}
                ends = {"x": [base.value] * 2, "y": [-0.5, len(models) - 0.5]}
                figure.add_scatter(**ends, mode="lines", line=line, hoverinfo="skip", **axes)
            for row, model in enumerate(models):
                if (each := column.cell(model).estimate) is None:
                    continue
                color, symbol = self.looks[model]
                figure.add_scatter(
                    x=[each.value],
                    y=[row],
                    error_x=arms([each.value], [each.low], [each.high], color)
                    | {"width": min(4.5, lane / 3), "thickness": 1.2},
                    mode="markers",
                    marker={"color": color, "symbol": symbol, "size": min(MARK, lane - 1)},
                    name=safe(self.names[model]),
                    customdata=[[model, column.kind, column.subtype]],
                    **axes,
                )
                value = {"x": 1, "y": row, "yref": f"y{axis}"}
                annotations.append(text | value | {"text": self._printed(column, model)})
            ends = [
                end
                for model in rows
                if (each := column.cell(model).estimate)
                for end in (each.value, each.low, each.high)
                if not math.isnan(end)
            ] or [0.0, 1.0]
            room = ROOM * (max(ends) - min(ends)) or min(ROOM, max(ends)) or ROOM
            low, high = min(ends) - room, max(ends) + room
            figure.update_xaxes(
                range=[low, high],
                tickformat=".2~%" if column.metric.unit == "rate" else "",
                dtick=tick_step(low, high),
                tickangle=0,
                ticklabeloverflow="allow",  # beside a panel is room for half a number
                zeroline=False,
                **axes,
            )
        named_sets = dict.fromkeys(map(self._set_name, columns))
        title = " · ".join(named_sets)
        if len({c.question_set.probe for c in columns}) > 1:
            title = counted(len(named_sets), "question set")  # each panel names its own
        is_share = self.is_right and not all(map(self._moves, columns))
        measure = f"{self._measured}, {'higher' if is_share else 'lower'} is better"
        line = wrapped(title, int(width / (BOLD * letters)))
        is_narrow = BOLD * letters * len(title + measure) > width
        line = f"<b>{line}</b>:{'<br>' if is_narrow else ' '}{measure}"
        top = 16 + LINE * letters * (1 + line.count("<br>")) + head
        finished(figure, round(top + TICKS + down * (height + between) - between))
        figure.update_xaxes(tickfont_size=letters)
        figure.update_yaxes(tickfont_size=letters, showgrid=False, zeroline=False)
        return figure.update_layout(
            title={"text": line, "font": {"size": letters}}
            | {"x": 0, "xref": "container", "y": 1, "yanchor": "top", "pad": {"t": 8, "l": 6}},
            annotations=annotations,
            showlegend=False,
            margin={"t": top, "r": gap, "b": TICKS, "l": left},
        )

    def _grid(self, across: int) -> tuple[list[tuple[int, int]], list[list[str]]]:
        """Arrange panels of columns in rows, each with question sets that the same models answered.

        Returns:
            The row and column of each panel, counted from 1, and the models of each row.
        """
        places: list[tuple[int, int]] = []
        shown: list[list[str]] = []
        for column in self.columns:
            alike = [each for each in self.columns if each.question_set == column.question_set]
            models = [m for m in self.rows if any(each.cell(m).estimate for each in alike)]
            models = models or self.rows
            if not shown or models != shown[-1] or places[-1][1] == across:
                shown.append(models)
                places.append((len(shown), 1))
            else:
                places.append((len(shown), places[-1][1] + 1))
        return places, shown

    def _printed(self, column: LeaderboardColumn, model: str) -> str:
        """Return a model's value and letters of ties for the figure, as wide as those of other models."""
        cell = column.cell(model)
        if cell.estimate is None:
            return ""
        value = f"{_bare(cell.estimate.value, column.metric.unit):>4}".replace(" ", FIGURE_SPACE)
        value = f"<b>{value}</b>" if self._clear(column) == model else value
        return f"{value}<sup>{cell.group}</sup>" if cell.group else value

    def finding(self) -> tuple[str, str]:
        """Return a heading and a sentence: which model is clearly best where, and where models are tied. If models are
        hidden, the heading says how many are shown.
        """
        heading, detail = self._finding()
        rankings = [(column.cells, column.ranking) for column in self.columns]
        is_choice = len(self.rows) > 1 + len(self._failed) and any(
            ranking and len(cells) < len(ranking.contestants) for cells, ranking in rankings
        )
        scope = [f"of the {count_word(len(self.rows))} models shown"] * is_choice
        if self._is_one_set and (first := self.columns[0]).pooled:
            scope.append(f"on {self.title(first)} together")
        elif self._is_one_set and first.subtype:
            scope.append(f"against {self._lie(first)}")
        return f"{capitalized(', '.join(scope))}: " * bool(scope) + heading, detail

    def _finding(self) -> tuple[str, str]:
        first, columns = self.columns[0], self._counted
        n_tied = sum(bool(self._top(each) and not self._clear(each)) for each in columns)
        rated = [model for model in self.rows if _n_ranked(self.columns, model)]
        if len(rated) < 2:
            failed = self._failed
            left_out = f"Not compared: {listed(failed)}, which failed a check."
            return left_out if failed else "There is no second model to compare.", ""
        places: dict[str, list[LeaderboardColumn]] = {}
        for column in columns:
            has_rivals = sum(not cell.note for cell in column.cells.values()) > 1
            if has_rivals and (model := self._clear(column)):
                places.setdefault(self.names[model], []).append(column)
        tied = ""
        if n_tied and (n_counted := sum(column.is_counted for column in columns)) > 1:
            tied = f"{capitalized(count_word(n_tied))} of {count_word(n_counted)} {self._noun} "
            tied += f"{'has' if n_tied == 1 else 'have'} a tie at the top."
        if self._is_one_set:
            heading, best = self._heading(first), [self.names[model] for model in self._top(first)]
            places = {name: where for name, where in places.items() if [name] != best}
            word, n_first = "best", 1
        else:
            heading, word, n_first = "", "clearly best", 2
        most_first = sorted(places.items(), key=lambda entry: -len(entry[1]))
        also = [f"{name} is {word} {self._phrase(where)}." for name, where in most_first]
        heading = joined(heading, *also[:n_first]) or "No model is clearly best in any test."
        return heading, joined(self._best_most_often(), *also[n_first : n_first + 2], tied)

    def _heading(self, column: LeaderboardColumn) -> str:
        """Say which models are best in a column, or why none is."""
        best = [self.names[model] for model in self._top(column)]
        if column.all_tied:
            names = [self.names[model] for model in self.rows if not column.cell(model).note]
            names = names if len(names) <= MOST_TIED else [capitalized(every_model(len(names)))]
            return f"{listed(names)} are tied."
        if not column.has_intervals:
            return "There are too few pictures to compare the models."
        if column.is_slice:
            return "Someone chose the cases of this slice, so no model is best."
        if not best:
            return "No model is better than guessing."
        if not self._clear(column) and len(best) == 1:
            return f"Only {best[0]} is clearly better than guessing."
        if len(best) == 1:
            feat = "is right most often" if self.is_right else "is fooled least"
            return f"{best[0]} {'moves least' if self._moves(column) else feat}."
        if len(best) > MOST_TIED:
            return f"{capitalized(count_word(len(best)))} models are tied at the top."
        return f"{listed(best)} are tied at the top."

    @cached_property
    def _counted(self) -> list[LeaderboardColumn]:
        """The columns that findings count, so that no case counts twice: the types of edit of one kind of case or, for
        several kinds, all cases of each, and types without a column of all cases.
        """
        pooled = {(each.question_set.key, each.kind) for each in self.columns if not each.subtype}
        return [
            each
            for each in self.columns
            if not each.is_slice
            if (each.subtype if self._is_one_set else not each.subtype)
            or (each.question_set.key, each.kind) not in pooled
        ]

    @property
    def _noun(self) -> str:
        """What findings count: "types of edit", or "tests" if some columns have all cases of a kind."""
        return "types of edit" if all(each.subtype for each in self._counted) else "tests"

    def _best_most_often(self) -> str:
        """Name the models that are best, or tied for best, in the most columns, and the next ones, with the counts, and
        those that failed a check.

        Returns "" if more than MOST_TIED models lead.
        """
        columns = [column for column in self._counted if column.is_counted]
        n_best = Counter(model for column in columns for model in self._top(column))
        places: dict[tuple[int, int], list[str]] = {}
        for model, n in n_best.most_common():
            places.setdefault((n, _n_ranked(columns, model)), []).append(self.names[model])
        if len(columns) < 2 or not places or len(next(iter(places.values()))) > MOST_TIED:
            return ""
        leaders = ", then ".join(
            f"{listed(names)} ({n} of {n_ranked})"
            for (n, n_ranked), names in itertools.islice(places.items(), 2)
            if len(names) <= MOST_TIED
        )
        failed = self._failed
        return joined(
            f"Best, or tied for best, on the most {self._noun}: {leaders}.",
            self._left_out,
            f"Not ranked: {listed(failed)}, which failed a check." if failed else "",
        )

    @property
    def _left_out(self) -> str:
        """Name the columns that are not counted because all models are tied in them, or return ""."""
        tied = [
            f"“{self.title(column)}” ({column.n_cases:,} cases)"
            for column in self._counted
            if column.all_tied
        ]
        names = listed(tied) if len(tied) <= MOST_NAMED else f"{count_word(len(tied))} {self._noun}"
        return f"Not counted: {names}, without a clear difference between models." if tied else ""

    @property
    def _is_one_set(self) -> bool:
        """Whether the columns are one kind of case and its types of edit."""
        return len({(column.question_set.key, column.kind) for column in self.columns}) == 1

    def _top(self, column: LeaderboardColumn) -> list[str]:
        return [model for model, cell in column.cells.items() if cell.is_best]

    def _clear(self, column: LeaderboardColumn) -> str:
        """Return the only best model of a column if no other model is tied with it, else ""."""
        top = self._top(column)
        if len(top) != 1 or column.ranking is None:
            return ""
        others = {each.model for each in column.ranking.fit} & column.cells.keys() - {*top}
        is_tied = any(column.ranking.verdict(top[0], model) == "tied" for model in others)
        return "" if is_tied else top[0]

    def title(self, column: LeaderboardColumn) -> str:
        """Return a column's title, such as "Swapped objects", or "All" for all types of edit of the only kind."""
        if not column.subtype and self._moves(column):
            return column.metric.label
        every = self.every or self.columns
        kinds = {each.kind for each in every if each.question_set == column.question_set}
        if column.subtype:
            return edit_title(column.subtype)
        some = f"{len(column.pooled)} of {column.n_types} types" if column.pooled else ""
        if len(kinds) == 1:
            return some or "All"
        return as_title(self._lie(column)) + (some and f" ({some})")

    def _phrase(self, columns: Sequence[LeaderboardColumn]) -> str:
        """Say in which columns a model is best, such as "against swapped attributes and a wrong object"."""
        datasets = {self._dataset(each) for each in columns}
        is_several = len({self._dataset(each) for each in self.columns}) > 1
        last, phrases = "", list[str]()
        n_named = MOST_NAMED + (len(columns) == MOST_NAMED + 1)  # not "one other column"
        named = columns[:n_named]
        for column, following in zip(named, [*named[1:], None], strict=True):
            word, where = "under" if self._moves(column) else "against", self._lie(column)
            where += f" ({len(column.pooled)} of {column.n_types} types)" * bool(column.pooled)
            if self.title(column) == "All":
                word, where = "on", self._dataset(column)
            if kind := self._kind_of_type(column):
                where = f"{where} ({kind})"
            is_same = following and self._dataset(following) == self._dataset(column)
            if is_several and len(datasets) > 1 and word != "on" and not is_same:
                where = f"{where} ({self._dataset(column)})"
            phrases.append(where if word == last else f"{word} {where}")
            last = word
        text = listed(phrases)
        if n_more := len(columns[n_named:]):
            text = f"{', '.join(phrases)} and in {n_more:,} other columns"
        is_named_once = is_several and len(datasets) == 1 and not phrases[0].startswith("on ")
        return f"{text}{f' ({datasets.pop()})' * is_named_once}"

    def _lie(self, column: LeaderboardColumn) -> str:
        """Return what is wrong in the captions of a column, such as "a wrong object"."""
        if column.subtype:
            return wrong(column.subtype)
        return column.question_set.presentation.kind(column.kind).lie or value_label(column.kind)

    def _kind_of_type(self, column: LeaderboardColumn) -> str:
        """Return the kind of a column of a type, if another kind of its question set has such a column, or ""."""
        test = column.question_set.key, column.subtype
        kinds = {
            each.kind for each in self.columns if (each.question_set.key, each.subtype) == test
        }
        if not column.subtype or len(kinds) == 1:
            return ""
        return column.question_set.presentation.kind(column.kind).wrong_side

    def note(self) -> str:
        """Name the columns that can be solved without the picture, if any, and say which model is best without them."""
        heads = zip(self.heads(), self.columns, strict=True)
        note = solved_note({head: column.blind for head, column in heads}, "columns")
        first = self.columns[0]
        rest = [each for each in self.unsolved if each.question_set.key == first.question_set.key]
        n_rated = sum(not first.cell(model).note for model in self.rows)
        is_known = note and rest and self._is_one_set and n_rated > 1
        if not is_known or rest[0].pooled in ((), first.pooled):
            return note
        before, heading = self._heading(first), self._heading(rest[0])
        them = "them" if sum(each.blind < SOLVED for each in self.columns) > 1 else "it"
        alike = f"{heading.removesuffix('.')} with and without {them}."
        return f"{note} {alike if heading == before else f'Without {them}: {heading}'}"

    def reading(self) -> tuple[str, str]:
        """Explain colors, letters and differences, which a reader needs first, and the rest: missing colors, bars,
        counts, the baseline and missing values.
        """
        both_orders = self._both_orders
        best, fooled = ("highest", "right") if self.is_right else ("lowest", "fooled")
        base, failed = self.names.get(self.baseline), self._failed
        if self.is_right and any(map(self._moves, self.columns)):
            best = "best"
        has_bars = any(column.metric.unit == "rate" for column in self.columns)
        common = self._common_guess
        guesses = "Guessing: the share of a model that guesses, where it is known."
        if common is not None:
            guesses = "" if math.isnan(common) else f"Guessing: {number(common, 'rate')}."
        guess = "" if all(map(self._moves, self.columns)) else ", and clearly better than guessing"
        apart: dict[str, list[str]] = {}  # columns by the reason why they are not colored
        for each in self.columns:
            is_known = any(cell.estimate for cell in each.cells.values())
            if is_known and (each.all_tied or not each.is_testable):
                reason = "no clear difference between models" if each.all_tied else TOO_FEW
                reason = "models' answers selected the cases" if each.caveat else reason
                apart.setdefault(reason, []).append(f"“{self.title(each)}”")
        left_out = "; ".join(f"{listed(names)} ({reason})" for reason, names in apart.items())
        first = joined(
            f"Colored: {best}, or tied with the {best} and not clearly worse than another such model "
            f"(paired by picture, p < .05){guess}.",
            "Models that share a letter are tied." if self._has_letters else "",
            f"Small figures: difference from {base} in points, or tied." if base else "",
        )
        return first, joined(
            f"Never colored: {listed(failed)}, which failed a check." if failed else "",
            f"Not colored, and not counted in the heading: {left_out}." if apart else "",
            "The heading does not count named slices, whose cases someone chose."
            if any(each.is_slice for each in self.columns)
            else "",
            f"{self._correction}." if self._correction else "",
            f"A full bar is {100 * self._full:.0f} %." if has_bars else "",
            guesses,
            self._rule_note,
            f"{listed(both_orders)} saw the captions in both orders. "
            f"{'Shares' if self.has_intervals else 'Counts'}: cases {fooled} in both orders + "
            f"cases {fooled} in only one order, each counted as half."
            if both_orders
            else "",
            f"Baseline: {base}. Unless you choose one, it is the model with the {best} value on "
            "all cases, of those that passed their checks."
            if base
            else "",
            f"Won, tied, lost: {self._noun} on which a model is clearly better than {base}, tied or "
            "clearly worse."
            if any(map(self._tally, self.rows))
            else "",
            IN_SEARCHES if "rococo" in {each.question_set.probe for each in self.columns} else "",
            "n/a: the model has no answers in this column."
            if any(
                not all(column.cell(model).estimate for model in ranked_models(part))
                for part in parts_of(self.columns)
                for column in part
            )
            else "",
        )

    @property
    def _failed(self) -> list[str]:
        """Display names of the shown models that failed a check on all datasets, so no column ranks them."""
        noted = {model: {each.cell(model).note for each in self.columns} for model in self.rows}
        return [
            self.names[model]
            for model, notes in noted.items()
            if FAILED in notes and "" not in notes
        ]

    @property
    def _both_orders(self) -> list[str]:
        """Display names of the shown models that were asked in both orders of the captions."""
        runs = [run for column in self.columns for run in column.question_set.runs]
        models = {run.model for run in runs if run.n_orders == 2}
        return [self.names[model] for model in self.rows if model in models]

    @property
    def _correction(self) -> str:
        """Name the tests for which p-values are corrected, with their number if there is one kind of case."""
        rankings = [(each.subtype, each.ranking) for each in self.columns if each.ranking]
        words = "corrected for every pair of models, separately for each kind of case"
        if self._is_one_set:
            words = correction((name, row.n_tests) for name, each in rankings for row in each.rows)
        methods = {each.correction for _, each in rankings} or {"Holm"}
        return f"{' or '.join(sorted(methods, reverse=True))}-{words}" if words else ""

    @property
    def _has_letters(self) -> bool:
        return any(cell.group for column in self.columns for cell in column.cells.values())

    @property
    def _has_rule(self) -> bool:
        return any(column.blind < FULL for column in self.columns)

    def html(
        self,
        differences: Address = lambda *_: "",
        cases: Address = lambda *_: "",
        sorts: Callable[[int], str] = lambda _: "",
        switches: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Return the table as HTML. Functions that return "" make no links.

        Args:
            differences: Function that returns the URL of the paired differences behind a cell.
            cases: Function that returns the URL of the cases that fool a model in a column.
            sorts: Function that returns the URL that sorts by a column.
            switches: URLs that show other columns or values, by their titles.
        """
        groups = [
            (first, 1 + len(others))
            for _, (first, *others) in itertools.groupby(self.columns, self._test)
        ]
        heads = [self._head(place, each, sorts(place)) for place, each in enumerate(self.columns)]
        shows = [htpy.div[_link(address, words)[words]] for words, address in switches.items()]
        head = htpy.thead[
            htpy.tr[htpy.td[shows], (self._group(column, width) for column, width in groups)],
            htpy.tr[htpy.th(scope="col")["Model"], heads],
        ]
        notes = {  # why a model with values has no rank
            model: cell.note
            for column in self.columns
            for model, cell in column.cells.items()
            if cell.estimate and cell.note
        }
        plain, on_slides = full_names({}), {}
        for model in self.rows:
            name, exact, _ = plain.get(model, "").partition(f" ({self.names[model]})")
            on_slides |= {model: f"on slides: {name}"} if exact else {}
        rows = [
            htpy.tr(".vp-pinned" if model == self.baseline else "")[
                htpy.th(scope="row", title=model)[
                    embed(mark(self.looks[model])),
                    " ",
                    embed(breakable(self.names[model])),
                    model == self.baseline and htpy.small[" baseline"],
                    model in notes and htpy.small[f" {notes[model]}"],
                    model in on_slides and htpy.small(".vp-tally")[on_slides[model]],
                    (tally := self._tally(model)) and htpy.small(".vp-tally")[tally],
                ],
                [self._cell(column, model, differences, cases) for column in self._shown],
            ]
            for model in self.rows
        ]
        if self._has_rule:
            cells = [
                htpy.td(title=UNDECIDED)["-"]
                if math.isnan(column.blind)
                else htpy.td[_bare(column.blind, "rate")]
                for column in self._shown
            ]
            note = htpy.small["no picture; equal lengths count as wrong"]
            head_cell = htpy.th(scope="row")[htpy.em[RULE], " ", note]
            rows.append(htpy.tr(".vp-rule")[head_cell, cells])
        scroll = htpy.div(
            ".vp-scroll", role="region", tabindex="0", aria_label="Scorecard of all models"
        )
        return str(scroll[htpy.table(".vp-table.vp-scorecard")[head, htpy.tbody[rows]]])

    def _tally(self, model: str) -> str:
        """Count the types of edit or tests on which a model is clearly better than the baseline, tied, or worse."""
        verdicts = [each.cell(model).verdict for each in self._counted]
        n_won, n_tied, n_lost = map(verdicts.count, ("fewer", "tied", "more"))
        tally = f"{n_won} won, {n_tied} tied, {n_lost} lost"
        return tally if n_won + n_tied + n_lost > 1 else ""

    def _test(self, column: LeaderboardColumn) -> tuple[str, str]:
        """Return the question set of a column, and its kind of case if several kinds have columns of types."""
        key = column.question_set.key
        alike = [each for each in self.columns if each.question_set.key == key]
        is_split = any(each.subtype for each in alike) and len({each.kind for each in alike}) > 1
        return key, column.kind if is_split else ""

    def _group(self, column: LeaderboardColumn, width: int) -> htpy.Node:
        run = column.question_set.runs[0]
        name = dataset_name(run.dataset, self.renamed)
        test = probe_name(run.probe, run.dataset)
        if kind := self._test(column)[1]:
            test += f": {column.question_set.presentation.kind(kind).wrong_side}"
        return htpy.th(scope="colgroup", colspan=str(width))[name, " ", htpy.small[test]]

    def _head(self, place: int, column: LeaderboardColumn, address: str) -> htpy.Node:
        is_mirrored = self._is_mirrored(column)
        order = "descending" if self.is_reversed != is_mirrored else "ascending"
        order = order if place == self.sort else None
        arrow = {"ascending": " ▲", "descending": " ▼", None: ""}[order]
        title = _link(address, "Sort by this column")[self.title(column)]
        guess, note = self._guess(column), ""
        if self._moves(column):
            note = "lower is better"
        elif self._common_guess is None and not math.isnan(guess):
            note = f"guessing {number(guess, 'rate')}".replace(" %", "\u00a0%")
        count = htpy.small[f"{column.n_cases:,}"]
        note = ", ".join(filter(None, [note, "all tied" * column.all_tied]))
        below = note and [htpy.br, htpy.small[note]]
        return htpy.th(scope="col", aria_sort=order)[title, arrow, htpy.br, count, below]

    def _guess(self, column: LeaderboardColumn) -> float:
        """Return the share for a model that guesses in a column, as shown; NaN if it is not defined."""
        guess = column.ranking.guess if column.ranking else math.nan
        return 1 - guess if self._is_mirrored(column) else guess

    @cached_property
    def _common_guess(self) -> float | None:
        """The share for guessing if it is the same in all columns (NaN: it is not defined), else None."""
        guess, *others = {str(guess): guess for guess in map(self._guess, self.columns)}.values()
        return None if others else guess

    @cached_property  # each cell has a bar
    def _full(self) -> float:
        """The share at which bars are full: FULL, or 1 if a bar would pass it."""
        rates = [
            row.value
            for column in self._shown
            for model in self.rows
            if column.metric.unit == "rate" and (row := column.cell(model).estimate)
        ]
        return 1.0 if max(rates, default=0.0) > FULL else FULL

    @property
    def _shown(self) -> list[LeaderboardColumn]:
        """The columns with shares, differences and counts of the cases in which a model is right, if chosen."""
        return [
            replace(
                column,
                cells={model: _mirrored(cell) for model, cell in column.cells.items()},
                blind=1 - column.blind,
            )
            if self._is_mirrored(column)
            else column
            for column in self.columns
        ]

    def _is_mirrored(self, column: LeaderboardColumn) -> bool:
        """Return whether a column shows the share of cases in which a model is right. Movements have no such share."""
        return self.is_right and not self._moves(column)

    def _moves(self, column: LeaderboardColumn) -> bool:
        return column.question_set.presentation.kind(column.kind).is_movement

    def _cell(
        self, column: LeaderboardColumn, model: str, differences: Address, cases: Address
    ) -> htpy.Node:
        cell = column.cell(model)
        if cell.estimate is None:
            return htpy.td(title=cell.note)["n/a"]
        is_mirrored = self._is_mirrored(column)
        value, unit = cell.estimate.value, column.metric.unit
        width = min(100, 100 * value / self._full)
        ends = interval(cell.estimate.low, cell.estimate.high, unit).removesuffix(" %")
        bar = htpy.span(".vp-bar.vp-right" if is_mirrored else ".vp-bar")[
            htpy.span(style=f"width:{width:.1f}%")
        ]
        link = _link(differences(column, model), self.tooltip(column, cell))
        count = None
        if self.has_intervals:
            count = htpy.span(".vp-count")[ends or "-"]
        elif cell.n_fooled:
            happen = "do not fool" if is_mirrored else "fool"
            label = f"{cell.n_fooled:,} cases that {happen} {self.names[model]}"
            if (n_once := column.n_halves(model)) and not is_mirrored:
                label += f", {n_once:,} of them in only one order of the captions (counted as half)"
            label += ": Explore"
            count = _link(cases(column, model), label, ".vp-go.vp-count")[self._count(column, cell)]
        elif is_mirrored and value > 0:  # right in one order only
            count = htpy.span(".vp-count")[self._count(column, cell)]
        numbers = htpy.span(".vp-numbers")[
            htpy.small[compared(cell, unit).replace("-", MINUS)],
            " ",
            link[htpy.b[_bare(value, unit)]],
            htpy.sup[cell.group],
        ]
        below = htpy.span(".vp-below")[bar if unit == "rate" else None, count]
        return htpy.td(".vp-best" if cell.is_best and len(self.rows) > 1 else "")[numbers, below]

    def _count(self, column: LeaderboardColumn, cell: LeaderboardCell) -> str:
        """Return the number of cases, or "240 + 694 × ½" if 694 of them fool the model in one of two orders."""
        n_once = column.n_halves(cell.estimate.model) if cell.estimate else 0
        n_always = cell.n_fooled if self._is_mirrored(column) else cell.n_fooled - n_once
        return count_halves(n_always, n_once)

    def tooltip(self, column: LeaderboardColumn, cell: LeaderboardCell) -> str:
        """Return a cell's value with interval and counts, such as "6.6 %, 6.0 to 7.2 %; 496 of 7,512"."""
        row = cell.estimate
        if row is None:
            return cell.note
        unit = column.metric.unit
        ends = interval(row.low, row.high, unit)
        parts = [number(row.value, unit), f"95 % interval {ends}" if ends else ""]
        if not self._moves(column):
            orders = "in both orders" if self.is_right else "in at least one order"
            is_asked_twice = column.question_set.run(row.model).n_orders == 2
            orders = f", {orders} of the captions" if is_asked_twice else ""
            happened = "right on" if self.is_right else "fooled by"
            parts.append(f"{happened} {cell.n_fooled:,} of {row.n_cases:,}{orders}")
        against = compared(cell, unit).replace("-", MINUS)
        base = self.names.get(self.baseline, "")
        parts += [f"{against} against {base}" if against and base else "", cell.note]
        return "; ".join(filter(None, parts))


def _n_ranked(columns: Sequence[LeaderboardColumn], model: str) -> int:
    return sum(not column.cell(model).note for column in columns)


def _link(address: str, title: str, css: str = ".vp-go") -> htpy.Element:
    """Return a link within the page, or an element with only the title if there is no address."""
    if not address:
        return htpy.span(css.removeprefix(".vp-go"), title=title.removesuffix(": Explore"))
    return htpy.a(css, href=address, target="_self", title=title)


def _mirrored(cell: LeaderboardCell) -> LeaderboardCell:
    """Return a cell with the share, interval, difference and count of the cases in which a model is right."""
    row = cell.estimate
    if row is None:
        return cell
    share = replace(row, value=1 - row.value, low=1 - row.high, high=1 - row.low)
    n_right = row.n_cases - cell.n_fooled
    ends = {"difference_low": -cell.difference_high, "difference_high": -cell.difference_low}
    return replace(cell, estimate=share, difference=-cell.difference, n_fooled=n_right, **ends)


def _bare(value: float, unit: str) -> str:
    return number(value, unit).removesuffix(" %")
