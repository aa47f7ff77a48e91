import numpy as np
import pytest

from common.errors import InternalError, PlanError
from common.secagg import ring

TOP = 2**63 - 1


def test_encode_and_decode_are_inverse_at_the_edges():
    values = np.array([0, 1, -1, TOP, -TOP], dtype=np.int64)
    encoded = ring.encode(values)
    assert encoded.tolist() == [0, 1, 2**64 - 1, TOP, 2**64 - TOP]
    assert ring.decode(encoded).tolist() == values.tolist()


def test_encode_makes_a_copy():
    values = np.array([5], dtype=np.int64)
    ring.encode(values)[0] = 7
    assert values[0] == 5


def test_sums_wrap_as_integers_modulo_two_to_the_64():
    total = np.array([2**64 - 1, 3], dtype=np.uint64)
    ring.add_into(total, np.array([2, 2**64 - 4], dtype=np.uint64))
    assert total.tolist() == [1, 2**64 - 1]
    assert ring.decode(total).tolist() == [1, -1]


@pytest.mark.parametrize("parties", [1, 2, 3, 1000])
def test_the_largest_values_allowed_sum_exactly_and_one_more_is_refused(parties):
    largest = ring.limit(parties)
    values = np.array([largest, -largest], dtype=np.int64)
    total = np.zeros(2, dtype=np.uint64)
    for _ in range(parties):
        ring.add_into(total, ring.encode(values, parties=parties))
    assert ring.decode(total).tolist() == [parties * largest, -parties * largest]
    with pytest.raises(PlanError, match="cannot wrap"):
        ring.encode(values + np.sign(values), parties=parties)


@pytest.mark.parametrize(("value", "parties"), [(TOP // 3 + 1, 3), (-(TOP // 3) - 1, 3), (-(2**63), 1)])
def test_values_that_could_wrap_are_refused_and_not_shown(value, parties):
    with pytest.raises(PlanError, match="cannot wrap") as caught:
        ring.encode(np.array([0, value], dtype=np.int64), parties=parties)
    assert str(abs(value)) not in str(caught.value)


@pytest.mark.parametrize("dtype", [np.float64, np.uint64, np.int32, object])
def test_other_types_than_int64_are_refused_never_cast(dtype):
    with pytest.raises(PlanError, match="int64"):
        ring.encode(np.array([1], dtype=dtype))


@pytest.mark.parametrize(
    "values", [np.array([], np.int64), np.zeros((1, 1), np.int64), np.int64(1), [1], None], ids=repr
)
def test_what_is_no_vector_is_refused(values):
    with pytest.raises(PlanError, match="one axis"):
        ring.encode(values)


def test_vectors_outside_the_ring_are_our_bug():
    good = np.zeros(2, dtype=np.uint64)
    with pytest.raises(InternalError, match="dtype"):
        ring.decode(good.view(np.int64))
    with pytest.raises(InternalError, match="dtype"):
        ring.add_into(good, good.astype(np.float64))
    with pytest.raises(InternalError, match="shape"):
        ring.add_into(good, np.zeros(1, dtype=np.uint64))
