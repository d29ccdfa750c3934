"""Data for the papers' figures from a user's runs: severity curves, edit distances, word overlap, and
overlap by depth.
"""

import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from rapidfuzz.distance import Levenshtein

from vlprobe import registry
from vlprobe.errors import NotFound
from vlprobe.metrics import estimate, triplets
from vlprobe.metrics.series import BOUNDARY_THRESHOLDS
from vlprobe.perturb.mix import LAMBDAS
from vlprobe.probes import rococo_galleries
from vlprobe.types import selection
from vlprobe.views import estimates, papers, published, runs, tradeoff
from vlprobe.views.filter import LURE_EDGES, SIDE_OUTCOMES, lure_bins
from vlprobe.views.mixed.case import item_pictures
from vlprobe.views.papers import SCALE, belongs, histograms
from vlprobe.views.published import PRSM_VERSIONS, TABLES
from vlprobe.views.records import EstimateRow, records
from vlprobe.views.runs import QuestionSet

# Options of RoCOCO that choose edits; the others say how edits are made.
EDIT_OPTIONS = ("policies", "pictures")
WORD_COUNTS = (1, 2, 3, 4, 5)  # exchanged words: tables 3 and 6 of the paper
PAIRS = ("P1 and P2: the same meaning", "P1 and N: another meaning", "P2 and N: another meaning")
EDIT_QUANTILE = 0.99  # quantile of edit distances; the last bin includes all larger ones
DEPTHS = ("10", "100", "1000")  # depths of PRSM's overlap
GROUPS = TABLES["prsm"][0].rows
SIZE_COLUMNS = ["source", "model", "parameters", "samples", "value", "low", "high", "note"]
ACCURACIES = ("t2t_accuracy", "i2t_accuracy")
SIZE_TABLES = {"generic": (8, 2), "spatial": (9, 2)}  # accuracies of models that see, of texts
SAMPLES = "pretraining_samples"  # the metric
FACTS = {2: 5}  # tables whose models have their parameters in another table
CROSSED_COLUMNS = [
    *("model", "slice", "texts", "pictures"),
    *("n_cases", "share", "low", "high", "n_items"),
]
_ESTIMATE_COLUMNS = ["model", "slice", "value", "low", "high", "n_items", "n_cases"]


def severity_steps(edit: str) -> dict[str, str]:
    """Return a label for each strength of a RoCOCO edit, weakest first. The keys are slice names.

    >>> severity_steps("danger")["danger:2"], severity_steps("mix")["mix:0.9"]
    ('2', '10 %')
    """
    if edit in ("mix", "patch"):
        return {f"{edit}:{lam}": f"{100 * (1 - lam):.0f} %" for lam in LAMBDAS}
    return {f"{edit}:{count}" if count > 1 else edit: str(count) for count in WORD_COUNTS}


def request_fields(question_set: QuestionSet) -> dict:
    """Return a question set's dataset, options, seed and limit, as fields for a run request."""
    run = question_set.newest_run
    defaults = registry.load_probe(run["probe"]).defaults
    options = {name: value for name, value in run["options"].items() if name in defaults}
    return {
        "dataset": run["dataset"],
        "options": options,
        "seed": run["seed"],
        "limit": run["limit"],
        **selection.request_fields(run.get("selection", {})),
    }


def severity(question_set: QuestionSet, metric: str) -> pd.DataFrame:
    """Return the estimates of a RoCOCO metric at each strength of the alteration. Question sets that differ only in the
    alteration are combined.

    Returns:
        model, slice, value, low, high, n_items, n_cases, for the models in the question set. Each
        slice appears once: slices from this question set first, then slices from the others,
        newest first.
    """
    conditions = _fixed_conditions(question_set.newest_run)
    run_keys = {  # newest run of each such question set
        manifest["case_key"]: manifest["key"]
        for manifest in runs.known_manifests(question_set.store)
        if _fixed_conditions(manifest["run"]) == conditions
    }
    alike = [question_set]
    for case_key, run_key in reversed(run_keys.items()):
        if case_key != question_set.key:
            alike.append(runs.question_set(question_set.store, case_key, version_of=run_key))
    table = pd.concat([estimates.estimates(each, "subtype") for each in alike], ignore_index=True)
    table = table.dropna(subset=["value"])
    table = table.loc[(table["metric"] == metric) & table["model"].isin(list(question_set.models))]
    return table.drop_duplicates(["model", "slice"], ignore_index=True)[_ESTIMATE_COLUMNS]


def _fixed_conditions(run: Mapping) -> tuple:
    """Return the settings that question sets in one curve share: all but the alteration, and the metric versions."""
    options = {name: value for name, value in run["options"].items() if name not in EDIT_OPTIONS}
    names = ("dataset_digest", "probe", "probe_version", "seed", "limit")
    selected = sorted(run.get("selection", {}).items(), key=str)
    described = sorted(options.items(), key=str)
    return *(run[name] for name in names), selected, described, runs.version(run)


def published_severity(edit: str, metric: str) -> pd.DataFrame:
    """Return the values that RoCOCO reports for an edit (tables 3, 4, 6, 7), with losses as positive numbers: model,
    slice, value.
    """
    if edit in ("mix", "patch"):
        numbers, slices = (4, 7), {f"{edit}_{lam}": f"{edit}:{lam}" for lam in LAMBDAS}
    else:
        numbers, slices = (3, 6), {edit.replace("-", "_"): edit}
        if edit == "rand-voca":
            slices |= {f"substitution_{k}": f"{edit}:{k}" for k in WORD_COUNTS[1:]}
    cells = pd.concat(
        [tradeoff.published_values("rococo", number, metric) for number in numbers],
        ignore_index=True,
    )
    cells = cells.loc[cells["slice"].isin(list(slices))]
    value = -cells["value"] if metric.endswith("drop_rate") else cells["value"]
    return cells.assign(slice=cells["slice"].map(slices), value=value)[["model", "slice", "value"]]


def published_depths(setting: str) -> pd.DataFrame:
    """Return the overlap that PRSM reports for CLIP over all versions of a query: model, slice (depth), value."""
    splits = {name: f"{name.lower()}/{versions}" for name, versions in PRSM_VERSIONS.items()}
    names = {}
    if setting in splits:
        names = {f"{group}/{splits[setting]}": words for group, words in GROUPS.items()}
    tables = [
        tradeoff.published_values("prsm", 1, f"local_{depth}").assign(depth=depth)
        for depth in DEPTHS[1:]
    ]
    cells = pd.concat(tables, ignore_index=True)
    cells = cells.loc[cells["slice"].isin(list(names))]
    return cells.assign(model=cells["slice"].map(names), slice=cells["depth"])[
        ["model", "slice", "value"]
    ]


def published_comparisons(metric: str) -> pd.DataFrame:
    """Return the values that PRSM's table 1 reports for CLIP and one overlap metric: model, slice (a comparison, or P1,
    P2, P3 for all versions), value. The table is empty for other metrics.
    """
    measure = metric.removeprefix("prsm_")
    if measure not in [f"local_{depth}" for depth in DEPTHS[1:]]:
        return pd.DataFrame(columns=pd.Index(["model", "slice", "value"]))
    all_versions = {versions: setting for setting, versions in PRSM_VERSIONS.items()}
    cells = tradeoff.published_values("prsm", 1, measure)
    places = [split.split("/") for split in cells["slice"]]
    return cells.assign(
        model=[GROUPS[place[0]] for place in places],
        slice=[all_versions.get(place[2], place[2]) for place in places],
    ).loc[:, ["model", "slice", "value"]]


def depths(question_set: QuestionSet) -> pd.DataFrame:
    """Return PRSM's overlap at each depth: setting, model, slice (depth), value and interval.

    Depths equal to or above the gallery size have no row.
    """
    table = estimates.estimates(question_set, "subtype").dropna(subset=["value"])
    names = {f"prsm_local_{depth}": depth for depth in DEPTHS}
    table = table.loc[table["metric"].isin(list(names))]
    table = table.assign(setting=table["slice"], slice=table["metric"].map(names))
    return table[["setting", *_ESTIMATE_COLUMNS]]


def published_boundaries() -> pd.DataFrame:
    """Return the values that EqBen reports in table 12: model, slice (threshold in seconds), value."""
    cells = tradeoff.published_values("eqben", 12, "boundary_accuracy")
    slices = [f"{float(split.removesuffix('s')):g}" for split in cells["slice"]]
    return cells.assign(slice=slices).loc[:, ["model", "slice", "value"]]


def boundaries(question_set: QuestionSet) -> pd.DataFrame:
    """Return the share of changes in videos found within each tolerance: model, slice (seconds), value, interval."""
    table = estimates.estimates(question_set, "all").dropna(subset=["value"])
    names = {f"boundary_within_{seconds:g}": f"{seconds:g}" for seconds in BOUNDARY_THRESHOLDS}
    table = table.loc[table["metric"].isin(list(names))]
    table = table.assign(slice=table["metric"].map(names))
    return table[[*_ESTIMATE_COLUMNS]]


def edited_orders(question_set: QuestionSet) -> pd.DataFrame:
    """Compute how much an edit changes the order in which each model ranks the candidates. Returns model, moved (mean
    change: 0 is unchanged, 1 is reversed), people (the same for human orders; NaN if unknown), n_cases.
    """
    table = estimates.estimates(question_set, "all")
    rows = []
    for model in question_set.ordered_models:
        values = table.loc[table["model"] == model].set_index("metric")
        if "order_moved" in values.index:
            cells = values.loc[["order_moved", "order_moved_people"], "value"].tolist()
            rows.append((model, *cells, int(values.loc["order_moved", "n_cases"])))
    return pd.DataFrame(rows, columns=pd.Index(["model", "moved", "people", "n_cases"]))


def captions(question_set: QuestionSet, page: int, size: int) -> tuple[list[str], int]:
    """Return one page of the distinct captions (first texts) in a question set, in case order, and the total number."""
    distinct = question_set.store.fetch_table(
        'SELECT texts[1] AS caption FROM read_parquet(?) GROUP BY caption ORDER BY min("case")',
        [[question_set.cases.path]],
    )["caption"]
    start = max(page - 1, 0) * size
    return distinct.tolist()[start : start + size], len(distinct)


def item_captions(question_set: QuestionSet, most_items: int) -> dict[str, tuple[str, ...]]:
    """Return the captions of the first `most_items` pictures in a RoCOCO question set, by item id."""
    captions: dict[str, dict[str, None]] = {}
    rows = question_set.store.fetch_rows(
        'SELECT item, texts, roles FROM read_parquet(?) WHERE "case" IN '
        '(SELECT min("case") FROM read_parquet(?) GROUP BY "group", kind) ORDER BY "case"',
        [[path := question_set.cases.path], [path]],
    )
    for item, texts, roles in rows:
        if item in captions or len(captions) < most_items:
            pairs = zip(texts, roles, strict=True)
            captions.setdefault(item, {}).update(
                dict.fromkeys(text for text, role in pairs if role != "different")
            )
    return {item: tuple(texts) for item, texts in captions.items()}


def _triplets(question_set: QuestionSet) -> pd.DataFrame:
    """Return the text triplets in a VISLA question set: case, unit (the resampling unit), subtype, texts."""
    return question_set.store.fetch_table(
        f'SELECT "case", {question_set.cases.unit} AS unit, subtype, texts '
        "FROM read_parquet(?) WHERE kind = 't2t' ORDER BY \"case\"",
        [[question_set.cases.path]],
    )


def edit_distances(question_set: QuestionSet, subset: str = "", bins: int = 30) -> pd.DataFrame:
    """Compute histograms of the edit distances between the captions in each VISLA triplet.

    Returns:
        model (which two captions are compared), left, right, share; the last bin includes all
        larger values.
        Source: VISLA, figure 8.
    """
    table = _triplets(question_set)
    texts = table.loc[table["subtype"] == subset, "texts"] if subset else table["texts"]
    if not len(texts):
        return histograms({}, np.empty(0))
    pairs = ((0, 1), (0, 2), (1, 2))
    distances = np.array(
        [[Levenshtein.distance(three[i], three[j]) for i, j in pairs] for three in texts]
    )
    step = max(math.ceil(np.quantile(distances, EDIT_QUANTILE) / bins), 1)
    return histograms(
        dict(zip(PAIRS, distances.T, strict=True)), np.arange(0, (bins + 1) * step, step)
    )


def lures(question_set: QuestionSet) -> pd.DataFrame:
    """Compute the text-to-text accuracy by lure, which measures how much more the wrong caption overlaps in words than
    the true captions do.

    The lure is the larger Jaccard index between N (the wrong caption) and a true caption, minus the Jaccard index
    between the two true captions. It ranges from -1 to 1. If it is 0 or more, counting shared words gives the wrong
    answer.

    Returns:
        model, slice (a bin of `lure_bins`, including its lower edge), value, low, high, n_items,
        n_cases; empty bins have no row.
    """
    triplet_cases = _triplets(question_set)
    triplet_cases["unit"] = pd.factorize(triplet_cases["unit"])[0]
    n_units = question_set.runs[0].n_units
    bin_names = list(lure_bins())
    rows = []
    for run in question_set.runs:
        answers = question_set.store.fetch_table(
            'SELECT "case", text_scores[1] AS text_01, text_scores[2] AS text_02, text_scores[3] AS text_12, '
            "overlap_01, overlap_02, overlap_12 FROM read_parquet(?) WHERE kind = 't2t'",
            [question_set.store.files([run.key], "scores")],
        )
        answered = triplet_cases.merge(answers, on="case")
        overlap_01, overlap_02, overlap_12 = (
            answered[f"overlap_{pair}"].to_numpy() for pair in ("01", "02", "12")
        )
        lure = np.maximum(overlap_02, overlap_12) - overlap_01
        value = np.where(np.isnan(lure), np.nan, triplets.t2t_accuracy(answered))
        bin_of_case = np.digitize(lure, LURE_EDGES[1:-1])
        bins = np.unique(bin_of_case[~np.isnan(value)])
        units = answered["unit"].to_numpy()
        means = [estimate.micro(value, bin_of_case == number, units) for number in bins]
        intervals = estimate.estimates(means, n_units, are_rates=True)
        for number, mean, interval in zip(bins, means, intervals, strict=True):
            bounds = (interval.value, interval.low, interval.high)
            rows.append((run.model, bin_names[number], *bounds, interval.n_items, len(mean.value)))
    return pd.DataFrame(rows, columns=pd.Index(_ESTIMATE_COLUMNS))


def sizes(question_set: QuestionSet, metric: str, subset: str) -> pd.DataFrame:
    """Return one accuracy on one subset, both for the runs on a question set and for the models in
    the VISLA paper.

    Args:
        metric: One of ACCURACIES.
        subset: One of SIZE_TABLES.

    Returns:
        source ("run" or "published"), model, parameters (millions of weights) and samples (millions
        of pre-training pairs), both NaN if unknown, value, low, high (shares), note.
    """
    for name, names in ((metric, ACCURACIES), (subset, SIZE_TABLES)):
        if name not in names:
            raise NotFound("choice", name, names)
    by_subtype = estimates.estimates(question_set, "subtype").dropna(subset=["value"])
    # VISLA's own files are Generic_VISLA.tsv and Spatial_VISLA.tsv.
    of_metric = by_subtype.loc[by_subtype["metric"] == metric]
    of_subset = of_metric.loc[[belongs(name, (subset,)) for name in of_metric["slice"]]]
    rows = []
    for row in records(EstimateRow, of_subset):
        digest = question_set.run(row.model).model_digest
        parameters = papers.passport_facts(question_set.store, row.model, digest)["parameters"]
        size = "run", row.model, parameters, _samples(row.model)
        rows.append((*size, row.value, row.low, row.high, ""))
    columns = pd.Index(SIZE_COLUMNS)
    return pd.DataFrame([*rows, *_published_sizes(metric, subset)], columns=columns)


def all_sizes(question_set: QuestionSet) -> pd.DataFrame:
    """Return the results of `sizes` for every accuracy and subset in one table, with extra columns metric and slice."""
    tables = [
        sizes(question_set, metric, subset).assign(metric=metric, slice=subset)
        for metric in ACCURACIES
        for subset in SIZE_TABLES
    ]
    return pd.concat(tables, ignore_index=True)


def _published_sizes(metric: str, subset: str) -> list[tuple]:
    """Return the values that VISLA prints for an accuracy, with the model and data sizes from the same tables."""
    cells = published.load("visla")
    rows = []
    for number in SIZE_TABLES[subset]:
        of_tables = cells.loc[cells["table"].isin([number, FACTS.get(number, number)])]
        facts = _facts(of_tables.loc[of_tables["dataset"] == "none"])
        is_accuracy = (
            (cells["table"] == number)
            & (cells["dataset"] == f"visla_{subset}")
            & (cells["metric"] == metric)
        )
        for cell in cells.loc[is_accuracy].to_dict("records"):
            model, value = cell["model"], cell["value"] * SCALE[cell["unit"]]
            size, data = (facts.get((model, name), math.nan) for name in ("parameters", SAMPLES))
            rows.append(("published", model, size, data, value, math.nan, math.nan, cell["note"]))
    return rows


def _facts(cells: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return the first number that the cells print for each model and metric, in millions."""
    facts: dict[tuple[str, str], float] = {}
    for cell in cells.loc[cells["split"] == "all"].to_dict("records"):
        value = cell["value"] * papers.MILLIONS.get(cell["unit"], math.nan)
        facts.setdefault((cell["model"], cell["metric"]), value)
    return facts


def _samples(model: str) -> float:
    """Return how many million pre-training pairs VISLA reports for a model with the same weights; NaN if none."""
    names = papers.printed_names("visla", model)
    cells = published.load("visla")
    facts = _facts(cells.loc[cells["metric"] == SAMPLES])
    values = (value for (name, _), value in facts.items() if papers.plain(name) in names)
    return next(values, math.nan)


class FirstLists(NamedTuple):
    """A caption and the first five pictures that each of two models retrieves for it, for example before and after
    fine-tuning (EqBen, figure 9). The gallery contains no altered pictures.
    """

    caption: str
    item: str  # item that the caption belongs to
    original: tuple[str, ...]  # items, best first
    tuned: tuple[str, ...]
    place_before: int  # rank of the item among the first five; 6: further down
    place_after: int


def first_lists(
    question_set: QuestionSet, original: str, tuned: str, count: int
) -> list[FirstLists]:
    """Find captions for which two models retrieve different first five pictures. The captions whose own picture gains
    the most ranks come first.

    Args:
        question_set: A `rococo` question set that both models answered.

    Returns:
        The captions; an empty list if a run did not store its first candidates.
    """
    runs = [question_set.run(model).key for model in (original, tuned)]
    if not all(question_set.store.run(key).has_table(rococo_galleries.TABLE) for key in runs):
        return []
    rank = "coalesce(nullif(list_position({}.clean_items[1:5], c.item), 0), 6)"
    places = [rank.format(table) for table in ("b", "a")]
    rows = question_set.store.fetch_rows(
        "SELECT c.texts[1] AS caption, any_value(c.item) AS item, "
        "any_value(b.clean_items[1:5]) AS before, any_value(a.clean_items[1:5]) AS after, "
        f"any_value({places[0]}) AS place_before, any_value({places[1]}) AS place_after "
        'FROM read_parquet(?) AS c JOIN read_parquet(?) AS b USING ("case") '
        'JOIN read_parquet(?) AS a USING ("case") '
        "WHERE c.kind = 't2i' AND b.clean_items[1:5] <> a.clean_items[1:5] "
        "GROUP BY caption ORDER BY place_before - place_after DESC, caption LIMIT ?",
        [
            [question_set.cases.path],
            *(question_set.store.files([key], rococo_galleries.TABLE) for key in runs),
            count,
        ],
    )
    return [
        FirstLists(caption, item, tuple(first), tuple(second), int(place), int(new_place))
        for caption, item, first, second, place, new_place in rows
    ]


def gallery_pictures(question_set: QuestionSet) -> dict[str, str]:
    """Return the picture names in a gallery, by item."""
    return {item: entry.name for item, entry in item_pictures(question_set).items()}


# Joint outcomes of the text side (t2t) and the picture side (i2t) of each triplet of VISLA (figures 9 and 10).


class Crossing(NamedTuple):
    """The case numbers of triplets that have both a text side and a picture side: int64 of shape (n,) for each side."""

    texts: np.ndarray
    pictures: np.ndarray
    subtypes: list[str]


def crossing(question_set: QuestionSet) -> Crossing:
    """Find the triplets in a question set that have both a text side and a picture side, in case order."""
    table = question_set.store.fetch_table(
        'SELECT left_."case" AS texts, right_."case" AS pictures, left_.subtype AS subtype '
        "FROM read_parquet($files) AS left_ JOIN read_parquet($files) AS right_ "
        "ON left_.kind = 't2t' AND right_.kind = 'i2t' AND left_.item = right_.item "
        'AND left_.id[:-4] = right_.id[:-4] ORDER BY left_."case"',
        {"files": [question_set.cases.path]},
    )
    texts, pictures = (table[name].to_numpy(np.int64) for name in ("texts", "pictures"))
    return Crossing(texts, pictures, table["subtype"].tolist())


def crossed_outcomes(question_set: QuestionSet) -> pd.DataFrame:
    """Count how many triplets each model gets right on both the text and the picture side, on one
    side, and on neither.

    Returns:
        model, slice (a subset; "" means all), texts and pictures ("held" or "fooled", where a tie counts
        as fooled), n_cases, share (among the triplets in the slice with two known answers), low and
        high (95 % interval, by resampling items), n_items. Models that answered only one side have
        no rows.
    """
    both = crossing(question_set)
    subtypes = np.array(both.subtypes, dtype=object)
    names = ["", *sorted({name for name in both.subtypes if name})]
    units = question_set.cases.unit_codes
    item = units[both.texts]
    table, measures = [], []
    for run in question_set.runs:
        margins = question_set.answers(run.model).margins
        sides = margins[both.texts], margins[both.pictures]
        is_known = ~(np.isnan(sides[0]) | np.isnan(sides[1]))
        for name in names:
            of_slice = is_known & (subtypes == name) if name else is_known
            n_slice = int(of_slice.sum())
            if not n_slice:
                continue
            for texts, pictures in itertools.product(SIDE_OUTCOMES, repeat=2):
                cell = of_slice.copy()
                for outcome, side in zip((texts, pictures), sides, strict=True):
                    cell &= side <= 0 if outcome == "fooled" else side > 0
                n_cases = int(cell.sum())
                table.append((run.model, name, texts, pictures, n_cases, n_cases / n_slice))
                value = cell[of_slice].astype(np.float64)
                measures.append(estimate.micro(value, np.ones(n_slice), item[of_slice]))
    n_items = max([int(units.max(initial=-1)) + 1, *(run.n_units for run in question_set.runs)])
    intervals = estimate.estimates(measures, n_items, are_rates=True)
    rows = [
        (*row, interval.low, interval.high, interval.n_items)
        for row, interval in zip(table, intervals, strict=True)
    ]
    return pd.DataFrame(rows, columns=pd.Index(CROSSED_COLUMNS))
