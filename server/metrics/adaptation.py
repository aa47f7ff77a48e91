"""Deep CORAL: unsupervised domain adaptation of a classifier, from labelled source texts to unlabelled target texts.

Synthetic texts and a recipient's texts differ in style. Deep CORAL (Sun and Saenko 2016; DP-KPS, section B.1.2) adds to
the classification loss on source texts

    lambda ||cov(source outputs) - cov(target outputs)||_F^2 / (4 d^2),

for the d outputs of the last layer, on batches of source and unlabelled target texts. The classifier is DP-KPS's: three
fully connected layers over the vectors of an encoder, which is not trained here.
"""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from common.errors import DataError

_HIDDEN = (256, 64)
_BATCH = 64
_RATE = 1e-3


def coral(source: Tensor, target: Tensor) -> Tensor:
    """Return ||cov(source) - cov(target)||_F^2 / (4 d^2) for outputs (n, d) and (m, d), each with at least two rows."""
    difference = torch.cov(source.T) - torch.cov(target.T)
    return (difference**2).sum() / (4 * source.shape[1] ** 2)


def train_and_predict(
    vectors: NDArray[np.float32],
    labels: NDArray[np.integer] | NDArray[np.floating],
    test: NDArray[np.float32],
    *,
    target: NDArray[np.float32] | None = None,
    weight: float = 1.0,
    weights: NDArray[np.float64] | None = None,
    epochs: int = 50,
    experiment_seed: int = 0,
) -> NDArray[np.int64]:
    """Fit the network on the CPU and predict the test texts' labels; the result is deterministic on one machine.

    Args:
        vectors: (n, dim), source texts, n at least 2.
        labels: (n,) label indices from 0, or (n, C) label probabilities.
        test: (m, dim), test texts.
        target: (t, dim), unlabelled target texts, t at least 2; None trains without adaptation.
        weight: lambda. At the end, both losses should have the same order of magnitude (Sun and Saenko, section 4.1).
        weights: (n,) weight of each source text; None weights all texts equally.
        epochs: Number of passes over the source texts.
        experiment_seed: Seed of the initial weights and the batches.

    Returns:
        (m,) predicted labels.

    Raises:
        DataError: There are fewer than two source or target texts.
    """
    for what, texts in (("source texts", vectors), ("target texts", target)):
        if texts is not None and len(texts) < 2:
            raise DataError(what, expected="at least two", got=len(texts))
    generator = torch.Generator().manual_seed(experiment_seed % 2**63)
    classes, kind = (int(labels.max()) + 1, np.int64) if labels.ndim == 1 else (labels.shape[1], np.float32)
    network = _network(vectors.shape[1], classes, generator)
    optimizer = torch.optim.Adam(network.parameters(), lr=_RATE)
    x, y = torch.from_numpy(vectors), torch.from_numpy(labels.astype(kind))
    text_weights = torch.ones(len(x)) if weights is None else torch.from_numpy(weights.astype(np.float32))
    target_batches = _batches(len(target), generator) if target is not None else None
    targets = torch.from_numpy(target) if target is not None else None
    steps = epochs * max(1, len(x) // _BATCH)
    for _, at in zip(range(steps), _batches(len(x), generator), strict=False):
        outputs = network(x[at])
        loss = (text_weights[at] * nn.functional.cross_entropy(outputs, y[at], reduction="none")).mean()
        if target_batches is not None and targets is not None:
            loss = loss + weight * coral(outputs, network(targets[next(target_batches)]))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        predicted: NDArray[np.int64] = network(torch.from_numpy(test)).argmax(dim=1).numpy()
    return predicted


def _network(dim: int, labels: int, generator: torch.Generator) -> nn.Sequential:
    sizes = [dim, *_HIDDEN, labels]
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        layer = nn.Linear(before, after)
        bound = 1 / math.sqrt(before)
        for parameter in (layer.weight, layer.bias):
            nn.init.uniform_(parameter, -bound, bound, generator=generator)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _batches(count: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield shuffled indices, epoch after epoch, in batches of at least two, which a covariance needs."""
    pieces = max(1, count // _BATCH)
    while True:
        yield from torch.randperm(count, generator=generator).tensor_split(pieces)
