"""A small causal language model, trained on one set of texts and evaluated on others.

The papers fine-tune BERT-small with a causal mask on synthetic texts and use it in three ways: next-token accuracy
and perplexity on real texts (Aug-PE, DPGA-TextSyn, RPSG), likelihoods for membership attacks, and detection of
memorised synthetic texts (RPSG, section 3.4, equation 3). Without a checkpoint the model is a small transformer,
trained from scratch: its figures cannot be compared with those of a checkpoint.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError, DataError
from common.models import checkpoints
from common.system.extras import needs
from server.settings.evaluation import HEAD, Training

if TYPE_CHECKING:
    from torch import Tensor

DEFINITION = (
    "A causal language model trained on the texts (AdamW, linear decay of the rate, gradients clipped to norm 1); each "
    "text opens with a start sign and ends with an end sign, which is predicted too, and is cut at the model's length. "
    "Perplexity is exp of the mean negative log likelihood of all tokens, accuracy the share of tokens that are the "
    "model's first guess; both depend on the tokenizer."
)
"""Text that defines the figures in reports."""

_END = "<|end|>"
FROM_SCRATCH = Training()


class LanguageModel:
    """A model, trained by `train`, with its tokenizer.

    Args:
        model: A causal language model from transformers, on its device.
        tokenizer: The model's tokenizer.
        training: The settings of the training; a text is read up to their length or the model's, whichever is less.

    Raises:
        ConfigError: The tokenizer has no sign for the end of a text.
    """

    def __init__(self, model: Any, tokenizer: Any, training: Training) -> None:
        self._model, self._tokenizer, self._training = model, tokenizer, training
        positions = getattr(model.config, "max_position_embeddings", training.length)
        self._length = min(training.length, positions, tokenizer.model_max_length)
        ends = (tokenizer.eos_token_id, tokenizer.sep_token_id)
        starts = (tokenizer.bos_token_id, tokenizer.cls_token_id, *ends)
        self._end = next((sign for sign in ends if sign is not None), None)
        self._start = next((sign for sign in starts if sign is not None), None)
        if self._end is None:
            raise ConfigError("the tokenizer has no sign for the end of a text", do="Choose another model")

    @classmethod
    def train(
        cls,
        texts: Sequence[str],
        training: Training = FROM_SCRATCH,
        *,
        seed: int = 0,
        tokens_of: Sequence[str] | None = None,
    ) -> Self:
        """Train a model on `texts`. On the CPU, the same arguments give the same model.

        Args:
            texts: At least one training text.
            training: The initial model and the training settings. No checkpoint is downloaded; models such as BERT get
                a causal mask. A model with random weights has GPT-2's architecture and a byte-level tokenizer, which
                has no unknown tokens.
            seed: Experiment seed of the initial weights, the order of the texts and dropout.
            tokens_of: Texts on which the tokenizer is trained if the model is trained from scratch; None uses `texts`.
                Figures from models with different tokenizers cannot be compared.

        Raises:
            DataError: There are no texts.
            ConfigError: A setting is out of range, or the checkpoint is not a model with a tokenizer.
        """
        if not texts:
            raise DataError("texts to train a language model on", expected="at least one", got="none")
        needs("language model of the evaluation", "torch", "transformers", extra="transformers")
        import torch

        with torch.random.fork_rng([training.device] if training.device.startswith("cuda") else []):
            torch.manual_seed(seed % 2**63)
            if training.start is None:
                model, tokenizer = _untrained(tokens_of or texts, training)
            else:
                model, tokenizer = _loaded(training.start)
            trained = cls(model.to(training.device), tokenizer, training)
            trained._fit(texts, seed)
        return trained

    def nll(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the (texts,) mean negative log likelihoods of the texts, in nats per token (RPSG, equation 3)."""
        losses, tokens, _ = self.totals(texts)
        return losses / tokens

    def totals(self, texts: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return (texts,) arrays of negative log likelihoods in nats, token counts, and counts of correct guesses.

        Raises:
            DataError: There are no texts. `nll` raises it too.
        """
        if not texts:
            raise DataError("texts to ask a language model about", expected="at least one", got="none")
        import torch

        ids = self._ids(texts)
        sums, batch = np.zeros((3, len(ids))), self._training.batch
        # Batches of texts of similar length need little padding.
        by_length = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        with torch.no_grad():
            for first in range(0, len(ids), batch):
                at = by_length[first : first + batch]
                sums[:, at] = [values.sum(dim=1).cpu().numpy() for values in self._read([ids[row] for row in at])]
        return sums[0], sums[1], sums[2]

    def _fit(self, texts: Sequence[str], seed: int) -> None:
        import torch

        training, ids = self._training, self._ids(texts)
        order = np.random.default_rng(seed)
        steps = training.epochs * -(-len(ids) // training.batch)
        rate = training.learning_rate
        if rate is None:
            rate = 4e-4 if training.start else 4e-3  # 4e-4 would not learn from scratch in so few steps
        optimizer = torch.optim.AdamW(self._model.parameters(), lr=rate, weight_decay=training.weight_decay)
        decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)
        self._model.train()
        for _ in range(training.epochs):
            positions = order.permutation(len(ids))
            for first in range(0, len(ids), training.batch):
                losses, counted, _ = self._read([ids[at] for at in positions[first : first + training.batch]])
                optimizer.zero_grad()
                (losses.sum() / counted.sum()).backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
                optimizer.step()
                decay.step()
        self._model.eval()

    def _read(self, ids: Sequence[Sequence[int]]) -> tuple["Tensor", "Tensor", "Tensor"]:
        """Return (batch, tokens) negative log likelihoods, token flags, and correct-prediction flags; 0 at padding."""
        import torch

        longest = max(map(len, ids))
        device = self._model.device
        # Padding is on the right, after all tokens that count; the choice of its token has no effect.
        padded = torch.tensor([[*text, *[self._end] * (longest - len(text))] for text in ids], device=device)
        mask = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in ids], device=device)
        logits = self._model(input_ids=padded, attention_mask=mask).logits[:, :-1].float()
        targets, counted = padded[:, 1:], mask[:, 1:].to(logits.dtype)
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        return losses * counted, counted, (logits.argmax(dim=2) == targets) * counted

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        options = {"add_special_tokens": False, "truncation": True, "max_length": self._length}
        token_ids = self._tokenizer(list(texts), **options)["input_ids"]
        return [[self._start, *text, self._end][: self._length] for text in token_ids]


def _untrained(texts: Sequence[str], training: Training) -> tuple[Any, Any]:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=training.vocabulary,
        special_tokens=[_END],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    inner.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token=_END, eos_token=_END)  # type: ignore[no-untyped-call]
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=training.length,
        n_embd=training.width,
        n_layer=training.layers,
        n_head=training.width // HEAD,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        use_cache=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return GPT2LMHeadModel(config), tokenizer


def _loaded(start: str | Path) -> tuple[Any, Any]:
    def configure(config: Any) -> None:
        if hasattr(config, "is_decoder"):
            config.is_decoder = True  # models such as BERT are bidirectional otherwise

    return checkpoints.load_checkpoint(
        start, "AutoModelForCausalLM", what="language model to start from", configure=configure
    )
