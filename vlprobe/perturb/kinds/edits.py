"""Kinds of edit by name, and a function that makes one edit of each kind for a caption."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from vlprobe.perturb.draws import draw
from vlprobe.perturb.grammar import Sentence
from vlprobe.perturb.kinds import attributes, negation, order, relation, surface
from vlprobe.perturb.rewriting import Change
from vlprobe.perturb.tokens import Reading
from vlprobe.types import Edit

_MAKERS: Mapping[str, Callable[[Sentence, Sequence[Reading]], list[Change]]] = MappingProxyType(
    {
        "negation": lambda sentence, _: negation.negations(sentence),
        "relation": lambda sentence, _: relation.relations(sentence),
        "attribute-swap": attributes.swaps,
        "word-order": lambda sentence, _: order.exchanges(sentence),
        "case": lambda sentence, _: surface.cases(sentence.reading),
        "punctuation": lambda sentence, _: surface.punctuations(sentence.reading),
        "typo": lambda sentence, _: surface.typos(sentence.reading),
    }
)
LIES = ("negation", "relation", "attribute-swap", "word-order")
REWORDINGS = ("case", "punctuation", "typo")
# Blind judges called each kind right at least 95 times in 100: tests/perturb/gold_kinds.jsonl
NAMES = (*LIES, *REWORDINGS)


def changes(name: str, sentence: Sentence, siblings: Sequence[Reading] = ()) -> list[Change]:
    """Return every edit of one kind that the rules can make to a caption.

    Args:
        name: Name of the kind, one of NAMES.
        sentence: The caption.
        siblings: All captions of the same image.
    """
    return _MAKERS[name](sentence, siblings)


def edits(
    readings: Sequence[Reading],
    item_id: str,
    index: int,
    names: Collection[str],
    seed: int,
    dropped: Counter[str],
) -> Iterator[tuple[str, Edit]]:
    """Yield the edited text and the edit of one caption, at most one per kind. If the rules for a kind allow several
    edits, one of them is drawn at random.

    Args:
        readings: All captions of the image.
        item_id: Id of the image.
        index: Index of the caption to edit.
        names: Names of the kinds to make; names that are not in NAMES are ignored.
        seed: Seed of the run.
        dropped: Counter for the kinds that have no edit for the caption.
    """
    names_in_order = [name for name in NAMES if name in names]
    if not names_in_order:
        return
    sentence = Sentence(readings[index])
    for name in names_in_order:
        pool = changes(name, sentence, readings)
        if not pool:
            dropped[f"{name}, no rule fits"] += 1
            continue
        change = pool[draw(seed, item_id, index, name) % len(pool)]
        kind = "flip" if name in LIES else "paraphrase"
        yield change.text, Edit(kind, name, change.rule, change.source, change.target)
