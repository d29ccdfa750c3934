"""Functions that load weights from a checkpoint, which must contain only plain tensors that fit the model exactly."""

import contextlib
import pickle
import struct
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from vlprobe.errors import InvalidInput, first_line
from vlprobe.models.modules import TorchModel
from vlprobe.storage.access import refuse_outside

if TYPE_CHECKING:
    import torch

# Errors that torch.load raised on 6,000 files with random bytes changed or cut off.
DAMAGED = (
    *(pickle.UnpicklingError, RuntimeError, EOFError, TypeError, ValueError),
    *(LookupError, AttributeError, AssertionError, struct.error),
)


def read_weights(path: Path, confined: bool = True) -> "dict[str, torch.Tensor]":
    """Load the tensors in a checkpoint, by name. Raises InvalidInput if it contains pickled objects other than tensors.

    Args:
        path: A .safetensors file, or a file that torch.load can read.
        confined: Whether the resolved path must be below the folders that the dashboard may read. False for published
            weights, which are in the hub cache.
    """
    import safetensors
    import safetensors.torch
    import torch

    if confined:
        refuse_outside(path)
    try:
        if path.suffix == ".safetensors":
            return safetensors.torch.load_file(path)
        with warnings.catch_warnings():
            # warnings about an unusual file are not needed, because the error below names the problem
            warnings.simplefilter("ignore")
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except (*DAMAGED, safetensors.SafetensorError) as error:
        raise InvalidInput(
            f"Checkpoint '{path}' cannot be read as plain tensors ({first_line(error)}). "
            "Expected a complete .safetensors file, or a .pt file that torch.load reads "
            "with weights_only=True; other files could run code and are rejected."
        ) from None
    state = loaded.get("state_dict", loaded) if isinstance(loaded, dict) else None
    if not (
        isinstance(state, dict)
        and state
        and all(
            isinstance(key, str) and isinstance(value, torch.Tensor) for key, value in state.items()
        )
    ):
        raise InvalidInput(
            f"Checkpoint '{path}' has no state dict. Expected named tensors at the top "
            "level or under 'state_dict'."
        )
    return state


@contextlib.contextmanager
def without_draws() -> Iterator[None]:
    """Skip the random initialization of tensors inside the block. Use it for a model whose weights are
    all loaded afterward.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    of_init = ("normal_", "uniform_", "trunc_normal_", "kaiming_uniform_", "xavier_uniform_")
    draws = {torch.Tensor.normal_, torch.Tensor.uniform_}
    draws |= {getattr(torch.nn.init, name) for name in of_init}

    class Undrawn(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None) -> object:
            keywords = kwargs or {}
            if function in draws:
                return args[0] if args else keywords["tensor"]
            return function(*args, **keywords)

    with Undrawn():
        yield


def load_weights(name: str, model: TorchModel, path: Path, confined: bool = True) -> None:
    """Load the weights in a file, with `read_weights`, into a model that OpenCLIP built.

    Raises InvalidInput if a tensor does not fit.
    """
    from open_clip.convert import convert_state_dict
    from open_clip.model import CustomTextCLIP, convert_to_custom_text_state_dict

    state = {
        key.removeprefix("module."): value for key, value in read_weights(path, confined).items()
    }
    # only reads the architecture, which either model class has
    state = convert_state_dict(cast(CustomTextCLIP, model), state)
    if not hasattr(model, "positional_embedding"):
        state = convert_to_custom_text_state_dict(state)
    expected = model.state_dict()
    # written by old versions of transformers
    state.pop("text.transformer.embeddings.position_ids", None)
    # these have shape () or (1,), and no effect on an embedding
    for key in ("logit_scale", "logit_bias"):
        if key in state and key in expected:
            state[key] = state[key].reshape(expected[key].shape)
    if "logit_bias" in expected:
        state.setdefault("logit_bias", expected["logit_bias"])
    fill(name, model, path, state)


def fill(name: str, model: TorchModel, path: Path, state: "Mapping[str, torch.Tensor]") -> None:
    """Load the tensors from a file into a model. Raises InvalidInput if they do not fit exactly."""
    expected = model.state_dict()
    missing = [key for key in expected if key not in state]
    unexpected = [key for key in state if key not in expected]
    # OpenCLIP would silently resize position embeddings of another size, which gives a different model.
    misshapen = [
        key for key in expected if key in state and state[key].shape != expected[key].shape
    ]
    problems = [
        f"{len(keys)} {kind} ({keys[0]})"
        for kind, keys in (("missing", missing), ("unexpected", unexpected))
        if keys
    ]
    if misshapen:
        shapes = f"{tuple(state[misshapen[0]].shape)} for {tuple(expected[misshapen[0]].shape)}"
        problems.append(f"{len(misshapen)} of another shape ({misshapen[0]}: {shapes})")
    if problems:
        raise InvalidInput(
            f"Checkpoint '{path}' does not fit '{name}': {', '.join(problems)} of {len(expected)} "
            "tensors. Expected the weights of that architecture; check the name before '@'."
        )
    model.load_state_dict(state)
