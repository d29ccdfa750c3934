"""OpenCLIP's byte-pair tokenizer by way of a memory of words: the same ids in a twentieth of its
time.

All texts of a call are cut into words at once, as one array of bytes, and each distinct word is
looked up once.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

BLANK, LETTER, DIGIT, MARK = range(4)
CLASSES = np.full(128, MARK, dtype=np.uint8)  # of each ASCII character in lower case
CLASSES[: ord(" ") + 1] = BLANK
CLASSES[ord("a") : ord("z") + 1] = LETTER
CLASSES[ord("0") : ord("9") + 1] = DIGIT
WORDS = 200_000  # remembered at most, some 40 MB


def quick(tokenizer: Callable) -> Callable[[Sequence[str]], np.ndarray]:
    """Texts to ids, int64 of shape (n, context): by words for the tokenizer of CLIP, as it is for
    any other.
    """
    from open_clip.tokenizer import SimpleTokenizer, get_clean_fn

    is_clips = (
        type(tokenizer) is SimpleTokenizer
        and tokenizer.clean_fn is get_clean_fn("lower")
        and tokenizer.reduction_fn is None
        and len(tokenizer.all_special_ids) == 2
    )
    return Words(tokenizer) if is_clips else lambda texts: tokenizer(list(texts)).numpy()


class Words:
    """The ids of each word are asked of OpenCLIP's tokenizer once.

    Printable ASCII without "&" has nothing in it that the tokenizer's repair of Unicode and HTML
    would change, and without "<" none of its special tokens. Every other text is left to the
    tokenizer as a whole.
    """

    def __init__(self, tokenizer: Callable) -> None:
        self._tokenizer = tokenizer
        self._ids_of_word: dict[str, list[int]] = {}

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Int64 of shape (n, context), zero after the end of a text; a longer text ends with the
        end of text too.
        """
        context, start, end = (
            getattr(
                self._tokenizer,
                name,
            )
            for name in ("context_length", "sot_token_id", "eot_token_id")
        )
        tokens = np.zeros((len(texts), context), dtype=np.int64)
        tokens[:, 0] = start
        plain = [
            text.isascii() and text.isprintable() and "&" not in text and "<" not in text
            for text in texts
        ]
        rows = np.flatnonzero(plain)
        ids, lengths = self._by_words([texts[row] for row in rows.tolist()])
        columns = 1 + np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        fits = columns < context - 1
        tokens[np.repeat(rows, lengths)[fits], columns[fits]] = ids[fits]
        tokens[rows, 1 + np.minimum(lengths, context - 2)] = end
        for row in np.flatnonzero(~np.array(plain, dtype=bool)).tolist():
            text_ids = [*self._tokenizer.encode(texts[row])[: context - 2], end]
            tokens[row, 1 : 1 + len(text_ids)] = text_ids
        return tokens

    def _by_words(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The ids of all texts, one after the other, and how many each text has."""
        if not texts:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        letters = np.frombuffer("\n".join([*texts, ""]).lower().encode(), dtype=np.uint8)
        starts = _starts(letters)
        written = letters > ord(" ")
        offsets = np.append(
            np.flatnonzero(starts[written]),
            np.count_nonzero(written),
        ).astype(np.int32)
        buffers = pa.py_buffer(offsets), pa.py_buffer(letters[written])
        words = pa.StringArray.from_buffers(len(offsets) - 1, *buffers).dictionary_encode()
        each = [self._ids(word) for word in words.dictionary.to_pylist()]
        n_words = np.diff(
            np.searchsorted(np.flatnonzero(starts), np.flatnonzero(letters == ord("\n"))),
            prepend=0,
        )
        sizes = np.fromiter(map(len, each), np.int64, len(each))
        word = words.indices.to_numpy()
        size = sizes[word]  # of each word as it comes
        after = np.concatenate([[0], np.cumsum(size)])
        positions = np.arange(after[-1]) + np.repeat(
            (np.cumsum(sizes) - sizes)[word] - after[:-1],
            size,
        )
        flat = np.array([token for ids in each for token in ids], dtype=np.int64)
        return flat[positions], np.diff(after[np.cumsum(n_words)], prepend=0)

    def _ids(self, word: str) -> list[int]:
        ids = self._ids_of_word.get(word)
        if ids is None:
            if len(self._ids_of_word) >= WORDS:
                self._ids_of_word.clear()
            ids = self._ids_of_word[word] = self._tokenizer.encode(word)
        return ids


def _starts(letters: np.ndarray) -> np.ndarray:
    """Where OpenCLIP's pattern begins a word, of lower-case ASCII that ends in a line break; shape
    (n,).

    The pattern: 's|'t|'re|'ve|'m|'ll|'d|[a-z]+|[0-9]|[^ a-z0-9]+, the first that fits at each
    place.
    """
    kind = CLASSES[letters]
    starts = (kind != BLANK) & ((kind == DIGIT) | (np.diff(kind, prepend=BLANK) != 0))
    # one within a run of marks belongs to the run
    at = np.flatnonzero((letters == ord("'")) & starts)
    after = letters[np.minimum(at + 1, len(letters) - 1)]
    two = letters[np.minimum(at + 2, len(letters) - 1)]
    short = np.isin(after, [ord(letter) for letter in "stmd"])
    long = np.isin(
        after,
        [ord("r"), ord("v")],
    ) & (two == ord("e")) | (after == ord("l")) & (two == ord("l"))
    size = np.where(short, 2, 3)[short | long]
    at = at[short | long]
    starts[at + 1] = False
    starts[at + size] |= kind[at + size] != BLANK
    return starts
