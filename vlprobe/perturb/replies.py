"""Parser of a language model's replies, which are untrusted: the edit, or the reason for rejecting it."""

import re
from collections.abc import Collection

from vlprobe.perturb.instructions import NOTHING, EditKind
from vlprobe.perturb.language import is_foreign

_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_QUOTES = (('"', '"'), ("“", "”"), ("'", "'"), ("‘", "’"), ("`", "`"), ("«", "»"))
_WORD = re.compile(r"\w+")
_REFUSAL = re.compile(
    r"\b(as an? (ai|artificial|language model)|language model|i('m| am) (sorry|unable|not able)"
    r"|i (can ?not|can't|won't)|i apologi[sz]e|unable to (comply|help|assist)|not appropriate"
    r"|against (my|the) (policy|guidelines))\b",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"^(sure|certainly|of course|okay|here('s| is| are)|the (new|second|revised) caption|as requested)\b|"
    r"^[\w ]{0,30}\b(caption|paraphrase|paraphrased|rewritten|answer|output|sentence)\w*\s*:|\bnew caption\b",
    re.IGNORECASE,
)
_VERDICT = re.compile(r"\b(same|different)\b", re.IGNORECASE)
LONGER = 2.0  # times as long as the caption, beside SPARE letters
SPARE = 40
# Less of the caption's letters than this: of 25,807 edits of SugarCrepe, SugarCrepe++ and VALSE, which
# people checked, the shortest has 57 %.
SHORTER = 1 / 3
# Defects; a reply with the first is not asked for again
NONE_POSSIBLE = "nothing of this kind to change"
EMPTY = "it is empty"
CUT_OFF = "it is cut off"
SEVERAL_LINES = "it has several lines"
UNPRINTABLE = "it has characters that do not print"
REFUSAL = "it refuses or speaks of itself"
REMARK = "it has a remark beside the caption"
UNCHANGED = "it is the caption itself, but for case, blanks or punctuation"
REPEATED = "the caption has this edit already"
TRUE_CAPTION = "it is another caption of the same picture"
TOO_LONG = "it is much longer than the caption"
TOO_SHORT = "it is much shorter than the caption"
OTHER_LANGUAGE = "it is in another language than the caption"
NO_OPENING = "it does not begin with the words of the task"
JUDGED_SAME = "the two captions mean the same"
JUDGED_DIFFERENT = "the two captions do not mean the same"
NO_VERDICT = "whether it means the same was not answered with one word"


def text_of(reply: str) -> str:
    """The caption in a reply: without thoughts, blanks and quotation marks around it.

    >>> text_of(' "A red bus." '), text_of("<think>a bus?</think>A red bus.")
    ('A red bus.', 'A red bus.')
    """
    text = _THOUGHT.sub("", reply).strip()
    for left, right in _QUOTES:
        inner = text[1:-1]
        is_quoted = len(text) > 2 and text.startswith(left) and text.endswith(right)
        if is_quoted and left not in inner and right not in inner:
            return inner.strip()
    return text


def plain(text: str) -> str:
    """Return only its words, in lower case: texts that are equal so differ in nothing that is asked about."""
    return " ".join(_WORD.findall(text.casefold()))


def defect(
    text: str,
    caption: str,
    kind: EditKind,
    *,
    is_cut: bool = False,
    earlier: Collection[str] = (),
    true_captions: Collection[str] = (),
) -> str:
    """Why a text cannot be the edit of a caption, "" where no rule forbids it.

    Args:
        text: As `text_of` gives it.
        caption: The original.
        kind: The requested kind.
        is_cut: Whether the model was stopped before its end.
        earlier: Edits that the caption has, as `plain` gives them.
        true_captions: All captions of the pictures that have this caption, as `plain` gives them.
    """
    words = plain(text)
    problems = (
        (words == NOTHING.lower(), NONE_POSSIBLE),
        (not words, EMPTY),
        (is_cut, CUT_OFF),
        ("\n" in text or "\r" in text, SEVERAL_LINES),
        (not text.isprintable(), UNPRINTABLE),
        (bool(_REFUSAL.search(text) and not _REFUSAL.search(caption)), REFUSAL),
        (bool(_REMARK.search(text) and not _REMARK.search(caption)), REMARK),
        (words == plain(caption), UNCHANGED),
        (words in earlier, REPEATED),
        (kind.meaning == "different" and words in true_captions, TRUE_CAPTION),
        (len(text) > LONGER * len(caption) + SPARE, TOO_LONG),
        (len(text) < SHORTER * len(caption), TOO_SHORT),
        (not words.startswith(kind.opening), NO_OPENING),
    )
    problem = next((reason for applies, reason in problems if applies), "")
    if not problem and is_foreign(text) != is_foreign(caption):
        return OTHER_LANGUAGE
    return problem


def judged_defect(reply: str, kind: EditKind) -> str:
    """Why an edit cannot be used by what the model says of its meaning, "" where it agrees.

    >>> from vlprobe.perturb.instructions import KINDS
    >>> judged_defect("Same.", KINDS["P1"]), judged_defect("same or different?", KINDS["P1"]) == NO_VERDICT
    ('', True)
    """
    verdicts = {word.lower() for word in _VERDICT.findall(_THOUGHT.sub("", reply))}
    if verdicts == {kind.meaning}:
        return ""
    if len(verdicts) == 1:
        return JUDGED_DIFFERENT if kind.meaning == "same" else JUDGED_SAME
    return NO_VERDICT
