"""The nouns of vlprobe and the interfaces between its packages; imports nothing of vlprobe but
`errors`.
"""

from vlprobe.types.nouns import (
    Case,
    Edit,
    Estimate,
    Item,
    Measure,
    Metric,
    Picture,
    PictureEdit,
    Role,
    Run,
    zero_margin,
)
from vlprobe.types.options import Option
from vlprobe.types.protocols import (
    Capabilities,
    Dataset,
    DualEncoder,
    Encoder,
    Model,
    PairScorer,
    Probe,
    Reader,
    SideBySideMatcher,
    TextEncoder,
    embeds_images,
    embeds_texts,
    matches_side_by_side,
    scores_pairs,
)

__all__ = [
    "Capabilities",
    "Case",
    "Dataset",
    "DualEncoder",
    "Edit",
    "Encoder",
    "Estimate",
    "Item",
    "Measure",
    "Metric",
    "Model",
    "Option",
    "PairScorer",
    "Picture",
    "PictureEdit",
    "Probe",
    "Reader",
    "Role",
    "Run",
    "SideBySideMatcher",
    "TextEncoder",
    "embeds_images",
    "embeds_texts",
    "matches_side_by_side",
    "scores_pairs",
    "zero_margin",
]
