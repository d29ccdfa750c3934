"""The CLIP family of VISLA, table 7. The tags are those that its authors evaluate in SugarCrepe++."""

from vlprobe.models.presets import Preset, family

PREFIX = "visla"
PRESETS = {
    "rn50": Preset("openclip:RN50/openai", "RN50"),
    "rn101": Preset("openclip:RN101/openai", "RN101"),
    "clip-vit-b-32": Preset("openclip:ViT-B-32/openai", "CLIP-ViT-B/32"),
    "rn50x4": Preset("openclip:RN50x4/openai", "RN50x4"),
    "rn50x16": Preset("openclip:RN50x16/openai", "RN50x16"),
    "clip-vit-l-14": Preset("openclip:ViT-L-14/openai", "CLIP-ViT-L/14"),
    "rn50x64": Preset("openclip:RN50x64/openai", "RN50x64"),
    "roberta-vit-b-32": Preset("openclip:roberta-ViT-B-32/laion2b_s12b_b32k", "RoBERTa-ViT-B/32"),
    "vit-h-14": Preset("openclip:ViT-H-14/laion2b_s32b_b79k", "ViT-H/14"),
    "vit-g-14": Preset("openclip:ViT-g-14/laion2b_s12b_b42k", "ViT-g/14"),
    "vit-bigg-14": Preset("openclip:ViT-bigG-14/laion2b_s39b_b160k", "ViT-bigG/14"),
    "xlm-roberta-base-vit-b-32": Preset(
        "openclip:xlm-roberta-base-ViT-B-32/laion5b_s13b_b90k", "xlm-roberta-base-ViT-B/32"
    ),
    "xlm-roberta-large-vit-h-14": Preset(
        "openclip:xlm-roberta-large-ViT-H-14/frozen_laion5b_s13b_b90k", "xlm-roberta-large-ViT-H/14"
    ),
    "datacomp-l-vit-b-16": Preset("openclip:ViT-B-16/datacomp_l_s1b_b8k", "large:ViT-B/16"),
    "datacomp-xl-vit-l-14": Preset("openclip:ViT-L-14/datacomp_xl_s13b_b90k", "xlarge:ViT-L/14"),
}
names, load = family(PREFIX, PRESETS)
