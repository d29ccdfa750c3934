"""Describe the words that were exchanged between two captions, in sentences for a person who sees the picture."""

import re
from typing import NamedTuple

from vlprobe.perturb import lexicon
from vlprobe.perturb.flips import VOCABULARY
from vlprobe.perturb.kinds.edits import LIES
from vlprobe.render.sentences import NUMBERS, shortened
from vlprobe.views.changes import is_in_several_places

INDEFINITE = ("a", "an", "one", "single", "another")
DEFINITE = (
    *("the", "this", "that", "his", "her", "its", "their", "my", "your"),
    *("each", "every", "no"),
)
NEAR = 3  # number of words before a noun that are searched for its article
NUMERALS = (*NUMBERS[1:], "eleven", "twelve", "twenty")
COLORS = (*VOCABULARY["color"], "grey")
PLACES = {  # relation to its form in "one thing is ... another"
    **{
        word: word
        for word in (
            *("over", "under", "above", "below", "beneath", "underneath", "behind", "beside"),
            *("inside", "outside", "in front of", "on top of", "next to", "near", "far from"),
            *("left of", "right of", "to the left of", "to the right of", "facing"),
        )
    },
    **{"left": "left of", "right": "right of", "in front": "in front of"},
    **{"higher": "higher than", "lower": "lower than"},
}


class Exchange(NamedTuple):
    """A true sentence about the picture, and a false statement, which consists of a verb and the wrong words."""

    truth: str
    verb: str
    lie: str


def exchange(source: str, target: str, subtype: str, true_text: str) -> Exchange | None:
    """Describe the words that were exchanged between a true and a wrong caption. Return None if they cannot be
    described.

    Both words must be numbers, colors, places or things. If the type of edit does not imply the category, the words
    must be known to belong to it.
    """
    if not source or not target or is_in_several_places(source, target) or subtype in LIES:
        return None
    numbers = tuple(number_word(word, subtype == "number") for word in (source, target))
    if all(numbers):
        return Exchange(f"You count {numbers[0]}.", "count", numbers[1])
    if subtype == "number":
        return None
    words = source.lower(), target.lower()
    if subtype == "color" or all(word in COLORS for word in words):
        return Exchange(f"You see something {shortened(source)}.", "say", shortened(target))
    if all(word in PLACES for word in words):
        lie = re.sub(" (of|than)$", "", PLACES[words[1]])
        return Exchange(f"One thing is {PLACES[words[0]]} another.", "say", lie)
    article = article_before(source, true_text)
    if subtype != "object" and not all(is_thing(word, article) for word in words):
        return None
    truth, lie = (with_article(article, words) for words in (source, target))
    return Exchange(f"You see {truth}.", "say", lie)


def number_word(text: str, counts_articles: bool = True) -> str:
    """Return a number as a lowercase word or in digits, or "" if the text is not a number.

    >>> number_word("four"), number_word("A"), number_word("12"), number_word("several"), number_word("a", False)
    ('four', 'one', '12', '', '')
    """
    word = text.lower()
    if counts_articles and word in ("a", "an", "single"):
        return "one"
    return word if word in NUMERALS or re.fullmatch(r"\d{1,4}", word) else ""


def is_thing(words: str, article: str) -> bool:
    """Return whether lowercase words name a thing: a noun with an article, a plural noun, or a number with a noun.

    >>> is_thing("cat", "a"), is_thing("cats", ""), is_thing("two people", ""), is_thing("sitting", "a")
    (True, True, True, False)
    """
    *numeral, noun = words.split()
    tags = lexicon.TAGS.get(noun, 0)
    if numeral:
        return len(numeral) == 1 and bool(number_word(numeral[0])) and bool(tags & lexicon.NOUN)
    return bool(tags & lexicon.PLURAL or (article and tags & lexicon.NOUN))


def article_before(word: str, caption: str) -> str:
    """Return the article for a noun in a caption: "a" if it follows an indefinite word, "the" if it follows a definite
    one, else "".

    >>> article_before("bird", "A gray bird is shown."), article_before("trains", "three yellow trains")
    ('a', '')
    """
    preceding = caption.lower().partition(word.lower())[0]
    for word_before in reversed(re.split(r"[,.;:]", preceding)[-1].split()[-NEAR:]):
        if word_before in INDEFINITE:
            return "a"
        if word_before in DEFINITE:
            return "the"
        if word_before in NUMERALS or word_before.isdigit():
            return ""
    return ""


def with_article(article: str, noun: str) -> str:
    """Add an article to a noun. A countable noun without an article gets "a"; numbers, plurals and mass nouns get none.

    >>> with_article("a", "owl"), with_article("the", "dog"), with_article("", "dogs"), with_article("", "man")
    ('an owl', 'the dog', 'dogs', 'a man')
    >>> with_article("the", "two people"), with_article("", "water"), with_article("a", "dogs")
    ('two people', 'water', 'dogs')
    """
    noun = shortened(noun)
    head, *others = noun.lower().split() or [""]
    if others and number_word(head):
        return noun
    tags = lexicon.TAGS.get(head, 0)
    if not others and tags & lexicon.PLURAL and not tags & lexicon.SINGULAR and article == "a":
        article = ""  # "a group of dogs"
    counted = tags & lexicon.SINGULAR and not tags & (lexicon.PLURAL | lexicon.MASS)
    if article == "a" or (not (article or others) and counted):
        return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
    return f"{article} {noun}" if article else noun
