"""A store with LGIP answers of three models, two of which are `Dealt`, and their margins joined without SQL."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import case_key_of, make_tiny
from vlprobe import views
from vlprobe.models.controls import ControlEncoder
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

MODELS = ("dealt:1", "dealt:2", "control:random")  # in the order on the pages


class Dealt(ControlEncoder):
    """A random model with embeddings drawn by its name."""

    def __init__(self, name: str) -> None:
        super().__init__("random")
        self.name, self.digest, self._salt = name, name, int(name[-1])

    def _vectors(self, named: np.ndarray) -> np.ndarray:
        return super()._vectors(named ^ np.uint8(self._salt))


def make(folder: Path) -> Store:
    """Create the store for the fixture `dealt_store` in tests/conftest.py."""
    store = Store(folder / "cache")
    models = {MODELS[2]: ControlEncoder("random")} | {name: Dealt(name) for name in MODELS[:2]}
    request = Request(MODELS, make_tiny(folder / "tiny"), "lgip", examine=False)
    execute(request, store, models=models)
    return store


@pytest.fixture(scope="session")
def filled(dealt_store: Store) -> Store:
    return dealt_store


@pytest.fixture(scope="session")
def key(filled: Store) -> str:
    return case_key_of(filled)


@pytest.fixture(scope="session")
def rows(filled: Store, key: str) -> pd.DataFrame:
    """Return every model's margins by case, joined without SQL."""
    runs = pd.DataFrame(views.runs.question_set(filled, key).runs).set_index("model")["key"]
    table = pd.read_parquet(filled.root / "cases" / key / "cases.parquet").set_index("case")[
        ["item", "kind", "subtype"]
    ]
    for model in MODELS:
        scores = pd.read_parquet(filled.root / "runs" / runs[model] / "scores.parquet").set_index(
            "case"
        )
        table[model] = scores["margin"]
    return table.reset_index()
