"""DP-SGD: parties fine-tune their own language models and release texts drawn from them (Abadi et al. 2016).

A baseline of the papers (DP-Transforms, Yue et al. 2023; DP-SGD with LoRA). One query, one answer, no round after it:
each party trains on its own records (`client/writers/fine_tuning.py`), each alone, so that it shines with one
party that has many. Which model it trains is the party's own choice.
"""

from dataclasses import dataclass
from typing import ClassVar

from common.plan.planned import PlannedQuery
from server.domain import Membership, PrivacyTarget, Task
from server.operators.party_texts import PartyTexts, check
from server.settings.methods import DpSgdSettings

TEXTS = "fine-tuned samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class DpSgd(DpSgdSettings, PartyTexts):
    """The method; its settings are those of `server.settings.methods.DpSgdSettings`."""

    query: ClassVar[str] = TEXTS
    balanced: ClassVar[bool] = True

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """The one query."""
        check(self.samples, task)
        labels = len(task.labels)
        # A multiple of the labels, so that together all parties have enough of each.
        texts = labels * -(-self.samples // (membership.parties * labels))
        spec = self.spec(texts=texts, max_records=target.max_records)
        return (PlannedQuery(name=TEXTS, spec=spec, mechanism="dp-sgd", rate=self.rate, redraw=self.rate < 1),)
