"""DPGA-TextSyn on real parties, alone and under secure aggregation: seconds each."""

from collections import Counter

import pytest

from tests.support.runs import die, forked, lines, read, resume, texts, tiny

SMALL = (
    "method=dpga",
    "method.samples=12",
    "method.rounds=2",
    "method.keywords=4",
    "method.longest=80",
    "method.bins=20",
    "method.buckets=16",
    "method.tau=null",
    "task.public_notes=60",
)


def test_without_noise_texts_are_as_long_and_of_the_labels_that_the_records_are(tmp_path):
    run = tiny(
        tmp_path / "run",
        *SMALL,
        "privacy.epsilon=inf",
        "task.records_per_party=40",
        "method.samples=40",
        "method.rounds=1",
        "method.buckets=60",
        "llm.use=[broad]",
    )
    genes = lines(run, "rounds.jsonl")[0]["metadata"]
    assert sum(genes["labels"].values()) == pytest.approx(1)
    assert min(genes["labels"].values()) > 0.1
    shortest = min(first for first, _, share in genes["lengths"] if share)
    longest = max(last for _, last, share in genes["lengths"] if share)
    assert 10 < shortest < longest < 80
    assert 0.2 < genes["tau"] < 1
    rows = Counter(row["label"] for row in lines(run, "synthetic.jsonl"))
    assert rows.keys() == genes["labels"].keys()


def test_killed_in_the_middle_of_the_metadata_it_goes_on_with_the_answers_it_has(tmp_path):
    exact = (*SMALL, "privacy.epsilon=inf", "method.subsample=1", "llm.use=[broad]", "federation.parties=1")
    whole = tiny(tmp_path / "whole", *exact)

    def killed():
        from server.methods import dpga

        dpga.metadata.keyword_shares = lambda *_, **__: die()
        tiny(tmp_path / "killed", *exact)

    assert forked(killed) < 0
    resume(tmp_path / "killed")
    assert texts(tmp_path / "killed") == texts(whole)
    assert read(tmp_path / "killed", "privacy.json")["spent"]["queries_asked"] == 7
