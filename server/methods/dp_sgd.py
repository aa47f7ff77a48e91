"""DP-SGD: parties fine-tune their own language models and release texts drawn from them (Abadi et al. 2016).

A baseline of the papers (DP-Transforms, Yue et al. 2023; DP-SGD with LoRA). One query, one answer, no round after it:
each party trains on its own records (`client/writers/fine_tuning.py`), each alone, so that it shines with one
party that has many. Which model it trains is the party's own choice.
"""

from dataclasses import dataclass
from typing import ClassVar

from common.plan.planned import PlannedQuery
from common.queries.texts import FineTunedSpec
from server.domain import Membership, PrivacyTarget, Task
from server.operators.party_texts import PartyTexts, check
from server.settings.methods import DpSgdSettings

TEXTS = "fine-tuned samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class DpSgd(DpSgdSettings, PartyTexts):
    """The method; its settings are those of `server.settings.methods.DpSgdSettings`."""

    query: ClassVar[str] = TEXTS
    balanced: ClassVar[bool] = True

    def __post_init__(self) -> None:
        DpSgdSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        self._spec(labels=1, max_records=1, parties=1)

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """The one query."""
        check(self.samples, task)
        spec = self._spec(labels=len(task.labels), max_records=target.max_records, parties=membership.parties)
        return (PlannedQuery(name=TEXTS, spec=spec, mechanism="dp-sgd", rate=self.rate, redraw=self.rate < 1),)

    def _spec(self, *, labels: int, max_records: int, parties: int) -> FineTunedSpec:
        return FineTunedSpec(
            # A multiple of the labels, so that together all parties have enough of each.
            texts=labels * -(-self.samples // (parties * labels)),
            longest=self.longest,
            steps=self.steps,
            batch=self.batch,
            clip=self.clip,
            resolution=self.resolution,
            learning_rate=self.learning_rate,
            temperature=self.temperature,
            top_p=self.top_p,
            lora=self.lora,
            max_tokens=self.max_tokens,
            max_records=max_records,
        )
