"""Conversion of a parcel to the content of a Flower message, and back.

Flower sends each record, array and chunk of a message as a separate object, on each hop. So a small bulk array is put
into the envelope's record, which makes three objects instead of six. A large bulk array becomes a Flower array. Flower
splits it into chunks, and stores and sends it once for all messages that share it.
"""

from collections.abc import Iterable, Iterator

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from common.messages import Parcel

SMALL = 2**17
"""Maximum size, in bytes, of a bulk array in the envelope's record; the votes for 8,000 candidates have this size."""

HANDLER_RAISED = 2
"""Flower's error code in the reply to a message whose handler raised an exception."""


def contents(parcels: Iterable[Parcel]) -> Iterator[RecordDict]:
    """Yield the content of each parcel's message. Where parcels share their bulk array, the contents share it too."""
    arrays: dict[int, ArrayRecord] = {}
    for parcel in parcels:
        record = ConfigRecord({"bytes": parcel.envelope})
        content = RecordDict({"envelope": record})
        if len(parcel.bulk) <= SMALL:
            record["bulk"] = parcel.bulk
        else:
            array = Array("uint8", (len(parcel.bulk),), "raw", parcel.bulk)
            content["bulk"] = arrays.setdefault(id(parcel.bulk), ArrayRecord({"bytes": array}))
        yield content


def parcel_of(content: RecordDict) -> Parcel:
    """Return the parcel that a message's content contains.

    Raises:
        KeyError: The content has no parcel.
    """
    record = content.config_records["envelope"]
    bulk = content.array_records["bulk"]["bytes"].data if "bulk" in content else record["bulk"]
    envelope = record["bytes"]
    assert isinstance(envelope, bytes)
    assert isinstance(bulk, bytes)
    return Parcel(envelope, bulk)
