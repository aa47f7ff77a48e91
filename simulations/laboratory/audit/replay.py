"""Replay on neighbours: whether any answer of a whole run is more sensitive than its noise assumes.

    make audit    or    OMP_NUM_THREADS=1 python -m simulations.laboratory.audit.replay [--quick] [--neighbours 10000]

1. A small federation runs each method once, in this process, from start to end; every query that it broadcasts is
   recorded.
2. For each query, the parties' own code (`client/answer.py`, from the records to the bounded answer) answers it for
   random neighbouring data sets, under the same randomness and without noise (`before_noise.py`, `neighbours.py`).
3. The difference between the answers of two neighbours is compared with the query's bounds (`changes.py`).

The method is that of arXiv 2602.17454, which found violations in 12 libraries for differential privacy. A neighbour
gets the queries that were broadcast in the recorded run, although its own noised answers might have led to other
queries. This suffices, since adaptive composition requires a bound on each answer given all answers before it, and
these determine the queries. Neighbours differ by one added or removed unit, as defined in
`common/queries/closed_set.py`; replacing a record takes two steps.

Queries without a proof are listed, but not replayed, as there is no bound to compare their answers with.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from client import answer
from client.writers import causal_model
from common import rng
from common.phrases import percent
from common.plan.plan import Plan
from common.queries import closed_set
from server.prepare.compose import check_simulation, compose_settings
from server.run_folder import read_candidates
from server.tasks import demo_notes
from simulations.federation import parties
from simulations.laboratory.audit.before_noise import Replay
from simulations.laboratory.audit.changes import change
from simulations.laboratory.audit.finding import AuditFinding, head, print_finding
from simulations.laboratory.audit.neighbours import EmbeddedRecord, Neighbourhood, embed_records, sources
from simulations.run import simulate

NEIGHBOURS = 10_000
_QUICK = 200
_RECORDS = 12
"""Number of records of each party."""
_SMALL = (
    "federation.parties=2",
    "method.samples=16",
    "evaluation.metrics=[]",
    "task=demo_notes",
    "llm.use=[broad]",
    f"task.records_per_party={_RECORDS}",
    "task.test_records=8",
    "task.public_notes=60",
)
_USERS = ("privacy.unit=user", "privacy.max_records=3")
_TERMS = """\
fever
cough
chest pain
oxygen
lactate
swelling
antibiotics
pain
no note has this
aspirin
nausea
scan
"""
_DPGA = (
    "method=dpga",
    "method.rounds=2",
    "method.keywords=4",
    "method.longest=60",
    "method.bins=12",
    "method.tau=null",
)
_DP_KPS = ("method=dp_kps", "method.vocabulary={terms}", "method.kept_terms=6", "method.length=3", "method.features=24")
_RPSG = ("method=rpsg", "method.pool=12", "method.refinement.nll=1", "method.choices=8")
_SUMS = ("method=class_sums", "method.directions=5", "evaluation.federated=0.1")
_AUG_PE = ("method=aug_pe", "method.rounds=2")
_DP_SGD = ("method=dp_sgd", "method.max_tokens=32", "method.samples=4", "task.records_per_party=3")

RUNS: dict[str, tuple[str, ...]] = {
    "wasp": ("method=wasp", "method.rounds=3", "method.samples=64", "evaluation.federated=0.1"),
    "wasp, Q 1, no contrast": ("method=wasp", "method.rounds=2", "method.contrast=false", "method.top=1"),
    "wasp, look ahead": ("method=wasp", "method.rounds=2", "method.look_ahead=2"),
    "wasp, users": ("method=wasp", "method.rounds=2", "method.samples=64", "evaluation.federated=0.1", *_USERS),
    "class_sums": _SUMS,
    "class_sums, users": (*_SUMS, *_USERS),
    "class_sums, questions": (*_SUMS, "method.questionnaire=questions"),
    "class_sums, terms, users": (*_SUMS, "method.questionnaire=terms", *_USERS),
    "class_sums, several labels, users": (*_SUMS[:2], "task.labels_per_text=3", *_USERS),
    "class_sums, letters, users": (*_SUMS[:2], "task=demo_letters", "task.public_notes=20", "method.words=60", *_USERS),
    "wasp, several labels": ("method=wasp", "method.rounds=2", "method.samples=64", "task.labels_per_text=3"),
    "aug_pe": _AUG_PE,
    "aug_pe_plus": ("method=aug_pe_plus", *_AUG_PE[1:], "method.vocabulary={terms}", "method.kept_terms=10"),
    "pre_text, users": ("method=pre_text", "method.rounds=2", "method.seeds=12", "method.look_ahead=2", *_USERS),
    "dpga": (*_DPGA, "method.buckets=12"),
    "dpga, redrawn": (*_DPGA, "method.buckets=3", "method.redraw=true"),
    "dpga, users": (*_DPGA, "method.buckets=4", *_USERS),
    "dp_kps": _DP_KPS,
    "dp_kps, gaussian": (*_DP_KPS, "method.mechanism=gaussian", "method.sequence=iterative"),
    "dp_kps, users": (*_DP_KPS, "method.mechanism=gaussian", *_USERS),
    "rpsg, pool": _RPSG,
    "rpsg, graded": (*_RPSG, "method.nearest=0", "method.mechanism=permute and flip"),
    "rpsg, users": (*_RPSG, *_USERS),
    "rpsg, histogram": (*_RPSG, "method.candidates=histogram"),
    "rpsg, histogram, gaussian": (*_RPSG, "method.candidates=histogram", "method.mechanism=gaussian"),
    "dp_sgd": (*_DP_SGD, "method.steps=2", "method.rate=0.6"),
    "dp_sgd, users": (*_DP_SGD, "method.steps=1", "method.rate=1.0", *_USERS),
}
"""Settings of each run, keyed by the run's name: all methods with proved queries, and all settings that change queries.
"""
WITHOUT_PROOF = tuple(kind for kind in closed_set.KINDS if kind not in closed_set.PROVEN)

_TINY: dict[str, Any] = {"_WIDTH": 16, "_LAYERS": 1, "_HEADS": 2}
"""Constants of `causal_model` that make the model trained by a party small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastQuery:
    """A query that was broadcast.

    Attributes:
        query: The query.
        index: The query's index in the plan.
        plan: The plan of its run.
        party: The party that answered the query last, without its records.
        starts: The records of each party.
        released: The texts that the run released.
    """

    query: closed_set.Query
    index: int
    plan: Plan
    party: answer.Party
    starts: Sequence[Sequence[EmbeddedRecord]]
    released: Sequence[str]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; exit with code 1 if an answer changed by more than its bound."""
    parser = argparse.ArgumentParser(prog="replay", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK} neighbours of each query: a minute")
    parser.add_argument("--neighbours", type=int, default=NEIGHBOURS, help="of each query")
    parser.add_argument("--experiment-seed", type=int, default=0, help="another one draws other neighbours")
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=list(RUNS), metavar="RUN", help="only these")
    options = parser.parse_args(arguments)
    head()
    passed, kinds = [], set()
    for name in options.runs:
        for question in record_queries(RUNS[name]):
            kinds.add(question.query.spec.kind)
            neighbours = _QUICK if options.quick else options.neighbours
            passed.append(
                print_finding(replay_query(name, question, neighbours, experiment_seed=options.experiment_seed))
            )
    sys.stdout.write(
        f"\n{passed.count(False)} of {len(passed)} queries moved by more than is stated; {len(kinds)} of "
        f"{len(closed_set.PROVEN)} kinds with a proof; without one, at infinite epsilon: {', '.join(WITHOUT_PROOF)}\n"
    )
    if not all(passed):
        sys.exit(1)


def record_queries(settings: Sequence[str]) -> list[BroadcastQuery]:
    """Run a federation with these settings; return all queries that it broadcast, in order."""
    asked: dict[int, tuple[closed_set.Query, Plan, answer.Party]] = {}
    real = answer.answer

    def recording(query: closed_set.Query, **how: Any) -> NDArray[np.int64]:
        asked[how["index"]] = (query, how["plan"], how["party"])
        return real(query, **how)

    with tempfile.TemporaryDirectory() as name, mock.patch.multiple(causal_model, **_TINY):
        folder = Path(name)
        terms = folder / "terms.txt"
        terms.write_text(_TERMS)
        config = check_simulation(compose_settings([*_SMALL, *(setting.format(terms=terms) for setting in settings)]))
        with mock.patch.object(answer, "answer", recording):
            simulate(config, folder / "run")
        released = [candidate.text for candidate in read_candidates(folder / "run")]
        dealt = parties.deal(config)
    starts: list[list[EmbeddedRecord]] = []
    questions = []
    for index, (query, plan, party) in sorted(asked.items()):
        starts = starts or [embed_records(private, party.encoder) for private in dealt]
        questions.append(
            BroadcastQuery(query=query, index=index, plan=plan, party=party, starts=starts, released=released)
        )
    return questions


def replay_query(run: str, question: BroadcastQuery, neighbours: int, *, experiment_seed: int = 0) -> AuditFinding:
    """Return the finding on whether the answer changes between random neighbours by more than the query's bounds."""
    query, index, plan = question.query, question.index, question.plan
    planned = plan.query(index)
    random = rng.experiment(experiment_seed, "neighbours", run, index)
    others = demo_notes.private_notes(len(question.starts), 4 * _RECORDS, 1)
    encoder = question.party.encoder
    neighbourhood = Neighbourhood(
        starts=question.starts,
        sources=sources(query, plan, encoder, ordinary=embed_records(others, encoder), released=question.released),
        plan=plan,
        max_records=planned.spec.max_records,
        encoder=encoder,
    )
    replay = Replay(query, index=index, plan=plan, party=question.party)
    largest, violations, first = 0.0, 0, ""
    with mock.patch.multiple(causal_model, **_TINY), replay.replaced():
        bound, before = None, None
        for step in neighbourhood.walks(neighbours, random):
            if not step.changed:
                # Every second walk, answers are cut as those of too many records would be.
                bound = None if bound else _RECORDS // 4
                before = replay.before_noise(step.private, max_records_per_party=bound)
                continue
            after = replay.before_noise(step.private, max_records_per_party=bound)
            assert before is not None
            share, within = change(planned, before, after)
            largest, violations = max(largest, share), violations + (not within)
            first = first or ("" if within else f", first: {step.changed}")
            before = after
    return AuditFinding(
        check=f"{run}: {planned.name} {index}",
        figure=f"{violations} of {neighbours} beyond, largest {percent(largest)}{first}",
        limit=f"0, {planned.mechanism}",
        unseen="" if violations else f"a bound {percent(1 - largest)} too small",
        passed=not violations,
    )


if __name__ == "__main__":
    main()
