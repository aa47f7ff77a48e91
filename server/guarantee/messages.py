"""Messages of a catalogue that name the facts which they show, and choose among wordings by them."""

import re
from collections.abc import Sequence
from functools import cache

import jinja2

from server.guarantee.figures import at_most_times, number_with_noun, one_in, show_delta, show_epsilon

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
    }
    return environment
