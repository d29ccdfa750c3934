"""Color, number and object words that must not be flipped: names, idioms, compounds, fruit."""

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


def bad_color(lower: list[str], at: int, source: str) -> str:
    """Return the reason why this color word must stay unchanged; empty if it is the color of something."""
    before = lower[at - 1] if at else ""
    after = lower[at + 1] if at + 1 < len(lower) else ""
    is_name = after in _AFTER_COLOR.get(source, ()) or "-" in (before, after)
    is_race = source in ("black", "white") and after in _PEOPLE
    shades = _BEFORE_COLOR.get(source, _BEFORE_COLOR["any"])
    if is_name or is_race or before in shades:
        return "an idiom or a name"
    if _is_black_and_white(lower, at):
        return "black and white pictures"
    if before == "the" and (source, after) == ("white", "house"):
        return "an idiom or a name"
    if before == "the" and not TAGS.get(after, 0) & NOUN and after not in ("and", "&"):
        return "a noun, not a color"
    if source == "orange" and not _is_orange_the_color(lower, at, before, after):
        return "perhaps the fruit"
    return ""


def _is_black_and_white(lower: list[str], at: int) -> bool:
    start = at if lower[at] == "black" else at - 2
    if (
        start < 0
        or start + 2 >= len(lower)
        or lower[start] != "black"
        or lower[start + 2] != "white"
    ):
        return False
    if lower[start + 1] not in ("and", "&", "n"):
        return False
    after = lower[start + 3] if start + 3 < len(lower) else ""
    before = lower[start - 1] if start else ""
    return after in _PHOTO or before in ("in", "this", "vintage") or not after.isalnum()


def _is_orange_the_color(lower: list[str], at: int, before: str, after: str) -> bool:
    if after in ("and", ",", "&") and at + 2 < len(lower) and lower[at + 2] in _COLORS:
        return True
    if before in ("and", "&") and at > 1 and lower[at - 2] in _COLORS:
        return True
    if after in _NOT_ORANGE or after not in TAGS:
        return after in ("tabby", "colored", "kitty", "cloth")
    return bool(TAGS[after] & NOUN) and not TAGS[after] & (ING | PREPOSITION | PARTICIPLE)


_UNITS = word_list("idioms.units")
_BEFORE_NUMBER = word_list("idioms.before-number")
_SHARED_OUT = words("both either neither respectively former latter twin twins duo trio")
_NOT_A_THING = word_list("idioms.not-a-thing")


_BEFORE_ONE = word_list("idioms.before-one") | {""}


def bad_number(lower: list[str], at: int) -> str:
    """Return the reason why this number must stay unchanged; empty if it counts what follows."""
    before = lower[at - 1] if at else ""
    after = lower[at + 1] if at + 1 < len(lower) else ""
    if lower[at] == "one":
        if after in _NOT_A_THING or not TAGS.get(after, 0) or before not in _BEFORE_ONE:
            return "perhaps a pronoun"
        return ""
    if (
        before in ("to", "by")
        and at > 1
        and (TAGS.get(lower[at - 2], 0) & NUMBER or lower[at - 2].isdigit())
    ):
        return "a measure or part of a name"
    if after in _UNITS or before in _BEFORE_NUMBER or before.isdigit() or after == "-":
        return "a measure or part of a name"
    if not after.isalpha():
        return "no thing counted"
    return "counted again later" if _is_shared_out(lower[at + 1 :]) else ""


def _is_shared_out(later: list[str]) -> bool:
    """Return whether the counted things are named one by one later: "one black and the other white"."""
    for index, word in enumerate(later):
        before = later[index - 1] if index else ""
        after = later[index + 1] if index + 1 < len(later) else ""
        names = after not in _NOT_A_THING and TAGS.get(after, 0) & (NOUN | ADJECTIVE)
        if word in _SHARED_OUT or (word == "one" and after != "another" and not names):
            return True
        if (
            word in ("other", "others")
            and before == "the"
            and not (after == "side" or TAGS.get(after, 0) & NOUN)
        ):
            return True
        if word == "each" and after != "other":
            return True
    return False


_MODIFIERS = word_list("idioms.modifiers")
_COMPOUND_BEFORE = word_list("idioms.compound-before")
_MAY_FOLLOW = word_list("idioms.may-follow")
_COMPOUND_AFTER = word_list("idioms.compound-after")
_ENDS_PHRASE = (
    PREPOSITION
    | CONJUNCTION
    | AUXILIARY
    | SUBORDINATOR
    | PRONOUN
    | ADVERB
    | DETERMINER
    | ING
    | PAST
    | PARTICIPLE
)
_OBJECTS = words("dog cat horse car bus train bird boat bicycle truck")


def same_class_only(lower: list[str], at: int) -> bool:
    """Return whether the word before names a kind of animal or vehicle: only another such fits."""
    return at > 0 and lower[at - 1] in _MODIFIERS


def fits(lower: list[str], at: int, word: str) -> bool:
    """Return whether the word fits after the one before: not "light black", nor "black people" (race)."""
    before = lower[at - 1] if at else ""
    if word in ("black", "white"):
        return before not in ("light", "dark", "pale", "bright", "deep")
    return word != "person" or before not in _COLORS


def bad_object(lower: list[str], at: int, source: str, plural: bool) -> str:
    """Return the reason why this noun must stay unchanged; empty if it is the thing itself."""
    before = lower[at - 1] if at else ""
    after = lower[at + 1] if at + 1 < len(lower) else ""
    if before == "to" and not plural:
        return "perhaps a verb"
    if before in _COMPOUND_BEFORE or before in _OBJECTS or after == "-" or before == "-":
        return "part of a compound"
    if source == "person" and any(
        word in ("who", "whose", "whom", "he", "she") for word in lower[at + 1 :]
    ):
        return "a pronoun refers to it"
    if not after or after in _MAY_FOLLOW or not after[0].isalnum():
        if after == "'s" and lower[at + 2 : at + 3] == ["eye"]:
            return "an idiom"
        return ""
    bits = TAGS.get(after, 0) or (ING if after.endswith(("ing", "ed")) else 0)
    if plural and bits & (BASE | _ENDS_PHRASE):
        return ""
    if after in _COMPOUND_AFTER or not bits & (_ENDS_PHRASE | PRESENT):
        return "part of a compound"
    return ""
