"""What the dashboard says of each probe, and stored names in plain words."""

import re

# What the probe shows, and what up and down mean; for people who have not read the paper.
SENTENCES = {
    "lgip": "A model that understands captions is **steady**: its score hardly moves when a caption is only reworded. "
    "And it is **alert**: its score falls when a word is made wrong. Here is every model on both counts.",
    "rococo": "A model searches for the caption of a picture, or the picture of a caption, while captions with a wrong "
    "word or mixed pictures hide among the candidates. **Down is good**: it loses less of what it found before, and "
    "fewer false candidates come first.",
    "eqben": "Two pictures differ in one thing, and each caption is true of one of them only. A model has to tell "
    "which belongs to which, in both directions. **Up is good**: more pairs are told apart.",
    "visla": "Two captions say the same in other words; a third looks alike and is false. A model has to see which two "
    "belong together, by the texts alone or beside a picture. **Up is good**: more triplets are solved.",
    "prsm": "The same query is asked in several wordings, and a model ranks all pictures for each. **Up is good**: the "
    "same pictures come first, whatever the wording.",
}
# The two to four numbers that say most; rates that all go one way.
HEADLINES = {
    "rococo": ("i2t_drop_rate", "i2t_rsms", "t2i_drop_rate", "t2i_rsms"),
    "eqben": ("text_score", "image_score", "group_score", "foil_accuracy"),
    "visla": ("t2t_accuracy", "i2t_accuracy", "pair_accuracy"),
    "prsm": ("prsm_local_10", "prsm_local_100", "prsm_local_1000"),
}
# What stands beside intervals from resampling.
AGREED = "Where all pictures agree, as at 0 % or 100 %, the interval of a rate is the exact bound for so many pictures."
# Where the margin is how far something moved: above 0 is impossible, and nobody is fooled.
MOVED = ("paraphrase", "ranking")
BY = {"subtype": "Type of edit", "strength_bin": "Strength of the flip", "rule": "Rule"}
SUBTYPES = {"rococo": "What was altered", "eqben": "Subset", "visla": "Subset", "prsm": "Kind of rewording"}
WORDS = {
    "color": "Colour",
    "number": "Number",
    "object": "Object",
    "location": "Location",
    "swap": "Swap",
    "simple": "Simple",
    "advanced": "Advanced",
    "weak": "Weak",
    "medium": "Medium",
    "strong": "Strong",
    "rand-voca": "A random word",
    "same-concept": "A word of the same concept",
    "diff-concept": "A word of another concept",
    "danger": "A danger word",
    "released": "As released",
    "generic": "Generic",
    "spatial": "Spatial",
    "P1": "P1: any other wording",
    "P2": "P2: a prefix",
    "P3": "P3: synonyms",
}
DELETED = {"random": "A random word taken out", "low": "The least telling word taken out"}
DELETED["high"] = "The most telling word taken out"


def named(name: str) -> str:
    """A stored name in words; one that is not known stays.

    >>> named("color"), named("mix:0.9"), named("danger:3"), named("flip:color")
    ('Colour', 'Mixed, 90 % stays', 'A danger word, 3 words', 'flip:color')
    """
    if name in WORDS:
        return WORDS[name]
    first, _, second = name.partition(":")
    if first in ("mix", "patch") and re.fullmatch(r"0?\.\d+(:seed\d+)?", second):
        lam, _, seed = second.partition(":seed")
        word = "Mixed" if first == "mix" else "Patched"
        return f"{word}, {100 * float(lam):.0f} % stays{', draw ' + seed if seed else ''}"
    if first == "delete" and second in DELETED:
        return DELETED[second]
    return f"{WORDS[first]}, {second} words" if first in WORDS and second.isdigit() else name


def order(name: str) -> tuple[int, str, float]:
    """Sorts slices: what has an order comes in it, edits of pictures from weak to strong, the rest by name."""
    known = ("weak", "medium", "strong", "rand-voca", "same-concept", "diff-concept", "danger")
    first, _, strength = name.partition(":")
    share = float(strength) if strength.replace(".", "", 1).isdigit() else 0.0
    return known.index(first) if first in known else len(known), first, -share if first in ("mix", "patch") else share


def by_words(probe: str, name: str) -> str:
    """What numbers can be taken apart by, in words."""
    if name == "subtype":
        return SUBTYPES.get(probe, BY["subtype"])
    return BY.get(name) or f"Tag: {name.removeprefix('tag:')}"
