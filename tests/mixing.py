"""Models that recognize only colors, and a store with their results on mixed pictures."""

import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageColor

from tests.conftest import CAPTIONS, make_tiny
from vlprobe.models.controls import ControlEncoder
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

MODELS = ("hue:1", "hue:2", "hue:3", "control:random")  # in the order in which pages list them
OPTIONS = {
    "policies": ["same-concept"],
    "pictures": ["patch:0.8", "mix:0.8", "mix:0.6"],
    "picture_seeds": [1, 10, 100],
}


class Hues(ControlEncoder):
    """Embed the color in the middle of a picture and the color that a caption names; each model adds different
    noise.
    """

    def __init__(self, name: str) -> None:
        super().__init__("random")
        self.name, self.note = name, ""
        self.digest = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
        self._map = np.random.default_rng(zlib.crc32(name.encode())).normal(size=(4, self.dim))

    def preprocess(self, image: Image.Image) -> np.ndarray:
        width, height = image.size
        middle = image.crop((width // 4, height // 4, 3 * width // 4, 3 * height // 4))
        return np.append(np.asarray(middle, dtype=np.float64).mean(axis=(0, 1)) / 255 - 0.5, 0.2)

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        return self._unit(np.asarray(pixels, dtype=np.float64))

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Encode each caption as the index of its color and the CRC of its text."""
        colors = [color for color, *_ in CAPTIONS]
        rows = [
            [
                next(at for at, color in enumerate(colors) if color in text),
                zlib.crc32(text.encode()),
            ]
            for text in texts
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, 2)

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        seen = [
            np.append(np.array(ImageColor.getrgb(CAPTIONS[color][0])) / 255 - 0.5, 0.2)
            + 0.25 * np.random.default_rng([number, zlib.crc32(self.name.encode())]).normal(size=4)
            for color, number in tokens.tolist()
        ]
        return self._unit(np.array(seen))

    def _unit(self, colors: np.ndarray) -> np.ndarray:
        vectors = np.einsum("ni,id->nd", colors, self._map)
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def load(name: str) -> ControlEncoder:
    """Return the model in MODELS that has this name."""
    return Hues(name) if name.startswith("hue:") else ControlEncoder(name.partition(":")[2])


def make(folder: Path) -> Store:
    """Create a store in which all MODELS have searched among mixed pictures."""
    store = Store(folder / "cache")
    request = Request(MODELS, make_tiny(folder / "tiny"), "rococo", OPTIONS, examine=False)
    execute(request, store, models={name: load(name) for name in MODELS})
    return store
