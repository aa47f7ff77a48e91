from protos import secagg_pb2 as _secagg_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_UNKNOWN: _ClassVar[Reason]
    REASON_MALFORMED: _ClassVar[Reason]
    REASON_OUT_OF_ORDER: _ClassVar[Reason]
    REASON_UNPLANNED: _ClassVar[Reason]
    REASON_OVER_LIMIT: _ClassVar[Reason]
    REASON_TOO_FEW: _ClassVar[Reason]
    REASON_ENCODER: _ClassVar[Reason]
    REASON_INTERNAL: _ClassVar[Reason]
    REASON_IDENTITY: _ClassVar[Reason]
    REASON_AWAITING: _ClassVar[Reason]
    REASON_DECLINED: _ClassVar[Reason]
    REASON_ROSTER: _ClassVar[Reason]
    REASON_RECORDS: _ClassVar[Reason]
    REASON_SETTINGS: _ClassVar[Reason]
    REASON_FULL: _ClassVar[Reason]
    REASON_SURVIVORS: _ClassVar[Reason]
REASON_UNKNOWN: Reason
REASON_MALFORMED: Reason
REASON_OUT_OF_ORDER: Reason
REASON_UNPLANNED: Reason
REASON_OVER_LIMIT: Reason
REASON_TOO_FEW: Reason
REASON_ENCODER: Reason
REASON_INTERNAL: Reason
REASON_IDENTITY: Reason
REASON_AWAITING: Reason
REASON_DECLINED: Reason
REASON_ROSTER: Reason
REASON_RECORDS: Reason
REASON_SETTINGS: Reason
REASON_FULL: Reason
REASON_SURVIVORS: Reason

class Open(_message.Message):
    __slots__ = ("plan", "first")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    plan: bytes
    first: int
    def __init__(self, plan: _Optional[bytes] = ..., first: _Optional[int] = ...) -> None: ...

class Opened(_message.Message):
    __slots__ = ("encoder", "advert", "version")
    ENCODER_FIELD_NUMBER: _ClassVar[int]
    ADVERT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    encoder: str
    advert: _secagg_pb2.KeyAdvert
    version: str
    def __init__(self, encoder: _Optional[str] = ..., advert: _Optional[_Union[_secagg_pb2.KeyAdvert, _Mapping]] = ..., version: _Optional[str] = ...) -> None: ...

class Close(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Closed(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Release(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Received(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: Reason
    def __init__(self, reason: _Optional[_Union[Reason, str]] = ...) -> None: ...
