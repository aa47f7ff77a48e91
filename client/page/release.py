"""The audit of a release, as by `caucus-party audit`, for files that a person names on this machine or uploads.

The page reads the files with the rights of the account that runs it. None of their content leaves the machine or is
shown; the page shows only a table of counts and test results. Texts that a browser uploads are stored in one private
file until they have been audited, other texts are uploaded, the person logs out, or the page ends. Control records can
only be named, not uploaded, so they never leave the machine on which they are stored.
"""

import os
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from client.deploy.audit import ReleaseAudit, audit_release, guarantee_of
from client.deploy.settings import HospitalSettings
from client.releases import release
from common.errors import ConfigError
from common.messages import LARGEST_RELEASE
from common.personal_patterns import LANGUAGES, PATTERNS

MOST_BYTES = LARGEST_RELEASE
"""Maximum size, in bytes, of a file that the page reads, since it reads the whole file and an upload may have any size.
"""
RECEIVED = "received.jsonl"
"""File in the private folder for the texts that a browser uploads; during the upload, its name has an additional
suffix."""
_looking = threading.Lock()


async def receive(settings: HospitalSettings, parts: AsyncIterator[bytes]) -> Path:
    """Store the texts that a browser uploads, part by part, and return the path of their file.

    Raises:
        ConfigError: The texts are too large, or an audit is running.
    """
    descriptor, name = tempfile.mkstemp(dir=settings.private, prefix=f"{RECEIVED}.")  # for this account alone
    coming, size = Path(name), 0
    try:
        with os.fdopen(descriptor, "wb") as file:
            async for part in parts:
                size += len(part)
                if size > MOST_BYTES:
                    raise _too_large("synthetic texts", "more")
                file.write(part)
        with _alone():
            return coming.replace(settings.private / RECEIVED)  # noqa: ASYNC240 takes no time
    finally:
        coming.unlink(missing_ok=True)  # noqa: ASYNC240 takes no time


def forget(folder: Path) -> None:
    """Remove from a hospital's folder the texts that a browser has uploaded or is uploading."""
    for path in (folder / "private").glob(f"{RECEIVED}*"):
        path.unlink(missing_ok=True)


def audit_chosen_release(settings: HospitalSettings, form: Mapping[str, str], code: str) -> ReleaseAudit:
    """Run the audit that a form requests.

    Args:
        settings: The hospital's settings.
        form: Fields "texts" and "control", paths on this machine, and "epsilon" and "delta", which may be empty. In
            place of "texts", "sent" may name a release that the coordinator sent; epsilon and delta are then those of
            its plan.
        code: Code of the reader's language, in which personal information is searched for.

    Raises:
        ConfigError: A field is invalid, or another audit is running.
        CaucusError: As in `client.deploy.audit.audit_release`.
    """
    received = settings.private / RECEIVED
    texts, promise = _texts(settings, form)
    epsilon, delta = (_number(name, form.get(name, "")) for name in ("epsilon", "delta"))
    if epsilon is None and delta is None:
        epsilon, delta = promise
    with _alone():
        try:
            return audit_release(
                settings,
                _path("synthetic texts", texts),
                _path("control records", form.get("control", "")),
                epsilon=epsilon,
                delta=delta,
                language=next(name for name in LANGUAGES if PATTERNS[name].code == code),
            )
        finally:
            if form.get("texts", "").strip() == str(received):
                received.unlink(missing_ok=True)


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock that allows only one audit at a time; raise a ConfigError if another audit is running."""
    if not _looking.acquire(blocking=False):
        raise ConfigError("another release is still being looked at", do="Wait until it is done")
    try:
        yield
    finally:
        _looking.release()


def _texts(settings: HospitalSettings, form: Mapping[str, str]) -> tuple[str, tuple[float | None, float | None]]:
    """Return the path of the texts and, for texts from the coordinator, the plan's ε and δ if they can be tested."""
    typed, sent = form.get("texts", ""), form.get("sent", "")
    if typed.strip() and sent:
        raise ConfigError("both a file and a release that was sent are given", do="Choose one of them")
    if not sent:
        return typed, (None, None)
    chosen = release(settings.private, sent)
    return str(chosen.path), guarantee_of(settings, chosen)


def _path(what: str, text: str) -> Path:
    path = Path(text.strip()).expanduser()
    if not path.is_absolute():  # the page's own folder is nothing that a person sees
        raise ConfigError(what, expected="the whole path of a file on this machine", got=text.strip() or "none")
    if not path.is_file():  # a pipe or a device of a received archive would hold the page for ever
        raise ConfigError(what, expected="an existing file", got="none, or something else", where=path)
    if path.stat().st_size > MOST_BYTES:
        raise _too_large(what, path.stat().st_size)
    return path


def _too_large(what: str, got: object) -> ConfigError:
    return ConfigError(what, expected=f"a file of at most {MOST_BYTES:,} bytes", got=got)


def _number(what: str, text: str) -> float | None:
    try:
        return float(text.replace(",", ".")) if text.strip() else None
    except ValueError:
        raise ConfigError(what, expected="a number, or nothing", got=text) from None
