"""The calls of language models that a run will make, told before the first one; where they are many, a person decides.

Built-in models cost nothing and take seconds, so a run with no other models is neither rehearsed nor asked about.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from common.errors import CaucusError
from common.system.progress import is_agreed
from server.planning.forecast import forecast
from server.prepare.automatic import asked_in_chats, built_in, expected_records
from server.prepare.components import RunComponents
from server.settings.schema import Settings

AGREED: Mapping[str, Any] = {"llm.confirm_calls": None}
"""Change of a run's settings once its calls are agreed on, so that no other process asks again."""
_FEWER = "Ask for fewer texts (method.samples)"


def expected_calls(settings: Settings, parts: RunComponents) -> dict[str, dict[str, Any]]:
    """Return the forecast of each model that is not built in, keyed by name (`server.planning.forecast.forecast`)."""
    names = [name for name in parts.providers if name not in built_in(settings)]
    if not names:
        return {}
    models = forecast(
        parts.method,
        parts.source.task(),
        parts.plan,
        parts.providers,
        parts.spending.prices,
        dimensions=parts.encoder.dimensions,
        records=expected_records(settings),
    )["models"]
    return {name: models[name] for name in names if models[name]["calls"]}


def call_lines(expected: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line on each model: its calls, the tokens that it reads and writes, and its cost if it has a price."""
    for name, model in expected.items():
        cost = (
            "its price is unknown" if model["cost"] is None else f"{model['cost']:,.4g} in the currency of the prices"
        )
        yield (
            f"{name}: about {model['calls']:,} calls, {model['input_tokens']:,} tokens read and "
            f"{model['output_tokens']:,} written, if no text is lost" + (f"; {cost}" if model["cost"] != 0 else "")
        )


def check_calls(expected: Mapping[str, Mapping[str, Any]], settings: Settings, parts: RunComponents) -> None:
    """Ask whether to make more calls than `llm.confirm_calls`, of models that are remote or asked in chats.

    The expected calls are those of `expected_calls`.

    Raises:
        ConfigError: There is no terminal to ask at.
        CaucusError: The answer was no.
    """
    most, chats = settings.llm.confirm_calls, asked_in_chats(settings)
    calls = sum(model["calls"] for name, model in expected.items() if parts.providers[name].remote or name in chats)
    if most is None or calls <= most:
        return
    what = f"about {calls:,} calls of language models, more than llm.confirm_calls={most:,.0f}"
    do = f"--yes goes on, and llm.confirm_calls=null always does; or: {_FEWER}"
    if not is_agreed(f"{what}: go on?", what=what, do=do):
        raise CaucusError("no model was asked", do=_FEWER)
