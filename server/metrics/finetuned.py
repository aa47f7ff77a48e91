"""Accuracy of a pretrained transformer that is fine-tuned as a classifier on the synthetic texts.

The checkpoint gets a new classification head and all its weights are trained: AdamW, learning rate warmed up over a
tenth of the steps and then decayed linearly, as BERT was fine-tuned (Devlin et al. 2019, appendix A.3). A fraction of
the training texts, which are synthetic, is set aside as a validation set; training stops when the loss on it has not
fallen for `patience` epochs. The weights of the epoch with the lowest validation loss are used for prediction. No test
text affects this choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from common.errors import DataError
from common.models import checkpoints
from common.models.batches import batches_by_tokens
from common.validate import integers, positive, probability

DEFINITION = (
    "A transformer with a new classification head, all weights fine-tuned (AdamW, warmed up over a tenth of the steps) "
    "on the texts, by their weights where the method gives any and each class counting alike; stopped early on a part "
    "of the same texts that was set aside; accuracy, and macro-F1 over the classes present in the test texts, where "
    "one never predicted counts 0."
)
"""Text that defines a fine-tuned model's figures in reports."""

_WARM_UP = 0.1
_TEST_TOKENS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierTraining:
    """Settings of fine-tuning.

    Attributes:
        checkpoint: Folder, or name in the local cache, such as "bert-base-uncased" or "roberta-base".
        epochs: Maximum number of epochs.
        patience: Number of epochs without a lower validation loss after which training stops.
        validation: Fraction of each class's training texts that is set aside for the validation set.
        rate: Peak learning rate.
        batch: Number of texts per step.
        longest: Maximum number of tokens read per text.
        device: Device to compute on, as torch names it.
        balanced: Whether classes have equal total weight.
        local_files_only: If false, files missing from the cache are downloaded.
    """

    checkpoint: str
    epochs: int = 10
    patience: int = 2
    validation: float = 0.1
    rate: float = 5e-5
    batch: int = 32
    longest: int = 256
    device: str = "cpu"
    balanced: bool = True
    local_files_only: bool = True

    def __post_init__(self) -> None:
        integers(1, epochs=self.epochs, patience=self.patience, batch=self.batch)
        integers(4, longest=self.longest)
        probability(validation=self.validation)
        positive(rate=self.rate)

    def checked_folder(self) -> Path:
        """Return the checkpoint's folder, after checks that load no weights.

        Raises:
            ConfigError: The folder or its tokenizer is missing, or the network supports no classification head.
        """
        folder = checkpoints.model_folder(self.checkpoint, local_files_only=self.local_files_only)
        checkpoints.configuration(checkpoints.with_tokenizer(folder), "classification")
        return folder


def train_and_predict(
    texts: Sequence[str],
    labels: NDArray[np.integer] | NDArray[np.floating],
    test: Sequence[str],
    training: ClassifierTraining,
    *,
    weights: NDArray[np.float64] | None = None,
    experiment_seed: int = 0,
) -> NDArray[np.int64]:
    """Fine-tune the checkpoint and predict the test texts' labels.

    The result is deterministic on one machine and device.

    Args:
        texts: n training texts, n at least 2.
        labels: (n,) label indices from 0, in which each index up to the largest occurs at least once; or (n, C) label
            probabilities.
        test: m test texts.
        training: Checkpoint and settings.
        weights: (n,) weight of each text; None weights all texts equally.
        experiment_seed: Seed of the head's initial weights, the validation set, the batches and dropout.

    Returns:
        (m,) predicted labels.

    Raises:
        ConfigError: See `Training.checked_folder`, or the weights cannot be read.
        DataError: There are fewer than two texts.
    """
    if len(texts) < 2:
        raise DataError("texts to fine-tune on", expected="at least two", got=len(texts))
    folder = training.checked_folder()
    devices = [torch.device(training.device)] if training.device.startswith("cuda") else []
    with torch.random.fork_rng(devices):  # Transformers draw initial weights and dropout from the global generator.
        torch.manual_seed(experiment_seed % 2**63)
        classes = int(labels.max()) + 1 if labels.ndim == 1 else labels.shape[1]
        most_probable = labels.astype(np.int64) if labels.ndim == 1 else labels.argmax(axis=1)
        model = _model(folder, classes, training.device)
        ids = _Ids(folder, training.longest, training.device)
        model.config.pad_token_id = ids.filler  # causal networks classify at the last token before padding
        training_set, validation_set = _set_aside(most_probable, training.validation)
        counts = np.bincount(most_probable, minlength=classes)
        text_weights = np.ones(len(texts)) if weights is None else weights
        if training.balanced:
            text_weights = text_weights * len(labels) / (np.count_nonzero(counts) * counts[most_probable])
        y, w = (
            torch.from_numpy(labels.astype(np.int64 if labels.ndim == 1 else np.float32)).to(training.device),
            torch.from_numpy(text_weights.astype(np.float32)).to(training.device),
        )
        tokens = ids.of(texts)
        _fit(model, ids, tokens, y, w, training_set=training_set, validation_set=validation_set, training=training)
        predicted: NDArray[np.int64] = _outputs(model, ids, ids.of(test)).argmax(dim=1).cpu().numpy()
    return predicted


def _fit(
    model: Any,
    ids: "_Ids",
    tokens: list[list[int]],
    y: Tensor,
    w: Tensor,
    *,
    training_set: Tensor,
    validation_set: Tensor,
    training: ClassifierTraining,
) -> None:
    """Train `model` in place, ending with the weights of its best epoch."""
    steps = training.epochs * -(-len(training_set) // training.batch)
    warm = max(1, round(_WARM_UP * steps))
    optimizer = torch.optim.AdamW(model.parameters(), lr=training.rate, weight_decay=0.01)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
    )
    best, state, since = float("inf"), None, 0
    for _ in range(training.epochs):
        model.train()
        for batch in training_set[torch.randperm(len(training_set))].split(training.batch):  # type: ignore[no-untyped-call]
            at = batch.to(y.device)
            outputs = model(**ids.padded([tokens[place] for place in batch.tolist()])).logits
            loss = (w[at] * nn.functional.cross_entropy(outputs.float(), y[at], reduction="none")).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rate.step()
        outputs = _outputs(model, ids, [tokens[place] for place in validation_set.tolist()])
        at = validation_set.to(y.device)
        validation_loss = float(
            (w[at] * nn.functional.cross_entropy(outputs, y[at], reduction="none")).sum() / w[at].sum()
        )
        since += 1
        if validation_loss < best:
            best, since = validation_loss, 0
            state = {name: value.detach().clone() for name, value in model.state_dict().items()}
        if since >= training.patience:
            break
    if state is not None:
        model.load_state_dict(state)


def _set_aside(labels: NDArray[np.integer], share: float) -> tuple[Tensor, Tensor]:
    """Return the indices of the training set and of the validation set.

    Each class with two or more texts has at least one text in each set; a single text is in the training set. If the
    validation set would be empty, the training set is used in its place.
    """
    validation_set: list[int] = []
    for label in np.unique(labels):
        places = torch.from_numpy(np.flatnonzero(labels == label))
        count = min(max(1, round(share * len(places))), len(places) - 1)
        validation_set += places[torch.randperm(len(places))[:count]].tolist()
    training_set = sorted(set(range(len(labels))) - set(validation_set))
    return torch.tensor(training_set), torch.tensor(sorted(validation_set) or training_set)


def _model(folder: Path, labels: int, device: str) -> Any:
    def configure(config: Any) -> None:
        config.num_labels = labels

    # A classification head in the checkpoint is for other labels, so it is replaced.
    return checkpoints.network(
        folder,
        "AutoModelForSequenceClassification",
        what="model to fine-tune",
        device=device,
        configure=configure,
        ignore_mismatched_sizes=True,
    )


@torch.no_grad()
def _outputs(model: Any, ids: "_Ids", tokens: list[list[int]]) -> Tensor:
    """Return the logits, (texts, labels) float32, without dropout."""
    model.eval()
    logits = torch.empty((len(tokens), model.config.num_labels), device=model.device)
    for batch in batches_by_tokens([len(ids_of_text) for ids_of_text in tokens], _TEST_TOKENS):
        logits[batch] = model(**ids.padded([tokens[place] for place in batch])).logits.float()
    return logits


class _Ids:
    """Tokenizer of a checkpoint, which also pads batches to tensors."""

    def __init__(self, folder: Path, longest: int, device: str) -> None:
        self._tokenizer: Any = checkpoints.tokenizer(folder)
        self.filler = self._tokenizer.pad_token_id or 0
        self._longest = min(longest, self._tokenizer.model_max_length)
        self._device = device

    def of(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        tokens = self._tokenizer(list(texts), truncation=True, max_length=self._longest)["input_ids"]
        return [ids or [self.filler] for ids in tokens]

    def padded(self, tokens: list[list[int]]) -> dict[str, Tensor]:
        width = max(map(len, tokens))
        rows = [ids + [self.filler] * (width - len(ids)) for ids in tokens]
        mask = [[1] * len(ids) + [0] * (width - len(ids)) for ids in tokens]
        return {
            "input_ids": torch.tensor(rows, device=self._device),
            "attention_mask": torch.tensor(mask, device=self._device),
        }
