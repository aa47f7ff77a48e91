r"""Whether a language model has seen the records of a set, tested on the second half of each record.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.results.contamination [banking10] [demo_notes] ... \
        [--model smollm2] [--records 40]

Each record's tokens are cut into two halves. At most the `HALF` tokens next to the cut are used from each half.

    completed   most words in a row, from the cut on, that greedy completion gets right in any record
    recalled    fraction of the second half's words that greedy completion has in order (longest common subsequence)
    likelihood  mean log likelihood of a token of the second half after its first half, in nats

The last two are also measured with the second half of another record of the same label in place of the true second
half. This reference separates what a model knows about a record from what the form of the set alone implies. The notes
of the demo come from a grammar of ours, so no model knows them: their gain is what a model infers from a first half.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client.disclosures.features import words_of
from client.writers.causal_model import Causal, check_installed, load_saved_model
from common import rng
from common.domain import Record
from common.labelled_files import read_records
from server.metrics import intervals
from server.tasks import demo_notes
from simulations.laboratory.output import show
from simulations.laboratory.results.data_sets import data_folder

SETS = ("banking10", "banking77", "mts_notes8", "medquad10", "cfpb8", "demo_notes")
HALF = 32
"""Maximum number of tokens that are used from a half."""
FEWEST = 8
"""Minimum number of tokens that a record must have to be used."""
_AT_ONCE = 20


@dataclass(frozen=True, kw_only=True)
class Halves:
    """Token IDs of a record on both sides of the cut, and of the second half of another record with its label."""

    first: Sequence[int]
    second: Sequence[int]
    other: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class ContaminationFigures:
    """What a model knows about the second halves of some records; the arrays have a row for each record.

    Attributes:
        completed: (records,) number of consecutive words that greedy completion gets right.
        recalled: (records, 2) fraction of the words of the true and of the other second half that are in the
            completion.
        likelihood: (records, 2) mean log likelihood of a token of the true and of the other second half, in nats.
    """

    completed: NDArray[np.int64]
    recalled: NDArray[np.float64]
    likelihood: NDArray[np.float64]

    def cells(self) -> str:
        """Return the cells of the table's row for these records, as Markdown."""
        recalled, likelihood = (np.diff(values)[:, 0] * -1 for values in (self.recalled, self.likelihood))
        return (
            f"{self.completed.max()} | {_mean(100 * self.recalled[:, 0], sign='%')} | {_mean(100 * recalled)} | "
            f"{self.likelihood[:, 0].mean():.2f} | {_mean(likelihood, 2)}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each data set."""
    parser = argparse.ArgumentParser(prog="contamination", description=__doc__.split("\n", 1)[0])
    parser.add_argument("sets", nargs="*", metavar="SET", default=list(SETS), help=" or ".join(SETS))
    parser.add_argument("--model", default="smollm2", help="a folder of transformers' files, or a name in the cache")
    parser.add_argument("--records", type=int, default=40)
    chosen = parser.parse_args(arguments)
    check_installed()
    model, tokenizer = load_saved_model(chosen.model, "cpu")
    causal = Causal(model=model, tokenizer=tokenizer, prefixes=(), max_tokens=2 * HALF)
    show("| set | completed | recalled | above another's | nats a token | above another's |\n")
    for name in chosen.sets:
        split = record_halves(records_of(name), lambda text: tokenizer(text)["input_ids"], chosen.records)
        show(f"| {name} | {measure_completions(causal, split).cells()} |\n")
    return 0


def records_of(name: str) -> list[Record]:
    """Return the records of a data set's training file, or 400 notes from the demo."""
    if name == "demo_notes":
        return demo_notes.private_notes(0, 400, 1)
    return read_records(data_folder() / name / "train.csv")


def record_halves(records: Sequence[Record], tokens: Callable[[str], Sequence[int]], count: int) -> list[Halves]:
    """Return the halves of at most `count` records, drawn at random from those with `FEWEST` tokens or more."""
    order = rng.experiment(0, "halves of records").permutation(len(records))
    seen: dict[str, Sequence[int]] = {}
    made: list[Halves] = []
    for record in (records[place] for place in order):
        if len(made) == count:
            break
        ids = tokens(record.text)
        if len(ids) < FEWEST:
            continue
        cut = len(ids) // 2
        second = ids[cut : cut + HALF]
        # The first record of a label is only the other one of the next.
        if (other := seen.get(record.label)) is not None:
            made.append(Halves(first=ids[max(0, cut - HALF) : cut], second=second, other=other))
        seen[record.label] = second
    return made


def measure_completions(causal: Causal, cut: Sequence[Halves]) -> ContaminationFigures:
    """Complete the first halves; return how they compare with the true and the other second halves."""
    tokenizer = causal.tokenizer
    causal.model.eval()
    completed, recalled = [], []
    for half, ids in zip(cut, _completions(causal, cut), strict=True):
        # A completion is judged by as many tokens as the half has with which it is compared.
        true, other = (
            (words_of(tokenizer.decode(wanted)), words_of(tokenizer.decode(ids[: len(wanted)])))
            for wanted in (half.second, half.other)
        )
        completed.append(_in_a_row(*true))
        recalled.append([_common(*true) / max(1, len(true[0])), _common(*other) / max(1, len(other[0]))])
    likelihood = [[_likelihood(causal, half.first, ids) for ids in (half.second, half.other)] for half in cut]
    return ContaminationFigures(
        completed=np.array(completed), recalled=np.array(recalled), likelihood=np.array(likelihood)
    )


def _completions(causal: Causal, cut: Sequence[Halves]) -> Iterator[list[int]]:
    """Yield, for each first half, the IDs of `HALF` tokens that continue it, each the likeliest token."""
    import torch
    from transformers import GenerationConfig

    end = causal.tokenizer.eos_token_id
    greedy = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=False, max_new_tokens=HALF, eos_token_id=None, pad_token_id=end
    )
    for start in range(0, len(cut), _AT_ONCE):
        rows = [list(half.first) for half in cut[start : start + _AT_ONCE]]
        longest = max(map(len, rows))
        ids = torch.tensor([[end] * (longest - len(row)) + row for row in rows])
        shown = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        with torch.no_grad():
            written = causal.model.generate(ids, attention_mask=shown, generation_config=greedy)
        yield from written[:, longest:].tolist()


def _likelihood(causal: Causal, first: Sequence[int], second: Sequence[int]) -> float:
    import torch

    ids = torch.tensor([[*first, *second]])
    with torch.no_grad():
        scores = torch.log_softmax(causal.model(input_ids=ids).logits[0, len(first) - 1 : -1].float(), dim=-1)
    return float(scores.gather(1, torch.tensor(second)[:, None]).mean())


def _in_a_row(true: Sequence[str], written: Sequence[str]) -> int:
    equal = [word == other for word, other in zip(true, written, strict=False)]
    return equal.index(False) if False in equal else len(equal)


def _common(true: Sequence[str], written: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of two lists of words."""
    lengths = [0] * (len(written) + 1)
    for word in true:
        before = 0
        for at, other in enumerate(written, 1):
            before, lengths[at] = lengths[at], before + 1 if word == other else max(lengths[at], lengths[at - 1])
    return lengths[-1]


def _mean(values: NDArray[np.float64], digits: int = 0, sign: str = "") -> str:
    low, high = intervals.interval_over_seeds(values.tolist()) or (np.nan, np.nan)
    return f"{values.mean():.{digits}f}{sign} ({low:.{digits}f} to {high:.{digits}f})"


if __name__ == "__main__":
    sys.exit(main())
