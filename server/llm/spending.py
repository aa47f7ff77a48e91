"""Spending of a run: prices, caps on money and tokens for all remote models together, and an account on disk.

A request is sent only if the cap would hold even if this request and all requests under way cost their maximum: one
token for each byte of the prompt, and the longest answer. So the cap is never exceeded, and a run stops a little below
it. Each payment is written as one line when the reply arrives, so that a killed run's spending is known when it
resumes. Replies from the cache were paid for when they first arrived.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from common.errors import ConfigError, ProviderError
from common.validate import at_least, not_empty
from server.documents.rounds import Payment

_MILLION = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one or more requests.

    Attributes:
        input: Tokens read without the prompt cache.
        cached: Tokens read from the provider's prompt cache.
        kept: Tokens read and also written to the provider's prompt cache.
        output: Tokens written by the model.
    """

    input: int = 0
    cached: int = 0
    kept: int = 0
    output: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            kept=self.kept + other.kept,
            output=self.output + other.output,
        )

    @property
    def read(self) -> int:
        """Total number of tokens read, including those read from or written to a prompt cache."""
        return self.input + self.cached + self.kept

    @property
    def tokens(self) -> int:
        """Total number of tokens, read and written."""
        return self.read + self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Prices per million tokens of `Usage`, in the common currency of all prices of the run, as of a date.

    Without a price of their own, tokens read from or written to the prompt cache cost the same as `input`.
    """

    as_of: str
    input: float
    output: float
    cached: float | None = None
    kept: float | None = None

    def __post_init__(self) -> None:
        not_empty(as_of=str(self.as_of))
        at_least(0, input=self.input, output=self.output, cached=self.cached or 0, kept=self.kept or 0)

    def of(self, usage: Usage) -> float:
        """Return the cost of this usage."""
        cached = self.input if self.cached is None else self.cached
        kept = self.input if self.kept is None else self.kept
        money = usage.input * self.input + usage.cached * cached + usage.kept * kept + usage.output * self.output
        return money / _MILLION


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """Payments for one model: for how many replies, their tokens, and the cost; None if the price is unknown."""

    replies: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0

    def __add__(self, other: "Paid") -> "Paid":
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Paid(replies=self.replies + other.replies, usage=self.usage + other.usage, cost=cost)

    @property
    def payment(self) -> Payment:
        """The payments in the form that is written to the run folder."""
        return Payment(
            replies=self.replies,
            input_tokens=self.usage.read,
            cached_tokens=self.usage.cached,
            output_tokens=self.usage.output,
            cost=None if self.cost is None else round(self.cost, 6),
        )


class Spending:
    """The account of one run, shared by its models and their threads.

    Args:
        path: File of the account, JSON Lines; None keeps the account in memory only.
        max_cost: Cap on money, above 0; None for no cap.
        max_tokens: Cap on tokens, read and written, above 0; None for no cap.

    Attributes:
        prices: Prices of the run's models, keyed by name.
    """

    def __init__(
        self, *, path: Path | None = None, max_cost: float | None = None, max_tokens: float | None = None
    ) -> None:
        self.max_cost, self.max_tokens = max_cost, max_tokens
        self.prices: dict[str, Price | None] = {}
        self._path = path
        self._whole = path is None or not path.exists()
        self._lock = threading.Lock()
        self._held, self._held_cost, self._held_tokens = 0, 0.0, 0
        self._paid: dict[str, Paid] = _read(path) if path is not None and path.exists() else {}

    def admits(self, model: str, price: Price | None) -> None:
        """Register a model's price, and check that a cap on money can be enforced.

        Raises:
            ConfigError: There is a cap on money, and the model's price is unknown.
        """
        self.prices[model] = price
        if self.max_cost is not None and price is None:
            expected = f"a known price of every remote model: llm.models.{model}.price"
            do = "Give the price, or cap tokens by llm.max_tokens"
            raise ConfigError("llm.max_cost", expected=expected, got="none", do=do)

    def hold(self, most: Usage, price: Price | None) -> str:
        """Reserve the maximum cost of a request.

        Returns:
            "held" if the cost is reserved; "wait" if a cap allows it only once requests under way have cost less than
            their maximum; "no" if a cap does not allow it in any case.
        """
        cost = price.of(most) if price else 0.0
        with self._lock:
            spent_cost = sum(paid.cost or 0.0 for paid in self._paid.values())
            spent_tokens = sum(paid.usage.tokens for paid in self._paid.values())
            too_dear = self.max_cost is not None and spent_cost + self._held_cost + cost > self.max_cost
            too_many = self.max_tokens is not None and spent_tokens + self._held_tokens + most.tokens > self.max_tokens
            if too_dear or too_many:
                return "wait" if self._held else "no"
            self._held += 1
            self._held_cost += cost
            self._held_tokens += most.tokens
            return "held"

    def settle(self, model: str, most: Usage | None, used: Usage | None, price: Price | None) -> None:
        """Release the reservation `most` and record the usage `used`; each may be None."""
        with self._lock:
            if most is not None:
                self._held -= 1
                self._held_cost -= price.of(most) if price else 0.0
                self._held_tokens -= most.tokens
            if used is not None and used.tokens:
                paid = Paid(replies=1, usage=used, cost=price.of(used) if price else None)
                self._paid[model] = self._paid.get(model, Paid()) + paid
                self._write(model, paid)

    def exhausted(self, model: str, most: Usage, price: Price | None) -> ProviderError:
        """Return the error for a run that is stopped by a cap; its message explains how to resume the run."""
        spent, tokens = self.cost(), sum(paid.usage.tokens for paid in self.paid().values())
        capped = [f"{self.max_cost:g} (llm.max_cost)"] if self.max_cost is not None else []
        capped += [f"{self.max_tokens:g} tokens (llm.max_tokens)"] if self.max_tokens is not None else []
        next_cost = f" or {price.of(most):.2g}" if price else ""
        return ProviderError(
            "the next request could exceed the cap on spending, so none was sent",
            expected=f"at most {' and '.join(capped)}",
            got=f"{tokens} tokens and {spent or 0:.4g} spent; one more may take {most.tokens} tokens{next_cost}",
            where=model,
            do="Nothing is lost: resume with a higher cap, --resume RUN llm.max_cost=... or llm.max_tokens=...",
        )

    def paid(self) -> dict[str, Paid]:
        """Return the payments since the start of the run, keyed by model."""
        with self._lock:
            return dict(self._paid)

    def cost(self) -> float | None:
        """Return the money spent; None if there were payments, but none at a known price."""
        costs = [paid.cost for paid in self.paid().values() if paid.cost is not None]
        return sum(costs) if costs or not self.paid() else None

    def _write(self, model: str, paid: Paid) -> None:
        if self._path is None:
            return
        line = {"model": model, **asdict(paid.usage), "cost": paid.cost}
        with self._path.open("a", encoding="utf-8") as file:
            # A killed run may have left the last line incomplete, so a new line is started.
            file.write(("" if self._whole else "\n") + json.dumps(line) + "\n")
        self._whole = True


def _read(path: Path) -> dict[str, Paid]:
    """Return the sums of the payments in a file, keyed by model; skip lines that a killed run left incomplete."""
    paid: dict[str, Paid] = {}
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            row: Mapping[str, float] = json.loads(line)
        except json.JSONDecodeError:
            continue
        usage = Usage(**{kind: int(row[kind]) for kind in ("input", "cached", "kept", "output")})
        model = str(row["model"])
        paid[model] = paid.get(model, Paid()) + Paid(replies=1, usage=usage, cost=row["cost"])
    return paid
