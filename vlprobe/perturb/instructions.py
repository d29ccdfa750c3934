"""Prompts for a language model that request paraphrases and foils for a caption (one kind per prompt), or a judgment
on whether two captions have the same meaning.

The rules are those of two papers, in our own words, in instructions.toml:

    PRSM, section 3     P1: the whole caption rewritten, nothing added, nothing omitted; P2: another opening ("a photo
                        of"); P3: synonyms for one describing word, for another one, and for both
    VISLA, section 3.2 and appendix A.1, A.2
                        a second positive: only synonyms and order change, the layout stays, no detail is added; a hard
                        negative: few words changed, so that the caption is fluent and false. The two can be
                        distinguished without the picture, and no gender is added to the caption

A model answers "NONE" if a caption has nothing of the requested kind to change.

Replies are untrusted. Each is parsed into either an edit or a reason for rejecting it.
"""

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from vlprobe.errors import NotFound
from vlprobe.perturb.draws import draw
from vlprobe.perturb.language import is_foreign
from vlprobe.perturb.tokens import read_resource

NOTHING = "NONE"
NEGATIVE = "negative"
Message = Mapping[str, str]  # role and content, as in a chat
_PROMPTS = tomllib.loads(read_resource("instructions.toml"))


class EditKind(NamedTuple):
    """A kind of edit that a language model can be asked to write, with its instructions."""

    name: str  # the name that users choose
    meaning: str  # same or different
    subtype: str  # as written to a file of edits
    rule: str
    task: str
    rules: tuple[str, ...]
    opening: str = ""  # words that the edit must begin with
    is_english: bool = False  # whether English words are part of the task


def _read_kind(row: Mapping[str, Any]) -> EditKind:
    lists = {f"{{{name}}}": _PROMPTS[name] for name in ("same", "lie")}
    rules = tuple(text for rule in row["rules"] for text in lists.get(rule, [rule]))
    return EditKind(**{**row, "rules": rules})


KINDS = {row["name"]: _read_kind(row) for row in _PROMPTS["kinds"]}
NEGATIVES = tuple(kind for name, kind in KINDS.items() if name.startswith(f"{NEGATIVE}:"))
GROUPS = {
    "prsm": ("P1", "P2", "P3"),
    "visla": ("positive", NEGATIVE),
    "P2": tuple(name for name in KINDS if name.startswith("P2:")),
    "P3": tuple(name for name in KINDS if name.startswith("P3:")),
    "negatives": tuple(kind.name for kind in NEGATIVES),
}
CHOICES = (*GROUPS, NEGATIVE, *KINDS)


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Expand a list of names and groups into kinds of edit, without duplicates.

    NEGATIVE is not expanded, because a kind is drawn for each caption. Raises NotFound for an unknown name.
    """
    kinds: dict[str, None] = {}
    for name in names:
        if name in GROUPS:
            kinds |= dict.fromkeys(chosen(GROUPS[name]))
        elif name in KINDS or name == NEGATIVE:
            kinds[name] = None
        else:
            raise NotFound("kind of edit", name, CHOICES)
    return tuple(kinds)


def kind_of(name: str, caption: str, seed: int, number: int) -> EditKind:
    """Look up a kind of edit by name. For NEGATIVE, the kind is drawn from the caption, the seed and the number."""
    if name == NEGATIVE:
        start = draw(seed, caption, 0, NEGATIVE)
        return NEGATIVES[(start + number) % len(NEGATIVES)]
    return KINDS[name]


def request(kind: EditKind, caption: str) -> list[Message]:
    """Build the chat messages that ask a language model for an edit of a caption."""
    rules = (
        *kind.rules,
        *_PROMPTS["every"],
        f"If the caption has nothing to change in this way, answer {NOTHING}.",
    )
    listed = "\n".join(f"- {rule}" for rule in rules)
    return [
        {
            "role": "user",
            "content": f"{_PROMPTS['beginning']}\n\nTask: {kind.task}\n{listed}\n\nCaption: {caption}",
        }
    ]


def again(messages: Sequence[Message], reply: str, defect: str) -> list[Message]:
    """Append a rejected reply, and the reason why it was rejected, to the chat messages, to ask for another edit."""
    return [
        *messages,
        {"role": "assistant", "content": reply},
        {
            "role": "user",
            "content": f"That cannot be used: {defect}. Write another caption, by the same task and rules.",
        },
    ]


def question(caption: str, edit: str) -> list[Message]:
    """Build the chat messages that ask whether a caption and an edit have the same meaning. They do not reveal which
    answer is intended.

    Source: VISLA, section 3.2 and figure 5, has a model judge a caption in a separate question.
    """
    words = (
        "Two captions of pictures follow. They mean the same if every picture that one of them describes is described "
        "by the other one as well. Wording does not matter. They are different if one of them has another person, "
        "animal, thing, number, look, action or place than the other, says more or less than it, or denies what it "
        "says. Judge by the sentences alone.\n\n"
        f"First caption: {caption}\nSecond caption: {edit}\n\n"
        "Answer with one word, same or different."
    )
    return [{"role": "user", "content": words}]


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
LONGER = 2.0  # times as long as the caption, plus SPARE letters
SPARE = 40
# Less of the caption's letters than this: of 25,807 edits of SugarCrepe, SugarCrepe++ and VALSE, which
# people checked, the shortest has 57 %.
SHORTER = 1 / 3
# Defects; a reply with the first is not requested again
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
    """Extract the caption from a reply. Thoughts, blanks and quotation marks around it are removed.

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
    """Reduce text to its lowercase words. Two edits with the same words count as equal."""
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
    """Return the reason why a reply cannot be used as an edit of a caption, or "" if no rule forbids it.

    Args:
        text: The reply's text, as returned by `text_of`.
        caption: The original caption.
        kind: The requested kind of edit.
        is_cut: Whether the model was stopped before it finished.
        earlier: Existing edits of the caption, each normalized by `plain`.
        true_captions: All captions of the pictures that have this caption, each normalized by `plain`.
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
    """Return the reason why the model's judgment of the meaning rejects an edit, or "" if it accepts the edit.

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
