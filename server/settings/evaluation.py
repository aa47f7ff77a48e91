"""Settings of the evaluation: the small model, and the groups of further figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from common import validate
from common.errors import ConfigError
from server.settings.bounds import Count, NotNegative, OptionalCount, between, check_bounds, one_of, whole
from server.settings.sections import FineTuning, Part

METRICS = (
    "utility",
    "utility_encoder",
    "language",
    "fidelity",
    "diversity",
    "privacy",
    "fidelity_private",
    "membership",
    "canaries",
    "sites",
    "disclosures",
    "subgroups",
)
HEAD = 16
"""Width of an attention head in a model with random weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training(FineTuning):
    """Training of a causal language model for the metrics `language` and `membership`.

    Attributes:
        batch: Number of texts per batch.
        length: Maximum number of tokens read from a text, at least 2.
        width: Width of a model with random weights.
        layers: Number of layers of a model with random weights.
        vocabulary: Number of tokens in the vocabulary of a model with random weights.
    """

    batch: Count = 16
    length: Annotated[int, whole(2)] = 128
    width: int = 64
    layers: Count = 2
    vocabulary: Annotated[int, whole(257)] = 1000

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.width < 1 or self.width % HEAD:
            raise ConfigError("width", expected=f"a multiple of {HEAD}", got=self.width)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """The small model that is scored on held-out texts, and the groups of other figures.

    Attributes:
        model: "tfidf": logistic regression on TF-IDF; "encoder": logistic regression on the encoder's vectors;
            "network": three layers on the encoder's vectors; "finetuned": a transformer with all weights trained.
        checkpoint: Model to fine-tune, such as "bert-base-uncased": a folder, or a name in the local cache.
        device: Device for the training, as torch names it.
        domain_adaptation: "none"; or "deep_coral": the network adapts to `target` (`server.metrics.adaptation`).
        target: File of the recipient's unlabelled texts to adapt to; none of them may be a test text.
        weight: λ, at least 0: the weight of the adaptation loss.
        epochs: Epochs of the network (50 if None), or the largest number of epochs of fine-tuning (10 if None).
        vocabulary: A `.txt` of terms, for released texts that are sequences of keyphrases (DP-KPS, section B.2.2):
            training and test texts are replaced by their terms, in order. None leaves texts as they are.
        metrics: Other groups of figures, from `METRICS`; see `server/evaluation/of_texts.py`.
        federated: Fraction of epsilon for a noised count of the parties' records that a classifier trained on the texts
            labels correctly (`server/evaluation/federated_count.py`); 0 plans no such query.
        language_model: Language model for the groups "language" and "membership".
        texts: Maximum number of texts that one language model is trained or evaluated on.
        shadows: Number of shadow models for the LIRA attack.
        seeds: Number of times a randomised model is trained, for an interval over these trainings; with 1, the interval
            is over the test texts, as it is for models that are not randomised.
        embedding: Encoder, or endpoint (`server.evaluation.remote_encoder`), of the small model alone; None: the run's.
        own: The user's own metrics, keyed by name; a metric receives only the synthetic texts.
    """

    made_by: ClassVar[str] = "server.evaluation.small_model.Evaluation"
    place: ClassVar[str] = "evaluation"

    model: Annotated[str, one_of("tfidf", "encoder", "network", "finetuned")] = "tfidf"
    checkpoint: str | None = None
    device: str = "cpu"
    domain_adaptation: Annotated[str, one_of("none", "deep_coral")] = "none"
    target: str | None = None
    weight: NotNegative = 1.0
    epochs: OptionalCount = None
    vocabulary: str | None = None
    metrics: tuple[str, ...] = ("utility", "fidelity", "diversity", "privacy")
    federated: Annotated[float, between(0, 0.5)] = 0.0
    language_model: Training = field(default_factory=Training)
    texts: Count = 1000
    shadows: Count = 2
    seeds: Count = 1
    embedding: Part | None = None
    own: Mapping[str, Part] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.metrics:
            validate.one_of("evaluation.metrics", name, among=METRICS)
        check_bounds(self)

    @property
    def deterministic(self) -> bool:
        """Whether the small model learns the same from the same texts each time."""
        return self.model in {"tfidf", "encoder"}

    @property
    def on_vectors(self) -> bool:
        """Whether the small model learns from the encoder's vectors."""
        return self.model in {"encoder", "network"}
