"""Interface of the writers, which write the texts with which a party answers some queries.

Their models and settings come from the party's own file, never from a message. Each kind of query in
`common/queries/texts.py` has one writer; a party without that writer refuses plans with such a query.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from client.records import EmbeddedRecords
from client.session import RefusalError
from common.errors import InternalError
from common.messages import Reason
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.queries.text_codec import Labelled
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec, RewrittenSpec, TextSpec

Spec = TypeVar("Spec", bound=TextSpec)

SECTIONS = {
    "seeds": AbstractedSeedsSpec.kind,
    "fine_tuning": FineTunedSpec.kind,
    "rewriting": RewrittenSpec.kind,
}
"""The kind of query that each section of `client.yaml` (`client/settings.py`) configures."""
OR_REFUSE = "Refuse the plan, or allow more in client.yaml"
"""What to do about a plan that wants more than a section allows."""


class PartyWriter(Protocol):
    """A writer of a party's texts for one kind of query."""

    def check(self, planned: PlannedQuery, labels: Sequence[str]) -> None:
        """Check that `write` can answer the planned query, before any record is accessed.

        Raises:
            CaucusError: `write` cannot answer it, for instance because models are missing.
        """

    def write(
        self, planned: PlannedQuery, records: EmbeddedRecords, *, labels: Sequence[str], encoder: Encoder, key: bytes
    ) -> list[Labelled]:
        """Return up to `planned.spec.texts` texts, each with the index of its label.

        Args:
            planned: The query with its noise scale, in grid units, and its sampling rate.
            records: This party's records, at most `max_records` of each owner.
            labels: The plan's labels.
            encoder: The agreed encoder.
            key: 32 secret bytes for this call alone.

        Raises:
            CaucusError: Nothing can be written; the message never quotes a record.
        """


def spec_of(planned: PlannedQuery, kind: type[Spec]) -> Spec:
    """Return the planned query's specification, which must be of this kind.

    Raises:
        InternalError: It is of another kind.
    """
    if not isinstance(planned.spec, kind):
        raise InternalError("query of this writer", expected=kind.kind, got=planned.spec.kind)
    return planned.spec


def check_writers(plan: Plan, writers: Mapping[str, PartyWriter]) -> None:
    """Check that the writers here can write all texts that a plan asks for.

    Raises:
        RefusalError: As in `check_kinds`.
        CaucusError: A writer cannot do what the plan requires.
    """
    check_kinds(plan, writers)
    for query in plan.queries:
        if isinstance(query.spec, TextSpec):
            writers[query.spec.kind].check(query, plan.labels)


def check_kinds(plan: Plan, kinds: Collection[str]) -> None:
    """Raise a RefusalError with the reason OVER_LIMIT if a plan asks for texts of a kind other than these."""
    sections = {kind: section for section, kind in SECTIONS.items()}
    for query in plan.queries:
        if isinstance(query.spec, TextSpec) and query.spec.kind not in kinds:
            expected = f"{sections[query.spec.kind]} in this party's client.yaml"
            raise RefusalError(Reason.OVER_LIMIT, query.name, expected=expected, got="none")
