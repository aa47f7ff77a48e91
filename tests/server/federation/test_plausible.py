"""Sums that honest records add up to pass with whatever noise; sums that none add up to are refused and said.

An honest sum is refused with a probability below 1e-9: the 1,300 draws below are all accepted.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from client.contributions.contribute import CONTRIBUTIONS
from common.domain import Record
from common.errors import ProtocolError
from common.plan.planned import PlannedQuery
from common.privacy.mechanisms import SUMMED
from common.privacy.samplers import discrete_gaussian, discrete_laplace
from common.rng import secure_bytes
from server.federation import plausible
from server.federation.plausible import check_sum
from tests.support.federations import LABELS, each_kind, plan, true_counts

PARTIES, RECORDS = 5, 40
EVERYBODY = frozenset(range(PARTIES))
ASKED = {kind: query for kind, query in each_kind().items() if set(SUMMED) & set(query.spec.mechanisms)}


def planned(query, mechanism="gaussian", scale=4.0, **changes):
    """One answer to this query with this noise, of hospitals with at most so many records each."""
    one = PlannedQuery(name="asked", spec=query.spec, mechanism=mechanism, scale=scale)
    settings = {"max_dropouts": 1, "colluders": 1, "corrupt": 1, "max_records_per_party": RECORDS}
    return replace(
        plan(PARTIES, epsilon=math.inf, queries=(replace(one, scale=0.0),), **settings | changes), queries=(one,)
    )


def records(seed, count=PARTIES * RECORDS):
    """So many records, most of one label."""
    rng = np.random.default_rng(seed)
    return [
        Record(f"note {rng.integers(50)} of canary {place}", LABELS[int(rng.random() < 0.2)]) for place in range(count)
    ]


def refused(query, values, agreed=None):
    """What is said of a sum; nothing if it is accepted."""
    agreed = agreed or planned(query)
    try:
        check_sum(query, np.asarray(values, dtype=np.int64), plan=agreed, index=0, survivors=EVERYBODY)
    except ProtocolError as error:
        return str(error)
    return ""


def test_every_sum_has_its_checks():
    unregistered = plausible._of_kind.dispatch(object)
    assert {query for query in CONTRIBUTIONS if plausible._of_kind.dispatch(query) is unregistered} == set()
    assert set(CONTRIBUTIONS) == {type(query) for query in ASKED.values()}
    with pytest.raises(NotImplementedError):
        list(unregistered(None, None, None))


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("count", [0, 1, 17, PARTIES * RECORDS])
def test_sums_of_records_are_accepted_without_any_noise(kind, count):
    for seed in range(2):
        counts = true_counts(ASKED[kind], records(seed, count))
        assert refused(ASKED[kind], counts, planned(ASKED[kind], scale=0.0)) == ""


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize(("mechanism", "scale"), [("gaussian", 4.0), ("gaussian", 400.0), ("laplace", 20.0)])
def test_sums_with_noise_are_accepted(kind, mechanism, scale):
    agreed = planned(ASKED[kind], mechanism, scale)
    counts, length = true_counts(ASKED[kind], records(0, 30)), ASKED[kind].length
    for _ in range(40):
        if mechanism == "gaussian":
            shares = [
                discrete_gaussian(agreed.share_sigma(agreed.queries[0]), length, secure_bytes(32)) for _ in EVERYBODY
            ]
        else:
            shares = [discrete_laplace(scale, length, secure_bytes(32), shares=agreed.noise_parties) for _ in EVERYBODY]
        assert refused(ASKED[kind], counts + sum(shares), agreed) == ""


def test_vectors_longer_than_their_count_are_refused_by_label():
    """The third review: sums of norm 10^4 with a count of 0 passed."""
    query = ASKED["class sums"]
    grid, count, per_label = query.spec.grid, query.spec.count, query.spec.directions + 1
    honest = true_counts(query, records(1))
    assert refused(query, honest) == ""
    lie = honest.copy()
    lie[per_label : per_label + 3] += 10_000 * grid // 3
    assert "vectors of b" in refused(query, lie, planned(query, max_records_per_party=2**20))
    # The other label's records do not excuse it, and neither do as many records as the hospitals never declared.
    lie = np.zeros_like(honest)
    lie[per_label - 1] = 100 * count
    lie[per_label] = 100 * grid
    assert "vectors of b" in refused(query, lie)
    lie[-1] = 2 * PARTIES * RECORDS * count
    assert "all counts" in refused(query, lie)
    assert "negative count" in refused(query, -lie)


def test_votes_that_no_records_cast_are_refused_by_label():
    query = ASKED["votes"]
    top, candidates = query.spec.grid, len(query.labels)
    honest = true_counts(query, records(2))
    first = int(np.flatnonzero(query.labels == 1)[0])
    for change, message in (
        ({first: -60 * top}, "against a text of b"),
        ({first: 60 * top, candidates + first: 60 * top}, "one text of b"),
        (dict.fromkeys(np.flatnonzero(query.labels == 1), 60 * top), "furthest votes of b"),
    ):
        lie = honest.copy()
        for place, votes in change.items():
            lie[place] += votes
        assert message in refused(query, lie)
    assert "records behind" in refused(query, 13 * honest // 10)
    only_near = replace(query, spec=replace(query.spec, furthest=False))
    assert refused(only_near, honest[:candidates], planned(only_near)) == ""
    assert "records behind" in refused(only_near, 13 * honest[:candidates] // 10, planned(only_near))


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("label histogram", [-60, 0], "a negative count"),
        ("label histogram", [150, 150], "all counts"),
        ("length histogram", [100, 100, 100, 100], "all counts"),
        ("vocabulary histogram", [150, 150, 150, 150], "all counts"),
        ("questionnaire", [0] * 8 + [-60 * 20] + [0] * 17, "a negative count"),
        ("questionnaire", [0] * 8 + [150 * 20] * 2 + [0] * 16, "all counts"),
        ("questionnaire", [0] * 17 + [150 * 10] * 2 + [0] * 7, "all counts"),
        ("questionnaire", [0] * 22 + [150 * 5] * 4, "all counts"),
        ("questionnaire", [0] * 4 + [40 * 200] + [0] * 21, "length of the vectors of b"),
        ("self-similarity", [64 * 20, 0], "cosines relative to the number of pairs"),
        ("correct count", [-60, 20], "a negative count"),
        ("correct count", [150, 20], "correctly classified records relative to all records"),
        ("density sketch", [10**6] * 16, "a coordinate"),
    ],
)
def test_other_sums_that_no_records_add_up_to(kind, values, message):
    assert message in refused(ASKED[kind], values)


def test_what_is_said_names_hospitals_and_what_to_do():
    message = refused(ASKED["label histogram"], [10**6, 0])
    assert "asked: a coordinate;" in message
    assert f"at query 0: {', '.join(f'party {party}' for party in sorted(EVERYBODY))}. " in message
