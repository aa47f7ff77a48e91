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
        facts: The facts from `plan_command.forwards`.
    """
    yield from _answers(privacy, facts)
    yield from _forecast(facts["forecast"])
    yield from _ending(facts)


def foreseen_lines(privacy: Privacy, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield those lines on the hospitals' answers alone, with advice; `facts` are from `plan_command.facts_of`."""
    yield from _answers(privacy, facts)
    yield from (f"advice: {advice}" for advice in facts["advice"])


def solved_lines(privacy: Privacy, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the short form of the result with `--signal`; the arguments are as for `plan_lines`."""
    least = "ε" if facts["solved_for"] == "epsilon" else "number of records"
    yield (
        f"the least {least} with which every query has a signal of {facts['signal']:g} times its noise, decided by "
        f"{facts['decided_by']}: ε = {show_epsilon(facts['epsilon'])}, {_records(facts['expected_records'])}"
    )
    yield from _cost(privacy)
    yield from _signals(facts["queries"])
    yield from _ending(facts)


def _answers(privacy: Privacy, facts: Mapping[str, Any]) -> Iterator[str]:
    yield from _cost(privacy)
    if privacy.earlier is None:
        yield from _signals(facts["queries"])


def _cost(privacy: Privacy) -> Iterator[str]:
    """Yield the lines on ε: of the plan, and against hospitals whose help it has no noise for."""
    if not privacy.queries:
        yield "the hospitals are asked nothing"
        return
    if privacy.earlier is not None:
        yield f"the hospitals are asked nothing more: the answers of run {privacy.earlier.run} are used again"
    yield (
        f"ε = {show_epsilon(privacy.planned_epsilon)}, δ = {show_delta(privacy.delta)} for one "
        f"{'person' if privacy.by_user else 'record'}{'' if privacy.noisy else ': no noise, and no guarantee'}; "
        f"{hospitals(privacy.parties)}, aggregation {privacy.aggregation}"
    )
    if privacy.unproven:
        yield f"without a proof: {', '.join(privacy.unproven)}"
    planned = privacy.assumed_colluders
    if planned:
        yield f"this includes up to {_helpers(planned)} the coordinator, for which there is more noise"
    more = [case for case in privacy.against_colluders if case.colluders > planned] if privacy.noisy else []
    for case in dict.fromkeys((*more[:1], *more[-1:])):
        yield f"ε = {show_epsilon(case.epsilon)} against {_helpers(case.colluders)} the coordinator"
    if privacy.noisy:
        whose = "a person" if privacy.by_user else "a record"
        guesses, condition = privacy.readers_guesses, f", {privacy.condition}" if privacy.condition else ""
        yield (
            f"{guesses.strength} protection: a reader of the texts guesses rightly in at most {guesses.right:g}% of "
            f"cases whether {whose} took part{condition}; a coin toss is right in 50%"
        )


def _helpers(number: int) -> str:
    return counted(number, "hospital that helps", "hospitals that help")


def _records(number: int) -> str:
    return counted(number, "record", "records")


def _signals(queries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line on each query: how often it is asked, its signal and noise, and the records that it needs."""
    for query in queries:
        signal, clear = query["signal"], query["signal"]["clear_from_records"]
        start = f"{query['name']}, {counted(query['times'], 'answer', 'answers')}"
        end = f"; clear from {_records(clear)}" if clear and clear > 1 else ""
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
