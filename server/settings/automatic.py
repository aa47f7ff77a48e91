"""Numbers in place of `auto` in a method's settings, chosen by the expected signal of the plan."""

import logging
import math
from collections.abc import Callable
from dataclasses import replace

from hydra.errors import InstantiationException

from common.errors import ConfigError
from common.queries.class_sums import ClassSumsSpec
from common.queries.questionnaire import QuestionnaireSpec
from server.domain import Task
from server.planning.signal import HOPELESS, signals
from server.settings.build import build, drafted
from server.settings.reading import FEWEST_ROUNDS
from server.settings.schema import Settings, SimulationSettings
from server.settings.sections import changed, setting
from server.settings.tasks import DemoSettings

log = logging.getLogger("caucus.planning")

DIRECTIONS = (16, 32, 64, 128)
_PER_RATIO = 10.0
"""Directions per unit of signal to noise. On banking10 and mts_notes8, with 100, 300 and 1000 records at epsilon 1, 4
and infinite, the accuracy of the nearest-mean classifier of the estimates is within .007 of that with the best number
of directions; a fixed number loses up to .07."""
ROUNDS = (5, 4, 3, FEWEST_ROUNDS)


def settled(settings: Settings, task: Task | None = None) -> Settings:
    """Return the settings with a number for each `auto`. A run stores these, so that it is resumed with the same plan.

    Args:
        settings: The settings, which are not changed.
        task: None builds it, if it is needed.

    Raises:
        ConfigError: A number of rounds depends on an expected number of records, and there is none.
    """
    if not settings.automatic:
        return settings
    # The signal along a direction depends neither on the number of directions nor on that of rounds.
    choices = {"directions": _directions, "rounds": _rounds}
    task = task or build(settings.task).task()
    records = expected_records(settings)
    chosen = {f"method.{name}": choices[name](settings, task, records) for name in settings.automatic}
    for name, number in chosen.items():
        log.info("%s=auto: %d", name, number)
    return changed(replace(settings, automatic=()), chosen)


def expected_records(settings: Settings) -> int | None:
    """Return M, the public guess of the number of all records; in a simulation, by default the number it deals out.

    None if there is no guess, and a simulation's records are in a file. The file is not read here: the run counts its
    records.
    """
    dealt = None
    if isinstance(settings, SimulationSettings):
        dealt = settings.federation.records
        if dealt is None and isinstance(settings.task, DemoSettings):
            dealt = settings.federation.parties * settings.task.records_per_party
    return settings.federation.expected_records or dealt or None


def directions(ratio: float) -> int:
    """Choose k, the number of directions of class sums: the one in `DIRECTIONS` nearest to ten times `ratio`.

    Args:
        ratio: Signal to noise of a class mean along one direction, which k does not change.
    """
    wanted = math.log2(_PER_RATIO * min(max(ratio, 1e-9), 1e9))
    return min(DIRECTIONS, key=lambda number: abs(math.log2(number) - wanted))


def rounds(ratio: Callable[[int], float]) -> int:
    """Return the largest number of rounds with which the answers are not noise; the smallest one if they always are.

    Args:
        ratio: Signal to noise of the weakest answer with that number of rounds.
    """
    return next((number for number in ROUNDS if ratio(number) >= HOPELESS), ROUNDS[-1])


def _directions(settings: Settings, task: Task, records: int | None) -> int:
    """Return the number of directions that suits the signal of the class sums."""
    plan, _ = drafted(changed(settings, {"method.directions": DIRECTIONS[0]}), task)
    estimates = signals(plan, {}, records)
    kinds = {ClassSumsSpec.kind, QuestionnaireSpec.kind}
    ratios = [signal.ratio for signal in estimates if signal.kind in kinds and signal.expected]
    unknown: int = setting(settings, "method.directions")
    return directions(min(ratios)) if ratios else unknown


def _rounds(settings: Settings, task: Task, records: int | None) -> int:
    """Return the most rounds with which the answers that rounds repeat are not noise; the largest if none repeat."""

    def with_rounds(number: int) -> Settings:
        return changed(settings, {"method.rounds": number})

    times = [
        {query.name: query.times for query in drafted(with_rounds(number), task)[0].queries} for number in ROUNDS[-2:]
    ]
    repeated = {name for name, number in times[0].items() if number != times[1].get(name)}
    if not repeated:
        return ROUNDS[0]
    if records is None:
        raise ConfigError(
            "method.rounds",
            expected="a number, or auto with an expected number of records",
            got="auto alone",
            do="Add federation.expected_records=NUMBER",
        )

    def ratio(number: int) -> float:
        try:
            estimates = signals(*drafted(with_rounds(number), task), records)
        except (ConfigError, InstantiationException):
            return -math.inf  # too few texts for this number of rounds
        return min(signal.ratio for signal in estimates if signal.query in repeated)

    return rounds(ratio)
