"""The short form of what `caucus-coordinator plan` prints: one line for each fact that decides about a run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from server.documents.privacy import Privacy
from server.guarantee.rounding import counted, hospitals, show_delta, show_epsilon
from server.report.write import show_number


def plan_lines(privacy: Privacy, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the short form.

    Args:
        privacy: The guarantee of the plan.
        facts: The result of `plan_command.forwards`.
    """
    yield from _cost(privacy)
    yield from _signals(facts["queries"])
    yield from _forecast(facts["forecast"])
    yield from _ending(facts)


def solved_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the short form of the result with `--signal`."""
    least = "least ε" if facts["solved_for"] == "epsilon" else "least number of records"
    yield (
        f"ε = {show_epsilon(facts['epsilon'])}, δ = {show_delta(facts['delta'])}, "
        f"{show_number(facts['expected_records'])} records: the {least} with which every query has a signal of "
        f"{facts['signal']:g} times its noise; decided by {facts['decided_by']}"
    )
    yield from _signals(facts["queries"])
    yield from _ending(facts)


def _cost(privacy: Privacy) -> Iterator[str]:
    if not privacy.queries:
        yield "the hospitals are asked nothing"
        return
    yield (
        f"ε = {show_epsilon(privacy.planned_epsilon)}, δ = {show_delta(privacy.delta)} for one "
        f"{'person' if privacy.by_user else 'record'}; {hospitals(privacy.parties)}, aggregation {privacy.aggregation}"
    )
    if privacy.unproven:
        yield f"without a proof: {', '.join(privacy.unproven)}"
    for case in privacy.against_colluders:
        more = case.epsilon > 1.001 * privacy.planned_epsilon  # a plan that expects help has noise for it
        if 0 < case.colluders <= privacy.corrupt and more:
            helpers = counted(case.colluders, "hospital that helps", "hospitals that help")
            yield f"ε = {show_epsilon(case.epsilon)} against the coordinator with {helpers} it"


def _signals(queries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line on each query: how often it is asked, its signal and noise, and the records that it needs."""
    for query in queries:
        signal, clear = query["signal"], query["signal"]["clear_from_records"]
        start = f"{query['name']}, {counted(query['times'], 'answer', 'answers')}"
        end = f"; clear from {counted(clear, 'record', 'records')}" if clear and clear > 1 else ""
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
    cost = f", cost {show_number(expected['cost'])}" if expected["cost"] else ""
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
    yield "everything: the same with --json"
