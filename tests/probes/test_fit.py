"""Compatibility of models and probes."""

import pytest

from tests.scoring.test_cases import PairsOnly, TextsOnly
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.models import controls
from vlprobe.probes.fit import check_fit, score_type


@pytest.mark.parametrize("probe", registry.names("probes"))
def test_a_probe_refuses_exactly_the_models_that_cannot_answer_it(probe):
    probe = registry.load_probe(probe)
    check_fit(controls.load("control:random"), probe)
    refuses = [TextsOnly] if probe.needs else []
    for kind in (TextsOnly, PairsOnly):
        if kind in refuses:
            with pytest.raises(InvalidInput, match=f"Probe '{probe.name}' (needs|searches)"):
                check_fit(kind(), probe)
        else:
            check_fit(kind(), probe)


def test_the_score_type_depends_on_the_model_and_on_whether_a_gallery_is_ranked():
    lgip, rococo = registry.load_probe("lgip"), registry.load_probe("rococo")
    assert score_type(controls.load("control:random"), rococo) == "cosine"
    assert score_type(PairsOnly(), lgip) == "probability"
    assert score_type(PairsOnly(), rococo) == "logit"
