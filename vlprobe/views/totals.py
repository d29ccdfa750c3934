"""Published results of known checkpoints on Winoground, SugarCrepe and ARO, to compare with a user's runs.

`totals.csv` contains the results that mteb publishes for 49 models (embeddings-benchmark/results at
f4cc6c8, CC0): model, revision, task, metric, value as a share, mteb_version. `text_acc` is the share
of questions in which the picture scores highest with the right caption, `image_acc` the share in
which the caption scores highest with the right picture, and `accuracy` the share with both; a task
with a single picture per question only has `text_acc`.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from vlprobe.errors import NotFound
from vlprobe.models import presets, published
from vlprobe.storage.store import Store
from vlprobe.views import estimates, runs
from vlprobe.views import rows as views_rows

_CSV = Path(__file__).with_name("totals.csv")
SOURCE = "mteb results (CC0)"
PUBLISHED = {f"{published.PREFIX}:CLIP ViT-B/32": "openai/clip-vit-base-patch32"}  # bundled answers
with _CSV.with_name("openclip_names.csv").open(encoding="utf-8", newline="") as _file:
    # Names of checkpoints in OpenCLIP, and their names in mteb
    OPENCLIP = {row["openclip"]: row["model"] for row in csv.DictReader(_file)}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark for which totals are published.

    Attributes:
        task: Name in mteb's results.
        label: Display name.
        sizes: Number of questions in the full benchmark, as released and without duplicates. Runs
            on only a part of the benchmark are not compared.
        metrics: For each probe that supports the benchmark, the mapping from the probe's metrics to
            mteb's metrics. The last one is the share of cases in which a model is not fooled.
    """

    task: str
    label: str
    sizes: frozenset[int]
    metrics: Mapping[str, Mapping[str, str]]

    def matches(self, dataset: str) -> bool:
        """Return whether a dataset's name contains the name of the benchmark."""
        return self.label.split()[0].lower() in dataset.lower()


PAIRS = {"text_score": "text_acc", "image_score": "image_acc", "group_score": "accuracy"}
FOILS = {"eqben": {"foil_accuracy": "text_acc"}}
BENCHMARKS = (
    Benchmark("Winoground", "Winoground", frozenset({400}), {"eqben": PAIRS}),
    Benchmark(
        "SugarCrepe",
        "SugarCrepe",
        frozenset({7505, 7511, 7512}),
        {"visla": {"pair_accuracy": "text_acc"}, **FOILS},
    ),
    Benchmark("AROVisualRelation", "ARO relation", frozenset({23_937}), FOILS),
    Benchmark("AROVisualAttribution", "ARO attribution", frozenset({28_748}), FOILS),
)


def benchmarks_of(probe: str, dataset: str) -> list[Benchmark]:
    """Return the benchmarks that a probe's run on the given dataset may belong to, usually at most one."""
    return [each for each in BENCHMARKS if probe in each.metrics and each.matches(dataset)]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run's results and the published totals for the same checkpoint.

    Attributes:
        benchmark: The benchmark whose totals are compared.
        published: The published values, shares from 0 to 1, in the order of the benchmark's metrics.
        measured: The run's values.
        agrees: Whether each published value is within the run's 95 % interval.
        authors: Who published the run's answers; "" if vlprobe computed them.
    """

    benchmark: Benchmark
    published: tuple[float, ...]
    measured: tuple[float, ...]
    agrees: bool
    authors: str = ""

    @property
    def sentence(self) -> str:
        """The comparison in a sentence."""
        totals, measured = (
            " / ".join(f"{100 * value:.2f}" for value in values)
            for values in (self.published, self.measured)
        )
        verdict = "within sampling error" if self.agrees else "outside the 95 % interval"
        whose = f"by the answers of {self.authors}" if self.authors else "yours"
        return (
            f"{self.benchmark.label} {totals} published ({SOURCE}); {whose} {measured}: {verdict}"
        )


@dataclass(frozen=True, slots=True)
class Total:
    """A published result for one model: the share of cases in which the model is fooled, 0 to 1."""

    model: str
    fooled: float


def load() -> pd.DataFrame:
    """Load the published totals, one row per model, task and metric."""
    return pd.read_csv(_CSV, dtype={"mteb_version": "str"}, encoding="utf-8")


def published_name(model: str) -> str:
    """Return the name under which totals for a model are published, or "" if there are none.

    Args:
        model: A name on the Hugging Face hub, or a vlprobe model name: `hf:NAME`,
            `openclip:ARCH/TAG`, or a preset of a paper such as `visla:vit-b-32`.
    """
    weights = model
    for family in presets.FAMILIES:
        if model in family.NAMES:
            weights = family.presets[model.partition(":")[2]].weights
    prefix, _, name = weights.partition(":")
    known = {
        published.PREFIX: PUBLISHED.get(model, ""),
        "openclip": OPENCLIP.get(name, ""),
        **{"hf": name, "st": name},
    }.get(prefix, model)
    return known if known in set(load()["model"]) else ""


def of_model(model: str) -> pd.DataFrame:
    """Return the published totals for a model: model, task, metric, value (in percent), mteb_version.

    Raises:
        NotFound: No totals are published for this model.
    """
    table = load()
    known = published_name(model)
    if not known:
        raise NotFound(
            "model with published totals",
            model,
            sorted({*table["model"], *(f"openclip:{name}" for name in OPENCLIP)}),
        )
    rows = table.loc[table["model"] == known, ["model", "task", "metric", "value", "mteb_version"]]
    return rows.assign(value=(100 * rows["value"]).round(2)).reset_index(drop=True)


def compare(store: Store, model: str, case_key: str = "") -> list[Comparison]:
    """Compare a model's stored runs on complete benchmarks with the totals published for the same
    checkpoint.

    Args:
        case_key: Key of the question set to compare; "" means all question sets.

    Returns:
        One comparison per run that covers all questions of a benchmark whose name is part of the
        dataset's name.
    """
    rows = [
        (row, benchmarks)
        for row in runs.question_set_rows(store)
        if model in row.models and case_key in ("", row.case_key)
        if (benchmarks := benchmarks_of(row.probe, row.dataset))
    ]
    known = published_name(model) if rows else ""
    if not known:
        return []
    table = load()
    values = table.loc[table["model"] == known].set_index(["task", "metric"])["value"]
    comparisons = []
    for row, benchmarks in rows:
        question_set = runs.question_set(store, row.case_key)
        measured = estimates.estimates(question_set)
        measured = measured.loc[measured["model"] == model].set_index("metric")
        publication = question_set.run(model).publication
        authors = publication.authors if publication else ""
        compared = (
            _compared(benchmark, benchmark.metrics[row.probe], values, measured, authors)
            for benchmark in benchmarks
        )
        comparisons += filter(None, compared)
    return comparisons


def _compared(
    benchmark: Benchmark,
    metrics: Mapping[str, str],
    values: pd.Series,
    measured: pd.DataFrame,
    authors: str,
) -> Comparison | None:
    """Compare one run's estimates with published totals; None if the run is incomplete or no total exists."""
    names = [(benchmark.task, metric) for metric in metrics.values()]
    if not set(metrics) <= set(measured.index) or not set(names) <= set(values.index):
        return None
    rows = measured.loc[list(metrics)]
    if not set(rows["n_cases"].astype(int)) <= benchmark.sizes:
        return None
    totals = values.loc[names].to_numpy()
    agrees = bool(((rows["low"] <= totals) & (rows["high"] >= totals)).all())
    return Comparison(
        benchmark, tuple(totals.tolist()), tuple(rows["value"].tolist()), agrees, authors
    )


def of_questions(question_set: runs.QuestionSet, kind: str, model: str) -> tuple[Total, ...]:
    """Return the published totals that are comparable to the share of cases of a kind in which a model is fooled.

    Returns:
        The published totals of all models on the same questions, least fooled first. Empty if the question set is not a
        benchmark with totals, or if the model did not answer all questions.
    """
    for benchmark in benchmarks_of(question_set.probe, question_set.runs[0].dataset):
        name, published_metric = list(benchmark.metrics[question_set.probe].items())[-1]
        if kind not in question_set.metrics[name].kinds:
            continue
        numbers = question_set.cases.numbers("kind = ?", [kind])
        (margins,) = views_rows.margins(question_set, [model], numbers)
        if np.count_nonzero(~np.isnan(margins)) not in benchmark.sizes:
            continue
        totals = load()
        is_same = (totals["task"] == benchmark.task) & (totals["metric"] == published_metric)
        best_first = totals.loc[is_same].sort_values("value", ascending=False, kind="stable")
        return tuple(Total(row.model, 1 - row.value) for row in best_first.itertuples(index=False))
    return ()
