"""What the papers' figures show, of a user's runs: severity curves, edit distances, shared words, overlap by depth."""

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from rapidfuzz.distance import Levenshtein

from vlprobe import registry
from vlprobe.metrics import estimate, triplets
from vlprobe.perturb.mix import LAMBDAS
from vlprobe.storage.store import Store
from vlprobe.views import estimates, runs, tradeoff, versions
from vlprobe.views import rows as views_rows

LISTS = ("policies", "pictures")  # options of RoCOCO that only say what is asked, not how
WORD_COUNTS = (1, 2, 3, 4, 5)  # words exchanged: table 3 and table 6 of the paper
PAIRS = ("P1 and P2: the same meaning", "P1 and N: another meaning", "P2 and N: another meaning")
DEPTHS = ("10", "100", "1000")  # of PRSM's overlap
GROUPS = {"overall": "CLIP, everyone", "female": "CLIP, women", "male": "CLIP, men"}  # of PRSM's rows
_EDGES = np.linspace(-1, 1, 9)  # of the difference of two shares of shared words
_ESTIMATE = ["model", "slice", "value", "low", "high", "n_items", "n_cases"]


def severity_steps(edit: str) -> dict[str, str]:
    """The slices of a RoCOCO edit from weak to strong, with their strength in words.

    >>> severity_steps("danger")["danger:2"], severity_steps("mix")["mix:0.9"]
    ('2', '10 %')
    """
    if edit in ("mix", "patch"):
        return {f"{edit}:{lam}": f"{100 * (1 - lam):.0f} %" for lam in LAMBDAS}
    return {f"{edit}:{count}" if count > 1 else edit: str(count) for count in WORD_COUNTS}


def asked_how(store: Store, case_key: str) -> dict:
    """The dataset, options, seed and limit of a question set, as a request takes them."""
    run = _run(store, case_key)
    known = registry.load_probe(run["probe"]).defaults
    options = {name: value for name, value in run["options"].items() if name in known}
    return {"dataset": run["dataset"], "options": options, "seed": run["seed"], "limit": run["limit"]}


def severity(store: Store, case_key: str, metric: str) -> pd.DataFrame:
    """A RoCOCO metric by what was altered, from every question set that differs in nothing but what was altered.

    Returns:
        model, slice, value, low, high, n_items, n_cases; the models of the question set, and each slice once: its own
        first, then those of the newest question set.
    """
    shown = runs.runs_of(store, case_key)
    own = _pinned(_run(store, case_key))
    like = {run["case_key"]: run["key"] for run in store.runs() if _pinned(run["run"]) == own}
    like = {case_key: shown["key"].iloc[0]} | dict(reversed(like.items()))
    models = set(shown["model"])
    tables = [estimates.estimates(store, key, "subtype", like=run) for key, run in like.items()]
    found = pd.concat(tables, ignore_index=True).dropna(subset=["value"])
    found = found[(found["metric"] == metric) & found["model"].isin(models)]
    return found.drop_duplicates(["model", "slice"], ignore_index=True)[_ESTIMATE]


def _run(store: Store, case_key: str) -> dict:
    key = runs.runs_of(store, case_key)["key"].iloc[0]
    return next(run["run"] for run in store.runs() if run["key"] == key)


def _pinned(run: Mapping) -> tuple:
    """All that a question set rests on but what was altered, and the versions of its metrics."""
    options = {name: value for name, value in run["options"].items() if name not in LISTS}
    names = ("dataset_digest", "probe", "probe_version", "seed", "limit")
    return *(run[name] for name in names), sorted(options.items(), key=str), versions.version(run)


def printed_severity(edit: str, metric: str) -> pd.DataFrame:
    """What RoCOCO prints of an edit at its strengths (tables 3, 4, 6, 7): model, slice, value; a loss is positive."""
    if edit in ("mix", "patch"):
        numbers, slices = (4, 7), {f"{edit}_{lam}": f"{edit}:{lam}" for lam in LAMBDAS}
    else:
        slices = {edit.replace("-", "_"): edit}
        slices |= {f"substitution_{k}": f"{edit}:{k}" for k in WORD_COUNTS[1:]} if edit == "rand-voca" else {}
        numbers = (3, 6)
    cells = pd.concat([tradeoff.printed("rococo", number, metric) for number in numbers], ignore_index=True)
    cells = cells[cells["slice"].isin(slices)]
    value = -cells["value"] if metric.endswith("drop_rate") else cells["value"]
    return cells.assign(slice=cells["slice"].map(slices), value=value)[["model", "slice", "value"]]


def printed_depths(setting: str) -> pd.DataFrame:
    """What PRSM prints of CLIP in one setting, of all its versions of a query: model, slice (depth), value."""
    splits = {"P1": "p1/o-c1-c2", "P2": "p2/p1-p2-p3-np", "P3": "p3/o-a1-a2-a12"}
    names = {f"{group}/{splits[setting]}": words for group, words in GROUPS.items()} if setting in splits else {}
    cells = [tradeoff.printed("prsm", 1, f"local_{depth}").assign(depth=depth) for depth in DEPTHS[1:]]
    found = pd.concat(cells, ignore_index=True)
    found = found[found["slice"].isin(names)]
    return found.assign(model=found["slice"].map(names), slice=found["depth"])[["model", "slice", "value"]]


def depths(store: Store, case_key: str) -> pd.DataFrame:
    """PRSM's overlap by how many first pictures are compared: setting, model, slice (depth), value and interval.

    A depth that is not smaller than the gallery has no row.
    """
    table = estimates.estimates(store, case_key, "subtype").dropna(subset=["value"])
    names = {f"prsm_local_{depth}": depth for depth in DEPTHS}
    table = table[table["metric"].isin(names)]
    return table.assign(setting=table["slice"], slice=table["metric"].map(names))[["setting", *_ESTIMATE]]


def captions(store: Store, case_key: str, page: int, size: int) -> tuple[list[str], int]:
    """One page of the distinct first texts of a question set in its order, and how many there are."""
    with store.cursor() as cursor:
        found = cursor.execute(
            'SELECT texts[1] AS caption FROM read_parquet(?) GROUP BY caption ORDER BY min("case")',
            [store.files([case_key], "cases")],
        ).df()["caption"]
    return found.iloc[max(page - 1, 0) * size :][:size].tolist(), len(found)


def _triplets(store: Store, case_key: str) -> pd.DataFrame:
    """The triplets of texts of a VISLA question set: case, unit (of resampling), subtype, texts."""
    with store.cursor() as cursor:
        return cursor.execute(
            f'SELECT "case", {views_rows.unit(store, case_key)} AS unit, subtype, texts '
            "FROM read_parquet(?) WHERE kind = 't2t' ORDER BY \"case\"",
            [store.files([case_key], "cases")],
        ).df()


def edit_distances(store: Store, case_key: str, subset: str = "", bins: int = 30) -> pd.DataFrame:
    """How many letters must change to turn one caption of a triplet into another, spread over the triplets.

    Returns:
        model (which two captions), left, right, share; the last bin has all beyond. Source: VISLA, figure 8.
    """
    table = _triplets(store, case_key)
    texts = table.loc[table["subtype"] == subset, "texts"] if subset else table["texts"]
    places = ((0, 1), (0, 2), (1, 2))
    found = np.array([[Levenshtein.distance(own[one], own[two]) for one, two in places] for own in texts])
    if not len(found):
        return pd.DataFrame(columns=["model", "left", "right", "share"])
    step = max(math.ceil(np.quantile(found, 0.99) / bins), 1)
    edges = np.arange(0, (bins + 1) * step, step)
    parts = []
    for name, values in zip(PAIRS, found.T, strict=True):
        counts = np.histogram(np.minimum(values, edges[-1]), edges)[0]
        parts.append(
            pd.DataFrame({"model": name, "left": edges[:-1], "right": edges[1:], "share": counts / len(values)})
        )
    return pd.concat(parts, ignore_index=True)


def lures(store: Store, case_key: str) -> pd.DataFrame:
    """Text-to-text accuracy by how much the words mislead: the false caption's shared words minus the true one's.

    The lure is the larger Jaccard index of N with a true caption minus that of the two true captions, -1 to 1: from 0
    on, whoever counts shared words is wrong.

    Returns:
        model, slice (a bin of `lure_steps`, its lower edge included), value, low, high, n_items, n_cases; no row for an
        empty bin.
    """
    asked = _triplets(store, case_key)
    asked["unit"] = pd.factorize(asked["unit"])[0]
    n_units = store.run(runs.runs_of(store, case_key)["key"].iloc[0]).manifest()["n_units"]
    rows = []
    for run in runs.runs_of(store, case_key).itertuples():
        with store.cursor() as cursor:
            said = cursor.execute(
                'SELECT "case", text_scores[1] AS text_01, text_scores[2] AS text_02, text_scores[3] AS text_12, '
                "overlap_01, overlap_02, overlap_12 FROM read_parquet(?) WHERE kind = 't2t'",
                [store.files([run.key], "scores")],
            ).df()
        own = asked.merge(said, on="case")
        lure = np.maximum(own["overlap_02"], own["overlap_12"]) - own["overlap_01"]
        value = np.where(lure.isna(), np.nan, triplets.t2t_accuracy(own))
        place = np.digitize(lure, _EDGES[1:-1])
        bins = np.unique(place[~np.isnan(value)])
        means = [estimate.micro(value, place == number, own["unit"].to_numpy()) for number in bins]
        for number, mean, one in zip(bins, means, estimate.estimates(means, n_units, are_rates=True), strict=True):
            name = list(lure_steps())[number]
            rows.append((run.model, name, one.value, one.low, one.high, one.n_items, len(mean.value)))
    return pd.DataFrame(rows, columns=_ESTIMATE)


def lure_steps() -> dict[str, str]:
    """The bins of `lures` from left to right, and what they are called."""
    return {f"{low:.2f} to {high:.2f}": f"{low:g} to<br>{high:g}" for low, high in itertools.pairwise(_EDGES)}
