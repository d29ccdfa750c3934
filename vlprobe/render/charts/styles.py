"""The color and symbol for a model in every chart, card and table. They do not depend on other stored results."""

import hashlib
import itertools
import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from vlprobe.registry import is_control, natural_order

# Colors for a light page, each with its color for a dark page. Both have a contrast of at least
# 3.9 : 1 with their page. Color-blind readers can tell the six models apart by color and shape.
DARK = {
    "#0072b2": "#56b4e9",
    "#d55e00": "#ff8a3d",
    "#a6538a": "#e08fc4",
    "#2f3b4c": "#d0d6df",
    "#008060": "#3ccf9e",
    "#5b50b6": "#a79ff5",
    "#6b7585": "#97a1b0",
}
*COLORS, GREY = DARK
CONTROL_SYMBOL = "hexagon"  # used only for controls
SYMBOLS = (
    *("circle", "diamond", "square", "triangle-up", "star", "cross", "hexagon", "triangle-down"),
    *("pentagon", "triangle-left", "triangle-right"),
)
DASHES = ("solid", "dash", "dot", "dashdot")
DISTINCT = 9  # marks that a reader can tell apart in one figure


class Look(NamedTuple):
    """The color and symbol for a model. `color` is the color on a light page."""

    color: str
    symbol: str

    @property
    def dark(self) -> str:
        """The color to use on a dark page."""
        return DARK.get(self.color, self.color)

    @property
    def css(self) -> str:
        """The color as a CSS value for light and dark pages."""
        return f"light-dark({self.color}, {self.dark})"

    @property
    def shape(self) -> str:
        """The CSS that draws the symbol as an element without text."""
        box = f"display: inline-block; flex: none; width: {SIZE}px; height: {SIZE}px; vertical-align: -2px"
        return f"{box}; background: {self.css}; clip-path: path('{PATHS[self.symbol]}')"


Looks = Mapping[str, Look]  # by model
BLUE, ORANGE, PURPLE, INK, GREEN, VIOLET = COLORS
SHIPPED: Looks = {  # widely used models; no other model gets their looks
    "demo:softmax": Look(BLUE, "circle"),
    "demo:sigmoid": Look(ORANGE, "diamond"),
    "demo:weak": Look(PURPLE, "triangle-up"),
    "demo:plain": Look(INK, "star"),
    "demo:eqsim": Look(GREEN, "square"),
    "demo:scvc": Look(VIOLET, "cross"),
    "openclip:ViT-B-32/openai": Look(BLUE, "pentagon"),
    "openclip:ViT-B-32/laion2b_s34b_b79k": Look(ORANGE, "triangle-down"),
    "openclip:ViT-B-16-SigLIP/webli": Look(GREEN, "pentagon"),
    "openclip:ViT-L-14/datacomp_xl_s13b_b90k": Look(PURPLE, "diamond"),
    # With it, the five bundled models of SugarCrepe get five symbols
    "published:GPT-4V": Look(INK, "diamond"),
    "control:random": Look(GREY, CONTROL_SYMBOL),
    "control:constant": Look(GREY, "square"),
}
# Neighbors differ in color: if two digests collide, one model moves to another color.
PAIRS: tuple[Look, ...] = tuple(
    Look(color, symbol)
    for symbol, color in itertools.product(SYMBOLS, COLORS)
    if symbol != CONTROL_SYMBOL and (color, symbol) not in SHIPPED.values()
)
# By hash, three models of VALSE would be violet and three squares, and CLIP_TROHN-Text as purple as CLIP ViT-B/32. In
# grayscale, only two of VALSE are alike. They are not in SHIPPED, so that PAIRS stays as it is.
PINNED: Looks = {
    "published:CLIP_TROHN-Text": Look(BLUE, "triangle-right"),
    "published:BLIP ViT-L": Look(BLUE, "star"),
    "published:BLIP-2 ITM": Look(INK, "triangle-up"),
    "published:BLIP 129M": Look(ORANGE, "triangle-left"),
    "published:ClipCap CC": Look(VIOLET, "pentagon"),
    "published:ClipCap COCO": Look(INK, "cross"),
    "published:PEVL VRD": Look(GREEN, "diamond"),
}


def styles(models: Iterable[str] | Mapping[str, str]) -> Looks:
    """Assign a color and a symbol to each model, from the table SHIPPED or from a hash of the model's digest.

    If two hashes collide, the earlier model keeps its style and the later one takes the next free style. A model that
    is stored later therefore never changes the style of another. With more models than PAIRS, styles are shared.
    Controls are gray.

    Args:
        models: Model names, in the order in which they were stored, with the digests of their weights. A name without a
            digest is hashed itself.

    Returns:
        The style of each model, sorted by name, controls last.
    """
    digests = models if isinstance(models, Mapping) else {model: model for model in models}
    by_model: dict[str, Look] = {}
    pinned = {PINNED[model] for model in digests if model in PINNED}
    for model, digest in digests.items():
        start = int.from_bytes(hashlib.sha256(digest.encode()).digest()[:8])
        if model in SHIPPED or model in PINNED:
            by_model[model] = SHIPPED.get(model) or PINNED[model]
        elif is_control(model):  # not a circle, which marks published values
            by_model[model] = Look(GREY, SYMBOLS[1 + start % (len(SYMBOLS) - 1)])
        else:
            taken = pinned.union(by_model.values())
            turned = [PAIRS[(start + step) % len(PAIRS)] for step in range(len(PAIRS))]
            by_model[model] = next((pair for pair in turned if pair not in taken), turned[0])
    order = sorted(by_model, key=lambda model: (is_control(model), natural_order(model)))
    return {model: by_model[model] for model in order}


def emphasised(model_styles: Looks, models: Collection[str]) -> Looks:
    """Return the styles for a crowded figure: with more than DISTINCT models, only `models` keep their color."""
    if len(model_styles) <= DISTINCT:
        return model_styles
    return {
        model: style if model in models else Look(GREY, style.symbol)
        for model, style in model_styles.items()
    }


def dash(style: Look) -> str:
    """Return the line dash for a model, derived from its symbol."""
    return DASHES[SYMBOLS.index(style.symbol) % len(DASHES)]


SIZE = 14  # side of the square in which a shape is drawn


def _polygon(n_corners: int, *radii: float) -> str:
    """Return the SVG path for a polygon with a corner on top. Corners use the given radii in turn."""
    angles = [math.tau * corner / n_corners - math.pi / 2 for corner in range(n_corners)]
    points = [
        (SIZE / 2 + radius * math.cos(angle), SIZE / 2 + radius * math.sin(angle))
        for angle, radius in zip(angles, itertools.cycle(radii), strict=False)
    ]
    return "M" + " L".join(f"{x:.2f} {y:.2f}" for x, y in points) + " Z"


PATHS: Mapping[str, str] = {
    "circle": "M1.5 7 a5.5 5.5 0 1 0 11 0 a5.5 5.5 0 1 0 -11 0 Z",
    "diamond": _polygon(4, 6.9),
    "square": "M1.9 1.9 H12.1 V12.1 H1.9 Z",
    "triangle-up": "M7 1 L13.5 12.1 H0.5 Z",
    "triangle-down": "M7 13 L0.5 1.9 H13.5 Z",
    "triangle-left": "M1 7 L12.1 0.5 V13.5 Z",
    "triangle-right": "M13 7 L1.9 13.5 V0.5 Z",
    "star": _polygon(10, 6.9, 3.0),
    "cross": "M4.84 1 h4.32 v3.84 H13 v4.32 H9.16 V13 H4.84 V9.16 H1 V4.84 h3.84 Z",
    "hexagon": _polygon(6, 6.4),
    "pentagon": _polygon(5, 6.7),
}


def mark_values(look: Look) -> dict[str, str]:
    """Return a model's symbol as input for a web component: the SVG path, and the color in light and dark mode."""
    return {"path": PATHS[look.symbol], "color": look.css}
