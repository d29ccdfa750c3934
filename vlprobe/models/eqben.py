"""The CLIPs of EqBen, table 3."""

from vlprobe.models.presets import Preset, family

PREFIX = "eqben"
PRESETS = {
    "clip-rn50": Preset("openclip:RN50/openai", "CLIP (RN-50)"),
    "clip-vit-b-32": Preset("openclip:ViT-B-32/openai", "CLIP (ViT-B/32)"),
}
names, load = family(PREFIX, PRESETS)
