"""Random draws that depend only on a seed, an item, a caption's index and a purpose, not on the order of calls."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def draw(seed: int, item_id: str, index: int, purpose: str) -> int:
    """Return a pseudorandom whole number in [0, 2**64) that depends only on the arguments."""
    key = f"{seed}\0{item_id}\0{index}\0{purpose}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "little")


def shuffled(pool: Sequence[T], number: int) -> Iterator[T]:
    """Yield the members of a pool in random order.

    Args:
        pool: At most 20 members, so that the 64 random bits decide every order evenly.
        number: Random number from `draw`.
    """
    left = list(pool)
    while left:
        number, i = divmod(number, len(left))
        yield left[i]
        left[i] = left[-1]
        left.pop()


def sample(pool: Sequence[T], count: int, number: int) -> list[T]:
    """Return up to `count` members of a pool in random order. All subsets are equally likely; see `shuffled`."""
    return list(islice(shuffled(pool, number), count))
