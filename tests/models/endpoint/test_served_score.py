"""`vlprobe score` with models of a server: each pair is requested once."""

import pandas as pd
import pytest

import vlprobe
from tests.conftest import call, make_tiny
from tests.models.endpoint.conftest import Server


def test_served_embeddings_give_the_scores_of_the_weights_and_are_requested_once(
    server: Server, tmp_path
):
    make_tiny(tmp_path)
    table, cache = tmp_path / "captions.csv", tmp_path / "cache"
    name = server.name("demo:softmax") + "+pictures+normalise"
    call(cache, "score", str(table), "--model", name, "--out", str(tmp_path / "a.csv"))
    n_requests = len(server.requests())
    call(cache, "score", str(table), "--model", name, "--out", str(tmp_path / "b.csv"))
    assert len(server.requests()) == n_requests > 0
    served = pd.read_csv(tmp_path / "a.csv")
    assert served.equals(pd.read_csv(tmp_path / "b.csv"))
    direct = vlprobe.score(pd.read_csv(table), "demo:softmax", folder=tmp_path, cache=cache)
    assert served["score"].to_numpy() == pytest.approx(direct["score"].to_numpy(), abs=1e-3)
