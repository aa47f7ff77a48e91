"""Basic terms that coordinator and hospitals share."""

from collections.abc import Iterable
from dataclasses import dataclass, field

PartyId = int
"""Number of a party: its index in the roster."""

MOST_RECORDS = 2**20
"""Largest number of records that a party may declare, and the default for a party that declares none."""

UNLABELLED = "all texts"
"""Label of every record and text of a task without labels, and the one label of its plan: one population is C = 1.

No other task may have it. It names the population in notes; prompts and released texts have no label at all.
"""

MOST_LABELS = 64
"""Largest number of labels under which a plan may let one record count."""

NOT_STATED = "not stated"
"""Text in a plan in place of an unstated purpose or recipient."""


def is_one_population(labels: Iterable[str]) -> bool:
    """Return whether these labels, of a plan or a task, say that the texts are unlabelled."""
    return tuple(labels) == (UNLABELLED,)


@dataclass(frozen=True, slots=True)
class Record:
    """One private record. Its repr omits all fields, so that they cannot reach a log or a traceback.

    Attributes:
        text: The text of the record.
        label: The class of the record, or the first of several; `UNLABELLED` if its file has none.
        user: The user to whom the record belongs, if its file names users.
        more: Its further labels, in the file's order; None if its file names one label per record.
    """

    text: str = field(repr=False)
    label: str = field(repr=False)
    user: str | None = field(default=None, repr=False)
    more: tuple[str, ...] | None = field(default=None, repr=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels of the record."""
        return self.label, *(self.more or ())
