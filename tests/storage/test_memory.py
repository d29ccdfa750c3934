"""A value that several threads request is computed once, cached while there is room, and never cached under an outdated
key.
"""

import threading

import pytest

from vlprobe.storage.memory import SingleFlightCache


def test_the_least_recently_used_value_is_evicted_first():
    cache, made = SingleFlightCache(100, len), []

    def get(name: str) -> bytes:
        return cache.get(name, lambda: made.append(name) or bytes(40))

    for name in ("a", "b", "a", "c", "a", "b"):
        assert len(get(name)) == 40
    assert made == ["a", "b", "c", "b"]
    # a value above the limit replaces all others
    assert len(cache.get("large", lambda: bytes(1000))) == 1000
    get("b")
    assert made[-1] == "b"


def test_requests_for_a_value_that_is_being_computed_wait_for_it():
    cache, made, first = SingleFlightCache(10), [], threading.Event()
    going = threading.Event()

    def make() -> object:
        made.append(1)
        first.set()
        going.wait(300)
        return object()

    values: list[object] = []
    threads = [
        threading.Thread(target=lambda: values.append(cache.get("a", make))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    assert first.wait(300)
    going.set()
    for thread in threads:
        thread.join(300)
    assert len(made) == 1 and len(values) == 8 and len(set(map(id, values))) == 1


def test_an_error_is_raised_and_not_cached():
    cache = SingleFlightCache(10)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert "a" not in cache and cache.get("a", lambda: 7) == 7


def test_a_value_with_an_outdated_key_is_returned_and_not_cached():
    cache = SingleFlightCache(10)
    assert cache.get("a", lambda: 1, lambda: False) == 1
    assert cache.get("a", lambda: 2) == 2


def test_keys_of_a_batch_are_computed_once_and_the_least_recently_used_is_evicted():
    cache = SingleFlightCache(3)
    computed: list[int] = []

    def positions(rows: list[int]) -> list[int]:
        computed.extend(rows)
        return rows

    assert cache.get_many(["a", "b", "a"], positions) == [2, 1, 2]
    cache.get_many(["c", "d"], positions)
    computed.clear()
    cache.get_many(["a", "c", "d"], positions)
    assert computed == []
    cache.get_many(["b"], positions)  # least recently used, so it was evicted
    assert computed == [0]


def test_a_batch_larger_than_the_cache_is_returned_completely():
    cache = SingleFlightCache(100, len)
    sizes = [60, 70, 80]
    values = cache.get_many(["a", "b", "c"], lambda rows: [bytes(sizes[row]) for row in rows])
    assert [len(value) for value in values] == sizes
    assert [key in cache for key in "abc"] == [False, False, True]
