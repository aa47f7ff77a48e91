from protos import query_pb2 as _query_pb2
from protos import secagg_pb2 as _secagg_pb2
from protos import session_pb2 as _session_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Parcel(_message.Message):
    __slots__ = ("envelope", "bulk", "partition")
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    BULK_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    envelope: bytes
    bulk: bytes
    partition: int
    def __init__(self, envelope: _Optional[bytes] = ..., bulk: _Optional[bytes] = ..., partition: _Optional[int] = ...) -> None: ...

class Envelope(_message.Message):
    __slots__ = ("version", "run", "party", "plan_digest", "index", "attempt", "bulk_digest", "open", "ask_shares", "ask", "ask_agree", "ask_unmask", "close", "release", "opened", "shares", "answer", "agreement", "unmasking", "closed", "refusal", "received")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    PARTY_FIELD_NUMBER: _ClassVar[int]
    PLAN_DIGEST_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    BULK_DIGEST_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    ASK_SHARES_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    ASK_AGREE_FIELD_NUMBER: _ClassVar[int]
    ASK_UNMASK_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    AGREEMENT_FIELD_NUMBER: _ClassVar[int]
    UNMASKING_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    version: int
    run: str
    party: int
    plan_digest: bytes
    index: int
    attempt: int
    bulk_digest: bytes
    open: _session_pb2.Open
    ask_shares: _secagg_pb2.AskShares
    ask: _query_pb2.Ask
    ask_agree: _secagg_pb2.AskAgree
    ask_unmask: _secagg_pb2.AskUnmask
    close: _session_pb2.Close
    release: _session_pb2.Release
    opened: _session_pb2.Opened
    shares: _secagg_pb2.Shares
    answer: _query_pb2.Answer
    agreement: _secagg_pb2.Agreement
    unmasking: _secagg_pb2.Unmasking
    closed: _session_pb2.Closed
    refusal: _session_pb2.Refusal
    received: _session_pb2.Received
    def __init__(self, version: _Optional[int] = ..., run: _Optional[str] = ..., party: _Optional[int] = ..., plan_digest: _Optional[bytes] = ..., index: _Optional[int] = ..., attempt: _Optional[int] = ..., bulk_digest: _Optional[bytes] = ..., open: _Optional[_Union[_session_pb2.Open, _Mapping]] = ..., ask_shares: _Optional[_Union[_secagg_pb2.AskShares, _Mapping]] = ..., ask: _Optional[_Union[_query_pb2.Ask, _Mapping]] = ..., ask_agree: _Optional[_Union[_secagg_pb2.AskAgree, _Mapping]] = ..., ask_unmask: _Optional[_Union[_secagg_pb2.AskUnmask, _Mapping]] = ..., close: _Optional[_Union[_session_pb2.Close, _Mapping]] = ..., release: _Optional[_Union[_session_pb2.Release, _Mapping]] = ..., opened: _Optional[_Union[_session_pb2.Opened, _Mapping]] = ..., shares: _Optional[_Union[_secagg_pb2.Shares, _Mapping]] = ..., answer: _Optional[_Union[_query_pb2.Answer, _Mapping]] = ..., agreement: _Optional[_Union[_secagg_pb2.Agreement, _Mapping]] = ..., unmasking: _Optional[_Union[_secagg_pb2.Unmasking, _Mapping]] = ..., closed: _Optional[_Union[_session_pb2.Closed, _Mapping]] = ..., refusal: _Optional[_Union[_session_pb2.Refusal, _Mapping]] = ..., received: _Optional[_Union[_session_pb2.Received, _Mapping]] = ...) -> None: ...
