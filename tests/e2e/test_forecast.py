"""The forecast of each method against the tokens that a run of it then took."""

import itertools
import random

import pytest

from server.planning.forecast import forecast
from server.prepare.components import build_components
from server.tasks import demo_notes
from tests.support.lanes import slow
from tests.support.runs import lines, settings, tiny

PLUS = ["method.vocabulary=terms.txt", "method.kept_terms=40"]
BUILTIN = {
    "wasp": ["method=wasp"],
    "wasp, looking ahead": ["method=wasp", "method.look_ahead=1"],
    "wasp, a length": ["method=wasp", "method.words=25"],
    "aug_pe": ["method=aug_pe"],
    # A model that turns out to be reliable stays zero-shot: then the forecast is an upper bound.
    "class_sums": ["method=class_sums", "method.rounds=2", "method.directions=16", "method.evidence=false"],
    "dpga": ["method=dpga", "method.keywords=5", "method.initial=2", "method.rounds=2", "privacy.epsilon=.inf"],
    "dpga, lengths under noise": ["method=dpga", "method.keywords=5", "method.initial=2", "method.rounds=2"],
    "aug_pe_plus": ["method=aug_pe_plus", *PLUS],
    "dp_kps": ["method=dp_kps", "method.rounds=1", *PLUS],
    "dp_kps, prefixes": ["method=dp_kps", "method.rounds=1", "method.sequence=iterative", "method.features=100", *PLUS],
    "fusegen": ["method=fusegen"],
    "pre_text": ["method=pre_text", "method.look_ahead=2", "method.rounds=2"],
    "rpsg": ["method=rpsg", "method.pool=40", "method.refinement.nll=1", "method.rounds=2"],
}
MODELS = {
    "chat": [
        "wasp",
        "class_sums",
        "dpga",
        "dpga, lengths under noise",
        "aug_pe_plus",
        "dp_kps",
        "pre_text",
        "rpsg",
    ],
    "completing": ["aug_pe", "class_sums"],
}
QUICK = {
    ("builtin", "wasp, looking ahead"),
    ("chat", "dpga"),
    ("chat", "class_sums"),
    ("completing", "aug_pe"),
}
RUNS = {"dpga, lengths under noise": 4, "aug_pe_plus": 2}
"""Noise decides the lengths or the first texts of these: their tokens are the mean of several runs."""
HIGHEST = {"dpga, lengths under noise": 1.4}
"""Where noise decides the lengths, the elites in prompts are shorter than the mean length that is forecast: input is
forecast a third too high (1.34 over 16 runs with a chat model)."""


@pytest.fixture
def public_terms(tmp_path, monkeypatch):
    """Words and pairs of words of public notes, one a line."""
    words = [word.strip(".,:;").lower() for word in " ".join(demo_notes.public_text(120, 0)).split()]
    pairs = itertools.pairwise(words)
    terms = [*(word for word in words if len(word) > 3), *(" ".join(pair) for pair in pairs if min(map(len, pair)) > 3)]
    ordered = list(dict.fromkeys(terms))
    random.Random(0).shuffle(ordered)
    (tmp_path / "terms.txt").write_text("\n".join(ordered[:120]))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("models", "case"),
    [
        (models, case) if (models, case) in QUICK else slow(models, case)
        for models, cases in (MODELS | {"builtin": BUILTIN}).items()
        for case in cases
    ],
)
@pytest.mark.usefixtures("public_terms")
def test_the_forecast_is_within_a_quarter(models, case, tmp_path, monkeypatch):
    # Noise from a seed, so that the ratios are the same whenever this test runs.
    monkeypatch.setattr("common.rng.secrets.token_bytes", random.Random(0).randbytes)
    overrides = [*BUILTIN[case], "method.samples=40", "federation.expected_records=48"]
    if models != "builtin":
        target = f"tests.support.counting_models.{models.capitalize()}"
        overrides += [f"+llm.models.one._target_={target}", "llm.use=[one]"]
    parts = build_components(settings(*overrides))
    estimate = forecast(
        parts.method,
        parts.source.task(),
        parts.plan,
        parts.providers,
        parts.spending.prices,
        dimensions=parts.encoder.dimensions,
        records=48,
    )
    runs = RUNS.get(case, 1)
    rounds = [
        line
        for seed in range(runs)
        for line in lines(tiny(tmp_path / f"run{seed}", *overrides, f"experiment_seed={seed}"), "rounds.jsonl")
    ]
    assert runs * estimate["model_calls"] / sum(line["calls"] for line in rounds) == pytest.approx(1, abs=0.1)
    for kind in ("input", "output"):
        ratio = runs * estimate[f"{kind}_tokens"] / sum(line["tokens"][kind] for line in rounds)
        assert 0.8 < ratio < (HIGHEST.get(case, 1.25) if kind == "input" else 1.25), f"{kind}: {ratio:.2f}"
