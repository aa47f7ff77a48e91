"""What is poor about a run's results, and what to change: a sentence each, for the log, the page and `status`.

They are made of what a run folder has, which is public or released: texts, figures on test texts, noised answers. Only
a simulation has the records' own labels (`simulations/private_evaluation`), and what they say is marked as such.

    accuracy     not clearly above the share of the most frequent label: the lower end of its 95 % interval is not above
    FID          higher in the last round than in an earlier one, by more than two standard errors of the difference
    votes        spread over the candidates, without their noise, by less than half of the noise (`signal.HOPELESS`)
    labels       shares of texts and records that differ by more than a quarter; labels without any text
    lost texts   more than half of the requested ones

Before the first answer a run warns of queries that noise is expected to drown (`server/planning/signal.py`). Such a
warning is a weakness too, until the votes are at hand: then what was measured takes the place of what was expected.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from server.planning.signal import HOPELESS
from server.planning.statement import show_epsilon
from server.report.labels import record_shares, weights_of
from server.report.reading import JsonObject
from server.report.utility import accuracies

RISE = 2.0
"""Standard errors of a difference in FID from which it counts: one in 40 is above by chance. For few texts the error is
itself estimated too large rather than too small (`server.metrics.fidelity.fid_error`)."""
APART = 0.25
"""Total variation between the labels of texts and records from which they differ widely: then one text in four would
have to have another label."""
MOST_LOST = 0.5
"""Share of the requested texts above which more were lost than kept."""

_DROPPED = ("echoes", "copies", "duplicates")
"""Rules of `server/llm/clean.py` that drop a text."""
_NAMED = 3
"""Most labels that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakness:
    """Something poor about a run.

    Attributes:
        what: What is poor, with the run's own figures.
        do: What to change.
        simulation_only: Whether the figures are of private records, without noise.
    """

    what: str
    do: str
    simulation_only: bool = False

    def __str__(self) -> str:
        """One line."""
        return f"{self.what}{' (simulation only)' if self.simulation_only else ''}; {self.do}"


def weaknesses(facts: Mapping[str, Any], metrics: JsonObject, texts: Sequence[JsonObject]) -> list[dict[str, Any]]:
    """All weaknesses of a run, as `report.json` has them.

    Args:
        facts: "run", "privacy", "rounds" and "votes", as `report.json` has them.
        metrics: Content of `metrics.json`; empty if there is none.
        texts: The lines of `synthetic.jsonl`.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: A file is in another format.
    """
    run, privacy, rounds = facts["run"], facts["privacy"], facts["rounds"]
    found = [
        *_accuracy(run, rounds, metrics, texts),
        *_fid(run, privacy, rounds),
        *_votes(run, privacy, facts["votes"]),
        *_labels(run, privacy, rounds, metrics, texts),
        *_lost(rounds),
    ]
    return [asdict(weakness) for weakness in found]


def read_weaknesses(run: Path) -> list[Weakness]:
    """The weaknesses in the report of a run folder; none without a report, or with one that is damaged."""
    path = run / "report.json"
    try:
        facts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return [Weakness(**weakness) for weakness in facts.get("weaknesses", ())]
    except (AttributeError, TypeError, ValueError):  # one such folder must not keep `status` from showing the others
        return []


def _accuracy(
    run: JsonObject, rounds: Sequence[JsonObject], metrics: JsonObject, texts: Sequence[JsonObject]
) -> Iterator[Weakness]:
    measured = accuracies(metrics)
    accuracy, majority, tested = measured.synthetic, measured.majority, measured.tested
    if not texts or accuracy is None or majority is None or majority == 1 or not tested:
        return
    if measured.clearly_above_guessing:
        return
    what, teach = ("below", "teach less") if accuracy < majority else ("not clearly above", "may teach no more")
    bare = sum(not description for description in run["labels"].values())
    models = sorted(rounds[0]["requested"]) if rounds else []
    steps = [
        *(["test on more texts (task.test)"] if accuracy > majority else []),
        *([f"describe the labels (task.labels: {bare} of {len(run['labels'])} have no description)"] if bare else []),
        *([f"try method=census (now {run['method']})"] if run["method"] != "census" else []),
        f"write more texts (method.samples, now {len(texts)})",
        f"take larger language models (now {_listed(models)})" if models else "take larger language models",
    ]
    yield Weakness(
        what=f"accuracy {accuracy:.2f} on {tested} test texts is {what} the share of the most frequent label, "
        f"{majority:.2f}: the texts {teach} than guessing",
        do=_either(steps),
    )


def _fid(run: JsonObject, privacy: JsonObject | None, rounds: Sequence[JsonObject]) -> Iterator[Weakness]:
    """FID is biased upward for few texts: rounds with more texts than the last have a lower one for that alone."""
    *earlier, last = [entry for entry in rounds if entry.get("fid_error") is not None] or [{"candidates": 0}]
    earlier = [entry for entry in earlier if entry["candidates"] <= last["candidates"]]
    if not earlier:
        return
    best = min(earlier, key=lambda entry: float(entry["fid"]))
    if last["fid"] - best["fid"] <= RISE * math.hypot(last["fid_error"], best["fid_error"]):
        return
    steps = [f"stop there (method.rounds={best['round']}, now {len(rounds)})"] if best["round"] > 1 else []
    if privacy and privacy["queries"] and not math.isinf(float(privacy["planned_epsilon"])):
        steps += _more_signal(run, privacy)
    yield Weakness(
        what=f"FID rises: {last['fid']:.3g} after round {last['round']}, {best['fid']:.3g} after round "
        f"{best['round']}, and lower is nearer to real texts",
        do=_either(steps or ["take another encoder (embedding)", "other language models (llm)"]),
    )


def _votes(run: JsonObject, privacy: JsonObject | None, votes: Sequence[JsonObject]) -> Iterator[Weakness]:
    """Votes that came, by query over all rounds; and warnings of queries without such."""
    warnings: Mapping[str, str] = run["warnings"]
    measured = [vote for vote in votes if vote["noise"]]
    names = list(dict.fromkeys(vote["query"] for vote in measured))
    for name in names:
        answers = [vote for vote in measured if vote["query"] == name]
        numbers = sum(vote["candidates"] for vote in answers)
        spread, noise = (
            sum(vote["candidates"] * vote[part] ** 2 for vote in answers) / numbers for part in ("spread", "noise")
        )
        if spread - noise >= HOPELESS**2 * noise:
            continue
        advice = warnings.get(name, "").partition("; ")[2]
        yield Weakness(
            what=f"{name} were noise: {numbers:,} noised numbers spread by {math.sqrt(spread):.2g} votes, and noise "
            f"alone by {math.sqrt(noise):.2g}",
            do=advice or f"it takes {_either([*_more_signal(run, privacy), 'fewer candidates (method.samples)'])}",
        )
    for name, warning in warnings.items():
        if name not in names:
            what, _, do = warning.partition("; ")
            yield Weakness(what=what, do=do)


def _labels(
    run: JsonObject,
    privacy: JsonObject | None,
    rounds: Sequence[JsonObject],
    metrics: JsonObject,
    texts: Sequence[JsonObject],
) -> Iterator[Weakness]:
    weights = weights_of(texts)
    total = sum(weights.values())
    if total <= 0:
        return
    if without := [label for label in run["labels"] if label not in weights]:
        yield Weakness(
            what=f"{len(without)} of {len(run['labels'])} labels have no text: {_listed(without)}",
            do=f"write more texts (method.samples, now {len(texts)}), or describe these labels (task.labels)",
        )
    shares, exact = record_shares(privacy, rounds, metrics)
    if not shares:
        return
    gaps = {label: weights[label] / total - shares.get(label, 0.0) for label in sorted({*shares, *weights})}
    apart = sum(map(abs, gaps.values())) / 2
    if apart <= APART:
        return
    widest = sorted(gaps, key=lambda label: -abs(gaps[label]))[:_NAMED]
    named = ", ".join(
        f"{label} {weights[label] / total:.0%} of the texts and {shares.get(label, 0.0):.0%} of the records"
        for label in widest
    )
    by = "" if exact else ", by the released, noised counts"
    steps = ["weigh or draw the texts by the labels' shares before training"]
    if run["method"] not in {"census", "dpga"}:
        steps.append(f"try method=census or dpga (now {run['method']}), which ask how many records have each label")
    yield Weakness(
        what=f"labels of texts and records differ by {apart:.0%}{by}: {named}",
        do=_either(steps),
        simulation_only=exact,
    )


def _lost(rounds: Sequence[JsonObject]) -> Iterator[Weakness]:
    requested, lost = (sum(sum(entry[part].values()) for entry in rounds) for part in ("requested", "lost"))
    if lost <= MOST_LOST * requested:
        return
    kinds: Counter[str] = Counter()
    for entry in rounds:
        for counts in entry.get("losses", {}).values():
            kinds.update(counts)
        for counts in entry.get("cleaned", {}).values():
            dropped = (kind for kind in counts if kind in _DROPPED or kind.startswith("no structure"))
            kinds.update({kind: counts[kind] for kind in dropped})
    reasons = f" ({', '.join(f'{kind}: {count:,}' for kind, count in kinds.most_common(_NAMED))})" if kinds else ""
    yield Weakness(
        what=f"{lost:,} of {requested:,} requested texts were lost{reasons}",
        do="take other language models (llm), or say more precisely what a text is (task.kind, task.wording)",
    )


def _more_signal(run: JsonObject, privacy: JsonObject | None) -> list[str]:
    now = f" (now {show_epsilon(privacy['planned_epsilon'])})" if privacy else ""
    return ["more records", f"a larger epsilon{now}", *(["method=census"] if run["method"] != "census" else [])]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _either(steps: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(steps[:-1]), steps[-1]]))
