"""The forecast against what runs of the built-in models then took."""

import pytest

from server.app import build_parts
from server.planning.forecast import forecast
from tests.support.runs import lines, settings, tiny

METHODS = {
    "wasp": [],
    "aug_pe": [],
    # Under noise the lengths that it asks for would be the noise's, with so few records.
    "dpga": ["method.keywords=5", "method.initial=2", "privacy.epsilon=.inf"],
    "pre_text": ["method.look_ahead=2", "method.smoothing=true"],
}


@pytest.mark.parametrize("method", METHODS)
def test_the_forecast_is_within_a_factor_of_two(method, tmp_path):
    overrides = [f"method={method}", *METHODS[method], "method.samples=30", "method.rounds=2"]
    parts = build_parts(settings(*overrides))
    told = forecast(
        parts.method,
        parts.source.task(),
        parts.plan,
        parts.providers,
        parts.spending.prices,
        dimensions=parts.encoder.dimensions,
    )
    rounds = lines(tiny(tmp_path / "run", *overrides), "rounds.jsonl")
    assert 0.8 < told["model_calls"] / sum(line["calls"] for line in rounds) < 1.25
    for kind in ("input", "output"):
        assert 0.5 < told[f"{kind}_tokens"] / sum(line["tokens"][kind] for line in rounds) < 2
