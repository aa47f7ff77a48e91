"""A transformer fine-tuned to classify: what the synthetic texts teach a model that has read before.

The checkpoint gets a new classification head and all its weights are trained: AdamW, learning rate warmed up over a
tenth of the steps and then lowered in proportion, as BERT was fine-tuned (Devlin et al. 2019, appendix A.3). A share of
the training texts, which are synthetic, is set aside; after each epoch the loss on it is measured, and training stops
when it has not fallen for `patience` epochs. The weights of the best epoch predict. No test text has a say in that.
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
from common.models.batches import by_tokens
from common.validate import integers, positive, probability

DEFINITION = (
    "A transformer with a new classification head, all weights fine-tuned (AdamW, warmed up over a tenth of the steps) "
    "on the texts, by their weights where the method gives any and each class counting alike; stopped early on a part "
    "of the same texts that was set aside; accuracy, and macro-F1 over the classes present in the test texts, where "
    "one never predicted counts 0."
)
"""What a fine-tuned model's figures mean, for reports."""

_WARM_UP = 0.1
_TEST_TOKENS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a checkpoint is fine-tuned.

    Attributes:
        checkpoint: Folder, or name in the local cache, such as "bert-base-uncased" or "roberta-base".
        epochs: At most.
        patience: Epochs without a lower loss on the texts set aside after which training stops.
        validation: Share of the training texts that is set aside, of each class alike.
        rate: Largest learning rate.
        batch: Texts of one step.
        longest: Tokens of a text that are read.
        device: Where to compute, as torch names it.
        balanced: Whether each class counts alike, whatever its number of texts.
        local_files_only: False downloads what the cache lacks.
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

    def look(self) -> Path:
        """The checkpoint's folder, seen to hold what is needed; loads no weights.

        Raises:
            ConfigError: There is none, it lacks a tokenizer, or its network bears no classification head.
        """
        folder = checkpoints.found(self.checkpoint, local_files_only=self.local_files_only)
        checkpoints.configuration(checkpoints.with_tokenizer(folder), "classification")
        return folder


def train_and_predict(
    texts: Sequence[str],
    labels: NDArray[np.integer],
    test: Sequence[str],
    training: Training,
    *,
    weights: NDArray[np.float64] | None = None,
    experiment_seed: int = 0,
) -> NDArray[np.int64]:
    """Fine-tune and predict; on one machine and device the same for the same arguments.

    Args:
        texts: To learn from, n at least 2.
        labels: (n,) from 0, each number up to the largest at least once.
        test: To predict, m of them.
        training: The checkpoint and how.
        weights: (n,) how much each text counts; None weighs them equally.
        experiment_seed: Of the head's first weights, the part set aside, the batches and dropout.

    Returns:
        (m,) predicted labels.

    Raises:
        ConfigError: See `Training.look`, or the weights cannot be read.
        DataError: There are fewer than two texts.
    """
    if len(texts) < 2:
        raise DataError("texts to fine-tune on", expected="at least two", got=len(texts))
    folder = training.look()
    devices = [torch.device(training.device)] if training.device.startswith("cuda") else []
    with torch.random.fork_rng(devices):  # Transformers draw first weights and dropout from the global generator.
        torch.manual_seed(experiment_seed % 2**63)
        model = _model(folder, int(labels.max()) + 1, training.device)
        ids = _Ids(folder, training.longest, training.device)
        model.config.pad_token_id = ids.filler  # causal networks look for the last token before it
        own, aside = _set_aside(labels, training.validation)
        counts = np.bincount(labels, minlength=int(labels.max()) + 1)
        each = np.ones(len(texts)) if weights is None else weights
        each = each * (len(labels) / (len(counts) * counts[labels]) if training.balanced else 1.0)
        y, w = (
            torch.from_numpy(labels.astype(np.int64)).to(training.device),
            torch.from_numpy(each.astype(np.float32)).to(training.device),
        )
        tokens = ids.of(texts)
        _fit(model, ids, tokens, y, w, own=own, aside=aside, training=training)
        predicted: NDArray[np.int64] = _outputs(model, ids, ids.of(test)).argmax(dim=1).cpu().numpy()
    return predicted


def _fit(
    model: Any,  # noqa: ANN401
    ids: "_Ids",
    tokens: list[list[int]],
    y: Tensor,
    w: Tensor,
    *,
    own: Tensor,
    aside: Tensor,
    training: Training,
) -> None:
    """Trains `model` in place and leaves it with the weights of its best epoch."""
    steps = training.epochs * -(-len(own) // training.batch)
    warm = max(1, round(_WARM_UP * steps))
    optimizer = torch.optim.AdamW(model.parameters(), lr=training.rate, weight_decay=0.01)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
    )
    best, state, since = float("inf"), None, 0
    for _ in range(training.epochs):
        model.train()
        for some in own[torch.randperm(len(own))].split(training.batch):  # type: ignore[no-untyped-call]
            at = some.to(y.device)
            outputs = model(**ids.padded([tokens[place] for place in some.tolist()])).logits
            loss = (w[at] * nn.functional.cross_entropy(outputs.float(), y[at], reduction="none")).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rate.step()
        outputs, at = _outputs(model, ids, [tokens[place] for place in aside.tolist()]), aside.to(y.device)
        missed = float((w[at] * nn.functional.cross_entropy(outputs, y[at], reduction="none")).sum() / w[at].sum())
        since += 1
        if missed < best:
            best, since = missed, 0
            state = {name: value.detach().clone() for name, value in model.state_dict().items()}
        if since >= training.patience:
            break
    if state is not None:
        model.load_state_dict(state)


def _set_aside(labels: NDArray[np.integer], share: float) -> tuple[Tensor, Tensor]:
    """Positions to train on and to stop by: at least one text of each class that has two, none of one that has one."""
    aside: list[int] = []
    for label in np.unique(labels):
        places = torch.from_numpy(np.flatnonzero(labels == label))
        count = min(max(1, round(share * len(places))), len(places) - 1)
        aside += places[torch.randperm(len(places))[:count]].tolist()
    own = sorted(set(range(len(labels))) - set(aside))
    return torch.tensor(own), torch.tensor(sorted(aside) or own)


def _model(folder: Path, labels: int, device: str) -> Any:  # noqa: ANN401
    def configure(config: Any) -> None:  # noqa: ANN401 — transformers
        config.num_labels = labels

    # A head that the checkpoint brings is for other labels: it goes.
    return checkpoints.network(
        folder,
        "AutoModelForSequenceClassification",
        what="model to fine-tune",
        device=device,
        configure=configure,
        ignore_mismatched_sizes=True,
    )


@torch.no_grad()
def _outputs(model: Any, ids: "_Ids", tokens: list[list[int]]) -> Tensor:  # noqa: ANN401
    """(texts, labels) float32 logits, without dropout."""
    model.eval()
    found = torch.empty((len(tokens), model.config.num_labels), device=model.device)
    for batch in by_tokens([len(one) for one in tokens], _TEST_TOKENS):
        found[batch] = model(**ids.padded([tokens[place] for place in batch])).logits.float()
    return found


class _Ids:
    """Texts to padded tensors."""

    def __init__(self, folder: Path, longest: int, device: str) -> None:
        self._tokenizer: Any = checkpoints.tokenizer(folder)
        self.filler = self._tokenizer.pad_token_id or 0
        self._longest = min(longest, self._tokenizer.model_max_length)
        self._device = device

    def of(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        read = self._tokenizer(list(texts), truncation=True, max_length=self._longest)["input_ids"]
        return [ids or [self.filler] for ids in read]

    def padded(self, tokens: list[list[int]]) -> dict[str, Tensor]:
        width = max(map(len, tokens))
        rows = [ids + [self.filler] * (width - len(ids)) for ids in tokens]
        seen = [[1] * len(ids) + [0] * (width - len(ids)) for ids in tokens]
        return {
            "input_ids": torch.tensor(rows, device=self._device),
            "attention_mask": torch.tensor(seen, device=self._device),
        }
