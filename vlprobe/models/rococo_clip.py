"""The CLIPs of RoCOCO, table 3. `rococo` alone is the prefix of its released captions."""

from vlprobe.models.presets import Preset, family

PREFIX = "rococo-clip"
PRESETS = {
    "vit-b-32": Preset("openclip:ViT-B-32/openai", "CLIP ViT-B/32 (zero-shot)"),
    "vit-b-16": Preset("openclip:ViT-B-16/openai", "CLIP ViT-B/16 (zero-shot)"),
    "vit-l-14": Preset("openclip:ViT-L-14/openai", "CLIP ViT-L/14 (zero-shot)"),
}
names, load = family(PREFIX, PRESETS)
