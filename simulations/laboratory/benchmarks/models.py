"""Speed of the engine for small language models, compared with plain transformers and with the processor's limit.

    make models && OMP_NUM_THREADS=2 python -m simulations.laboratory.benchmarks.models \
        [--model smollm2] [--texts 32] [--repetitions 3]

Prompts are long and texts short, as in a run: the prompts are invented notes from the demo, and at most 28 tokens are
written after them. Speeds are tokens read or written per second of CPU time, summed over all threads. Each repetition
has new prompts, since the engine caches the prompts that it has read; both implementations get the same prompts. The
table shows the medians, and the lowest and highest factor.

The limit is the fastest product of 8-bit integers that OpenVINO computes here. The table shows the seconds that the
products with the weights would take at this speed for all tokens read or written, without attention and without shared
prefixes, as a fraction of the engine's seconds. The head of the model is needed only for written tokens.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from common.errors import CaucusError
from common.models import checkpoints
from server.llm.engines.base import Continuations, Job
from server.llm.engines.openvino import OpenVino
from server.tasks import demo_notes
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark
from simulations.laboratory.benchmarks.timing import fastest, timed

_PROMPT, _SHARED, _LONG, _MOST = 110, 233, 248, 28  # tokens
_TEXTS_PER_PROMPT = 4  # texts of a prompt
_SIZE = 2048  # of the matrices of the limit
_BATCH = 16  # prompts that transformers computes together


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Numbers of tokens that were read and written, and the CPU time they took, in seconds."""

    read: int
    written: int
    seconds: float

    @property
    def speed(self) -> float:
        """Number of tokens read or written per second."""
        return (self.read + self.written) / self.seconds


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print the limit, and a line for each type of batch; return the engine's times relative to transformers'."""
    parser = argparse.ArgumentParser(prog="bench_models", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", default="smollm2", help="name of the catalogue, or a folder with a GGUF file")
    parser.add_argument("--texts", type=int, default=32, help="number of texts of a batch")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args(arguments)
    try:
        folder = checkpoints.model_folder(options.model, what="language model")
        engine, plain = OpenVino(folder, name=options.model), Plain(folder, options.model)
    except CaucusError as error:
        sys.exit(f"error: {error}")
    products = _product_speed()
    body, head = plain.products
    sys.stdout.write(
        f"limit: {products / 1e9:.0f} G products of 8-bit integers a CPU second; a token needs {body / 1e6:.0f} M of "
        f"them, a written one {head / 1e6:.0f} M more\n"
        f"{options.texts} texts a batch, {options.repetitions} repetitions\n"
        f"{'':16}{'-- openvino-genai --':>24}{'-- transformers --':>22}\n"
        f"{'prompts':16}{'tokens/s':>12}{'new/s':>12}{'tokens/s':>12}{'new/s':>10}{'factor':>8}{'':12}{'limit':>8}\n"
    )
    ratios = []
    for number, (kind, jobs_of) in enumerate(_BATCHES.items()):
        pairs = []
        for repetition in range(options.repetitions + 1):  # the first is to warm up
            seed = (number * (options.repetitions + 1) + repetition) * (options.texts + _TEXTS_PER_PROMPT)
            jobs = jobs_of(plain.tokens, options.texts if repetition else _TEXTS_PER_PROMPT, seed)
            pairs.append((_measured(jobs, engine.sample, plain.ends), _measured(jobs, plain.sample, plain.ends)))
        factors = [ours.speed / theirs.speed for ours, theirs in pairs[1:]]
        speeds = [
            median(value)
            for way in zip(*pairs[1:], strict=True)
            for value in ([work.speed for work in way], [work.written / work.seconds for work in way])
        ]
        least = [(body * (ours.read + ours.written) + head * ours.written) / products for ours, _ in pairs[1:]]
        share = median(seconds / ours.seconds for seconds, (ours, _) in zip(least, pairs[1:], strict=True))
        spread = f"{min(factors):.1f}-{max(factors):.1f}"
        sys.stdout.write(
            f"{kind:16}{speeds[0]:12.0f}{speeds[1]:12.1f}{speeds[2]:12.0f}{speeds[3]:10.1f}"
            f"{median(factors):8.1f}{spread:>12}{share:8.0%}\n"
        )
        ratios.append(Ratio(name=f"prompts {kind}", to="transformers", value=1 / median(factors)))
    return ratios


def different(tokens: Callable[[str], list[int]], texts: int, seed: int) -> list[Job]:
    """Return `texts` jobs for one text each, with prompts (lists of notes) that are all different."""
    return [_job(_notes(tokens, seed + nth)[:_PROMPT], seed + nth) for nth in range(texts)]


def several(tokens: Callable[[str], list[int]], texts: int, seed: int) -> list[Job]:
    """Return `texts` / 4 jobs for four texts each, with prompts that are all different."""
    return [
        replace(job, count=_TEXTS_PER_PROMPT) for job in different(tokens, max(1, texts // _TEXTS_PER_PROMPT), seed)
    ]


def shared(tokens: Callable[[str], list[int]], texts: int, seed: int) -> list[Job]:
    """Return `texts` jobs for one text each, with prompts of 248 tokens whose first 233 tokens are the same."""
    beginning = _notes(tokens, seed)[:_SHARED]
    endings = [_notes(tokens, seed + 1 + nth)[: _LONG - _SHARED] for nth in range(texts)]
    return [_job(beginning + ids, seed + nth) for nth, ids in enumerate(endings)]


_BATCHES = {"different": different, "four texts each": several, "shared beginning": shared}


class Plain:
    """Generation by transformers itself in float32, with its own sampling, in batches of at most 16 prompts."""

    def __init__(self, folder: Path, name: str) -> None:
        self._tokenizer: Any = checkpoints.tokenizer(folder)
        self._model = checkpoints.network(folder, "AutoModelForCausalLM", what=f"language model {name}", device="cpu")
        vocabulary = self._tokenizer.batch_decode([[token] for token in range(len(self._tokenizer))])
        self.ends = {token for token, text in enumerate(vocabulary) if "\n" in text} | {
            *self._tokenizer.all_special_ids
        }
        """IDs of the tokens that end a text."""

    def tokens(self, text: str) -> list[int]:
        """Return the token IDs of a text."""
        return list(self._tokenizer(text)["input_ids"])

    @property
    def products(self) -> tuple[int, int]:
        """The number of multiplications by weights for each token: in the layers, and in the head."""
        head = self._model.get_output_embeddings().weight.numel()
        tables = {id(part.weight) for part in (self._model.get_input_embeddings(), self._model.get_output_embeddings())}
        layers = [part for part in self._model.parameters() if part.ndim > 1 and id(part) not in tables]
        return sum(part.numel() for part in layers), head

    def sample(self, jobs: Sequence[Job], done: Callable[[int, Continuations], None]) -> None:
        """Sample continuations as an engine does, for jobs with prompts of the same length."""
        import torch

        rows = [place for place, job in enumerate(jobs) for _ in range(job.count)]
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            ids = torch.tensor([jobs[place].ids for place in batch])
            with torch.inference_mode(), checkpoints.quiet():
                written = self._model.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    max_new_tokens=_MOST,
                    do_sample=True,
                    temperature=jobs[0].temperature,
                    top_p=jobs[0].top_p,
                    top_k=0,
                    eos_token_id=sorted(self.ends),
                    pad_token_id=min(self.ends),
                )
            for place, row in zip(batch, written[:, ids.shape[1] :].tolist(), strict=True):
                done(place, [row])


def _notes(tokens: Callable[[str], list[int]], seed: int) -> list[int]:
    """Return the token IDs of a list of short invented notes; there are at least as many tokens as in any prompt."""
    notes = demo_notes.public_text(30, seed)
    return tokens("".join(f"Note: {' '.join(note.split()[:12])}\n" for note in notes))


def _job(ids: list[int], seed: int) -> Job:
    return Job(ids=tuple(ids), seed=seed, max_new_tokens=_MOST, temperature=0.75, top_p=0.95, stop="\n")


def _measured(jobs: Sequence[Job], sample: Callable[[Sequence[Job], Any], None], ends: set[int]) -> Work:
    """Sample a batch; return the numbers of tokens, including end-of-text tokens, and the CPU time in seconds."""
    texts: list[list[int]] = []
    _, milliseconds = timed(sample, jobs, lambda _, continuations: texts.extend(continuations))
    lengths = [next((nth for nth, token in enumerate(ids, 1) if token in ends), len(ids) + 1) for ids in texts]
    return Work(
        read=sum(len(job.ids) * job.count for job in jobs),
        written=sum(min(length, _MOST) for length in lengths),
        seconds=milliseconds / 1000,
    )


def _product_speed() -> float:
    """Return the 8-bit multiplications per CPU second, in the fastest of ten products of two square matrices."""
    import openvino
    from openvino import opset13 as operators

    shape = [_SIZE, _SIZE]
    given = operators.parameter(shape, np.float32)
    rounded = operators.fake_quantize(given, *map(np.float32, (-1.28, 1.27, -1.28, 1.27)), 256)
    integers = np.random.default_rng(0).integers(-127, 128, shape).astype(np.int8)
    weights = operators.multiply(operators.convert(integers, np.float32), np.full((_SIZE, 1), 0.01, np.float32))
    graph = openvino.Model([operators.matmul(rounded, weights, transpose_a=False, transpose_b=True)], [given])
    request = openvino.compile_model(graph, "CPU").create_infer_request()
    request.infer([np.random.default_rng(1).random(shape, np.float32)])
    return 1000 * _SIZE**3 / fastest(10, request.infer)


if __name__ == "__main__":
    benchmark(main)
