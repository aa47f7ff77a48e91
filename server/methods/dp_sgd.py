"""DP-SGD: parties fine-tune their own language models and release texts drawn from them (Abadi et al. 2016).

A baseline of the papers (DP-Transforms, Yue et al. 2023; DP-SGD with LoRA). There is one query with one answer, and no
further round: each party trains on its own records alone (`client/writers/fine_tuning.py`), so that results are best
for a single party with many records. Each party chooses its own model.
"""

from dataclasses import dataclass
from typing import ClassVar

from common.plan.planned import PlannedQuery
from server.domain import Membership, PrivacyTarget, Task
from server.operators.party_texts import PartyTexts
from server.settings.methods import DpSgdSettings

TEXTS = "fine-tuned samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class DpSgd(DpSgdSettings, PartyTexts):
    """The DP-SGD method; `server.settings.methods.DpSgdSettings` documents its settings."""

    query: ClassVar[str] = TEXTS
    balanced: ClassVar[bool] = True

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Plan the method's only query."""
        self.check_task(task)
        labels = len(task.labels)
        # A multiple of the labels, so that together all parties have enough of each.
        texts = labels * -(-self.samples // (membership.parties * labels))
        spec = self.spec(texts=texts, max_records=target.max_records)
        return (PlannedQuery(name=TEXTS, spec=spec, mechanism="dp-sgd", rate=self.rate, redraw=self.rate < 1),)
