from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class KeyAdvert(_message.Message):
    __slots__ = ("seal_public", "mask_publics", "signature")
    SEAL_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    MASK_PUBLICS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    seal_public: bytes
    mask_publics: _containers.RepeatedScalarFieldContainer[bytes]
    signature: bytes
    def __init__(self, seal_public: _Optional[bytes] = ..., mask_publics: _Optional[_Iterable[bytes]] = ..., signature: _Optional[bytes] = ...) -> None: ...

class AskShares(_message.Message):
    __slots__ = ("adverts",)
    class AdvertsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: KeyAdvert
        def __init__(self, key: _Optional[int] = ..., value: _Optional[_Union[KeyAdvert, _Mapping]] = ...) -> None: ...
    ADVERTS_FIELD_NUMBER: _ClassVar[int]
    adverts: _containers.MessageMap[int, KeyAdvert]
    def __init__(self, adverts: _Optional[_Mapping[int, KeyAdvert]] = ...) -> None: ...

class Shares(_message.Message):
    __slots__ = ("sealed",)
    class SealedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: bytes
        def __init__(self, key: _Optional[int] = ..., value: _Optional[bytes] = ...) -> None: ...
    SEALED_FIELD_NUMBER: _ClassVar[int]
    sealed: _containers.ScalarMap[int, bytes]
    def __init__(self, sealed: _Optional[_Mapping[int, bytes]] = ...) -> None: ...

class Delivery(_message.Message):
    __slots__ = ("inbox", "sharers")
    class InboxEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: bytes
        def __init__(self, key: _Optional[int] = ..., value: _Optional[bytes] = ...) -> None: ...
    INBOX_FIELD_NUMBER: _ClassVar[int]
    SHARERS_FIELD_NUMBER: _ClassVar[int]
    inbox: _containers.ScalarMap[int, bytes]
    sharers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, inbox: _Optional[_Mapping[int, bytes]] = ..., sharers: _Optional[_Iterable[int]] = ...) -> None: ...

class AskAgree(_message.Message):
    __slots__ = ("survivors",)
    SURVIVORS_FIELD_NUMBER: _ClassVar[int]
    survivors: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, survivors: _Optional[_Iterable[int]] = ...) -> None: ...

class Agreement(_message.Message):
    __slots__ = ("signature",)
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    signature: bytes
    def __init__(self, signature: _Optional[bytes] = ...) -> None: ...

class AskUnmask(_message.Message):
    __slots__ = ("survivors", "signatures")
    class SignaturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: bytes
        def __init__(self, key: _Optional[int] = ..., value: _Optional[bytes] = ...) -> None: ...
    SURVIVORS_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    survivors: _containers.RepeatedScalarFieldContainer[int]
    signatures: _containers.ScalarMap[int, bytes]
    def __init__(self, survivors: _Optional[_Iterable[int]] = ..., signatures: _Optional[_Mapping[int, bytes]] = ...) -> None: ...

class Unmasking(_message.Message):
    __slots__ = ("self_seeds", "mask_keys")
    class SelfSeedsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: bytes
        def __init__(self, key: _Optional[int] = ..., value: _Optional[bytes] = ...) -> None: ...
    class MaskKeysEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: bytes
        def __init__(self, key: _Optional[int] = ..., value: _Optional[bytes] = ...) -> None: ...
    SELF_SEEDS_FIELD_NUMBER: _ClassVar[int]
    MASK_KEYS_FIELD_NUMBER: _ClassVar[int]
    self_seeds: _containers.ScalarMap[int, bytes]
    mask_keys: _containers.ScalarMap[int, bytes]
    def __init__(self, self_seeds: _Optional[_Mapping[int, bytes]] = ..., mask_keys: _Optional[_Mapping[int, bytes]] = ...) -> None: ...
