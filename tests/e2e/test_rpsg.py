"""RPSG on real parties: alone, beside others, interrupted; and what its privacy statement says."""

from collections import Counter

import pytest

from common.errors import ConfigError, DropoutError
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


@pytest.mark.parametrize("parties", [slow(1), 3])
@pytest.mark.parametrize(
    ("candidates", "name", "summed"),
    [("pool", CHOICES, False), ("histogram", VOTES, True), slow("seed_unproven", ABSTRACTS, False)],
)
def test_a_whole_run(candidates, name, summed, parties, tmp_path):
    run = run_one(tmp_path / "run", candidates, parties)
    rows, privacy = lines(run, "synthetic.jsonl"), read(run, "privacy.json")
    assert set(Counter(row["label"] for row in rows).values()) == {4}
    first, last = lines(run, "rounds.jsonl")
    assert [query["name"] for query in first["queries"]] == [name]
    assert last["queries"] == []
    assert (last["candidates"], last["notes"]) == (16, [])
    assert (privacy["aggregation"] == "none") == (parties == 1)
    (query,) = privacy["queries"]
    assert (query["name"], query["summed"]) == (name, summed)
    assert privacy["spent"]["queries_asked"] == 1
    if candidates == "seed_unproven":
        assert privacy["epsilon"] == privacy["planned_epsilon"] == privacy["spent"]["epsilon"] == "inf"
        assert privacy["pure_epsilon"] is None
        assert "abstracted seeds" in privacy["statement"]
    else:
        assert privacy["spent"]["epsilon"] == pytest.approx(4.0, rel=1e-3)
        assert privacy["pure_epsilon"] == pytest.approx(4.0, rel=1e-6)
        assert "pure" in privacy["statement"]
    assert read(run, "run.json")["status"] == "complete"


@pytest.mark.parametrize(
    "changes", [("method.candidates=histogram", "method.mechanism=gaussian"), slow(("method.nearest=0",))]
)
def test_other_mechanisms(changes, tmp_path):
    privacy = read(tiny(tmp_path / "run", *SMALL, "federation.parties=3", *changes), "privacy.json")
    gaussian = "method.mechanism=gaussian" in changes
    assert privacy["spent"]["epsilon"] == pytest.approx(4.0, rel=1e-3)
    assert privacy["queries"][0]["mechanism"] == ("gaussian" if gaussian else "exponential")
    assert (privacy["pure_epsilon"] is None) == gaussian


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


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ("method.samples=3", "samples"),
        ("method.pool=3", "pool"),
        ("method.mechanism=permute and flip", "mechanism"),
    ],
)
def test_what_cannot_be_planned_is_refused_before_anything_is_asked(wrong, word, tmp_path):
    with pytest.raises(ConfigError, match=word):
        run_one(tmp_path / "run", "pool", 1, "method.nearest=2", wrong)
    assert not (tmp_path / "run" / "synthetic.jsonl").exists()
