"""Reproduce the papers' tables with results from a user's runs, and compare published numbers with
the corresponding numbers from a run.

`published.TABLES` defines which number of a run belongs in which column. A cell is filled only if
the run's number means the same as the published one: the same metric on the same kind of question.
The pictures differ unless the run used the paper's own pictures.
"""

import functools
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields

import numpy as np
import pandas as pd

from vlprobe import registry
from vlprobe.metrics import estimate, pairs
from vlprobe.metrics.increases import increases
from vlprobe.models.doctor import examine
from vlprobe.probes.rococo import RELEASED
from vlprobe.storage.store import Store
from vlprobe.types import AS_PAPER, POOLED, Estimate, Measure
from vlprobe.views import estimates, published, runs
from vlprobe.views.published import ALL_SLICES, FACT, TABLES, Column, PaperTable
from vlprobe.views.records import EstimateRow, PrintedCell, RunRow, records
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tables import remember

ROW_COLUMNS = ["source", "model", "column", "value", "low", "high", "n_items", "ties", "note"]
SPREAD_COLUMNS = ["model", "metric", "slice", "n_seeds", "mean", "sd", "lowest", "highest"]
SEEDED_RULE = r"^(?P<drawn>.+):seed(?P<seed>[0-9]+)$"
HISTOGRAM_QUANTILE = 0.995  # of the deviations; the last bin includes all larger ones
SAME_INCREASE = 1e-6  # increases that differ by less come from the same answers
MIXED = (
    "The run has kinds of edits that the paper does not have, or only some types of its flips, so its "
    "overall value is not a number from the paper."
)
Numbers = tuple[float, float, float, int, int]  # value, low, high, n_items, ties
_UNKNOWN: Numbers = (math.nan, math.nan, math.nan, 0, 0)

PRINTED_COLUMNS = [column.name for column in fields(PrintedCell)]
FACTS = "none"  # dataset of cells that state a fact about a model
MARKS = {  # what a note says about its cell; the first match counts
    "doubted": "the number itself is doubted",
    "differs": "another table, or the text, says otherwise",
    "remark": "how the cell was read",
}
DIFFERS = ("print", "the text says")
BERT_BASE = 109.5  # million parameters, as stated in the caption of VISLA's table 2
MILLIONS = {  # by printed unit
    "thousand": 0.001,
    "million": 1.0,
    "billion": 1000.0,
    "times BERT-base": BERT_BASE,
}
SCALE = {"percent": 0.01, **MILLIONS}  # from published units to vlprobe's: shares and millions
FAMILIES = {"rococo-clip": "rococo"}  # preset prefixes that differ from the paper's name
_Place = tuple[int, str, str, str]  # table, dataset, split and metric of a printed cell


def remade(question_set: QuestionSet, number: int) -> pd.DataFrame:
    """Reproduce a paper's table: results from the runs on one question set, above the published rows.

    Returns:
        source ("run" or "published"), model, column (index in `columns`), value, low, high,
        n_items, ties, note, sd (over the draws) and n_seeds (the number of draws); sd is NaN and
        n_seeds is 0 with fewer than two draws. Rows are in table order. The value is NaN if a run
        lacks the column's kind of question.
    """
    table = next(table for table in TABLES[question_set.probe] if table.number == number)
    drawn = spread(question_set, AS_PAPER)
    keys = zip(drawn["model"], drawn["metric"], drawn["slice"], strict=True)
    spread_of = dict(zip(keys, zip(drawn["sd"], drawn["n_seeds"], strict=True), strict=True))
    rows = []
    for model, index, numbers, note in run_cells(question_set, table):
        column = table.columns[index]
        slice_name = column.slices[0] if column.breakdown == "subtype" and column.slices else ""
        of_seeds = spread_of.get((model, column.metric, slice_name), (math.nan, 0))
        rows.append(("run", model, index, *numbers, note, *of_seeds))
    for model, index, value, note in _published_cells(question_set.probe, number):
        numbers = (value, *_UNKNOWN[1:])
        rows.append(("published", model, index, *numbers, note, math.nan, 0))
    return pd.DataFrame(rows, columns=pd.Index([*ROW_COLUMNS, "sd", "n_seeds"]))


def run_cells(
    question_set: QuestionSet, table: PaperTable
) -> Iterator[tuple[str, int, Numbers, str]]:
    """Yield the model, column index, numbers and note for each cell that a stored run fills. Controls come last."""
    sliced = {"all", *estimates.slices(question_set)}
    by_breakdown = {
        breakdown: estimates.estimates(question_set, breakdown, AS_PAPER)
        if breakdown in sliced
        else pd.DataFrame(columns=pd.Index(estimates.COLUMNS))
        for breakdown in {column.breakdown for column in table.columns}
    }
    by_file = None
    if any(column.released for column in table.columns):
        by_file = _by_released_file(question_set, by_breakdown["subtype"])
    metrics, mixed = question_set.metrics, estimates.mixed_kinds(question_set)
    has_facts = any(column.breakdown == FACT for column in table.columns)
    for model in sorted(
        question_set.models,
        key=lambda name: (registry.is_control(name), registry.natural_order(name)),
    ):
        facts = (
            passport_facts(question_set.store, model, question_set.run(model).model_digest)
            if has_facts
            else {}
        )
        for index, column in enumerate(table.columns):
            if column.breakdown == FACT:
                yield model, index, (facts.get(column.metric, math.nan), *_UNKNOWN[1:]), ""
                continue
            if column.breakdown == "all" and mixed.intersection(metrics[column.metric].kinds):
                yield model, index, _UNKNOWN, MIXED
                continue
            of_file = by_file if column.released else None
            rows = by_breakdown[column.breakdown] if of_file is None else of_file
            is_known = (rows["model"] == model) & (rows["metric"] == column.metric)
            rows = rows.loc[is_known].dropna(subset=["value"])
            if column.relative_to:
                numbers = _increase(question_set, rows, column)
            elif of_file is not None:
                numbers = _only_estimate(rows.loc[rows["file"] == column.released])
            elif column.slices == (ALL_SLICES,):  # a mean of slices has no interval
                slices = records(EstimateRow, rows)
                value = float(np.mean([row.value for row in slices])) if slices else math.nan
                counts = sum(row.n_items for row in slices), sum(row.ties for row in slices)
                numbers = (value, math.nan, math.nan, *counts)
            else:
                numbers = _only_estimate(
                    rows.loc[[belongs(name, column.slices) for name in rows["slice"]]]
                )
            yield model, index, numbers, ""


def _only_estimate(rows: pd.DataFrame) -> Numbers:
    """Return the numbers of the only estimate in `rows`. They are unknown if there are several estimates or none."""
    if len(rows) != 1:
        return _UNKNOWN
    row = records(EstimateRow, rows)[0]
    return row.value, row.low, row.high, row.n_items, row.ties


def belongs(name: str, slices: tuple[str, ...]) -> bool:
    """Return whether a slice name is in `slices`, or contains one of `slices` as a word, as in `eqkubric_counting`."""
    return (
        not slices
        or name in slices
        or bool(set(re.split("[^a-z0-9]+", name.lower())) & set(slices))
    )


def _increase(question_set: QuestionSet, rows: pd.DataFrame, column: Column) -> Numbers:
    """Compute the value of a column that reports the change from one slice to another, for one model and metric.

    The value is unknown if either slice is. The interval comes from the stored answers; it is omitted if they do not
    reproduce the value of the estimates, because a run of an older version may have counted the answers differently.
    """
    of_slice, base = (
        records(EstimateRow, rows.loc[rows["slice"].isin(names)])
        for names in (column.slices, column.relative_to)
    )
    if len(of_slice) != 1 or len(base) != 1 or not base[0].value:
        return _UNKNOWN
    value = of_slice[0].value / base[0].value - 1
    n_items = min(of_slice[0].n_items, base[0].n_items)
    run = question_set.run(of_slice[0].model)
    sides = column.slices, column.relative_to

    def compute() -> Estimate:
        first, second = (
            _margin_measure(question_set, run, column.metric, names) for names in sides
        )
        units = question_set.cases.unit_codes
        return increases([(first, second)], max(run.n_units, int(units.max(initial=-1)) + 1))[0]

    version = question_set.answers(run.model).version
    drawn = remember(("increase", version, column.metric, *sides), compute)
    if not math.isclose(drawn.value, value, abs_tol=SAME_INCREASE):
        return value, math.nan, math.nan, n_items, 0
    return value, drawn.low, drawn.high, n_items, 0


def _margin_measure(
    question_set: QuestionSet, run: RunRow, metric: str, subtypes: Sequence[str]
) -> Measure:
    """Compute a metric's mean within each group of cases from margins only, for cases of the given subtypes."""
    judged = question_set.metrics[metric]
    numbers = question_set.cases.numbers(
        "list_contains(?, kind) AND list_contains(?, subtype)",
        [tuple(judged.kinds), tuple(subtypes)],
    )
    margins = question_set.answers(run.model).margins[numbers]
    value = np.where(np.isnan(margins), np.nan, judged.value(pd.DataFrame({"margin": margins})))
    groups = question_set.cases.codes("group")[0][numbers]
    items = question_set.cases.unit_codes[numbers]
    return estimate.macro(value, np.ones(len(value)), groups, items)


def _by_released_file(question_set: QuestionSet, by_subtype: pd.DataFrame) -> pd.DataFrame | None:
    """Return RoCOCO's estimates for each caption file that the authors released; None if vlprobe altered the captions.

    RoCOCO's four files are four question sets but one table. So the estimates for the other files are added if the same
    models answered them about the same pictures with the same options. If several question sets cover a file, the most
    complete one is used.

    Returns:
        The columns of `estimates`, and `file`: the name of the released file, or "" for any other file.
    """

    def by_file(questions: QuestionSet, by_subtype: pd.DataFrame) -> pd.DataFrame | None:
        # All captions in a released file have one subtype; the tag of an item is the stem of the file's name.
        policies = set(by_subtype["slice"][by_subtype["metric"] == "i2t_r1_new"])
        if policies != {RELEASED} or "tag:subset" not in estimates.slices(questions):
            return None
        table = estimates.estimates(questions, "tag:subset", AS_PAPER)
        names = {column.released for table in TABLES["rococo"] for column in table.columns} - {""}
        return table.assign(file=[released_file(stem, names) for stem in table["slice"]])

    own_table = by_file(question_set, by_subtype)
    if own_table is None:
        return None
    digests = {run.model: run.model_digest for run in question_set.runs}
    tables, files_of = [own_table], {model: set(own_table["file"]) for model in digests}
    identity = _shared_identity(question_set)
    for row in runs.question_set_rows(question_set.store):
        is_alike = row.probe == question_set.probe and row.n_items == question_set.runs[0].n_items
        if not is_alike or row.case_key == question_set.key:
            continue
        sibling = runs.question_set(question_set.store, row.case_key)
        if _shared_identity(sibling) != identity:
            continue
        table = by_file(sibling, estimates.estimates(sibling, "subtype", AS_PAPER))
        if table is None:
            continue
        for model in {
            run.model for run in sibling.runs if digests.get(run.model) == run.model_digest
        }:
            of_model = table.loc[table["model"] == model]
            new_files = set(of_model["file"]) - files_of[model]
            files_of[model] |= new_files
            tables.append(of_model.loc[of_model["file"].isin(list(new_files))])
    return pd.concat(tables, ignore_index=True)


def _shared_identity(question_set: QuestionSet) -> tuple[object, ...]:
    """Return the versions, options and pictures that two question sets must share to appear in one table."""
    run = question_set.newest_run
    items = question_set.store.fetch_rows(
        "SELECT DISTINCT item FROM read_parquet(?) WHERE kind = 'i2t' ORDER BY item",
        [question_set.store.files([question_set.runs[0].key], "scores")],
    )
    options = tuple(run["options"].get(name) for name in ("normalise", "approximate"))
    return runs.version(run), options, tuple(items)


def released_file(stem: str, names: Collection[str]) -> str:
    """Return the name of the released RoCOCO file that a file name without extension refers to; "" if there is none or
    the name is ambiguous.

    >>> names = ["rand_voca", "danger"]
    >>> [released_file(stem, names) for stem in ("danger", "RoCOCO-Rand-Voca", "danger_rand_voca", "endangered")]
    ['danger', 'rand_voca', '', '']
    """
    words = f"_{'_'.join(re.split('[^a-z0-9]+', stem.lower()))}_"
    matching = {name for name in names if f"_{name}_" in words}
    return matching.pop() if len(matching) == 1 else ""


def spread(
    question_set: QuestionSet, averaging: str = POOLED, unit: str = "cosine"
) -> pd.DataFrame:
    """Compute the mean and standard deviation over seeds, for each number that was drawn with more
    than one seed (RoCOCO, tables 4, 6 and 7: means over three seeds).

    Args:
        averaging: As in `estimates`; applied to the numbers of each seed.
        unit: As in `estimates`.

    Returns:
        One row per model, metric and slice (a policy, or a strength of the mixture): n_seeds (2 or
        more), mean, sd (of one seed, with n - 1 in the denominator), lowest, highest. The table
        is empty if no number was drawn with two seeds.
    """
    if "rule" not in estimates.slices(question_set):
        return pd.DataFrame(columns=pd.Index(SPREAD_COLUMNS))
    table = estimates.estimates(question_set, "rule", averaging, unit)
    table = table.dropna(subset=["value"])
    table["drawn"] = table["slice"].str.extract(SEEDED_RULE)["drawn"]
    order = ["model", "metric", "drawn"]
    by_draw = table.dropna(subset=["drawn"]).groupby(order, sort=False)["value"]
    numbers = by_draw.agg(n_seeds="count", mean="mean", sd="std", lowest="min", highest="max")
    numbers = numbers.reset_index().rename(columns={"drawn": "slice"})
    return numbers.loc[numbers["n_seeds"] > 1, SPREAD_COLUMNS].reset_index(drop=True)


def rescaled(cells: pd.DataFrame) -> pd.Series:
    """Convert published values to vlprobe's units: percentages to shares, numbers of parameters and samples to
    millions.
    """
    scales = np.array([SCALE.get(unit, 1.0) for unit in cells["unit"]], dtype=np.float64)
    return pd.Series(cells["value"].to_numpy() * scales, index=cells.index)


# Takes 43 ms for a table of LGIP, and published values do not change.
@functools.cache
def _published_cells(probe: str, number: int) -> list[tuple[str, int, float, str]]:
    """Return the row name, column index, value and note for each printed cell. The value of a missing cell is NaN."""
    table = next(table for table in TABLES[probe] if table.number == number)
    cells = published.load(table.paper)
    cells = cells.loc[cells["table"] == number]
    printed = {
        (cell["model"], cell["dataset"], cell["split"], cell["metric"]): (value, cell["note"])
        for cell, value in zip(cells.to_dict("records"), rescaled(cells), strict=True)
    }
    rows = []
    for start, label in table.rows.items() or [("", "")]:
        for model in dict.fromkeys(cells["model"]):
            for index, column in enumerate(table.columns):
                places = [place[1:] for place in _places(table, column, start)]
                matches = [printed.get((model, *place)) for place in places]
                known = [cell for cell in matches if cell]
                is_whole = len(known) == len(places)
                if not is_whole:
                    known = [(math.nan, "")]
                value = column.sign * float(np.mean([cell[0] for cell in known]))
                notes = dict.fromkeys(note for _, note in known if note)
                rows.append((label or model, index, value, "; ".join(notes)))
    return rows


def _places(table: PaperTable, column: Column, start: str) -> list[_Place]:
    """Return the positions of a column's printed cells, for the rows whose split begins with `start`."""
    split = f"{start}/{column.split}" if start else column.split
    return [(table.number, dataset, split, column.printed_metric) for dataset in column.datasets]


def mark(note: str) -> str:
    """Classify the note on a published cell as one of MARKS. Returns "" for an empty note.

    >>> mark("suspect: too low"), mark("table 3 prints 0.009"), mark("gallery not stated"), mark("")
    ('doubted', 'differs', 'remark', '')
    """
    if "suspect:" in note:
        return "doubted"
    if any(words in note for words in DIFFERS):
        return "differs"
    return "remark" if note else ""


def cells(paper: str = "") -> pd.DataFrame:
    """Return the published cells from one paper or from all papers, without results from runs.

    Returns:
        A table with PRINTED_COLUMNS. `printed` is the text as printed; `run`, `low`, `high` (in the printed unit) are
        NaN.
    """
    table = published.load(paper)
    unknown = dict.fromkeys(("run", "low", "high"), math.nan)
    table = table.assign(**unknown, same_weights=False, mark=table["note"].map(mark))
    return table.loc[:, PRINTED_COLUMNS]


def papers_of(probe: str) -> tuple[str, ...]:
    """Return the papers whose tables can be filled by runs of a probe, starting with the probe's own paper."""
    names = dict.fromkeys(table.paper for table in TABLES.get(probe, ()))
    return tuple(sorted(names, key=lambda name: name != probe))


def probes_of(paper: str) -> tuple[str, ...]:
    """Return the probes whose runs can fill a paper's tables, starting with the paper's own probe."""
    probes = (probe for probe in TABLES if paper in papers_of(probe))
    return tuple(sorted(probes, key=lambda name: name != paper))


def beside(question_set: QuestionSet, model: str, paper: str = "") -> pd.DataFrame:
    """Compare a paper's published cells with the numbers from one model's run.

    Args:
        paper: One of the papers that `papers_of` returns for the question set's probe; "" means the probe's own paper.

    Returns:
        The columns of `cells`, where `run`, `low`, `high` are the run's estimate and interval in the
        published unit and sign, NaN if the run has no number with the same meaning. For facts about a model, such as
        its size, `run` is the fact about the run's model. `same_weights` is true if the run's model is the model of the
        cell.
    """
    facts = passport_facts(question_set.store, model, question_set.run(model).model_digest)
    paper = paper or question_set.probe
    table = cells(paper)
    by_cell: dict[_Place, tuple[float, float, float]] = {}
    for paper_table in TABLES.get(question_set.probe, ()):
        if paper_table.paper == paper:
            by_cell |= _by_cell(question_set, paper_table, model)
    rows = []
    names = printed_names(paper, model)
    for row in records(PrintedCell, table):
        place = (row.table, row.dataset, row.split, row.metric)
        numbers, scale = by_cell.get(place, _UNKNOWN[:3]), 1 / SCALE.get(row.unit, 1.0)
        if row.dataset == FACTS:
            fact = facts.get(row.metric, math.nan) / MILLIONS.get(row.unit, 1.0)
            numbers, scale = (fact, math.nan, math.nan), 1.0
        rows.append([*(scale * value for value in numbers), plain(row.model) in names])
    columns = ["run", "low", "high", "same_weights"]
    of_run = pd.DataFrame(rows, columns=pd.Index(columns))
    return table.assign(**{name: of_run[name] for name in columns})


def _by_cell(
    question_set: QuestionSet, table: PaperTable, model: str
) -> dict[_Place, tuple[float, float, float]]:
    """Return a run's value and interval for each corresponding printed cell, by the cell's position.

    Columns that average several datasets are omitted, because the average has no printed cell of its own. If a
    table has several groups of rows, the run belongs to the first group (all items), unless its questions were limited
    to the pictures of each group; then it belongs to the others.
    """
    # The tag that splits the gallery into groups that are searched separately
    grouped = question_set.newest_run["options"].get("group") if table.groups else ""
    by_cell = {}
    if grouped:
        for start, tag in table.groups.items():
            if tag.partition("=")[0] != grouped:
                continue
            for column, row in _of_group(question_set, table, model, tag):
                by_cell[_places(table, column, start)[0]] = row.value, row.low, row.high
        return by_cell
    start = next(iter(table.rows), "")
    for name, index, (value, low, high, *_), _ in run_cells(question_set, table):
        column = table.columns[index]
        if name == model and len(column.datasets) == 1:
            low, high = (low, high) if column.sign > 0 else (-high, -low)
            by_cell[_places(table, column, start)[0]] = column.sign * value, low, high
    return by_cell


def _of_group(
    question_set: QuestionSet, table: PaperTable, model: str, tag: str
) -> Iterator[tuple[Column, EstimateRow]]:
    """Yield the estimates for items with the tag NAME=VALUE, each with the table column that it belongs in.

    A whole question set has an estimate only if all its questions are of one kind, because slices of slices are not
    stored.
    """
    of_comparisons = estimates.comparisons(question_set, tag)
    name, _, value = tag.partition("=")
    of_tag = estimates.estimates(question_set, f"tag:{name}", AS_PAPER)
    of_tag = of_tag.loc[of_tag["slice"] == value]
    subtypes = set(estimates.choices(question_set)["subtype"])
    for column in table.columns:
        if column.breakdown == estimates.BREAKDOWN:
            rows = of_comparisons.loc[of_comparisons["slice"].isin(column.slices)]
        else:
            rows = of_tag if subtypes == set(column.slices) else of_tag.head(0)
        is_column = (rows["metric"] == column.metric) & (rows["averaging"] == AS_PAPER)
        for row in records(EstimateRow, rows.loc[is_column & (rows["model"] == model)]):
            yield column, row


def printed_names(paper: str, model: str) -> set[str]:
    """Return the names that a paper's tables may use for a model, from its presets, normalized with `plain`."""
    from vlprobe.models import presets  # imports torch

    names = {
        preset.printed
        for family in presets.FAMILIES
        if FAMILIES.get(family.PREFIX, family.PREFIX) == paper
        for short_name, preset in family.presets.items()
        if model in (preset.weights, f"{family.PREFIX}:{short_name}")
    }
    # LGIP's table 4 omits the source of the weights
    return {plain(text) for name in names for text in (name, name.partition(" (")[0])}


def plain(name: str) -> str:
    """Normalize a model name, because a paper may spell the same name differently in different tables."""
    return name.lower().replace("/", "-")


def passport_facts(store: Store, model: str, digest: str) -> Mapping[str, float]:
    """Return facts about a model from its stored model checks: its parameters (millions) and
    embedding_dimension. Unknown values are NaN.
    """
    examined = {(each.model, each.model_digest): each for each in reversed(examine.load(store))}
    passport = examined[model, digest].passport if (model, digest) in examined else {}
    n_weights = passport.get("parameters", "").replace(",", "")
    dimension = passport.get("embedding", "").partition(" ")[0]
    return {
        "parameters": int(n_weights) / 1e6 if n_weights.isdecimal() else math.nan,
        "embedding_dimension": float(dimension) if dimension.isdecimal() else math.nan,
    }


def deviations(
    question_set: QuestionSet, unit: str = "cosine", subset: str = "", bins: int = 40
) -> pd.DataFrame:
    """Compute histograms of EqBen's equivariance deviation for each model, over all pairs or the pairs in one subset.
    All models have the same bins.

    Returns:
        model, left, right, share (of the model's pairs; the last bin includes all larger values).
        The table is empty if cases do not have two pictures.
    """
    by_model = {}
    for run in question_set.runs:
        rows = question_set.store.fetch_table(
            "SELECT scores[1] AS score_0, scores[2] AS score_1, scores[3] AS score_2, scores[4] AS score_3 "
            "FROM read_parquet(?) WHERE kind = 'pair' AND (? = '' OR subtype = ?)",
            [question_set.store.files([run.key], "scores"), subset, subset],
        )
        values = pairs.equivariance_deviation(rows) / (
            (run.spread or math.nan) if unit == "spread" else 1.0
        )
        by_model[run.model] = values[~np.isnan(values)]
    pooled = np.concatenate([*by_model.values(), [0.0]])
    edges = np.linspace(0, np.quantile(pooled, HISTOGRAM_QUANTILE) or 1.0, bins + 1)
    return histograms({model: values for model, values in by_model.items() if len(values)}, edges)


def histograms(values_by_name: Mapping[str, np.ndarray], edges: np.ndarray) -> pd.DataFrame:
    """Compute a histogram for each array: model (the array's name), left, right, share. The last bin includes all
    larger values.

    Args:
        values_by_name: Arrays of shape (n,), n > 0.
        edges: Edges of the bins, ascending, shape (bins + 1,).
    """
    columns = ["model", "left", "right", "share"]
    tables = []
    for name, values in values_by_name.items():
        counts = np.histogram(np.minimum(values, edges[-1]), edges)[0]
        bins = {"left": edges[:-1], "right": edges[1:], "share": counts / len(values)}
        tables.append(pd.DataFrame({"model": name, **bins}))
    return (
        pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=pd.Index(columns))
    )


def gallery_size(question_set: QuestionSet) -> float:
    """Return the number of pictures in the gallery that PRSM's queries search; NaN if galleries differ in size."""
    rows = question_set.store.fetch_rows(
        "SELECT min(gallery_size), max(gallery_size) FROM read_parquet(?)",
        [question_set.store.files([question_set.runs[0].key], "scores")],
    )
    smallest, largest = rows[0]
    return float(smallest) if smallest == largest else math.nan


def chances(question_set: QuestionSet) -> dict[str, float]:
    """Return the value that guessing gives for each metric in a question set, by metric name; NaN if undefined."""
    levels = {name: metric.chance for name, metric in question_set.metrics.items()}
    if question_set.probe == "prsm":
        size = gallery_size(question_set)
        depths = {
            name: int(name.rpartition("_")[2]) for name in levels if name.startswith("prsm_local_")
        }
        levels |= {
            name: depth / size if depth < size else math.nan for name, depth in depths.items()
        }
    return levels
