"""RPSG on real parties: alone, beside others, interrupted; and what its privacy statement says."""

import pytest

from common.errors import DropoutError
from server.methods.rpsg import ABSTRACTS, CHOICES, VOTES
from tests.support.lanes import slow
from tests.support.runs import lines, read, resume, texts, tiny

SMALL = (
    "method=rpsg",
    "method.samples=16",
    "method.pool=16",
    "method.rounds=2",
    "method.refinement.similarity=0.8",
    "method.refinement.nll=0.8",
    "method.refinement.epochs=1",
    "llm.use=[broad,noisy]",
)


def run_one(folder, candidates, parties, *overrides):
    return tiny(folder, *SMALL, f"method.candidates={candidates}", f"federation.parties={parties}", *overrides)


@pytest.mark.parametrize(
    ("candidates", "name"), [("pool", CHOICES), slow("histogram", VOTES), slow("seed_unproven", ABSTRACTS)]
)
def test_a_whole_run_states_its_mechanism_and_what_it_costs(candidates, name, tmp_path):
    run = run_one(tmp_path / "run", candidates, 3)
    privacy, (first, last) = read(run, "privacy.json"), lines(run, "rounds.jsonl")
    (query,) = privacy["queries"]
    assert ([query["name"] for query in first["queries"]], last["queries"]) == ([name], [])
    assert (query["name"], privacy["spent"]["queries_asked"]) == (name, 1)
    if candidates == "seed_unproven":
        assert privacy["epsilon"] == privacy["planned_epsilon"] == privacy["spent"]["epsilon"] == "inf"
        assert privacy["pure_epsilon"] is None
        assert "abstracted seeds" in privacy["statement"]
    else:
        assert privacy["spent"]["epsilon"] == pytest.approx(4.0, rel=1e-3)
        assert privacy["pure_epsilon"] == pytest.approx(4.0, rel=1e-6)
        assert "pure" in privacy["statement"]


@pytest.mark.parametrize("candidates", ["pool", slow("seed_unproven")])
def test_goes_on_after_a_crash_between_its_steps(candidates, tmp_path, monkeypatch):
    whole = run_one(tmp_path / "whole", candidates, 1, "privacy.epsilon=.inf")

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("server.methods.rpsg.redact_texts", stop)
        with pytest.raises(KeyboardInterrupt):
            run_one(tmp_path / "run", candidates, 1, "privacy.epsilon=.inf")
    folder = tmp_path / "run"
    assert read(folder, "run.json")["status"] == "partial"
    assert len(lines(folder, "rounds.jsonl")) == 1
    resume(folder)
    assert texts(folder) == texts(whole)
    assert read(folder, "privacy.json")["spent"]["queries_asked"] == 1


def test_a_party_that_allows_nothing_unproven_refuses(tmp_path):
    with pytest.raises(DropoutError, match="OVER_LIMIT"):
        run_one(tmp_path / "run", "seed_unproven", 1, "client.limits.unsafe_unproven=false")
