"""Messages of a catalogue that name the facts which they show, and choose among wordings by them.

The figures of a guarantee have a form for readers. Bounds on a loss are rounded up, never down.
"""

import math
import re
from collections.abc import Sequence
from functools import cache

import jinja2

from common.phrases import percent, shorten_exponent

Message = str | Sequence["Message"]
"""A sentence with Jinja's marks, or several that follow each other."""


def fill_in(message: Message, **facts: object) -> str:
    """Return a message with its facts filled in, as plain text; sentences that are empty are left out.

    Args:
        message: The message, from a catalogue.
        facts: The values that it may name. A name that is not among them is an error.
    """
    if isinstance(message, str):
        return re.sub(" +", " ", _template(message).render(facts)).strip()
    return " ".join(filter(None, (fill_in(sentence, **facts) for sentence in message)))


@cache
def _template(message: str) -> jinja2.Template:
    return _environment().from_string(message)


@cache
def _environment() -> jinja2.Environment:
    """Return an environment without escaping: whoever shows a message on a page escapes it there."""
    environment = jinja2.Environment(autoescape=False, undefined=jinja2.StrictUndefined)  # noqa: S701 plain text
    environment.filters |= {
        "epsilon": show_epsilon,
        "delta": show_delta,
        "one_in": one_in,
        "times": at_most_times,
        "counted": number_with_noun,
        "plain": "{:g}".format,
        "number": "{:,}".format,
        "percent": percent,
    }
    return environment


def show_epsilon(epsilon: float | str) -> str:
    """Return an epsilon as text with at most three decimals, rounded up (with a numerical tolerance of 1e-5)."""
    value = float(epsilon)
    return "∞" if math.isinf(value) else f"{math.ceil(value * 1000 - 0.01) / 1000:g}"


def show_delta(delta: float) -> str:
    """Return a delta as text with at most three significant digits, such as 1e-5."""
    return shorten_exponent(f"{delta:.3g}")


def one_in(delta: float) -> str:
    """Return a delta above 0 as the text "1 in n", rounded towards the larger probability (with tolerance 1e-6)."""
    return f"1 in {int(1.000001 / delta):,}"


def number_with_noun(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as "1 query" or "2,000 queries"; its plural, if not `many`, has an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def at_most_times(epsilon: float) -> str:
    """Return e^epsilon as text, rounded up.

    This number bounds the ratio of a result's probabilities with and without one protected unit.
    """
    # Above e^20 the number is meaningless to readers, and above e^709 it is no floating-point number.
    return f"{math.ceil(10 * math.exp(epsilon)) / 10:,.12g} times (e to the power ε)" if epsilon < 20 else "e^ε times"
