"""A new query that is a sum is answered after steps 1 to 3 of `common/queries/__init__.py`; a run needs all five."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from client import answer
from client.contributions import contribute
from client.records import embed_records
from client.session import RefusalError
from common.errors import ProtocolError
from common.ledger.ledger import Ledger
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.privacy.mechanisms import SUMMED
from common.privacy.sensitivity import Sensitivity
from common.queries import closed_set
from common.queries.arrays import wrong
from common.queries.page import Query, Spec
from tests.support.federations import ENCODER, LABELS, OPEN, plan, records


@dataclass(frozen=True, slots=True, kw_only=True)
class LongerThanSpec(Spec):
    """How many records are longer than each of some lengths: l1 = `lengths`."""

    kind: ClassVar[str] = "longer than"
    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    grid: ClassVar[int] = 1
    largest: ClassVar[int] = 1
    lengths: int
    max_records: int = 1

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity.of((1,) * self.lengths, self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LongerThan(Query):
    dtypes: ClassVar[Mapping[str, str]] = {"bounds": "<i8"}
    spec: LongerThanSpec
    bounds: np.ndarray

    @property
    def length(self) -> int:
        return self.spec.lengths

    def check(self, labels: int, dimensions: int) -> None:
        if self.bounds.max() > dimensions:
            raise wrong(self.spec.kind, "bounds", f"at most {dimensions}", int(self.bounds.max()))


def _contribution(query, mine):
    lengths = np.array([len(text.split()) for text in mine.texts])
    return (lengths[:, None] > query.bounds).sum(axis=0)


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(closed_set, "QUERIES", (*closed_set.QUERIES, (LongerThanSpec, LongerThan)))
    monkeypatch.setattr(contribute, "CONTRIBUTIONS", {**contribute.CONTRIBUTIONS, LongerThan: _contribution})
    return LongerThan(spec=LongerThanSpec(lengths=3), bounds=np.array([0, 4, 9]))


def _ask(toy, folder, *, epsilon):
    agreed = plan(3, queries=(PlannedQuery(name="toy", spec=toy.spec),), epsilon=epsilon)
    party = answer.Party(ledger=Ledger(folder / "l.db"), limits=OPEN, data_set="", encoder=ENCODER, writers={})
    mine = embed_records(records(0), ENCODER).for_plan(LABELS)
    return agreed, answer.answer(toy, digest=bytes(32), run="run", index=0, plan=agreed, records=mine, party=party)


def test_it_is_planned_sent_and_answered(toy, tmp_path):
    agreed, counts = _ask(toy, tmp_path, epsilon=math.inf)
    assert counts.tolist() == [5, 5, 0]
    assert Plan.from_dict(agreed.to_dict()) == agreed
    shapes = {name: array.shape for name, array in closed_set.inputs(toy).items()}
    assert closed_set.digest(closed_set.from_bytes(toy.spec, shapes, closed_set.to_bytes(toy))) == closed_set.digest(
        toy
    )


def test_it_is_noised_and_priced(toy, tmp_path):
    agreed, _ = _ask(toy, tmp_path, epsilon=1.0)
    assert agreed.queries[0].scale > 1
    assert not agreed.queries[0].unproven


def test_a_query_that_its_page_refuses_is_not_answered(toy, tmp_path):
    other = LongerThan(spec=toy.spec, bounds=np.array([0, 4, 33]))
    with pytest.raises(ProtocolError, match="at most 32"):
        other.check(2, 32)
    with pytest.raises(RefusalError, match="at most 32"):
        _ask(other, tmp_path, epsilon=1.0)


def test_without_its_line_in_the_closed_set_it_cannot_be_asked():
    with pytest.raises(ProtocolError, match="one of votes"):
        closed_set.make_query(LongerThanSpec(lengths=3), {})
