"""OpenVINO GenAI on the processors of this machine: it reads a GGUF file itself and shares what prompts have in common.

Measured against transformers and others by `make bench-models`. Continuous batching needs no sorting of prompts; the
keys and values of a prompt's beginning are computed once, for all continuations of a job and for later jobs.

A job's draws depend on its seed. Which jobs are computed together moves the logits in the last places, so that about
one text in fifteen differs when the same jobs come in another order; the same jobs in the same order give the same
texts. Computation is in single precision: the default follows the processor, and its texts would too.
"""

import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from common.errors import ConfigError, ProviderError
from server.llm.engines.base import Job, Sampled

_TOGETHER = 64  # jobs between two reports: a killed run loses no more
_CACHE_GB = 1  # keys and values; sequences that do not fit wait
_BATCHED_TOKENS = 2048  # of prompts, in one step
_GREEDY = 1e-3  # temperatures below are greedy


class OpenVino:
    """A GGUF file, loaded by OpenVINO GenAI.

    Args:
        folder: The checkpoint, with one GGUF file.
        name: Name of the model, for errors.

    Raises:
        ConfigError: The package is not installed, or the folder has no GGUF file that it reads.
    """

    def __init__(self, folder: Path, *, name: str) -> None:
        files = sorted(folder.glob("*.gguf"))
        if len(files) != 1:
            raise ConfigError(
                f"language model {name}", expected="one GGUF file for the engine openvino", got=f"{len(files)}",
                where=folder, do="Choose engine: transformers, or copy the file there",
            )  # fmt: skip
        self._name = name
        self._pipeline = _pipeline(files[0])

    def sample(self, jobs: Sequence[Job], done: Sampled) -> None:
        """See `Engine.sample`."""
        import openvino as ov  # noqa: PLC0415

        for start in range(0, len(jobs), _TOGETHER):
            block = jobs[start : start + _TOGETHER]
            ids = [ov.Tensor(_row(job.ids)) for job in block]
            try:
                results = self._pipeline.generate(ids, [_settings(job) for job in block])
            except RuntimeError as error:
                raise ProviderError(
                    f"the language model {self._name} fails", expected="continuations", got=type(error).__name__,
                    do="Look at its memory: fewer texts_per_request or shorter texts need less",
                ) from error  # fmt: skip
            for place, result in enumerate(results, start=start):
                done(place, [list(continuation) for continuation in result.m_generation_ids])


@lru_cache(maxsize=2)
def _pipeline(file: Path) -> Any:  # noqa: ANN401 — openvino_genai
    """The loaded model: once for all personas of the same weights."""
    try:
        import openvino_genai  # noqa: PLC0415 — 0.2 s, and an extra
    except ImportError as error:
        raise ConfigError(
            "the engine openvino", expected="the package openvino-genai", got="none",
            do="Install the extra: pip install 'caucus[models]'",
        ) from error  # fmt: skip
    import torch  # noqa: PLC0415 — seconds to import; its threads follow OMP_NUM_THREADS

    scheduler = openvino_genai.SchedulerConfig()
    scheduler.enable_prefix_caching = True
    scheduler.cache_size = _CACHE_GB
    scheduler.max_num_batched_tokens = _BATCHED_TOKENS
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": torch.get_num_threads()}
    try:
        return openvino_genai.ContinuousBatchingPipeline(file, scheduler, "CPU", settings)
    except RuntimeError as error:
        raise ConfigError(
            "the language model cannot be loaded", expected="a GGUF file that openvino-genai reads",
            got=type(error).__name__, where=file, do="Fetch it again, or choose engine: transformers",
        ) from error  # fmt: skip


def _settings(job: Job) -> Any:  # noqa: ANN401 — openvino_genai
    import openvino_genai  # noqa: PLC0415

    settings = openvino_genai.GenerationConfig()
    settings.max_new_tokens = job.max_new_tokens
    settings.num_return_sequences = job.count
    settings.rng_seed = job.seed
    settings.do_sample = job.temperature >= _GREEDY
    if settings.do_sample:
        settings.temperature, settings.top_p, settings.top_k = job.temperature, job.top_p, sys.maxsize
    if job.stop:
        settings.stop_strings = {job.stop}
    return settings


def _row(ids: Sequence[int]) -> Any:  # noqa: ANN401 — numpy
    import numpy as np  # noqa: PLC0415

    return np.array([ids], dtype=np.int64)
