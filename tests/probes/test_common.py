"""Properties of every probe: unique cases that depend only on their item, and controls at chance or below."""

import inspect
import json
import math
from pathlib import Path

import pytest
from PIL import Image

from tests.conftest import estimates_of, make_tiny
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

PROBES = registry.names("probes")


def picture(path: Path, number: int) -> str:
    Image.new("RGB", (16, 16), (number, 255 - number, 7 * number % 255)).save(path)
    return path.name


def make(probe: str, folder: Path, n: int = 160) -> str:
    """Create a dataset with cases for the probe, and return its name."""
    folder.mkdir(parents=True, exist_ok=True)
    if probe == "eqben":
        rows = [
            {
                "image0": picture(folder / f"a{number}.png", number),
                "image1": picture(folder / f"b{number}.png", 255 - number),
                "caption0": f"first {number}",
                "caption1": f"second {number}",
            }
            for number in range(n)
        ]
        (folder / "pairs.json").write_text(json.dumps(rows))
        return f"pairs:{folder / 'pairs.json'}"
    if probe == "visla":
        rows = [
            {
                "id": number,
                "filename": picture(folder / f"{number}.png", number),
                "caption": f"a thing {number}",
                "caption2": f"something {number}",
                "negative_caption": f"no thing {number}",
            }
            for number in range(n)
        ]
        (folder / "swap.json").write_text(json.dumps(rows))
        return f"triplets:{folder / 'swap.json'}@{folder}"
    if probe == "series":
        rows = [
            {
                "query": f"a thing {number}",
                "edit": f"no thing {number}",
                "candidates": names,
                "edit_candidates": names[::-1],
            }
            for number in range(n)
            for names in [
                [
                    picture(folder / f"{number}-{place}.png", 3 * number + place)
                    for place in range(3)
                ]
            ]
        ]
        (folder / "orders.jsonl").write_text("\n".join(map(json.dumps, rows)))
        return f"orders:{folder / 'orders.jsonl'}"
    return make_tiny(folder)


@pytest.mark.parametrize("probe", ["eqben", "series", "visla"])
def test_controls_score_the_declared_chance_and_a_constant_model_never_wins(probe, tmp_path):
    dataset, store = make(probe, tmp_path / "data"), Store(tmp_path / "cache")
    request = Request(("control:random", "control:constant"), dataset, probe, examine=False)
    manifest = execute(request, store)[0]
    estimates = estimates_of(store, manifest, "model", "metric")
    for metric in registry.load_probe(probe).metrics:
        blind = estimates.loc[("control:random", metric.name)]
        if not math.isnan(metric.chance + blind["value"]):
            if not metric.name.startswith("words"):
                assert blind["value"] == pytest.approx(metric.chance, abs=0.12), metric.name
            if (
                metric.unit == "rate"
                and metric.direction == "up"
                and not metric.name.startswith("words")
            ):
                assert estimates.loc[("control:constant", metric.name), "value"] == 0, metric.name


@pytest.mark.parametrize("probe", PROBES)
def test_cases_are_unique_and_do_not_depend_on_other_items(probe, tmp_path):
    items = registry.load_dataset(make(probe, tmp_path / "data", 20), tmp_path).items
    loaded = registry.load_probe(probe)
    options = dict(loaded.defaults)
    made = [loaded.cases(item, options, 42)[0] for item in items]
    ids = [case.id for cases in made for case in cases]
    assert ids and len(ids) == len(set(ids))
    assert [loaded.cases(item, options, 42)[0] for item in reversed(items)] == made[::-1]
    for case in (case for cases in made for case in cases):
        assert len(case.texts) == len(case.roles)
        assert case.roles[0] == "original"


LISTS = [
    (name, option, default)
    for name in PROBES
    for option, default in registry.load_probe(name).defaults.items()
    if isinstance(default, list)
]
SAMPLES = {
    "caption_seeds": 1
}  # values for list options that are empty by default; otherwise a model


@pytest.mark.parametrize(("probe", "option", "default"), LISTS)
def test_a_duplicate_value_in_a_list_option_is_refused_in_one_line(
    probe, option, default, tiny, store
):
    value = default[0] if default else SAMPLES.get(option, "control:random")
    with pytest.raises(InvalidInput) as caught:
        execute(Request(("control:random",), tiny, probe, {option: [value, str(value)]}), store)
    assert (
        str(caught.value)
        == f"Option '{option}' contains '{value}' more than once. List each value once."
    )
    assert not store.runs()


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_has_a_docstring_a_version_and_described_metrics(probe):
    loaded = registry.load_probe(probe)
    assert inspect.getdoc(type(loaded)).endswith(".")
    assert loaded.version >= 1
    names = [metric.name for metric in loaded.metrics]
    assert len(names) == len(set(names))
    for metric in loaded.metrics:
        assert metric.direction in ("up", "down", "none")
        assert metric.unit in ("cosine", "rate", "correlation")
        assert metric.help.endswith(".") and metric.source
        assert metric.averaging
