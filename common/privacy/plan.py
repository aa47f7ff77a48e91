"""The agreed object: everything that decides how private a run is, fixed and hashed before private data is touched.

    calibrate(...) ─▶ Plan ─▶ digest() in every message and every ledger entry
                        │
                        ├─▶ share_sigma(query)        what each party adds
                        ├─▶ verify(plan)              epsilon of what is released, against the world
                        └─▶ epsilon_against(plan, c)  epsilon of one party's answers, against a colluding coordinator

With secure aggregation a round is accepted with at least `survivors` parties, of which `colluders` may tell the
coordinator their noise, so that U = parties - max_dropouts - colluders shares are certain to be there and unknown.
Each party adds variance sigma^2 / U; more survivors only add noise. Without it U = 1: each party adds all the noise.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from common.errors import ConfigError, PlanError
from common.privacy import accountant
from common.privacy.accountant import Release
from common.queries import VotesSpec
from common.validate import at_least, not_empty, one_of, probability

SMALLEST_SHARE = 2.0
"""Grid units. Below it a sum of shares is not close enough to one discrete Gaussian: tau is 7e-17 here, 5e-4 at 1."""

_NOISE_REACH = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedQuery:
    """A query that may be asked up to `times` times.

    Attributes:
        name: Name in statements and ledgers.
        spec: Its specification, with its sensitivity.
        times: How many answers are paid for.
        sigma: Scale, in grid units, of the noise of U shares together, the least that a sum carries; 0 is none.
    """

    name: str
    spec: VotesSpec
    times: int
    sigma: float

    def __post_init__(self) -> None:
        not_empty(name=self.name)
        _integers(1, times=self.times)
        at_least(0, sigma=self.sigma)
        # One spelling for each number, so that equal plans have equal digests.
        object.__setattr__(self, "sigma", float(self.sigma))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What coordinator and parties agree on.

    Attributes:
        method: Name of the method.
        labels: Labels in the order of their numbers.
        encoder: Digest of the sentence encoder.
        parties: How many parties there are.
        max_dropouts: How many may be missing from a sum.
        colluders: How many may tell the coordinator their noise without epsilon being exceeded.
        threshold: Parties that it takes to reconstruct a secret of another.
        secure: Whether secure aggregation is on.
        degree: Neighbours of each party in it: parties - 1 for the full graph, an even number below, 0 without it.
        corrupt: Parties that may pool what they see with the coordinator without a mask being lifted.
        roster: Hex digest of the parties' identities: the coordinator is trusted with nothing. Empty: it is trusted
            to follow the protocol.
        epsilon: Promised for everything released; infinite for no noise.
        delta: Promised with it.
        unit: "sample" or "user": whose presence is hidden.
        queries: All that can be asked.
        max_records_per_party: Bound on a party's records, public, so that sums provably fit the ring.

    Raises:
        ConfigError: If a single value is out of range.
        PlanError: If the values do not go together.
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
    max_records_per_party: int = 2**20

    def __post_init__(self) -> None:
        not_empty(method=self.method, labels=self.labels, encoder=self.encoder, queries=self.queries)
        _integers(1, parties=self.parties, max_records_per_party=self.max_records_per_party, threshold=self.threshold)
        _integers(0, max_dropouts=self.max_dropouts, colluders=self.colluders)
        _integers(0, degree=self.degree, corrupt=self.corrupt)
        probability(delta=self.delta)
        one_of(("sample", "user"), unit=self.unit)
        if not self.epsilon > 0:
            raise ConfigError("epsilon", expected="a number > 0, or inf for no noise", got=self.epsilon)
        if type(self.secure) is not bool:
            raise ConfigError("secure", expected="true or false", got=repr(self.secure))
        for what, names in (("labels", self.labels), ("queries", tuple(query.name for query in self.queries))):
            if len(set(names)) < len(names):
                raise ConfigError(what, expected="each name once", got=names)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        _check_parties(self)
        for query in self.queries:
            _check_query(self, query)

    @property
    def survivors(self) -> int:
        """The fewest parties that an accepted sum holds."""
        return self.parties - self.max_dropouts

    @property
    def malicious(self) -> bool:
        """Whether secure aggregation holds against a coordinator that departs from the protocol."""
        return self.secure and bool(self.roster)

    @property
    def largest_coalition(self) -> int:
        """Colluders that can pool all they see without lifting a mask.

        Fewer than the threshold; and no more than planned for, where signatures or a sparse graph count on that.
        """
        trusting = not self.malicious and self.degree == self.parties - 1
        return self.threshold - 1 if trusting else min(self.threshold - 1, self.corrupt)

    @property
    def noise_parties(self) -> int:
        """U: shares of noise that are certain to be in an accepted sum and unknown to the coordinator."""
        return self.survivors - self.colluders if self.secure else 1

    def share_sigma(self, query: PlannedQuery) -> float:
        """Scale of the noise that each party adds, in grid units: sigma / sqrt(U)."""
        return query.sigma / math.sqrt(self.noise_parties)

    def release(self, query: PlannedQuery) -> Release:
        """One answer to a query, as accountant and ledgers count it."""
        return _release(query, shares=self.noise_parties, share_sigma=self.share_sigma(query))

    @property
    def total_queries(self) -> int:
        """How many answers are paid for in all; they are numbered from 0 in the order of `queries`."""
        return sum(query.times for query in self.queries)

    def query(self, index: int) -> PlannedQuery:
        """The planned query that answer number `index` belongs to.

        Raises:
            PlanError: No such answer is planned.
        """
        left = index
        for query in self.queries:
            if 0 <= left < query.times:
                return query
            left -= query.times
        raise PlanError("number of an answer", expected=f"0 to {self.total_queries - 1}", got=index)

    def answer_release(self, index: int) -> Release:
        """Answer number `index` alone, as a ledger counts it."""
        return self.release(self.query(index))

    def releases(self) -> tuple[Release, ...]:
        """Everything that the run can release."""
        return tuple(replace(self.release(query), times=query.times) for query in self.queries)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; an infinite epsilon is the string "inf"."""
        plain: dict[str, Any] = asdict(self)
        plain["epsilon"] = "inf" if self.epsilon == math.inf else self.epsilon
        return json.loads(json.dumps(plain, allow_nan=False))  # type: ignore[no-any-return]

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> "Plan":
        """Inverse of `to_dict`; anything else is refused with a PlanError or ConfigError."""
        try:
            queries = tuple(
                PlannedQuery(
                    **_exactly(PlannedQuery, {**query, "spec": VotesSpec(**_exactly(VotesSpec, query["spec"]))})
                )
                for query in plain["queries"]
            )
            values = {**plain, "queries": queries, "labels": tuple(plain["labels"]), "epsilon": float(plain["epsilon"])}
            plan = Plan(**_exactly(Plan, values))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PlanError(
                "a plan that cannot be read", expected="the fields of Plan, each of its type", got=type(error).__name__
            ) from error
        if plan.to_dict() != plain:
            raise PlanError("a plan that cannot be read", expected="the form that to_dict gives")
        return plan

    def digest(self) -> bytes:
        """SHA-256 of the canonical JSON: equal for equal plans and for no others."""
        return hashlib.sha256(self.to_json()).digest()

    def to_json(self) -> bytes:
        """Canonical JSON: what travels, and what the digest is taken of."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def calibrate(
    *,
    method: str,
    labels: tuple[str, ...],
    encoder: str,
    parties: int,
    max_dropouts: int,
    colluders: int,
    threshold: int,
    secure: bool,
    epsilon: float,
    delta: float,
    unit: str,
    name: str,
    spec: VotesSpec,
    times: int,
    degree: int | None = None,
    corrupt: int | None = None,
    roster: str = "",
    max_records_per_party: int = 2**20,
) -> Plan:
    """The plan that answers one query `times` times with the least noise that keeps (epsilon, delta).

    Delta includes what the noise's imperfections cost, c touched coordinates in all (`accountant` has the proof):
    exp(c tau) for a sum of U shares, and (1 + e^epsilon) c U times the sampler's total variation.

    Raises:
        ConfigError: If a single value is out of range.
        PlanError: If the values do not go together.
    """
    neighbours = (parties - 1 if degree is None else degree) if secure else 0
    pooling = (colluders if corrupt is None else corrupt) if secure else 0

    def plan(sigma: float, noise: float) -> Plan:
        query = PlannedQuery(name=name, spec=spec, times=times, sigma=sigma)
        return Plan(
            method=method, labels=labels, encoder=encoder, parties=parties, max_dropouts=max_dropouts,
            colluders=colluders, threshold=threshold, secure=secure, epsilon=noise, delta=delta, unit=unit,
            queries=(query,), degree=neighbours, corrupt=pooling, roster=roster,
            max_records_per_party=max_records_per_party,
        )  # fmt: skip

    # The plan without noise has all other checks, and U; the continuous sigma, at most a millionth too small, tells
    # whether the grid is fine enough, which no nudging upward may hide.
    shares = plan(0.0, math.inf).noise_parties
    plan(accountant.continuous_sigma(spec.shifts, times, epsilon, delta), epsilon)
    sigma = accountant.calibrate_gaussian(spec.shifts, times, epsilon, delta, shares=shares, records=spec.max_records)
    return plan(sigma, epsilon)


def verify(plan: Plan) -> float:
    """Epsilon, at the plan's delta, of all that it can release.

    Raises:
        PlanError: If that is more than the plan promises.
    """
    spent = accountant.epsilon(plan.releases(), plan.delta)
    if spent > plan.epsilon:
        raise PlanError(
            "noise in the plan", expected=f"enough for epsilon {plan.epsilon:g}", got=f"epsilon {spent:g}",
            do="Refuse this plan, or calibrate it again.",
        )  # fmt: skip
    return spent


def epsilon_against(plan: Plan, colluders: int) -> float:
    """Epsilon of one party's answers if the coordinator and that many other parties pool what they know.

    In the worst accepted case, the fewest survivors. Their sum hides the party behind its own share of noise and those
    of the survivors that do not collude; a coalition larger than secure aggregation is planned for may lift its mask,
    and without secure aggregation there is none: its own share alone.

    Args:
        plan: The plan.
        colluders: 0 to parties - 1.
    """
    if not 0 <= colluders < plan.parties:
        raise ConfigError("colluders", expected=f"0 to {plan.parties - 1} other parties", got=colluders)
    alone = not plan.secure or colluders > plan.largest_coalition
    shares = 1 if alone else plan.survivors - colluders
    if shares == plan.noise_parties:
        return accountant.epsilon(plan.releases(), plan.delta)
    return accountant.epsilon_by_norm(
        [
            replace(_release(query, shares=shares, share_sigma=plan.share_sigma(query)), times=query.times)
            for query in plan.queries
        ],
        plan.delta,
    )


def _release(query: PlannedQuery, *, shares: int, share_sigma: float) -> Release:
    return Release(
        shifts=query.spec.shifts,
        sigma=share_sigma * math.sqrt(shares),
        shares=shares,
        records=query.spec.max_records,
    )


def _check_parties(plan: Plan) -> None:
    """U, and the bounds on the threshold under secure aggregation."""
    if plan.survivors < 1:
        raise PlanError(
            "parties that remain", expected="at least 1",
            got=f"{plan.parties} parties - {plan.max_dropouts} dropouts = {plan.survivors}",
            do="Allow fewer dropouts.",
        )  # fmt: skip
    if not plan.secure:
        if plan.roster or plan.degree or plan.corrupt:
            raise PlanError("roster, degree, corrupt", expected="none without secure aggregation", got="some")
        return
    if plan.corrupt < plan.colluders:
        raise PlanError(
            "corrupt parties", expected=f"at least the {plan.colluders} colluders that the noise allows for",
            got=plan.corrupt, do="Assume as many corrupt parties as colluders.",
        )  # fmt: skip
    if plan.parties < 2:
        raise PlanError(
            "parties under secure aggregation", expected="at least 2", got=plan.parties,
            do="A sum over one party hides nothing; turn secure aggregation off.",
        )  # fmt: skip
    if plan.noise_parties < 1:
        raise PlanError(
            "shares of noise that can be relied on", expected="at least 1",
            got=f"{plan.parties} parties - {plan.max_dropouts} dropouts - {plan.colluders} colluders "
            f"= {plan.noise_parties}",
            do="Allow fewer dropouts or assume fewer colluders.",
        )  # fmt: skip
    _check_masks(plan)


def _check_masks(plan: Plan) -> None:
    """Graph, threshold and signatures."""
    full = plan.parties - 1
    if plan.degree != full and (plan.degree % 2 or not 2 <= plan.degree < full):
        raise PlanError(
            "degree", expected=f"{full} for the full graph, or an even number below", got=plan.degree
        )  # fmt: skip
    if plan.malicious and len(plan.roster) != 2 * hashlib.sha256().digest_size:
        raise PlanError("roster", expected="64 hex digits, or none", got=f"{len(plan.roster)} characters")
    # On the full graph half or fewer could be asked twice, once in each half, and so many colluders could lift masks by
    # themselves; on a sparse one both hold for each neighbourhood, and `common.secagg.graph` computes the bound.
    lowest, highest = max(plan.parties // 2, plan.colluders, plan.corrupt) + 1, plan.survivors
    if plan.degree < full:
        lowest, highest = 2, plan.degree + 1
    if not lowest <= plan.threshold <= highest:
        raise PlanError(
            "threshold",
            expected=f"{lowest} to {highest}: more than half of the parties, more than the colluders, "
            "not more than parties - dropouts",
            got=plan.threshold,
            do="Change the threshold, or allow fewer dropouts.",
        )  # fmt: skip
    signers = (plan.parties + plan.corrupt) // 2 + 1
    if plan.malicious and signers > plan.survivors:
        raise PlanError(
            "survivors that can sign", expected=f"at least {signers}: more than half of parties and corrupt ones",
            got=plan.survivors, do="Allow fewer dropouts or assume fewer corrupt parties.",
        )  # fmt: skip


def _check_query(plan: Plan, query: PlannedQuery) -> None:
    """Noise for a finite epsilon and none for an infinite one, of a share that sums well, in a ring that holds all."""
    if (query.sigma == 0) != (plan.epsilon == math.inf):
        raise PlanError(
            f"sigma of {query.name}", expected="0 for epsilon inf and above 0 otherwise",
            got=f"sigma {query.sigma:g}, epsilon {plan.epsilon:g}", do="Use calibrate to make plans.",
        )  # fmt: skip
    if plan.unit == "sample" and query.spec.max_records != 1:
        raise PlanError(
            f"max_records of {query.name}", expected="1 at sample level", got=query.spec.max_records,
            do="Set the unit to user, or max_records to 1.",
        )  # fmt: skip
    share = plan.share_sigma(query)
    if 0 < share < SMALLEST_SHARE:
        raise PlanError(
            f"share of noise for {query.name}", expected=f"at least {SMALLEST_SHARE:g} grid units", got=f"{share:.3g}",
            do="Use a finer grid (more votes in each direction), a smaller epsilon, or fewer parties.",
        )  # fmt: skip
    largest = plan.parties * query.spec.largest(plan.max_records_per_party)
    if largest + _NOISE_REACH * share * math.sqrt(plan.parties) >= 2**63:
        raise PlanError(
            f"sums of {query.name}", expected="below 2^63", got=f"up to {largest:.3g} before noise",
            do="Lower max_records_per_party or the votes in each direction.",
        )  # fmt: skip


def _integers(low: int, **values: int) -> None:
    for name, value in values.items():
        if type(value) is not int or value < low:
            raise ConfigError(name, expected=f"an integer >= {low}", got=repr(value))


def _exactly(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values`, if they are named as the fields of `kind` that have no default, and no others."""
    names = {field.name for field in fields(kind)}
    if set(values) != names:
        raise KeyError(*sorted(names ^ set(values)))
    return dict(values)
