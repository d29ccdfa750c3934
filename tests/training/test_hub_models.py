"""EqSim on transformers models: the loss equals a second computation, and tuned weights load by their file."""

from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import make_tiny, tiers
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.scoring.pictures import open_picture
from vlprobe.training.batches import Batches
from vlprobe.training.learner import Learner
from vlprobe.training.objective import Settings
from vlprobe.training.request import TrainRequest
from vlprobe.training.trainer import train

tiny_hf = pytest.importorskip("tests.models.tiny_hf", reason="needs requirements-models.txt")
from vlprobe.training.hub_models import Trainable  # noqa: E402

N = 4
OPTIONS = {"rate": 0.01, "decay": 0.0, "warm_up": 0, "steps": 9}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> str:
    return make_tiny(tmp_path_factory.mktemp("data"))


@pytest.fixture(
    scope="module",
    params=tiers(["hf clip", "hf-itm blip", "hf-itm bridgetower"], ("hf clip", "hf-itm blip")),
)
def name(request, tmp_path_factory) -> str:
    prefix, kind = request.param.split()
    folder = tmp_path_factory.mktemp(kind)
    (tiny_hf.dual if prefix == "hf" else tiny_hf.matching)(kind, folder)
    return f"{prefix}:{folder}"


def captioned_pictures(data: str, tmp_path) -> tuple[list, list[str]]:
    items = registry.load_dataset(data, tmp_path).items[:N]
    return [open_picture(item.image) for item in items], [item.captions[0] for item in items]


def eqsim_by_hand(scores: np.ndarray) -> float:
    """Compute EqBen's equation 6 without close pairs: the mean of (s_ij - s_ji)^2 over pairs."""
    pairs = [(i, j) for i in range(N) for j in range(N) if i != j]
    return float(np.mean([(scores[i, j] - scores[j, i]) ** 2 for i, j in pairs]))


def test_eqsim_is_computed_from_the_scores_that_a_probe_uses(name, data, tmp_path):
    model = registry.load_model(name, "cpu")
    images, texts = captioned_pictures(data, tmp_path)
    pixels = [model.preprocess(image) for image in images]
    tokens = model.tokenize(texts)
    if name.startswith("hf:"):
        scores = model.encode_images(np.stack(pixels)) @ model.encode_texts(tokens).T
    else:
        encoded = model.encode_pictures(pixels)
        scores = np.array([model.match([one] * N, tokens) for one in encoded])
    items = registry.load_dataset(data, tmp_path).items[:N]
    batches = Batches(
        [replace(item, captions=item.captions[:1]) for item in items], model, N, 0, set(), ()
    )
    batch = batches.batch(0)
    order = [texts.index(text) for text in _texts(batches, batch)]
    learner = Learner(Trainable(model), {"clip": 1.0}, Settings(close=0, eqsim="v1"), **OPTIONS)
    loss = learner.judge(batch, {"eqsim"})["eqsim"]
    assert loss == pytest.approx(eqsim_by_hand(scores[np.ix_(order, order)]), rel=1e-3, abs=1e-12)


def _texts(batches: Batches, batch) -> list[str]:
    return [row.captions[0] for row in batches._order(0)[: batch.n]]


def test_a_tuned_model_is_loaded_from_its_file_and_has_other_scores(name, data, tmp_path):
    request = TrainRequest(
        name,
        (data,),
        str(tmp_path / "tuned.safetensors"),
        loss="clip+eqsim",
        steps=2,
        batch_size=3,
        rate=0.01,
        warm_up=0,
        validate_every=2,
        device="cpu",
        threads=1,
    )
    card = train(request, tmp_path)
    assert card["tuned"] == f"{name}@{request.output}"
    tuned, start = registry.load_model(card["tuned"], "cpu"), registry.load_model(name, "cpu")
    assert tuned.digest == card["digest"] != start.digest == card["start_digest"]
    assert card["held_out"]["before"]["eqsim"] != card["held_out"]["after"]["eqsim"]
    assert request.path in tuned.sources
    again = train(request, tmp_path)  # already finished: nothing is computed
    assert (again["digest"], again["seconds"]) == (card["digest"], card["seconds"])


def test_training_that_a_matching_head_does_not_support_is_refused_in_one_line(data, tmp_path):
    tiny_hf.matching("vilt", tmp_path / "vilt")
    request = TrainRequest(
        f"hf-itm:{tmp_path / 'vilt'}", (data,), str(tmp_path / "x.safetensors"), batch_size=3
    )
    with pytest.raises(InvalidInput, match="a matching head with two classes"):
        train(request, tmp_path)
    tiny_hf.matching("blip", tmp_path / "blip")
    request = replace(request, model=f"hf-itm:{tmp_path / 'blip'}")
    for wrong in ({"loss": "clip+sc"}, {"freeze": "text"}, {"piece": 2}):
        with pytest.raises(InvalidInput, match="compares whole pictures and texts"):
            train(replace(request, **wrong), tmp_path)
    with pytest.raises(InvalidInput, match=r"16,384 pairs for --batch-size 128"):
        train(replace(request, batch_size=128), tmp_path)
    with pytest.raises(InvalidInput, match=r"Checkpoint '.*gone' does not exist"):
        registry.load_model(f"{request.model}@{tmp_path / 'gone'}", "cpu")
    with pytest.raises(InvalidInput, match="does not fit"):
        tiny_hf.dual("clip", tmp_path / "clip")
        weights = next((tmp_path / "clip").glob("*.safetensors"))
        registry.load_model(f"{request.model}@{weights}", "cpu")
