"""Seeds of RPSG in a party: which records, which candidates, which choice; and what is left blank."""

import logging

import numpy as np
import pytest

from client.records import embed_records
from client.writers.abstracted_seeds import Seeds
from client.writers.abstractors import Extracts, Summariser
from client.writers.sentiment import Mood, Vader
from common.domain import Record
from common.plan.planned import PlannedQuery
from common.queries.texts import AbstractedSeedsSpec
from tests.support.federations import ENCODER, LABELS
from tests.support.tiny_models import tiny_summariser


class Scripted:
    """Writes what it is told to, by beams and by chance; remembers what it was asked."""

    def __init__(self, beams, drawn=()):
        self.beams, self.drawn, self.asked = beams, drawn, []

    def write(self, text, count, *, tone, sampled, rng):
        self.asked.append((text, count, tone, sampled))
        return [form.format(text=text) for form in (self.drawn if sampled else self.beams)]


class Marked:
    """The mood is written on the text: plus, minus or nothing; maybe is unsure."""

    def judge(self, text):
        return Mood(("plus" in text) - ("minus" in text), 0.54 if "maybe" in text else 0.9)


def seeds(abstraction, sentiment=None, **settings):
    return Seeds(abstraction=abstraction, sentiment=sentiment or Marked(), **settings)


def write(made, texts, *, choices=3, sigma=0.0, candidates=5, key=bytes(32)):
    private = [Record(text, LABELS[place % 2]) for place, text in enumerate(texts)]
    spec = AbstractedSeedsSpec(choices=choices, candidates=candidates)
    planned = PlannedQuery(name="seeds", spec=spec, mechanism="gaussian max", scale=sigma * spec.noise_grid)
    made.check(planned, LABELS)
    return made.write(
        planned, embed_records(private, ENCODER).for_plan(LABELS), labels=LABELS, encoder=ENCODER, key=key
    )


def test_the_nearest_candidate_is_a_records_seed_without_noise_and_any_with_much():
    made = seeds(Scripted(["quite something else", "chest pain at night", "pain"]))
    record = ["bad chest pain at night"]
    assert write(made, record) == [(0, "chest pain at night")]
    drawn = {write(made, record, sigma=100.0, key=bytes([n]) * 32)[0][1] for n in range(40)}
    assert len(drawn) == 3


def test_candidates_are_pruned_by_similarity_and_tone():
    # Without noise the nearest of those that are left: which is left is the score's business.
    beams = ["chest pain at night minus", "chest pain at plus", "chest plus"]
    record = ["chest pain at night plus"]
    assert write(seeds(Scripted(beams)), record, candidates=2) == [(0, "chest pain at plus")]
    careless = seeds(Scripted(beams), similarity=1.0, flip_penalty=0.0)
    assert write(careless, record, candidates=2) == [(0, "chest pain at night minus")]
    # Unsure agreement is none; it is no flip either.
    unsure = ["chest pain at night maybe plus", "chest plus"]
    assert write(seeds(Scripted(unsure)), record, candidates=2)[0][1] == "chest pain at night maybe plus"
    cosines = np.array([1.0, 0.5])
    assert seeds(Scripted([]))._pruned("plus", unsure, cosines, 1).tolist() == [0]  # 0.75 against 0.375 + 0.25
    for penalty, place in ((0.15, 1), (0.1, 0)):  # 0.75 less the penalty against 0.625
        made = seeds(Scripted([]), flip_penalty=penalty)
        assert made._pruned("plus", ["a minus", "b plus"], cosines, 1).tolist() == [place]


@pytest.mark.parametrize(("beams", "tries"), [(["a plus"], 1), (["a minus"], 2), (["a maybe plus"], 2), ([], 2)])
def test_a_retry_is_made_once_if_nothing_surely_keeps_the_tone(beams, tries):
    abstraction = Scripted(beams, ["b minus", "c"])
    written = write(seeds(abstraction), ["note plus"])
    assert [sampled for _, _, _, sampled in abstraction.asked] == [False, True][:tries]
    assert {(text, count, tone) for text, count, tone, _ in abstraction.asked} == {("note plus", 10, 1)}
    assert len(written) == 1


def test_candidates_all_of_the_wrong_polarity_are_better_than_none():
    made = seeds(Scripted(["chest pain minus"], ["other minus"]))
    assert write(made, ["chest pain plus"]) == [(0, "chest pain minus")]


def test_records_and_seeds_are_redacted():
    abstraction = Scripted(["{text}, call 212-555-0123 for more"])
    (only,) = write(seeds(abstraction), ["Pain, mail jane@clinic.example"])
    assert abstraction.asked[0][0] == "Pain, mail [EMAIL]"
    assert only == (0, "Pain, mail [EMAIL], call [PHONE] for more")


@pytest.mark.parametrize(
    ("record", "abstraction"),
    [
        ("jane@clinic.example", Scripted(["something"])),  # nothing is left after redaction
        ("...", Scripted(["something"])),
        ("secretcanary here", Scripted(["{text}"], ["{text}", "SecretCanary, here!"])),  # returns its input
        ("secretcanary here", Scripted([], [])),
        ("secretcanary here", Scripted(["", "[EMAIL]"], ["..."])),
    ],
)
def test_what_cannot_be_abstracted_is_left_blank_and_said_without_a_word_of_it(record, abstraction, caplog):
    caplog.set_level(logging.INFO)
    assert write(seeds(abstraction), [record]) == []
    assert "are blank" in caplog.text
    assert "canary" not in caplog.text
    assert "clinic" not in caplog.text


def test_as_many_records_as_choices_are_drawn_by_the_key_and_no_record_twice():
    texts = [f"note number {place} of {'xyz'[place % 3]}" for place in range(12)]
    made = seeds(Scripted(["About {text}"]))
    drawn = {key: write(made, texts, choices=4, key=bytes([key]) * 32) for key in range(6)}
    assert all(len(set(seeds)) == 4 for seeds in drawn.values())
    assert len({tuple(sorted(seeds)) for seeds in drawn.values()}) > 1
    assert write(made, texts, choices=4, key=bytes([0]) * 32) == drawn[0]
    # Which are drawn does not depend on their order.
    assert len(write(made, texts[:2], choices=4)) == 2
    assert write(made, [], choices=4) == []


def test_the_embedded_parts_and_a_transformer_fit(tmp_path):
    records = ["She was happy with the chest film. She has a cough, and feels well. No pain for 3 days."] * 2
    written = write(Seeds(abstraction=Extracts(), sentiment=Vader()), records, sigma=1.2)
    assert len(written) == 2
    assert all("3" not in text for _, text in written)
    model = Summariser(str(tiny_summariser(tmp_path)), longest=9, shortest=4)
    assert len(write(Seeds(abstraction=model, sentiment=Vader(), oversampled=3), records, candidates=2)) == 2
