"""Replacement of `auto` in a method's settings by numbers that suit the expected signal, or the texts."""

import contextlib
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from hydra.errors import InstantiationException

from common.errors import ConfigError, DataError
from common.queries.class_sums import ClassSumsSpec
from common.queries.questionnaire import QuestionnaireSpec
from server.domain import Task
from server.planning.signal import HOPELESS, signals
from server.prepare.build import build, draft_plan, method_of
from server.settings.reading import FEWEST_ROUNDS
from server.settings.schema import Settings, SimulationSettings
from server.settings.sections import TARGET, USUAL_TEXTS, setting, with_values
from server.settings.seeded import ABSTRACT_WORDS, MOST_ABSTRACTS
from server.settings.tasks import DemoSettings
from server.settings.voting import FEWEST_SHOTS, USUAL_VOTES
from server.tasks.sources import Source

log = logging.getLogger("caucus.planning")

_RUNS_HERE, _COMPOSES = "server.llm.local.Local", "server.llm.builtin.model.BuiltinModel"
_NO_LENGTH = (
    "no public texts show the length of a text: chat models choose it, and often write letters, which take minutes. "
    "Set method.words=NUMBER or, unless texts have sections, task.public_text=FILE"
)

DIRECTIONS = (16, 32, 64, 128)
_PER_RATIO = 10.0
"""Number of directions for a signal-to-noise ratio of 1. On banking10 and mts_notes8, with 100, 300 and 1000 records at
epsilon 1, 4 and infinite, a nearest-mean classifier built from the estimates is within 0.007 of the accuracy reached
with the best number of directions; a fixed number loses up to 0.07."""
ROUNDS = (5, 4, 3, FEWEST_ROUNDS)
LONGEST_LISTED = 20
"""Maximum length in words of texts that are requested in lists. Texts of 24 words for mts_notes8 reach 33.2% on real
texts if requested in tens, and 50.6% if requested one by one (`simulations/laboratory/results/CHAT_MODEL.md`)."""
ONE_BY_ONE, COMPLETED = 1, 5
"""Number of texts that one prompt requests if they are long, or of a chat model on this machine, which reads the common
part of prompts only once; and of a model that completes lists or composes. Of Qwen's 200 short texts for banking10,
91.5% have their label to a classifier of real texts if requested one by one, and 87.2% if requested in tens.
"""


def resolve_auto(settings: Settings, task: Task | None = None) -> Settings:
    """Return the settings with a number, or None, in place of each `auto`. A run stores these, to resume with its plan.

    The given settings are not changed. Without a task, it is built when needed.

    Raises:
        ConfigError: A number of rounds depends on the expected number of records, which is not set.
    """
    if not settings.automatic:
        return settings
    task = task or build(settings.task).task()
    for name in settings.automatic:
        number = _CHOICES[name](settings, task)
        if number is not None:
            log.info("method.%s=auto: %d%s", name, number, ", the median length of public texts" * (name == "words"))
        settings = with_values(settings, {f"method.{name}": number})
    return replace(settings, automatic=())


def built_in(settings: Settings) -> set[str]:
    """Return the names of the built-in models in use, which compose texts."""
    return {name for name, model in settings.llm.used.items() if model.settings[TARGET] == _COMPOSES}


def asked_in_chats(settings: Settings) -> set[str]:
    """Return the names of the models in use that are asked in a chat: they neither complete examples nor compose."""
    completing = {name for name, model in settings.llm.used.items() if model.settings.get("completion")}
    return set(settings.llm.used) - completing - built_in(settings)


def expected_records(settings: Settings) -> int | None:
    """Return M, the public guess of the total number of records; by default, in a simulation, the number dealt out.

    Return None if there is no guess and, in a simulation, the records are in a file. The file is not read here: the run
    counts its records.
    """
    dealt = None
    if isinstance(settings, SimulationSettings):
        dealt = settings.federation.records
        if dealt is None and isinstance(settings.task, DemoSettings):
            dealt = settings.federation.parties * settings.task.records_per_party
    return settings.federation.expected_records or dealt or None


def _words(settings: Settings, task: Task) -> int | None:
    """Return the length to request if any model is asked in a chat; None otherwise, or if hospitals tell lengths."""
    if not asked_in_chats(settings) or setting(settings, "method.questionnaire") not in {None, "none"}:
        return None
    words = None if task.sectioned else _public_length(settings)  # the public texts of such a task are sections
    if words is None:
        log.warning(_NO_LENGTH)
    return words


def _texts_per_request(settings: Settings) -> int:
    """Return the number of texts that suits the models and the requested length, or else that of the public texts."""
    if not asked_in_chats(settings):
        return COMPLETED
    if all(model.settings[TARGET] == _RUNS_HERE for model in settings.llm.used.values()):
        return ONE_BY_ONE
    words = setting(settings, "method.words") or _public_length(settings)
    return ONE_BY_ONE if words and words > LONGEST_LISTED else USUAL_TEXTS


def _abstract_words(settings: Settings) -> int:
    """Return the usual length of an abstract, or that of a text if it is known and shorter."""
    words = setting(settings, "method.words") or _public_length(settings)
    return min(ABSTRACT_WORDS, words or ABSTRACT_WORDS)


def _half_of_candidates(settings: Settings, task: Task) -> int:
    """Return the usual number of votes, or half of a label's candidates in the last vote if that is less; at least 1.

    A method that compares no candidates has the usual number.
    """
    compared = method_of(settings).compared(task).values()
    half = min(compared, default=2 * USUAL_VOTES * len(task.labels)) // len(task.labels) // 2
    return max(1, min(USUAL_VOTES, half))


def _public_length(settings: Settings) -> int | None:
    """Return the median length in words, at least 1, of the public texts that prompts may show; None without any."""
    source: Source = build(settings.task)
    with contextlib.suppress(DataError):  # a run may be planned where its files are not
        if lengths := [len(example.text.split()) for example in source.public_examples()]:
            return max(1, round(np.median(lengths)))
    return None


def _directions(settings: Settings, task: Task) -> int:
    """Return the value in `DIRECTIONS` that is nearest to ten times the signal of a class mean along one direction.

    That signal depends neither on the number of directions nor on that of rounds.
    """
    plan, _ = draft_plan(with_values(settings, {"method.directions": DIRECTIONS[0]}), task)
    estimates = signals(plan, {}, expected_records(settings))
    kinds = {ClassSumsSpec.kind, QuestionnaireSpec.kind}
    ratios = [signal.ratio for signal in estimates if signal.kind in kinds and signal.expected]
    if not ratios:
        unknown: int = setting(settings, "method.directions")
        return unknown
    wanted = math.log2(_PER_RATIO * min(max(min(ratios), 1e-9), 1e9))
    return min(DIRECTIONS, key=lambda number: abs(math.log2(number) - wanted))


def _rounds(settings: Settings, task: Task) -> int:
    """Return the most rounds at which no repeated answer is mere noise; the maximum if no answer is repeated."""

    def with_rounds(number: int) -> Settings:
        return with_values(settings, {"method.rounds": number})

    times = [
        {query.name: query.times for query in draft_plan(with_rounds(number), task)[0].queries}
        for number in ROUNDS[-2:]
    ]
    repeated = {name for name, number in times[0].items() if number != times[1].get(name)}
    if not repeated:
        return ROUNDS[0]
    if (records := expected_records(settings)) is None:
        what = "method.rounds=auto needs an expected number of records"
        raise ConfigError(what, do="Add federation.expected_records=NUMBER")

    def ratio(number: int) -> float:
        try:
            estimates = signals(*draft_plan(with_rounds(number), task), records)
        except (ConfigError, InstantiationException):
            return -math.inf  # too few texts for this number of rounds
        return min(signal.ratio for signal in estimates if signal.query in repeated)

    return next((number for number in ROUNDS if ratio(number) >= HOPELESS), ROUNDS[-1])


_CHOICES: Mapping[str, Callable[[Settings, Task], int | None]] = {
    "words": _words,
    "texts_per_request": lambda settings, _: _texts_per_request(settings),
    "abstract_words": lambda settings, _: _abstract_words(settings),
    "pool": lambda settings, _: min(MOST_ABSTRACTS, 2 * int(setting(settings, "method.samples"))),
    "directions": _directions,
    "rounds": _rounds,
    "top": _half_of_candidates,
    "shots": lambda settings, task: max(FEWEST_SHOTS, _half_of_candidates(settings, task)),
}
"""Functions that choose a number, keyed by the name of the setting (`server.settings.reading.AUTOMATIC`)."""
