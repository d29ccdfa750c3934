"""Models of a paper under short names: what a table calls them, and the weights that they are.

A preset is another name for `openclip:...` or `hf:...`: the model that is loaded, its results and its cached embeddings
go by that name, so that nothing is computed twice.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vlprobe import registry
from vlprobe.errors import NotFound
from vlprobe.types import Model


@dataclass(frozen=True, slots=True)
class Preset:
    """One model of a paper."""

    weights: str  # the name that loads it
    printed: str  # what the paper's tables call it


def family(prefix: str, presets: Mapping[str, Preset]) -> tuple[Callable[[], list[str]], Callable[..., Model]]:
    """The `names` and `load` of a module of models, for the presets of one paper."""

    def names() -> list[str]:
        """Every preset of the paper."""
        return [f"{prefix}:{short}" for short in presets]

    def load(name: str, device: str = "auto", precision: str = "fp32") -> Model:
        """The model that the preset stands for. Raises NotFound, and what its own family raises."""
        preset = presets.get(name.partition(":")[2])
        if preset is None:
            raise NotFound("model", name, names())
        model = registry.load_model(preset.weights, device, precision)
        note = f"{name}, printed as {preset.printed}"
        model.note = f"{model.note}; {note}" if model.note else note
        return model

    return names, load
