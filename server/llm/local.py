"""Checkpoints of transformers as language models: read from a folder, run here, no key and no network.

A model with a chat template gets the prompts of `render` as its template has them. Any other causal model gets them as
one text that ends in `["`, so that the continuation is the requested list.

What a model writes for a request does not depend on what else is in the batch. Prompts are padded on the left under an
attention mask, and sampling takes its randomness from the request: a token is the maximum of logits / temperature +
Gumbel noise (Gumbel-max: Maddison et al. 2014, section 2), and the noise of a step is a hash of the request, the step
and the token. Batches move logits by a few units in the last place, so a token may change if its two best sums are
that close.
"""

import copy
import hashlib
import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from common.errors import ConfigError, ProviderError
from common.models import chat, checkpoints
from common.models.batches import by_tokens
from common.validate import in_range, integers, not_empty, one_of
from server.llm.base import Arrived, Reply, Request
from server.llm.render import WORDING, parse, render

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger("caucus.llm")

_LIST = '["'
_TOKENS_PER_WORD = 1.4
_USUAL_WORDS, _WORDS_OF_A_PHRASE = 60, 3
_CHARACTERS_PER_TOKEN = 4.0
_MIX_1, _MIX_2 = 0x85EBCA6B, 0xC2B2AE35  # of MurmurHash3's 32-bit finaliser
_32 = 0xFFFFFFFF
_COLD = 1e-3  # temperatures below are greedy


class Local:
    """One checkpoint, causal or sequence-to-sequence.

    Args:
        name: Name in reports and candidates.
        model: Folder, or name of a model in the local cache.
        device: Where to compute, as torch names it: "cpu", "cuda", "cuda:1".
        dtype: Type of the weights: "float32", "bfloat16", "float16", or "auto" for the checkpoint's own,
            unless this processor would compute in it more slowly (`checkpoints.own_dtype`).
        max_new_tokens: Bound on one answer, all `n` texts of a request together.
        batch_tokens: Prompts and answers of one batch, padding included: the memory that it may take.
        top_p: Sample from the likeliest tokens with this total probability.
        local_files_only: False downloads what the cache lacks.

    Raises:
        ConfigError: There is no such model here, it has no tokenizer, its head writes no text, or its context holds no
            prompt beside `max_new_tokens`. Weights are loaded with the first request that no cache answers.
    """

    remote = False

    def __init__(
        self,
        *,
        name: str,
        model: str | Path,
        device: str = "cpu",
        dtype: Literal["float32", "bfloat16", "float16", "auto"] = "float32",
        max_new_tokens: int = 512,
        batch_tokens: int = 16384,
        top_p: float = 1.0,
        local_files_only: bool = True,
    ) -> None:
        not_empty(name=name)
        one_of("dtype", dtype, among=("float32", "bfloat16", "float16", "auto"))
        integers(1, max_new_tokens=max_new_tokens, batch_tokens=batch_tokens)
        in_range(0.01, 1, top_p=top_p)
        self.name = name
        self._folder = checkpoints.found(model, what=f"language model {name}", local_files_only=local_files_only)
        self._config: Any = checkpoints.configuration(self._folder, "causal", "sequence-to-sequence")
        self._tokenizer: Any = checkpoints.tokenizer(self._folder)
        self._max_new_tokens, self._batch_tokens, self._top_p = max_new_tokens, batch_tokens, top_p
        self._device = device
        self._dtype = checkpoints.own_dtype(self._config, device) if dtype == "auto" else dtype
        context = _context(self._config, self._tokenizer)
        if max_new_tokens >= context:
            raise ConfigError(
                f"max_new_tokens of {name}", expected=f"below the model's context of {context} tokens",
                got=max_new_tokens, do="Lower it, and leave room for a prompt",
            )  # fmt: skip
        self._longest = context if self._config.is_encoder_decoder else context - max_new_tokens

    @cached_property
    def identity(self) -> str:
        """Digest of weights, tokenizer and settings. Batch size and device move no more than last places."""
        settings = {"dtype": self._dtype, "max_new_tokens": self._max_new_tokens, "top_p": self._top_p}
        return f"local/{checkpoints.digest(self._folder, **settings)}/wording={WORDING}"

    def check(self) -> None:
        """No check is needed: the constructor has checked the checkpoint."""

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """See `Provider.generate`. A prompt that is longer than the model's context is a lost item.

        Raises:
            ProviderError: A batch does not fit into memory, or the weights cannot be loaded.
        """
        prompts = [self._ids(request) for request in requests]
        replies = [Reply(texts=(), input_tokens=0, output_tokens=0, loss="too long")] * len(requests)
        fitting = [place for place, ids in enumerate(prompts) if len(ids) <= self._longest]
        if len(fitting) < len(prompts):
            log.warning(
                "%s: %d of %d prompts are longer than the %d tokens that its context leaves beside an answer of %d and "
                "are lost; show fewer or shorter exemplars, or lower max_new_tokens",
                self.name, len(prompts) - len(fitting), len(prompts), self._longest, self._max_new_tokens,
            )  # fmt: skip
        sizes = [len(prompts[place]) + self._max_new_tokens for place in fitting]
        for batch in by_tokens(sizes, self._batch_tokens):
            places = [fitting[place] for place in batch]
            written = self._written([prompts[place] for place in places], [requests[place] for place in places])
            for place, ids in zip(places, written, strict=True):
                replies[place] = self._reply(requests[place], len(prompts[place]), ids)
                if arrived is not None:
                    arrived(place, replies[place])
        if arrived is not None:
            for place in set(range(len(prompts))) - set(fitting):
                arrived(place, replies[place])
        return replies

    def estimate(self, request: Request) -> tuple[int, int]:
        """Input and output tokens to expect: four characters a token, and 1.4 tokens a word where words are known."""
        read = sum(map(len, render(request))) / _CHARACTERS_PER_TOKEN
        shown = request.good or request.source
        unseen = _WORDS_OF_A_PHRASE if request.phrases else _USUAL_WORDS
        usual = sum(len(text.split()) for text in shown) / len(shown) if shown else unseen
        written = request.n * (request.words or usual) * _TOKENS_PER_WORD
        return round(read), min(round(written), self._max_new_tokens)

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401
        """Loaded at the first request: a run that resumes from its cache never needs it."""
        kind = "AutoModelForSeq2SeqLM" if self._config.is_encoder_decoder else "AutoModelForCausalLM"
        return checkpoints.network(
            self._folder, kind, what=f"language model {self.name}", device=self._device, dtype=self._dtype
        )

    @property
    def _begun(self) -> str:
        """Fixed beginning of the model's answer."""
        return "" if self._tokenizer.chat_template or self._config.is_encoder_decoder else _LIST

    def _ids(self, request: Request) -> list[int]:
        system, user = render(request)
        if not self._tokenizer.chat_template:
            whole = "\n\n".join(part for part in (system, user, self._begun) if part)
            ids = list(self._tokenizer(whole, verbose=False)["input_ids"])
            # Some tokenizers end every text; an answer must go on.
            return ids[:-1] if self._begun and ids[-1] == self._tokenizer.eos_token_id else ids
        prompt_text = chat.prompt(self._tokenizer, system, user)
        if prompt_text is None:
            raise ProviderError(
                f"the chat template of {self.name} fails", expected="one that takes a user's message",
                where=self._folder,
            )  # fmt: skip
        return list(self._tokenizer(prompt_text, add_special_tokens=False, verbose=False)["input_ids"])

    def _written(self, prompts: list[list[int]], requests: list[Request]) -> list[list[int]]:
        """The tokens that follow each prompt, up to the end that the model set."""
        import torch  # noqa: PLC0415
        from transformers import GenerationConfig, LogitsProcessorList  # noqa: PLC0415

        model = self._model
        width = max(map(len, prompts))
        filler = next((token for token in (self._tokenizer.pad_token_id, self._tokenizer.eos_token_id) if token), 0)
        padded = torch.tensor([[filler] * (width - len(ids)) + ids for ids in prompts], device=model.device)
        seen = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts], device=model.device)
        # All other generation settings of the checkpoint are used, and are part of its digest.
        settings: GenerationConfig = copy.deepcopy(model.generation_config)
        settings.do_sample, settings.num_beams, settings.pad_token_id = False, 1, filler
        settings.temperature = settings.top_p = settings.top_k = settings.max_length = None
        settings.max_new_tokens = self._max_new_tokens
        if settings.eos_token_id is None:
            settings.eos_token_id = self._tokenizer.eos_token_id
        noise = LogitsProcessorList([_Noise(requests, self._top_p)])
        try:
            with torch.inference_mode(), checkpoints.quiet():
                ids = model.generate(
                    input_ids=padded, attention_mask=seen, generation_config=settings, logits_processor=noise
                )
        except torch.OutOfMemoryError as error:
            raise ProviderError(
                f"the language model {self.name} runs out of memory", expected="a batch that fits", got="none",
                where=self._device, do=f"Lower batch_tokens from {self._batch_tokens}, or choose a smaller dtype",
            ) from error  # fmt: skip
        ends = settings.eos_token_id if isinstance(settings.eos_token_id, list) else [settings.eos_token_id]
        begun = 1 if self._config.is_encoder_decoder else width
        return [_until(row, ends) for row in ids[:, begun:].tolist()]

    def _reply(self, request: Request, read: int, ids: list[int]) -> Reply:
        completion = self._begun + self._tokenizer.decode(ids, skip_special_tokens=True)
        texts = parse(completion, request.n, phrases=request.phrases)
        cut = len(ids) >= self._max_new_tokens
        loss = "truncated" if cut and len(texts) < request.n else None if texts else "empty"
        return Reply(texts=texts, input_tokens=read, output_tokens=len(ids), loss=loss)


class _Noise:
    """A logits processor that turns the greedy choice into a draw, of each row by its own request."""

    def __init__(self, requests: Sequence[Request], top_p: float) -> None:
        self._keys = [hashlib.sha256(request.canonical().encode()).digest() for request in requests]
        self._temperatures = [request.temperature for request in requests]
        self._top_p = top_p
        self._step = 0

    def __call__(self, _: "Tensor", scores: "Tensor") -> "Tensor":
        """(rows, tokens) scores of the next token to sums whose maximum is the draw."""
        import torch  # noqa: PLC0415
        from transformers import TopPLogitsWarper  # noqa: PLC0415

        step = self._step.to_bytes(4, "big")
        self._step += 1
        words = [hashlib.sha256(key + step).digest() for key in self._keys]
        first, second = (
            torch.tensor([int.from_bytes(word[at : at + 4], "big") for word in words], device=scores.device)[:, None]
            for at in (0, 4)
        )
        tokens = torch.arange(scores.shape[1], device=scores.device)
        uniform = (_mixed(_mixed(tokens ^ first) ^ second).float() + 0.5) * 2.0**-32
        gumbel = -torch.log(-torch.log1p(-uniform.clamp(max=1 - 2.0**-24)))
        heat = torch.tensor(self._temperatures, device=scores.device)[:, None]
        sharp = scores.float() / heat.clamp(min=_COLD)
        if self._top_p < 1:
            sharp = TopPLogitsWarper(self._top_p)(tokens, sharp)
        return torch.where(heat < _COLD, scores.float(), sharp + gumbel)


def _mixed(words: "Tensor") -> "Tensor":
    """MurmurHash3's 32-bit finaliser on int64 entries below 2^32: any bit changes each other with about one half."""
    words = words ^ (words >> 16)
    words = (words * _MIX_1) & _32
    words = words ^ (words >> 13)
    words = (words * _MIX_2) & _32
    return words ^ (words >> 16)


def _until(row: list[int], ends: list[int]) -> list[int]:
    return row[: next((place for place, token in enumerate(row) if token in ends), len(row))]


def _context(config: Any, tokenizer: Any) -> int:  # noqa: ANN401
    """Tokens that a network has positions for; where these are relative, what its tokenizer says it was trained on."""
    stated = getattr(config.get_text_config(), "max_position_embeddings", None)
    return int(stated or tokenizer.model_max_length)
