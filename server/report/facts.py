"""The content of a report: all documents of a run folder, read once, and the results derived from them."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from common.domain import is_one_population
from common.errors import ConfigError
from common.page.words import catalogue
from server.documents.class_sums import ClassSumsNumbers, Released
from server.documents.codec import MALFORMED, strict
from server.documents.files import read_document, read_lines
from server.documents.maps import Point, PrivateMap, TextMap
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import WORK, RoundReport
from server.documents.run import TEXTS, InputWeaknesses, RunSummary, Weakness, WeaknessCode
from server.domain import Candidate, number_from_one
from server.guarantee.messages import fill_in
from server.guarantee.words import Guarantee, guarantee_card, warning, with_statement
from server.operators.class_sums_file import check_questionnaire
from server.report.labels import LabelTable, likeness, list_confusions, list_labels
from server.report.plots import Histogram, count_bins
from server.report.quality import read_quality, read_utility, reason_not_measured
from server.report.verdict import draw_bars, reach_verdict
from server.report.votes import VoteHistogram, read_votes
from server.report.weaknesses import find_weaknesses, votes_were_noise

_UNKNOWN: dict[str, Any] = {
    "reason": None,
    "warnings": {},
    "labels": {},
    "started": None,
    "models": [],
    "encoder": None,
    "purpose": None,
    "recipient": None,
    "hospitals": [],
}
"""Values of the keys that the `run.json` of a baseline or of an earlier version lacks."""

Places = Mapping[str, Sequence[Point]]
"""Points on the map, by label."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Content of a report.

    Attributes:
        run: `run.json`; None if it cannot be read.
        privacy: `privacy.json`; None if it cannot be read.
        metrics: `metrics.json`; empty if it cannot be read.
        rounds: `rounds.jsonl`, counted from 1.
        texts: `synthetic.jsonl`, with rounds counted from 1.
        votes: Distributions of the noised votes.
        inputs: Weaknesses of the files of a simulation.
        class_sums: The numbers of `census.json`; None if there are none.
        config: `config.yaml`; None if it cannot be read.
        synthetic: Points of the texts on the map; empty if there is no map.
        simulated: Points of `map_private.json`, which only a simulation writes; always empty in a deployment.
        problems: Files that could not be read, with the reasons.
    """

    run: RunSummary | None
    privacy: Privacy | None
    metrics: Metrics
    rounds: Sequence[RoundReport]
    texts: Sequence[Candidate] = field(repr=False)
    votes: Sequence[VoteHistogram]
    inputs: Sequence[Weakness] = ()
    class_sums: ClassSumsNumbers | None
    config: str | None
    synthetic: Places = field(repr=False)
    simulated: Places = field(repr=False)
    problems: Sequence[str]

    def say(self, name: str) -> str:
        """Return the title, the lead or the reason why the run is partial, from the catalogue."""
        return fill_in(
            getattr(catalogue(__package__), name),
            run=self.run,
            privacy=self.privacy,
            kind=self.guarantee.kind,
            count=f"{len(self.texts):,}",
            made_of=(self.run and self.run.kind) or "texts",
        )

    @cached_property
    def guarantee(self) -> Guarantee:
        """The run's guarantee, in words."""
        return guarantee_card(self.privacy)

    @cached_property
    def weaknesses(self) -> tuple[Weakness, ...]:
        """Weaknesses of the run's files and of its results, the gravest first."""
        found = [*self.inputs]
        if self.run:
            found += find_weaknesses(
                self.run,
                privacy=self.privacy,
                rounds=self.rounds,
                metrics=self.metrics,
                texts=self.texts,
                votes=self.votes,
            )
        gravity = list(WeaknessCode)
        return tuple(sorted(found, key=lambda weakness: gravity.index(weakness.code)))

    @property
    def labelled(self) -> bool:
        """Whether the task has labels."""
        return not is_one_population((self.run and self.run.labels) or {text.label for text in self.texts})

    @cached_property
    def labels(self) -> LabelTable:
        """The labels, with their texts, records and recall; no rows without labels."""
        if not self.labelled:
            return LabelTable(records=None, simulation_only=False, rows=())
        return list_labels(self.run, self.privacy, self.rounds, self.metrics, self.texts)

    @cached_property
    def words(self) -> Histogram | None:
        """Histogram of the number of words in each text; None if there are no texts."""
        return count_bins([len(text.text.split()) for text in self.texts], whole=True) if self.texts else None

    def to_json(self) -> dict[str, Any]:
        """Return `report.json`, which is also the input of the page's templates."""
        texts, run, privacy = self.texts, self.run, self.privacy
        missing = reason_not_measured(self.metrics, complete=bool(run and run.complete), texts=len(texts))
        facts = {
            "run": run and _UNKNOWN | run.to_json(),
            "title": self.say("title"),
            "lead": self.say("lead"),
            "guarantee": self.guarantee,
            "partial": None if run and run.complete else self.say("partial"),
            "problems": self.problems,
            "warning": warning(privacy),
            "privacy": privacy and {"earlier": None} | privacy.to_json(),
            "released": {
                "texts": len(texts),
                "label": Counter(label for text in texts if self.labelled for label in text.labels),
                "model": Counter(text.model for text in texts),
                "round": Counter(text.round for text in texts),
                "words": self.words,
            },
            "metrics": [asdict(group) for group in self.metrics.groups],
            "rounds": [_round(report) for report in self.rounds],
            "cost": _cost(run, self.rounds),
            "votes": self.votes,
            "map": {
                source: {label: len(points) for label, points in places.items()}
                for source, places in (("synthetic", self.synthetic), ("private", self.simulated))
            },
            "config": self.config,
            "weaknesses": self.weaknesses,
            "labels": self.labels,
            "confusion": list_confusions(self.metrics.confusion, [row.label for row in self.labels.rows]),
            "likeness": likeness(self.class_sums, [text.text for text in texts]),
            "utility": read_utility(self.metrics),
            "verdict": reach_verdict(
                self.guarantee,
                read_quality(self.metrics),
                texts=len(texts),
                weaknesses=len(self.weaknesses),
                missing=missing,
                noise=votes_were_noise(self.votes),
            ),
            "bars": draw_bars(self.metrics, missing),
        }
        plain: dict[str, Any] = strict(facts)
        return plain


def gather(run: Path) -> Facts:
    """Read a run folder, complete or partial; files that cannot be read are named among the problems."""
    problems: list[str] = []
    summary = RunSummary.read(run, problems)
    privacy = Privacy.read(run, problems)
    rounds, texts = number_from_one(
        read_lines(run / RoundReport.FILE, RoundReport.from_json, problems),
        read_lines(run / TEXTS, Candidate.from_json, problems),
    )
    metrics = Metrics.read(run, problems)
    config = read_document(run / "config.yaml", str, problems)
    synthetic, simulated = _map(run, privacy, texts, problems)
    inputs = InputWeaknesses.read(run, problems, needed=False)
    return Facts(
        run=summary,
        privacy=privacy and (privacy if privacy.statement else with_statement(privacy)),
        metrics=metrics or Metrics(),
        rounds=rounds,
        texts=texts,
        votes=list(read_votes(run, privacy, rounds)) if privacy else [],
        inputs=inputs.weaknesses if inputs else (),
        class_sums=_class_sums(run, problems),
        config=config,
        synthetic=synthetic,
        simulated=simulated,
        problems=problems,
    )


def _class_sums(run: Path, problems: list[str]) -> ClassSumsNumbers | None:
    """Return the released class sums; None if there are none that can be read."""
    released = Released.read(run, problems, needed=False)
    if released is None:
        return None
    try:
        numbers = ClassSumsNumbers.from_json(released.numbers)
        finite = math.isfinite(math.fsum((*numbers.counts, numbers.noise, numbers.count_noise)))
    except MALFORMED:
        finite = False
    if not finite:
        problems.append(f"{Released.FILE} is not in the format of this program")
        return None
    try:
        if numbers.questionnaire:
            check_questionnaire(numbers.questionnaire, run / Released.FILE)
    except ConfigError as error:
        problems.append(f"{Released.FILE}: {error.problem}")
        return replace(numbers, questionnaire=None)
    return numbers


def _map(
    run: Path, privacy: Privacy | None, texts: Sequence[Candidate], problems: list[str]
) -> tuple[dict[str, list[Point]], Places]:
    """Return points by label, synthetic and private; private points are read only in a simulation."""
    drawn = TextMap.read(run, problems, needed=False) or TextMap()
    synthetic: dict[str, list[Point]] = {}
    if drawn.points and len(drawn.points) != len(texts):
        problems.append(f"{TextMap.FILE} does not belong to the texts in {TEXTS}")
    elif drawn.points:
        for text, point in zip(texts, drawn.points, strict=True):
            synthetic.setdefault(text.label, []).append(point)
    if privacy is None or not privacy.simulation:
        if (run / PrivateMap.FILE).exists():
            problems.append(f"{PrivateMap.FILE} was not read: private records are drawn only in simulations")
        return synthetic, {}
    private = PrivateMap.read(run, problems, needed=False)
    return synthetic, private.points if private and synthetic else {}


def _round(report: RoundReport) -> dict[str, Any]:
    """Return a round with all of its fields; measurements that a baseline lacks are null, empty or zero."""
    line = {"fid": None, "paid": {}} | report.to_json()
    return line | {"seconds": dict.fromkeys(WORK, 0.0) | dict(report.seconds or {})}


def _cost(run: RunSummary | None, rounds: Sequence[RoundReport]) -> dict[str, Any]:
    """Sum model calls, tokens and known cost; take the seconds from `run.json` or, if that is missing, the rounds."""
    return {
        "calls": sum(report.calls for report in rounds),
        "input_tokens": sum(report.tokens.input for report in rounds),
        "cached_tokens": sum(report.tokens.cached for report in rounds),
        "output_tokens": sum(report.tokens.output for report in rounds),
        "seconds": run.seconds if run else sum(sum((report.seconds or {}).values()) for report in rounds),
        "money": _money(rounds),
    }


def _money(rounds: Sequence[RoundReport]) -> dict[str, float | None]:
    """Return the cost of all rounds for each model, in the prices' currency; None if the model's price is unknown."""
    sums: dict[str, float | None] = {}
    for report in rounds:
        for model, paid in report.paid.items():
            before = sums.get(model, 0.0)
            sums[model] = None if paid.cost is None or before is None else before + paid.cost
    return sums
