"""The forecast of large runs, compared with a forecast for which the same runs are rehearsed in full."""

import pytest

from server.page.drafts import MADE
from server.planning import forecast
from server.planning.signal import CLEAR, HOPELESS, signals
from server.prepare.components import build_components
from tests.support.lanes import slow_but
from tests.support.runs import settings

SIZES = {
    "wasp": ["method.samples=1000", "method.rounds=3"],
    "aug_pe": ["method.samples=400", "method.rounds=3"],
    "class_sums": ["method.samples=2000", "method.directions=16", "method.rounds=2"],
    "dpga": ["method.samples=200", "method.rounds=3", "method.keywords=10"],
    "fusegen": ["method.samples=2000", "method.rounds=3"],
    "pre_text": ["method.samples=600", "method.rounds=3"],
    "rpsg": ["method.samples=600", "method.rounds=2"],
}
LEFT_OUT = {"aug_pe_plus", "dp_kps", "dp_sgd", "rupta"}  # need a vocabulary, or ask no model
METHODS = {method: SIZES.get(method, ["method.samples=1000"]) for method in MADE if method not in LEFT_OUT}


@pytest.mark.parametrize("method", slow_but({"wasp", "class_sums"}, METHODS))
def test_a_large_run_is_forecast_from_smaller_ones(method, monkeypatch):
    parts = build_components(settings(f"method={method}", *METHODS[method]))

    def rehearsed(most):
        monkeypatch.setattr(forecast, "_MOST", most)
        uses = forecast.rehearse(parts.method, parts.source.task(), parts.plan, parts.providers, dimensions=32)
        return [sum(getattr(use, kind) for use in uses.values()) for kind in ("calls", "input_tokens", "output_tokens")]

    texts = parts.method.max_texts(parts.source.task(), tuple(parts.providers))
    assert rehearsed(texts // 3) == pytest.approx(rehearsed(10**9), rel=0.1)


def test_a_million_texts_are_forecast_as_fast_as_some_thousand():
    parts = build_components(settings("method=aug_pe", "method.samples=1000000"))
    estimate = forecast.forecast(
        parts.method, parts.source.task(), parts.plan, parts.providers, parts.spending.prices, dimensions=32
    )
    assert estimate["model_calls"] == pytest.approx(2_500_000, rel=0.02)
    assert estimate["texts"] == 4_000_000


def test_methods_whose_texts_parties_write_ask_no_model():
    parts = build_components(settings("method=dp_sgd", "method.samples=3000", "method.rounds=1"))
    use = forecast.rehearse(parts.method, parts.source.task(), parts.plan, parts.providers, dimensions=32)
    assert {name: one.calls for name, one in use.items()} == dict.fromkeys(parts.providers, 0)


@pytest.mark.parametrize("method", METHODS)
def test_the_sentence_for_hospitals_says_what_the_weakest_signal_is(method):
    parts = build_components(settings(f"method={method}", *METHODS[method]))
    compared = parts.method.compared(parts.source.task())
    for records in (None, 300, 10_000_000):
        sentence = forecast.forecast_sentence(parts.plan, compared, records)
        if not parts.plan.queries or records is None:
            assert not any(word in sentence for word in ("noise", "weak", "clear"))
            continue
        least = min(signal.ratio for signal in signals(parts.plan, compared, records) if signal.expected)
        assert ("be noise" in sentence) == (least < HOPELESS)
        assert ("be weak" in sentence) == (HOPELESS <= least < CLEAR)
        assert ("be clear" in sentence) == (least >= CLEAR)
        assert f"{records:,} records" in sentence
        assert ("each person" in sentence) == (parts.plan.unit == "user")
