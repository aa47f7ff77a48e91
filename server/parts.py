"""The parts of a run: its identity and folder, the objects of its configuration, its options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.secagg.identity import Roster
from server.domain import Earlier
from server.evaluation.small_model import Evaluation
from server.federation.network import Network
from server.llm.base import Provider
from server.llm.clean import Cleaner
from server.llm.generate import PLAIN
from server.llm.spending import Spending
from server.method import Method
from server.tasks.sources import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The objects that a configuration names (`server.app.build_parts`).

    Attributes:
        source: The task: public description, public texts, held-out texts.
        method: The method to run.
        plan: The agreed privacy plan.
        roster: The parties' identities, if the plan names their digest.
        encoder: The encoder that the parties use as well.
        providers: Language models by name.
        cleaner: Rules that clean the models' texts.
        spending: Account of payments for remote models.
        evaluation: The small model that measures the quality of the texts.
        earlier: The run whose released numbers are used instead of asking; None if the plan's queries are all.
    """

    source: Source
    method: Method[Any]
    plan: Plan
    roster: Roster | None = None
    encoder: Encoder
    providers: Mapping[str, Provider]
    cleaner: Cleaner = PLAIN
    spending: Spending = field(default_factory=Spending)
    evaluation: Evaluation = field(default_factory=Evaluation)
    earlier: Earlier | None = None

    @property
    def epsilon(self) -> float:
        """Epsilon of the texts: the plan's, or that of the numbers of an earlier run."""
        return self.plan.epsilon if self.earlier is None else self.earlier.epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Settings of a run that are not objects.

    Attributes:
        experiment_seed: Seed of prompts and sampling; never of noise.
        simulation: Whether parties and coordinator share one machine.
        labels_from_records: Whether the labels were taken from private records, without noise.
        retries: Number of retries of a failed query before the run ends.
        expected_records: Public guess of the number of records in all, by which signals are expected; or None.
        tracking: "tensorboard", or None.
        encoder: Name of the encoder.
        hospitals: Names of the hospitals of a deployment, by number.
    """

    experiment_seed: int
    simulation: bool
    labels_from_records: bool = False
    retries: int = 0
    expected_records: int | None = None
    tracking: str | None = None
    encoder: str | None = None
    hospitals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """Everything that one run needs, put together by an entry point.

    Attributes:
        run: Identity of the run, unique among all runs of these parties.
        folder: The run folder.
        network: Transport of parcels to the parties.
        parts: The objects that the configuration names.
        options: The other settings.
    """

    run: str
    folder: Path
    network: Network
    parts: Parts
    options: Options
