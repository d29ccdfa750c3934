"""A run whose galleries several executors rank, each its shares, against the run of one process."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import make_tiny
from vlprobe import registry
from vlprobe.models import controls
from vlprobe.runs import answers, questions
from vlprobe.runs.context import RunContext
from vlprobe.runs.executor import LocalExecutor
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute, prepare
from vlprobe.scoring import gallery, short_list
from vlprobe.scoring.shares import chunk_starts
from vlprobe.storage.store import Store
from vlprobe.types import Capabilities, DualEncoder, Model, PairScorer

CLEAN = {"policies": [], "pictures": []}
ALTERED = {"policies": ["same-concept"], "pictures": ["mix:0.6"], "picture_seeds": [1]}
SAMPLED = {"sampled": 100}
CONTROL = controls.load("control:random")


class Stop(Progress):
    """Ends a run when its first case is to be scored."""

    def begin_run(self, keys) -> None:
        if keys.run:
            self.keys = keys

    def update(self, label, done, total) -> None:
        if hasattr(self, "keys"):
            raise KeyboardInterrupt


@pytest.fixture
def small_products(monkeypatch):
    """Products of 3 candidates of the control model, and galleries that are gathered 2 at a time."""
    monkeypatch.setattr(gallery, "PRODUCT_BYTES", 3 * 4 * 64)
    monkeypatch.setattr(gallery, "PRODUCT_CANDIDATES", 3)
    monkeypatch.setattr(gallery, "ENCODE_CHUNK", 2)


class Matching(DualEncoder, PairScorer):
    """The control model with a head whose logit tells the words of a text apart, coarsely."""

    name, digest = "matching", "e" * 32

    @property
    def capabilities(self) -> Capabilities:
        return replace(CONTROL.capabilities, scores_pairs=True, score_type="logit")

    def __init__(self) -> None:
        self.tokenize, self.preprocess = CONTROL.tokenize, CONTROL.preprocess
        self.encode_texts, self.encode_images = CONTROL.encode_texts, CONTROL.encode_images

    def encode_pictures(self, pixels):
        return pixels

    def match(self, seen, tokens, logits=False):
        return (tokens.sum(axis=1) % 3 / 4).astype(np.float32)


class Shares:
    """A run by one process, and the same one of which a crew of executors has the questions.

    Args:
        folder: Where both are kept.
        request: The run.
        model: Of the request, where it has no name to load it by.
    """

    def __init__(self, folder: Path, request: Request, model: Model | None = None) -> None:
        self.request, self.models = request, {model.name: model} if model else {}
        self.alone = execute(request, Store(folder / "alone"), models=self.models)[0]
        self.store = Store(folder / "shares")
        self.crew = self._executors(model or registry.load_model(request.models[0], "cpu", "fp32"))
        self.entry = self.crew[0].context.run_entry
        self.parts = questions.part_ranges(self.crew[0].context.case_entry, answers.PART_CASES)
        self._turn = 0

    def _executors(self, model: Model) -> list[LocalExecutor]:
        """Two of a run whose questions are written, each with an encoder of its own."""
        stopped = Stop()
        with pytest.raises(KeyboardInterrupt):
            execute(self.request, self.store, stopped, self.models)
        prepared = prepare(self.request, self.store, Progress())
        run = replace(prepared.run, model=model.name, model_digest=model.digest)
        context = RunContext(run, prepared.items, prepared.probe, self.request, self.store)
        assert run.key == stopped.keys.run
        return [LocalExecutor(context, model, Progress()) for _ in range(2)]

    def another(self) -> LocalExecutor:
        """The next executor."""
        self._turn += 1
        return self.crew[self._turn % len(self.crew)]

    def gather(self) -> None:
        """Has the rows of all large galleries written."""
        galleries = self.another().large_galleries()
        assert galleries
        for name, n in galleries:
            for start in chunk_starts(n):
                self.another().gather(name, start)

    def rank(self, n_shares: int) -> None:
        """Has every task of a stage done before the next stage, each by another executor."""
        self.gather()
        for stage in self.another().stages():
            for share in range(n_shares):
                for part in self.parts:
                    self.another().rank_share(part, share, n_shares, stage)

    def score(self, n_shares: int) -> None:
        """Has the parts scored from what the shares gave."""
        for part in self.parts:
            self.another().score_shares(part, n_shares)

    def assert_the_same(self) -> None:
        """The bytes are those of one process, and nothing is left beside them."""
        manifest = execute(self.request, self.store, models=self.models)[0]
        assert sums(manifest) == sums(self.alone)
        assert not (self.entry.folder / "parts").exists()


def many_pictures(folder: Path, n: int) -> str:
    """A dataset of so many pictures, two of which are equal; returns its name."""
    folder.mkdir()
    lines = ["image,caption"]
    for number in range(n):
        Image.new("RGB", (8, 8), (max(number, 1), 9, 9)).save(folder / f"{number}.png")
        lines.append(f"{number}.png,a picture")
    (folder / "captions.csv").write_text("\n".join(lines), encoding="utf-8")
    return f"csv:{folder / 'captions.csv'}"


def sums(manifest: dict) -> dict[str, str]:
    return {file["name"]: file["sha256"] for file in manifest["files"]}


@pytest.fixture
def request_of(tmp_path):
    """Makes a request about a small dataset."""
    data = make_tiny(tmp_path / "data")

    def make(probe: str, options: dict, model: str = "control:random") -> Request:
        return Request((model,), data, probe, options, examine=False)

    return make


@pytest.mark.parametrize(
    ("probe", "options", "model", "n_shares", "stages"),
    [
        ("rococo", ALTERED, None, 3, {"best", "counts"}),
        ("rococo", CLEAN, None, 7, {"best", "counts"}),
        ("rococo", ALTERED, Matching, 3, {"lists", "matches", "best", "counts"}),
        ("prsm", SAMPLED, None, 2, {"fronts", "common"}),
    ],
)
def test_shares_of_several_workers_make_the_bytes_of_one_process(
    probe, options, model, n_shares: int, stages, tmp_path, request_of, small_products, monkeypatch
):
    monkeypatch.setattr(answers, "PART_CASES", 5)
    monkeypatch.setattr(questions, "FIRST_PART_CASES", 3)
    monkeypatch.setattr(short_list, "SHORT_LIST", 4)
    if probe == "prsm":
        options = options | {"gallery": many_pictures(tmp_path / "gallery", 110)}
    request = request_of(probe, options, *([model.name] if model else []))
    shares = Shares(tmp_path, request, model and model())
    assert len(shares.parts) > 1
    shares.rank(n_shares)
    shares.score(n_shares)
    names = shares.entry.parts()
    assert {name.split("-")[1] for name in names} > {"rows", "digests"}
    assert {name.split("-")[-3] for name in names if name.count("-") == 5} == stages
    shares.assert_the_same()


def test_what_a_worker_left_damaged_is_made_again(tmp_path, request_of, small_products):
    shares = Shares(tmp_path, request_of("rococo", ALTERED))
    shares.gather()
    for part in shares.parts:
        shares.crew[0].rank_share(part, 0, 2, "best")
    for kind in ("rows", "digests", "best"):
        damaged = sorted((shares.entry.folder / "parts").glob(f"*-{kind}-*.parquet"))
        assert len(damaged) >= len(shares.crew[0].large_galleries())
        damaged[0].write_bytes(b"x")
    shares.score(2)
    shares.assert_the_same()
