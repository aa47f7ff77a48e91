"""Faults of published programs for private synthetic text, each with a test that it cannot happen here.

Two more have no place to happen yet: padding on the left without an attention mask and a tokenizer fetched by a
constructor, as no model of weights runs here but the encoder, which is loaded from this machine.
"""

import json
import logging
import math
import socket
from dataclasses import replace

import numpy as np
import pytest

from client import answer
from client.contributions.votes import votes_of
from client.session import RefusalError
from common.domain import Record
from common.errors import CaucusError, CheckpointError, ConfigError, DropoutError
from common.parcels import parcel_of
from common.plan.guarantee import epsilon_against, epsilon_released, verify
from common.plan.planned import PlannedQuery, release
from common.privacy import accountant
from common.queries import (
    class_sums,
    correct_count,
    histograms,
    length_range,
    seed_choice,
    self_similarity,
    sketch,
    terms,
)
from common.queries.class_sums import ClassSumsSpec
from common.queries.correct_count import CorrectCountSpec
from common.queries.histograms import LabelHistogramSpec, LengthHistogramSpec, VocabularySpec
from common.queries.length_range import LengthRangeSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.self_similarity import SelfSimilaritySpec
from common.queries.sketch import SketchSpec
from common.queries.votes import Votes, VotesSpec
from server.llm.base import Reply
from server.llm.cache import Cached
from server.llm.generate import generate
from server.llm.orders import Order
from server.llm.remote import anthropic
from server.prepare.components import build_components
from server.prepare.compose import load_settings, store
from server.settings.sections import with_values
from simulations.federation.parties import with_labels
from tests.support.federations import ENCODER, LABELS, federation, lenient, plan, query, records, service, true_counts
from tests.support.offline import refuse_network
from tests.support.provider_contract import requests
from tests.support.runs import labelled, lines, resume, settings, tiny

WORDS = [f"word{i}" for i in range(24)]
TERMS = terms.encode_terms(tuple(WORDS))
FREQUENCIES = np.linspace(-1, 1, 16 * 32, dtype=np.float32).reshape(16, 32)

QUESTIONS = (
    query(candidates=24),
    histograms.LabelHistogram(spec=LabelHistogramSpec(labels=2)),
    histograms.LengthHistogram(spec=LengthHistogramSpec(bins=24), edges=np.arange(2, 25, dtype=np.int32)),
    histograms.Vocabulary(spec=VocabularySpec(first=3), terms=TERMS),
    sketch.Sketch(
        spec=SketchSpec(labels=2, features=32),
        terms=TERMS,
        vectors=ENCODER.encode(WORDS),
        frequencies=FREQUENCIES,
        phases=np.empty(0, dtype=np.float32),
    ),
    class_sums.ClassSums(
        spec=ClassSumsSpec(labels=2, directions=16, count=32, grid=64),
        basis=np.eye(16, ENCODER.dimensions, dtype=np.float32),
        centres=ENCODER.encode(list(LABELS)),
        radius=np.ones(1, dtype=np.float32),
    ),
    self_similarity.SelfSimilarity(spec=SelfSimilaritySpec(buckets=40)),
    correct_count.CorrectCount(
        spec=CorrectCountSpec(), weights=ENCODER.encode(list(LABELS)), intercepts=np.zeros(2, dtype=np.float32)
    ),
    length_range.LengthRange(spec=LengthRangeSpec(cap=30)),
    seed_choice.SeedChoice(
        spec=SeedChoiceSpec(choices=30), vectors=ENCODER.encode(WORDS), labels=np.zeros(len(WORDS), dtype=np.int32)
    ),
)
NOISES = [(question.spec, mechanism) for question in QUESTIONS for mechanism in question.spec.mechanisms]


def named(spec, mechanism, scale=50.0, **settings):
    return PlannedQuery(name=spec.kind, spec=spec, mechanism=mechanism, scale=scale, **settings)


def everything():
    """A plan of all kinds of queries with plenty of noise, and no word on what that costs."""
    queries = tuple(named(question.spec, question.spec.mechanisms[0], scale=90.0) for question in QUESTIONS)
    return plan(epsilon=math.inf, queries=queries)


def spoken(party):
    return [
        Record(" ".join(["zyxcanary", *WORDS[i % 7 : i % 7 + 1 + (3 * i + party) % 19]]), LABELS[i % 2])
        for i in range(40)
    ]


def test_no_query_leaves_un_noised_counts_or_private_text_anywhere(tmp_path, monkeypatch, caplog, capfd):
    """pe, aug-pe, PrE-Text and WASP's code: un-noised histograms, clean votes and private records in files and logs."""
    caplog.set_level(logging.DEBUG)
    private = [spoken(party) for party in range(3)]
    counts, travelled = [], []
    real = answer.contribute.contribution

    def counted(*args):
        counts.append(real(*args))
        return counts[-1]

    def seen(_, message):
        sent = parcel_of(message.content)
        travelled.append(sent.envelope + sent.bulk)
        return (message,)

    monkeypatch.setattr(answer.contribute, "contribution", counted)
    services = [service(tmp_path, party, mine) for party, mine in enumerate(private)]
    parties = federation(tmp_path, services, everything(), on_reply=seen)
    parties.open()
    for question in QUESTIONS:
        parties.ask(question.spec.kind, 0, question)
        files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        captured = capfd.readouterr()
        content = b"\0\0".join([*files, *travelled, caplog.text.encode(), captured.out.encode(), captured.err.encode()])
        assert b"zyxcanary" not in content
        totals = [sum(counts[first : first + 3]) for first in range(0, len(counts) - 2, 3)]
        for vector in (*counts, *totals):
            # Fewer coordinates would be there by chance, or could not be told from zeros.
            if len(vector) > 20:
                forms = [vector.astype("<i8").tobytes(), vector.astype(">i8").tobytes(), vector.astype("<i4").tobytes()]
                forms += [json.dumps(vector.tolist()).strip("[]").encode(), str(vector).encode()]
                assert not any(form in content for form in forms), question.spec.kind
    assert len(counts) == 3 * 8
    assert len(travelled) > 3 * len(QUESTIONS)


def test_the_search_finds_un_noised_counts_where_there_are_some(tmp_path):
    """So that the test above can fail."""
    services = [service(tmp_path, party) for party in range(3)]
    parties = federation(tmp_path, services, plan(epsilon=math.inf))
    parties.open()
    parties.ask("votes", 0, query(candidates=24))
    total = sum(true_counts(query(candidates=24), records(party)) for party in range(3))
    assert any(total.astype("<i8").tobytes() in path.read_bytes() for path in tmp_path.rglob("*.npy"))


def test_a_finished_run_does_not_go_on_with_more_epsilon(tmp_path):
    """pe: a run that ended at epsilon 2 is resumed at epsilon 50 without a word, since nothing keeps what was spent."""
    folder = tiny(tmp_path / "run", "privacy.epsilon=2", "method.top=8", "method.rounds=2", "method.samples=20")
    store(with_values(load_settings(folder), {"privacy.epsilon": 50.0}), folder)
    with pytest.raises(CheckpointError, match="privacy plan"):
        resume(folder)
    # A coordinator that forgets its own state gets no further: each party has a ledger of its own.
    for path in (folder / "state").iterdir():
        path.unlink()
    with pytest.raises(DropoutError, match="OVER_LIMIT"):
        resume(folder)


def test_how_many_private_records_a_label_has_decides_nothing_that_is_public(tmp_path):
    """pe and aug-pe: the private records' label fractions are taken as public, and texts are made in proportion."""
    skewed = [(f"zq{i:03} zw{i:03}", "a" if i else "b") for i in range(30)]
    for folder, train in ((tmp_path / "even", None), (tmp_path / "skewed", skewed)):
        task = labelled(folder, train=train)
        # Votes without noise have the most influence, and the same one whenever this test runs.
        small = ("federation.partition=iid", "privacy.epsilon=.inf", "method.samples=40", "method.rounds=2")
        run = tiny(folder / "run", *task, *small)
        written = [row["label"] for row in lines(run, "synthetic.jsonl")]
        assert (written.count("a"), written.count("b")) == (20, 20)


def test_labels_are_named_and_only_a_simulation_takes_them_from_private_records(tmp_path, caplog):
    """pe and aug-pe: which labels there are is read from the private records."""
    task = [setting for setting in labelled(tmp_path) if not setting.startswith("task.labels")]
    with pytest.raises(ConfigError, match=r"task\.labels"):
        build_components(settings(*task))
    config = with_labels(settings(*task))
    assert list(config.task.labels) == ["a", "b"]
    assert "simulation only" in caplog.text


@pytest.mark.parametrize("top", [1, 2, 3, 4, 8])
def test_votes_halve_from_rank_to_rank(top):
    """WASP's code: 2^(k-1) written with the sign for exclusive or; 3 votes crash, 4 add up to 1.0 instead of 1.875."""
    angles = np.linspace(0, 3, 2 * top)
    candidates = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    question = Votes(spec=VotesSpec(top=top), vectors=candidates, labels=np.zeros(2 * top, dtype=np.int32))
    record = np.array([[1, 0]], dtype=np.float32)
    nearest, furthest = votes_of(question, record, np.zeros(1, dtype=np.int32)).reshape(2, -1) / question.spec.grid
    expected = [2.0**-q for q in range(top)] + [0] * top
    assert nearest.tolist() == expected
    assert furthest.tolist() == expected[::-1]
    assert nearest.sum() == {1: 1, 2: 1.5, 3: 1.75, 4: 1.875, 8: 255 / 128}[top]


def test_the_sensitivity_of_votes_is_that_of_both_halves():
    """WASP's code and paper: 4 for what is 1.63, and a sensitivity that belongs to other weights than those added."""
    spec = VotesSpec(top=8)
    assert spec.sensitivity.l2 / spec.grid == pytest.approx(1.63298, abs=1e-5)
    assert (spec.sensitivity.l1, spec.sensitivity.l2_squared, spec.sensitivity.touched) == (510, 43690, 16)
    assert VotesSpec(top=8, furthest=False).sensitivity.l2_squared == 43690 / 2


@pytest.mark.parametrize("parties", [2, 10, 100])
def test_without_secure_aggregation_no_party_adds_a_part_of_the_noise(parties):
    """WASP's code: sigma / sqrt(L) with plain uploads; one party's own has epsilon 4.7 to 19.4 where 4 was promised."""
    agreed = plan(parties, secure=False)
    (votes,) = agreed.queries
    assert agreed.shares(votes) == 1
    assert agreed.share_sigma(votes) == votes.scale
    assert verify(agreed) <= 4
    assert epsilon_against(agreed, parties - 1) <= 4
    part = replace(agreed.releases()[0], scale=votes.scale / math.sqrt(parties))
    assert accountant.epsilon([part], agreed.delta) > 4.7


def test_with_secure_aggregation_a_share_is_for_those_that_are_certain_and_unknown():
    """WASP's code: the share is for all parties, though some drop out and some may tell theirs."""
    agreed = plan(6, max_dropouts=1, colluders=1)
    (votes,) = agreed.queries
    assert agreed.share_sigma(votes) == pytest.approx(votes.scale / math.sqrt(4), rel=1e-12)
    assert epsilon_against(agreed, 1) <= 4 < epsilon_against(agreed, 2)


@pytest.mark.parametrize("secure", [True, False])
def test_a_sum_of_fewer_parties_than_planned_is_never_given(tmp_path, secure):
    """WASP's code: sigma / sqrt(L) is right only if nobody drops out, and nobody looks whether somebody did."""
    services = [service(tmp_path, party) for party in range(4)]
    agreed = plan(4, secure=secure, max_dropouts=1)
    parties = federation(tmp_path, services, agreed, on_request=lambda party, sent: () if party < 2 else (sent,))

    def asked_of_two():
        parties.open()
        return parties.ask("votes", 0, query())

    with pytest.raises(DropoutError, match="at least 3"):
        asked_of_two()


def test_the_factor_for_users_is_in_the_noise_and_in_what_a_user_may_hold(tmp_path):
    """WASP's code: the factor for users with several records is computed and never assigned."""
    for spec, mechanism in NOISES:
        one, several = spec.sensitivity, replace(spec, max_records=5).sensitivity
        assert (several.l1, several.l2_squared) == (5 * one.l1, 25 * one.l2_squared), (spec.kind, mechanism)
    users = plan(unit="user", spec=VotesSpec(top=4, max_records=5))
    assert users.queries[0].scale == pytest.approx(5 * plan().queries[0].scale, rel=1e-3)
    noiseless = plan(unit="user", spec=VotesSpec(top=4, max_records=5), epsilon=math.inf)
    parties = federation(tmp_path, [service(tmp_path, party, records(party, 9)) for party in range(3)], noiseless)
    parties.open()
    total = parties.ask("votes", 0, query(max_records=5)).values
    assert np.array_equal(total, sum(true_counts(query(), records(party, 9)[:5]) for party in range(3)))


@pytest.mark.parametrize("delta", ["/data/notes.csv", len("/data/notes.csv"), 0.0, 1.0, "nan"])
def test_delta_is_a_number_between_0_and_1(delta):
    """The copy of DPGA: delta is one over the length of a path's text, not over that of the file."""
    with pytest.raises((ConfigError, TypeError)):
        plan(delta=math.nan if delta == "nan" else delta)
    with pytest.raises(CaucusError, match="delta"):
        build_components(settings(f"privacy.delta={delta}"))


def test_integer_counts_take_integer_noise(tmp_path):
    """The copy of DPGA: noise in floating point is added in place to whole votes, which raises, so that none is."""
    services = [service(tmp_path, party) for party in range(3)]
    parties = federation(tmp_path, services, plan())
    parties.open()
    total = parties.ask("votes", 0, query()).values
    assert total.dtype == np.int64
    assert not np.array_equal(total, sum(true_counts(query(), records(party)) for party in range(3)))


@pytest.mark.parametrize(("spec", "mechanism"), NOISES)
def test_more_noise_is_less_epsilon_and_more_answers_are_more(spec, mechanism):
    """RPSG: epsilon passes for a multiplier of noise, so that more noise in one place is less in another."""

    def epsilon(scale, **changes):
        return accountant.epsilon([release(named(spec, mechanism, scale), shares=3, planned=3, **changes)], 1e-5)

    scales = [200.0, 100.0, 50.0]
    epsilons = [epsilon(scale) for scale in scales]
    assert 0 < epsilons[0] < epsilons[1] < epsilons[2]
    assert epsilons[0] < epsilon(scales[0], times=2) < epsilon(scales[0], times=4)
    by_norm = [
        accountant.epsilon_by_norm([release(named(spec, mechanism, scale), shares=3, planned=3)], 1e-5)
        for scale in scales
    ]
    assert by_norm[0] < by_norm[1] < by_norm[2]
    assert all(loose >= tight * (1 - 1e-6) for loose, tight in zip(by_norm, epsilons, strict=True))


def test_every_figure_of_a_plan_moves_with_its_noise():
    """RPSG: as above, for whole plans."""
    strict, loose = plan(4, epsilon=1.0, colluders=1), plan(4, epsilon=6.0, colluders=1)
    assert strict.queries[0].scale > loose.queries[0].scale
    for figure in (verify, epsilon_released, lambda agreed: epsilon_against(agreed, 3)):
        assert figure(strict) < figure(loose)
    for agreed, promised in ((strict, 1.0), (loose, 6.0)):
        assert 0.999 * promised < verify(agreed) <= promised


@pytest.mark.parametrize("changes", [{"times": 3}, {"times": 1, "max_attempts": 3}])
def test_all_answers_and_attempts_are_paid_for(changes):
    """RPSG: as above; noise for one answer, and three are given."""
    agreed = plan(**changes)
    (three,) = agreed.releases()
    assert three.times == 3
    assert 3.999 < verify(agreed) <= 4
    assert accountant.epsilon([replace(three, times=1)], agreed.delta) < 2.5
    # Within the hospital's own limit, but more than the plan says.
    louder = replace(agreed, queries=(replace(agreed.queries[0], scale=three.scale * 0.99),))
    with pytest.raises(RefusalError, match="epsilon"):
        lenient(max_epsilon=8.0).check(louder, declared=1)


def test_nothing_needs_the_network_to_be_built(monkeypatch):
    """pe: a tokenizer is fetched when an object is made."""
    tried = refuse_network(monkeypatch, OSError("no network"))
    with pytest.raises(OSError, match="no network"):
        socket.create_connection(("localhost", 1))
    assert tried.pop()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-nobody")
    assert build_components(settings()).providers
    anthropic.provider(name="claude", model="of nobody")
    assert not tried


class Refusing:
    """A model that refuses every third request."""

    name, identity, remote, declines = "refusing", "refusing/1", False, frozenset()

    def __init__(self):
        self.asked = 0

    def check(self):
        pass

    def generate(self, asked_for, *, arrived=None):
        replies = []
        for place, request in enumerate(asked_for):
            self.asked += 1
            texts = tuple(f"text {self.asked} {k}" for k in range(request.n)) if self.asked % 3 else ()
            replies.append(Reply(texts=texts, input_tokens=1, output_tokens=1))
            if arrived:
                arrived(place, replies[-1])
        return replies


def test_one_refused_completion_stops_nothing():
    """pe: one refused completion raises out of the batch, and the texts that came are lost."""

    def write(order, texts, _):
        return requests(1, n=texts, label=order.label)[0]

    harvest = generate(
        {"m": Refusing()},
        [Order(model="m", label="late card", count=40)],
        write,
        round_number=0,
        texts_per_request=2,
        experiment_seed=0,
    )
    assert len(harvest.candidates) >= 36
    assert len(harvest.candidates) + harvest.lost["m"] == 40


def test_no_reply_is_paid_for_twice(tmp_path):
    """pe: no cache of replies; a run that stops is paid for again from the start."""
    models = [Refusing(), Refusing()]
    first, again = (Cached(provider=model, path=tmp_path / "replies.db").generate(requests(9)) for model in models)
    assert first == again
    assert [model.asked for model in models] == [9, 0]
