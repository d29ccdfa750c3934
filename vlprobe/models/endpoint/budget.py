"""Cost of requests: tokens before they are sent, money if a price is given, and a limit."""

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
    """The next request could exceed the remaining budget; answers received so far are kept."""


def estimated_tokens(text: str) -> int:
    """Tokens of a text, roughly: four bytes each.

    >>> estimated_tokens("a red dog")
    3
    """
    return max(1, -(-len(text.encode()) // 4))


class Budget:
    """Spending and limit of this command or job, shared by its threads.

    Args:
        price: PRICE_FORM; "" reports no money.
        max_cost: The limit, in the currency of the price; "": no limit.

    Raises:
        InvalidInput: one of them is not a valid amount, or there is a limit without a price.
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
        self._excess = 1.0  # the most by which an estimate was exceeded
        self._lock = threading.Lock()

    def cost(self, sent: int, received: int) -> float:
        """Money that so many tokens cost; 0 without a price."""
        return sent * self._sent + received * self._received

    def promise(self, sent: int, received: int) -> float:
        """Reserve the maximum cost of a request; `settled` releases it. Raises LimitReached."""
        with self._lock:
            amount = self.cost(sent, received) * self._excess
            if self.spent + self._promised + amount > self.limit:
                raise LimitReached(
                    f"Stopped before the next request: {self.spent:.4g} of {self.limit:.4g} is "
                    f"spent, and the request may cost {amount:.2g}. Answers are stored and not "
                    "requested again. Continue with a higher --max-cost."
                )
            self._promised += amount
            return amount

    @contextmanager
    def settled(self, promised: float, expected: float) -> Iterator["Bill"]:
        """Count the actual cost of a request, whether it succeeds or fails.

        Args:
            promised: The return value of `promise`.
            expected: The expected cost, without any excess.
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
    """Cost of one request."""

    attempts_lost: int = 0  # without an answer, which may be charged for
    is_answered: bool = False
    tokens: tuple[int, int] | None = None  # sent and received; None if no answer reports them
