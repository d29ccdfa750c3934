"""Groups of models that are tied with each other, and letters as names for the groups.

Ties are not transitive: A may be tied with B, and B with C, although A is better than C. A group is therefore a clique:
all of its models are tied with each other, and a model can be in several groups.
"""

import string
from collections.abc import Collection, Sequence


def tie_groups(models: Sequence[str], tied: Collection[frozenset[str]]) -> list[tuple[str, ...]]:
    """Group models so that two models share a group if and only if they are tied.

    No group can be extended by another model. A model that is not tied with any other forms its own
    group.

    Args:
        models: All models, best first.
        tied: The pairs of models without a significant difference.

    Returns:
        The groups, each in the order of the models; groups with the best models come first.

    Source: Piepho 2004 (compact letter displays).

    >>> tie_groups("ABCD", {frozenset("AB"), frozenset("BC")})
    [('A', 'B'), ('B', 'C'), ('D',)]
    """
    groups: list[set[str]] = []
    for index, first in enumerate(models):
        others = [model for model in models[index + 1 :] if {first, model} in tied]
        for second in reversed(others):  # the widest group first, so that few groups are needed
            if any({first, second} <= group for group in groups):
                continue
            group = {first, second}
            for model in [*others, *models[:index]]:
                if all(model == member or {model, member} in tied for member in group):
                    group.add(model)
            groups.append(group)
        if not any(first in group for group in groups):
            groups.append({first})
    places = {model: place for place, model in enumerate(models)}
    in_order = [tuple(sorted(group, key=places.__getitem__)) for group in groups]
    return sorted(in_order, key=lambda group: [places[model] for model in group])


def group_letters(groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return the letters of each model's groups. Two models share a letter if and only if they share a group.

    >>> group_letters([("A", "B"), ("B", "C"), ("D",)])
    {'A': 'a', 'B': 'ab', 'C': 'b', 'D': 'c'}
    """
    letters: dict[str, list[str]] = {}
    names, separator = [*string.ascii_lowercase], ""
    if len(groups) > len(names):  # then they are numbers
        names, separator = [str(number) for number in range(1, len(groups) + 1)], " "
    for name, group in zip(names, groups, strict=False):
        for model in group:
            letters.setdefault(model, []).append(name)
    return {model: separator.join(names) for model, names in letters.items()}
