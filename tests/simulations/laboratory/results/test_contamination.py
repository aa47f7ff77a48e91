"""A small model that has learned some records by heart is told from the same model on records that it never saw."""

import numpy as np
import pytest

from client.writers.causal_model import load_causal_model
from common.domain import Record
from simulations.laboratory.results import contamination
from simulations.laboratory.results.contamination import (
    measure_completions,
    record_halves,
)

SEEN = [Record(f"{word} at {number}{number} end", "a") for number, word in enumerate(("fog", "ice", "sun", "wet"))]
UNSEEN = [Record(f"{word} at {number}{number} end", "a") for number, word in enumerate(("oak", "elm", "ash", "fir"), 5)]


@pytest.fixture(scope="module")
def learned():
    import torch

    causal = load_causal_model(None, ["a"], max_tokens=40)
    ids = torch.tensor([causal.tokenizer(record.text)["input_ids"] for record in SEEN])
    steering = torch.optim.Adam(causal.model.parameters(), lr=3e-3)
    for _ in range(60):
        steering.zero_grad()
        causal.model(input_ids=ids, labels=ids).loss.backward()
        steering.step()
    return causal


def test_a_record_that_was_learned_is_completed_and_another_is_not(learned):
    def of(records):
        return measure_completions(
            learned, record_halves(records, lambda text: learned.tokenizer(text)["input_ids"], 4)
        )

    seen, unseen = of(SEEN), of(UNSEEN)
    assert seen.completed.max() == 2
    assert unseen.completed.max() < 2
    assert seen.recalled[:, 0].mean() > unseen.recalled[:, 0].mean()
    gains = [np.diff(found.likelihood)[:, 0].mean() for found in (seen, unseen)]
    assert gains[0] < gains[1] - 0.5
    assert seen.cells().startswith("2 | 100% (")


def test_the_first_record_of_a_label_and_those_that_are_too_short_are_left_out():
    records = [Record("0123456789", "a"), Record("abcdefghij", "a"), Record("abc", "a"), Record("ABCDEFGHIJ", "b")]
    (half,) = record_halves(records, lambda text: [ord(sign) for sign in text], 5)
    assert len(half.first) == len(half.second) == len(half.other) == 5
    assert half.second != half.other
    assert record_halves(records * 2, lambda text: [ord(sign) for sign in text], 1)[0].first


def test_it_prints_a_row_for_each_set(learned, monkeypatch, capsys):
    monkeypatch.setattr(contamination, "load_saved_model", lambda *_: (learned.model, learned.tokenizer))
    monkeypatch.setattr(contamination, "records_of", lambda _: SEEN)
    assert contamination.main(["demo_notes", "--records", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("| demo_notes | ")
