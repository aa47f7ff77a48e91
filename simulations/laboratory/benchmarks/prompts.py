"""Quality of the texts that a language model writes by each prompt of `server/llm/prompts`, on a public data set.

    python -m simulations.laboratory.benchmarks.prompts task=demo_messages llm=qwen embedding=minilm \
        [llm.prompts=DIR] [method.words=12] [--config-dir DIR] [--modes zero_shot,examples] [--texts 200]

The arguments are settings of a simulation. The requests, their parsing and the cleaning are the product's. Length,
temperature and texts a request are the method's settings (`method.words`, `method.texts_per_request`).

This is no private run, and no budget covers it: it reads real training texts as they are, so use public data only.
They measure the texts, and they choose the exemplars: 100 of them vote, without noise, for the zero-shot texts of their
label (nearest and furthest, with rank weights 1, 1/2, 1/4, ...). The best `EXEMPLARS` of a label are the good ones, and
those with the most furthest votes among the others are the bad ones. Prompts show them, and rewrite good ones.

The shares of a line: texts parsed, and kept by the cleaning, of those asked for; distinct ones of the parsed; accuracy
on real test texts of logistic regression trained on the kept texts, by the encoder's vectors and by TF-IDF; agreement
of the label with that of a classifier of real training texts. Then the median length and the requested one, in words,
tokens read and written, and seconds. Each line is one sample: at 200 texts a few points are chance.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from client.contributions.votes import votes_of
from common import rng
from common.domain import Record
from common.errors import CaucusError, ConfigError
from common.models.encoder import Encoder
from common.queries.votes import Votes, VotesSpec
from server.domain import Candidate, Task
from server.llm import requests
from server.llm.base import Request
from server.llm.orders import even_orders
from server.llm.parse import normal
from server.metrics.accuracy import accuracy, logistic_regression, predict
from server.operators.selection import drawn, label_numbers, top_per_label
from server.settings.compose import composed, simulated
from server.settings.parts import build_parts
from server.settings.sections import setting
from simulations.baselines.unprotected import records_of
from simulations.federation.parties import prepared

Pools = dict[str, dict[str, list[str]]]
"""The texts that prompts may show: "good", "bad" and "abstracts", each keyed by label."""
KINDS: Mapping[str, tuple[Callable[..., Request], Mapping[str, int]]] = {
    "zero_shot": (requests.by_example, {}),
    "examples": (requests.by_example, {"good": 4}),
    "contrast": (requests.by_example, {"good": 4, "bad": 4}),
    "paraphrase": (lambda *of, good, **more: requests.paraphrase(*of, *good, **more), {"good": 1}),
    "blanks": (lambda *of, good, **more: requests.fill_in(*of, *good, blanks=0.5, **more), {"good": 1}),
    "crossing": (
        lambda task, label, good, **more: requests.crossover(task, label, (good[0], good[1]), **more),
        {"good": 2},
    ),
    "abstracts": (requests.abstracts, {}),
    "from_abstract": (lambda *of, abstracts, **more: requests.from_abstract(*of, *abstracts, **more), {"abstracts": 1}),
}
"""The kinds of prompts that ask for texts of one label: what makes a request, and the number of texts of each pool that
it shows. A kind comes after the one that fills its pools. Other kinds ask for parts of a text, or name no label."""
VOTERS, RANKS, EXEMPLARS = 100, 8, 8
"""Real texts that vote, candidates that each votes for in each direction, and maximum number of good (and of bad)
exemplars of a label."""
COLUMNS = ("parsed", "kept", "distinct", "encoder", "tfidf", "agree", "words", "asked", "read", "written", "seconds")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each model and each kind of prompt."""
    parser = argparse.ArgumentParser(prog="bench_prompts", description=__doc__.split("\n", 1)[0])
    parser.add_argument("settings", nargs="*", help="settings of a simulation: task=... llm=... embedding=...")
    parser.add_argument("--config-dir", type=Path, help="a folder of settings files in addition to our own")
    parser.add_argument(
        "--modes", default=",".join(KINDS), help="kinds of prompts, besides those whose texts they show"
    )
    parser.add_argument("--texts", type=int, default=200, help="number of texts of each kind, over all labels")
    options = parser.parse_intermixed_args(arguments)
    modes = {"zero_shot", *options.modes.split(",")}
    if unknown := sorted(modes - set(KINDS)):
        parser.error(f"--modes {','.join(unknown)}: expected some of {','.join(KINDS)}")
    if "from_abstract" in modes:
        modes.add("abstracts")
    search = [f"hydra.searchpath=['file://{options.config_dir.resolve()}']"] if options.config_dir else []
    try:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench([*search, *options.settings], options.texts, Path(folder))
            sys.stdout.write(f"{'model':16}{'prompt':16}{''.join(f'{name:>9}' for name in COLUMNS)}\n")
            for name in bench.parts.providers:
                bench.measure(name, [mode for mode in KINDS if mode in modes])
    except CaucusError as error:
        sys.exit(f"error: {error}")


class Bench:
    """The models and the real texts of a task.

    Args:
        overrides: Settings of a simulation.
        texts: Number of texts of each kind of prompt.
        folder: Empty folder for vectors and replies.

    Raises:
        ConfigError: A setting is wrong, or the task has no test texts, or its texts have several labels, or sections.
    """

    def __init__(self, overrides: Sequence[str], texts: int, folder: Path) -> None:
        self._settings = prepared(simulated(composed(["secagg=none", "embedding_cache=run", *overrides])), folder)
        self.parts = build_parts(self._settings, folder=folder)
        source, self._real, self._test = records_of(self._settings)
        self._texts, self._task = texts, source.task()
        vectors = self.parts.encoder.encode([record.text for record in self._real])
        self._judge = logistic_regression(vectors, [record.label for record in self._real], [1.0] * len(vectors))

    def measure(self, name: str, modes: Sequence[str]) -> None:
        """Print a line for each kind of prompt, but for those that the model declines.

        Raises:
            ConfigError: A label has too few zero-shot texts to choose exemplars from.
        """
        pools: Pools = {}
        for mode in modes:
            if mode == "from_abstract" and "abstracts" not in pools:
                continue  # the model declines abstracts
            asked = self._requests(name, mode, pools)
            if declined := asked[0].modes & self.parts.providers[name].declines:
                sys.stdout.write(f"{name:16}{mode:16} declines {', '.join(sorted(declined))}\n")
                continue
            kept = self._line(name, mode, asked)
            if mode == "zero_shot" and len(modes) > 1:
                pools |= exemplars(kept, self._real, self._task, self.parts.encoder)
            elif mode == "abstracts":
                names = self._task.labels
                pools[mode] = {label: [each.text for each in kept if each.label == label] for label in names}

    def _requests(self, name: str, mode: str, pools: Pools) -> list[Request]:
        """Return the requests for all texts of one kind of prompt, evenly over the labels."""
        size, asked = setting(self._settings, "method.texts_per_request") or 1, []
        usual = {name: setting(self._settings, f"method.{name}") for name in ("words", "temperature")}
        common = {name: value for name, value in usual.items() if value is not None}
        for order in even_orders(self._texts, self._task, [name]):
            for start in range(0, order.count, size):
                generator = rng.experiment(self._settings.experiment_seed, "bench", name, mode, order.label, start)
                options = {**common, "texts": min(size, order.count - start), "rng": generator}
                asked.append(request(mode, self._task, order.label, pools, options))
        return asked

    def _line(self, name: str, mode: str, asked: Sequence[Request]) -> list[Candidate]:
        """Send the requests, print the figures of their replies, and return the cleaned texts."""
        started = time.monotonic()
        replies = self.parts.providers[name].generate(asked)
        seconds = time.monotonic() - started
        kept: dict[str, Candidate] = {}
        for each, reply in zip(asked, replies, strict=True):
            for text in self.parts.cleaner.clean(reply.texts[: each.n], each, run_texts=kept)[0]:
                kept[text] = Candidate(text=text, label=str(each.label), model=name, round=0)
        parsed = [text for each, reply in zip(asked, replies, strict=True) for text in reply.texts[: each.n]]
        number = sum(each.n for each in asked)
        figures = [len(parsed) / number, len(kept) / number, len(set(map(normal, parsed))) / max(1, len(parsed))]
        cells = [f"{figure:.1%}" for figure in [*figures, *self._quality(list(kept.values()))]]
        words = f"{np.median([len(text.split()) for text in kept]):.0f}" if kept else "-"
        read, written = (sum(getattr(reply, f"{way}_tokens") for reply in replies) for way in ("input", "output"))
        cells += [words, str(asked[0].words or "-"), str(read), str(written), f"{seconds:.1f}"]
        sys.stdout.write(f"{name:16}{mode:16}{''.join(f'{cell:>9}' for cell in cells)}\n")
        sys.stdout.flush()
        return list(kept.values())

    def _quality(self, kept: Sequence[Candidate]) -> list[float]:
        """Return the accuracies by the encoder and by TF-IDF, and the agreement with the label; none without texts."""
        if not kept:
            return [float("nan")] * 3
        texts, labels = [each.text for each in kept], [each.label for each in kept]
        tests, right = [record.text for record in self._test], [record.label for record in self._test]
        predicted = [predict(texts, labels, tests, encoder=encoder)[0] for encoder in (self.parts.encoder, None)]
        agreeing = accuracy(self._judge.predict(self.parts.encoder.encode(texts)), labels)
        return [*(accuracy(each, right) for each in predicted), agreeing]


def request(mode: str, task: Task, label: str, pools: Pools, options: Mapping[str, Any]) -> Request:
    """Return a request of this kind of prompt, with exemplars or sources drawn from the pools.

    Raises:
        ConfigError: The label has no text to show.
    """
    make, counts = KINDS[mode]
    if lacking := [pool for pool in counts if not pools[pool].get(label)]:
        do = "Ask for more texts, for example --texts 400"
        raise ConfigError(f"prompt {mode}", expected=f"{lacking[0]} texts of each label", got=f"none of {label}", do=do)
    shown = {pool: drawn(pools[pool][label], count, options["rng"]) for pool, count in counts.items()}
    return make(task, label, **shown, **options)


def exemplars(texts: Sequence[Candidate], real: Sequence[Record], task: Task, encoder: Encoder) -> Pools:
    """Return the pools "good" and "bad", by the votes of `VOTERS` real texts without noise.

    A label with n texts gets up to n / 2 of each, and none if n is less than 4, since a crossing needs two good ones.
    """
    voters = drawn(real, VOTERS, rng.experiment(0, "voters"))
    names, labels = list(task.labels), label_numbers(texts, task)
    vectors = encoder.encode([each.text for each in texts])
    of_voters = np.array([names.index(record.label) for record in voters], dtype=np.int32)
    query = Votes(spec=VotesSpec(top=RANKS), vectors=vectors, labels=labels)
    near, far = votes_of(query, encoder.encode([record.text for record in voters]), of_voters).reshape(2, -1)
    pools: Pools = {"good": {}, "bad": {}}
    for label, ranked in zip(names, top_per_label(near, labels, len(texts), len(names)), strict=True):
        size = min(EXEMPLARS, len(ranked) // 2)
        if size > 1:
            furthest = sorted(ranked[size:], key=lambda place: -far[place])
            pools["good"][label] = [texts[place].text for place in ranked[:size]]
            pools["bad"][label] = [texts[place].text for place in furthest[:size]]
    return pools


if __name__ == "__main__":
    main()
