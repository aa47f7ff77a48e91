"""What RPSG keeps of the texts that models wrote (Ma and Rajtmajer, section 3.4 and appendix B.4), label by label.

1. Of the texts, the share `similarity` least like the variants that they rephrase, by cosine, stays.
2. A surrogate language model learns the variants.
3. Of what is left, the share `nll` with the highest mean negative log-likelihood a token under the surrogate (equation
   3) stays: what it finds likely, it may have learnt by heart.
4. What looks like personal information is masked.

The paper's Table 7 gives both thresholds as shares that stay; a share of 1 switches a filter off. It has no labels.
Filtering each by itself keeps as many texts of one as of the next, whatever a model finds likely.

All of it is post-processing of texts that are released anyway: it costs no privacy and proves none.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common import rng, validate
from common.redaction import redact
from server.domain import Candidate
from server.metrics.language_model import LanguageModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Refinement:
    """Settings, as in Table 7.

    Attributes:
        similarity: Share of the texts that the cosine filter keeps, in (0, 1].
        nll: Share of these that the likelihood filter keeps, in (0, 1].
        start: Name or path of the checkpoint that the surrogate starts from; None: a small transformer from scratch.
        epochs: Of the surrogate's training.
        learning_rate: Likewise; None: the paper's usual 4e-4 for a checkpoint, more for a model from scratch.
        weight_decay: Likewise.
        device: Where it is trained.
    """

    similarity: float = 0.65
    nll: float = 0.55
    start: str | None = None
    epochs: int = 5
    learning_rate: float | None = None
    weight_decay: float = 0.01
    device: str = "cpu"

    def __post_init__(self) -> None:
        validate.positive(similarity=self.similarity, nll=self.nll)
        validate.in_range(0, 1, similarity=self.similarity, nll=self.nll)
        validate.integers(1, epochs=self.epochs)
        validate.at_least(0, weight_decay=self.weight_decay)
        if self.learning_rate is not None:
            validate.positive(learning_rate=self.learning_rate)

    def needed(self, wanted: int) -> int:
        """Texts of a label to write for so many to be left."""
        return _up(_up(wanted / self.nll) / self.similarity)

    def kept(
        self,
        texts: Sequence[Candidate],
        variants: Sequence[Candidate],
        vectors: NDArray[np.float32],
        originals: NDArray[np.float32],
        *,
        wanted: Mapping[str, int],
        experiment_seed: int,
    ) -> list[int]:
        """Positions of the texts that stay, ascending.

        Args:
            texts: Each with its label.
            variants: All that the surrogate learns.
            vectors: (texts, dimensions) float32, unit norm.
            originals: (texts, dimensions) float32, unit norm: of the variant that each text rephrases.
            wanted: How many of each label are to stay at most; the last filter leaves out what is over.
            experiment_seed: For the surrogate.
        """
        labels = [text.label for text in texts]
        everything = list(range(len(texts)))
        cosines = np.einsum("nd,nd->n", vectors, originals, dtype=np.float64)
        if self.nll == 1:
            return _lowest(cosines, labels, everything, self.similarity, wanted)
        left = _lowest(cosines, labels, everything, self.similarity)
        surrogate = LanguageModel.train(
            [variant.text for variant in variants],
            start=self.start,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            seed=rng.stream(experiment_seed, "surrogate") % 2**31,
            device=self.device,
        )
        likelihoods = np.zeros(len(texts))
        likelihoods[left] = -surrogate.nll([texts[at].text for at in left])
        return _lowest(likelihoods, labels, left, self.nll, wanted)


def redacted(texts: Sequence[Candidate]) -> list[Candidate]:
    """The texts with what looks like personal information masked (the paper's last step)."""
    return [replace(text, text=redact(text.text)) for text in texts]


def _lowest(
    scores: NDArray[np.float64],
    labels: Sequence[str],
    members: list[int],
    share: float,
    most: Mapping[str, int] | None = None,
) -> list[int]:
    """Of each label's members that share with the lowest scores, at least one, of equals the first; ascending."""
    chosen = []
    for label in dict.fromkeys(labels[at] for at in members):
        own = [at for at in members if labels[at] == label]
        count = _up(share * len(own))
        chosen += sorted(own, key=scores.__getitem__)[: min(count, most[label]) if most else count]
    return sorted(chosen)


def _up(value: float) -> int:
    """Rounded up, but for what is only the error of the arithmetic before."""
    return math.ceil(value - 1e-9)
