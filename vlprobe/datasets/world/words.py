"""The words of the demo world and their forms."""

import re

from vlprobe.datasets.world.scene import COLORS, OBJECTS

NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}
SYNONYMS = {
    "dog": ("puppy",),
    "cat": ("kitten",),
    "horse": ("pony",),
    "car": ("automobile",),
    "bus": ("coach",),
    "train": ("locomotive",),
    "person": ("human",),
    "bird": (),
    "boat": ("ship", "sailboat"),
    "bicycle": ("bike",),
    "truck": ("lorry",),
}
PLACES = {
    "street": ("on a city street", "on the road", "along the road", "on the street", "in the city"),
    "room": ("in a room", "inside a house", "in the living room", "on a wooden floor", "indoors"),
    "meadow": ("in a meadow", "on the grass", "in a field", "on a lawn", "in a grassy field"),
    "beach": (
        "on the beach",
        "on the sand",
        "on a sandy shore",
        "at the seaside",
        "on a sandy beach",
    ),
    "sea": ("in the sea", "on the water", "out on the ocean", "at sea", "on the open sea"),
    "sky": (
        "in the sky",
        "among the clouds",
        "high in the sky",
        "up in the air",
        "in a cloudy sky",
    ),
}
SETTINGS = {
    "street": ("a city street", "a road", "a street in the city"),
    "room": ("a room", "a living room", "the inside of a house"),
    "meadow": ("a meadow", "a grassy field", "a lawn"),
    "beach": ("a beach", "a sandy beach", "a sandy shore"),
    "sea": ("the sea", "the ocean", "the open sea"),
    "sky": ("the sky", "a cloudy sky"),
}
RELATIONS = {
    "left": ("to the left of", "on the left side of", "on the left of", "left of"),
    "right": ("to the right of", "on the right side of", "on the right of", "right of"),
    "above": ("above", "over", "higher than"),
    "below": ("below", "under", "underneath", "beneath", "lower than"),
    "front": ("in front of",),
    "behind": ("behind",),
}
WITH = {  # "a dog with two cats ...": where the second is, as seen from the first
    "left": ("to {its} left", "on {its} left"),
    "right": ("to {its} right", "on {its} right"),
    "above": ("above {it}", "over {it}"),
    "below": ("below {it}", "underneath {it}"),
    "front": ("in front of {it}",),
    "behind": ("behind {it}",),
}
_FUNCTION_WORDS = """
    a an the that is are there and with where by of in on to it its them their this we you can see seen be single
    shown pictured picture photo image scene showing shows placed located parked wearing dressed next beside flanked
    partly hidden covered followed following side left right
"""
_PLURALS = {
    "person": "people",
    "puppy": "puppies",
    "pony": "ponies",
    "lorry": "lorries",
    "bus": "buses",
    "coach": "coaches",
}
_AIR = ("float", "hover")
_FOUR_WHEELS = ("car", "bus", "truck")


def doings(background: str, name: str, in_the_air: bool) -> tuple[tuple[str, str], ...]:
    """Return the actions of a thing: pairs of present plural and participle, such as (stand, standing)."""
    if in_the_air:
        verbs = _AIR
    elif background == "sky":
        verbs = (*_AIR, "fly")
    elif background == "sea":
        verbs = ("float", "drift")
    elif name == "cat":
        return (("sit", "sitting"), ("sit", "seated"), ("wait", "waiting"))
    else:
        verbs = ("rest" if name == "boat" else "stand", "wait")
    return tuple((verb, f"{verb}ing") for verb in verbs)


def parked(background: str, name: str) -> bool:
    """Return whether the thing may be said to be parked."""
    return background not in ("sea", "sky") and name in (*_FOUR_WHEELS, "bicycle")


def plural(noun: str) -> str:
    """More than one of it."""
    return _PLURALS.get(noun, f"{noun}s")


def be(count: int) -> str:
    """The verb to be: "is" for one, "are" for more."""
    return "is" if count == 1 else "are"


def agree(verb: str, count: int) -> str:
    """The present form: "stands" for one, "stand" for more."""
    if count > 1:
        return verb
    return "flies" if verb == "fly" else f"{verb}s"


def article(text: str) -> str:
    """The text with "a" made "an" before a vowel letter, enough for the demo world."""
    return re.sub(r"\ba (?=[aeiou])", "an ", text)


def vocabulary() -> frozenset[str]:
    """Every word of captions and templates of the demo world, in lower case."""
    names = [
        form
        for name, others in SYNONYMS.items()
        for noun in (name, *others)
        for form in (noun, plural(noun))
    ]
    verbs = [
        form
        for background in PLACES
        for name in OBJECTS
        for in_the_air in (False, True)
        for verb, doing in doings(background, name, in_the_air)
        for form in (verb, agree(verb, 1), doing)
    ]
    tables = [
        text
        for table in (PLACES, SETTINGS, RELATIONS, WITH)
        for texts in table.values()
        for text in texts
    ]
    everything = " ".join((*names, *verbs, *tables, *NUMBERS.values(), *COLORS, _FUNCTION_WORDS))
    return frozenset(re.findall(r"[a-z]+", everything))
