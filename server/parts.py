"""What a run is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.domain import Record
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.secagg.identity import Roster
from server.domain import Task
from server.evaluation import small_model
from server.federation.network import Network
from server.llm.base import Provider
from server.llm.clean import Cleaner
from server.llm.generate import PLAIN
from server.llm.spending import Spending
from server.method import Method


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """All parts of one run, built by an entry point.

    Attributes:
        run: Identity of the run, unique among all runs of these parties.
        folder: The run folder.
        method: What to run.
        plan: The agreed privacy plan.
        network: How parcels reach the parties.
        providers: Language models by name.
        encoder: The encoder that the parties run as well.
        task: What is public about the data.
        held_out: Real texts for evaluation that are no party's records; may be empty.
        experiment_seed: For prompts and sampling; never for noise.
        simulation: Whether parties and coordinator are one machine.
        labels_from_records: Whether the labels were taken from private records, without noise.
        roster: The parties' identities, where the plan names their digest.
        retries: How often a query that failed is asked anew before the run ends.
        evaluation: Which small model says how good the texts are.
        cleaner: What is done to the models' texts.
        spending: What the models are paid.
        tracking: "tensorboard", or None.
    """

    run: str
    folder: Path
    method: Method[Any]
    plan: Plan
    network: Network
    providers: Mapping[str, Provider]
    encoder: Encoder
    task: Task
    held_out: Sequence[Record] = field(repr=False)
    experiment_seed: int
    simulation: bool
    labels_from_records: bool = False
    roster: Roster | None = None
    retries: int = 0
    evaluation: small_model.Evaluation = field(default_factory=small_model.Evaluation)
    cleaner: Cleaner = PLAIN
    spending: Spending = field(default_factory=Spending)
    tracking: str | None = None
