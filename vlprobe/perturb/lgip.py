"""LGIP's edits for the captions of an image: paraphrases that keep the meaning, flips that change it, and combinations.

Source: LGIP, section 3.2 and appendix A. The kinds in `perturb.kinds` are not part of LGIP; a run has them only if
you select them.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.perturb import advanced as advanced_rules
from vlprobe.perturb import flips, other_languages, strict, substitution, templates
from vlprobe.perturb.draws import draw, sample
from vlprobe.perturb.flips import MIN_LENGTH, Flip
from vlprobe.perturb.grammar import Sentence
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.perturb.language import NOT_IN_ENGLISH
from vlprobe.perturb.rewriting import NEGATIVE, Paraphrase
from vlprobe.perturb.strict import FLIPPABLE
from vlprobe.perturb.tokens import Reading
from vlprobe.perturb.truths import Truths, truths
from vlprobe.types import Edit

RULES = ("strict", "paper")
KINDS = ("paraphrase", "flip", "combined")  # of LGIP
ALL_KINDS = (*KINDS, *kind_edits.NAMES)
TAGS = ("rule", "marker")
NO_FLIP_BY_TABLE = f"no color or number to flip, {NOT_IN_ENGLISH}"
PARAPHRASES_PER_FLIP = 3  # number of paraphrases of a caption combined with each of its flips


@dataclass(frozen=True, slots=True)
class CaptionEdits:
    """Edits for all captions of one image, and counts of the edits that were left out."""

    edits: tuple[tuple[tuple[str, Edit], ...], ...]  # per caption: text and edit
    dropped: Mapping[str, int]  # counts of omitted edits by reason


def in_english(
    captions: Sequence[str], caption_edits: CaptionEdits, foreign: Collection[str]
) -> CaptionEdits:
    """Remove the edits for captions that are not in English, and count these captions as dropped."""
    of_english = tuple(
        () if caption in foreign else edits
        for caption, edits in zip(captions, caption_edits.edits, strict=True)
    )
    if count := sum(caption in foreign for caption in captions):
        return CaptionEdits(of_english, {**caption_edits.dropped, NOT_IN_ENGLISH: count})
    return caption_edits


def edit_other_languages(
    captions: Sequence[str],
    item_id: str,
    caption_edits: CaptionEdits,
    foreign: Mapping[str, str],
    *,
    rules: str = "strict",
    seed: int = 42,
    kinds: Iterable[str] = KINDS,
    k_diff: int = 6,
    flip_types: Collection[str] = flips.TYPES,
) -> CaptionEdits:
    """Replace the edits for captions that are not in English by flips of colors and numbers.

    Captions without an edit, also those in a language without a table, are counted as dropped. So are the edits of
    English captions that insert a color or number which a caption in another language states.

    Args:
        captions: All captions of the image.
        item_id: Id of the image.
        caption_edits: What `edits` returned for them.
        foreign: The language of each caption that is not in English, from `foreign_captions`.
        rules: strict or paper; only strict has tables.
        seed: Any whole number.
        kinds: Kinds of edit; the tables make flips only.
        k_diff: Maximum number of flips per caption.
        flip_types: Which of flips.TYPES to make.
    """
    caption_edits = in_english(captions, caption_edits, foreign)
    if not has_tables(rules, kinds) or foreign.keys().isdisjoint(captions):
        return caption_edits
    codes = [foreign.get(caption, "") for caption in captions]
    readings = [*map(Reading, captions)]
    of_image = other_languages.image_truths(readings, codes)
    made, reasons = other_languages.flips(readings, codes, of_image, item_id, seed)
    dropped = Counter(caption_edits.dropped)
    dropped.update(reasons)
    out = list(caption_edits.edits)
    for index, (code, of_caption) in enumerate(zip(codes, made, strict=True)):
        of_caption = [flip for flip in of_caption if flip.type in flip_types]
        if code not in other_languages.languages():
            out[index] = tuple(_false_edits(out[index], of_image, dropped))
            continue
        dropped[NOT_IN_ENGLISH] -= 1
        if not of_caption:
            dropped[NO_FLIP_BY_TABLE] += 1
        number = draw(seed, item_id, index, "flips")
        out[index] = tuple(
            (
                flip.text,
                Edit("flip", flip.type, f"flip:{flip.type}:{code}", flip.source, flip.target),
            )
            for flip in capped(of_caption, k_diff, number, dropped, "flip")
        )
    return CaptionEdits(tuple(out), {reason: count for reason, count in dropped.items() if count})


def _false_edits(
    of_caption: Iterable[tuple[str, Edit]], of_image: Truths, dropped: Counter[str]
) -> Iterable[tuple[str, Edit]]:
    """Yield the edits of an English caption, without colors and numbers that are still true of the image."""
    for text, edit in of_caption:
        if edit.kind in ("flip", "combined") and edit.subtype in other_languages.KINDS:
            source, target = (FLIPPABLE[word.lower()][1] for word in (edit.source, edit.target))
            if not of_image.allow(edit.subtype, source, target):
                dropped[f"flip:{edit.subtype}, still true of the image"] += 1
                continue
        yield text, edit


def has_tables(rules: str, kinds: Iterable[str]) -> bool:
    """Return whether captions in some other languages than English are edited too."""
    return rules == "strict" and "flip" in kinds


def edits(
    captions: Sequence[str],
    item_id: str,
    *,
    rules: str = "strict",
    seed: int = 42,
    kinds: Iterable[str] = KINDS,
    k_same: int = 6,
    k_diff: int = 6,
    tag: str = "rule",
    words: substitution.Vocabulary | None = None,
    flip_types: Collection[str] = flips.TYPES,
    foreign: Mapping[str, str] = MappingProxyType({}),
) -> CaptionEdits:
    """Edit all captions of one image. Flips that are still true of the image, judging by its captions, are rejected.

    The rule set `strict` keeps every edit grammatical and every flip false as far as the image's captions
    tell. Up to half of the `k_same` paraphrases are advanced ones, so that the templates, which fit every
    caption, do not crowd them out. The rule set `paper` flips literally, wraps the raw caption,
    adds discourse markers to the advanced paraphrases, and draws uniformly over all unique
    paraphrases. A combined edit applies a kept flip to a kept paraphrase. Each flip is combined with up to three
    paraphrases, drawn at random. In `strict` the flip is applied to the word
    that was flipped in the caption; in `paper`, to its first occurrence in the paraphrase.

    The draws depend only on (seed, item id, caption index, purpose) in both rule sets. The
    paper instead uses a single sequential random.Random(42), with which every draw depends on the order of the dataset.

    Args:
        captions: All captions of the image.
        item_id: Id of the image.
        rules: strict or paper.
        seed: Any whole number.
        kinds: Which of ALL_KINDS to make. Each caption gets at most one edit for each kind outside of LGIP. These edits
            do not count toward the two limits, and no combined edit is made from them.
        k_same: Maximum number of paraphrases per caption.
        k_diff: Maximum number of flips per caption; there are never more than three, one per type.
        tag: The test for simple or advanced paraphrases: by the `rule` that made it, or by the
            paper's `marker` test, which calls the templates "... in the scene" and "a scene showing
            ..." advanced.
        words: Nouns for flips of objects, from `substitution.vocabulary`; any noun in a caption is then exchanged for
            one of them, and no combined edit is made from these flips.
        flip_types: Which of flips.TYPES to make, alone and in combined edits.
        foreign: The language of each caption that is not in English (see `edit_other_languages`).

    Returns:
        The edits for each caption in the order of ALL_KINDS, without duplicate texts or copies of the caption.

    Raises:
        NotFound: unknown rules, kind or tag.
        InvalidInput: an empty caption, or a negative k_same or k_diff.
    """
    kinds = _checked(captions, item_id, rules, kinds, tag)
    if min(k_same, k_diff) < 0:
        raise InvalidInput(
            f"k_same ({k_same}) and k_diff ({k_diff}) must both be at least 0; they limit the "
            "number of edits."
        )
    dropped: Counter[str] = Counter()
    readings = [Reading(caption) for caption in captions]
    image_truths = truths(reading.lower for reading in readings) if rules == "strict" else None
    things = _flip_things(readings, item_id, words, seed, dropped) if words else []
    out = []
    for index, reading in enumerate(readings):
        same = (
            _paraphrases(reading, item_id, index, rules, seed, k_same, dropped)
            if kinds & {"paraphrase", "combined"}
            else []
        )
        different: list[Flip] = []
        if kinds & {"flip", "combined"}:
            if image_truths is None:
                different = flips.literal(reading.text, item_id, index, seed)
            else:
                different = strict.flips(reading, image_truths, item_id, index, seed, dropped)
            if things:
                different = [flip for flip in different if flip.type != "object"]
                different += filter(None, [things[index]])
            different = capped(
                [flip for flip in different if flip.type in flip_types],
                k_diff,
                draw(seed, item_id, index, "flips"),
                dropped,
                "flip",
            )
        edits_by_text: dict[str, Edit] = {}
        for text, rule, subtype, source, target, _ in same if "paraphrase" in kinds else ():
            if tag == "marker":
                subtype = "simple" if templates.has_marker(text) else "advanced"
            edits_by_text[text] = Edit("paraphrase", subtype, rule, source, target)
        if "flip" in kinds:
            for flip in different:
                edits_by_text.setdefault(
                    flip.text,
                    Edit("flip", flip.type, f"flip:{flip.type}", flip.source, flip.target),
                )
        if "combined" in kinds and different and same:
            sampled = sample(same, PARAPHRASES_PER_FLIP, draw(seed, item_id, index, "combined"))
            for text, edit in _combined(different, sampled, rules, dropped):
                edits_by_text.setdefault(text, edit)
        for text, edit in kind_edits.edits(readings, item_id, index, kinds, seed, dropped):
            edits_by_text.setdefault(text, edit)
        edits_by_text.pop(captions[index], None)
        edits_by_text.pop(reading.text, None)
        out.append(tuple(edits_by_text.items()))
    made = edit_other_languages(
        captions,
        item_id,
        CaptionEdits(tuple(out), dict(dropped)),
        foreign,
        rules=rules,
        seed=seed,
        kinds=kinds,
        k_diff=k_diff,
        flip_types=flip_types,
    )
    others = tuple(f"flip:{name}, " for name in flips.TYPES if name not in flip_types)
    reasons = {
        reason: count for reason, count in made.dropped.items() if not reason.startswith(others)
    }
    return CaptionEdits(made.edits, reasons)


def _checked(
    captions: Sequence[str],
    item_id: str,
    rules: str,
    kinds: Iterable[str],
    tag: str,
) -> set[str]:
    if rules not in RULES:
        raise NotFound("rule set", rules, RULES)
    if tag not in TAGS:
        raise NotFound("tag", tag, TAGS)
    kinds = set(kinds)
    for kind in sorted(kinds.difference(ALL_KINDS)):
        raise NotFound("kind of edit", kind, ALL_KINDS)
    for index, caption in enumerate(captions):
        if not caption.strip():
            raise InvalidInput(
                f"Caption {index} of item '{item_id}' is empty. Add a sentence or phrase, "
                "or remove the caption."
            )
    return kinds


def capped(pool: list, cap: int, number: int, dropped: Counter[str], kind: str) -> list:
    """Limit a pool to `cap` members by drawing a random sample, and count the members that are left out."""
    if len(pool) <= cap:
        return pool
    dropped[f"{kind}, over the cap"] += len(pool) - cap
    return sample(pool, cap, number)


def _paraphrases(
    reading: Reading,
    item_id: str,
    index: int,
    rules: str,
    seed: int,
    cap: int,
    dropped: Counter[str],
) -> list[Paraphrase]:
    sentence = Sentence(reading)
    advanced = advanced_rules.paraphrases(sentence)
    if rules == "paper":
        simple = templates.raw(reading.text)
        advanced += advanced_rules.markers(reading.text)
    else:
        simple = templates.fitted(sentence)
    unique: dict[str, Paraphrase] = {}
    for paraphrase in simple + advanced:
        if len(paraphrase.text) >= MIN_LENGTH and paraphrase.text != reading.text:
            unique.setdefault(paraphrase.text, paraphrase)
    number = draw(seed, item_id, index, "paraphrases")
    if rules == "paper":
        return capped(list(unique.values()), cap, number, dropped, "paraphrase")
    simple = [paraphrase for paraphrase in unique.values() if paraphrase.subtype == "simple"]
    advanced = [paraphrase for paraphrase in unique.values() if paraphrase.subtype == "advanced"]
    advanced_cap = max(cap // 2, cap - len(simple))
    chosen_advanced = capped(
        advanced,
        advanced_cap,
        draw(seed, item_id, index, "advanced"),
        dropped,
        "paraphrase",
    )
    return (
        capped(simple, cap - len(chosen_advanced), number, dropped, "paraphrase") + chosen_advanced
    )


def _flip_things(
    readings: Sequence[Reading],
    item_id: str,
    words: substitution.Vocabulary,
    seed: int,
    dropped: Counter[str],
) -> list[Flip | None]:
    """Exchange one noun in each caption for a vocabulary word. A caption with a negation is left unchanged, because it
    could be true with the new word, too.
    """
    captions = [reading.text for reading in readings]
    altered, reasons = substitution.alter(captions, item_id, "rand-voca", seed=seed, words=words)
    dropped.update({f"flip:object, {reason}": count for reason, count in reasons.items()})
    out: list[Flip | None] = []
    for reading, change in zip(readings, altered, strict=True):
        if change and NEGATIVE.intersection(reading.lower):
            dropped["flip:object, under a negation"] += 1
            change = None
        if change:
            edit = change.edit
            out.append(Flip("object", change.text, edit.source, edit.target, start=0, word=""))
        else:
            out.append(None)
    return out


def _combined(
    different: list[Flip],
    same: list[Paraphrase],
    rules: str,
    dropped: Counter[str],
) -> Iterable[tuple[str, Edit]]:
    again = [Reading(paraphrase.text) for paraphrase in same]
    for flip in different:
        if not flip.word:
            dropped["combined, word of a vocabulary"] += len(same)
            continue
        for paraphrase, reading in zip(same, again, strict=True):
            text, target = None, flip.target
            if rules == "paper":
                text = flips.literal_again(paraphrase.text, flip)
            elif (position := paraphrase.where(flip.start)) is not None:
                i = bisect_left(reading.spans, (position,))
                if i < len(reading.spans) and reading.spans[i][0] == position:
                    text, target = strict.exchanged(reading, i, flip.word) or (None, target)
            if text is None:
                dropped["combined, flipped word gone or not certain"] += 1
                continue
            rule = f"{paraphrase.rule}+flip:{flip.type}"
            yield text, Edit("combined", flip.type, rule, flip.source, target, via=paraphrase.text)
