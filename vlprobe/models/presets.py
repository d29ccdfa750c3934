"""Presets: short names for the models in a paper, read from presets.toml.

A preset is an alias for `openclip:...` or `hf:...`. The loaded model, its results and its cached embeddings use the
full name, so nothing is computed twice.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vlprobe import registry
from vlprobe.errors import NotFound
from vlprobe.types import Model


@dataclass(frozen=True, slots=True)
class Preset:
    """One model in a paper."""

    weights: str  # the full name that loads it
    printed: str  # its name in the paper's tables


@dataclass(frozen=True, slots=True)
class PresetFamily:
    """A registry family for the models in one paper."""

    PREFIX: str
    presets: Mapping[str, Preset]  # by the text after the prefix and a colon

    @property
    def NAMES(self) -> Sequence[str]:
        """The names of all presets for the paper."""
        return [f"{self.PREFIX}:{short_name}" for short_name in self.presets]

    def check_name(self, name: str) -> None:
        """Raise NotFound if the paper has no such preset."""
        if name not in self.NAMES:
            raise NotFound("model", name, self.NAMES)

    def load(self, name: str, device: str = "auto", precision: str = "fp32") -> Model:
        """Load the model behind a preset. Raises NotFound, or an error from the family that loads the weights."""
        self.check_name(name)
        preset = self.presets[name.partition(":")[2]]
        model = registry.load_model(preset.weights, device, precision)
        note = f"{name}, printed as {preset.printed}"
        model.note = f"{model.note}; {note}" if model.note else note
        return model


_TABLES = tomllib.loads(Path(__file__).with_name("presets.toml").read_text(encoding="utf-8"))
FAMILIES = tuple(
    PresetFamily(prefix, {short_name: Preset(**preset) for short_name, preset in presets.items()})
    for prefix, presets in _TABLES.items()
)
