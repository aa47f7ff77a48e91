"""The body of a chat completion: what it may say, and the errors that name what it may not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.errors import ConfigError
from common.validate import in_range, integers, integers_in, known_keys, one_of

MOST_TOKENS = 512
"""Tokens of an answer whose request names no limit."""
ROLES = ("system", "developer", "user", "assistant")
_LENGTHS = ("max_completion_tokens", "max_tokens")
_FIELDS = ("model", "messages", *_LENGTHS, "temperature", "top_p", "seed", "n", "stop", "stream")
_SEEDS = 2**63  # what engines take
_LEAST_TOP_P = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatBody:
    """A request for a chat completion that can be answered, but for the length of its prompt.

    Attributes:
        model: Name of the model.
        turns: The messages; a developer's are a system's.
        max_tokens: Maximum number of tokens of the answer.
        length_field: Name of the field for it, as the client writes it.
        temperature: Temperature of the sampling.
        top_p: Total probability of the most probable tokens, from which each token is sampled; None leaves it to the
            server.
        seed: Seed of the draws, in [0, 2^63); None leaves it to the server.
        stop: Text that ends the answer; empty for none.
    """

    model: str
    turns: tuple[Mapping[str, str], ...]
    max_tokens: int = MOST_TOKENS
    length_field: str = _LENGTHS[0]
    temperature: float = 1.0
    top_p: float | None = None
    seed: int | None = None
    stop: str = ""


def read_body(body: object) -> ChatBody:
    """Check the body of a request, and return what it asks for; null stands for a field's default.

    Raises:
        ConfigError: A field is unknown, missing or wrong; `what` is its name. The message shows no message's content.
    """
    if not isinstance(body, dict):
        raise ConfigError("body", expected="a JSON object", got=type(body).__name__)
    fields: dict[str, Any] = {name: value for name, value in body.items() if value is not None}
    known_keys("", fields, among=_FIELDS, required=("model", "messages"))
    if not isinstance(fields["model"], str):
        raise ConfigError("model", expected="text", got=type(fields["model"]).__name__)
    if fields.get("n", 1) != 1:
        raise ConfigError("n", expected="1", got=fields["n"], do="Send one request for each answer")
    if fields.get("stream", False) is not False:
        raise ConfigError("stream", expected="false", got=fields["stream"])
    lengths = [name for name in _LENGTHS if name in fields]
    if len(lengths) > 1:
        raise ConfigError(lengths[0], expected=f"this or {lengths[1]}", got="both")
    checked: dict[str, Any] = {
        "model": fields["model"],
        "turns": _turns(fields["messages"]),
        "stop": _stop(fields.get("stop", "")),
        **{name: fields[name] for name in ("temperature", "top_p", "seed") if name in fields},
    }
    in_range(0, 2, temperature=checked.get("temperature", 1))
    in_range(_LEAST_TOP_P, 1, top_p=checked.get("top_p", 1))
    integers_in(0, _SEEDS - 1, seed=checked.get("seed", 0))
    if lengths:
        integers(1, **{lengths[0]: fields[lengths[0]]})
        checked |= {"max_tokens": fields[lengths[0]], "length_field": lengths[0]}
    return ChatBody(**checked)


def _turns(messages: object) -> tuple[Mapping[str, str], ...]:
    if not isinstance(messages, list) or not messages:
        raise ConfigError("messages", expected="a list of at least one message", got=type(messages).__name__)
    return tuple(map(_turn, range(len(messages)), messages))


def _turn(place: int, message: object) -> Mapping[str, str]:
    where = f"messages[{place}]"
    fields = known_keys(where, message, among=("role", "content", "name"), required=("role", "content"))
    one_of(f"{where}.role", fields["role"], among=ROLES)
    content = fields["content"]
    if not isinstance(content, str):
        raise ConfigError(f"{where}.content", expected="text", got=type(content).__name__)
    try:
        content.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{where}.content", expected="text", got="half of a surrogate pair") from error
    return {"role": "system" if fields["role"] == "developer" else fields["role"], "content": content}


def _stop(stop: object) -> str:
    texts: Sequence[object] = stop if isinstance(stop, list) else [stop]
    if len(texts) > 1 or not all(isinstance(text, str) for text in texts):
        raise ConfigError("stop", expected="one text", got=f"{len(texts)} values")
    return "".join(map(str, texts))
