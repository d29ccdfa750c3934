"""The presentation of a probe is complete and sufficient to show it: no page refers to a probe by name."""

import ast
from pathlib import Path

import pytest

from vlprobe import registry
from vlprobe.case import html
from vlprobe.render import words
from vlprobe.types.presentation import KindPresentation, Presentation

PROBES = registry.names("probes")
ROOT = Path(__file__).resolve().parents[2] / "vlprobe"
CARD_FILES = ["render/words.py", "case/html.py", "case/json.py"]


@pytest.mark.parametrize("probe", PROBES)
def test_every_kind_of_case_has_its_texts(probe: str):
    loaded = registry.load_probe(probe)
    presentation = loaded.presentation
    judged_kinds = {kind for metric in loaded.metrics for kind in metric.kinds}
    assert judged_kinds == presentation.kinds.keys() == loaded.kinds.keys()
    for kind in presentation.kinds.values():
        assert kind.label and kind.question.endswith(".")
        assert bool(kind.summary) is kind.is_movement
        assert bool(kind.edit_label) is (kind.body == "edit")
        assert "{" not in kind.summary.format(n_cases=1, n_tied=0, model="demo")


@pytest.mark.parametrize("probe", PROBES)
def test_the_main_metrics_exist_and_have_a_direction(probe: str):
    loaded = registry.load_probe(probe)
    metrics = {metric.name: metric for metric in loaded.metrics}
    presentation = loaded.presentation
    assert presentation.main_metrics
    assert all(metrics[name].direction != "none" for name in presentation.main_metrics)
    assert {metrics[name].unit for name in presentation.headlines} <= {"rate"}
    assert set(presentation.retrieval_metrics) <= metrics.keys()
    if presentation.trade_off:
        steady = "up" if probe == "visla" else "down"  # both axes of VISLA are accuracies
        assert metrics[presentation.trade_off.down].direction == steady
        assert {metrics[name].direction for name in presentation.trade_off.ups} == {"up"}


def test_probes_have_unique_positions_and_consistent_labels():
    every = [registry.load_probe(probe).presentation for probe in PROBES]
    assert len({presentation.position for presentation in every}) == len(every)
    labels = {label for presentation in every for label in presentation.value_labels.items()}
    assert len(labels) == len({name for name, _ in labels})


def test_an_unknown_probe_is_shown_with_its_presentation(monkeypatch):
    kind = KindPresentation(
        label="A sound against a caption", question="The true caption should score higher."
    )
    presentation = Presentation(
        title="Sounds",
        position=9,
        sentence="Hears.",
        kinds={"sound": kind},
        subtype_label="Kind of sound",
        value_labels={"dog-bark": "A bark"},
    )
    monkeypatch.setattr(words, "presentations", lambda: {"sounds": presentation})
    words._value_labels.cache_clear()
    try:
        assert words.value_label("dog-bark") == "A bark"
    finally:
        words._value_labels.cache_clear()
    assert words.breakdown_label("sounds", "subtype") == "Kind of sound"
    assert "Fooled" in str(html.verdict(presentation.kind("sound"), -0.25))
    assert presentation.kind("unheard").label == "unheard"


@pytest.mark.parametrize("name", CARD_FILES)
def test_card_rendering_refers_to_no_probe_and_no_kind(name: str):
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    literals = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    bodies = {"pair", "series"}  # bodies with the name of a kind or a probe
    kinds = {kind for probe in PROBES for kind in registry.load_probe(probe).kinds}
    assert not literals & ({*PROBES, *kinds} - bodies)
