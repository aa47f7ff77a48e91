"""A finished Aug-PE run of ours: its votes without noise, its noise, its selection of survivors, and its accuracy.

Votes without noise, and all values computed from them, may only be used in a simulation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from client.contributions.votes import votes_of
from common import rng
from common.domain import Record
from common.models.encoder import Encoder
from common.privacy.samplers import discrete_gaussian
from common.queries.votes import Votes, VotesSpec
from server.documents.run import TEXTS, ZERO_SHOT
from server.domain import Candidate
from server.evaluation import small_model
from server.federation.ask import Federation
from server.llm.orders import per_label
from server.methods.aug_pe import AugPe
from server.operators import survivors
from server.prepare.components import RunComponents, build_components
from server.prepare.compose import check_simulation, reload_settings
from server.run_folder import read_candidates
from server.tools import RunTools
from simulations.federation.measured import with_records

Counts = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class OurRun:
    """A finished Aug-PE run of ours, with the records of its parties.

    Attributes:
        parts: The objects built from the run's settings, such as the plan.
        method: The run's method.
        tools: The run's language models and encoder, without a federation.
        private: The records of all parties.
        test: Held-out records.
        candidates: The first population, before any answer.
        texts: The synthetic texts.
    """

    parts: RunComponents
    method: AugPe
    tools: RunTools
    private: Sequence[Record] = field(repr=False)
    test: Sequence[Record]
    candidates: Sequence[Candidate]
    texts: Sequence[Candidate]

    def vectors(self, texts: Sequence[Record | Candidate]) -> NDArray[np.float32]:
        """Return the texts' vectors under the run's encoder, (texts, dimensions) float32, unit norm."""
        return self.tools.embed([text.text for text in texts])

    def numbers(self, texts: Sequence[Record | Candidate]) -> NDArray[np.int32]:
        """Return the index of each text's label among the task's labels, (texts,) int32."""
        places = {label: number for number, label in enumerate(self.tools.task.labels)}
        return np.array([places[text.label] for text in texts], dtype=np.int32)

    def accuracy(self, texts: Sequence[Candidate]) -> float:
        """Return the accuracy, on the test texts, of a logistic regression trained on the vectors of these texts."""
        evaluation = small_model.with_encoder_model(self.parts.evaluation)
        encoder = cast("Encoder", self.tools.encoder)  # which remembers the vectors of texts
        return float(small_model.score(texts, self.test, evaluation=evaluation, encoder=encoder)["accuracy"])


def load_finished_run(folder: Path) -> OurRun:
    """Load a finished simulation of Aug-PE, which must not use `look_ahead`, `smoothing` or a vocabulary."""
    settings = check_simulation(reload_settings(folder, []))
    parts = build_components(settings)
    measured = with_records(settings, [])
    assert isinstance(parts.method, AugPe), "only a run of aug_pe can be compared"
    left_out = parts.method.look_ahead or parts.method.smoothing or parts.method.vocabulary
    assert not left_out, "these are not compared"
    task, seed = parts.source.task(), settings.experiment_seed
    tools = RunTools(
        task=task,
        plan=parts.plan,
        federation=cast("Federation", None),  # nothing is asked
        encoder=parts.encoder,
        providers=parts.providers,
        cleaner=parts.cleaner,
        texts_per_request=parts.method.texts_per_request,
        spending=parts.spending,
        experiment_seed=seed,
    )
    return OurRun(
        parts=parts,
        method=parts.method,
        tools=tools,
        private=measured.private,
        test=measured.test,
        candidates=read_candidates(folder, ZERO_SHOT),
        texts=read_candidates(folder, TEXTS),
    )


def our_votes(run: OurRun, candidates: Sequence[Candidate]) -> Counts:
    """Return the sum of all parties' votes for each candidate, without noise."""
    spec = VotesSpec(top=1, furthest=False)
    query = Votes(spec=spec, vectors=run.vectors(candidates), labels=run.numbers(candidates))
    return votes_of(query, run.vectors(run.private), run.numbers(run.private)) / spec.grid


def our_noise(run: OurRun) -> float:
    """Return the standard deviation of the noise in each coordinate of a sum over all parties, in votes."""
    plan = run.parts.plan
    (planned,) = plan.queries
    return planned.noise_deviation * plan.surplus(planned, plan.parties)


def our_choice(run: OurRun, votes: Counts, draw: int) -> list[int]:
    """Return the survivors of one draw of all parties' noise shares, as indices into the first population."""
    plan = run.parts.plan
    (planned,) = plan.queries
    noised = votes * planned.spec.grid
    for _ in range(plan.parties if planned.scale else 0):
        noised = noised + discrete_gaussian(plan.share_sigma(planned), len(votes), rng.secure_bytes(32))
    sizes = per_label(np.array([run.method.samples]), len(run.tools.task.labels))[0]
    parents, _ = survivors.choose_parents(
        noised / planned.spec.grid,
        run.numbers(run.candidates),
        [int(size) // run.method.expansion for size in sizes],
        select=run.method.select,
        threshold=run.method.threshold,
        rng=np.random.default_rng(draw),
        task=run.tools.task,
    )
    return [parent for of_label in parents for parent in of_label]
