"""Compound nouns such as "tennis match". A compound is exchanged or deleted as a whole, or left unchanged.

If "oven" replaced only the head in "tennis match", the result would be "tennis oven"; if it replaced only the
modifier, "oven match". So a noun is extended to the left to include its modifiers ("a dining area" is one noun, with
the number and the groups of its head), and a modifier whose head is not in concepts.txt ("ski gear") stays unchanged.

Adjectives, colors and numbers are not modifiers in this sense: "a black dog" becomes "a black oven".
"""

from collections.abc import Sequence

from vlprobe.perturb import lexicon
from vlprobe.perturb.concepts import Noun, named
from vlprobe.perturb.tokens import TOKEN, word_list, words

# Modifiers that lexicon.txt does not know, or knows as something else.
_MODIFIERS = word_list("compounds.modifiers")
_ALWAYS = words("dining living parking swimming fishing vending")
_WITH_ARTICLE = word_list("compounds.with-article")
# Groups of nouns that are often the subject of a verb.
_MOVING = frozenset(["people", "animals", "birds", "vehicles"])
_ADJECTIVES = word_list("compounds.adjectives")
_NO_NOUN = (
    lexicon.ADVERB
    | lexicon.PREPOSITION
    | lexicon.DETERMINER
    | lexicon.PRONOUN
    | lexicon.AUXILIARY
    | lexicon.SUBORDINATOR
    | lexicon.CONJUNCTION
    | lexicon.NUMBER
)
_OPENS = lexicon.DETERMINER | lexicon.NUMBER | lexicon.ADJECTIVE | lexicon.PREPOSITION
_NOT_A_HEAD = ("ing", "ed", "ly", "ble", "en")  # endings of words after a noun, not nouns


def extend_nouns(caption: str, nouns: Sequence[Noun]) -> list[Noun]:
    """Find the nouns in a caption that can be exchanged, and extend each of them to include its modifiers.

    Args:
        caption: The text of the caption.
        nouns: The nouns that `concepts.find` returns for the caption.

    Returns:
        The nouns from left to right, without overlap. Colors, numbers, directions and modifiers of unknown
        heads are left out.

    >>> from vlprobe.perturb.concepts import find
    >>> text = "A tennis player eats in the dining area near some ski gear"
    >>> [text[noun.start : noun.end] for noun in extend_nouns(text, find(text))]
    ['tennis player', 'dining area']
    """
    tokens = list(TOKEN.finditer(caption))
    index_by_start = {token.start(): index for index, token in enumerate(tokens)}
    lower = [token.group().lower() for token in tokens]
    index_by_end = {token.end(): index for index, token in enumerate(tokens)}
    noun_by_end = {index_by_end[noun.end]: noun for noun in nouns}
    widened: list[Noun] = []
    for end_index, noun in sorted(noun_by_end.items()):
        if noun.form == "quality":
            continue
        start = index_by_start[noun.start]
        while start and _modifier(lower, start - 1, noun_by_end):
            start -= 1
            if start in noun_by_end:
                start = index_by_start[noun_by_end[start].start]
        if not _modifies(lower, end_index + 1, noun):
            widened = [earlier for earlier in widened if earlier.start < tokens[start].start()]
            widened.append(noun._replace(start=tokens[start].start()))
    return widened


def _modifier(lower: Sequence[str], index: int, noun_by_end: dict[int, Noun]) -> bool:
    """Return whether the token at an index modifies the noun that follows it."""
    word = lower[index]
    previous = lower[index - 1] if index else ""
    if index in noun_by_end and noun_by_end[index].form != "quality":
        return noun_by_end[index].form in ("singular", "mass") or word in _MODIFIERS
    if word == "top" and index - 1 in noun_by_end:  # "a stove top oven"
        return noun_by_end[index - 1].form in ("singular", "mass")
    opened = not index or bool(_tag(previous) & _OPENS and previous != "to")
    if word in _MODIFIERS or word in _ALWAYS or (word in _WITH_ARTICLE and index and opened):
        return True
    tag = _tag(word)
    if not tag & (lexicon.SINGULAR | lexicon.MASS) or tag & (
        _NO_NOUN | lexicon.ING | lexicon.ADJECTIVE
    ):
        return False
    if tag & lexicon.VERB:  # "a park bench" and "a metal park bench", and not "people ride horses"
        earlier = _tag(previous)
        is_subject = earlier & (lexicon.PLURAL | lexicon.PRONOUN) or tag & lexicon.PRESENT
        follows_verb = bool(earlier & lexicon.VERB and not earlier & lexicon.NOUN)
        return opened or follows_verb or not is_subject
    return True


def _modifies(lower: Sequence[str], following: int, noun: Noun) -> bool:
    """Return whether a noun modifies the next word, and concepts.txt lacks that word or has another sense of it."""
    if following == len(lower):
        return False
    word, tag = lower[following], _tag(lower[following])
    is_singular = noun.form in ("singular", "mass")
    can_move = bool(noun.groups & _MOVING)
    if not tag:
        return is_singular and not can_move and word.isalpha() and not word.endswith(_NOT_A_HEAD)
    if word == "top":  # "a stove top"
        return is_singular and not can_move
    if not tag & lexicon.NOUN or tag & (_NO_NOUN | lexicon.PAST | lexicon.PARTICIPLE):
        return False
    if not tag & lexicon.VERB:
        return is_singular
    # "a tennis match", and not "giraffes stand"
    if tag & lexicon.BASE and not tag & (lexicon.PRESENT | lexicon.ING):
        return is_singular
    return is_singular and not can_move  # "a brick building", and not "a man building"


def _tag(word: str) -> int:
    """Return the parts of speech that lexicon.txt and concepts.txt give for a word."""
    tag = lexicon.TAGS.get(word, 0)
    if tag & lexicon.NOUN and word not in _ADJECTIVES:
        # Lexicon.txt calls a noun an adjective where it often modifies another.
        tag &= ~lexicon.ADJECTIVE
    elif word in _ADJECTIVES:
        return lexicon.ADJECTIVE
    for concept in named(word):
        if concept.kind == "quality":
            tag |= lexicon.ADJECTIVE
        elif concept.kind == "mass":
            tag |= lexicon.MASS
        elif concept.kind == "plural" or word != concept.lemma:
            tag |= lexicon.PLURAL
        else:
            tag |= lexicon.SINGULAR
    return tag
