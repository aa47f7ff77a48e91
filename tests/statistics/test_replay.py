"""Neighbour replay passes sound code, and finds contributions that are broken on purpose, with few neighbours."""

import dataclasses
import functools
from unittest import mock

import numpy as np
import pytest

from client import answer
from client.contributions import class_sums, contribute, counts, sketch, votes
from client.records import EmbeddedRecords
from client.writers import fine_tuning
from common.privacy import mechanisms
from common.queries import closed_set
from common.queries.correct_count import CorrectCount
from common.queries.histograms import LabelHistogram
from common.queries.self_similarity import SelfSimilarity
from simulations.laboratory.audit import replay
from simulations.laboratory.audit.before_noise import Replay
from simulations.laboratory.audit.finding import AuditFinding
from simulations.laboratory.audit.neighbours import Neighbourhood

RUNS = (
    "wasp, users",
    "class_sums, users",
    "class_sums, terms, users",
    "class_sums, several labels, users",
    "class_sums, letters, users",
    "dpga",
    "dp_kps, gaussian",
    "rpsg, pool",
    "dp_sgd",
)
"""One of each kind of query, some at user level."""
NEIGHBOURS = {"dp_sgd": 40, "class_sums, letters, users": 80}
FEW = 120


@functools.cache
def asked(run):
    return {question.query.spec.kind: question for question in replay.record_queries(replay.RUNS[run])}


def finding_of(run, kind):
    return replay.replay_query(run, asked(run)[kind], NEIGHBOURS.get(run, FEW))


@pytest.mark.parametrize("run", RUNS)
def test_sound_contributions_pass_and_come_close_to_what_is_stated(run):
    for kind in asked(run):
        finding = finding_of(run, kind)
        assert finding.passed, finding
        assert finding.unseen.startswith("a bound ")
        assert float(finding.figure.split()[-1].rstrip("%")) > 40


def test_every_kind_with_a_proof_is_replayed():
    assert {kind for run in RUNS for kind in asked(run)} == set(closed_set.PROVEN)
    assert set(replay.WITHOUT_PROOF) == {"abstracted seeds", "rewritten records"}


def doubled(real):
    return lambda *arguments, **how: 2 * real(*arguments, **how)


def first_five(real):
    """As if records beyond a number were dropped: one that is added takes the place of another."""
    return lambda query, records: real(query, records._only(np.arange(len(records.labels)) < 5))


def by_place(records, *_):
    return np.arange(len(records.labels), dtype=np.uint64)


def by_number(records, *_):
    return np.random.default_rng(len(records.labels)).permutation(len(records.labels)).astype(np.uint64)


def unclipped(tuner, rows, *, clip):
    return (1e4 * rows / clip).round()


def shared(query, records):
    """A share of the records, which every record moves."""
    return 1000 * counts.count_labels(query, records) // max(1, len(records.labels))


def every_pair(query, records):
    pairs = len(records.labels) * (len(records.labels) - 1) // 2
    return np.array([0, query.spec.grid * pairs])


BROKEN = {
    "votes counted twice": (votes, "_votes_of_label", doubled(votes._votes_of_label), "wasp, users", "votes"),
    "any number of a user's records": (EmbeddedRecords, "limited", lambda records, *_: records, "wasp, users", "votes"),
    "a subsample by place": (
        EmbeddedRecords,
        "sampled",
        lambda records, rate, _: records._only(by_place(records) % 5 < 4),
        "dpga",
        "votes",
    ),
    "records beyond a number dropped": (
        contribute,
        "contribution",
        first_five(contribute.contribution),
        "class_sums, users",
        "class sums",
    ),
    "coordinates not shortened": (
        class_sums,
        "shorten_rows",
        lambda rows, grid: (grid * rows).astype(np.int64),
        "class_sums, users",
        "class sums",
    ),
    "a record counted twice": (
        contribute,
        "CONTRIBUTIONS",
        {**contribute.CONTRIBUTIONS, CorrectCount: doubled(contribute.CONTRIBUTIONS[CorrectCount])},
        "class_sums, users",
        "correct count",
    ),
    "shares in place of counts": (
        contribute,
        "CONTRIBUTIONS",
        {**contribute.CONTRIBUTIONS, LabelHistogram: shared},
        "dpga",
        "label histogram",
    ),
    "each length twice": (
        counts,
        "lengths",
        lambda records: np.repeat([len(text) for text in records.texts], 2).astype(np.int64),
        "dpga",
        "length range",
    ),
    "every pair counted": (
        contribute,
        "CONTRIBUTIONS",
        {**contribute.CONTRIBUTIONS, SelfSimilarity: every_pair},
        "dpga",
        "self-similarity",
    ),
    "all terms of a text": (
        counts,
        "first_terms",
        lambda terms, texts, k, real=counts.first_terms: real(terms, texts, 99),
        "dp_kps, gaussian",
        "vocabulary histogram",
    ),
    "features a hundredth too large": (
        sketch,
        "features",
        lambda *arguments, real=sketch.features: 1.01 * real(*arguments),
        "dp_kps, gaussian",
        "density sketch",
    ),
    "choosers drawn by their number": (EmbeddedRecords, "digests", by_number, "rpsg, pool", "seed choice"),
    "gradients not clipped": (fine_tuning.Tuner, "rounded", unclipped, "dp_sgd", "fine-tuned samples"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_what_is_broken_on_purpose_is_found(fault):
    place, name, broken, run, kind = BROKEN[fault]
    question = asked(run)[kind]
    with mock.patch.object(place, name, broken):
        finding = replay.replay_query(run, question, NEIGHBOURS.get(run, FEW))
    assert not finding.passed
    assert ", first: " in finding.figure


@pytest.mark.parametrize(
    ("run", "kind"),
    [("wasp, users", "votes"), ("class_sums, users", "class sums"), ("dp_kps, gaussian", "density sketch")],
)
def test_a_sensitivity_stated_too_small_by_a_hundredth_is_found(run, kind, monkeypatch):
    question = asked(run)[kind]
    stated = question.query.spec.sensitivity
    smaller = dataclasses.replace(stated, l1=int(0.99 * stated.l1), l2_squared=int(0.99**2 * stated.l2_squared))
    monkeypatch.setattr(type(question.query.spec), "sensitivity", smaller)
    assert not finding_of(run, kind).passed


def test_a_replay_gives_what_the_parties_of_the_run_gave():
    """Without noise the run's own answers are there to compare with."""
    arguments = {}
    real = answer.answer

    def keeping(query, **how):
        values = arguments[how["index"], how["records"].vectors.tobytes()] = real(query, **how)
        return values

    with mock.patch.object(answer, "answer", keeping):
        questions = replay.record_queries((*replay.RUNS["class_sums"], "privacy.epsilon=.inf"))
    assert len(questions) == 2
    for question in questions:
        neighbourhood = Neighbourhood(
            starts=question.starts, sources={}, plan=question.plan, max_records=1, encoder=question.party.encoder
        )
        again = Replay(question.query, index=question.index, plan=question.plan, party=question.party)
        with again.replaced():
            for private in map(neighbourhood._private, question.starts):
                values = arguments.pop((question.index, private.vectors.tobytes()))
                assert np.array_equal(again.before_noise(private), values[None])
    assert not arguments


def test_nothing_is_replaced_when_a_replay_has_ended():
    question = asked("rpsg, pool")["seed choice"]
    real = (answer.secure_bytes, mechanisms.noisy_max, fine_tuning.Tuner.rounded)
    replay.replay_query("rpsg", question, 1)
    assert (answer.secure_bytes, mechanisms.noisy_max, fine_tuning.Tuner.rounded) == real


@pytest.mark.parametrize("sound", [True, False])
def test_the_table_and_the_exit_code(sound, capsys, monkeypatch):
    questions = list(asked("rpsg, pool").values())
    monkeypatch.setattr(replay, "record_queries", lambda _: questions)
    monkeypatch.setattr(
        replay,
        "replay_query",
        lambda run, _, neighbours, **__: AuditFinding(
            check=f"{run}: choices", figure=f"{neighbours}", limit="0", passed=sound
        ),
    )
    if sound:
        replay.main(["--quick", "--runs", "wasp"])
    else:
        with pytest.raises(SystemExit, match="1"):
            replay.main(["--neighbours", "200", "--runs", "wasp"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["wasp:", "choices", "200", "0", "passed" if sound else "FAILED"]
    assert lines[-1].startswith(f"{int(not sound)} of 1 queries moved by more than is stated; 1 of 14 kinds")
