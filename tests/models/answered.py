"""Answers the files that `vlprobe ask` writes with a model of vlprobe, as an external tool would."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

from vlprobe import registry
from vlprobe.runs.ask import ask
from vlprobe.runs.request import Request
from vlprobe.storage.store import Store

MODEL = "control:random"


def questions(data: str, probe: str, folder: Path, store: Store, **options: object) -> dict:
    """Write the questions into the folder."""
    return ask(Request((), data, probe, options), folder, store)


def rows(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def vectors(folder: Path, name: str = MODEL) -> tuple[np.ndarray, np.ndarray]:
    """Return the embeddings of all pictures and texts in the question files, in order, computed from these files
    only.
    """
    model = registry.load_model(name)
    picture_files = [folder / row["file"] for row in rows(folder / "pictures.jsonl")]
    texts = [row["text"] for row in rows(folder / "texts.jsonl")]
    pixels = [model.preprocess(Image.open(file).convert("RGB")) for file in picture_files]
    images = (
        model.encode_images(np.stack(pixels)) if pixels else np.empty((0, model.capabilities.dim))
    )
    return images.astype(np.float32), model.encode_texts(model.tokenize(texts))
