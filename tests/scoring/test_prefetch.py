"""Prefetching: in order, in parallel with the model, up to a limit, and with errors passed on."""

import threading
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from vlprobe.scoring.batches import pipelined, prefetched
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.types import Capabilities, DualEncoder, Picture

PATIENCE = 300  # seconds until a missing event fails the test


def test_the_next_batch_is_prepared_while_the_model_processes_one():
    made = threading.Event()
    threads = set()

    def batches():
        yield "a", 1
        yield "b", 2
        made.set()
        yield "c", 3

    def double(batch: int) -> int:
        threads.add(threading.get_ident())
        # this would wait forever if the batches ran one after the other
        assert batch != 2 or made.wait(PATIENCE)
        return 2 * batch

    assert list(pipelined(double, batches(), True)) == [("a", 2), ("b", 4), ("c", 6)]
    assert len(threads) == 1 and threading.get_ident() not in threads


def test_a_single_batch_and_an_unthreaded_pipeline_run_in_the_calling_thread():
    assert list(pipelined(lambda _: threading.get_ident(), iter([("a", 1)]), True)) == [
        ("a", threading.get_ident())
    ]
    assert list(pipelined(len, iter([]), True)) == []
    assert {
        who
        for _, who in pipelined(
            lambda _: threading.get_ident(), zip("abc", "abc", strict=True), False
        )
    } == {threading.get_ident()}


def test_an_error_in_the_thread_is_raised_in_order_and_stops_the_work():
    batches = []

    def do(batch: int) -> int:
        batches.append(batch)
        if batch == 2:
            raise ValueError("two")
        return batch

    found = pipelined(do, ((n, n) for n in range(100)), True)
    assert [next(found) for _ in range(2)] == [(0, 0), (1, 1)]
    with pytest.raises(ValueError, match="two"):
        next(found)
    assert max(batches) <= 4


def test_items_are_prefetched_in_order_up_to_a_limit():
    begun = []
    ahead = prefetched(
        lambda one: begun.append(one) or one, range(20), 2, lambda made: 3 if made is None else 5
    )
    assert next(ahead) == 0
    assert len(begun) <= 6
    assert list(ahead) == list(range(1, 20))
    ahead.close()


class Measured(DualEncoder):
    """An encoder with pictures of 64 KiB, which records the batch sizes."""

    name, digest = "blind", "b" * 32
    capabilities = Capabilities(embeds_texts=True, embeds_images=True, dim=4, image_dim=4)

    def __init__(self) -> None:
        self.sizes = []

    def tokenize(self, texts):
        raise NotImplementedError

    def encode_texts(self, tokens):
        raise NotImplementedError

    def preprocess(self, image):
        return np.full((64, 256), image.width, np.float32)

    def encode_images(self, pixels):
        self.sizes.append(len(pixels))
        return pixels[:, 0, :4] / np.linalg.norm(pixels[:, 0, :4], axis=1, keepdims=True)


@pytest.mark.parametrize(("batch_size", "at_once"), [(16, 16), (32, 32), (64, 32), (500, 32)])
def test_waiting_pictures_stay_within_the_memory_limit(tmp_path, batch_size, at_once):
    shown = []
    for n in range(300):
        Image.new("RGB", (1 + n % 250, 1 + n // 250)).save(tmp_path / f"{n}.bmp")
        shown.append(Picture(tmp_path / f"{n}.bmp"))
    memory, model = 130 * 65_536, Measured()
    encoder = CachedEncoder(model, batch_size=batch_size, workers=2, memory=memory)
    encoder.images(shown[:1])
    tracemalloc.start()
    try:
        encoder.images(shown)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    encoder.close()
    assert max(model.sizes) == at_once
    assert {size % 16 for size in model.sizes} == {0}
    assert peak < 1.1 * memory
