"""RPSG's filters for the models' texts, applied to each label (Ma and Rajtmajer, section 3.4 and appendix B.4).

1. Keep the texts with the lowest cosine to the variants that they rephrase; the setting `similarity` is the fraction to
   keep.
2. Train a surrogate language model on the variants.
3. Of the remaining texts, keep those with the highest mean negative log-likelihood per token under the surrogate
   (equation 3), since a text that the surrogate finds likely may be memorised; the setting `nll` is the fraction to
   keep.
4. Mask anything that looks like personal information.

The paper's Table 7 gives both thresholds as fractions to keep; a fraction of 1 turns a filter off. The paper has no
labels. Here each label is filtered separately, so that the filters preserve the balance between labels.

All of this is post-processing of texts that could be released anyway: it costs no privacy, and proves nothing about
privacy.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.models.devices import device_here
from common.redaction import redact
from server.domain import Candidate
from server.metrics.language_model import LanguageModel
from server.settings.evaluation import Training
from server.settings.sections import FineTuning
from server.settings.seeded import RefinementSettings


class Refinement(RefinementSettings):
    """Selection of the texts to keep; `server.settings.seeded.RefinementSettings` documents its settings."""

    __slots__ = ()

    def __post_init__(self) -> None:
        RefinementSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        if self.nll < 1:
            device_here(self.device, "method.refinement.device")

    def needed(self, wanted: int) -> int:
        """Return the number of texts to write for a label so that `wanted` remain."""
        return _up(_up(wanted / self.nll) / self.similarity)

    def select(
        self,
        texts: Sequence[Candidate],
        variants: Sequence[Candidate],
        vectors: NDArray[np.float32],
        originals: NDArray[np.float32],
        *,
        wanted: Mapping[str, int],
        experiment_seed: int,
    ) -> list[int]:
        """Return the indices of the texts to keep, ascending.

        Args:
            texts: Texts with labels.
            variants: Training texts of the surrogate.
            vectors: (texts, dimensions) float32, unit norm.
            originals: (texts, dimensions) float32, unit norm: vector of the variant that each text rephrases.
            wanted: Maximum number of texts to keep per label; the last filter drops the surplus.
            experiment_seed: Seed of the surrogate's training.
        """
        labels = [text.label for text in texts]
        everything = list(range(len(texts)))
        cosines = np.einsum("nd,nd->n", vectors, originals, dtype=np.float64)
        if self.nll == 1:
            return _lowest(cosines, labels, everything, self.similarity, wanted)
        dissimilar = _lowest(cosines, labels, everything, self.similarity)
        surrogate = LanguageModel.train(
            [variant.text for variant in variants],
            Training(**{field.name: getattr(self, field.name) for field in fields(FineTuning)}),
            seed=rng.stream(experiment_seed, "surrogate") % 2**31,
        )
        likelihoods = np.zeros(len(texts))
        likelihoods[dissimilar] = -surrogate.nll([texts[at].text for at in dissimilar])
        return _lowest(likelihoods, labels, dissimilar, self.nll, wanted)


class Rehearsed(Refinement):
    """Refinement in a rehearsal: the same number of texts is written, and all are dropped, as no requests follow."""

    __slots__ = ()

    def select(self, *_: object, **__: object) -> list[int]:
        """Return an empty list, since all texts are dropped."""
        return []


def redact_texts(texts: Sequence[Candidate], language: str) -> list[Candidate]:
    """Return the texts with everything masked that looks like personal information (the paper's last step).

    Dates, numbers and forms of address are recognised by the language.
    """
    return [replace(text, text=redact(text.text, language)) for text in texts]


def _lowest(
    scores: NDArray[np.float64],
    labels: Sequence[str],
    members: list[int],
    share: float,
    most: Mapping[str, int] | None = None,
) -> list[int]:
    """Return the indices, ascending, of the members of each label with the lowest scores; of equal ones, the first.

    Members are indices of texts. `share` is the fraction of each label's members to select, rounded up to whole texts,
    and `most` the maximum number per label.
    """
    chosen = []
    for label in dict.fromkeys(labels[at] for at in members):
        positions = [at for at in members if labels[at] == label]
        count = _up(share * len(positions))
        chosen += sorted(positions, key=scores.__getitem__)[: min(count, most[label]) if most else count]
    return sorted(chosen)


def _up(value: float) -> int:
    """Round up, with a tolerance for floating-point error."""
    return math.ceil(value - 1e-9)
