"""The nine models of LGIP, table 2."""

from vlprobe.models.presets import Preset, family

PREFIX = "lgip"
PRESETS = {
    "clip-vit-b-16": Preset("openclip:ViT-B-16/openai", "CLIP ViT-B/16 (OpenAI)"),
    "clip-vit-l-14": Preset("openclip:ViT-L-14/openai", "CLIP ViT-L/14 (OpenAI)"),
    "openclip-vit-l-14": Preset("openclip:ViT-L-14/laion2b_s32b_b82k", "OpenCLIP ViT-L/14 (LAION-2B)"),
    "openclip-vit-h-14": Preset("openclip:ViT-H-14/laion2b_s32b_b79k", "OpenCLIP ViT-H/14 (LAION-2B)"),
    "eva02-clip-l-14": Preset("openclip:EVA02-L-14/merged2b_s4b_b131k", "EVA02-CLIP L/14"),
    "siglip-base-224": Preset("hf:google/siglip-base-patch16-224", "SigLIP base-p16-224"),
    "siglip-base-384": Preset("hf:google/siglip-base-patch16-384", "SigLIP base-p16-384"),
    "siglip-large-384": Preset("hf:google/siglip-large-patch16-384", "SigLIP large-p16-384"),
    "siglip2-base-224": Preset("hf:google/siglip2-base-patch16-224", "SigLIP2 base-p16-224"),
}
names, load = family(PREFIX, PRESETS)
