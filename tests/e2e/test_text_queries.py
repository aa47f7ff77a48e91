"""Queries that answer with texts, through the whole pipeline: real services, ledgers and messages.

What leaves a party are its texts, as they are written there, and nothing else of its records; what has no proof is
charged as infinite, and answered only where the party's own file says so.
"""

import dataclasses
import json
import logging
import math

import numpy as np
import pytest

from client.writers.abstracted_seeds import Seeds
from client.writers.abstractors import Extracts
from client.writers.base import SECTIONS
from client.writers.sentiment import Vader
from common.domain import Record
from common.errors import ConfigError, DropoutError
from common.plan.planned import PlannedQuery
from common.privacy.accountant import epsilon
from common.queries import text_codec
from common.queries.closed_set import KINDS
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec, RewrittenSpec, Texts
from common.queries.votes import VotesSpec
from server.planning.guarantee_facts import describe
from tests.support.federations import LABELS, OPEN, query
from tests.support.modes import MODES, World

WILLING = dataclasses.replace(OPEN, queries=KINDS, unsafe_unproven=True)
EVERY = {
    spec.kind: Texts(spec=spec)
    for spec in (
        AbstractedSeedsSpec(choices=3, longest=48),
        FineTunedSpec(texts=3, longest=48, steps=2),
        RewrittenSpec(texts=3, longest=48),
    )
}


class Scribe:
    """Writes two texts, others each time, and remembers what it was given."""

    def __init__(self, wrong=None, failing=None):
        self.wrong, self.failing, self.written = wrong, failing, []

    def check(self, planned, labels):
        if self.wrong:
            raise self.wrong

    def write(self, planned, mine, *, labels, encoder, key):
        if self.failing:
            raise self.failing(mine.texts[0])
        assert len(key) == 32
        self.written.append([(1, f"text {key.hex()[:8]} of {len(mine.texts)}"), (0, f"text of {mine.texts[0][-1]}")])
        return self.written[-1]


def one(kind, **changes):
    return PlannedQuery(name="one", spec=EVERY[kind].spec, mechanism=EVERY[kind].spec.mechanisms[0], **changes)


class Writing(World):
    """Parties that have a writer each, which may be None."""

    def __init__(self, folder, mode, *planned, make=Scribe, limits=WILLING, **changes):
        self.limits, self.writers = limits, [make() for _ in range(MODES[mode]["parties"])]
        super().__init__(folder, mode, *planned, **changes)

    def of_service(self, party):
        writer = self.writers[party]
        return {"limits": self.limits, "writers": dict.fromkeys(SECTIONS.values(), writer) if writer else {}}


def test_every_kind_that_answers_with_texts_is_here():
    assert set(EVERY) == set(SECTIONS.values())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", EVERY)
def test_each_partys_texts_come_as_they_were_written_once_and_for_all(kind, mode, tmp_path):
    world = Writing(tmp_path, mode, one(kind), epsilon=4.0 if EVERY[kind].spec.mechanisms != ("dp-sgd",) else math.inf)
    request, spec = EVERY[kind], EVERY[kind].spec
    answered = world.coordinator().ask("one", 0, request)
    assert answered.values.shape == (world.count, request.length)
    read = text_codec.decode(answered.values.astype(np.float64), 3, spec.longest, labels=2)
    assert read == [text for writer in world.writers for text in sorted(writer.written[0])]
    # The services die, and the coordinator forgets that it was answered: nothing is written anew.
    world.restart()
    again = world.coordinator(fresh=True)
    assert np.array_equal(again.ask("one", 0, request).values, answered.values)
    assert [len(writer.written) for writer in world.writers] == [1] * world.count
    again.close()
    for (entry,) in world.ledgers():
        assert entry.release == world.agreed.answer_release(0)
        assert (entry.committed, entry.answer) == (True, None)
        if spec.unproven:
            assert epsilon([entry.cost], 1e-5) == math.inf


def test_texts_and_sums_follow_each_other_in_one_run(tmp_path):
    votes = PlannedQuery(name="votes", spec=VotesSpec(top=4), share=0.5)
    world = Writing(tmp_path, "signed", one("abstracted seeds", share=0.5), votes)
    assert world.agreed.epsilon == math.inf
    coordinator = world.coordinator()
    assert coordinator.ask("one", 0, EVERY["abstracted seeds"]).survivors == 3
    assert coordinator.ask("votes", 0, query()).values.shape == (24,)
    facts = describe(world.agreed).to_json()
    assert next(iter(facts)) == "statement"
    assert facts["statement"].startswith("The released")
    assert facts["unproven"] == ["one"]
    assert facts["proven_epsilon"] == pytest.approx(2.0, rel=1e-3)
    assert "guaranteed: votes" in facts["statement"]
    choice, sums = facts["queries"][0]["choice"], facts["queries"][1]
    assert choice["claimed_epsilon"] == pytest.approx(2.0)
    assert choice["epsilon_among_public_candidates"] < 2
    assert sums["epsilon_alone"] == pytest.approx(2.0, rel=1e-3)
    assert facts["spent"]["epsilon"] == 0
    assert json.dumps(facts)


@pytest.mark.parametrize(
    ("kind", "limits", "logged"),
    [
        ("abstracted seeds", OPEN, "query; expected one of votes"),
        ("rewritten records", dataclasses.replace(OPEN, unsafe_unproven=True), "query; expected one of votes"),
        ("abstracted seeds", dataclasses.replace(OPEN, queries=KINDS), "or unsafe_unproven in this party's limits"),
        ("rewritten records", dataclasses.replace(OPEN, queries=KINDS), "or unsafe_unproven in this party's limits"),
        ("abstracted seeds", dataclasses.replace(WILLING, lifetime_epsilon=1e6), "epsilon of all runs"),
    ],
)
def test_what_has_no_proof_is_refused_unless_the_party_says_otherwise(kind, limits, logged, tmp_path, caplog):
    world = Writing(tmp_path, "alone", one(kind), limits=limits)
    with pytest.raises(DropoutError, match="OVER_LIMIT") as refused:
        world.coordinator()
    assert logged in caplog.text
    assert logged not in str(refused.value)
    assert world.ledgers() == [()]


def test_a_party_without_models_for_it_says_which_section_is_missing(tmp_path, caplog):
    world = Writing(tmp_path, "alone", one("rewritten records"), make=lambda: None)
    with pytest.raises(DropoutError, match="OVER_LIMIT"):
        world.coordinator()
    assert "one; expected rewriting" in caplog.text


def test_settings_that_do_not_fit_the_plan_are_refused_before_anything_is_charged(tmp_path, caplog):
    wrong = ConfigError("choices", expected="at most 2", got=3)
    world = Writing(tmp_path, "alone", one("abstracted seeds"), make=lambda: Scribe(wrong=wrong))
    with pytest.raises(DropoutError, match="refused: MALFORMED"):
        world.coordinator()
    assert "choices;" in caplog.text
    assert world.ledgers() == [()]


PRIVATE = ("zyxcanaryzyx", "clinic.example", "Quimby", "536-90")


def records_of(party):
    """Records whose particulars are there to be masked, and nothing else that is worth hiding."""
    return [
        Record(
            f"Dr. Quimby saw a zyxcanaryzyx@clinic.example pain, SSN 536-90-439{n}. She was happy. The pain is {mild}, "
            "the cough is mild.",
            LABELS[n % 2],
        )
        for n, mild in enumerate(("mild", "strong", "gone"))
    ]


def everything(folder):
    """Bytes of all files, and of the answers in them as texts."""
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


def test_seeds_of_real_records_hold_no_particulars_nor_does_anything_else(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    world = Writing(
        tmp_path,
        "masked",
        one("abstracted seeds"),
        private=records_of,
        make=lambda: Seeds(abstraction=Extracts(), sentiment=Vader()),
    )
    coordinator = world.coordinator()
    spec = EVERY["abstracted seeds"].spec
    values = coordinator.ask("one", 0, EVERY["abstracted seeds"]).values
    read = text_codec.decode(values, 3, spec.longest, labels=2)
    assert len(read) == 9
    assert any("pain" in text.lower() for _, text in read)
    logged = caplog.text + " ".join(text for _, text in read)
    kept = everything(tmp_path)
    assert kept
    for word in PRIVATE:
        assert word.lower() not in logged.lower()
        wide = np.frombuffer(word.encode(), dtype=np.uint8).astype("<i8").tobytes()
        assert not any(word.encode() in content or wide in content for content in kept)
    # The texts themselves stand in answers alone: in no log.
    assert not any(text in caplog.text for _, text in read)


@pytest.mark.parametrize("failing", [ValueError, RuntimeError])
def test_a_writer_that_fails_tells_nothing(failing, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    world = Writing(
        tmp_path, "alone", one("rewritten records"), private=records_of, make=lambda: Scribe(failing=failing)
    )
    with pytest.raises(DropoutError, match="refused: INTERNAL") as refused:
        world.coordinator().ask("one", 0, EVERY["rewritten records"])
    assert failing.__name__ in caplog.text
    for word in PRIVATE:
        assert word not in caplog.text + str(refused.value)
    # What failed was paid for: it may have been looked at.
    ((entry,),) = world.ledgers()
    assert epsilon([entry.cost], 1e-5) == math.inf


def test_a_party_that_answers_with_no_texts_is_found_out(tmp_path):
    class Liar(Scribe):
        def write(self, planned, mine, **_):
            return [(7, "a label that is none")]

    world = Writing(tmp_path, "alone", one("rewritten records"), make=Liar)
    values = world.coordinator().ask("one", 0, EVERY["rewritten records"]).values
    with pytest.raises(Exception, match="labels below 2"):
        text_codec.decode(values, 3, 48, labels=2)
