"""Conversion of a parcel to the content of one of Flower's messages, and back.

Flower sends each record, array and chunk of a message as a separate object, on each hop. So the bulk array
of a parcel travels in the envelope's record if it is small: three objects, not six. If it is large, it becomes one of
Flower's arrays, which Flower cuts into chunks, and which it stores and sends once for all messages that share it.
"""

from collections.abc import Iterable, Iterator

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from common.messages import Parcel

SMALL = 2**17
"""Largest number of bytes of a bulk array in the envelope's record: the votes for 8,000 candidates."""

HANDLER_RAISED = 2
"""Flower's code of the error that answers a message whose handler raised."""


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
    """Return the parcel in a message's content.

    Raises:
        KeyError: The message has no parcel.
    """
    record = content.config_records["envelope"]
    bulk = content.array_records["bulk"]["bytes"].data if "bulk" in content else record["bulk"]
    envelope = record["bytes"]
    assert isinstance(envelope, bytes)
    assert isinstance(bulk, bytes)
    return Parcel(envelope, bulk)
