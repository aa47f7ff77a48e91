"""RUPTA: the parties' own models rewrite records, one to one, until they judge the texts private (Yang et al. 2025).

A baseline of the papers ("Robust utility-preserving text anonymization based on large language models"), without
differential privacy: each released text is a function of one record, and a model's opinion does not bound what the text
reveals. The query is unproven and costs ε = ∞. Every party refuses it unless the party's own file names the query and
sets `unsafe_unproven`. There is one query with one answer (`client/writers/rewriting.py`); no private record leaves its
machine unrewritten.
"""

from dataclasses import dataclass
from typing import ClassVar

from common.plan.planned import PlannedQuery
from common.queries.texts import RewrittenSpec
from server.domain import Membership, PrivacyTarget, Task
from server.operators.party_texts import PartyTexts
from server.settings.methods import RuptaSettings

TEXTS = "rewritten records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rupta(RuptaSettings, PartyTexts):
    """The RUPTA method; `server.settings.methods.RuptaSettings` documents its settings."""

    query: ClassVar[str] = TEXTS
    balanced: ClassVar[bool] = False  # the label of a text is that of its record

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Plan the method's only query."""
        task.check_labelled(
            "method rupta", "which the rewritten records must still show", "Choose method=class_sums, wasp or aug_pe"
        )
        self.check_task(task)
        return (
            PlannedQuery(
                name=TEXTS,
                spec=RewrittenSpec(
                    texts=-(-self.samples // membership.parties),
                    longest=self.longest,
                    rounds=self.rewritings,
                    max_records=target.max_records,
                ),
                mechanism="none",
            ),
        )
