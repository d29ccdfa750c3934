"""The nouns of vlprobe and the interfaces between its packages; imports nothing of vlprobe but `errors`."""

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
    Dataset,
    DualEncoder,
    Encoder,
    PairScorer,
    Probe,
    Reader,
    TextEncoder,
)

__all__ = [
    "Case",
    "Dataset",
    "DualEncoder",
    "Edit",
    "Encoder",
    "Estimate",
    "Item",
    "Measure",
    "Metric",
    "Option",
    "PairScorer",
    "Picture",
    "PictureEdit",
    "Probe",
    "Reader",
    "Role",
    "Run",
    "TextEncoder",
    "zero_margin",
]
