"""The cost of requests: an estimate of tokens before they are sent, money if a price is given, and a spending limit."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from vlprobe.errors import InvalidInput, VlprobeError

PRICE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(?:/([0-9]{1,9}(?:\.[0-9]{1,9})?))?")
AMOUNT = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
PRICE_FORM = "a price per million tokens, such as 0.02, or input/output prices, such as 2.5/10"
MILLION = 1_000_000


class LimitReached(VlprobeError):
    """Raised if the next request could exceed the remaining budget. Answers received so far are kept."""


def estimated_tokens(text: str) -> int:
    """Estimate the number of tokens in a text, at four bytes per token.

    >>> estimated_tokens("a red dog")
    3
    """
    return max(1, -(-len(text.encode()) // 4))


class Budget:
    """The spending and the limit of a command or job, shared by its threads.

    Args:
        price: The price as described in PRICE_FORM, or "" to report no money.
        max_cost: The limit in the currency of the price, or "" for no limit.

    Raises:
        InvalidInput: An argument is not a valid amount, or there is a limit without a price.
    """

    def __init__(self, price: str = "", max_cost: str = "") -> None:
        match = PRICE.fullmatch(price)
        if price and not match:
            raise InvalidInput(f"Price '{price}' is not a valid amount. Expected {PRICE_FORM}.")
        if max_cost and not AMOUNT.fullmatch(max_cost):
            raise InvalidInput(
                f"Limit '{max_cost}' is not a valid amount. Expected an amount such as 1.50."
            )
        if max_cost and not price:
            raise InvalidInput(f"--max-cost requires --price, {PRICE_FORM}.")
        self.has_price, self.limit = bool(match), float(max_cost) if max_cost else float("inf")
        sent, received = match.groups() if match else ("0", "0")
        self._sent, self._received = float(sent) / MILLION, float(received or sent) / MILLION
        self.spent = self._promised = 0.0
        self._excess = 1.0  # the largest factor by which a request exceeded its estimate
        self._lock = threading.Lock()

    def cost(self, sent: int, received: int) -> float:
        """Return the money that a number of sent and received tokens costs, or 0 without a price."""
        return sent * self._sent + received * self._received

    def promise(self, sent: int, received: int) -> float:
        """Reserve the maximum cost of a request, which `settled` releases. Raises LimitReached."""
        with self._lock:
            amount = self.cost(sent, received) * self._excess
            if self.spent + self._promised + amount > self.limit:
                raise LimitReached(
                    f"Stopped before the next request: {self.spent:.4g} of {self.limit:.4g} is "
                    f"spent, and the request may cost {amount:.2g}. Answers are stored and will "
                    "not be requested again. To continue, set a higher --max-cost."
                )
            self._promised += amount
            return amount

    @contextmanager
    def settled(self, promised: float, expected: float) -> Iterator["Bill"]:
        """Count the actual cost of a request, whether it succeeds or fails.

        Args:
            promised: The reserved amount that `promise` returned.
            expected: The expected cost, without the factor for exceeded estimates.
        """
        bill = Bill()
        try:
            yield bill
        finally:
            with self._lock:
                self._promised -= promised
                actual = self.cost(*bill.tokens) if bill.tokens else expected
                self.spent += expected * bill.attempts_lost + (actual if bill.is_answered else 0.0)
                if bill.tokens and expected:
                    self._excess = max(self._excess, actual / expected)


@dataclass
class Bill:
    """The cost of one request."""

    attempts_lost: int = 0  # attempts without an answer, which the server may still charge for
    is_answered: bool = False
    tokens: tuple[int, int] | None = None  # sent and received; None if no answer reports them
