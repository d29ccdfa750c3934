"""Control encoders without any knowledge, for which the correct value of each metric is known in advance.

`control:random` gives every picture and every text its own direction, so it scores at chance.
`control:constant` gives all of them the same direction, so every comparison is a tie. A tie counts as a failure;
a harness that breaks ties in favor of the first option would give this control full marks.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vlprobe.errors import NotFound
from vlprobe.types import Capabilities, DualEncoder

if TYPE_CHECKING:
    from PIL import Image

PREFIX = "control"
NOTES = {
    "random": "a control with random embeddings: expect chance",
    "constant": "a control with constant embeddings: all ties, which count as failures",
}
NAMES = tuple(f"{PREFIX}:{kind}" for kind in NOTES)


def check_name(name: str) -> None:
    """Raise NotFound if no control has this name."""
    if name.partition(":")[2] not in NOTES:
        raise NotFound("model", name, NAMES)


def load(name: str, device: str = "auto", precision: str = "fp32") -> "ControlEncoder":
    """Return a control by name. The device and the precision are ignored. Raises NotFound."""
    check_name(name)
    return ControlEncoder(name.partition(":")[2])


class ControlEncoder(DualEncoder):
    """A control model that can only tell whether two inputs are the same."""

    dim = 64

    def __init__(self, kind: str) -> None:
        self.name = f"{PREFIX}:{kind}"
        self.note = NOTES[kind]
        self.digest = hashlib.blake2b(f"{self.name} version 1".encode(), digest_size=16).hexdigest()
        self._kind = kind

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the control, which embeds texts and pictures."""
        return Capabilities(embeds_texts=True, embeds_images=True, dim=self.dim, image_dim=self.dim)

    def facts(self) -> dict[str, str]:
        """Describe the control, which has neither weights nor a real tokenizer."""
        return {
            **{"architecture": "none: a control", "tokenizer": "a hash of the text"},
            **{"parameters": "0", "context length": "unlimited", "padding": "none"},
        }

    def preprocess(self, image: "Image.Image") -> np.ndarray:
        """Hash the pixels of a picture to 16 bytes, uint8 with shape (16,)."""
        return _hash(b"image", str(image.size).encode() + image.tobytes())

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Convert picture hashes with shape (n, 16) to unit vectors with shape (n, 64)."""
        return self._vectors(pixels)

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Hash texts to int64 with shape (n, 16). Equal texts give equal rows."""
        hashes = [_hash(b"text", text.encode()) for text in texts]
        return np.array(hashes, dtype=np.int64).reshape(-1, 16)

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Convert text hashes with shape (n, 16) to unit vectors with shape (n, 64)."""
        return self._vectors(tokens.astype(np.uint8))

    def _vectors(self, hashes: np.ndarray) -> np.ndarray:
        if self._kind == "constant":
            vectors = np.ones((len(hashes), self.dim))
        else:
            # Use a hash and not a random generator, whose stream may differ between NumPy versions.
            bits = b"".join(hashlib.shake_128(row.tobytes()).digest(4 * self.dim) for row in hashes)
            vectors = np.frombuffer(bits, dtype="<u4").reshape(-1, self.dim) / 2**31 - 1
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _hash(kind: bytes, content: bytes) -> np.ndarray:
    digest = hashlib.blake2b(content, digest_size=16, person=kind).digest()
    return np.frombuffer(digest, dtype=np.uint8)
