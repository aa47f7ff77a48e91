"""Basic terms that coordinator and hospitals share."""

from collections.abc import Iterable
from dataclasses import dataclass, field

PartyId = int
"""Number of a party: its index in the roster."""

MOST_RECORDS = 2**20
"""Maximum number of records that a party may declare, and the default for a party that declares no number."""

UNLABELLED = "all texts"
"""Label of all records and texts in a task without labels. It is the only label in the plan of such a task (C = 1).

A task with labels may not use it. Notes use it as the name of the population; prompts and released texts contain no
label."""

MOST_LABELS = 64
"""Maximum number of labels under which a plan may count one record."""

NOT_STATED = "not stated"
"""Text that a plan contains in place of what its coordinator did not state, such as the recipient."""

PRESENT_NAMES = {"census": "class_sums"}
"""Present names of methods, by former names, which users may still give and older files contain."""

FORMER_NAMES = {name: former for former, name in PRESENT_NAMES.items()}
"""Former names of methods, by present names. A plan contains the former name, so that its digest stays the same."""


def is_one_population(labels: Iterable[str]) -> bool:
    """Return whether these labels, from a plan or a task, mean that the texts are unlabelled."""
    return tuple(labels) == (UNLABELLED,)


@dataclass(frozen=True, slots=True)
class Record:
    """One private record. Its repr omits all fields, so that they cannot reach a log or a traceback.

    Attributes:
        text: The text of the record.
        label: The record's label, or the first of its labels; `UNLABELLED` if its file has no labels.
        user: The user to whom the record belongs, if its file names users.
        more: The record's labels after the first, in the order of the file; None if the file has one label per record.
    """

    text: str = field(repr=False)
    label: str = field(repr=False)
    user: str | None = field(default=None, repr=False)
    more: tuple[str, ...] | None = field(default=None, repr=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels of the record."""
        return self.label, *(self.more or ())
