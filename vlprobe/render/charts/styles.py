"""Which colour and mark a model has in every chart and table: the same whatever else is stored. No Streamlit here."""

import hashlib
import itertools
from collections.abc import Iterable, Mapping

from vlprobe.registry import is_control

# Okabe and Ito's colours, told apart by colour-blind people too, without those that vanish on white; and grey.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#B5679A", "#A67C00", "#3D9BD1")
GREY = "#7A7A7A"
SYMBOLS = (
    *("circle", "diamond", "square", "triangle-up", "star", "cross", "hexagon", "triangle-down"),
    *("pentagon", "triangle-left", "triangle-right"),
)
DASHES = ("solid", "dash", "dot", "dashdot")
Look = tuple[str, str]  # colour and symbol
Looks = Mapping[str, Look]  # of each model
SHIPPED: Looks = {  # models that many people have; no other model gets their looks
    "demo:softmax": (COLORS[1], "diamond"),
    "demo:sigmoid": (COLORS[0], "circle"),
    "demo:weak": (COLORS[2], "square"),
    "demo:plain": (COLORS[3], "triangle-up"),
    "demo:eqsim": (COLORS[4], "star"),
    "demo:scvc": (COLORS[5], "cross"),
    "openclip:ViT-B-32/openai": (COLORS[0], "hexagon"),
    "openclip:ViT-B-32/laion2b_s34b_b79k": (COLORS[1], "triangle-down"),
    "openclip:ViT-B-16-SigLIP/webli": (COLORS[2], "pentagon"),
    "openclip:ViT-L-14/datacomp_xl_s13b_b90k": (COLORS[3], "hexagon"),
    "control:random": (GREY, "hexagon"),
    "control:constant": (GREY, "square"),
}
# Neighbours differ in colour, so that of two models whose digests meet one moves to another colour.
PAIRS: tuple[Look, ...] = tuple(
    (color, symbol)
    for symbol, color in itertools.product(SYMBOLS, COLORS)
    if (color, symbol) not in SHIPPED.values()
)


def styles(models: Iterable[str] | Mapping[str, str]) -> Looks:
    """Colour and symbol of each model: those of the shipped table, else chosen by the hash of the model's digest.

    Where two hashes meet, the model that comes first keeps the look and the other takes the next that is free. So a
    model that is stored later changes no other's look. With more models than PAIRS, looks are shared. Controls are
    grey.

    Args:
        models: Names, the first stored first, with the digests of their weights; names alone stand for both.

    Returns:
        A look a model, ordered by name, controls last.
    """
    digests = models if isinstance(models, Mapping) else {model: model for model in models}
    looks: dict[str, Look] = {}
    for model, digest in digests.items():
        start = int.from_bytes(hashlib.sha256(digest.encode()).digest()[:8])
        if model in SHIPPED:
            looks[model] = SHIPPED[model]
        elif is_control(model):
            looks[model] = (
                GREY,
                SYMBOLS[1 + start % (len(SYMBOLS) - 1)],
            )  # not a circle, which published numbers are
        else:
            taken = set(looks.values())
            turned = [PAIRS[(start + step) % len(PAIRS)] for step in range(len(PAIRS))]
            looks[model] = next((pair for pair in turned if pair not in taken), turned[0])
    return dict(sorted(looks.items(), key=lambda pair: (is_control(pair[0]), pair[0])))


def dash(look: Look) -> str:
    """How a model's line is drawn: it goes with its symbol."""
    return DASHES[SYMBOLS.index(look[1]) % len(DASHES)]
