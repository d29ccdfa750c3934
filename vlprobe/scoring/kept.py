"""Embeddings that runs kept, for pages: nothing is written, and no picture is embedded anew."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.scoring.gallery import similarity_matrix
from vlprobe.scoring.vectors import VectorStore
from vlprobe.storage import objects
from vlprobe.types import Model, Picture
from vlprobe.types.protocols import embeds_texts

MOST_BYTES = 1 << 30  # of one model's kept embeddings of pictures; all are read to be checked
MEMORY = 1 << 30  # bytes that a gallery's files and arrays may take


class NotKept(InvalidInput):
    """The embedding of a picture is not kept here."""


class KeptEncoder:
    """What a probe sees of an encoder, with the pictures' embeddings that are kept.

    Args:
        model: What embedded them; it embeds the texts.
        folder: Of all models' embeddings.

    Raises:
        NotKept: nothing is kept here, or so much that a page would wait for it.
    """

    def __init__(self, model: Model, folder: Path) -> None:
        self.model = model
        capabilities = model.capabilities
        self.dim, self.image_dim = capabilities.dim, capabilities.image_dim
        self.scores_pairs = capabilities.scores_pairs
        self.embeds_texts = capabilities.embeds_texts
        self.embeds_images = capabilities.embeds_images
        self.workers, self.memory = 2, MEMORY
        self.similarity = similarity_matrix
        self.progress: Callable[[str, int, int], None] = lambda stage, done, total: None
        images = folder / model.digest / "images"
        files = list(images.glob("*.npy")) if objects.remote_of(folder) is None else []
        if not files or sum(file.stat().st_size for file in files) > MOST_BYTES:
            raise NotKept(f"No embeddings of '{model.name}' are kept here. Run this again.")
        self._images = VectorStore(self.image_dim, images)
        self._digests: dict[Path, bytes] = {}

    def texts(self, texts: Sequence[str], keep: bool = False) -> np.ndarray:
        """Embeddings of the texts, float32 of shape (len(texts), dim); none is kept."""
        if not embeds_texts(self.model):
            raise NotKept(f"Model '{self.model.name}' embeds no texts.")
        return self.model.encode_texts(self.model.tokenize(list(texts)))

    def images(self, images: Sequence[Picture]) -> np.ndarray:
        """Kept embeddings, float32 of shape (len(images), image_dim). Raises NotKept."""
        paths = {image.path for image in images}
        paths |= {image.edit.partner for image in images if image.edit}
        unread = [path for path in paths if path not in self._digests]
        with ThreadPoolExecutor(self.workers) as pool:
            contents = pool.map(pictures.read_bytes, unread)
            digests = [pictures.content_digest(content) for content in contents]
        self._digests |= zip(unread, digests, strict=True)
        keys = [self._key(image) for image in images]
        if any(key not in self._images for key in keys):
            raise NotKept(f"Embeddings of '{self.model.name}' are not kept. Run this again.")
        return self._images.get(keys)

    def _key(self, image: Picture) -> bytes:
        paths = [image.path] if image.edit is None else [image.path, image.edit.partner]
        return pictures.key_of_digests(image, [self._digests[path] for path in paths])

    def prefetch(self, images: Sequence[Picture]) -> None:
        """Nothing: no picture is opened."""

    def pairs(
        self,
        images: Sequence[Picture],
        texts: Sequence[str],
        left: np.ndarray,
        right: np.ndarray,
        logits: bool = False,
    ) -> np.ndarray:
        """Raises NotKept: what a model says of pairs is not kept."""
        raise NotKept(f"Model '{self.model.name}' looks at pairs, which are not kept.")
