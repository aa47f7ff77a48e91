"""Every exception that Caucus raises on purpose.

    CaucusError
    ├── InputError             wrong input; the message says what to do
    │   ├── ConfigError        a configuration value
    │   │   └── MissingPackageError  one that needs a package that is not installed
    │   ├── DataError          a data file (the message holds path and line, never text)
    │   ├── PlanError          a privacy plan that cannot be made, or differs from the agreed one
    │   ├── ProviderError      a language model that fails or returns too little
    │   │   └── ModelSettingError    one with a setting that its server refuses; only a new run has another
    │   ├── CheckpointError    a run folder that cannot be resumed
    │   │   └── FolderInUseError     one in which another process works
    │   └── LedgerError        a ledger that was edited, is damaged or cannot be written
    │       ├── DamagedLedgerError     one whose content is not what was written
    │       └── IncompleteLedgerError  one that may lack charges: missing, older than its noted head, or without a note
    ├── ProtocolError          a message that is malformed, out of order, replayed or unplanned
    │   ├── TooLargeError      one that is larger than any that may come
    │   ├── ReplayError        a repeated or late step or message
    │   ├── MembershipError    from or about a party outside the step, or not from all parties in it
    │   ├── PublicKeyError     a public key that is weak, repeated or not its owner's
    │   ├── SealError          a ciphertext that does not authenticate
    │   ├── ShareError         a share that is malformed, or shares that do not fit together
    │   └── SignatureError     a signature that is missing or invalid
    ├── RefusedError           a party's own guard refuses; carries a coarse reason and nothing else
    │   ├── FullError          no room is left for what was asked
    │   └── SurvivorsError     a second set of survivors for one question
    ├── DropoutError           too few parties left for the planned noise
    │   ├── AwaitingError      parties have yet to approve the plan; nothing has failed
    │   └── RejectedError      a party would refuse a resumed run as well; only a new run helps
    ├── UnreachedError         a coordinator that has not answered this hospital
    └── InternalError          our bug

No message contains private text, private counts or key material, because messages are written to logs and sent, as
coarse codes, to other parties. Each message states what was expected, what was found instead, where, and what to do.
"""

from collections.abc import Collection, Sequence
from typing import Self

from common.phrases import Phrase, Words, list_parties, render_phrase

MOST_SHOWN = 400
"""Maximum number of characters that a message shows of a wrong value."""


class CaucusError(Words, Exception):
    """Base class of all errors. Its message stays in parts until it is shown; only then does `text` insert party names.

    Args:
        what: The error in one clause, such as the name of a wrong setting.
        expected: The value that was expected.
        got: The actual value. Never private text or a private count.
        where: File and line, configuration key, party or protocol step.
        do: Advice to the reader.
    """

    def __init__(
        self,
        what: str,
        *,
        expected: object = None,
        got: object = None,
        where: object = None,
        do: object = None,
    ) -> None:
        super().__init__(what)
        self.what, self.expected, self.got, self.where, self.do = what, expected, got, where, do

    def placed(self, where: object) -> Self:
        """Add a location to `where`, and return this error."""
        self.where = where if self.where is None else Phrase(self.where, "; at ", where)
        return self

    def without_advice(self) -> "CaucusError":
        """Return an error with the same problem and no advice, for a log line where nobody has to act."""
        return CaucusError(self.what, expected=self.expected, got=self.got, where=self.where)

    @property
    def problem(self) -> str:
        """The message without the advice."""
        return self._problem(())

    def text(self, names: Sequence[str] = ()) -> str:
        """Return the whole message; `names` are the names of the parties, indexed by party number."""
        parts = (self._problem(names), self.do or self._usual_advice())
        return ". ".join(render_phrase(part, names) for part in parts if part)

    def _usual_advice(self) -> object:
        """Return the advice of this class for an error without its own, or None."""

    def _problem(self, names: Sequence[str]) -> str:
        parts = (("expected", self.expected), ("got", self.got), ("at", self.where))
        shown = {name: render_phrase(value, names) for name, value in parts if value is not None}
        # A user's own value, such as a whole file where its name was meant; what we say of parties is never cut.
        if not isinstance(self.got, Words) and len(given := shown.get("got", "")) > MOST_SHOWN:
            shown["got"] = f"{given[:MOST_SHOWN]}… ({len(given):,} characters)"
        return "; ".join([self.what, *(f"{name} {text}" for name, text in shown.items())])


class InputError(CaucusError):
    """The input is invalid."""


class ConfigError(InputError):
    """A configuration value is invalid."""

    def _usual_advice(self) -> object:
        is_setting = "." in self.what and " " not in self.what
        return f"Set {self.what} to such a value" if is_setting and self.expected is not None else None


class MissingPackageError(ConfigError):
    """A setting needs a package that is not installed here."""


class DataError(InputError):
    """A data file is invalid."""


class PlanError(InputError):
    """A privacy plan cannot be made, or differs from the agreed one."""


class ProviderError(InputError):
    """A language model fails or returns too little."""


class ModelSettingError(ProviderError):
    """A language model's server refuses one of the model's settings, which a resumed run would send again."""


class CheckpointError(InputError):
    """A run folder cannot be resumed."""


class FolderInUseError(CheckpointError):
    """Another process works in the folder."""


class LedgerError(InputError):
    """A ledger was edited, is damaged or cannot be written."""


class DamagedLedgerError(LedgerError):
    """A ledger's content is not what was written."""


class IncompleteLedgerError(LedgerError):
    """A ledger may lack charges: it is missing, or older than its noted head, or has no note that can be read."""


class ProtocolError(CaucusError):
    """A message is malformed, out of order, replayed or unplanned."""


class TooLargeError(ProtocolError):
    """A message is larger than any that may come."""


class ReplayError(ProtocolError):
    """A message, or a request for a step, is repeated or late."""


class MembershipError(ProtocolError):
    """A message is from or about a party that does not take part in its step, or a party's message is missing."""


class PublicKeyError(ProtocolError):
    """A public key is weak, repeated, or not the one that its owner advertised."""


class SealError(ProtocolError):
    """A ciphertext fails authentication: it was altered or truncated, or has another sender, receiver or set-up."""


class ShareError(ProtocolError):
    """A share is malformed, or shares are inconsistent with each other."""


class SignatureError(ProtocolError):
    """A signature is missing or invalid."""


class RefusedError(CaucusError):
    """A party refuses to answer."""


class FullError(RefusedError):
    """A party has no room left to store what was requested."""


class SurvivorsError(RefusedError):
    """A second sum, over different parties, was requested for one question.

    Only one sum may be opened, since two sums could be subtracted from each other.
    """


class DropoutError(CaucusError):
    """Too few parties remain."""


class AwaitingError(DropoutError):
    """Parties have yet to approve the plan; nothing has failed.

    Args:
        parties: IDs of the parties that have yet to approve the plan.
    """

    def __init__(self, parties: Collection[int]) -> None:
        self.parties = tuple(sorted(parties))
        super().__init__("the plan awaits approval")
        self.args = (self.parties,)  # what a copy in another process is made of

    def _problem(self, names: Sequence[str]) -> str:
        return f"{self.what} by {list_parties(self.parties, ' and ').text(names)}"


class RejectedError(DropoutError):
    """A party refuses for a reason that would also apply to a resumed run."""


class UnreachedError(CaucusError):
    """Error for a coordinator that has not answered while a hospital was there for it."""


class InternalError(CaucusError):
    """The program reached a state that only a bug in Caucus can cause."""
