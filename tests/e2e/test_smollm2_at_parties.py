"""The three writers of a party with real weights: smollm2, by name, on the demo's notes."""

import pytest

from tests.support.real_models import fetched
from tests.support.runs import lines, read, tiny

pytestmark = pytest.mark.slow

ONE = ("federation.parties=1", "task.records_per_party=40", "method.samples=4")


@pytest.fixture(autouse=True)
def _weights():
    fetched("smollm2")


def released(run):
    """Its texts, none of which has signs of the chat template."""
    texts = [row["text"] for row in lines(run, "synthetic.jsonl")]
    assert not any("<|" in text for text in texts)
    return texts


def test_it_abstracts_records_for_rpsg(tmp_path):
    settings = {"kind": "instructed", "longest": 40}
    overrides = [f"client.seeds.abstraction.{key}={value}" for key, value in settings.items()]
    run = tiny(
        tmp_path / "run",
        *ONE,
        "method=rpsg",
        "method.rounds=2",
        "method.candidates=seed_unproven",
        "method.choices=4",
        "method.abstracts=2",
        "method.refinement.nll=1",
        "method.refinement.similarity=1",
        "client.seeds.oversampled=2",
        *overrides,
        "+client.seeds.abstraction.name_or_path=smollm2",
    )
    assert len(released(run)) == 4
    assert read(run, "privacy.json")["epsilon"] == "inf"


def test_it_rewrites_records_for_rupta(tmp_path):
    run = tiny(
        tmp_path / "run",
        *ONE,
        "method=rupta",
        "method.rounds=1",
        "method.rewritings=1",
        "client.rewriting.candidates=2",
        "client.rewriting.nearest=0",
        "client.rewriting.copied=1.0",
        "client.rewriting.rewriter.kind=instructed",
        "client.rewriting.rewriter.longest=40",
        "+client.rewriting.rewriter.name_or_path=smollm2",
    )
    assert 1 <= len(released(run)) <= 4


@pytest.mark.parametrize("micro_batch", [1, 4])
def test_it_is_fine_tuned_by_dp_sgd(micro_batch, tmp_path):
    run = tiny(
        tmp_path / "run",
        *ONE,
        "method=dp_sgd",
        "method.rounds=1",
        "method.steps=1",
        "method.rate=0.2",
        "method.batch=8",
        "method.lora=1",
        "method.max_tokens=32",
        "method.temperature=0.7",
        "method.top_p=0.95",
        "client.fine_tuning.name_or_path=smollm2",
        f"client.fine_tuning.micro_batch={micro_batch}",
    )
    assert len(released(run)) == 4
    assert read(run, "privacy.json")["spent"]["epsilon"] == pytest.approx(4.0, rel=1e-3)
