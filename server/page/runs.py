"""Runs as the page shows them: a list with one line per run, and a single run with its log, costs and rounds."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from markupsafe import Markup

from common.errors import CaucusError, CheckpointError
from common.system.files import text_of
from common.system.log_lines import last_lines
from server.deploy import run_state
from server.deploy.run_state import GOES_ON, Progress, RunStatus, checked_progress, run_folders
from server.deploy.runs import OVERRIDES, is_steered, started_run_folder
from server.deploy.send import Sending, delivery_state, unsendable
from server.deploy.settings import CoordinatorSettings
from server.documents.class_sums import Released
from server.documents.codec import MALFORMED
from server.documents.files import read_lines
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.failure import ABSENT, LOG, REJECTED
from server.llm.providers import SPENDING
from server.llm.spending import Spending
from server.prepare.compose import load_settings
from server.report import run_plots
from server.report.write import rendered_plot
from server.settings.schema import Settings
from server.settings.sections import setting

MOST_LINES = 30
"""Number of lines at the end of a run's log that the page shows."""
CAN_BE_CANCELLED = (*GOES_ON, RunStatus.AWAITING)
CAN_BE_RESUMED = (RunStatus.NEW, RunStatus.AWAITING, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run.

    Attributes:
        settings: The run's settings.
        state: The run's state.
        absent: If the run failed because too few hospitals took part: what each did, and advice; otherwise empty.
        privacy: The guarantee and what was spent; None before the plan is written.
        rounds: Total number of rounds; None for a method without rounds.
        money: Money spent on remote models; None if no price is known.
        tokens: Number of tokens of remote models.
        seconds_left: Seconds that the remaining rounds will take if they are like the rounds so far; None if unknown.
        money_left: Money that the remaining rounds will cost if they are like the rounds so far; None if unknown.
        log: The last lines of the run's log since it was last started or resumed.
        plots: Plots of the rounds, as SVG.
        problems: Files that could not be read, with the reasons.
        steered: Whether the run was created by `caucus-coordinator steer`.
        rejected: Whether resuming the run would not help.
        has_report: Whether there is a report.
        can_be_drafted: Whether its settings can be copied to a new draft.
        sending: The hospitals that have its texts; None if its texts are not, or not yet, sent to hospitals.
        actions: The actions among "resume", "cancel" and "send" that are possible now.
        commands: Command lines for these actions, and for those possible only in a terminal.
    """

    settings: Settings
    state: Progress
    absent: Mapping[str, Any]
    privacy: Privacy | None
    rounds: int | None
    money: float | None
    tokens: int
    seconds_left: float | None
    money_left: float | None
    log: tuple[str, ...]
    plots: tuple[Markup, ...]
    problems: tuple[str, ...]
    steered: bool
    rejected: bool
    has_report: bool
    can_be_drafted: bool
    sending: Sending | None
    actions: tuple[str, ...]
    commands: tuple[str, ...]


def all_runs(settings: CoordinatorSettings) -> list[tuple[str, Progress | CaucusError]]:
    """Return all runs, newest first, each with its state or, if the run cannot be read, with the reason."""
    folders = run_folders(settings.folder / "runs")
    folders.sort(key=lambda folder: (folder / "config.yaml").stat().st_mtime, reverse=True)
    return [(folder.name, _state_or_reason(settings, folder)) for folder in folders]


def _state_or_reason(settings: CoordinatorSettings, folder: Path) -> Progress | CaucusError:
    try:
        with _readable(folder):
            return _in_short(checked_progress(settings, folder), folder)[0]
    except CaucusError as error:
        return error


def _in_short(state: Progress, folder: Path) -> tuple[Progress, Mapping[str, Any]]:
    """Return the state and the content of `ABSENT`; if too few hospitals took part, the reason names none of them."""
    text = text_of(folder / ABSENT)
    absent: Mapping[str, Any] = json.loads(text) if text and state.status is RunStatus.FAILED else {}
    return (replace(state, reason=absent["problem"]) if absent else state), absent


def resumable_folder(settings: CoordinatorSettings, name: str) -> Path:
    """Return the folder of a run that may be resumed; pressing the button twice must not stop the resumed run.

    Raises:
        CheckpointError: There is no such run, or it has not ended.
    """
    folder = started_run_folder(settings, name)
    status = checked_progress(settings, folder).status
    if status in GOES_ON:
        raise CheckpointError("run", expected="one that has ended", got=f"one that is {status}", where=folder)
    return folder


def one_run(settings: CoordinatorSettings, name: str) -> RunView:
    """Return one run as the page shows it.

    Raises:
        CheckpointError: There is no such run, or a necessary file of it cannot be read.
    """
    folder = started_run_folder(settings, name)
    with _readable(folder):
        chosen, account = load_settings(folder), Spending(path=folder / SPENDING)
        state, absent = _in_short(checked_progress(settings, folder), folder)
    problems: list[str] = []
    path = folder / RoundReport.FILE
    rounds = read_lines(path, RoundReport.from_json, problems) if path.exists() else []
    privacy = Privacy.read(folder, problems, needed=False)
    made_by_steer, rejected = is_steered(folder), (folder / REJECTED).exists()
    sending = None if unsendable(folder) else delivery_state(settings, folder, problems)
    actions = () if made_by_steer else tuple(_actions(state, sending, rejected=rejected))
    planned_rounds = setting(chosen, "method.rounds")
    seconds_left, money_left = _rest(rounds, (planned_rounds or 0) - len(rounds))
    return RunView(
        settings=chosen,
        state=state,
        absent=absent,
        privacy=privacy,
        rounds=planned_rounds,
        money=account.cost(),
        tokens=sum(model.usage.tokens for model in account.paid().values()),
        seconds_left=seconds_left,
        money_left=money_left,
        log=last_lines(folder / LOG, MOST_LINES, at=run_state.log_start(folder)),
        plots=tuple(map(rendered_plot, run_plots.plot_rounds(rounds))),
        problems=tuple(problems),
        steered=made_by_steer,
        rejected=rejected,
        has_report=(folder / "report.html").is_file(),
        can_be_drafted=(folder / OVERRIDES).is_file(),
        sending=sending,
        actions=actions,
        commands=tuple(_commands(settings, folder, state, actions)),
    )


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Raise a CheckpointError in place of the error that an unreadable file in a run folder causes."""
    try:
        yield
    except (*MALFORMED, yaml.YAMLError) as error:
        got = f"one that was changed or cut ({type(error).__name__})"
        raise CheckpointError("run folder", expected="files of this program", got=got, where=folder) from error


def _actions(state: Progress, sending: Sending | None, *, rejected: bool) -> Iterator[str]:
    if state.status in CAN_BE_RESUMED and not rejected:
        yield "resume"
    if state.status in CAN_BE_CANCELLED:
        yield "cancel"
    if sending and not sending.under_way:
        yield "send"


def _rest(rounds: Sequence[RoundReport], left: int) -> tuple[float | None, float | None]:
    """Return the seconds and the money for the rounds that are left; None for what is unknown."""
    if not rounds or left <= 0:
        return None, None
    seconds = [sum(report.seconds.values()) for report in rounds if report.seconds]
    paid = [payment.cost for report in rounds for payment in report.paid.values()]
    prices = [cost for cost in paid if cost is not None]
    return (
        sum(seconds) / len(seconds) * left if seconds else None,
        sum(prices) / len(rounds) * left if prices and len(prices) == len(paid) else None,
    )


def _commands(settings: CoordinatorSettings, folder: Path, state: Progress, actions: Sequence[str]) -> Iterator[str]:
    """Yield command lines for a run: those of the page's buttons, and the next steps after a complete run."""
    for verb in ("follow", *actions):
        yield run_state.command(settings, verb, folder.name)
    if state.status is RunStatus.COMPLETE:
        path = str(folder)
        yield shlex.join(["caucus-coordinator", "evaluate", path, "--test", "FILE"])
        yield shlex.join(["caucus-coordinator", "publish", path, "--license", "LICENCE"])
        if (folder / Released.FILE).exists():
            yield shlex.join(["caucus-coordinator", "steer", path, "llm=MODEL"])
