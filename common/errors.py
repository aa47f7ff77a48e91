"""Every exception that Caucus raises on purpose.

    CaucusError
    ├── InputError             something given to us is wrong; the message says what to do
    │   ├── ConfigError        a configuration value
    │   ├── DataError          a data file (the message holds path and line, never text)
    │   ├── PlanError          a privacy plan that cannot be made, or is not the one that was agreed
    │   ├── ProviderError      a language model that fails or returns too little
    │   └── CheckpointError    a run folder that cannot be resumed
    ├── ProtocolError          a message that is malformed, out of order, replayed or unplanned
    ├── RefusedError           a party's own guard says no; carries a coarse reason and nothing else
    ├── DropoutError           too few parties left for the noise that was planned
    └── InternalError          our bug

No message holds private text, private counts or key material: messages travel to logs and, as coarse codes, to other
parties. Each says what was expected, what was got, where, and what to do.
"""


class CaucusError(Exception):
    """Base of all errors.

    Args:
        what: One clause that names what is wrong.
        expected: What would have been right.
        got: What was found instead. Never private text or a private count.
        where: File and line, configuration key, party or protocol step.
        do: What the reader can do about it.
    """

    def __init__(
        self, what: str, *, expected: object = None, got: object = None, where: object = None, do: object = None
    ) -> None:
        self.what = what
        parts = [what]
        parts += [f"{name} {value}" for name, value in (("expected", expected), ("got", got)) if value is not None]
        if where is not None:
            parts.append(f"at {where}")
        message = "; ".join(parts)
        super().__init__(message if do is None else f"{message}. {do}")


class InputError(CaucusError):
    """Something given to us is wrong."""


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


class ProtocolError(CaucusError):
    """A message is malformed, out of order, replayed or unplanned."""


class RefusedError(CaucusError):
    """A party refuses to answer."""


class DropoutError(CaucusError):
    """Too few parties are left."""


class InternalError(CaucusError):
    """A state that only a bug of ours can reach."""
