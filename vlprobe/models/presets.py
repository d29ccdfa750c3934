"""Models of a paper under short names, read from presets.toml: what a table calls them, and the
weights that they are.

A preset is another name for `openclip:...` or `hf:...`: the model that is loaded, its results and
its cached embeddings go by that name, so that nothing is computed twice.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vlprobe import registry
from vlprobe.errors import NotFound
from vlprobe.types import Model


@dataclass(frozen=True, slots=True)
class Preset:
    """One model of a paper."""

    weights: str  # the name that loads it
    printed: str  # what the paper's tables call it


@dataclass(frozen=True, slots=True)
class PresetFamily:
    """The models of one paper: a family of the registry."""

    PREFIX: str
    presets: Mapping[str, Preset]  # by what stands after the prefix and a colon

    def names(self) -> list[str]:
        """Every preset of the paper."""
        return [f"{self.PREFIX}:{short_name}" for short_name in self.presets]

    def check_name(self, name: str) -> None:
        """Raises NotFound where the paper has no such preset."""
        if name not in self.names():
            raise NotFound("model", name, self.names())

    def load(self, name: str, device: str = "auto", precision: str = "fp32") -> Model:
        """The model that the preset stands for. Raises NotFound, and what the family of its weights
        raises.
        """
        self.check_name(name)
        preset = self.presets[name.partition(":")[2]]
        model = registry.load_model(preset.weights, device, precision)
        note = f"{name}, printed as {preset.printed}"
        model.note = f"{model.note}; {note}" if model.note else note
        return model


def _read(path: Path) -> tuple[PresetFamily, ...]:
    """The families of a file of presets, one a table."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(
        PresetFamily(
            prefix,
            {short_name: Preset(**preset) for short_name, preset in presets.items()},
        )
        for prefix, presets in tables.items()
    )


FAMILIES = _read(Path(__file__).with_name("presets.toml"))
