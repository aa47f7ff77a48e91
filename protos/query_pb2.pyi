from protos import secagg_pb2 as _secagg_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AskVotes(_message.Message):
    __slots__ = ("top", "furthest", "max_records", "dimensions", "labels", "delivery")
    TOP_FIELD_NUMBER: _ClassVar[int]
    FURTHEST_FIELD_NUMBER: _ClassVar[int]
    MAX_RECORDS_FIELD_NUMBER: _ClassVar[int]
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    top: int
    furthest: bool
    max_records: int
    dimensions: int
    labels: _containers.RepeatedScalarFieldContainer[int]
    delivery: _secagg_pb2.Delivery
    def __init__(self, top: _Optional[int] = ..., furthest: _Optional[bool] = ..., max_records: _Optional[int] = ..., dimensions: _Optional[int] = ..., labels: _Optional[_Iterable[int]] = ..., delivery: _Optional[_Union[_secagg_pb2.Delivery, _Mapping]] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("length",)
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    length: int
    def __init__(self, length: _Optional[int] = ...) -> None: ...
