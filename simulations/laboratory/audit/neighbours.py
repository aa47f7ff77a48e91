"""Walks over neighbouring data sets of one party: each data set has one unit more or less than the previous one.

A walk begins with the records that a party had in the recorded run, and drifts to more or fewer records, down to none.
Added units are ordinary, or copies of units that are present, or unusual: texts that are empty, long or in odd scripts;
texts of the run's own data set; texts of a query's terms; vectors of a query, their opposites and vectors halfway
between two of them; labels that are in no plan. At user level a unit is a user with up to m + 2 records, where m is the
largest number of records per user that count. These records are often copies of one record, and are spread among the
other records.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from client.records import PartyRecords, RecordSections
from common.domain import Record
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.queries.closed_set import inputs
from common.queries.page import Query
from common.queries.terms import decode_terms

STEPS = 40
"""Number of steps in a walk; the next walk begins with a party's own records again."""
_LONG = 2000
_ODD = (
    "",
    " \t\n ",
    ".",
    "\0",
    "\ud800",
    "ＦＥＶＥＲ ÀÉÎ ŒUVRE ΑΒΓ ЖЩ",
    "e\u0301" * 40,
    "\u202eback\u202c",
    "👩\u200d⚕️ 💉",
    "a" * 5000,
    "٣٤٥ 一二三 ⅷ ﬁ",
    "fever\x85cough\u2028chest\u3000pain",
)


class EmbeddedRecord(NamedTuple):
    """A record and its vector."""

    record: Record
    vector: NDArray[np.float32]


class WalkStep(NamedTuple):
    """One step of a walk: a data set, and its change from the previous one.

    Attributes:
        private: The data set.
        changed: Description of what was added to the previous data set or removed from it; empty for the first data
            set of a walk.
    """

    private: PartyRecords
    changed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """The data sets from which the walks of one query start, and the records that the walks add.

    Attributes:
        starts: The records of each party of the run.
        sources: Records to add, keyed by kind.
        plan: The run's plan, whose labels and unit are used.
        max_records: m, the largest number of records of one unit that count.
        encoder: The agreed encoder.
    """

    starts: Sequence[Sequence[EmbeddedRecord]]
    sources: Mapping[str, Sequence[EmbeddedRecord]]
    plan: Plan
    max_records: int
    encoder: Encoder

    def walks(self, neighbours: int, random: np.random.Generator) -> Iterator[WalkStep]:
        """Yield the steps of random walks over data sets, with `neighbours` pairs of neighbours in total."""
        for walk in range(0, neighbours, STEPS):
            data_set = self._start(self.starts[int(random.integers(len(self.starts)))])
            yield WalkStep(self._private(data_set), "")
            adds = random.choice([0.2, 0.5, 0.8])
            for _ in range(min(STEPS, neighbours - walk)):
                move = self._added if not data_set or random.random() < adds else self._without
                data_set, changed = move(data_set, random)
                yield WalkStep(self._private(data_set), changed)

    def _start(self, records: Sequence[EmbeddedRecord]) -> list[EmbeddedRecord]:
        if self.plan.unit == "sample":
            return list(records)
        # The demo's notes name no user: three notes each.
        return [_owned(record, f"user {place // 3}") for place, record in enumerate(records)]

    def _added(self, data_set: list[EmbeddedRecord], random: np.random.Generator) -> tuple[list[EmbeddedRecord], str]:
        kind = str(random.choice([*self.sources, "a copy"]))
        pool = self.sources.get(kind) or data_set or self.sources["an ordinary record"]
        if self.plan.unit == "sample":
            unit = [pool[int(random.integers(len(pool)))]]
            unit = [new._replace(record=replace(new.record, user=None)) for new in unit]
        else:
            count, user = int(random.integers(1, self.max_records + 3)), _new_user(data_set, random)
            places = np.full(count, random.integers(len(pool)))
            if random.random() < 1 / 2:
                places = random.integers(len(pool), size=count)
            unit = [_owned(pool[place], user) for place in places.tolist()]
        changed = list(data_set)
        for one in unit:
            changed.insert(int(random.integers(len(changed) + 1)), one)
        return changed, f"{kind} added"

    def _without(self, data_set: list[EmbeddedRecord], random: np.random.Generator) -> tuple[list[EmbeddedRecord], str]:
        place = int(random.integers(len(data_set)))
        if self.plan.unit == "sample":
            return data_set[:place] + data_set[place + 1 :], "a record removed"
        user = data_set[place].record.user
        return [one for one in data_set if one.record.user != user], "a user removed"

    def _private(self, data_set: Sequence[EmbeddedRecord]) -> PartyRecords:
        vectors = np.stack([one.vector for one in data_set]) if data_set else self.encoder.encode([])
        private = tuple(one.record for one in data_set)
        parts = RecordSections.of(private, self.encoder, self.plan.labels) if self.plan.by_section else None
        return PartyRecords(records=private, vectors=vectors, encoder=self.encoder, sections=parts)


def sources(
    query: Query, plan: Plan, encoder: Encoder, *, ordinary: Sequence[EmbeddedRecord], released: Sequence[str]
) -> dict[str, Sequence[EmbeddedRecord]]:
    """Return the records to add, keyed by kind.

    Args:
        query: The query; its arrays are public, and some records are made from the arrays.
        plan: The query's plan.
        encoder: The agreed encoder.
        ordinary: Ordinary records, like those of the parties.
        released: Texts that the run released, which were candidates before.
    """
    labels = cycle(plan.labels)
    texts = {
        "an odd text": [*_ODD, " ".join(f"word{i}" for i in range(_LONG)), " ".join(["fever"] * _LONG)],
        "a released text": released,
        "a text of terms": _of_terms(query),
    }
    records = {
        kind: [
            EmbeddedRecord(Record(text, next(labels)), vector)
            for text, vector in zip(of, encoder.encode(list(of)), strict=True)
        ]
        for kind, of in texts.items()
    }
    # Distinct texts: a party's vector is a function of the text, and a subsample tells copies of a text by number.
    records["a vector of the query"] = [
        EmbeddedRecord(Record(f"{example.record.text} {place}", next(labels)), vector)
        for place, (example, vector) in enumerate(_of_arrays(query, ordinary))
    ]
    records["an ordinary record"] = list(ordinary)
    records["an unknown label"] = [
        example._replace(record=replace(example.record, label="no label of the plan")) for example in ordinary
    ]
    return {kind: of for kind, of in records.items() if of}


def embed_records(records: Sequence[Record], encoder: Encoder) -> list[EmbeddedRecord]:
    """Return the records with their vectors; each record is embedded separately, as a party does."""
    return [EmbeddedRecord(record, encoder.encode([record.text])[0]) for record in records]


def _of_terms(query: Query) -> list[str]:
    array = inputs(query).get("terms")
    if array is None:
        return []
    terms = decode_terms(array)
    backwards = terms[::-1]
    return [" ".join(terms), " ".join(backwards), *(" ".join(backwards[place:]) for place in range(len(terms)))]


def _of_arrays(
    query: Query, ordinary: Sequence[EmbeddedRecord]
) -> Iterator[tuple[EmbeddedRecord, NDArray[np.float32]]]:
    """Yield ordinary records, each with a unit vector made from the query's arrays."""
    dim = len(ordinary[0].vector)
    arrays = [array for array in inputs(query).values() if array.ndim == 2 and array.shape[1] == dim]
    rows = np.concatenate([np.zeros((0, dim)), *arrays]).astype(np.float64)[:64]
    halfway = rows[:-1] + rows[1:]
    vectors = [*rows, *-rows, *halfway, *(rows[:-1] - rows[1:]), *(halfway * (1 + 1e-7)), rows.sum(axis=0)]
    for place, vector in enumerate(vectors):
        norm = float(np.linalg.norm(vector))
        if norm > 1e-6:  # equal rows have no difference
            yield ordinary[place % len(ordinary)], (vector / norm).astype(np.float32)


def _new_user(data_set: Sequence[EmbeddedRecord], random: np.random.Generator) -> str | None:
    """Return the name of a user that the data set lacks or, sometimes, None: the user of all records without a name."""
    nameless = all(one.record.user is not None for one in data_set) and random.random() < 0.1
    return None if nameless else f"user {random.integers(10**9, 10**10)}"


def _owned(embedded: EmbeddedRecord, user: str | None) -> EmbeddedRecord:
    return embedded._replace(record=replace(embedded.record, user=user))
