"""The forecast of each method against the tokens that a run of it then took."""

import pytest

from server.app import build_parts
from server.planning.forecast import forecast
from tests.support.runs import lines, settings, tiny

BUILTIN = {
    "wasp": ["method=wasp"],
    "wasp, looking ahead": ["method=wasp", "method.look_ahead=1"],
    "wasp, a length": ["method=wasp", "method.words=25"],
    "aug_pe": ["method=aug_pe"],
    "census": ["method=census", "method.rounds=2", "method.directions=16"],
    "dpga": ["method=dpga", "method.keywords=5", "method.initial=2", "method.rounds=2", "privacy.epsilon=.inf"],
    "fusegen": ["method=fusegen"],
    "pre_text": ["method=pre_text", "method.look_ahead=2", "method.rounds=2"],
    "rpsg": ["method=rpsg", "method.pool=40", "method.refinement.nll=1", "method.rounds=2"],
}
MODELS = {
    "chat": ["wasp", "census", "dpga", "pre_text", "rpsg"],
    "completing": ["aug_pe", "census"],
}


@pytest.mark.parametrize(
    ("models", "case"),
    [("builtin", case) for case in BUILTIN] + [(models, case) for models, cases in MODELS.items() for case in cases],
)
def test_the_forecast_is_within_a_quarter(models, case, tmp_path):
    overrides = [*BUILTIN[case], "method.samples=40", "federation.expected_records=48"]
    if models != "builtin":
        target = f"tests.support.counting_models.{models.capitalize()}"
        overrides += [f"+llm.models.one._target_={target}", "llm.use=[one]"]
    parts = build_parts(settings(*overrides))
    told = forecast(
        parts.method,
        parts.source.task(),
        parts.plan,
        parts.providers,
        parts.spending.prices,
        dimensions=parts.encoder.dimensions,
        records=48,
    )
    rounds = lines(tiny(tmp_path / "run", *overrides), "rounds.jsonl")
    assert told["model_calls"] / sum(line["calls"] for line in rounds) == pytest.approx(1, abs=0.1)
    for kind in ("input", "output"):
        ratio = told[f"{kind}_tokens"] / sum(line["tokens"][kind] for line in rounds)
        assert 0.8 < ratio < 1.25, f"{kind}: {ratio:.2f}"
