"""The `http:` columns of docs/import.md: each cell matches the outcome of a run."""

import math

import pytest

from tests.conftest import tiers
from tests.models import test_elsewhere
from tests.models.endpoint.conftest import Server
from tests.models.endpoint.test_served_chat import chat_folder  # noqa: F401 (fixture)
from tests.probes.test_common import PROBES
from vlprobe.storage.store import Store

WAYS = {"pictures": ("",), "chat": ("", "+probability")}


@pytest.mark.usefixtures("chat_folder")
@pytest.mark.parametrize("probe", tiers(PROBES, ("eqben",)))
def test_each_cell_matches_the_outcome_of_a_run(probe: str, server: Server, tmp_path_factory):
    folder = tmp_path_factory.mktemp(probe)
    store, data = Store(folder / "cache"), folder / "data"
    requests = test_elsewhere.requests(probe, data, limit=6 if probe == "prsm" else 0)
    names = {
        "pictures": f"{server.name('demo:softmax')}+pictures",
        "chat": f"{server.name('chat')}+chat",
    }
    cells = {}
    for way, scales in WAYS.items():
        by_scale = {
            scale: test_elsewhere.known_values(
                [(request, names[way] + scale) for request in requests], store
            )
            for scale in scales
        }
        for metric, word in test_elsewhere.words(probe, by_scale).items():
            cells.setdefault(metric, {})[way] = word
    assert cells == test_elsewhere.rows_of(probe, WAYS)
    texts = test_elsewhere.metrics(requests[0], server.name("demo:softmax"), store)
    known = {metric for metric, value in texts.items() if not math.isnan(value)}
    is_of_texts = {metric for metric in texts if "t2t" in metric}
    assert known == (is_of_texts if probe == "visla" else set()), "without +pictures"
