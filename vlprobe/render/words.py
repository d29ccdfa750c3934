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
    every = [
        kind for presentation in presentations().values() for kind in presentation.kinds.items()
    ]
    return frozenset(name for name, kind in every if kind.is_movement)


@functools.cache
def _value_labels() -> dict[str, str]:
    return {
        name: label
        for probe in presentations().values()
        for name, label in probe.value_labels.items()
    }


@functools.cache
def _value_order() -> tuple[str, ...]:
    return tuple(name for probe in presentations().values() for name in probe.value_order)


def value_label(name: str) -> str:
    """A stored name in words; one that is not known stays.

    >>> value_label("color"), value_label("mix:0.9"), value_label("danger:3"), value_label("flip:color")
    ('Colour', 'Mixed, 90 % stays', 'A danger word, 3 words', 'flip:color')
    """
    labels = _value_labels()
    if name in labels:
        return labels[name]
    edit, _, strength = name.partition(":")
    if edit in ("mix", "patch") and re.fullmatch(r"0?\.\d+(:seed\d+)?", strength):
        lam, _, seed = strength.partition(":seed")
        word = "Mixed" if edit == "mix" else "Patched"
        return f"{word}, {100 * float(lam):.0f} % stays{', draw ' + seed if seed else ''}"
    if edit == "delete" and strength in DELETED:
        return DELETED[strength]
    return f"{labels[edit]}, {strength} words" if edit in labels and strength.isdigit() else name


def slice_order(name: str) -> tuple[int, str, float]:
    """A sort key of slices: by their own order, then by name; edits of pictures from weak to
    strong.
    """
    ordered_names = _value_order()
    edit, _, strength = name.partition(":")
    number = float(strength) if strength.replace(".", "", 1).isdigit() else 0.0
    rank = ordered_names.index(edit) if edit in ordered_names else len(ordered_names)
    return rank, edit, -number if edit in ("mix", "patch") else number


def breakdown_label(probe: str, name: str) -> str:
    """What estimates are broken down by, in words."""
    if name == "subtype":
        return presentations()[probe].subtype_label
    return SLICED_BY.get(name) or f"Tag: {name.removeprefix('tag:')}"
