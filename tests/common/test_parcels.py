"""A parcel survives Flower's message; a small one needs few objects, and a large bulk is stored once for all."""

import pytest
from flwr.app import ConfigRecord, RecordDict

from common.messages import Parcel
from common.parcels import SMALL, contents, parcel_of
from tests.support.parts import parts_of


@pytest.mark.parametrize(("size", "objects"), [(0, 2), (SMALL, 2), (SMALL + 1, 5)])
def test_a_parcel_comes_back_from_few_objects_if_it_is_small(size, objects):
    parcel = Parcel(b"envelope", bytes(size))
    (content,) = contents([parcel])
    assert parcel_of(RecordDict(dict(content))) == parcel
    assert len(parts_of(content)) == objects


def test_a_large_bulk_is_one_array_for_all_who_share_it():
    bulk, other = bytes(SMALL + 1), bytes(SMALL + 2)
    parcels = [Parcel(b"1", bulk), Parcel(b"2", bulk), Parcel(b"3", other)]
    first, second, third = contents(parcels)
    assert first["bulk"] is second["bulk"]
    assert first["bulk"] is not third["bulk"]
    assert [parcel_of(content) for content in (first, second, third)] == parcels


@pytest.mark.parametrize("content", [{}, {"envelope": ConfigRecord({"bytes": b"no bulk"})}])
def test_other_contents_are_refused(content):
    with pytest.raises(KeyError):
        parcel_of(RecordDict(content))
