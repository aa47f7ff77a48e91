"""The short form of what `caucus-coordinator plan` prints: one line for each fact that decides about a run.

`run` prints the lines on the hospitals' answers before it asks a hospital; where votes will be noise, a person decides.
The coordinator does not know the number of records. Without the operator's guess (`federation.expected_records`) the
forecast is for the most that the hospitals declare; since they may have far fewer, votes must then be clear.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from common.errors import CaucusError
from common.phrases import series
from common.queries.votes import VotesSpec
from common.system.progress import is_agreed
from server.deploy.plan_command import facts_of
from server.documents.privacy import Privacy
from server.guarantee.messages import number_with_noun, show_epsilon
from server.guarantee.words import plan_cost
from server.planning.forecast import records_clause as note_on_count
from server.planning.make_plan import EXPECTED_RECORDS
from server.planning.signal import CLEAR, HOPELESS, signals
from server.prepare.automatic import expected_records
from server.prepare.components import RunComponents
from server.report.write import show_number
from server.settings.schema import Settings

ADVICE = f"Take method=class_sums, or guess the number of all records ({EXPECTED_RECORDS})"


def plan_lines(privacy: Privacy, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the short form from the guarantee and the facts of `plan_command.forwards`."""
    yield from _answers(privacy, facts)
    yield from _forecast(facts["forecast"])
    yield from _ending(facts)


def foresee(settings: Settings, parts: RunComponents, most: int) -> tuple[list[str], list[str]]:
    """Return the forecast of a run's answers; the hospitals together declare `most` records.

    It consists of the lines that `plan` prints on cost, signal and noise, and advice, and of the names of the queries
    whose votes will be noise, or may be if the number of records is not known.
    """
    plan, compared, guess = parts.plan, parts.method.compared(parts.source.task()), expected_records(settings)
    records, needed = guess or most, HOPELESS if guess else CLEAR
    privacy, facts = facts_of(plan, compared, records, earlier=parts.earlier)
    lines = [*_answers(privacy, facts), *(f"advice: {advice}" for advice in facts["advice"])]
    if not guess:
        most_declared = f"forecast for {records:,} records, the most that the hospitals declare{note_on_count(plan)}"
        lines.insert(0, f"{most_declared}; else: {EXPECTED_RECORDS}")
    votes = [signal for signal in signals(plan, compared, records) if signal.kind == VotesSpec.kind]
    noise = [] if parts.earlier else [signal.query for signal in votes if signal.ratio < needed]
    return lines, noise


def check_agreed(noise: Sequence[str], *, yes: bool) -> None:
    """Ask whether to spend ε on votes that are likely to be noise, if there are any and it was not agreed before.

    Raises:
        ConfigError: There is no terminal to ask at.
        CaucusError: The answer was no.
    """
    if yes or not noise:
        return
    what = f"votes that are likely to be noise ({series(noise, 'and')})"
    do = f"{ADVICE}; or --yes asks the hospitals all the same"
    if not is_agreed(f"{what}: ask the hospitals all the same, which spends their epsilon?", what=what, do=do):
        raise CaucusError("no hospital was asked", do=ADVICE)


def solved_lines(privacy: Privacy, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the short form of the result with `--signal`."""
    least = "ε" if facts["solved_for"] == "epsilon" else "number of records"
    yield (
        f"the least {least} with which every query has a signal of {facts['signal']:g} times its noise, decided by "
        f"{facts['decided_by']}: ε = {show_epsilon(facts['epsilon'])}, "
        f"{number_with_noun(facts['expected_records'], 'record')}"
    )
    yield from plan_cost(privacy)
    yield from _signals(facts["queries"])
    yield from _ending(facts)


def _answers(privacy: Privacy, facts: Mapping[str, Any]) -> Iterator[str]:
    yield from plan_cost(privacy)
    if privacy.earlier is None:
        yield from _signals(facts["queries"])


def _signals(queries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line on each query: how often it is asked, its signal and noise, and the records that it needs."""
    for query in queries:
        signal, clear = query["signal"], query["signal"]["clear_from_records"]
        start = f"{query['name']}, {number_with_noun(query['times'], 'answer')}"
        end = f"; clear from {number_with_noun(clear, 'record')}" if clear and clear > 1 else ""
        if "not_estimated" in signal:
            yield f"{start}: {signal['not_estimated']}{end}"
        else:
            size, noise, ratio = (show_number(signal[name]) for name in ("signal", "noise", "ratio"))
            times = f", {ratio} times as much" if signal["noise"] else ""
            yield f"{start}: noise {noise}, signal {size}{times} ({signal['unit']}){end}"


def _forecast(expected: Mapping[str, Any]) -> Iterator[str]:
    if not expected["texts"]:
        return
    tokens = expected["input_tokens"] + expected["output_tokens"]
    cost = f", {show_number(expected['cost'])} in the currency of the prices" if expected["cost"] else ""
    unknown = [name for name, model in expected["models"].items() if model["cost"] is None]
    yield (
        f"{show_number(expected['texts'])} texts at most, if no text is dropped: "
        f"{show_number(expected['model_calls'])} model calls, {show_number(tokens)} tokens{cost}"
        + (f"; of unknown price: {', '.join(unknown)}" if unknown else "")
    )


def _ending(facts: Mapping[str, Any]) -> Iterator[str]:
    for name, value in facts.get("chosen", {}).items():
        yield f"{name}: auto is {value}"
    for advice in facts["advice"]:
        yield f"advice: {advice}"
    yield "all figures: the same with --json"
