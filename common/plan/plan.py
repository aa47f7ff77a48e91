"""The plan: everything that determines how private a run is, fixed and hashed before private data is accessed.

    Plan without noise ─▶ calibrate(...) ─▶ Plan ─▶ digest() in every message and every ledger entry
                                              │
                                              ├─▶ share_sigma(query)   noise that each party adds
                                              ├─▶ releases()           all possible releases, for the accountant
                                              └─▶ guarantee.verify, .epsilon_released, .epsilon_against

With secure aggregation a round is accepted with at least `survivors` parties, of which `colluders` may reveal their
noise to the coordinator, so that U = parties - max_dropouts - colluders shares of noise are certain to be in the sum
and unknown to the coordinator. Each party adds one U-th of the noise, in terms of the variance of a Gaussian or the
shape of a Laplace distribution. Additional survivors only increase the noise. Without secure aggregation, U = 1 and
each party adds the whole noise. Mechanisms inside a party also have U = 1.

A query is answered up to `times` times, and each answer may be attempted `max_attempts` times, with fresh noise; all
attempts are paid for. All attempts at all answers are numbered consecutively from 0, in the order of `queries`.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from common.domain import FORMER_NAMES, MOST_RECORDS, NOT_STATED, PRESENT_NAMES, UNLABELLED, is_one_population
from common.errors import ConfigError, PlanError
from common.plan.checks import check_parties, check_query
from common.plan.planned import PlannedQuery, draws, release, subsample
from common.privacy.accountant import ReleasedAnswers
from common.queries.closed_set import spec_from_dict, spec_to_dict
from common.validate import check_fields, in_range, integers, not_empty, on_one_line, one_of, printable, probability

UNITS = ("sample", "user")

STATED = ("purpose", "recipient", "contact", "retention", "models", "forecast")
"""Fields that are the coordinator's word alone: they are part of the plan's digest, but nothing enforces them."""

LONGEST_STATEMENT = 1000
"""Maximum number of characters in one of the coordinator's statements."""

MOST_PARTIES = 2**20
MOST_QUERIES = 100
MOST_ANSWERS = 10_000
"""Maximum number of answers, including attempts. A party's work to check a plan and its number of keys grow with it."""

SMALLEST_DELTA = 1e-30
"""Minimum delta of a plan, far above the smallest floating-point number."""

NOISE_REACH = 100
"""Number of scales that planned noise exceeds only with probability below 1e-40: exp(-100) < 4e-44 for a Laplace draw,
at most 2 exp(-100^2 / 2) for a Gaussian one."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The agreement between coordinator and parties.

    Attributes:
        method: Name of the method.
        labels: Labels in the order of their numbers.
        encoder: Digest of the sentence encoder.
        parties: Number of parties.
        max_dropouts: Number of parties that may be missing from a sum.
        colluders: Number of parties that may reveal their noise to the coordinator while epsilon still holds.
        threshold: Number of parties needed to reconstruct another party's secret.
        secure: Whether secure aggregation is on.
        degree: Number of neighbours of each party in secure aggregation: parties - 1 for the full graph, or a smaller
            even number; 0 without secure aggregation.
        corrupt: Number of parties that may collude with the coordinator without exposing a mask.
        roster: Hex digest of the parties' identities, for a coordinator that is not trusted at all. Empty if the
            coordinator is trusted to follow the protocol.
        epsilon: Bound on the privacy loss of everything released; infinite if there is no noise, 0 if there are no
            queries.
        delta: Delta at which epsilon holds.
        unit: "sample" or "user": the unit whose presence is hidden.
        queries: All queries that can be asked; may be empty.
        max_attempts: Number of attempts allowed for one answer, each with fresh noise and at its full price.
        calibration: "tight", or "paper" if sigma is computed by the papers' formula for the classical Gaussian
            mechanism.
        max_records_per_party: Public bound on the number of records per party, the same as in the parties' roster. With
            this bound, sums provably fit the ring, and a sum that is too large for this number of records is rejected.
        purpose: Purpose of the texts; like the other fields of `STATED`, the coordinator's word alone.
        recipient: Recipient of the texts.
        contact: Whom a hospital can ask about the recipient's use of the texts.
        retention: How long the recipient keeps the texts, and whether they may be passed on.
        models: The coordinator's language models, who runs them, and where.
        forecast: One sentence on the quality that the coordinator expects of the answers.

    Raises:
        ConfigError: If a single value is out of range.
        PlanError: If the values contradict each other.
    """

    method: str
    labels: tuple[str, ...]
    encoder: str
    parties: int
    max_dropouts: int
    colluders: int
    threshold: int
    secure: bool
    epsilon: float
    delta: float
    unit: str
    queries: tuple[PlannedQuery, ...]
    degree: int = 0
    corrupt: int = 0
    roster: str = ""
    max_attempts: int = 1
    calibration: str = "tight"
    max_records_per_party: int = MOST_RECORDS
    purpose: str = NOT_STATED
    recipient: str = NOT_STATED
    contact: str = NOT_STATED
    retention: str = NOT_STATED
    models: str = NOT_STATED
    forecast: str = NOT_STATED

    def __post_init__(self) -> None:
        not_empty(labels=self.labels, encoder=self.encoder)
        on_one_line("labels", self.labels)
        printable(method=self.method)
        printable(most=LONGEST_STATEMENT, **{name: getattr(self, name) for name in STATED})
        integers(1, parties=self.parties, max_records_per_party=self.max_records_per_party)
        integers(1, threshold=self.threshold, max_attempts=self.max_attempts)
        integers(0, max_dropouts=self.max_dropouts, colluders=self.colluders)
        integers(0, degree=self.degree, corrupt=self.corrupt)
        probability(delta=self.delta)
        in_range(1, MOST_PARTIES, parties=self.parties)
        in_range(0, MOST_QUERIES, queries=len(self.queries))
        if self.total_queries > MOST_ANSWERS:
            expected = f"a number in [0, {MOST_ANSWERS}]"
            do = "Choose fewer rounds, or fewer attempts"
            raise ConfigError("answers, attempts included", expected=expected, got=self.total_queries, do=do)
        in_range(SMALLEST_DELTA, 1, delta=self.delta)
        one_of("unit", self.unit, among=UNITS)
        one_of("calibration", self.calibration, among=("tight", "paper"))
        if not (self.epsilon > 0 or (self.epsilon == 0 and not self.queries)):
            raise ConfigError("epsilon", expected="a number > 0, or inf for no noise", got=self.epsilon)
        if type(self.secure) is not bool:
            raise ConfigError("secure", expected="true or false", got=repr(self.secure))
        for what, names in (("labels", self.labels), ("queries", tuple(query.name for query in self.queries))):
            if len(set(names)) < len(names):
                raise ConfigError(what, expected="each name once", got=names)
        if UNLABELLED in self.labels and not is_one_population(self.labels):
            raise ConfigError("labels", expected=f"no other label beside {UNLABELLED!r}", got=self.labels)
        subsamples = [name for query in self.queries for name in draws(query, self.max_attempts) if name]
        if len(set(subsamples)) < len(subsamples):
            # A query named "a/0" and the first subsample of "a" would be priced as one, here and in every ledger.
            raise ConfigError("names of subsamples", expected="each once", got="queries whose names make the same")
        object.__setattr__(self, "epsilon", float(self.epsilon) + 0.0)  # one spelling of 0: -0.0 becomes 0.0
        object.__setattr__(self, "delta", float(self.delta))
        check_parties(self)
        for query in self.queries:
            check_query(self, query)

    @property
    def survivors(self) -> int:
        """Minimum number of parties in an accepted sum."""
        return self.parties - self.max_dropouts

    @property
    def malicious(self) -> bool:
        """Whether secure aggregation is secure against a coordinator that deviates from the protocol."""
        return self.secure and bool(self.roster)

    @property
    def largest_coalition(self) -> int:
        """Maximum number of parties that can collude with the coordinator without exposing a mask.

        On the full graph this number is below the threshold and, in malicious mode, at most `corrupt`, on which the
        number of signatures depends. A sparse graph is planned for `corrupt` such parties: fewer of them than the
        threshold are neighbours of any one party, except with a probability that the parties bound
        (`common.plan.aggregation.log2_breach`).
        """
        if self.degree < self.parties - 1:
            return self.corrupt
        return min(self.threshold - 1, self.corrupt) if self.malicious else self.threshold - 1

    @property
    def noise_parties(self) -> int:
        """U: number of shares of noise that are certainly in an accepted sum and unknown to the coordinator."""
        return self.survivors - self.colluders if self.secure else 1

    def shares(self, query: PlannedQuery) -> int:
        """Return the number of shares in an answer's planned noise: U for a sum, 1 for noise inside each party."""
        return self.noise_parties if query.summed else 1

    def share_sigma(self, query: PlannedQuery) -> float:
        """Return the scale of the Gaussian noise that each party adds, in grid units: sigma / sqrt(U)."""
        return query.scale / math.sqrt(self.shares(query))

    def surplus(self, query: PlannedQuery, parties: int) -> float:
        """Return the standard deviation of the noise in a sum of `parties` parties, relative to that of U shares."""
        return math.sqrt(parties / self.shares(query))

    def largest_sum(self, query: PlannedQuery, parties: int) -> float:
        """Return a bound on each coordinate of a sum over `parties` honest parties, in grid units, for a summed query.

        Each party's contribution is bounded, and the noise exceeds its part of this bound only with probability below
        1e-40.
        """
        assert query.spec.largest is not None
        return parties * (self.max_records_per_party * query.spec.largest + NOISE_REACH * query.scale)

    @property
    def labels_per_record(self) -> int:
        """Maximum number of labels under which one record counts in any answer."""
        return max((query.spec.labels_per_record for query in self.queries), default=1)

    @property
    def by_section(self) -> bool:
        """Whether records are taken section by section; labels are then headings (`common.queries.section_order`)."""
        return any(query.spec.by_section for query in self.queries)

    @property
    def questions(self) -> int:
        """Number of questions of a run, each of which may be attempted several times."""
        return sum(query.times for query in self.queries)

    @property
    def total_queries(self) -> int:
        """Number of answers that are paid for, attempts included."""
        return self.questions * self.max_attempts

    def query(self, index: int) -> PlannedQuery:
        """Return the planned query to which attempt number `index` belongs.

        Raises:
            PlanError: No such attempt is planned.
        """
        return self._place(index)[0]

    def index(self, name: str, nth: int, attempt: int = 0) -> int:
        """Return the index of an attempt at the nth answer to the query with this name.

        Raises:
            PlanError: No such attempt is planned.
        """
        before = 0
        for query in self.queries:
            if query.name == name and 0 <= nth < query.times and 0 <= attempt < self.max_attempts:
                return (before + nth) * self.max_attempts + attempt
            before += query.times
        raise PlanError("a query that was not planned", got=f"{name}, answer {nth}, attempt {attempt}")

    def draw(self, index: int) -> str:
        """Return the name of the subsample used for attempt number `index`; empty if all units take part."""
        query, nth = self._place(index)
        return subsample(query, nth, index % self.max_attempts)

    def answer_release(self, index: int, shares: int | None = None) -> ReleasedAnswers:
        """Return the release of attempt `index` alone, as a ledger accounts for it; see `releases`."""
        return self._release(self.query(index), shares, draw=self.draw(index), times=1)

    def releases(self, shares: int | None = None) -> tuple[ReleasedAnswers, ...]:
        """Return everything that the run can release, all attempts included.

        Args:
            shares: Number of shares of noise in each sum that are unknown to the observer; None for the guaranteed
                number, U.
        """
        return tuple(item for query in self.queries for item in self.releases_of(query, shares))

    def releases_of(self, query: PlannedQuery, shares: int | None = None) -> tuple[ReleasedAnswers, ...]:
        """Return the releases of one query; see `releases`."""
        return tuple(
            self._release(query, shares, draw=draw, times=times)
            for draw, times in draws(query, self.max_attempts).items()
        )

    def _release(self, query: PlannedQuery, shares: int | None, *, draw: str, times: int) -> ReleasedAnswers:
        planned = self.shares(query)
        unknown = planned if shares is None or not query.summed else shares
        return release(query, shares=unknown, planned=planned, draw=draw, times=times)

    def _place(self, index: int) -> tuple[PlannedQuery, int]:
        nth = index // self.max_attempts
        for query in self.queries:
            if 0 <= nth < query.times:
                return query, nth
            nth -= query.times
        raise PlanError("number of an answer", expected=f"0 to {self.total_queries - 1}", got=index)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; an infinite epsilon is the string "inf"."""
        plain: dict[str, Any] = asdict(self)
        plain["method"] = FORMER_NAMES.get(self.method, self.method)
        plain["queries"] = [{**asdict(query), "spec": spec_to_dict(query.spec)} for query in self.queries]
        plain["epsilon"] = "inf" if self.epsilon == math.inf else self.epsilon
        return json.loads(json.dumps(plain, allow_nan=False))  # type: ignore[no-any-return]

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> "Plan":
        """Return the plan whose `to_dict` returned these values; raise PlanError or ConfigError for other values."""
        try:
            queries = tuple(
                PlannedQuery(**_exactly(PlannedQuery, {**query, "spec": spec_from_dict(query["spec"])}))
                for query in plain["queries"]
            )
            epsilon = math.inf if plain["epsilon"] == "inf" else plain["epsilon"]
            method = PRESENT_NAMES.get(plain["method"], plain["method"])
            values = _exactly(Plan, {**plain, "method": method, "queries": queries, "epsilon": epsilon})
            plan = Plan(**values | {"labels": tuple(values["labels"])})
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            raise _unreadable("the fields of Plan, each of its type", type(error).__name__) from error
        if plan.to_dict() != plain:
            raise _unreadable("the form that to_dict gives", "another")
        return plan

    @staticmethod
    def from_json(data: bytes | str) -> "Plan":
        """Return the plan whose `to_json` returned this; raise PlanError or ConfigError for anything else."""
        try:
            plain = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise _unreadable("JSON", type(error).__name__) from error
        return Plan.from_dict(plain)

    def digest(self) -> bytes:
        """Return the SHA-256 of the canonical JSON, which is equal only for equal plans."""
        return self._digest

    @cached_property
    def _digest(self) -> bytes:
        """The digest, computed only once, since a party compares it with the digest in each message."""
        return hashlib.sha256(self.to_json()).digest()

    def to_json(self) -> bytes:
        """Return the canonical JSON, which is sent to the parties and from which the digest is computed."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _exactly(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` if they are exactly the fields of `kind`, each of its type; else raise KeyError or PlanError."""
    names = {field.name for field in fields(kind)}
    if set(values) != names:
        raise KeyError(*sorted(names ^ set(values)))
    try:
        check_fields(kind, values)
    except ConfigError as error:
        raise _unreadable(error.expected, error.got, f": {error.what}") from error
    return dict(values)


def _unreadable(expected: object, got: object, field: str = "") -> PlanError:
    do = "Use the version of Caucus that wrote it"
    return PlanError(f"a plan that cannot be read{field}", expected=expected, got=got, do=do)
