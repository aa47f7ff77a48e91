"""Quality of the texts that a language model writes by each prompt of `server/llm/prompts`, on a public data set.

    python -m simulations.laboratory.benchmarks.prompts task=demo_messages llm=qwen embedding=minilm \
        [llm.prompts=DIR] [method.words=12] [--config-dir DIR] [--modes zero_shot,examples] [--texts 200]

The arguments are settings of a simulation. The requests, their parsing and the cleaning are the product's. Length,
temperature and texts a request are the method's settings (`method.words`, `method.texts_per_request`).

This is no private run, and no budget covers it: it reads real training texts as they are, so use public data only.
They measure the texts, and they choose the exemplars: 100 of them vote, without noise, for the zero-shot texts of their
label (nearest and furthest, with rank weights 1, 1/2, 1/4, ...). The best `EXEMPLARS` of a label are the good ones, and
those with the most furthest votes among the others are the bad ones. Prompts show them, and rewrite good ones.

A line has: the texts that were parsed and those that were left by the cleaning, as shares of those asked for; the
distinct share of the parsed texts; the accuracy on real test texts of logistic regression that is trained on the cleaned
texts, on the encoder's vectors and on TF-IDF of words and word pairs; the share of texts with the label that a classifier
of the vectors of real training texts predicts; the median length, and the requested one, in words; tokens read and
written, and seconds. Each line is of one sample: at 200 texts, differences of a few points are chance.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from server.llm.base import PROMPTS, Request
from server.llm.orders import even_orders
from server.llm.parse import normal
from server.metrics.accuracy import accuracy, logistic_regression, predict
from server.operators.selection import drawn, label_numbers, top_per_label
from server.settings.compose import composed, simulated
from server.settings.parts import build_parts
from server.settings.sections import setting
from simulations.baselines.unprotected import records_of
from simulations.federation.parties import prepared

MODES = tuple(mode for mode in reversed(PROMPTS) if mode not in {"subtopics", "keyphrases", "section"})
"""The kinds of prompts that ask for texts of one label; each comes after the kind whose texts it shows."""
VOTERS, RANKS, EXEMPLARS, SHOWN, BLANKS = 100, 8, 8, 4, 0.5
"""Real texts that vote, candidates that each votes for in each direction, maximum number of good (and of bad) exemplars
of a label, maximum number of each in a prompt, and fraction of words to replace."""
COLUMNS = ("parsed", "kept", "distinct", "encoder", "tfidf", "agree", "words", "asked", "read", "written", "seconds")


@dataclass(slots=True)
class Shown:
    """The texts that prompts may show, keyed by label: good and bad exemplars, and abstracts."""

    good: Mapping[str, list[str]] = field(default_factory=dict)
    bad: Mapping[str, list[str]] = field(default_factory=dict)
    abstracts: Mapping[str, list[str]] = field(default_factory=dict)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each model and each kind of prompt."""
    parser = argparse.ArgumentParser(prog="bench_prompts", description=__doc__.split("\n", 1)[0])
    parser.add_argument("settings", nargs="*", help="settings of a simulation: task=... llm=... embedding=...")
    parser.add_argument("--config-dir", type=Path, help="a folder of settings files in addition to our own")
    parser.add_argument(
        "--modes", default=",".join(MODES), help="kinds of prompts, besides those whose texts they show"
    )
    parser.add_argument("--texts", type=int, default=200, help="number of texts of each kind, over all labels")
    options = parser.parse_intermixed_args(arguments)
    modes = {"zero_shot", *options.modes.split(",")}
    if unknown := sorted(modes - set(MODES)):
        parser.error(f"--modes {','.join(unknown)}: expected some of {','.join(MODES)}")
    if "from_abstract" in modes:
        modes.add("abstracts")
    search = [f"hydra.searchpath=['file://{options.config_dir.resolve()}']"] if options.config_dir else []
    try:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench([*search, *options.settings], options.texts, Path(folder))
            sys.stdout.write(f"{'model':16}{'prompt':16}{''.join(f'{name:>9}' for name in COLUMNS)}\n")
            for name in bench.parts.providers:
                bench.measure(name, [mode for mode in MODES if mode in modes])
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
        shown, model = Shown(), self.parts.providers[name]
        for mode in modes:
            if mode == "from_abstract" and not shown.abstracts:
                continue  # the model declines abstracts
            asked = self._requests(name, mode, shown)
            if declined := asked[0].modes & model.declines:
                sys.stdout.write(f"{name:16}{mode:16} declines {', '.join(sorted(declined))}\n")
                continue
            kept = self._line(name, mode, asked)
            if mode == "zero_shot" and modes != ["zero_shot"]:
                shown.good, shown.bad = exemplars(kept, self._real, self._task, self.parts.encoder)
            if mode == "abstracts":
                shown.abstracts = _by_label(kept)

    def _requests(self, name: str, mode: str, shown: Shown) -> list[Request]:
        """Return the requests for all texts of one kind of prompt, evenly over the labels."""
        size, asked = setting(self._settings, "method.texts_per_request") or 1, []
        usual = {name: setting(self._settings, f"method.{name}") for name in ("words", "temperature")}
        common = {name: value for name, value in usual.items() if value is not None}
        for order in even_orders(self._texts, self._task, [name]):
            for start in range(0, order.count, size):
                generator = rng.experiment(self._settings.experiment_seed, "bench", name, mode, order.label, start)
                options = {**common, "texts": min(size, order.count - start), "rng": generator}
                asked.append(request(mode, self._task, order.label, shown, options))
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


def request(mode: str, task: Task, label: str, shown: Shown, options: Mapping[str, Any]) -> Request:
    """Return a request of this kind of prompt, with exemplars or sources drawn from `shown`.

    Raises:
        ConfigError: The label has no text to show.
    """

    def texts_of(pool: Mapping[str, list[str]], count: int) -> list[str]:
        if not pool.get(label):
            do = "Ask for more texts, for example --texts 400"
            raise ConfigError("bench_prompts", expected="texts of each label to show", got=f"none of {label}", do=do)
        return drawn(pool[label], count, options["rng"])

    if mode in {"zero_shot", "examples", "contrast"}:
        good = texts_of(shown.good, SHOWN) if mode != "zero_shot" else []
        bad = texts_of(shown.bad, SHOWN) if mode == "contrast" else []
        return requests.by_example(task, label, good=good, bad=bad, **options)
    if mode == "abstracts":
        return requests.abstracts(task, label, **options)
    if mode == "crossing":
        first, second = texts_of(shown.good, 2)
        return requests.crossover(task, label, (first, second), **options)
    if mode == "from_abstract":
        return requests.from_abstract(task, label, *texts_of(shown.abstracts, 1), **options)
    [source] = texts_of(shown.good, 1)
    if mode == "blanks":
        return requests.fill_in(task, label, source, blanks=BLANKS, **options)
    return requests.paraphrase(task, label, source, **options)


def exemplars(
    texts: Sequence[Candidate], real: Sequence[Record], task: Task, encoder: Encoder
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return good and bad exemplars, keyed by label, by the votes of `VOTERS` real texts without noise.

    A label with n texts gets up to n / 2 of each, and none if n is less than 4, as a crossing needs two good ones.
    """
    voters = drawn(real, VOTERS, rng.experiment(0, "voters"))
    names, labels = list(task.labels), label_numbers(texts, task)
    query = Votes(spec=VotesSpec(top=RANKS), vectors=encoder.encode([each.text for each in texts]), labels=labels)
    of_voters = np.array([names.index(record.label) for record in voters], dtype=np.int32)
    near, far = votes_of(query, encoder.encode([record.text for record in voters]), of_voters).reshape(2, -1)
    good: dict[str, list[str]] = {}
    bad: dict[str, list[str]] = {}
    best = top_per_label(near, labels, len(texts), len(names))
    for label, places in zip(names, best, strict=True):
        size = min(EXEMPLARS, len(places) // 2)
        if size > 1:
            others = sorted(places[size:], key=lambda place: (-far[place], place))
            good[label] = [texts[place].text for place in places[:size]]
            bad[label] = [texts[place].text for place in others[:size]]
    return good, bad


def _by_label(texts: Sequence[Candidate]) -> dict[str, list[str]]:
    by_label: dict[str, list[str]] = {}
    for each in texts:
        by_label.setdefault(each.label, []).append(each.text)
    return by_label


if __name__ == "__main__":
    main()
