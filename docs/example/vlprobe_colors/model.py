"""A model that sees the average color of a picture and reads the names of colors: `colors`."""

import numpy as np

from vlprobe.types import Capabilities, DualEncoder

RGB = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1), "white": (1, 1, 1)}


class Colors(DualEncoder):
    name, digest = "colors", "colors version 1"  # with weights: of their bytes
    note = "an example that knows only colors"
    capabilities = Capabilities(embeds_texts=True, embeds_images=True, dim=3, image_dim=3)

    def preprocess(self, image):
        return np.asarray(image.resize((8, 8)), dtype=np.float32) / 255

    def encode_images(self, pixels):
        return _unit(pixels.mean(axis=(1, 2)) + 0.1)

    def tokenize(self, texts):
        return np.array([[text.count(name) for name in RGB] for text in texts], dtype=np.int64)

    def encode_texts(self, tokens):
        return _unit(tokens @ np.array(list(RGB.values())) + 0.1)


def _unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def load(name, device="auto", precision="fp32"):
    return Colors()
