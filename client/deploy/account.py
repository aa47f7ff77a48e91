"""The account that runs this process, which identifies the person who decides in the hospital's audit log."""

import os
import pwd

from client.approval.entries import LIMITS
from common.system.log_lines import printable_line


def account() -> str:
    """Return the account that runs this process, with its full name if the system has one.

    Environment variables are ignored. If several people share an account, such as root, the account does not identify
    any of them, but the reason stored with a decision may.
    """
    number = os.geteuid()
    try:
        entry = pwd.getpwuid(number)
    except KeyError:  # as in a container that runs under a number of its own
        return f"user {number}"
    full_name = printable_line(entry.pw_gecos.partition(",")[0].strip())
    known = entry.pw_name if full_name in {"", entry.pw_name} else f"{entry.pw_name} ({full_name})"
    return f"user {known}" if known == LIMITS else known  # a person's decision is never taken for one of the limits
