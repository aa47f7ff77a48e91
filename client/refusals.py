"""Translation of an error at a party into a coarse reason for the coordinator and details for the party's own log."""

import errno
import os
from collections.abc import Sequence

from client.session import RefusalError
from common.errors import (
    CaucusError,
    ConfigError,
    DropoutError,
    FullError,
    MembershipError,
    MissingPackageError,
    PlanError,
    ProtocolError,
    RefusedError,
    SignatureError,
    SurvivorsError,
)
from common.messages import Reason

_REASONS: tuple[tuple[type[Exception], Reason], ...] = (
    (FullError, Reason.FULL),
    (SurvivorsError, Reason.SURVIVORS),
    (RefusedError, Reason.OVER_LIMIT),
    (DropoutError, Reason.TOO_FEW),
    (SignatureError, Reason.IDENTITY),
    (MembershipError, Reason.IDENTITY),
    (ProtocolError, Reason.MALFORMED),
    (MissingPackageError, Reason.SETTINGS),
    (ConfigError, Reason.MALFORMED),
    (PlanError, Reason.MALFORMED),
    (OverflowError, Reason.MALFORMED),
)
"""Pairs of a class of errors and the reason for it; the first pair whose class fits an error applies."""


def reason(error: Exception) -> Reason:
    """Return the reason for an error that the coordinator may learn."""
    if isinstance(error, RefusalError):
        return error.reason
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), Reason.INTERNAL)


def detail(error: Exception, names: Sequence[str] = ()) -> str:
    """Return a description of the error for the party's own log, free of private text.

    Only our own messages are known to contain no private text. For any other error, only the type is logged, with the
    operating system's message if it has one. `names` are the hospitals' names by number.
    """
    if isinstance(error, OSError) and isinstance(error.errno, int) and error.errno in errno.errorcode:
        return f"{type(error).__name__}: {os.strerror(error.errno)}"
    if not isinstance(error, CaucusError):
        return type(error).__name__
    return error.text(names)
