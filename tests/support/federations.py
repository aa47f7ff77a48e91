"""Tiny federations of real parties for tests: `make(parties=3, epsilon=4)`."""

import functools
import math
from dataclasses import replace

import numpy as np

from client.admission import HospitalTerms
from client.app import relay
from client.contributions.contribute import contribution
from client.guard import Limits
from client.records import RecordSections, embed_records
from client.service import PartyService
from common.domain import Record
from common.ledger.ledger import Ledger
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSumsSpec
from common.queries.closed_set import PROVEN, make_query
from common.queries.correct_count import CorrectCountSpec
from common.queries.histograms import LabelHistogramSpec, LengthHistogramSpec, VocabularySpec
from common.queries.label_sets import LabelSetsSpec
from common.queries.length_range import LengthRangeSpec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.section_order import SectionOrderSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.self_similarity import SelfSimilaritySpec
from common.queries.sketch import SketchSpec
from common.queries.terms import encode_terms
from common.queries.votes import Votes, VotesSpec
from common.secagg.identity import Identity, Roster
from common.sections import normal_heading
from server.federation.ask import Federation
from server.federation.checkpoint import Checkpoint
from server.federation.network import FlowerNetwork
from server.planning.calibration import calibrate
from simulations.federation.local_grid import LocalGrid

LABELS = ("a", "b")
CANARY = "zyxcanaryzyx"
DECLARED = 1000
"""Number of records that each party declares; a folder of `caucus-party init` declares as many."""
ENCODER = Encoder.hashed_ngrams(dimensions=32, bits=10)


def lenient(**changes):
    """Return limits without a lifetime budget that trust the coordinator to follow the protocol, with `changes`."""
    trusting = {"malicious_coordinator": False, "corrupt": 0.0, "lifetime_epsilon": None, "min_survivors": 1}
    trusting |= {"queries": PROVEN}
    return Limits(**trusting | changes)


OPEN = lenient(max_epsilon=float("inf"), max_delta=0.5, max_top=20, unsafe_no_noise=True)


def records(party, count=5):
    return [Record(f"{CANARY}{party} note {party * 31 + i} of {LABELS[i % 2]}", LABELS[i % 2]) for i in range(count)]


def plan(parties=3, *, epsilon=4.0, calibration="tight", spec=None, times=2, queries=None, **changes):
    """Return a calibrated plan with a query of votes, or with these queries."""
    secure = changes.get("secure", parties > 1)
    settings = {
        "method": "test",
        "labels": LABELS,
        "encoder": ENCODER.digest,
        "parties": parties,
        "max_dropouts": 0,
        "colluders": 0,
        "threshold": parties // 2 + 1 if secure else 1,
        "secure": secure,
        "degree": parties - 1 if secure else 0,
        "corrupt": changes.get("colluders", 0) if secure else 0,
        "epsilon": math.inf,
        "delta": 1e-5,
        "unit": "sample",
        "queries": queries or (PlannedQuery(name="votes", spec=spec or VotesSpec(top=4), times=times),),
    }
    return calibrate(Plan(**(settings | changes)), epsilon, calibration=calibration)


def query(seed=0, candidates=12, top=4, max_records=1):
    texts = [f"candidate {seed} {i} {'xyz'[i % 3]}" for i in range(candidates)]
    labels = np.array([i % 2 for i in range(candidates)], dtype=np.int32)
    return Votes(spec=VotesSpec(top=top, max_records=max_records), vectors=ENCODER.encode(texts), labels=labels)


TERMS = ("note", "note of", "canary", "of")


def each_kind(max_records=1, seed=0):
    """Return a query of each kind except those for texts, keyed by kind, for the records and labels of this module."""
    rng = np.random.default_rng(seed)
    pool = ENCODER.encode([f"pool {seed} {i}" for i in range(6)])
    terms = {"terms": encode_terms(TERMS), "vectors": ENCODER.encode(list(TERMS))}
    frequencies = rng.normal(size=(8, 32)).astype(np.float32)
    phases = rng.uniform(0, 7, 8).astype(np.float32)
    edges = np.array([3, 5, 9], dtype=np.int32)
    weights = rng.normal(size=(2, 32)).astype(np.float32)
    sums = {"labels": 2, "directions": 3, "count": 20, "grid": 40, "max_records": max_records}
    space = {"basis": np.eye(3, 32, dtype=np.float32), "centres": pool[:2], "radius": np.array([0.4], np.float32)}
    arguments = (
        (
            VotesSpec(top=4, fine=2, max_records=max_records),
            {"vectors": pool, "labels": np.arange(6, dtype=np.int32) % 2},
        ),
        (LabelHistogramSpec(labels=2, max_records=max_records), {}),
        (LabelSetsSpec(labels=2, labels_per_record=2, max_records=max_records), {}),
        (SectionOrderSpec(labels=2, max_records=max_records), {}),
        (LengthHistogramSpec(bins=4, max_records=max_records), {"edges": edges}),
        (VocabularySpec(first=2, max_records=max_records), {"terms": terms["terms"]}),
        (
            SketchSpec(labels=2, features=8, paired=False, first=2, max_records=max_records),
            {**terms, "frequencies": frequencies, "phases": phases},
        ),
        (ClassSumsSpec(**sums), space),
        (QuestionnaireSpec(**sums, words=20, ending=10, first=2, term=5), {**space, "terms": terms["terms"]}),
        (SelfSimilaritySpec(buckets=5, max_records=max_records), {}),
        (CorrectCountSpec(max_records=max_records), {"weights": weights, "intercepts": np.zeros(2, dtype=np.float32)}),
        (LengthRangeSpec(cap=12, max_records=max_records), {}),
        (
            SeedChoiceSpec(choices=4, max_records=max_records),
            {"vectors": pool, "labels": np.arange(6, dtype=np.int32) % 2},
        ),
    )
    return {spec.kind: make_query(spec, arrays) for spec, arrays in arguments}


IDENTITIES = {party: Identity(bytes([party + 1]) * 32) for party in range(200)}


def roster(parties):
    return Roster({party: IDENTITIES[party].public for party in range(parties)})


def in_sections(mine):
    """Return the records, each as one section under its label, so that plans by sections see what others see."""
    parts = RecordSections(
        numbers=tuple(range(len(mine))),
        headings=tuple(normal_heading(record.label) for record in mine.records),
        texts=tuple(record.text for record in mine.records),
        vectors=mine.vectors,
    )
    return replace(mine, sections=parts)


@functools.cache
def of_party(party):
    return in_sections(embed_records(records(party), ENCODER))


def service(folder, party, private=None, limits=OPEN, known=None, **changes):
    return PartyService(
        **{
            "party": party,
            "declared": DECLARED,
            "private": of_party(party) if private is None else in_sections(embed_records(private, ENCODER)),
            "terms": lambda: HospitalTerms(limits=limits),
            "ledger": Ledger(folder / f"party-{party}.db"),
            "identity": IDENTITIES[party] if known else None,
            "roster": known,
        }
        | changes
    )


def federation(folder, services, agreed, *, run="run", known=None, retries=0, **faults):
    grid = LocalGrid(relay(lambda context: services[context.node_config["partition-id"]]), len(services), **faults)
    return Federation(
        network=FlowerNetwork(grid, timeout=0),
        plan=agreed,
        run=run,
        checkpoint=Checkpoint(folder / "state"),
        ledger=Ledger(folder / "coordinator.db"),
        roster=known,
        retries=retries,
    )


def true_counts(query, private):
    """Return the contribution of a party with these records, without noise."""
    return contribution(query, embed_records(private, ENCODER).for_plan(LABELS))
