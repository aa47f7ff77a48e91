from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class KeyAdvert(_message.Message):
    __slots__ = ("mask_public", "seal_public")
    MASK_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    SEAL_PUBLIC_FIELD_NUMBER: _ClassVar[int]
    mask_public: bytes
    seal_public: bytes
    def __init__(self, mask_public: _Optional[bytes] = ..., seal_public: _Optional[bytes] = ...) -> None: ...

class AskKeys(_message.Message):
    __slots__ = ("roster", "length")
    ROSTER_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    roster: _containers.RepeatedScalarFieldContainer[int]
    length: int
    def __init__(self, roster: _Optional[_Iterable[int]] = ..., length: _Optional[int] = ...) -> None: ...

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

class AskUnmask(_message.Message):
    __slots__ = ("survivors",)
    SURVIVORS_FIELD_NUMBER: _ClassVar[int]
    survivors: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, survivors: _Optional[_Iterable[int]] = ...) -> None: ...

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
