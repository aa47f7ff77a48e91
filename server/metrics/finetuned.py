"""Accuracy of a pretrained transformer that is fine-tuned as a classifier on the synthetic texts.

The checkpoint gets a new classification head and all its weights are trained: AdamW, learning rate warmed up over a
tenth of the steps and then decayed linearly, as BERT was fine-tuned (Devlin et al. 2019, appendix A.3). A fraction of
the training texts, which are synthetic, is set aside as a validation set; training stops when the loss on it has not
fallen for two epochs. The weights of the epoch with the lowest validation loss are used for prediction. No test
text affects this choice.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from common.errors import DataError
from common.models import checkpoints
from common.models.batches import batches_by_tokens

_WARM_UP = 0.1
_RATE = 5e-5
_BATCH = 32
_LONGEST = 256
"""Maximum number of tokens read per text."""
_SET_ASIDE = 0.1
"""Fraction of each class's training texts in the validation set."""
_PATIENCE = 2
_TEST_TOKENS = 8192


def check_checkpoint(checkpoint: str) -> Path:
    """Return the folder of a checkpoint, after checks that load no weights.

    Raises:
        ConfigError: The folder or its tokenizer is missing, or the network supports no classification head.
    """
    folder = checkpoints.model_folder(checkpoint)
    checkpoints.configuration(checkpoints.with_tokenizer(folder), "classification")
    return folder


def train_and_predict(
    texts: Sequence[str],
    labels: NDArray[np.integer] | NDArray[np.floating],
    test: Sequence[str],
    *,
    checkpoint: str,
    epochs: int = 10,
    device: str = "cpu",
    weights: NDArray[np.float64] | None = None,
    experiment_seed: int = 0,
) -> NDArray[np.int64]:
    """Fine-tune the checkpoint and predict the test texts' labels; the result is deterministic on one device.

    Args:
        texts: n training texts, n at least 2.
        labels: (n,) label indices from 0, in which each index up to the largest occurs at least once; or (n, C) label
            probabilities.
        test: m test texts.
        checkpoint: Folder, or name in the local cache, such as "bert-base-uncased" or "roberta-base".
        epochs: Maximum number of epochs.
        device: Device to compute on, as torch names it.
        weights: (n,) weight of each text; None weights all texts equally.
        experiment_seed: Seed of the head's initial weights, the validation set, the batches and dropout.

    Returns:
        (m,) predicted labels.

    Raises:
        ConfigError: See `check_checkpoint`, or the weights cannot be read.
        DataError: There are fewer than two texts.
    """
    if len(texts) < 2:
        raise DataError("texts to fine-tune on", expected="at least two", got=len(texts))
    folder = check_checkpoint(checkpoint)
    devices = [torch.device(device)] if device.startswith("cuda") else []
    with torch.random.fork_rng(devices):  # Transformers draw initial weights and dropout from the global generator.
        torch.manual_seed(experiment_seed % 2**63)
        classes, kind = (int(labels.max()) + 1, np.int64) if labels.ndim == 1 else (labels.shape[1], np.float32)
        most_probable = labels.astype(np.int64) if labels.ndim == 1 else labels.argmax(axis=1)
        model, tokenizer = _model(folder, classes, device), checkpoints.tokenizer(folder)
        # Causal networks classify at the last token before padding.
        model.config.pad_token_id = tokenizer.pad_token_id or 0
        training_set, validation_set = _set_aside(most_probable)
        counts = np.bincount(most_probable, minlength=classes)
        balanced = len(labels) / (np.count_nonzero(counts) * counts[most_probable])
        text_weights = balanced if weights is None else weights * balanced
        y = torch.from_numpy(labels.astype(kind)).to(device)
        w = torch.from_numpy(text_weights.astype(np.float32)).to(device)
        tokens = _tokens(model, tokenizer, texts)
        _fit(model, tokens, y, w, training_set=training_set, validation_set=validation_set, epochs=epochs)
        predicted: NDArray[np.int64] = _outputs(model, _tokens(model, tokenizer, test)).argmax(dim=1).cpu().numpy()
    return predicted


def _fit(
    model: Any,
    tokens: list[Tensor],
    y: Tensor,
    w: Tensor,
    *,
    training_set: Tensor,
    validation_set: Tensor,
    epochs: int,
) -> None:
    """Train `model` in place, ending with the weights of its best epoch."""
    steps = epochs * -(-len(training_set) // _BATCH)
    warm = max(1, round(_WARM_UP * steps))
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=0.01)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
    )
    best, state, since = float("inf"), None, 0
    for _ in range(epochs):
        model.train()
        for batch in training_set[torch.randperm(len(training_set))].split(_BATCH):  # type: ignore[no-untyped-call]
            at = batch.to(y.device)
            outputs = _logits(model, [tokens[place] for place in batch.tolist()])
            loss = (w[at] * nn.functional.cross_entropy(outputs, y[at], reduction="none")).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rate.step()
        outputs = _outputs(model, [tokens[place] for place in validation_set.tolist()])
        at = validation_set.to(y.device)
        validation_loss = float(
            (w[at] * nn.functional.cross_entropy(outputs, y[at], reduction="none")).sum() / w[at].sum()
        )
        since += 1
        if validation_loss < best:
            best, since = validation_loss, 0
            state = {name: value.detach().clone() for name, value in model.state_dict().items()}
        if since >= _PATIENCE:
            break
    if state is not None:
        model.load_state_dict(state)


def _set_aside(labels: NDArray[np.integer]) -> tuple[Tensor, Tensor]:
    """Return the indices of the training set and of the validation set.

    Each class with two or more texts has at least one text in each set; a single text is in the training set. If the
    validation set would be empty, the training set is used in its place.
    """
    validation_set: list[int] = []
    for label in np.unique(labels):
        places = torch.from_numpy(np.flatnonzero(labels == label))
        count = min(max(1, round(_SET_ASIDE * len(places))), len(places) - 1)
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


def _tokens(model: Any, tokenizer: Any, texts: Sequence[str]) -> list[Tensor]:
    """Return each text's tokens, at least one for each, on the model's device."""
    longest = min(_LONGEST, tokenizer.model_max_length)
    tokens = tokenizer(list(texts), truncation=True, max_length=longest)["input_ids"]
    return [torch.tensor(ids or [model.config.pad_token_id], device=model.device) for ids in tokens]


@torch.no_grad()
def _outputs(model: Any, tokens: list[Tensor]) -> Tensor:
    """Return the logits, (texts, labels) float32, without dropout."""
    model.eval()
    logits = torch.empty((len(tokens), model.config.num_labels), device=model.device)
    for batch in batches_by_tokens([len(of_text) for of_text in tokens], _TEST_TOKENS):
        logits[batch] = _logits(model, [tokens[place] for place in batch])
    return logits


def _logits(model: Any, tokens: list[Tensor]) -> Tensor:
    ids = pad_sequence(tokens, batch_first=True, padding_value=model.config.pad_token_id)
    mask = pad_sequence([torch.ones_like(of_text) for of_text in tokens], batch_first=True)
    logits: Tensor = model(input_ids=ids, attention_mask=mask).logits.float()
    return logits
