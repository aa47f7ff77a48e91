"""What a run pays for: prices, a cap in money and tokens over all remote models, and an account on disk.

A request is let out only if the cap holds even should it, and all that are under way, cost the most they can: every
byte of the prompt a token, and the longest answer. So the cap is never exceeded, and a run stops a little below it.
What was paid is written when the reply comes, a line each, so that a killed run knows what it has spent; replies from
the cache were paid when they came.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import ConfigError, ProviderError
from common.validate import at_least, not_empty, positive

_MILLION = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one request, or of many.

    Attributes:
        input: Read afresh.
        cached: Read from the provider's prompt cache.
        kept: Read, and kept in that cache.
        output: Written.
    """

    input: int = 0
    cached: int = 0
    kept: int = 0
    output: int = 0

    @property
    def read(self) -> int:
        """All tokens read."""
        return self.input + self.cached + self.kept

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.read + self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Money for a million tokens, in whatever currency all prices of the run are.

    Attributes:
        as_of: The date of these prices.
        input: For tokens read.
        output: For tokens written.
        cached: For tokens read from the prompt cache; None: as `input`.
        kept: For tokens put into it; None: as `input`.
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
        """Cost of this usage."""
        cached = self.input if self.cached is None else self.cached
        kept = self.input if self.kept is None else self.kept
        money = usage.input * self.input + usage.cached * cached + usage.kept * kept + usage.output * self.output
        return money / _MILLION


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """Payments to one model.

    Attributes:
        replies: How many.
        usage: Their tokens.
        cost: In money; None where its price is unknown.
    """

    replies: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0

    def __add__(self, other: "Paid") -> "Paid":
        a, b = self.usage, other.usage
        usage = Usage(
            input=a.input + b.input, cached=a.cached + b.cached, kept=a.kept + b.kept, output=a.output + b.output
        )
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Paid(replies=self.replies + other.replies, usage=usage, cost=cost)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        use = self.usage
        return {
            "replies": self.replies,
            "input_tokens": use.read,
            "cached_tokens": use.cached,
            "output_tokens": use.output,
            "cost": self.cost if self.cost is None else round(self.cost, 6),
        }


class Spending:
    """The account of one run, shared by its models, whatever thread they work in.

    Args:
        path: Where it is kept, JSON Lines; None keeps it in memory.
        max_cost: Cap in money; None for none.
        max_tokens: Cap in tokens, read and written; None for none.

    Attributes:
        prices: Of the models that spend from it, by name.
    """

    def __init__(
        self, *, path: Path | None = None, max_cost: float | None = None, max_tokens: float | None = None
    ) -> None:
        if max_cost is not None:
            positive(section="llm", max_cost=max_cost)
        if max_tokens is not None:
            positive(section="llm", max_tokens=max_tokens)
        self.max_cost, self.max_tokens = max_cost, max_tokens
        self.prices: dict[str, Price | None] = {}
        self._path = path
        self._whole = path is None or not path.exists()
        self._lock = threading.Lock()
        self._held, self._held_cost, self._held_tokens = 0, 0.0, 0
        self._paid: dict[str, Paid] = _read(path) if path is not None and path.exists() else {}

    def admits(self, model: str, price: Price | None) -> None:
        """Note a model's price, and see that a cap in money can be kept.

        Raises:
            ConfigError: It cannot, for a model whose price is unknown.
        """
        self.prices[model] = price
        if self.max_cost is not None and price is None:
            raise ConfigError(
                "llm.max_cost",
                expected=f"a known price of every remote model: llm.models.{model}.price",
                got="none",
                do="Give the price, or cap tokens by llm.max_tokens",
            )

    def hold(self, most: Usage, price: Price | None) -> str:
        """Set aside what a request can cost at most.

        Returns:
            "held"; "wait" where a cap forbids it until requests that are under way have cost less than they could; "no"
            where it forbids it for good.
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
        """Give back what was set aside, and enter what was used; None where nothing was."""
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
        """Why the run stops here, and how it goes on."""
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
        """By model, since the run began."""
        with self._lock:
            return dict(self._paid)

    def cost(self) -> float | None:
        """Money spent; None if nothing that was paid for has a known price."""
        known = [paid.cost for paid in self.paid().values() if paid.cost is not None]
        return sum(known) if known or not self.paid() else None

    def _write(self, model: str, paid: Paid) -> None:
        if self._path is None:
            return
        use = paid.usage
        line = {"model": model, "input": use.input, "cached": use.cached, "kept": use.kept, "output": use.output}
        with self._path.open("a", encoding="utf-8") as file:
            # A kill may have cut the last line off: this one begins a new one.
            file.write(("" if self._whole else "\n") + json.dumps(line | {"cost": paid.cost}) + "\n")
        self._whole = True


def _read(path: Path) -> dict[str, Paid]:
    """The sums of an account; a last line that a kill cut off counts for nothing."""
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
