"""Quality of the texts that a language model writes by each prompt of `server/llm/prompts`, on a public data set.

    python -m simulations.laboratory.benchmarks.prompts task=demo_messages llm=qwen embedding=minilm \
        [llm.prompts=DIR] [method.words=12] [--config-dir DIR] [--modes zero_shot,examples] [--texts 200] [--seeds 3]

The arguments are settings of a simulation. The requests, their parsing and the cleaning are the product's. Length,
temperature and texts a request are the method's settings (`method.words`, `method.texts_per_request`). The words of
papers are in `published_prompts`: `llm.prompts=simulations/laboratory/benchmarks/published_prompts/wasp`.

This is no private run, and no budget covers it: it reads real training texts as they are, so use public data only.
They measure the texts, and they choose the exemplars: 100 of them vote, without noise, for the zero-shot texts of their
label (nearest and furthest, with rank weights 1, 1/2, 1/4, ...). The best `EXEMPLARS` of a label are the good ones, and
those with the most furthest votes among the others are the bad ones. Prompts show them, and rewrite good ones. Two of
the longest words of good ones are the keyphrases for a text of this label, which their prompt does not name.

The shares of a line: texts parsed, and kept by the cleaning, of those asked for; distinct ones of the parsed; accuracy
on real test texts of logistic regression trained on the kept texts, by the encoder's vectors and by TF-IDF; agreement
of the label with that of a classifier of real training texts. Then the median length and the requested one, in words,
tokens read and written, and seconds. At 200 texts a few points are chance: `--seeds` draws several samples, and adds
the mean and the range of each figure. Subtopics have no accuracy or agreement. Nor have tasks with spans or several
labels a text: they get no exemplars, and two labels at once. The cleaning keeps texts whose marks and JSON are right.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from client.contributions.votes import votes_of
from common import rng
from common.domain import Record
from common.errors import CaucusError, ConfigError
from common.models.encoder import Encoder
from common.queries.terms import words
from common.queries.votes import Votes, VotesSpec
from server.domain import Candidate, Task
from server.llm import requests
from server.llm.base import Request
from server.llm.orders import even_orders
from server.llm.parse import normal_letters
from server.metrics.accuracy import accuracy, logistic_regression, predict
from server.operators.selection import draw_members, good_and_bad, label_numbers
from server.prepare.components import build_components
from server.prepare.compose import check_simulation, compose_settings
from server.settings.sections import setting
from simulations.baselines.unprotected import records_of
from simulations.federation.parties import prepare_settings
from simulations.laboratory.output import show

Pools = dict[str, dict[str, list[str]]]
"""What prompts may show: "good", "bad", "phrases" and "abstracts", each keyed by label."""
KINDS: Mapping[str, tuple[Callable[..., Request], Mapping[str, int]]] = {
    "zero_shot": (requests.by_example, {}),
    "examples": (requests.by_example, {"good": 4}),
    "contrast": (requests.by_example, {"good": 4, "bad": 4}),
    "paraphrase": (lambda *of, good, **more: requests.paraphrase(*of, *good, **more), {"good": 1}),
    "blanks": (lambda *of, good, **more: requests.fill_in(*of, *good, blanks=0.5, **more), {"good": 1}),
    "crossing": (lambda task, of, good, **more: requests.crossover(task, of, (good[0], good[1]), **more), {"good": 2}),
    "keyphrases": (lambda task, _, phrases, **more: requests.with_keyphrases(task, phrases, **more), {"phrases": 2}),
    "subtopics": (lambda *of, texts, **more: requests.subtopics(*of, phrases=texts, **more), {}),
    "abstracts": (requests.abstracts, {}),
    "from_abstract": (
        lambda *of, abstracts, **more: requests.request_from_abstract(*of, *abstracts, **more),
        {"abstracts": 1},
    ),
}
"""The kinds of prompts for whole texts and for phrases: what makes a request, and the number of texts of each pool that
it shows. A kind comes after the one that fills its pools."""
VOTERS, RANKS, EXEMPLARS, PHRASES = 100, 8, 8, 2
"""Real texts that vote, candidates that each votes for in each direction, maximum number of good (and of bad) exemplars
of a label, and number of keyphrases of each good one."""
COLUMNS = ("parsed", "kept", "distinct", "encoder", "tfidf", "agree", "words", "asked", "read", "written", "seconds")
FORMATS = (*[".1%"] * 6, *[".0f"] * 4, ".1f")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each model and each kind of prompt."""
    parser = argparse.ArgumentParser(prog="bench_prompts", description=__doc__.split("\n", 1)[0])
    parser.add_argument("settings", nargs="*", help="settings of a simulation: task=... llm=... embedding=...")
    parser.add_argument("--config-dir", type=Path, help="a folder of settings files in addition to our own")
    parser.add_argument("--modes", default=",".join(KINDS), help="kinds of prompts, besides those that they show")
    parser.add_argument("--texts", type=int, default=200, help="number of texts of each kind, over all labels")
    parser.add_argument("--seeds", type=int, default=1, help="number of samples of each kind")
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
            show(f"{'model':16}{'prompt':16}{''.join(f'{name:>9}' for name in COLUMNS)}\n")
            for name in bench.parts.providers:
                samples = [bench.measure(name, modes, seed) for seed in range(options.seeds)]
                for mode in samples[0] if options.seeds > 1 else ():
                    for summary, figures in (("mean", np.mean), ("range", np.ptp)):
                        _say(f"{name}/{summary}", mode, figures([sample[mode] for sample in samples], axis=0))
    except CaucusError as error:
        sys.exit(f"error: {error}")


class Bench:
    """The models and the real texts of a task.

    Args:
        overrides: Settings of a simulation.
        texts: Number of texts of each kind of prompt.
        folder: Empty folder for vectors and replies.

    Raises:
        ConfigError: A setting is wrong, or the task has no test texts, or its texts have sections.
    """

    def __init__(self, overrides: Sequence[str], texts: int, folder: Path) -> None:
        self._settings = prepare_settings(
            check_simulation(compose_settings(["secagg=none", "embedding_cache=run", *overrides])), folder
        )
        self.parts = build_components(self._settings, folder=folder)
        self._texts, self._task = texts, self.parts.source.task()
        self._task.check_whole("bench_prompts", "as it asks for whole texts", "Choose another task")
        self._real, self._test = list[Record](), list[Record]()
        if not (self._task.several or self._task.spans):
            self._real, self._test = map(self._task.classifier_inputs, records_of(self._settings)[1:])
            vectors = self.parts.encoder.encode([record.text for record in self._real])
            self._judge = logistic_regression(vectors, [record.label for record in self._real], [1.0] * len(vectors))

    def measure(self, name: str, modes: Collection[str], seed: int = 0) -> dict[str, list[float]]:
        """Print a line for each kind of prompt that the model and the task allow; return its figures, keyed by kind.

        Raises:
            ConfigError: A label has too few zero-shot texts to choose exemplars from.
        """
        pools: Pools = {}
        figures: dict[str, list[float]] = {}
        for mode, (_, shown) in KINDS.items():
            if mode not in modes or not shown.keys() <= pools.keys():
                continue  # not asked for, or the model declines abstracts, or no record votes for exemplars
            asked = self._requests(name, mode, pools, self._settings.experiment_seed + seed)
            if declined := asked[0][1].modes & self.parts.providers[name].declines:
                show(f"{name:16}{mode:16} declines {', '.join(sorted(declined))}\n")
                continue
            kept, figures[mode] = self._line(name, asked)
            _say(name, mode, figures[mode])
            if mode == "zero_shot" and len(modes) > 1 and self._real:
                pools |= voted_pools(kept, self._real, self._task, self.parts.encoder)
                pools["phrases"] = {label: _longest_words(texts) for label, texts in pools["good"].items()}
            elif mode == "abstracts":
                names = self._task.labels
                pools[mode] = {label: [each.text for each in kept if each.label == label] for label in names}
        return figures

    def _requests(self, name: str, mode: str, pools: Pools, seed: int) -> list[tuple[str, Request]]:
        """Return each label and request for all texts of one kind of prompt, evenly over the labels."""
        size, asked = setting(self._settings, "method.texts_per_request") or 1, []
        usual = {name: setting(self._settings, f"method.{name}") for name in ("words", "temperature")}
        common = {name: value for name, value in usual.items() if value is not None}
        if mode == "subtopics":  # all of a label in one request, as in DPGA-TextSyn, and without a length
            size = self._texts
            common.pop("words", None)
        for order in even_orders(self._texts, self._task, [name]):
            for start in range(0, order.count, size):
                generator = rng.experiment(seed, "bench", name, mode, order.label, start)
                options = {**common, "texts": min(size, order.count - start), "rng": generator}
                made = request(mode, self._task, order.label, pools, options)
                asked.append((order.label, self.parts.cleaner.marks.shown(made)))
        return asked

    def _line(self, name: str, asked: Sequence[tuple[str, Request]]) -> tuple[list[Candidate], list[float]]:
        """Send the requests, and return the cleaned texts and the figures of their replies."""
        started = time.monotonic()
        replies = self.parts.providers[name].generate([each for _, each in asked])
        seconds = time.monotonic() - started
        kept: dict[str, Candidate] = {}
        for (label, each), reply in zip(asked, replies, strict=True):
            for text in self.parts.cleaner.clean(reply.texts[: each.n], each, run_texts=kept)[0]:
                kept[text] = Candidate(text=text, label=label, model=name, round=0)
        parsed = [text for (_, each), reply in zip(asked, replies, strict=True) for text in reply.texts[: each.n]]
        number, first = sum(each.n for _, each in asked), asked[0][1]
        shares = [len(parsed) / number, len(kept) / number, len(set(map(normal_letters, parsed))) / max(1, len(parsed))]
        shares += self._quality([] if first.phrases else list(kept.values()))
        length = np.median([len(text.split()) for text in kept]) if kept else np.nan
        read, written = (sum(getattr(reply, f"{way}_tokens") for reply in replies) for way in ("input", "output"))
        return list(kept.values()), [*shares, float(length), first.words or np.nan, read, written, seconds]

    def _quality(self, kept: Sequence[Candidate]) -> list[float]:
        """Return the accuracies by the encoder and by TF-IDF, and the agreement with the label; NaN without texts."""
        if not kept or not self._real:
            return [np.nan] * 3
        texts, labels = [each.text for each in self._task.classifier_inputs(kept)], [each.label for each in kept]
        tests, right = [record.text for record in self._test], [record.label for record in self._test]
        predicted = [predict(texts, labels, tests, encoder=encoder)[0] for encoder in (self.parts.encoder, None)]
        agreeing = accuracy(self._judge.predict(self.parts.encoder.encode(texts)), labels)
        return [*(accuracy(each, right) for each in predicted), agreeing]


def _say(name: str, mode: str, figures: Iterable[float]) -> None:
    """Print one line, with "-" for each figure that is NaN."""
    cells = ("-" if np.isnan(figure) else f"{figure:{form}}" for figure, form in zip(figures, FORMATS, strict=True))
    show(f"{name:16}{mode:16}{''.join(f'{cell:>9}' for cell in cells)}\n")


def _longest_words(texts: Sequence[str]) -> list[str]:
    """Return the `PHRASES` longest words of each text, without repetitions."""
    longest = (sorted(dict.fromkeys(words(text)), key=len)[-PHRASES:] for text in texts)
    return list(dict.fromkeys(word for of_text in longest for word in of_text))


def request(mode: str, task: Task, label: str, pools: Pools, options: Mapping[str, Any]) -> Request:
    """Return a request of this kind of prompt, with exemplars or sources drawn from the pools.

    Raises:
        ConfigError: The label has no text to show.
    """
    make, counts = KINDS[mode]
    if lacking := [pool for pool in counts if not pools[pool].get(label)]:
        do = "Ask for more texts, for example --texts 400"
        raise ConfigError(f"prompt {mode}", expected=f"{lacking[0]} texts of each label", got=f"none of {label}", do=do)
    shown = {pool: draw_members(pools[pool][label], count, options["rng"]) for pool, count in counts.items()}
    if mode == "zero_shot" and task.several:
        shown["more"] = draw_members([other for other in task.labels if other != label], 1, options["rng"])
    return make(task, label, **shown, **options)


def voted_pools(texts: Sequence[Candidate], real: Sequence[Record], task: Task, encoder: Encoder) -> Pools:
    """Return the pools "good" and "bad", by the votes of `VOTERS` real texts without noise.

    A label with n texts gets up to n / 2 of each, and none if n is less than 4, since a crossing needs two good ones.
    """
    voters = draw_members(real, VOTERS, rng.experiment(0, "voters"))
    names, labels = list(task.labels), label_numbers(texts, task)
    vectors = encoder.encode([each.text for each in task.classifier_inputs(texts)])
    of_voters = np.array([names.index(record.label) for record in voters], dtype=np.int32)
    query = Votes(spec=VotesSpec(top=RANKS), vectors=vectors, labels=labels)
    near, far = votes_of(query, encoder.encode([record.text for record in voters]), of_voters).reshape(2, -1)
    pools: Pools = {"good": {}, "bad": {}}
    for label, good, bad in zip(names, *good_and_bad((near, far), labels, EXEMPLARS, len(names)), strict=True):
        if len(good) > 1:
            pools["good"][label] = [texts[place].text for place in good]
            pools["bad"][label] = [texts[place].text for place in bad]
    return pools


if __name__ == "__main__":
    main()
