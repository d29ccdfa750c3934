"""What is drawn depends on the seed, the item, the caption's index and the purpose, and on nothing else."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


def draw(seed: int, item_id: str, index: int, purpose: str) -> int:
    """A whole number in [0, 2**64), uniform over purposes, captions, items and seeds."""
    key = f"{seed}\0{item_id}\0{index}\0{purpose}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "little")


def sample(pool: Sequence[T], count: int, number: int) -> list[T]:
    """Up to `count` members of the pool in random order, each subset as likely as any other.

    Args:
        pool: What to draw from, at most 20 members (so that 64 random bits decide every order evenly).
        count: How many at most.
        number: From `draw`.
    """
    left = list(pool)
    drawn = []
    for _ in range(min(count, len(left))):
        number, at = divmod(number, len(left))
        drawn.append(left[at])
        left[at] = left[-1]
        left.pop()
    return drawn
