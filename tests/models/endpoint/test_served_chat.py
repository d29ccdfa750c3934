"""Yes/no scores from a server: the log-odds of real weights. A score is unknown if yes or no is not among the most
probable words.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.models.endpoint.conftest import Server
from tests.models.endpoint.test_served_embeddings import Teller
from tests.models.test_scores import values
from tests.probes.test_common import make
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.models.hf_gen import QUESTION
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.scoring import pictures
from vlprobe.storage.store import Store
from vlprobe.types import Picture

tiny_hf = pytest.importorskip("tests.models.tiny_hf", reason="needs requirements-models.txt")
torch, transformers = tiny_hf.torch, tiny_hf.transformers
WORDS = ("Yes", "yes", "No")


@pytest.fixture(scope="module")
def chat_folder(running: Server) -> Path:
    """Create a tiny llava with tokens for yes and no, which are mostly among its twenty most probable tokens."""
    folder = running.folder
    model = tiny_hf.generative("llava", folder)
    processor = transformers.AutoProcessor.from_pretrained(folder)
    processor.tokenizer.add_tokens(list(WORDS))
    rows = processor.tokenizer.convert_tokens_to_ids(list(WORDS))
    with torch.inference_mode():
        inputs = prompted(processor, tiny_hf.pictures(1)[0], "a cat")
        state = model(**inputs, output_hidden_states=True).hidden_states[-1][0, -1]
    with torch.no_grad():
        model.lm_head.weight[rows] += state.clone()
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@pytest.fixture
def asking(server: Server, chat_folder: Path, tmp_path: Path) -> Request:
    name = f"{server.name('chat')}+chat"
    return Request((name,), make("eqben", tmp_path / "data", 3), "eqben", device="cpu")


def prompted(processor, image: Image.Image, text: str):
    """Return the model's input: a picture and the question about it."""
    turn = [{"type": "image"}, {"type": "text", "text": QUESTION.format(text)}]
    prompt = processor.apply_chat_template(
        [{"role": "user", "content": turn}], add_generation_prompt=True, tokenize=False
    )
    return processor(images=[image], text=[prompt], return_tensors="pt")


def log_odds(model, processor, picture: Picture, text: str) -> float:
    """Compute the log-odds with the model directly, without a server."""
    with torch.inference_mode():
        inputs = prompted(processor, pictures.open_picture(picture), text)
        row = model(**inputs).logits[0, -1].double()
    top = set(row.topk(20).indices.tolist())
    ids = processor.tokenizer.convert_tokens_to_ids(list(WORDS))
    yes, no = (row[[i for i in side if i in top]] for side in (ids[:2], ids[2:]))
    return float(yes.logsumexp(0) - no.logsumexp(0)) if len(yes) and len(no) else float("nan")


def test_a_score_is_the_log_odds_of_yes_over_the_most_probable_words(
    asking: Request, store: Store, chat_folder: Path
):
    manifest = execute(asking, store)[0]
    cases = store.cases(manifest["case_key"]).table("cases").to_pylist()
    scores = store.run(manifest["key"]).table("scores")["scores"].to_pylist()
    model = transformers.AutoModelForImageTextToText.from_pretrained(chat_folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(chat_folder)
    expected = [
        [
            log_odds(model, processor, Picture.from_name(image), text)
            for image in case["images"]
            for text in case["texts"]
        ]
        for case in cases
    ]
    assert np.isfinite(expected).sum() >= 6 and np.nanstd(expected) > 0
    assert np.allclose(np.array(scores), np.array(expected), atol=1e-4, equal_nan=True)
    assert manifest["score_type"] == "logit" and "fingerprint 'fp_1'" in manifest["note"]


def test_absent_words_are_unknown_and_counted(server: Server, asking: Request, store: Store):
    execute(replace(asking, limit=1), store)
    server.fail("absent", 4)
    manifest = execute(replace(asking, limit=2), store)[0]
    assert "of 8 answers do not have both yes and no among their 20" in manifest["note"]
    counted = int(manifest["note"].split(" of 8 answers")[0].rpartition(" ")[2])
    scores = np.array(store.run(manifest["key"]).table("scores")["scores"].to_pylist())
    assert np.isnan(scores).sum() == counted >= 4


def test_probabilities_are_read_from_the_same_answers(
    server: Server, asking: Request, store: Store
):
    odds = execute(asking, store)[0]
    server.fail()
    name = f"{asking.models[0]}+probability"
    likely = execute(replace(asking, models=(name,)), store)[0]
    assert server.requests() == [] and likely["key"] != odds["key"]
    scores = [
        np.array(store.run(manifest["key"]).table("scores")["scores"].to_pylist())
        for manifest in (odds, likely)
    ]
    assert np.allclose(1 / (1 + np.exp(-scores[0])), scores[1], atol=1e-6, equal_nan=True)
    assert values(store, likely).keys() == values(store, odds).keys()


@pytest.mark.parametrize(
    ("kind", "message"),
    [("bare", "log-probabilities"), ("fingerprint", "earlier requests were answered by 'chat'")],
)
def test_the_error_for_an_invalid_answer_names_the_picture_and_the_text(
    server: Server, asking: Request, store: Store, kind: str, message: str
):
    execute(replace(asking, limit=1), store)
    server.fail(kind, 8)
    with pytest.raises(InvalidInput, match=r"equest 1 of \d+ \('first 1' with 'a1.png'\)") as error:
        execute(replace(asking, models=(f"{asking.models[0]}+parallel=1",)), store)
    assert message in str(error.value)


def test_a_run_stops_at_its_cost_limit_and_requests_the_rest_when_resumed(
    server: Server, asking: Request, store: Store
):
    request = replace(asking, models=(f"{asking.models[0]}+side=64",), price="1000/2000")
    teller = Teller()
    # Each answer reports 100 input tokens and one output token, which cost 0.102
    with pytest.raises(Exception, match="is spent, and the request may cost") as error:
        execute(replace(request, max_cost="0.7"), store, teller)
    n_answered = len(server.requests())
    assert 4 <= n_answered <= 7 and "Answers are stored" in str(error.value)
    assert "13 requests" not in teller.lines[0] and "by the price" in teller.lines[0]
    assert execute(request, store, teller)
    bodies = [str(request["body"]) for request in server.requests()]
    assert len(bodies) == len(set(bodies)) == 13
    assert f"{n_answered - 1} answers are already stored" in teller.lines[1]


def test_a_gallery_probe_with_a_chat_model_is_refused_with_its_number_of_requests(
    server: Server, asking: Request, store: Store, tmp_path: Path
):
    data = make("rococo", tmp_path / "gallery")
    with pytest.raises(InvalidInput, match=r"6 pictures x 12 captions = 72 pairs.*without \+chat"):
        execute(replace(asking, dataset=data, probe="rococo"), store)


def test_the_server_receives_the_text_of_the_question_template(
    server: Server, asking: Request, tmp_path: Path
):
    name = f"{asking.models[0]}+template=Is '{{}}' here? yes or no"
    execute(replace(asking, models=(name,)), Store(tmp_path / "cache"))
    contents = [request["body"]["messages"][0]["content"] for request in server.requests()]
    texts = {part["text"] for content in contents for part in content if part["type"] == "text"}
    assert texts and all(text.startswith("Is '") for text in texts)
    assert all(text.endswith("' here? yes or no") for text in texts)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("+template=Is {} here?", r"'\+template' .* has no effect"),
        ("+chat+template=Is it?", "is not a question template"),
    ],
)
def test_an_invalid_question_template_is_refused_in_one_line(options: str, words: str, monkeypatch):
    name = f"http:http://127.0.0.1:9#m{options}"
    # monkeypatch also restores the value that the line after the next changes
    monkeypatch.setenv("VLPROBE_APIS", "")
    registry.allow_typed(name)
    with pytest.raises(InvalidInput, match=words):
        registry.load_model(name)
