"""What a run's answers will be worth, said before a hospital is asked; where votes will be noise, a person decides.

The coordinator does not know the number of records. Without the operator's guess (`federation.expected_records`) the
forecast is for the most that the hospitals declare; since they may have far fewer, votes must then be clear.
"""

from dataclasses import dataclass

from common.errors import CaucusError
from common.phrases import series
from common.queries.votes import VotesSpec
from common.system.asking import is_agreed
from server.deploy.plan_command import facts_of
from server.deploy.plan_lines import foreseen_lines
from server.planning.forecast import counted
from server.planning.make_plan import EXPECTED_RECORDS
from server.planning.signal import CLEAR, HOPELESS, signals
from server.settings.automatic import expected_records
from server.settings.parts import Parts
from server.settings.schema import Settings

ADVICE = f"Take method=census, or guess the number of all records ({EXPECTED_RECORDS})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """The forecast of a run's answers.

    Attributes:
        lines: The lines that `plan` prints on cost, signal and noise, and advice.
        noise: Names of the queries whose votes will be noise, or may be if the number of records is not known.
    """

    lines: tuple[str, ...]
    noise: tuple[str, ...]


def foresee(settings: Settings, parts: Parts, most: int) -> Foresight:
    """Return the forecast of a run's answers.

    Args:
        settings: Settings of the run.
        parts: Parts of the run.
        most: Number of records that all hospitals together declare at most.
    """
    plan, compared, guess = parts.plan, parts.method.compared(parts.source.task()), expected_records(settings)
    records, needed = guess or most, HOPELESS if guess else CLEAR
    facts = facts_of(plan, compared, records, earlier=parts.earlier)
    noise = [
        signal.query
        for signal in signals(plan, compared, records)
        if signal.kind == VotesSpec.kind and signal.ratio < needed
    ]
    most_declared = f"forecast for {records:,} records, the most that the hospitals declare{counted(plan)}"
    unknown = f"{most_declared}; else: {EXPECTED_RECORDS}"
    return Foresight(
        lines=(*([] if guess else [unknown]), *foreseen_lines(*facts)), noise=() if parts.earlier else tuple(noise)
    )


def check_agreed(foresight: Foresight, *, yes: bool) -> None:
    """Ask whether to spend ε on votes that are likely to be noise, if there are any.

    Args:
        foresight: The forecast.
        yes: Whether this was agreed before.

    Raises:
        ConfigError: There is no terminal to ask at.
        CaucusError: The answer was no.
    """
    if yes or not foresight.noise:
        return
    what = f"votes that are likely to be noise ({series(foresight.noise, 'and')})"
    do = f"{ADVICE}; or --yes asks the hospitals all the same"
    if not is_agreed(f"{what}: ask the hospitals all the same, which spends their epsilon?", what=what, do=do):
        raise CaucusError("no hospital was asked", do=ADVICE)
