"""Rules for color, number and object words that must not be flipped, because they are part of a name, idiom or
compound, or name a fruit.
"""

from vlprobe.perturb.flips import VOCABULARY
from vlprobe.perturb.lexicon import (
    ADJECTIVE,
    ADVERB,
    AUXILIARY,
    BASE,
    CONJUNCTION,
    DETERMINER,
    ING,
    NOUN,
    NUMBER,
    PARTICIPLE,
    PAST,
    PREPOSITION,
    PRESENT,
    PRONOUN,
    SUBORDINATOR,
    TAGS,
)
from vlprobe.perturb.tokens import word_list, word_table, words

_COLORS = frozenset((*VOCABULARY["color"], "grey"))
_PEOPLE = word_list("idioms.people")
_PHOTO = word_list("idioms.photo")
_AFTER_COLOR = word_table("idioms.after")  # a word that makes a name or an idiom of the color
_BEFORE_COLOR = word_table("idioms.before")  # a word that makes the name of a shade of it
_NOT_ORANGE = word_list("idioms.not-orange")


def bad_color(lower: list[str], i: int, source: str) -> str:
    """Return the reason why a color word must not be changed; empty if it is the color of a thing."""
    previous = lower[i - 1] if i else ""
    following = lower[i + 1] if i + 1 < len(lower) else ""
    is_name = following in _AFTER_COLOR.get(source, ()) or "-" in (previous, following)
    is_race = source in ("black", "white") and following in _PEOPLE
    shades = _BEFORE_COLOR.get(source, _BEFORE_COLOR["any"])
    if is_name or is_race or previous in shades:
        return "an idiom or a name"
    if _is_black_and_white(lower, i):
        return "black and white pictures"
    if previous == "the" and (source, following) == ("white", "house"):
        return "an idiom or a name"
    if previous == "the" and not TAGS.get(following, 0) & NOUN and following not in ("and", "&"):
        return "a noun, not a color"
    if source == "orange" and not _is_orange_the_color(lower, i, previous, following):
        return "perhaps the fruit"
    return ""


def _is_black_and_white(lower: list[str], i: int) -> bool:
    start = i if lower[i] == "black" else i - 2
    if (
        start < 0
        or start + 2 >= len(lower)
        or lower[start] != "black"
        or lower[start + 2] != "white"
    ):
        return False
    if lower[start + 1] not in ("and", "&", "n"):
        return False
    following = lower[start + 3] if start + 3 < len(lower) else ""
    previous = lower[start - 1] if start else ""
    return following in _PHOTO or previous in ("in", "this", "vintage") or not following.isalnum()


def _is_orange_the_color(lower: list[str], i: int, previous: str, following: str) -> bool:
    if following in ("and", ",", "&") and i + 2 < len(lower) and lower[i + 2] in _COLORS:
        return True
    if previous in ("and", "&") and i > 1 and lower[i - 2] in _COLORS:
        return True
    if following in _NOT_ORANGE or following not in TAGS:
        return following in ("tabby", "colored", "kitty", "cloth")
    return bool(TAGS[following] & NOUN) and not TAGS[following] & (ING | PREPOSITION | PARTICIPLE)


_UNITS = word_list("idioms.units")
_BEFORE_NUMBER = word_list("idioms.before-number")
_SHARED_OUT = words("both either neither respectively former latter twin twins duo trio")
_NOT_A_THING = word_list("idioms.not-a-thing")


_BEFORE_ONE = word_list("idioms.before-one") | {""}


def bad_number(lower: list[str], i: int) -> str:
    """Return the reason why a number must not be changed; empty if it counts the things that follow."""
    previous = lower[i - 1] if i else ""
    following = lower[i + 1] if i + 1 < len(lower) else ""
    if lower[i] == "one":
        if following in _NOT_A_THING or not TAGS.get(following, 0) or previous not in _BEFORE_ONE:
            return "perhaps a pronoun"
        return ""
    if (
        previous in ("to", "by")
        and i > 1
        and (TAGS.get(lower[i - 2], 0) & NUMBER or lower[i - 2].isdigit())
    ):
        return "a measure or part of a name"
    if following in _UNITS or previous in _BEFORE_NUMBER or previous.isdigit() or following == "-":
        return "a measure or part of a name"
    if not following.isalpha():
        return "no thing counted"
    return "counted again later" if _is_shared_out(lower[i + 1 :]) else ""


def _is_shared_out(later: list[str]) -> bool:
    """Return whether the counted things are described one by one later, as in "one black and the other white"."""
    for index, word in enumerate(later):
        previous = later[index - 1] if index else ""
        following = later[index + 1] if index + 1 < len(later) else ""
        names = following not in _NOT_A_THING and TAGS.get(following, 0) & (NOUN | ADJECTIVE)
        if word in _SHARED_OUT or (word == "one" and following != "another" and not names):
            return True
        if (
            word in ("other", "others")
            and previous == "the"
            and not (following == "side" or TAGS.get(following, 0) & NOUN)
        ):
            return True
        if word == "each" and following != "other":
            return True
    return False


_MODIFIERS = word_list("idioms.modifiers")
_COMPOUND_BEFORE = word_list("idioms.compound-before")
_MAY_FOLLOW = word_list("idioms.may-follow")
_COMPOUND_AFTER = word_list("idioms.compound-after")
_ENDS_PHRASE = PREPOSITION | CONJUNCTION | AUXILIARY | SUBORDINATOR | PRONOUN | ADVERB
_ENDS_PHRASE |= DETERMINER | ING | PAST | PARTICIPLE
_OBJECTS = words("dog cat horse car bus train bird boat bicycle truck")


def same_class_only(lower: list[str], i: int) -> bool:
    """Return whether the word before a noun, such as "passenger" or "stray", only suits nouns of the same class."""
    return i > 0 and lower[i - 1] in _MODIFIERS


def fits(lower: list[str], i: int, word: str) -> bool:
    """Return whether a new word fits after the previous one. "Light black" and "black person" (a race) do not."""
    previous = lower[i - 1] if i else ""
    if word in ("black", "white"):
        return previous not in ("light", "dark", "pale", "bright", "deep")
    return word != "person" or previous not in _COLORS


def bad_object(lower: list[str], i: int, source: str, plural: bool) -> str:
    """Return the reason why a noun must not be changed; empty if it names the thing itself."""
    previous = lower[i - 1] if i else ""
    following = lower[i + 1] if i + 1 < len(lower) else ""
    if previous == "to" and not plural:
        return "perhaps a verb"
    if previous in _COMPOUND_BEFORE or previous in _OBJECTS or following == "-" or previous == "-":
        return "part of a compound"
    if source == "person" and any(
        word in ("who", "whose", "whom", "he", "she") for word in lower[i + 1 :]
    ):
        return "a pronoun refers to it"
    if not following or following in _MAY_FOLLOW or not following[0].isalnum():
        if following == "'s" and lower[i + 2 : i + 3] == ["eye"]:
            return "an idiom"
        return ""
    bits = TAGS.get(following, 0) or (ING if following.endswith(("ing", "ed")) else 0)
    if plural and bits & (BASE | _ENDS_PHRASE):
        return ""
    if following in _COMPOUND_AFTER or not bits & (_ENDS_PHRASE | PRESENT):
        return "part of a compound"
    return ""
