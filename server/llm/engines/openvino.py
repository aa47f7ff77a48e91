"""Generation with OpenVINO GenAI on this machine's CPUs, which reads GGUF files directly and reuses common prefixes.

It supports GGUF files of only a few architectures (Llama, Qwen). A model of any other architecture must first be
exported with optimum-intel; simulations/laboratory/results/SMALL_MODEL.md has an example.

The attention keys and values of a prompt's beginning are computed once, for all continuations of a job and for later
jobs.

A job's draws depend on its seed. Prompts are split over steps only if more than `LONGEST_PROMPT` tokens wait, so that a
text hardly depends on the order of the jobs or the number of threads. If earlier jobs left part of a prompt in the
cache, the last digits of the logits differ. The same jobs in the same order give the same texts.

Single precision is requested, since the default depends on the processor. Processors that multiply 8-bit integers
(AVX-512 VNNI) produce different texts all the same: OpenVINO rounds the input of quantized layers to 8 bits there.
Without this rounding (DYNAMIC_QUANTIZATION_GROUP_SIZE: 0), a model of SmolLM2's shape takes 1.7 to 2 times as long.
"""

import itertools
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from common.errors import ConfigError, ProviderError
from common.system.extras import needs
from common.system.progress import progress
from server.llm.engines.base import GREEDY, Job, Sampled

LONGEST_PROMPT = 8192
"""Most tokens of prompts in one step, and of one prompt. A model of 1.5 billion weights needs 0.2 MB for each of them
meanwhile."""
LIKELIEST = 1000
"""Number of most probable tokens to which a `top_p` below 1 is applied. To sort all 150,000 would take a third of the
time of a step."""

_REQUESTS = itertools.count()  # their numbers, under which the library keeps each text's random generator
_CACHE_GB = 1  # keys and values; sequences that do not fit wait
_EXPORTED = "openvino_model.xml"  # name that optimum-intel gives the network


class OpenVino:
    """A GGUF file, alone or in a folder, or a model exported with optimum-intel, loaded by OpenVINO GenAI.

    Raises:
        ConfigError: The package is not installed, or the folder has no weights that OpenVINO can read.
    """

    def __init__(self, folder: Path, *, name: str) -> None:
        self._name, self._weights = name, weights(folder, name=name)
        _pipeline(self._weights)

    def sample(self, jobs: Sequence[Job], done: Sampled) -> None:
        """Sample all continuations of all jobs, as `server.llm.engines.base.Engine` defines."""
        ov, genai = _packages()
        pipeline, writing = _pipeline(self._weights), dict[int, Any]()
        # Keys and values can be shared once they are there: of prompts that begin alike, one goes a step ahead.
        ahead = {job.ids[: len(job.ids) // 2]: place for place, job in enumerate(jobs)}.values()

        def advance(added: Sequence[int] = ()) -> None:
            """Begin the jobs at these places, and write the next token of all texts."""
            try:
                for place in added:
                    ids = ov.Tensor(np.array([jobs[place].ids]))
                    writing[place] = pipeline.add_request(next(_REQUESTS), ids, _settings(genai, jobs[place]))
                if pipeline.has_non_finished_requests():
                    pipeline.step()
            except RuntimeError as error:
                writing.clear()
                _pipeline.cache_clear()  # the next call loads the model again: this one keeps what it has begun
                raise ProviderError(
                    f"the language model {self._name} fails",
                    expected="continuations",
                    got=type(error).__name__,
                    do="Look at its memory: fewer texts_per_request or shorter texts need less",
                ) from error

        try:
            advance([*ahead])
            advance([place for place in range(len(jobs)) if place not in ahead])
            while writing:
                over = [place for place, text in writing.items() if text.get_status() != genai.GenerationStatus.RUNNING]
                for place in over:
                    texts = [list(text.generated_ids) for text in writing.pop(place).read_all()]
                    done(place, texts or [[]] * jobs[place].count)  # none of a prompt that does not fit the cache
                advance()
        finally:
            for text in writing.values():
                text.cancel()
            if writing:
                advance()  # which drops them


def weights(folder: Path, *, name: str) -> Path:
    """Return the folder of an exported model, or else the GGUF file, after checking that weights and package exist.

    Raises:
        ConfigError: The package is not installed, or the folder has neither an exported model nor exactly one GGUF
            file.
    """
    needs(f"engine of {name}", "openvino_genai", extra="models")
    if folder.is_file() or (folder / _EXPORTED).is_file():
        return folder
    files = sorted(folder.glob("*.gguf"))
    if len(files) != 1:
        raise ConfigError(
            f"language model {name}",
            expected=f"one GGUF file, or {_EXPORTED}, for the engine openvino",
            got=f"{len(files)}",
            where=folder,
            do="Choose engine: transformers, or copy the file there",
        )
    return files[0]


def _packages() -> tuple[Any, Any]:
    """Return the modules openvino and openvino_genai."""
    # openvino reports each import over the network unless this package of it is missing.
    sys.modules.setdefault("openvino_telemetry", cast("ModuleType", None))
    import openvino
    import openvino_genai

    return openvino, openvino_genai


@lru_cache(maxsize=2)
def _pipeline(weights: Path) -> Any:
    """Return the loaded model, which all models with the same weights share."""
    _, genai = _packages()
    import torch

    scheduler = genai.SchedulerConfig()
    scheduler.enable_prefix_caching = True
    scheduler.cache_size = _CACHE_GB
    scheduler.max_num_batched_tokens = LONGEST_PROMPT
    # Without it, equal prompts that the cache has to their last token get random tokens in one call (2026.4): those of
    # 32, 64, … tokens, as a block has 32.
    scheduler.dynamic_split_fuse = True
    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        # A thread pinned to a core stays there while others are idle: two runs side by side had one core between them.
        "ENABLE_CPU_PINNING": False,
        # Two threads that look for stop strings at once can wait for each other's tokenizer forever (2026.4).
        "sampler_num_threads": 1,
    }
    try:
        with progress("loading the language model"):
            return genai.ContinuousBatchingPipeline(weights, scheduler, "CPU", settings)
    except RuntimeError as error:
        raise ConfigError(
            "the language model cannot be loaded",
            expected="a GGUF file or an exported model that openvino-genai reads",
            got=type(error).__name__,
            where=weights,
            do="Fetch it again, or choose engine: transformers",
        ) from error


def _settings(genai: Any, job: Job) -> Any:
    settings = genai.GenerationConfig()
    settings.max_new_tokens = job.max_new_tokens
    settings.num_return_sequences = job.count
    settings.rng_seed = job.seed
    settings.do_sample = job.temperature >= GREEDY
    if settings.do_sample:
        settings.temperature, settings.top_p = job.temperature, job.top_p
        settings.top_k = LIKELIEST if job.top_p < 1 else sys.maxsize
    if job.stop:
        settings.stop_strings = {job.stop}
    return settings
