"""Find the things that a caption names, with their position, number and kind.

The words are our own, in concepts.txt, based on public facts (COCO's 80 names, the names of GRIT's and RoCOCO's
groups). No tagger is needed: a word that could also be a verb or a color counts as a thing only if its neighbors leave
no doubt, and is skipped otherwise. Source: RoCOCO, section 3.2.2 and table 1.
"""

from typing import Literal, NamedTuple, get_args

from vlprobe.perturb import lexicon
from vlprobe.perturb.tokens import TOKEN, read_resource, words

Kind = Literal["count", "mass", "plural", "quality"]
KIND_BY_NAME: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
Form = Literal["singular", "plural", "mass", "plural-only", "quality"]


class Concept(NamedTuple):
    """A thing, such as "dog", that can be found in a caption or inserted into one."""

    lemma: str
    plural: str  # of countable things; else the lemma
    kind: Kind
    groups: frozenset[str]
    watch: bool  # several meanings, or one that a picture cannot refute: never inserted

    @property
    def forms(self) -> tuple[Form, ...]:
        """Grammatical forms that the concept has."""
        return {"count": ("singular", "plural"), "plural": ("plural-only",)}.get(
            self.kind,
            (self.kind,),
        )

    def write(self, form: Form) -> str:
        """Return the word for the concept in a grammatical form. For plural-only words, this is the plural."""
        return self.plural if form in ("plural", "plural-only") else self.lemma


class Noun(NamedTuple):
    """A lexicon word that was found in a caption, with its position and form."""

    start: int  # characters
    end: int
    form: Form
    lemmas: tuple[str, ...]
    groups: frozenset[str]  # for all meanings of the word


CONCEPTS: tuple[Concept, ...]
LISTS: dict[str, tuple[Concept, ...]] = {}  # words to insert: danger, danger-paper, ordinary
IDIOMS: set[str] = set()
# Word -> other words that are, or may be, true of the same picture.
TRUE_BESIDE: dict[str, set[str]] = {}
_READINGS: dict[str, list[tuple[Concept, Form]]] = {}  # by words in lowercase
_LONGEST = 3  # words of an entry


def _split(words: str) -> list[str]:
    return [word.strip() for word in words.split(",")]


def _read() -> tuple[Concept, ...]:
    merged: dict[tuple[str, Kind], Concept] = {}
    spellings: dict[tuple[str, Kind], set[str]] = {}
    members: dict[str, list[str]] = {}
    hypernyms: list[tuple[str, list[str]]] = []
    for line in read_resource("concepts.txt").splitlines():
        head, _, words = line.partition(": ")
        directive, _, name = head.partition(" ")
        if directive == "#":
            continue
        name, _, kind_name = name.partition(", ")
        kind = KIND_BY_NAME[kind_name or "count"]
        if directive == "group":
            for entry in _split(words):
                concept, plurals = _parse(entry, kind, name)
                key = concept.lemma, concept.kind
                previous = merged.get(key, concept)
                merged[key] = previous._replace(
                    groups=previous.groups | {name},
                    watch=previous.watch or concept.watch,
                )
                spellings.setdefault(key, set()).update(plurals)
                members.setdefault(name, []).append(concept.lemma)
        elif directive == "words":
            LISTS[name] = LISTS.get(name, ()) + tuple(
                _parse(entry, kind)[0] for entry in _split(words)
            )
        elif directive == "idiom":
            IDIOMS.update(_split(words))
        elif directive == "kind":
            hypernyms.append((name, _split(words)))
        elif directive == "alike":
            for word in _split(words):
                TRUE_BESIDE.setdefault(word, set()).update(_split(words))
    for word, entries in hypernyms:
        for entry in entries:
            TRUE_BESIDE.setdefault(word, set()).update(
                members[entry[1:]] if entry.startswith("@") else [entry],
            )
    for key, concept in merged.items():
        for form in concept.forms:
            plurals = spellings[key] if form == "plural" else set()
            for word in {concept.write(form), *plurals}:
                _READINGS.setdefault(word, []).append((concept, form))
    return tuple(merged.values())


def _parse(entry: str, kind: Kind, group: str = "") -> tuple[Concept, list[str]]:
    singular, *plurals = entry.split("/")
    lemma = singular.rstrip("*")
    plural = (plurals or [lexicon.plural_of(lemma)])[0] if kind == "count" else lemma
    return Concept(
        lemma,
        plural,
        kind,
        frozenset([group] if group else ()),
        singular.endswith("*"),
    ), plurals[1:]


CONCEPTS = _read()


def named(word: str) -> list[Concept]:
    """Return the concepts that a lowercase word can name, in any of its forms; empty for an unknown word."""
    return [concept for concept, _ in _READINGS.get(word, ())]


def mentions(text: str) -> set[str]:
    """Return the lowercase words in a caption, plus the base form of every concept that the caption may name."""
    words = [match.group().lower() for match in TOKEN.finditer(text)]
    mentioned = set(words)
    for size in range(1, _LONGEST + 1):
        for i in range(len(words) - size + 1):
            mentioned.update(
                concept.lemma for concept, _ in _READINGS.get(" ".join(words[i : i + size]), ())
            )
    mentioned.update(lexicon.SINGULARS[word] for word in words if word in lexicon.SINGULARS)
    return mentioned


def find(caption: str) -> list[Noun]:
    """Find the lexicon words that occur in a caption, from left to right. If two matches overlap, the longer one wins.

    Skipped are idioms ("in bed", "side by side"), parts of names, words that may be a verb or a
    color in their position, and words whose number is in doubt ("the sheep").
    """
    tokens = list(TOKEN.finditer(caption))
    sentence = _Sentence([token.group() for token in tokens])
    nouns = []
    i = 0
    while i < len(tokens):
        size = sentence.entry(i)
        start, end = tokens[i].start(), tokens[i + max(size, 1) - 1].end()
        if size > 0:
            readings = sentence.readings(i, size)
            if readings:
                lemmas = tuple(dict.fromkeys(concept.lemma for concept, _ in readings))
                # Groups of all readings, also of those that do not fit here: diff-concept must
                # share none of them.
                groups = frozenset().union(*(c.groups for c in named(sentence.text(i, size))))
                nouns.append(Noun(start, end, readings[0][1], lemmas, groups))
        i += abs(size) or 1
    return nouns


_ONE = words("a an another each every one this that")
_MANY = frozenset(lexicon.NUMBERS[1:]) | words(
    "dozen hundred many several few these those multiple various numerous all most"
)
_NO_NOUN_AFTER = lexicon.AUXILIARY | lexicon.PRONOUN | lexicon.SUBORDINATOR
_BEFORE_TO = words("next close attached due tied")
_COLORS = frozenset(concept.lemma for concept in CONCEPTS if "color" in concept.groups)


class _Sentence:
    """A tokenized caption, with methods that infer the properties of a word from its neighbors."""

    def __init__(self, words: list[str]) -> None:
        self.raw = words
        self.words = [word.lower() for word in words]
        capitals = sum(word[:1].isupper() for word in words[1:])
        self.is_title = capitals * 2 > len(words) - 1

    def word(self, i: int) -> str:
        """Return the lowercase word at a position; empty outside of the caption."""
        return self.words[i] if 0 <= i < len(self.words) else ""

    def tag(self, i: int) -> int:
        """Return a word's parts of speech from the lexicon, including noun forms from concepts.txt."""
        word = self.word(i)
        tag = lexicon.TAGS.get(word, 0)
        for _, form in _READINGS.get(word, ()):
            tag |= (
                lexicon.ADJECTIVE
                if form == "quality"
                else lexicon.PLURAL
                if "plural" in form
                else lexicon.SINGULAR
            )
        return tag

    def text(self, i: int, size: int) -> str:
        """Return `size` lowercase words, starting at a position and separated by spaces."""
        return " ".join(self.words[i : i + size])

    def entry(self, i: int) -> int:
        """Return the number of tokens in the longest entry that starts here: negative for an idiom, 0 for no entry."""
        for size in range(min(_LONGEST, len(self.words) - i), 0, -1):
            text = self.text(i, size)
            if text in IDIOMS:
                return -size
            if text in _READINGS:
                return size
        return 0

    def readings(self, i: int, size: int) -> list[tuple[Concept, Form]]:
        """Return the possible meanings of the entry with `size` tokens; empty if it may not name a thing here."""
        if self._is_name(i, size) or not self._is_thing(i, size):
            return []
        readings = _READINGS[self.text(i, size)]
        if len({form for _, form in readings}) > 1:
            readings = self._fitting(i, size, readings)
        elif (
            readings[0][1] == "mass" and self.word(i - 1) in _ONE and not self._is_modifier(i, size)
        ):  # "a soda"
            return []
        return [(concept, form) for concept, form in readings if form == readings[0][1]]

    def _is_name(self, i: int, size: int) -> bool:
        if self.is_title or i == 0 or self.words[i - 1] in (".", "!", "?", '"', "a", "an"):
            return False
        return any(word[:1].isupper() and len(word) > 2 for word in self.raw[i : i + size])

    def _is_thing(self, i: int, size: int) -> bool:
        following = self.word(i + size)
        if following in ("'s", "’s", "'", "’") and "plural" in _READINGS[self.text(i, size)][0][1]:
            return False
        if size > 1:
            return True
        # "light brown"
        if following in _COLORS and all(form != "quality" for _, form in _READINGS[self.word(i)]):
            return False
        if self.words[i] in _COLORS and self.tag(i + 1) & (lexicon.NOUN | lexicon.ADJECTIVE):
            return True  # the color, by the readings that fit
        tag = lexicon.TAGS.get(self.words[i], 0)
        return not tag & (lexicon.VERB | lexicon.AUXILIARY) or self._cannot_be_verb(i)

    def _cannot_be_verb(self, i: int) -> bool:
        if i == 0:
            return True
        previous, tag = self.words[i - 1], self.tag(i - 1)
        if previous in ("to", "that") or (tag & _NO_NOUN_AFTER and previous not in ("her", "one")):
            return previous == "to" and self.word(i - 2) in _BEFORE_TO
        if previous in ("and", "or", "&", ","):
            joined = self.tag(i - 2)
            if joined & lexicon.VERB and not joined & lexicon.NOUN:  # "sits and watches"
                return False
            object_follows = lexicon.DETERMINER | lexicon.PRONOUN | lexicon.ADVERB | lexicon.NOUN
            return not self.tag(i + 1) & object_follows  # "stands and watches the"
        if previous in ("'s", "’s", "'", "’", "her") or tag & (lexicon.DETERMINER | lexicon.NUMBER):
            return True
        if tag & lexicon.NOUN:
            return False
        return bool(tag & (lexicon.ADJECTIVE | lexicon.PREPOSITION | lexicon.VERB))

    def _is_modifier(self, i: int, size: int) -> bool:
        """Return whether an entry modifies what follows: a noun, an adjective, or "and" with a color ("and white")."""
        tag = self.tag(i + size)
        if self.word(i + size) in ("and", ","):
            return self.word(i + size + 1) in _COLORS
        return bool(tag & (lexicon.NOUN | lexicon.ADJECTIVE)) and not tag & lexicon.PREPOSITION

    def _determiner(self, i: int) -> str:
        """Return the determiner or number that opens the noun phrase around a position; empty if there is none."""
        for back in range(i - 1, max(i - 6, -1), -1):
            word, tag = self.words[back], self.tag(back)
            if (
                word in _ONE
                or word in _MANY
                or tag & (lexicon.DETERMINER | lexicon.NUMBER)
                or word in ("'s", "’s")
            ):
                return word
            if not tag & (lexicon.ADJECTIVE | lexicon.NOUN | lexicon.ING | lexicon.PARTICIPLE):
                return ""
        return ""

    def _fitting(
        self,
        i: int,
        size: int,
        readings: list[tuple[Concept, Form]],
    ) -> list[tuple[Concept, Form]]:
        """Return the readings whose form agrees with the neighboring words; empty if these do not decide the form."""
        forms = {form for _, form in readings}
        opener = self._determiner(i)
        following = self.word(i + size)
        is_modifier = self._is_modifier(i, size)
        if "quality" in forms:
            forms_left: set[str] = {"quality"} if is_modifier else forms - {"quality"}
        elif {"singular", "plural"} <= forms:  # one spelling for both, such as "sheep"
            if opener in _ONE or following in ("is", "was", "has"):
                forms_left = {"singular"}
            elif opener in _MANY or following in ("are", "were", "have") or not opener:
                forms_left = {"plural"}
            else:
                forms_left = set()
        elif {"singular", "mass"} <= forms:
            forms_left = {"mass"} if is_modifier or opener in ("", "some") else {"singular"}
        else:  # glasses: the plural of a glass, or eyewear
            context = self.words[max(i - 4, 0) : i]
            forms_left = (
                {"plural-only"} if "wearing" in context or "wears" in context else {"plural"}
            )
        return [reading for reading in readings if reading[1] in forms_left]
