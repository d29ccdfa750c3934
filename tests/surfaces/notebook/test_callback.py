"""A probed training reaches the same weights, and each probe sees the weights of its step."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torchvision.transforms.functional import pil_to_tensor

import vlprobe
from tests.conftest import make_tiny
from vlprobe.errors import InvalidInput


class Toy(torch.nn.Module):
    """Towers with dropout and batch norm, which show whether modes were restored."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures = torch.nn.Sequential(
            torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5)
        )
        self.words = torch.nn.EmbeddingBag(256, 8)
        self.frozen = torch.nn.Dropout().eval()

    def encode_image(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.pictures(pixels.mean(dim=(2, 3)))

    def encode_text(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.words(tokens)


def preprocess(image) -> torch.Tensor:
    return pil_to_tensor(image.resize((8, 8))) / 255


def tokenizer(texts: list[str]) -> torch.Tensor:
    return torch.tensor([list(text.encode()[:64].ljust(64)) for text in texts])


def train_toy(tmp_path: Path, every: int, **settings) -> tuple[dict, vlprobe.Callback]:
    """Train nine steps from the same start; return the final weights and the callback."""
    torch.manual_seed(0)
    toy = Toy().train()
    toy.frozen.eval()
    optimizer = torch.optim.Adam(toy.parameters(), lr=0.05)
    data = make_tiny(tmp_path / "tiny")
    watch = vlprobe.Callback(
        toy, preprocess, tokenizer, every=every, dataset=data, cache=tmp_path / "cache", **settings
    )
    for step in range(9):
        results = watch(step)
        assert (results is None) == (step % every > 0)
        assert toy.training and toy.pictures[1].training and not toy.frozen.training
        pictures, texts = torch.rand(6, 3, 8, 8), tokenizer(["A dog.", "A cat.", "Two cars."] * 2)
        loss = -torch.cosine_similarity(toy.encode_image(pictures), toy.encode_text(texts)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return toy.state_dict(), watch


def test_a_probed_training_ends_with_the_weights_of_an_unprobed_one(tmp_path: Path):
    with_probes, watch = train_toy(tmp_path / "a", 4)
    without, idle = train_toy(tmp_path / "b", 100)
    assert list(watch.history) == [0, 4, 8] and list(idle.history) == [0]
    assert all(torch.equal(with_probes[name], without[name]) for name in without)


def test_each_probe_sees_the_weights_of_its_step(tmp_path: Path):
    _, watch = train_toy(tmp_path, 4, name="toy", version="1")
    assert {results.models for results in watch.history.values()} == {
        ("toy@0",),
        ("toy@4",),
        ("toy@8",),
    }
    digests = {results.question_set.runs[0].model_digest for results in watch.history.values()}
    assert len(digests) == 3
    assert watch.table.index.tolist() == [0, 4, 8]
    rate = [results.value("positive_rate") for results in watch.history.values()]
    assert np.array_equal(watch.table["positive_rate"], rate)
    page = watch._repr_html_()
    assert page.index("<img") < page.index("<table") and "step 8" in page


def test_equal_weights_of_an_equal_version_are_not_probed_twice(tmp_path: Path):
    keys = []
    for version in ("1", "1", "2", "", ""):
        _, watch = train_toy(tmp_path, 100, version=version)
        keys.append(watch.history[0].question_set.runs[0].key)
    assert keys[0] == keys[1] and len(set(keys)) == 4


def test_a_failed_probe_warns_or_in_strict_mode_ends_the_training(tmp_path: Path):
    torch.manual_seed(0)
    toy, data = Toy(), make_tiny(tmp_path / "tiny")
    settings = {
        "every": 1,
        "dataset": data,
        "cache": tmp_path / "cache",
        "options": {"rules": "papre"},
    }
    with pytest.warns(UserWarning, match="vlprobe at step 3: No rule set named 'papre'"):
        assert vlprobe.Callback(toy, preprocess, tokenizer, **settings)(3) is None
    assert toy.training
    with pytest.raises(vlprobe.errors.VlprobeError):  # type: ignore[attr-defined] - a module
        vlprobe.Callback(toy, preprocess, tokenizer, strict=True, **settings)(3)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"every": 0}, "at least 1"),
        ({"name": "a:b"}, "is not a valid name"),
        ({"encode_image": None}, ""),
    ],
)
def test_invalid_settings_are_refused_before_the_training(settings: dict, said: str):
    if "encode_image" in settings:
        with pytest.raises(InvalidInput, match="Linear has no encode_image"):
            vlprobe.Callback(torch.nn.Linear(1, 1), preprocess, tokenizer)
        return
    with pytest.raises(InvalidInput, match=said):
        vlprobe.Callback(Toy(), preprocess, tokenizer, **settings)
