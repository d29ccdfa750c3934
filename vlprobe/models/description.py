"""Inputs of the digest of a transformers checkpoint, other than the bytes of its weights."""

from collections.abc import Mapping, Sequence

from vlprobe.models.hub import ImageProcessor

# Said of a model, and of no effect on its numbers
NOT_OF_THE_MODEL = (
    "_name_or_path",
    "transformers_version",
    "torch_dtype",
    "dtype",
    "architectures",
)


def described(config: Mapping) -> dict:
    """Copy a config without entries that have no effect on numbers, at any depth."""
    return {
        key: described(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if key not in NOT_OF_THE_MODEL
    }


def description(
    config: Mapping, processor: ImageProcessor, tokens: Sequence[Sequence[int]], precision: str
) -> dict[str, object]:
    """Collect everything except the weights that can change a number, for `frozen.digest`.

    Args:
        config: The config in the folder of the model.
        processor: The image processor.
        tokens: Ids of `FINGERPRINT_TEXTS`, one row per text.
        precision: "fp32", "fp16" or "bf16".
    """
    return {
        "config": described(config),
        "preprocess": [type(processor).__name__, described(processor.to_dict())],
        "tokenizer": tokens,
        "precision": precision,
    }
