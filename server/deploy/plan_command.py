"""`caucus-coordinator plan`: the privacy cost, signal and forecast of a run, before any private data is accessed.

With `--signal` the command solves backwards: it finds the least epsilon for a number of records, or the least number of
records for an epsilon. In that case no rehearsal is run, and no language model is loaded.
"""

import argparse
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import ConfigError
from common.phrases import percent
from common.system.commands import Commands, add_command, as_json
from common.system.progress import progress
from server.deploy import runs
from server.deploy.settings import CoordinatorSettings
from server.prepare.compose import compose_settings
from server.settings.schema import Settings
from server.settings.sections import has, setting, with_values

if TYPE_CHECKING:
    from common.plan.plan import Plan
    from server.documents.privacy import Earlier, Privacy
    from server.prepare.components import RunComponents

_COUNTED = 0.05
"""Fraction of ε that `plan` assumes when it states how much noise a count of correct answers would have."""


def register(commands: Commands) -> None:
    """Add the `plan` command."""
    parser = add_command(
        commands,
        "plan",
        _plan,
        summary="print ε, δ, signal and noise of each query, and the forecast of model calls",
        description="Print, before anything private is touched, ε and δ in total, each query with its expected signal "
        "and noise, and the expected model calls; with --signal the least ε, or the least number of records, with "
        "which every query has that signal. With --json everything, sensitivities and the exact guarantee included.",
        example="caucus-coordinator plan --records 300 --signal 3 federation.parties=10 method=class_sums",
    )
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="such as privacy.epsilon=4")
    parser.add_argument("--folder", type=Path, help="a coordinator's folder: plan for the hospitals enrolled there")
    parser.add_argument("--records", help="a guess of the number of records in all: federation.expected_records")
    parser.add_argument("--epsilon", help="privacy.epsilon")
    parser.add_argument(
        "--signal", help="ratio to the noise, such as 3: print the least ε for --records, or the least for --epsilon"
    )
    parser.add_argument("--json", action="store_true", help="everything, as JSON")


def _plan(chosen: argparse.Namespace) -> Iterator[str]:
    given = {"federation.expected_records": chosen.records, "privacy.epsilon": chosen.epsilon}
    overrides = [*chosen.overrides, *(f"{name}={value}" for name, value in given.items() if value is not None)]
    target = None if chosen.signal is None else _target(chosen)
    settings = (
        runs.with_hospitals(CoordinatorSettings.load(chosen.folder), overrides)
        if chosen.folder
        else compose_settings(overrides)
    )

    with progress("planning"):
        from server.deploy.plan_lines import plan_lines, solved_lines
        from server.documents.codec import strict

        if target is None:
            privacy, facts = forwards(settings)
        else:
            privacy, facts = _backwards(settings, target, for_epsilon=chosen.epsilon is None)
    if chosen.json:
        yield as_json(strict(facts))
    else:
        yield from plan_lines(privacy, facts) if target is None else solved_lines(privacy, facts)


def _target(chosen: argparse.Namespace) -> float:
    if (chosen.records is None) == (chosen.epsilon is None):
        got = "neither" if chosen.records is None else "both"
        raise ConfigError("--signal needs --records or --epsilon", got=got, do="Give exactly one of them")
    try:
        target = float(chosen.signal)
    except ValueError:
        target = math.nan
    if not 0 < target < math.inf:
        raise ConfigError("--signal", expected="a finite number > 0", got=repr(chosen.signal))
    return target


def plan_summary(settings: Settings) -> dict[str, Any]:
    """Return what `plan --json` prints, without the forecast: it takes less than a second, and no model is loaded."""
    from server.prepare.automatic import expected_records, resolve_auto
    from server.prepare.build import build, draft_plan

    task, records = build(settings.task).task(), expected_records(settings)
    return facts_of(*draft_plan(resolve_auto(settings, task), task), records)[1]


def forwards(settings: Settings) -> "tuple[Privacy, dict[str, Any]]":
    """Return the guarantee for settings, and all that `plan --json` prints: queries, signal and forecast, too."""
    from server.llm.render import advice_on_descriptions
    from server.planning import collusion
    from server.planning.forecast import forecast
    from server.prepare.automatic import expected_records, resolve_auto
    from server.prepare.components import build_components

    chosen, records = resolve_auto(settings), expected_records(settings)
    parts = build_components(chosen)
    plan, task = parts.plan, parts.source.task()
    price = collusion.collusion(plan, settings.secagg.corrupt) if plan.malicious else None
    more = {"collusion": price and asdict(price)}
    privacy, facts = facts_of(plan, parts.method.compared(task), records, earlier=parts.earlier, more=more)
    if price:
        facts["advice"] += collusion.collusion_advice(price, plan.epsilon)
    expected = forecast(
        parts.method,
        task,
        plan,
        parts.providers,
        parts.spending.prices,
        dimensions=parts.encoder.dimensions,
        records=records,
    )
    if parts.prompted and (unspoken := advice_on_descriptions(task)):
        facts["advice"].append(unspoken)
    facts["advice"] += _count_in_place_of_test_texts(chosen, parts)
    facts["advice"] += _loop(plan, expected, setting(chosen, "method.shown_words"))
    return privacy, {**facts, **_chosen(settings, chosen), "forecast": expected}


def facts_of(
    plan: "Plan",
    compared: Mapping[str, int],
    records: int | None,
    *,
    earlier: "Earlier | None" = None,
    more: Mapping[str, Any] = {},
) -> "tuple[Privacy, dict[str, Any]]":
    """Return what can be stated about a plan and its noise before any query is asked, as a document and for JSON.

    Args:
        plan: The plan.
        compared: Number of candidates, or of other items, that each query compares, keyed by query (`Method.compared`).
        records: Expected number of records; None if unknown.
        earlier: The earlier run that released the numbers to be used, if any.
        more: Further facts, placed before the advice.
    """
    from server.planning.guarantee_facts import describe
    from server.planning.make_plan import EXPECTED_RECORDS, large_delta
    from server.planning.signal import few_candidates, signal_advice, signals, with_weakest_parts

    estimates = [estimate.to_dict() for estimate in signals(plan, compared, records)]
    weak = signal_advice(with_weakest_parts(plan, compared, records))
    privacy = describe(plan, earlier=earlier)
    return privacy, {
        **privacy.before_asking(estimates),
        "expected_records": records,
        **more,
        "advice": [*weak, *few_candidates(plan, compared), *large_delta(plan.delta, records, EXPECTED_RECORDS)],
    }


def _loop(plan: "Plan", expected: Mapping[str, Any], shown: int | None) -> Iterator[str]:
    """Yield a sentence on the cost per text of writing section by section, for texts with sections."""
    if not (plan.by_section and expected["texts"]):
        return
    calls, read, written = (
        expected[name] / expected["texts"] for name in ("model_calls", "input_tokens", "output_tokens")
    )
    yield (
        f"texts are written section by section: {calls:.1f} model calls a text, which read {read:,.0f} tokens and "
        f"write {written:,.0f}; each reads up to {shown} words of the sections before it (method.shown_words), without "
        "which bound the tokens would grow with the square of the number of sections"
    )


def _count_in_place_of_test_texts(settings: Settings, parts: "RunComponents") -> Iterator[str]:
    """Yield advice on what it would cost to count correct answers at the hospitals, for a run without test texts.

    The count is of records that a classifier labels correctly, so each text must have one label.
    """
    from server.evaluation import federated_count
    from server.prepare.build import draft_plan

    plan, task, counted = parts.plan, parts.source.task(), federated_count.plans_count(parts.plan)
    tested = not has(settings.task, "test") or setting(settings, "task.test")
    if not plan.queries or counted or tested or not task.one_label:
        return
    with_count, _ = draft_plan(with_values(settings, {"evaluation.federated": _COUNTED}), task)
    (count,) = (query for query in with_count.queries if query.name == federated_count.NAME)
    noise = count.noise_deviation * with_count.surplus(count, with_count.parties)
    yield (
        "there are no test texts (task.test), so nothing will say whether the texts help: "
        f"evaluation.federated={_COUNTED:g} spends {percent(_COUNTED, 0)} of ε on a count of the hospitals' records on "
        f"which a classifier of the texts is right, with noise of {noise:.2g} records; it does not count the same "
        "models without the hospitals"
    )


def _backwards(settings: Settings, target: float, *, for_epsilon: bool) -> "tuple[Privacy, dict[str, Any]]":
    from server.planning.guarantee_facts import describe
    from server.planning.signal import (
        least_epsilon,
        least_records,
        signal_advice,
        signals,
        weakest,
        with_parts,
        with_weakest_parts,
    )
    from server.prepare.automatic import expected_records, resolve_auto
    from server.prepare.build import build, draft_plan

    task, records = build(settings.task).task(), expected_records(settings)

    def at(epsilon: float) -> Settings:
        return with_values(settings, {"privacy.epsilon": epsilon})

    def ratio(epsilon: float) -> float:
        return weakest(with_parts(*draft_plan(resolve_auto(at(epsilon), task), task), records)).ratio

    if for_epsilon:
        settings = at(least_epsilon(ratio, target))
    chosen = resolve_auto(settings, task)
    if not for_epsilon:
        records = least_records(*draft_plan(chosen, task), target)
    plan, choices = draft_plan(chosen, task)
    estimates = signals(plan, choices, records)
    return describe(plan), {
        "solved_for": "epsilon" if for_epsilon else "records",
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "expected_records": records,
        "signal": target,
        "decided_by": weakest(with_parts(plan, choices, records)).query,
        "queries": [
            {"name": planned.name, "kind": planned.spec.kind, "times": planned.times, "signal": estimate.to_dict()}
            for planned, estimate in zip(plan.queries, estimates, strict=True)
        ],
        "advice": signal_advice(with_weakest_parts(plan, choices, records)),
        **_chosen(settings, chosen),
    }


def _chosen(settings: Settings, resolved: Settings) -> dict[str, Any]:
    """Return the numbers that replaced `auto`, keyed by setting."""
    values = {name: setting(resolved, name) for name in (f"method.{automatic}" for automatic in settings.automatic)}
    chosen = {name: value for name, value in values.items() if value is not None}
    return {"chosen": chosen} if chosen else {}
