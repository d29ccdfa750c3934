"""The tiny CLIP model for the demo scenes, with functions that save it and load it as an OpenCLIP model.

The captions use fewer than 200 of the tokenizer's 49,408 tokens. A file, like a model in training, holds only the rows
for these tokens. A loaded model has the full token table, with zeros for tokens that were not learned, so a word with
such a token only contributes its position.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from vlprobe.models.modules import OpenClipModel, TorchModel
from vlprobe.storage.files import write_bytes

FOLDER = Path(__file__).parent
CONTEXT = 32  # tokens; the longest caption in a template has 28
IMAGE_SIZE = 64  # pixels a side
_ROWS = "token_embedding.weight"


@functools.cache  # takes as long to build as the rest of a demo model
def tokenizer() -> Callable:
    """Return OpenCLIP's byte-pair tokenizer with the context length of the demo models."""
    from open_clip.tokenizer import SimpleTokenizer

    return SimpleTokenizer(context_length=CONTEXT)


def build(model_config: dict) -> OpenClipModel:
    """Build a model from a config, on the CPU. The random weights depend only on the state of PyTorch's
    generator.
    """
    from open_clip.model import CLIP, set_model_preprocess_cfg
    from open_clip.transform import PreprocessCfg

    model = CLIP(**model_config)
    set_model_preprocess_cfg(model, dataclasses.asdict(PreprocessCfg(size=IMAGE_SIZE)))
    return cast(OpenClipModel, model)


def save_whole(path: Path, model: TorchModel, model_config: dict, training: dict) -> None:
    """Save a model that has the full token table. Only rows that are not all zero are written, in half precision."""
    state = model.state_dict()
    ids = state[_ROWS].any(dim=1).nonzero()[:, 0].tolist()
    write_checkpoint(path, state | {_ROWS: state[_ROWS][ids]}, ids, model_config, training)


def write_checkpoint(
    path: Path, state: dict, ids: Sequence[int], model_config: dict, training: dict
) -> None:
    """Save a model in half precision. `state` has only the token table rows for the tokens in `ids`."""
    import torch
    from safetensors.torch import save as packed

    state = {
        key: value.half() if value.is_floating_point() else value for key, value in state.items()
    }
    state["token_ids"] = torch.tensor(ids, dtype=torch.int32)
    described = {"config": json.dumps(model_config), "training": json.dumps(training)}
    write_bytes(
        path,
        packed({key: value.contiguous().cpu() for key, value in state.items()}, metadata=described),
    )


def config_of(path: Path) -> dict:
    """Return OpenCLIP's model config from a file that `write_checkpoint` wrote."""
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        return json.loads(file.metadata()["config"])


def read(path: Path) -> tuple[dict, dict]:
    """Return OpenCLIP's model config and the full state dict, in single precision, from a file that
    `write_checkpoint` wrote.
    """
    from safetensors.torch import load_file

    model_config, state = config_of(path), load_file(path)
    ids = state.pop("token_ids").long()
    state = {
        key: value.float() if value.is_floating_point() else value for key, value in state.items()
    }
    rows = state[_ROWS]
    state[_ROWS] = rows.new_zeros(model_config["text_cfg"]["vocab_size"], rows.shape[1])
    state[_ROWS][ids] = rows
    return model_config, state


def load_checkpoint(path: Path) -> tuple[OpenClipModel, Callable, Callable]:
    """Return the model (frozen, on the CPU), the transform from PIL image to tensor, and the tokenizer."""
    import torch
    from open_clip.transform import PreprocessCfg, image_transform_v2

    model_config, state = read(path)
    with torch.random.fork_rng(devices=[]):
        model = build(model_config)
    model.load_state_dict(state)
    # the same preprocessing as in `build`
    transform = cast(Callable, image_transform_v2(PreprocessCfg(size=IMAGE_SIZE), is_train=False))
    return model.eval().requires_grad_(False), transform, tokenizer()
