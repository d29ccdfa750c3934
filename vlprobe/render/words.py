"""Stored names in plain words; what is specific to one probe comes from its `presentation`."""

import functools
import re

from vlprobe import registry
from vlprobe.types.presentation import Presentation

# What stands beside intervals from resampling.
AGREED = "Where all pictures agree, as at 0 % or 100 %, the interval of a rate is the exact bound for so many pictures."
SLICED_BY = {"strength_bin": "Strength of the flip", "rule": "Rule"}
DELETED = {"random": "A random word taken out", "low": "The least telling word taken out"}
DELETED["high"] = "The most telling word taken out"


@functools.cache
def presentations() -> dict[str, Presentation]:
    """Of every probe, in the order of their positions."""
    every = {name: registry.load_probe(name).presentation for name in registry.names("probes")}
    return dict(sorted(every.items(), key=lambda entry: entry[1].position))


@functools.cache
def movement_kinds() -> frozenset[str]:
    """Kinds of cases whose margin is how far something moved: above 0 is impossible, and nobody is
    fooled.
    """
    every = [kind for presentation in presentations().values() for kind in presentation.kinds.items()]
    return frozenset(name for name, kind in every if kind.is_movement)


@functools.cache
def _value_labels() -> dict[str, str]:
    return {name: label for probe in presentations().values() for name, label in probe.value_labels.items()}


@functools.cache
def _value_order() -> tuple[str, ...]:
    return tuple(name for probe in presentations().values() for name in probe.value_order)


def named(name: str) -> str:
    """A stored name in words; one that is not known stays.

    >>> named("color"), named("mix:0.9"), named("danger:3"), named("flip:color")
    ('Colour', 'Mixed, 90 % stays', 'A danger word, 3 words', 'flip:color')
    """
    labels = _value_labels()
    if name in labels:
        return labels[name]
    first, _, second = name.partition(":")
    if first in ("mix", "patch") and re.fullmatch(r"0?\.\d+(:seed\d+)?", second):
        lam, _, seed = second.partition(":seed")
        word = "Mixed" if first == "mix" else "Patched"
        return f"{word}, {100 * float(lam):.0f} % stays{', draw ' + seed if seed else ''}"
    if first == "delete" and second in DELETED:
        return DELETED[second]
    return f"{labels[first]}, {second} words" if first in labels and second.isdigit() else name


def order(name: str) -> tuple[int, str, float]:
    """Sorts slices: what has an order comes in it, edits of pictures from weak to strong, the rest
    by name.
    """
    known = _value_order()
    first, _, strength = name.partition(":")
    share = float(strength) if strength.replace(".", "", 1).isdigit() else 0.0
    return (
        known.index(first) if first in known else len(known),
        first,
        -share if first in ("mix", "patch") else share,
    )


def by_words(probe: str, name: str) -> str:
    """What numbers can be taken apart by, in words."""
    if name == "subtype":
        return presentations()[probe].subtype_label
    return SLICED_BY.get(name) or f"Tag: {name.removeprefix('tag:')}"
