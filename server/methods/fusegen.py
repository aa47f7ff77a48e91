"""FuseGen: models learn from one another's synthetic texts, without any query to private data (Zou et al. 2024).

Round t of T, with N/T texts spread evenly over K models and C labels:
1. Prompt zero-shot at t = 0; later with S exemplars of the label, drawn from its pool.
2. Add the new texts to all earlier ones, D.
3. Train a small model on each language model's own texts in D; measure how well each small model learns each text of D.
4. A label's next pool consists of the R/2 texts on which the small models differ least (easy ones) and the R/2 texts on
   which they differ most (ambiguous ones), whichever language model wrote them.

After T rounds D is the synthetic data set, with each text weighted by how well it is learned (self-boosting weight
adjustment). Selection and weights are functions of synthetic texts alone: no party is queried, and epsilon is 0.

A small model is a linear classifier over the encoder's vectors, trained for a few epochs by gradient descent. Its
predictions after each epoch separate easy texts, on which models trained on different sets agree, from ambiguous texts,
on which they differ (as in the data maps of Swayamdipta et al. 2020).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError
from common.plan.planned import PlannedQuery
from server.domain import Membership, PrivacyTarget, Task
from server.llm.base import Request
from server.llm.generate import Generated
from server.llm.orders import Order, allocate, make_orders, per_label
from server.llm.requests import by_example
from server.method import PlainMemory, State, Tools
from server.operators import selection
from server.operators.round_report import make_report
from server.settings.methods import FuseGenSettings

if TYPE_CHECKING:
    from sklearn.linear_model import SGDClassifier


@dataclass(frozen=True, slots=True, kw_only=True)
class FuseGenMemory(PlainMemory):
    """FuseGen's memory from round to round.

    Attributes:
        pool: Indices in D of the next round's exemplars, keyed by label.
    """

    pool: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dynamics:
    """Training dynamics of n texts.

    Attributes:
        confidence: (n,) float64, 0 to 1: probability of the text's own label, averaged over models and epochs.
        variability: (n,) float64, at least 0: standard deviation over models of that probability's mean over epochs.
    """

    confidence: NDArray[np.float64]
    variability: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FuseGen(FuseGenSettings):
    """The FuseGen method; `server.settings.methods.FuseGenSettings` documents its settings."""

    memory: ClassVar[type[FuseGenMemory]] = FuseGenMemory
    modes: ClassVar[Mapping[str, str | None]] = {}

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Return an empty plan, since the method asks no queries about private records."""
        del target, membership
        task.check_labelled(
            "method fusegen", "which its small models learn", "Choose method=class_sums, wasp or aug_pe"
        )
        task.check_samples(self.samples, self.rounds)
        return ()

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """Return N, the number of texts of the run."""
        del task, models
        return self.samples

    def compared(self, task: Task) -> dict[str, int]:
        """Return an empty mapping, since the method asks no queries."""
        del task
        return {}

    def start(self, tools: Tools) -> State[FuseGenMemory]:
        """Return a state without texts or exemplars."""
        return State(memory=FuseGenMemory(pool={label: [] for label in tools.task.labels}))

    def step(self, state: State[FuseGenMemory], tools: Tools) -> State[FuseGenMemory]:
        """Run one round."""
        before, after = (self.samples * done // self.rounds for done in (state.round, state.round + 1))
        even = allocate(after - before, np.ones(len(tools.models)))
        shares = per_label(even, len(tools.task.labels), before)
        harvest = self._generate(state, make_orders(shares, tools.task, tools.models), tools)
        candidates = (*state.candidates, *harvest.candidates)
        labels = selection.label_numbers(candidates, tools.task)
        vectors = tools.embed([candidate.text for candidate in candidates])
        report = make_report(
            state.round,
            tools.models,
            requested=harvest.requested,
            generated=harvest.candidates,
            candidates=len(candidates),
            work=[harvest],
        )
        following = replace(state, round=state.round + 1, rounds=(*state.rounds, report))
        if following.round == self.rounds:
            weights = self_boosted_weights(vectors, labels, rounds=self.boosts, epochs=self.epochs).tolist()
            weighed = (replace(text, weight=weight) for text, weight in zip(candidates, weights, strict=True))
            return replace(following, candidates=tuple(weighed), memory=FuseGenMemory())
        models = np.array([tools.models.index(candidate.model) for candidate in candidates])
        learned = cross_model_dynamics(vectors, labels, models, epochs=self.epochs)
        return replace(
            following, candidates=candidates, memory=FuseGenMemory(pool=self._pool(learned, labels, tools.task))
        )

    def _generate(self, state: State[FuseGenMemory], orders: Sequence[Order], tools: Tools) -> Generated:
        """Have the models write a round's texts; a prompt shows some exemplars of its label's pool."""

        def write(order: Order, texts: int, generator: np.random.Generator) -> Request:
            shown = selection.draw_members(state.memory.pool[order.label], self.shots, generator)
            request = by_example(
                tools.task,
                order.label,
                texts=texts,
                rng=generator,
                good=[state.candidates[i].text for i in shown],
                temperature=self.temperature,
                words=self.words,
            )
            return replace(request, showable=True)

        return tools.generate(orders, write, round_number=state.round)

    def _pool(self, learned: Dynamics, labels: NDArray[np.integer], task: Task) -> dict[str, list[int]]:
        """Select R/2 easy and R - R/2 ambiguous texts of each label; if a label has at most R texts, select all."""
        pools: dict[str, list[int]] = {}
        for number, label in enumerate(task.labels):
            members = np.flatnonzero(labels == number)
            # lexsort's last key leads; of texts that vary equally the surer is the easier.
            order = members[np.lexsort((-learned.confidence[members], learned.variability[members]))]
            easy, ambiguous = order[: self.pool // 2], order[self.pool // 2 :][-(self.pool - self.pool // 2) :]
            pools[label] = [int(i) for i in (*easy, *ambiguous)]
        return pools


def cross_model_dynamics(
    vectors: NDArray[np.floating], labels: NDArray[np.integer], models: NDArray[np.integer], *, epochs: int
) -> Dynamics:
    """Train one small model on the texts of each language model, and evaluate each small model on all texts.

    Args:
        vectors: (n, dimensions), unit norm.
        labels: (n,) label indices, at least 0.
        models: (n,) index of the language model that wrote each text.
        epochs: Number of passes of each small model over its training texts.

    Returns:
        The dynamics, which are deterministic; variability is 0 if there is only one language model.

    Raises:
        DataError: There are no texts, or the arrays differ in length.
    """
    if not len(vectors) == len(labels) == len(models) > 0:
        raise DataError("texts to learn from", expected="at least one, with a label and a model each", got="none")
    beliefs = np.stack([_beliefs(vectors, labels, models == model, epochs) for model in np.unique(models)])
    return Dynamics(confidence=beliefs.mean(axis=0), variability=beliefs.std(axis=0))


def self_boosted_weights(
    vectors: NDArray[np.floating], labels: NDArray[np.integer], *, rounds: int, epochs: int
) -> NDArray[np.float64]:
    """Return text weights from how well a small model learns each text (self-boosting weight adjustment).

    In each round a small model is trained on all texts with the current weights. Let e_i be one minus the probability
    that the model assigns to text i's label. If the model labels text i correctly, the text's weight is multiplied by
    β^e_i, and otherwise by β^-e_i; then all weights are rescaled to the same sum. Texts that are learned with low
    confidence gain weight; texts that are not learned lose weight. β = 1 + sqrt(max(1, 2 ln(n / rounds))), as in the
    authors' program.

    Args:
        vectors: (n, dimensions), unit norm.
        labels: (n,) label indices, at least 0.
        rounds: Number of adjustments; 0 leaves the weights equal.
        epochs: Number of epochs of each training.

    Returns:
        (n,) float64 weights above 0, mean 1.
    """
    weights = np.ones(len(labels))
    if len(set(labels.tolist())) < 2:
        return weights
    beta = 1 + math.sqrt(max(1.0, 2 * math.log(len(labels) / max(1, rounds))))
    for _ in range(rounds):
        model = _untrained()
        for _ in range(epochs):
            model.partial_fit(vectors, labels, classes=np.unique(labels), sample_weight=weights)
        right = model.predict(vectors) == labels
        missing = 1 - _label_probabilities(model, vectors, labels)
        weights *= beta ** np.where(right, missing, -missing)
        weights *= len(weights) / weights.sum()
    return weights


def _beliefs(
    vectors: NDArray[np.floating], labels: NDArray[np.integer], part: NDArray[np.bool_], epochs: int
) -> NDArray[np.float64]:
    """Return the (n,) probabilities of the texts' own labels from a model trained on `part`, averaged over epochs."""
    classes = np.unique(labels)
    if len(classes) < 2:
        return np.ones(len(labels))
    model = _untrained()
    total = np.zeros(len(labels))
    for _ in range(epochs):
        model.partial_fit(vectors[part], labels[part], classes=classes)
        total += _label_probabilities(model, vectors, labels)
    return total / epochs


def _untrained() -> "SGDClassifier":
    from sklearn.linear_model import SGDClassifier

    # At this step size a few epochs show learning: smaller ones barely start, larger ones end after the first.
    return SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.5, random_state=0)


def _label_probabilities(
    model: "SGDClassifier", vectors: NDArray[np.floating], labels: NDArray[np.integer]
) -> NDArray[np.float64]:
    columns = np.searchsorted(model.classes_, labels)
    return np.asarray(model.predict_proba(vectors)[np.arange(len(labels)), columns])
