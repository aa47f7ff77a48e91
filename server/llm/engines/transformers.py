"""Generation with the transformers library, on any device and for any checkpoint.

The text for a job does not depend on the other jobs of the batch. Prompts are padded on the left under an attention
mask, and sampling takes its randomness from the job: a token is the maximum of logits / temperature + Gumbel noise
(Gumbel-max: Maddison et al. 2014, section 2), and the noise of a step is a hash of the seed, the step and the token.
Batching changes logits by a few units in the last place, so a token may change if the two best sums are that close.
"""

import copy
import hashlib
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import ProviderError
from common.models import checkpoints
from common.models.batches import batches_by_tokens
from server.llm.engines.base import GREEDY, Job, Sampled

if TYPE_CHECKING:
    from torch import Tensor

_MIX_1, _MIX_2 = 0x85EBCA6B, 0xC2B2AE35  # of MurmurHash3's 32-bit finaliser
_32 = 0xFFFFFFFF


class Transformers:
    """A causal checkpoint, loaded by transformers; for the settings see `server.llm.local.Local`.

    Raises:
        ConfigError: The weights cannot be loaded, or there is no such device.
    """

    def __init__(self, folder: Path, *, name: str, device: str, dtype: str, batch_tokens: int) -> None:
        what, kind = f"language model {name}", "AutoModelForCausalLM"
        self._model = checkpoints.network(folder, kind, what=what, device=device, dtype=dtype)
        self._tokenizer: Any = checkpoints.tokenizer(folder)
        self._name, self._device, self._batch_tokens = name, device, batch_tokens

    def sample(self, jobs: Sequence[Job], done: Sampled) -> None:
        """Sample all continuations of all jobs, as `server.llm.engines.base.Engine` defines."""
        kinds: dict[tuple[int, float, str], list[int]] = {}
        for place, job in enumerate(jobs):
            kinds.setdefault((job.max_new_tokens, job.top_p, job.stop), []).append(place)
        for (longest, _, _), places in kinds.items():
            sizes = [jobs[place].count * (len(jobs[place].ids) + longest) for place in places]
            for batch in batches_by_tokens(sizes, self._batch_tokens):
                self._batch(jobs, [places[at] for at in batch], done)

    def _batch(self, jobs: Sequence[Job], places: list[int], done: Sampled) -> None:
        rows = [(jobs[place], nth) for place in places for nth in range(jobs[place].count)]
        written = iter(self._written(rows))
        for place in places:
            done(place, [next(written) for _ in range(jobs[place].count)])

    def _written(self, rows: list[tuple[Job, int]]) -> list[list[int]]:
        """Return each row's new tokens, up to the model's end token. A row is a job and a continuation's index."""
        import torch
        from transformers import GenerationConfig, LogitsProcessorList

        model, first = self._model, rows[0][0]
        width = max(len(job.ids) for job, _ in rows)
        filler = next((token for token in (self._tokenizer.pad_token_id, self._tokenizer.eos_token_id) if token), 0)
        padded = [[filler] * (width - len(job.ids)) + [*job.ids] for job, _ in rows]
        seen = [[0] * (width - len(job.ids)) + [1] * len(job.ids) for job, _ in rows]
        # All other generation settings of the checkpoint are used, and are part of its digest.
        settings: GenerationConfig = copy.deepcopy(model.generation_config)
        settings.do_sample, settings.num_beams, settings.pad_token_id = False, 1, filler
        settings.temperature = settings.top_p = settings.top_k = settings.max_length = None
        settings.max_new_tokens = first.max_new_tokens
        if settings.eos_token_id is None:
            settings.eos_token_id = self._tokenizer.eos_token_id
        noise = LogitsProcessorList([Noise(rows, first.top_p)])
        stops = {"stop_strings": [first.stop], "tokenizer": self._tokenizer} if first.stop else {}
        try:
            with torch.inference_mode(), checkpoints.quiet():
                ids = model.generate(
                    input_ids=torch.tensor(padded, device=model.device),
                    attention_mask=torch.tensor(seen, device=model.device),
                    generation_config=settings,
                    logits_processor=noise,
                    **stops,
                )
        except torch.OutOfMemoryError as error:
            raise ProviderError(
                f"the language model {self._name} runs out of memory",
                expected="a batch that fits",
                got="none",
                where=self._device,
                do=f"Lower batch_tokens from {self._batch_tokens}, or choose a smaller dtype",
            ) from error
        # A row that stopped before the others is filled up.
        ends = settings.eos_token_id if isinstance(settings.eos_token_id, list) else [settings.eos_token_id]
        last = {*ends, filler}
        return [list(takewhile(lambda token: token not in last, row)) for row in ids[:, width:].tolist()]


class Noise:
    """A logits processor that turns the greedy choice into a random draw, seeded for each row by its job."""

    def __init__(self, rows: Sequence[tuple[Job, int]], top_p: float) -> None:
        self._keys = [f"{job.seed}/{nth}".encode() for job, nth in rows]
        self._temperatures = [job.temperature for job, _ in rows]
        self._top_p = top_p
        self._step = 0

    def __call__(self, _: "Tensor", scores: "Tensor") -> "Tensor":
        """Return the (rows, tokens) scores of the next token with noise, so that the highest score is a random draw."""
        import torch
        from transformers import TopPLogitsWarper

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
        sharp = scores.float() / heat.clamp(min=GREEDY)
        if self._top_p < 1:
            sharp = TopPLogitsWarper(self._top_p)(tokens, sharp)
        return torch.where(heat < GREEDY, scores.float(), sharp + gumbel)


def _mixed(words: "Tensor") -> "Tensor":
    """Apply MurmurHash3's 32-bit finaliser to int64 entries below 2^32: each input bit affects all output bits."""
    words = words ^ (words >> 16)
    words = (words * _MIX_1) & _32
    words = words ^ (words >> 13)
    words = (words * _MIX_2) & _32
    return words ^ (words >> 16)
