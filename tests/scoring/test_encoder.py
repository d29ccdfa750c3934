"""The encode planner: each input is encoded once, with the same numbers for any batch, cache or order."""

import contextlib
import itertools

import numpy as np
import pytest
from PIL import Image

from tests.conftest import tiers
from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.models import controls
from vlprobe.scoring import encoder as scoring_encoder
from vlprobe.scoring import vectors as scoring_vectors
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.scoring.spread import similarity_spread
from vlprobe.scoring.vectors import VectorStore
from vlprobe.types import DualEncoder, Picture


class Counted(DualEncoder):
    """A control model that counts its encoded inputs, without those that only pad a batch."""

    def __init__(self, name: str = "control:random") -> None:
        self._model = controls.load(name)
        self.name, self.digest, self.dim = self._model.name, self._model.digest, self._model.dim
        self.preprocess = self._model.preprocess
        self.n_texts = self.n_images = 0

    @property
    def capabilities(self):
        return self._model.capabilities

    def tokenize(self, texts):
        # like CLIP's, this tokenizer ignores case
        return self._model.tokenize([text.lower() for text in texts])

    def encode_texts(self, tokens):
        self.n_texts += len(np.unique(tokens, axis=0))
        return self._model.encode_texts(tokens)

    def encode_images(self, pixels):
        self.n_images += len(np.unique(pixels, axis=0))
        return self._model.encode_images(pixels)


@pytest.fixture
def photos(tmp_path):
    made = []
    for number in range(5):
        path = tmp_path / f"{number}.png"
        Image.new("RGB", (9, 9), (number, 0, 0)).save(path)
        made.append(Picture(path))
    return made


def test_each_distinct_text_is_encoded_once_and_results_keep_the_requested_order():
    model = Counted()
    found = CachedEncoder(model, batch_size=1).texts(["b", "a", "b", "ccc"])
    assert model.n_texts == 3
    assert (found[0] == found[2]).all()
    assert not (found[0] == found[1]).all()
    assert (found[1] == CachedEncoder(model).texts(["a"])[0]).all()


def test_texts_with_equal_tokens_tie_exactly():
    model = Counted()
    found = CachedEncoder(model).texts(["A Dog", "a dog"])
    assert model.n_texts == 1
    assert (found[0] == found[1]).all()


def test_texts_of_one_length_with_equal_beginnings_are_neighbors_in_batches():
    rows = []

    class Noted(Counted):
        def encode_texts(self, tokens):
            rows.extend(map(tuple, tokens.tolist()))
            return super().encode_texts(tokens)

    model = Noted()
    texts = ["two dogs run", "a red car", "two dogs sit", "A red bus", "two cats run"]
    embedded = CachedEncoder(model, batch_size=1).texts(texts)
    alike = ["A red bus", "a red car", "two cats run", "two dogs run", "two dogs sit"]
    expected = [tuple(row) for text in alike for row in model.tokenize([text]).tolist()]
    assert [row for row, _ in itertools.groupby(rows)] == expected
    single = [CachedEncoder(model).texts([text])[0] for text in texts]
    assert (embedded == np.stack(single)).all()


def test_only_texts_marked_to_keep_are_cached():
    model = Counted()
    encoder = CachedEncoder(model)
    encoder.texts(["a", "b"], keep=True)
    encoder.texts(["a", "c"])
    encoder.texts(["c", "b"])
    assert model.n_texts == 4


def test_a_second_process_uses_the_stored_embeddings_of_the_first(tmp_path, photos):
    first, second = Counted(), Counted()
    one = CachedEncoder(first, tmp_path)
    texts, images = one.texts(["a", "b"], keep=True), one.images(photos)
    one.close()
    again = CachedEncoder(second, tmp_path)
    assert (again.texts(["b", "a"]) == texts[::-1]).all()
    assert (again.images(photos[::-1]) == images[::-1]).all()
    assert (second.n_texts, second.n_images) == (0, 0)


def test_two_copies_of_one_picture_are_encoded_once(tmp_path, photos):
    copy = tmp_path / "copy.png"
    copy.write_bytes(photos[0].path.read_bytes())
    model = Counted()
    found = CachedEncoder(model, batch_size=2).images([*photos, Picture(copy), photos[0]])
    assert model.n_images == 5
    assert (found[0] == found[-1]).all() and (found[0] == found[-2]).all()


def test_a_damaged_embedding_file_is_named(tmp_path):
    vectors = VectorStore(4, tmp_path)
    vectors.put([b"0" * 16], np.ones((1, 4), np.float32))
    vectors.close()
    file = next(tmp_path.glob("*.npy"))
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(InvalidInput, match=f"{file.name}' is damaged"):
        VectorStore(4, tmp_path)


def test_progress_is_reported_after_each_batch():
    steps = []
    CachedEncoder(Counted(), batch_size=1, progress=lambda *step: steps.append(step)).texts(
        [str(n) for n in range(9)]
    )
    assert steps == [("texts", 4, 9), ("texts", 8, 9), ("texts", 9, 9)]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda n, dim: np.ones((n, dim + 1), np.float32), "expected float32 of shape"),
        (lambda n, dim: np.ones((n, dim)), "returned float64 texts"),
        (lambda n, dim: np.full((n, dim), np.nan, np.float32), "NaN or infinite"),
    ],
)
def test_an_invalid_embedding_is_refused(answer, said):
    model = Counted()
    model.encode_texts = lambda tokens: answer(len(tokens), model.dim)
    with pytest.raises(InvalidInput, match=said):
        CachedEncoder(model).texts(["a"])


def test_the_similarity_spread_is_the_deviation_over_mismatched_pairs(photos):
    captions = [[f"caption {n}{m}" for m in range(2)] for n in range(5)]
    encoder = CachedEncoder(Counted())
    found = similarity_spread(encoder, photos, captions)
    images = encoder.images(photos)
    apart = [
        float(images[i] @ encoder.texts([text])[0])
        for i in range(5)
        for j in range(5)
        if i != j
        for text in captions[j]
    ]
    assert found == pytest.approx(np.std(apart), rel=1e-5)


def test_the_spread_of_one_picture_is_unknown(photos):
    assert np.isnan(similarity_spread(CachedEncoder(Counted()), photos[:1], [["a"]]))


def test_padding_columns_do_not_change_the_identity_of_a_text(tmp_path):
    model = Counted()

    def tokenize(texts):
        rows = np.full((len(texts), 16 + max(map(len, texts))), -1)
        rows[:, :16] = model._model.tokenize(texts)
        return rows

    model.tokenize = tokenize
    model.encode_texts = lambda tokens: model._model.encode_texts(tokens[:, :16])
    with contextlib.closing(CachedEncoder(model, tmp_path)) as encoder:
        first = encoder.texts(["a"], keep=True)
    sizes = []
    encode = model.encode_texts
    model.encode_texts = lambda tokens: (
        sizes.append(len(np.unique(tokens, axis=0))) or encode(tokens)
    )
    again = CachedEncoder(model, tmp_path).texts(["a", "a longer one"])
    assert sizes == [1] and (again[0] == first[0]).all()


def make_keyed(n: int, first: int = 0) -> tuple[list[bytes], np.ndarray]:
    keys = [number.to_bytes(16) for number in range(first, first + n)]
    return keys, np.repeat(np.arange(first, first + n, dtype=np.float32)[:, None], 3, axis=1)


@pytest.mark.parametrize("on_disk", [True, False])
def test_embeddings_are_found_in_memory_and_on_disk(tmp_path, monkeypatch, on_disk):
    monkeypatch.setattr(scoring_vectors, "FILE_BYTES", 5 * 28)  # five rows
    vectors = VectorStore(3, tmp_path if on_disk else None)
    for start in range(0, 22, 2):
        vectors.put(*make_keyed(2, start))
    # files of six rows; four rows still wait
    assert len(list(tmp_path.glob("*.npy"))) == (3 if on_disk else 0)
    order = np.random.default_rng(0).permutation(22)
    keys, expected = make_keyed(22)
    assert (vectors.get([keys[number] for number in order]) == expected[order]).all()
    assert keys[3] in vectors and b"x" * 16 not in vectors


def test_small_files_are_merged_while_another_process_still_reads_them(tmp_path):
    for start in range(0, 40, 2):
        vectors = VectorStore(3, tmp_path)
        vectors.put(*make_keyed(2, start))
        vectors.flush()
        if start == 20:
            reader = VectorStore(3, tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 20
    vectors.close()
    assert len(list(tmp_path.glob("*.npy"))) == 1
    keys, expected = make_keyed(40)
    assert (VectorStore(3, tmp_path).get(keys) == expected).all()
    assert (reader.get(keys[:20]) == expected[:20]).all()


def test_waiting_embeddings_are_written_after_a_while(tmp_path, monkeypatch):
    vectors = VectorStore(3, tmp_path)
    vectors.put(*make_keyed(2))
    assert not list(tmp_path.glob("*.npy"))
    monkeypatch.setattr(scoring_vectors, "FLUSH_SECONDS", 0)
    vectors.put(*make_keyed(2, 2))
    assert (VectorStore(3, tmp_path).get(make_keyed(4)[0]) == make_keyed(4)[1]).all()


@pytest.mark.parametrize(
    "change",
    [{"batch_size": 1}, {"workers": 7}, {"memory": 1}],
    ids=lambda change: next(iter(change)),
)
def test_performance_options_change_no_embedding(photos, change):
    pictures = [*photos, photos[2]]
    one, other = CachedEncoder(Counted()), CachedEncoder(Counted(), **change)
    assert (one.images(pictures) == other.images(pictures)).all()
    assert (one.texts(["b", "a b c", "a"]) == other.texts(["b", "a b c", "a"])).all()


@pytest.mark.parametrize("name", tiers(["demo:softmax", "demo:weak"], ("demo:softmax",)))
def test_other_inputs_in_a_batch_change_no_bit_of_an_embedding(name, tmp_path):
    words, chance = (
        ["a", "red", "cat", "on", "two", "big", "boats", "near", "small"],
        np.random.default_rng(5),
    )
    texts = sorted({" ".join(chance.choice(words, chance.integers(1, 14))) for _ in range(150)})
    pictures = []
    for number in range(70):
        pictures.append(Picture(tmp_path / f"{number}.png"))
        Image.fromarray(chance.integers(0, 256, (32, 32, 3), np.uint8)).save(pictures[-1].path)
    encoder = CachedEncoder(registry.load_model(name, "cpu"))
    whole, seen = encoder.texts(texts), encoder.images(pictures)
    for size in (1, 2, 7, 33, 69):
        fresh = CachedEncoder(encoder.model, memory=1 if size > 50 else 2 << 30)
        chosen = chance.permutation(len(texts))[:size]
        assert (fresh.texts([texts[row] for row in chosen]) == whole[chosen]).all()
        chosen = chance.permutation(len(pictures))[:size]
        assert (fresh.images([pictures[row] for row in chosen]) == seen[chosen]).all()


def test_texts_tokenized_in_many_chunks_are_still_encoded_once(monkeypatch):
    texts = [f"{name} {number}" for number in range(5) for name in ("Dog", "dog", "cat")]
    whole = CachedEncoder(Counted()).texts(texts)
    monkeypatch.setattr(scoring_encoder, "TOKENIZE_CHUNK", 2)
    model = Counted()
    assert (CachedEncoder(model).texts(texts) == whole).all()
    assert model.n_texts == 10


def test_pictures_are_read_ahead_of_the_model_up_to_a_limit(photos, monkeypatch):
    opened = []
    read = scoring_encoder.pictures.read
    monkeypatch.setattr(
        scoring_encoder.pictures, "read", lambda picture: opened.append(picture) or read(picture)
    )
    copies = []
    for number in range(40):
        path = photos[0].path.with_name(f"copy{number}.png")
        path.write_bytes(photos[0].path.read_bytes() + bytes([number]))
        copies.append(Picture(path))
    seen = []
    model = Counted()
    encode = model.encode_images
    model.encode_images = lambda pixels: seen.append(len(opened)) or encode(pixels)
    CachedEncoder(model, batch_size=4, workers=1).images(copies)
    assert len(seen) == 10 and seen[0] < 20
    assert len(opened) == 40
