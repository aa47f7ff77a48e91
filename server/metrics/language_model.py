"""A small causal language model, trained on one set of texts and asked how likely it finds others.

The papers fine-tune BERT-small with a causal mask on synthetic texts and read three things off it: next-token accuracy
and perplexity on real texts (Aug-PE, DPGA-TextSyn, RPSG), how likely each text is for a membership attack, and which
synthetic texts are memorised (RPSG, section 3.4, equation 3). Without weights at hand the model is a small transformer
of its own, trained from nothing: figures of two starts cannot be compared.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError, DataError
from common.models import checkpoints
from common.validate import at_least, integers, positive

if TYPE_CHECKING:
    from torch import Tensor

DEFINITION = (
    "A causal language model trained on the texts (AdamW, linear decay of the rate, gradients clipped to norm 1); each "
    "text opens with a start sign and ends with an end sign, which is predicted too, and is cut at the model's length. "
    "Perplexity is exp of the mean negative log likelihood of all tokens, accuracy the share of tokens that are the "
    "model's first guess; both depend on the tokenizer."
)
"""What its figures mean, for reports."""

_END = "<|end|>"
_HEAD = 16
"""Width of an attention head of a model from nothing."""


class LanguageModel:
    """What `train` gives: a model, its tokenizer, and how both are used.

    Args:
        model: A causal language model of transformers, on its device.
        tokenizer: Its tokenizer, with a sign to start with and one to end with.
        length: Tokens of a text that are read, its start and end signs counted.
        batch: Texts at a time.
    """

    def __init__(self, model: Any, tokenizer: Any, *, length: int, batch: int) -> None:  # noqa: ANN401 — transformers
        self._model = model
        self._tokenizer = tokenizer
        self._length = length
        self._batch = batch
        self._start, self._end = _signs(tokenizer)

    @classmethod
    def train(
        cls,
        texts: Sequence[str],
        *,
        start: str | Path | None = None,
        epochs: int = 5,
        learning_rate: float | None = None,
        weight_decay: float = 0.01,
        batch: int = 16,
        length: int = 128,
        seed: int = 0,
        device: str = "cpu",
        width: int = 64,
        layers: int = 2,
        vocabulary: int = 1000,
        tokens_of: Sequence[str] | None = None,
    ) -> Self:
        """Train on `texts`; on the CPU the same arguments give the same model.

        Args:
            texts: At least one.
            start: A causal language model to go on from: a folder, or a name in the local cache; nothing is
                downloaded. BERT's kind gets a causal mask. None starts from random weights, GPT-2's architecture and
                a byte-level tokenizer, for which nothing is unknown.
            epochs: Over the texts.
            learning_rate: Of AdamW at its start. None: 4e-4, as in the papers' evaluations, for a checkpoint, and ten
                times as much for a model from nothing, which would not learn in so few steps.
            weight_decay: Of AdamW.
            batch: Texts at a time.
            length: Tokens of a text that are read, at least 2.
            seed: Experiment seed: of first weights, order and dropout.
            device: As torch names it.
            width: Of a model from nothing, a multiple of 16.
            layers: Of a model from nothing.
            vocabulary: Tokens of a model from nothing, at most; 257 are bytes and the end sign.
            tokens_of: Texts that the tokenizer of a model from nothing is made of; None: `texts`. Figures of models
                with different tokenizers cannot be compared.

        Raises:
            DataError: There is no text.
            ConfigError: A number is out of range, or `start` is no model with a tokenizer.
        """
        integers(1, epochs=epochs, batch=batch, layers=layers)
        integers(2, length=length)
        integers(257, vocabulary=vocabulary)
        at_least(0, weight_decay=weight_decay)
        if width < 1 or width % _HEAD:
            raise ConfigError("width", expected=f"a multiple of {_HEAD}", got=width)
        if not texts:
            raise DataError("texts to train a language model on", expected="at least one", got="none")
        rate = learning_rate if learning_rate is not None else 4e-4 if start else 4e-3
        positive(learning_rate=rate)
        with _seeded(seed, device):
            if start is None:
                made_of = tokens_of or texts
                model, tokenizer = _untrained(made_of, width=width, layers=layers, vocabulary=vocabulary, length=length)
            else:
                model, tokenizer = _loaded(start)
                positions = getattr(model.config, "max_position_embeddings", length)
                length = min(length, positions, tokenizer.model_max_length)
            made = cls(model.to(device), tokenizer, length=length, batch=batch)
            made._fit(texts, epochs=epochs, rate=rate, weight_decay=weight_decay, seed=seed)
        return made

    def nll(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """(texts,) mean negative log likelihood of each text's tokens, in nats a token (RPSG, equation 3)."""
        losses, tokens, _ = self.totals(texts)
        return losses / tokens

    def perplexity(self, texts: Sequence[str]) -> float:
        """Exponential of the mean negative log likelihood over all tokens of at least one text."""
        losses, tokens, _ = self.totals(texts)
        return float(np.exp(losses.sum() / tokens.sum()))

    def accuracy(self, texts: Sequence[str]) -> float:
        """Share of all tokens of at least one text that are the model's first guess, 0 to 1."""
        _, tokens, right = self.totals(texts)
        return float(right.sum() / tokens.sum())

    def totals(self, texts: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """(texts,) each: negative log likelihood in nats, tokens, and how many of them are the first guess.

        Raises:
            DataError: There is no text; so for all figures above.
        """
        if not texts:
            raise DataError("texts to ask a language model about", expected="at least one", got="none")
        import torch  # noqa: PLC0415 — seconds to import

        ids = self._ids(texts)
        sums = np.zeros((3, len(ids)))
        # Texts of one length together need little padding.
        by_length = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        with torch.no_grad():
            for first in range(0, len(ids), self._batch):
                at = by_length[first : first + self._batch]
                sums[:, at] = [each.sum(dim=1).cpu().numpy() for each in self._read([ids[one] for one in at])]
        return sums[0], sums[1], sums[2]

    def _fit(self, texts: Sequence[str], *, epochs: int, rate: float, weight_decay: float, seed: int) -> None:
        import torch  # noqa: PLC0415 — seconds to import

        ids = self._ids(texts)
        order = np.random.default_rng(seed)
        steps = epochs * -(-len(ids) // self._batch)
        optimizer = torch.optim.AdamW(self._model.parameters(), lr=rate, weight_decay=weight_decay)
        decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)
        self._model.train()
        for _ in range(epochs):
            positions = order.permutation(len(ids))
            for first in range(0, len(ids), self._batch):
                losses, counted, _ = self._read([ids[at] for at in positions[first : first + self._batch]])
                optimizer.zero_grad()
                (losses.sum() / counted.sum()).backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
                optimizer.step()
                decay.step()
        self._model.eval()

    def _read(self, ids: Sequence[Sequence[int]]) -> tuple["Tensor", "Tensor", "Tensor"]:
        """(batch, tokens) each: negative log likelihood, 1 if it is a token, 1 if the first guess; 0 at padding."""
        import torch  # noqa: PLC0415

        longest = max(map(len, ids))
        device = self._model.device
        # Padding stands on the right, after all that is counted; which token fills it decides nothing.
        padded = torch.tensor([[*one, *[self._end] * (longest - len(one))] for one in ids], device=device)
        mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in ids], device=device)
        logits = self._model(input_ids=padded, attention_mask=mask).logits[:, :-1].float()
        wanted, counted = padded[:, 1:], mask[:, 1:].to(logits.dtype)
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), wanted, reduction="none")
        return losses * counted, counted, (logits.argmax(dim=2) == wanted) * counted

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        asked = {"add_special_tokens": False, "truncation": True, "max_length": self._length}
        plain = self._tokenizer(list(texts), **asked)["input_ids"]
        return [[self._start, *one, self._end][: self._length] for one in plain]


def _untrained(texts: Sequence[str], *, width: int, layers: int, vocabulary: int, length: int) -> tuple[Any, Any]:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast  # noqa: PLC0415

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[_END],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    inner.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token=_END, eos_token=_END)  # type: ignore[no-untyped-call]
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=length,
        n_embd=width,
        n_layer=layers,
        n_head=width // _HEAD,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        use_cache=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return GPT2LMHeadModel(config), tokenizer


def _loaded(start: str | Path) -> tuple[Any, Any]:
    def configure(config: Any) -> None:  # noqa: ANN401 — transformers
        if hasattr(config, "is_decoder"):
            config.is_decoder = True  # BERT's kind reads both ways otherwise

    return checkpoints.load(start, "AutoModelForCausalLM", what="language model to start from", configure=configure)


def _signs(tokenizer: Any) -> tuple[int, int]:  # noqa: ANN401
    """What a text starts and ends with; a tokenizer without a sign to start with starts as it ends."""
    end = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id
    if end is None:
        raise ConfigError("tokenizer", expected="a sign for the end of a text", got="none")
    starts = (tokenizer.bos_token_id, tokenizer.cls_token_id, end)
    return next(start for start in starts if start is not None), end


@contextmanager
def _seeded(seed: int, device: str) -> Iterator[None]:
    """Torch's own generator seeded within, and as before after."""
    import torch  # noqa: PLC0415

    with torch.random.fork_rng([device] if device.startswith("cuda") else []):
        torch.manual_seed(seed % 2**63)
        yield
