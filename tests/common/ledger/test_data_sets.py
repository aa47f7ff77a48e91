from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import LedgerError
from common.ledger.data_sets import DIGEST_BYTES, data_set_name, record_digests
from common.ledger.ledger import Ledger
from common.privacy.accountant import ReleasedAnswers
from common.privacy.sensitivity import Sensitivity
from tests.support.ledgers import edited

RECORDS = st.lists(st.binary(min_size=1, max_size=2), max_size=8)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@given(RECORDS, RECORDS, st.randoms())
def test_a_name_stands_for_the_multiset_of_records(one, other, random):
    def name(records):
        return data_set_name(bytes(32), record_digests(bytes(32), records))

    shuffled = random.sample(one, len(one))
    assert name(one) == name(shuffled)
    assert (name(one) == name(other)) == (Counter(one) == Counter(other))


@given(RECORDS, RECORDS)
def test_digests_are_shared_exactly_by_data_sets_that_share_a_record(one, other):
    shared = set(record_digests(bytes(32), one)) & set(record_digests(bytes(32), other))
    assert len(shared) == (Counter(one) & Counter(other)).total()


def test_digests_need_the_key():
    records = [b"a", b"b", b"a"]
    one, other = (record_digests(bytes([key]) * 32, records) for key in (1, 2))
    assert not set(one) & set(other)
    assert {len(digest) for digest in one} == {DIGEST_BYTES}
    assert len(set(one)) == 3


@given(sets=st.lists(RECORDS, min_size=1, max_size=5))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_overlapping_data_sets_are_those_that_share_a_record(sets, path):
    path.unlink(missing_ok=True)
    ledger = Ledger(path)
    names = [ledger.data_set(records) for records in sets]
    for number, name in enumerate(names):
        release = ReleasedAnswers(
            mechanism="pure", sensitivity=Sensitivity(l1=1, l2_squared=1, touched=1), scale=1.0 + number
        )
        ledger.reserve(
            run=f"{number}", index=0, plan_digest=bytes(32), query_digest=bytes(32), release=release, data_set=name
        )
    for name, records in zip(names, sets, strict=True):
        expected = {
            1.0 + number
            for number, (other_name, other) in enumerate(zip(names, sets, strict=True))
            if set(other) & set(records) or other_name == name
        }
        assert {release.scale for release in ledger.charged(name, but="")} == expected


def test_the_same_records_have_one_name_in_one_file_and_another_in_another(path, tmp_path):
    records = [b"a", b"b"]
    name = Ledger(path).data_set(records)
    size = path.stat().st_size
    assert Ledger(path).data_set(iter(reversed(records))) == name
    assert path.stat().st_size == size
    assert Ledger(tmp_path / "other.db").data_set(records) != name


def test_no_record_lies_in_the_file(path):
    record = b"seen for chest pain on the third"
    Ledger(path).data_set([record])
    assert record not in path.read_bytes()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM records",
        "DELETE FROM records WHERE digest = (SELECT max(digest) FROM records)",
        "UPDATE records SET digest = zeroblob(16) WHERE digest = (SELECT max(digest) FROM records)",
        "INSERT INTO records SELECT zeroblob(16), number FROM data_sets",
    ],
)
def test_records_that_were_edited_are_seen_when_the_ledger_is_opened(path, statement):
    name = Ledger(path).data_set([b"a", b"b"])
    edited(path, statement)
    with pytest.raises(LedgerError, match=f"data set {name[:8]}"):
        Ledger(path)
