"""A model with imported embeddings: embeddings:FILE, with options after plus signs.

    embeddings:FILE          vectors for pictures and texts; see `from_files.vectors` for the file formats
    embeddings:FOLDER        pictures.npy and texts.npy, next to the files from `vlprobe ask`
    +normalise               accept vectors of any length; without it, a length other than 1 is rejected
    +partial                 mark cases without a vector as unknown; without it, they are rejected
    +key=COLUMN +vector=COLUMN +pictures=ARRAY +texts=ARRAY +picture_ids=ARRAY +text_ids=ARRAY
                             names of columns and arrays
    +as=NAME                 the display name: up to 60 characters, without "+"

Pictures and texts are found by the keys in `scoring.inputs`. Rows without keys must be in the order in
which `vlprobe ask` writes the inputs. Each picture and each text has one embedding, wherever it occurs.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vlprobe.models.from_files import vectors as vector_file
from vlprobe.models.from_files.lookup import BoundLookup, CosineLookup
from vlprobe.scoring import pictures
from vlprobe.storage import files
from vlprobe.types import Capabilities

PREFIX = "embeddings"
NAMES = ("embeddings:FILE",)
OPTION = re.compile(
    r"(normalise|partial)|as=[^+]{1,60}|(key|vector|pictures|texts|picture_ids|text_ids)=(.+)"
)
EXPECTED = "normalise, partial, as=NAME, key=COLUMN, vector=COLUMN or texts=ARRAY"


def check_name(name: str) -> None:
    """Raise InvalidInput if the file does not exist, or an option is not valid."""
    vector_file.check(_parse_name(name)[0])


def named_capabilities(name: str) -> Capabilities | None:
    """Return the capabilities of imported embeddings if the name is a folder. For a single file, return None."""
    file = _parse_name(name)[0]
    if not file.is_dir():
        return None
    has_pictures = files.is_file(file / "pictures.npy")
    return Capabilities(looks_up=True, embeds_texts=True, embeds_images=has_pictures)


def load(name: str, device: str = "auto", precision: str = "fp32") -> "EmbeddingFile":
    """Load imported embeddings by name. The device and the precision are ignored. Raises InvalidInput."""
    file, words, mapping = _parse_name(name)
    sides, content_digest = vector_file.read(file, mapping, "normalise" in words)
    how = [content_digest, sorted(words), sorted(mapping.items())]
    digest = pictures.digest(f"embeddings version 1 {json.dumps(how)}".encode())
    return EmbeddingFile(name, file, sides, "partial" in words, digest)


def _parse_name(name: str) -> tuple[Path, frozenset[str], dict[str, str]]:
    text, words, mapping = files.split_options(name, OPTION, EXPECTED)
    return files.parse_path(text), words, mapping


class EmbeddingFile(CosineLookup, BoundLookup):
    """A model that looks up all embeddings in a file."""

    def __init__(
        self,
        name: str,
        file: Path,
        sides: Mapping[str, vector_file.Vectors],
        is_partial: bool,
        digest: str,
    ) -> None:
        rows = {
            side: (vectors.rows, len(vectors.array), vectors.missing)
            for side, vectors in sides.items()
        }
        super().__init__(name, file, rows, is_partial)
        self.digest, self._sides = digest, sides
        self.note = "embeddings from a file"

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the file, which embeds texts, and pictures if it has vectors for them."""
        dim = self._sides["texts"].array.shape[1]
        return Capabilities(
            looks_up=True,
            embeds_texts=True,
            embeds_images="pictures" in self._sides,
            dim=dim,
            image_dim=dim,
        )

    def facts(self) -> dict[str, str]:
        """Describe the contents of the file, as a dictionary from subject to text."""
        return {
            "architecture": "none: embeddings from a file",
            "parameters": "unknown",
            "embeddings": ", ".join(
                f"{len(vectors.array) - len(vectors.missing):,} {side} by "
                f"{'their place' if vectors.rows is None else 'name'}"
                for side, vectors in self._sides.items()
            ),
        }

    def vectors_of_rows(self, side: str, rows: np.ndarray) -> np.ndarray:
        """Return the unit vectors in the given rows, float32 with shape (n, dim)."""
        return self._sides[side].get(rows)
