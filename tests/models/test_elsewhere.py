"""The table in docs/import.md: each cell matches the outcome of a run with such a file."""

import functools
import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import tiers
from tests.datasets.test_pairs import valse
from tests.models import answered
from tests.models.test_scores import values
from tests.probes.test_common import PROBES, make, picture
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.runs.ask import ask
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

PAGE = Path(__file__).parents[2] / "docs" / "import.md"
OPTIONS = {"rococo": {"policies": ["same-concept"], "pictures": ["mix:0.8"], "picture_seeds": [1]}}
ALSO = {"series": "demo-series"}  # has boundaries, unlike the other data
SAMPLE = 12  # number of its items
SCALES = ("", "+cosine", "+probability")
WAYS = ("scores", "matrix", "embeddings", "pictures", "chat")


def table() -> dict[tuple[str, str], dict[str, str]]:
    """Return the cells by probe and metric, then by kind of import."""
    rows = re.findall(
        r"^\| `(\w+)` \| `([\w.]+)`" + r" \| (.+?)" * len(WAYS) + r" \|$",
        PAGE.read_text(encoding="utf-8"),
        re.M,
    )
    return {(probe, metric): dict(zip(WAYS, cells, strict=True)) for probe, metric, *cells in rows}


def dataset(probe: str, folder: Path) -> str:
    """Create a dataset with every kind of case of the probe."""
    data = make(probe, folder, 8)
    if probe == "eqben":
        rows = {
            f"k{n}": valse()
            | {"image_file": picture(folder / f"v{n}.png", 9 * n), "caption": f"v {n}"}
            for n in range(8)
        }
        (folder / "valse.json").write_text(json.dumps(rows))
        return f"pairs:{folder}@{folder}"
    if probe == "visla":
        pairs = [
            {"id": n, "filename": f"{n}.png", "caption": f"a {n}", "negative_caption": f"no {n}"}
            for n in range(8)
        ]
        (folder / "pairs.json").write_text(json.dumps(pairs))
        return f"triplets:{folder}@{folder}"
    return data


def options(probe: str, folder: Path) -> dict:
    """Return the options of a probe. For `prsm`, the gallery has more pictures than the largest k of the overlap."""
    if probe != "prsm":
        return OPTIONS.get(probe, {})
    (folder / "gallery").mkdir(exist_ok=True)
    lines = ["image,caption"]
    for n in range(1001):
        image = Image.new("RGB", (8, 8), (n % 256, n // 256, 7))
        image.save(folder / "gallery" / f"{n}.bmp")
        lines.append(f"{n}.bmp,thing {n}")
    (folder / "gallery" / "captions.csv").write_text("\n".join(lines))
    return {"gallery": f"csv:{folder}/gallery/captions.csv"}


def requests(probe: str, folder: Path, limit: int = 0) -> list[Request]:
    """Return requests without a model whose questions cover all metrics of the probe."""
    name, of_probe = dataset(probe, folder), options(probe, folder)
    every = [Request((), name, probe, of_probe, examine=False, limit=limit)]
    if probe in ALSO:
        every.append(Request((), ALSO[probe], probe, of_probe, examine=False, sample=SAMPLE))
    return every


def write_answers(folder: Path, request: Request, store: Store) -> dict[str, str]:
    """Write questions and answers of all three kinds, and return the model names by kind of import."""
    out = folder / "out"
    ask(request, out, store)
    images, texts = answered.vectors(out)
    matrix = (1 + images @ texts.T) / 2  # valid as cosines and as probabilities
    for name, array in (("pictures", images), ("texts", texts), ("scores", matrix)):
        np.save(out / f"{name}.npy", array)
    row, column = (
        {row["id"]: n for n, row in enumerate(answered.rows(out / f"{side}.jsonl"))}
        for side in ("pictures", "texts")
    )
    labelled = [
        {"label": f"{case['id']}_c{c}_i{i}", "score": float(matrix[row[shown], column[text]])}
        for case in answered.rows(out / "cases.jsonl")
        for i, shown in enumerate(case["pictures"])
        for c, text in enumerate(case["texts"])
    ]
    (folder / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in labelled))
    return {
        "scores": f"scores:{folder}/s.jsonl",
        "matrix": f"scores:{out}",
        "embeddings": f"embeddings:{out}",
    }


def known_values(every: list[tuple[Request, str]], store: Store) -> dict[str, float]:
    """Return each metric's value from the first request and model for which it is known."""
    merged: dict[str, float] = {}
    for request, name in every:
        for metric, value in metrics(request, name, store).items():
            if math.isnan(merged.get(metric, math.nan)):
                merged[metric] = value
    return merged


def metrics(request: Request, name: str, store: Store) -> dict[str, float]:
    """Return each metric's value, or an empty dict if the run is refused."""
    try:
        return values(store, execute(replace(request, models=(name,)), store)[0])
    except InvalidInput as error:
        assert "\n" not in str(error)
        return {}


@functools.cache
def cells(probe: str, folder: Path) -> dict[str, dict[str, str]]:
    """Return the outcomes of runs in the words of the table."""
    store = Store(folder / "cache")
    every = requests(probe, folder / "data")
    names = [write_answers(folder / str(n), request, store) for n, request in enumerate(every)]
    by_metric: dict[str, dict[str, str]] = {}
    for way in names[0]:
        by_scale = {
            scale: known_values(
                [(request, of[way] + scale) for request, of in zip(every, names, strict=True)],
                store,
            )
            for scale in (SCALES if way != "embeddings" else ("",))
        }
        for metric, word in words(probe, by_scale).items():
            by_metric.setdefault(metric, {})[way] = word
    return by_metric


def words(probe: str, by_scale: dict[str, dict[str, float]]) -> dict[str, str]:
    """Return the word in the table for each metric, given its values for each scale."""
    words_by_metric = {}
    for metric in registry.load_probe(probe).metrics:
        known = [
            f"`{scale}`" if scale else "yes"
            for scale, values in by_scale.items()
            if not math.isnan(values.get(metric.name, math.nan))
        ]
        word = "yes" if "yes" in known else " or ".join(known) or "unknown"
        words_by_metric[metric.name] = word if any(by_scale.values()) else "refused"
    return words_by_metric


def rows_of(probe: str, ways: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the cells of a probe in the table by metric."""
    rows = {metric: row for (name, metric), row in table().items() if name == probe}
    return {metric: {way: row[way] for way in ways} for metric, row in rows.items()}


@pytest.mark.parametrize("probe", tiers(PROBES, ("rococo",)))
def test_each_cell_matches_the_outcome_of_a_run(probe, tmp_path_factory):
    outcomes = cells(probe, tmp_path_factory.mktemp(probe))
    assert outcomes == rows_of(probe, next(iter(outcomes.values())))
