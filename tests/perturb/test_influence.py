import math

import numpy as np
import pytest
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.perturb.influence import (
    agreement,
    elected,
    influence,
    occlusion_map,
    source_words,
    without,
    word_spans,
)
from vlprobe.types import Edit

CAPTIONS = ["A dog on a bench.", "Dogs run", "A dog on a bench."]


def encoder(salt: int, calls: list[list[str]] | None = None):
    """Return a bag-of-words encoder with a random direction for each word."""

    def encode(texts):
        if calls is not None:
            calls.append(list(texts))
        rows = []
        for text in texts:
            row = np.ones(8)
            for word in text.lower().replace(".", "").split():
                row += np.random.default_rng([salt, *word.encode()]).normal(size=8)
            rows.append(row / np.linalg.norm(row))
        return np.array(rows, dtype=np.float32)

    return encode


def test_influence_equals_a_plain_loop_over_words():
    spans = [word_spans(caption) for caption in CAPTIONS]
    influences = influence(CAPTIONS, spans, [encoder(1), encoder(2)])
    assert influences[0] == influences[2]
    for caption, scores in zip(CAPTIONS, influences, strict=True):
        words = caption.rstrip(".").split()
        assert len(scores) == len(words)
        for at, start in enumerate(sorted(scores)):
            rest = " ".join(words[:at] + words[at + 1 :])
            for salt, score in zip((1, 2), scores[start], strict=True):
                whole, part = encoder(salt)([caption])[0], encoder(salt)([rest])[0]
                cosine = sum(float(a) * float(b) for a, b in zip(whole, part, strict=True))
                assert score == pytest.approx(1 - cosine, abs=1e-6)


def test_each_encoder_is_called_once_with_distinct_texts():
    calls: list[list[str]] = []
    influence(CAPTIONS, [word_spans(caption) for caption in CAPTIONS], [encoder(1, calls)])
    assert len(calls) == 1
    assert len(calls[0]) == len(set(calls[0])) == 2 + 5 + 2


def test_no_captions_give_no_influence():
    assert influence([], [], [encoder(1)]) == []


def test_embeddings_of_the_wrong_shape_or_length_are_refused():
    with pytest.raises(InvalidInput, match="shape"):
        influence(["a dog"], [[(2, 5)]], [lambda texts: np.ones((1, 4))])
    with pytest.raises(InvalidInput, match="length 2"):
        influence(["a dog"], [[(2, 5)]], [lambda texts: np.ones((len(texts), 4))])


def test_a_non_finite_embedding_gives_unknown_scores_and_no_vote():
    def broken(texts):
        return np.full((len(texts), 3), np.nan)

    scores = influence(["a dog runs"], [[(2, 5), (6, 10)]], [broken, encoder(3)])[0]
    assert all(math.isnan(row[0]) and math.isfinite(row[1]) for row in scores.values())
    assert elected(scores) == [min(scores, key=lambda start: scores[start][1])]
    assert elected({2: (math.nan,)}) == []


@pytest.mark.parametrize(
    ("caption", "word", "expected"),
    [
        ("A dog on a bench.", "dog", "A on a bench."),
        ("A dog on a bench.", "bench", "A dog on a."),
        ("A dog on a bench . ", "bench", "A dog on a . "),
        ("a dog ", "dog", "a "),
        ("Dogs run", "Dogs", "Run"),
        ("the dog's tail", "dog", "the tail"),
        ("a dog, a cat", "dog", "a, a cat"),
        ("a fire hydrant here", "fire hydrant", "a here"),
        ("a 'dog' barks", "dog", "a '' barks"),
    ],
)
def test_a_deletion_removes_extra_blanks_and_keeps_the_initial_capital(
    caption: str, word: str, expected: str
):
    start = caption.index(word)
    assert without(caption, start, start + len(word)) == expected


def test_the_word_with_most_votes_is_elected_and_so_are_all_tied_words():
    scores = {0: (0.1, 0.9, 0.5), 4: (0.2, 0.1, 0.1), 8: (0.3, 0.2, 0.9)}
    assert elected(scores) == [4]
    assert elected(scores, highest=True) == [8]
    assert elected({0: (0.1, 0.2), 4: (0.2, 0.1)}) == [0, 4]
    assert elected({0: (0.1,), 4: (0.1,), 8: (0.2,)}) == [0, 4]
    assert elected({}) == []


def test_agreement_counts_captions_by_the_number_of_agreeing_encoders():
    both = {0: (0.1, 0.1), 4: (0.2, 0.2)}
    apart = {0: (0.1, 0.2), 4: (0.2, 0.1)}
    assert agreement([both, apart, both, {}]) == {1: 1, 2: 2}


def test_source_words_are_counted_most_frequent_first():
    edits = [
        Edit("substitution", "danger", "danger:k1", source) for source in ("dog", "Dog", "cat")
    ]
    edits.append(Edit("substitution", "danger", "danger:k2", "cat, dog"))
    assert list(source_words(edits).items()) == [("dog", 3), ("cat", 2)]


def mean_color_of_top_left(images):
    """Encode only the color of the top left quarter, ignoring brightness."""
    rows = []
    for image in images:
        pixels = np.asarray(image, np.float64)[: image.height // 2, : image.width // 2]
        row = np.array(
            [pixels[:, ::2].mean() + 1, pixels[:, 1::2].mean() + 1, pixels[::2, :, 0].mean() + 1]
        )
        rows.append(row / np.linalg.norm(row))
    return np.array(rows, dtype=np.float32)


def test_the_occlusion_map_equals_blackening_each_cell_by_hand():
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (30, 41, 3), dtype=np.uint8))
    values = occlusion_map(image, mean_color_of_top_left)
    assert values.shape == (4, 4) and values.dtype == np.float32
    covered = np.zeros((30, 41), int)
    for row in range(4):
        for column in range(4):
            pixels = np.array(image)
            y, x = (
                [round(i * 30 / 4) for i in (row, row + 1)],
                [round(i * 41 / 4) for i in (column, column + 1)],
            )
            pixels[y[0] : y[1], x[0] : x[1]] = 0
            covered[y[0] : y[1], x[0] : x[1]] += 1
            whole, masked = mean_color_of_top_left([image, Image.fromarray(pixels)])
            assert values[row, column] == pytest.approx(float(whole @ masked), abs=1e-6)
    assert (covered == 1).all()
    assert (values[2:, 2:] == values[3, 3]).all() and values[0, 0] < values[3, 3]


def test_a_picture_smaller_than_the_grid_is_refused():
    with pytest.raises(InvalidInput, match="3 x 9 pixels"):
        occlusion_map(Image.new("RGB", (3, 9)), mean_color_of_top_left)
