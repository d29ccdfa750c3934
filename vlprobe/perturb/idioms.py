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
from vlprobe.perturb.tokens import words

_COLORS = frozenset((*VOCABULARY["color"], "grey"))
_PEOPLE = words(
    "man men woman women people person boy boys girl girls lady ladies guy guys male males female "
    "females child children kid kids couple family folks gentleman baby babies americans american"
)
_PHOTO = words(
    "photo photos photograph photographs picture pictures image images shot shots snapshot film "
    "movie drawing print portrait photography scene view footage version toned sketch painting "
    "close closeup close-up of"
)
_COLOR_IDIOMS = {  # color -> words after it that make it a name
    "red": words(
        "sox wine onion onions pepper peppers cross bull meat carpet head haired hair panda velvet "
        "snapper hot lobster tape potatoes cabbage beans deer fox robin eye eyes herring lion tail "
        "tailed"
    ),
    "blue": words("jay jays cheese ray moon berries heron collar tooth print angels bell whale"),
    "green": words(
        "bean beans pepper peppers onion onions tea house giant peas olive olives day screen thumb "
        "tomatoes tomato bay chile chili chilies party energy curry lantern"
    ),
    "yellow": words(
        "squash pages lab labrador pepper peppers onion onions mustard cab cabs taxi taxis",
    ),
    "black": _PEOPLE
    | words(
        "bear bears coffee pepper beans bean olive olives eye out lab labrador ice friday angus "
        "market berries board hole widow"
    ),
    "white": _PEOPLE
    | words(
        "wine water waters caps capped rice sauce chocolate noise collar board out tailed meat "
        "pepper gravy cheddar onion wash bread rhino capping"
    ),
    "brown": words("bear bears sugar rice bread gravy haired hair eyed"),
    "gray": words("hound matter scale area wolf squirrel whale haired hair"),
    "orange": frozenset(),
    "pink": words("floyd panther"),
    "purple": words("onion onions heart cabbage"),
}
_SHADES = {  # a word before that makes a shade's name of it
    **dict.fromkeys(
        VOCABULARY["color"],
        words("golden burnt hot greenish bluish reddish creamy electric"),
    ),
    "blue": words("navy sky baby royal bluish electric powder midnight"),
    "green": words("lime olive forest hunter pea emerald army putting mint bluish kelly"),
    "white": words("off snow pearl milk golden creamy egg bone lily"),
    "black": words("jet charcoal"),
    "yellow": words("lemon mustard canary golden"),
    "red": words("cherry blood rust brick burnt fiery"),
    "pink": words("hot baby salmon"),
    "gray": words("ash slate charcoal"),
}
_NOT_ORANGE = words(
    "juice slice slices peel peels tree trees wedge wedges segment segments half halves soda "
    "marmalade chicken section sections rind zest grove groves drink fruit fruits pieces piece "
    "sauce flavored liquid beverage smoothie"
)


def bad_color(lower: list[str], at: int, source: str) -> str:
    """Return the reason why this color word must stay unchanged; empty if it is the color of something."""
    before = lower[at - 1] if at else ""
    after = lower[at + 1] if at + 1 < len(lower) else ""
    if after in _COLOR_IDIOMS[source] or before in _SHADES[source] or after == "-" or before == "-":
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


_UNITS = words(
    "way ways story stories lane lanes tone toned piece tier tiers tiered level levels layer "
    "layers layered wheel wheeled wheeler year years month day fourths thirds quarters seater "
    "sided handed door by star person sides legged eyed headed point prong pronged fold ply car "
    "foot inch mile inches or and to decker deck decked poster course dimensional hand half thirty "
    "o'clock million hundred thousand for at dollar dollars percent dozen"
)
_BEFORE_NUMBER = words(
    "a an number past reads reading or least about almost nearly over than twenty thirty forty no "
    "level gate route terminal part page - / every half until"
)
_SHARED_OUT = words("both either neither respectively former latter twin twins duo trio")
_NOT_A_THING = words(
    "of another hand hands way is are with in on at has from may can who that which to arm foot "
    "side leg eye person's piece slice bite half end corner point time day more thing and or 's "
    "large for by sitting standing"
)


_BEFORE_ONE = words(
    "with has have and on in at near by behind beside holding eating riding using , from of",
) | {""}


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


_MODIFIERS = words(
    "passenger city transit subway commuter food school tour police motor speed race racing sports "
    "freight cargo steam decker delivery fishing farm baby pet wild stray guard tabby calico "
    "siamese kitty work utility rail electric diesel construction transport public metro bullet "
    "toy model military army party sailing cruise touring shuttle express mail ferry house circus "
    "show carriage teddy trolley breed herding"
)
_COMPOUND_BEFORE = words(
    "hot corn stuffed prairie sheep sea guide chili side cable street box rail pickup dump tow "
    "fork flatbed semi garbage trash fire sail row paddle tug life pontoon swan pedal dragon "
    "bullet trolley jet rental hound bull bob tank tanker gravy motorized cement dining motor dirt "
    "mountain scooter motored quad exercise"
)
_MAY_FOLLOW = words(
    "full asleep next ready near close loaded alone covered capable similar facing awake upright "
    "laid sat looking 's together all both"
)
_COMPOUND_AFTER = words(
    "drawn driven back shaped play stop stand training racing show eye dish parking",
)
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
