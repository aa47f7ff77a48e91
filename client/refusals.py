"""What becomes of an error at a party: a coarse reason for the coordinator, and details for the party's own log."""

import errno
import os

from client.session import RefusalError
from common.errors import (
    CaucusError,
    ConfigError,
    DropoutError,
    MembershipError,
    PlanError,
    ProtocolError,
    RefusedError,
    SignatureError,
)
from common.messages import Reason


def reason(error: Exception) -> Reason:
    """The reason that the coordinator may learn."""
    match error:
        case RefusalError():
            return error.reason
        case RefusedError():
            return Reason.OVER_LIMIT
        case DropoutError():
            return Reason.TOO_FEW
        case SignatureError() | MembershipError():
            return Reason.IDENTITY
        case ProtocolError() | ConfigError() | PlanError() | OverflowError():
            return Reason.MALFORMED
        case _:
            return Reason.INTERNAL


def detail(error: Exception) -> str:
    """The error for the party's own log, free of private text.

    Only our own messages are known to hold none: another error is logged as its type, with the operating system's
    message if it has one.
    """
    if isinstance(error, OSError) and isinstance(error.errno, int) and error.errno in errno.errorcode:
        return f"{type(error).__name__}: {os.strerror(error.errno)}"
    return str(error) if isinstance(error, CaucusError) else type(error).__name__
