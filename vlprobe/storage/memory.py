"""In-memory LRU cache with a size limit. Concurrent requests for one key share a single computation."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

Value = TypeVar("Value")


class SingleFlightCache:
    """LRU cache that never computes the same key twice at the same time.

    Values that are being computed do not count toward the capacity. A value that is larger than the capacity is
    cached alone. All keys of one form must have values of the same type, because `get` and `get_many` return that type.

    Args:
        capacity: Maximum total size of all values.
        size_of: Returns the size of a value; by default, every value has size 1.
    """

    def __init__(self, capacity: int, size_of: Callable[[Any], int] = lambda value: 1) -> None:
        self._capacity, self._size_of, self._size = capacity, size_of, 0
        # Each value with its size
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._pending: dict[Hashable, Future[Any]] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def peek(self, key: Hashable) -> Any:
        """Return the value for a key, or None if it is not cached."""
        with self._lock:
            return self._values[key][0] if key in self._values else None

    def get(
        self,
        key: Hashable,
        compute: Callable[[], Value],
        is_current: Callable[[], bool] = lambda: True,
    ) -> Value:
        """Return the value for a key, computing it if necessary. Callers must not modify the value.

        Args:
            key: Everything that the value depends on.
            compute: Called if the key is not cached. Concurrent callers wait and get the same
                value or error.
            is_current: Called after `compute`; returns whether the key still covers everything that the value depends
                on. If not, the value is returned but not cached.
        """
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
            running = self._pending.get(key)
            future = self._pending.setdefault(key, Future())
        if running:
            return running.result()
        try:
            value = compute()
            cacheable = is_current()
        except BaseException as error:
            with self._lock:
                del self._pending[key]
            future.set_exception(error)
            raise
        with self._lock:
            del self._pending[key]
            if cacheable:
                self._insert(key, value)
                self._evict()
        future.set_result(value)
        return value

    def get_many(
        self, keys: Sequence[Hashable], compute: Callable[[list[int]], Sequence[Value]]
    ) -> list[Value]:
        """Return the values for several keys. Other values are evicted only after all of them are computed.

        Args:
            keys: The keys. Duplicates are computed once.
            compute: Called at most once, with the positions in `keys` that are not cached; returns one
                value for each position. Concurrent callers do not wait for each other here.
        """
        with self._lock:
            cached = {key: self._values[key][0] for key in keys if key in self._values}
        missing = {key: position for position, key in enumerate(keys) if key not in cached}
        computed = (
            dict(zip(missing, compute(list(missing.values())), strict=True)) if missing else {}
        )
        with self._lock:
            for key, value in computed.items():
                if key not in self._values:
                    self._insert(key, value)
            for key in keys:
                if key in self._values:
                    self._values.move_to_end(key)
            self._evict()
        return [computed[key] if key in computed else cached[key] for key in keys]

    def _insert(self, key: Hashable, value: object) -> None:
        size = self._size_of(value)
        self._values[key] = value, size
        self._size += size

    def _evict(self) -> None:
        while self._size > self._capacity and len(self._values) > 1:
            _, (_, size) = self._values.popitem(last=False)
            self._size -= size
