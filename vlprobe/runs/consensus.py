"""Agreement between encoders on the least influential noun in each caption, and the nouns they choose most often.

Source: RoCOCO, appendix A and figure 11.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from vlprobe.errors import InvalidInput
from vlprobe.perturb import influence, substitution
from vlprobe.perturb.draws import draw
from vlprobe.perturb.influence import Encode, Scores, Span

PRINTED = 0.7  # "in over 70% of cases, two or more models select the same word": of four models
BLOCK = 64  # pictures whose captions are embedded at once


class Consensus(NamedTuple):
    """Agreement between encoders on the captions in a dataset (the data for RoCOCO's figure 11)."""

    # encoders (that choose the same noun), captions, share, by_chance (the share if each chose one
    # of a caption's nouns at random)
    agreement: pd.DataFrame
    source_words: pd.DataFrame  # word, captions, share; most frequent first
    n_captions: int  # captions with a noun and a vote
    n_single: int  # captions with only one noun, on which all encoders agree

    @property
    def share_of_two(self) -> float:
        """Return the share of captions for which at least two encoders choose the same noun."""
        return float(self.agreement.loc[self.agreement["encoders"] >= 2, "share"].sum())

    @property
    def chance_of_two(self) -> float:
        """Return the share of captions on which at least two encoders would agree if each chose a noun at random."""
        return float(self.agreement.loc[self.agreement["encoders"] >= 2, "by_chance"].sum())


def consensus(
    captions: Mapping[str, Sequence[str]],
    encoders: Sequence[Encode],
    seed: int = 42,
    all_words: bool = False,
) -> Consensus:
    """Find the noun in each caption that influences each encoder least, and count how often the encoders agree. The
    influence of a noun on the encoder f in the caption C is 1 - cos(f(C), f(C without the noun)).

    Args:
        captions: Captions for each picture, by item id.
        encoders: At least two encoders, each with one vote.
        seed: Seed for breaking ties, as in a run with the same encoders.
        all_words: Whether to consider all words instead of only nouns. The paper scores all words and replaces nouns.

    Raises:
        InvalidInput: there are fewer than two encoders, or no caption has a noun.
    """
    if len(encoders) < 2:
        n_given = "is only one" if encoders else "are none"
        raise InvalidInput(
            f"Agreement is measured between two or more encoders, but there {n_given}. Add "
            "another encoder with --model."
        )
    scores: list[Scores] = []
    words = Counter[str]()
    item_ids = list(captions)
    for start in range(0, len(item_ids), BLOCK):
        texts = [
            (item_id, index, text)
            for item_id in item_ids[start : start + BLOCK]
            for index, text in enumerate(captions[item_id])
        ]
        spans = [_spans(text, all_words) for _, _, text in texts]
        by_caption = influence.influence([text for *_, text in texts], spans, encoders)
        scores += by_caption
        for (item_id, index, text), caption_spans, votes in zip(
            texts, spans, by_caption, strict=True
        ):
            level = influence.elected(votes)
            if level:
                source = min(level, key=lambda start: draw(seed, item_id, index, f"source:{start}"))
                words[text[source : dict(caption_spans)[source]].lower()] += 1
    return _consensus(scores, words, len(encoders))


def voting_texts(captions: Iterable[str], all_words: bool = False) -> list[str]:
    """List everything that an encoder must embed to vote: each caption, and each caption with one of its nouns removed.

    Args:
        all_words: Whether to remove each word in turn instead of each noun.
    """
    texts: dict[str, None] = {}
    for caption in captions:
        shortened = (influence.without(caption, *span) for span in _spans(caption, all_words))
        texts |= dict.fromkeys((caption, *shortened))
    return list(texts)


def _spans(caption: str, all_words: bool) -> list[Span]:
    if all_words:
        return influence.word_spans(caption)
    return [(noun.start, noun.end) for noun in substitution.sources(caption)]


def _consensus(scores: Sequence[Scores], words: Counter[str], n_encoders: int) -> Consensus:
    captions_by_votes = influence.agreement(scores)
    n_captions = sum(captions_by_votes.values())
    if not n_captions:
        raise InvalidInput(
            "No caption has a noun to compare. Expected captions in English, and encoders "
            "with finite embeddings."
        )
    voted = [len(each) for each in scores if influence.elected(each)]
    expected = dict.fromkeys(range(1, n_encoders + 1), 0.0)
    for n_nouns, count in Counter(voted).items():
        for votes, probability in influence.agreement_by_chance(n_nouns, n_encoders).items():
            expected[votes] += count * probability
    rows = [
        (votes, captions_by_votes.get(votes, 0), expected[votes] / n_captions)
        for votes in range(1, n_encoders + 1)
    ]
    table = pd.DataFrame(rows, columns=pd.Index(["encoders", "captions", "by_chance"]))
    table.insert(2, "share", table["captions"] / n_captions)
    word_table = pd.DataFrame(words.most_common(), columns=pd.Index(["word", "captions"]))
    word_table["share"] = word_table["captions"] / max(words.total(), 1)
    return Consensus(table, word_table, n_captions, voted.count(1))
