"""Facts that the captions of an image state, so that a flip that is still true of the image is not used.

A word states itself and everything that it implies: "puppy" for dog, "man" for person, "golden" for
yellow. A word that covers several ("vehicle") states all of them, unless the flipped word is one
of them and so explains it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from vlprobe.perturb.flips import VOCABULARY
from vlprobe.perturb.lexicon import HUMAN, NUMBERS, TAGS, plural_of

_IMPLIED = {
    "dog": "puppy pup doggy doggie canine hound poodle bulldog terrier retriever labrador lab collie beagle dalmatian "
    "pug chihuahua dachshund corgi husky mutt rottweiler spaniel greyhound pitbull sheepdog dog's canines",
    "cat": "kitten kitty kittie feline tabby calico siamese kittycat pussycat tomcat",
    "horse": "pony foal colt mare stallion equestrian horseback jockey clydesdale mule donkey horse-drawn saddle polo",
    "car": "taxi cab sedan suv van minivan automobile auto convertible limo limousine jeep hatchback coupe corvette "
    "traffic parking ford chevy bmw mercedes toyota honda volkswagen wagon windshield street road highway lot meter",
    "bus": "coach minibus trolley double-decker doubledecker decker busses tram",
    "train": "locomotive tram trolley subway railway railroad monorail caboose railcar streetcar amtrak metro rail",
    "bird": "duck goose geese swan seagull gull pigeon parrot parakeet owl eagle hawk chicken turkey rooster hen "
    "peacock penguin pelican flamingo crane heron ostrich crow raven sparrow robin dove "
    "hummingbird vulture falcon stork mallard fowl finch cockatoo bluejay emu toucan macaw "
    "cardinal woodpecker flock",
    "boat": "ship canoe kayak sailboat yacht ferry raft gondola barge vessel tugboat rowboat speedboat dinghy "
    "catamaran motorboat ferryboat steamboat cruise sail sailing marina harbor harbour dock paddleboat houseboat",
    "bicycle": "bike cycle bicyclist cyclist cycling biker biking mountain-bike tricycle tandem bmx",
    "truck": "pickup semi lorry van trailer tractor firetruck fire-truck ambulance eighteen-wheeler bulldozer",
    "person": "he she his her him hers himself herself someone somebody everyone anyone everybody hand arm finger foot "
    "feet leg head face human lap shoulder crowd audience traveler occupant resident rider worker "
    "model bicyclist jockey police policeman lap hands wearing selfie",
    "red": "maroon crimson scarlet burgundy reddish ruby",
    "blue": "navy teal turquoise aqua cyan bluish azure",
    "green": "teal turquoise olive lime greenish mint",
    "yellow": "gold golden blonde blond yellowish cream lemon",
    "black": "dark blackish",
    "white": "cream ivory silver off-white whitish snow",
    "brown": "tan beige bronze wooden wood chocolate khaki brownish golden",
    "gray": "grey silver metallic metal steel stainless greyish grayish",
    "orange": "peach tangerine oranges gold golden",
    "pink": "magenta salmon rose fuchsia peach pinkish",
    "purple": "violet lavender magenta maroon lilac purplish",
}
_COVERING = {
    "animal": "dog cat horse bird",
    "pet": "dog cat bird",
    "livestock": "horse",
    "creature": "dog cat horse bird",
    "vehicle": "car bus truck",
    "transportation": "car bus train bicycle truck",
}
_MANY_COLORED = "colorful colourful multicolored multi-colored multicolor multi-color rainbow"
_AT_LEAST = {
    "couple": 2,
    "pair": 2,
    "both": 2,
    "duo": 2,
    "trio": 3,
    "dozen": 12,
    "dozens": 99,
    "hundreds": 99,
}
NEAR = {  # two names that people give to one color
    "red": {"orange", "pink"},
    "blue": {"purple"},
    "green": set(),
    "yellow": {"orange"},
    "black": {"gray"},
    "white": {"gray"},
    "brown": {"orange"},
    "gray": {"white", "black"},
    "orange": {"red", "yellow", "brown"},
    "pink": {"red", "purple"},
    "purple": {"pink", "blue"},
}


def _both_numbers(word: str) -> tuple[str, str]:
    return word, plural_of(word)


def _table() -> dict[str, frozenset[str]]:
    says: dict[str, set[str]] = {}
    for word in VOCABULARY["color"] + VOCABULARY["object"]:
        for form in (word, *_IMPLIED[word].split()):
            for written in _both_numbers(form):
                says.setdefault(written, set()).add(word)
    for word, bits in TAGS.items():
        if bits & HUMAN:
            says.setdefault(word, set()).add("person")
    for written in _MANY_COLORED.split():
        says.setdefault(written, set()).update(VOCABULARY["color"])
    return {word: frozenset(means) for word, means in says.items()}


_SAYS = _table()
_COVERS = {
    form: frozenset(of.split()) for word, of in _COVERING.items() for form in _both_numbers(word)
}
_COUNTS = {
    **_AT_LEAST,
    **{word: value for value, word in enumerate(NUMBERS, 1)},
    **{str(value): value for value in range(1, 100)},
}
_WATCHED = frozenset(_SAYS) | frozenset(_COVERS) | frozenset(_COUNTS)


class Truths(NamedTuple):
    """Facts about an image from all its captions."""

    mentioned: frozenset[str]  # vocabulary words that are named or implied
    covers: tuple[frozenset[str], ...]  # the vocabulary words under each covering word
    count: int  # the highest number named

    def allow(self, kind: str, source: str, target: str) -> bool:
        """Return whether the target in place of the source is false of the image, by its captions."""
        if kind == "number":
            return VOCABULARY["number"].index(target) >= self.count
        if target in self.mentioned or (kind == "color" and target in NEAR[source]):
            return False
        return not any(target in covered and source not in covered for covered in self.covers)


def truths(captions: Iterable[Iterable[str]]) -> Truths:
    """Collect the facts from the lower-case words of all captions of one image."""
    words = _WATCHED.intersection(set().union(*captions))
    mentioned: set[str] = set()
    for word in words:
        mentioned |= _SAYS.get(word, frozenset())
    return Truths(
        frozenset(mentioned),
        tuple(_COVERS[word] for word in words if word in _COVERS),
        max((_COUNTS[word] for word in words if word in _COUNTS), default=0),
    )
