"""Values that many ask for: each is made once, by whoever asks first, and kept while there is room."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any


class SingleFlightCache:
    """The values that were asked for last, as many as fit.

    What is being made, or is still in use by who asked for it, is not counted; a single value that does not fit is held
    alone.

    Args:
        most: The sum of sizes that is kept.
        size: What a value takes of it; without it, 1 each.
    """

    def __init__(self, most: int, size: Callable[[Any], int] = lambda value: 1) -> None:
        self._most, self._measure, self._size = most, size, 0
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._making: dict[Hashable, Future] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._held

    def get(self, key: Hashable, make: Callable[[], Any], keeps: Callable[[], bool] = lambda: True) -> Any:
        """The value under this key, which nobody may change.

        Args:
            key: Everything that the value depends on.
            make: Makes it where it is not held; who asks meanwhile waits, and gets the same value or the same error.
            keeps: Asked when it is made: whether the key still says all that it depends on.
        """
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key][0]
            waited = self._making.get(key)
            own = self._making.setdefault(key, Future())
        if waited:
            return waited.result()
        try:
            made = make()
            kept = keeps()
        except BaseException as error:
            with self._lock:
                del self._making[key]
            own.set_exception(error)
            raise
        with self._lock:
            del self._making[key]
            if kept:
                self._held[key] = made, self._measure(made)
                self._size += self._held[key][1]
            while self._size > self._most and len(self._held) > 1:
                self._size -= self._held.popitem(last=False)[1][1]
        own.set_result(made)
        return made
