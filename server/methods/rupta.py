"""RUPTA: records rewritten, one to one, by the parties' own models until these find them private (Yang et al. 2025).

A baseline of the papers ("Robust utility-preserving text anonymization based on large language models"), with no
differential privacy: each released text is a function of one record, and no model's opinion of it bounds what it gives
away. Its query is unproven, costs ε = ∞, and is refused by every party whose own file does not name it and say
`unsafe_unproven`. One query, one answer (`client/writers/rewriting.py`); a private text goes to no other machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from common import validate
from common.errors import ConfigError
from common.plan.planned import PlannedQuery
from common.queries.texts import RewrittenSpec
from server.domain import Membership, PrivacyTarget, Task
from server.method import NoMemory, State, Tools
from server.operators import party_texts

TEXTS = "rewritten records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rupta:
    """Settings.

    Attributes:
        samples: N, texts that are released: no more than there are records.
        rewritings: Rounds of rewriting a record, at most.
        longest: Largest number of bytes of a text.
    """

    memory: ClassVar[type[NoMemory]] = NoMemory

    samples: int = 2000
    rewritings: int = 3
    longest: int = 2048
    name: str = "rupta"
    rounds: int = 1
    texts_per_request: int = 1

    def __post_init__(self) -> None:
        validate.integers(1, samples=self.samples)
        if self.rounds != 1:
            raise ConfigError("method.rounds", expected="1: one answer", got=self.rounds)
        self._spec(max_records=1, parties=1)

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """The one query."""
        party_texts.check(self.samples, task)
        return (
            PlannedQuery(
                name=TEXTS,
                spec=self._spec(max_records=target.max_records, parties=membership.parties),
                mechanism="none",
            ),
        )

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """None: the parties write."""
        del task, models
        return 0

    def start(self, tools: Tools) -> State[NoMemory]:
        """No texts."""
        del tools
        return State(memory=NoMemory())

    def step(self, state: State[NoMemory], tools: Tools) -> State[NoMemory]:
        """Ask, and release the answers; the label of a text is that of its record."""
        del state
        spec, answers = tools.spec(TEXTS), tools.ask(TEXTS, 0)
        assert isinstance(spec, RewrittenSpec), "as planned"
        return party_texts.state(answers, spec, tools, name=self.name, samples=self.samples, balanced=False)

    def _spec(self, *, max_records: int, parties: int) -> RewrittenSpec:
        return RewrittenSpec(
            texts=-(-self.samples // parties),
            longest=self.longest,
            rounds=self.rewritings,
            max_records=max_records,
        )
