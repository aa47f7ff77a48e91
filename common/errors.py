"""Every exception that Caucus raises on purpose.

    CaucusError
    ├── InputError             wrong input; the message says what to do
    │   ├── ConfigError        a configuration value
    │   ├── DataError          a data file (the message holds path and line, never text)
    │   ├── PlanError          a privacy plan that cannot be made, or differs from the agreed one
    │   ├── ProviderError      a language model that fails or returns too little
    │   ├── CheckpointError    a run folder that cannot be resumed
    │   └── LedgerError        a ledger that was edited, is damaged or cannot be written
    ├── ProtocolError          a message that is malformed, out of order, replayed or unplanned
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
    │   └── AwaitingError      parties have yet to approve the plan; nothing has failed
    └── InternalError          our bug

No message holds private text, private counts or key material: messages travel to logs and, as coarse codes, to other
parties. Each says what was expected, what came instead, where, and what to do.
"""

from collections.abc import Collection


class CaucusError(Exception):
    """Base of all errors.

    Args:
        what: The error in one clause.
        expected: The right value.
        got: The actual value. Never private text or a private count.
        where: File and line, configuration key, party or protocol step.
        do: Advice to the reader.

    Attributes:
        problem: The message without the advice.
    """

    def __init__(
        self, what: str, *, expected: object = None, got: object = None, where: object = None, do: object = None
    ) -> None:
        self.what, self.do = what, do
        parts = [what]
        parts += [f"{name} {value}" for name, value in (("expected", expected), ("got", got)) if value is not None]
        if where is not None:
            parts.append(f"at {where}")
        self.problem = "; ".join(parts)
        super().__init__(self.problem if do is None else f"{self.problem}. {do}")


class InputError(CaucusError):
    """The input is wrong."""


class ConfigError(InputError):
    """A configuration value is wrong."""


class DataError(InputError):
    """A data file is wrong."""


class PlanError(InputError):
    """A privacy plan cannot be made, or differs from the agreed one."""


class ProviderError(InputError):
    """A language model fails or returns too little."""


class CheckpointError(InputError):
    """A run folder cannot be resumed."""


class LedgerError(InputError):
    """A ledger was edited, is damaged or cannot be written."""


class ProtocolError(CaucusError):
    """A message is malformed, out of order, replayed or unplanned."""


class ReplayError(ProtocolError):
    """A request for a step, or a message, is repeated or late."""


class MembershipError(ProtocolError):
    """A message is from or about parties outside its step, or messages of some parties in the step are missing."""


class PublicKeyError(ProtocolError):
    """A public key is weak, repeated, or not the one that its owner advertised."""


class SealError(ProtocolError):
    """A ciphertext does not authenticate: altered, cut, or made by, for or in something else."""


class ShareError(ProtocolError):
    """A share is malformed, or shares do not fit together."""


class SignatureError(ProtocolError):
    """A signature is missing or invalid."""


class RefusedError(CaucusError):
    """A party refuses to answer."""


class FullError(RefusedError):
    """A party has no room left for what was asked."""


class SurvivorsError(RefusedError):
    """Two sums of the same answers over different parties could be subtracted: only one may be opened."""


class DropoutError(CaucusError):
    """Too few parties are left."""


class AwaitingError(DropoutError):
    """Parties have yet to approve the plan; nothing has failed.

    Args:
        parties: Their numbers.
    """

    def __init__(self, parties: Collection[int]) -> None:
        self.parties = tuple(sorted(parties))
        super().__init__(f"the plan awaits approval by {' and '.join(f'party {party}' for party in self.parties)}")


class InternalError(CaucusError):
    """A state that only a bug of ours can reach."""
