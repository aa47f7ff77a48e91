"""All settings of a run, each with its kind, unit, bounds and default; four sections have separate pages.

`voting.py`, `seeded.py` and `methods.py` have the methods, `tasks.py` the tasks, `evaluation.py` the evaluation.

Kinds and names are checked when settings are read (`reading.py`), bounds in `__post_init__`. Defaults are stated only
here: `compose.py` gives them to Hydra, and a file in `configs/` states deviations from them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from common import validate
from common.domain import NOT_STATED
from common.errors import ConfigError
from server.settings.evaluation import EvaluationSettings
from server.settings.sections import MethodSettings, Part, TaskSettings, given

TRACKING = ("tensorboard",)
MOST_CANARIES = 100
"""Number of subjects that a canary can have (`simulations/private_evaluation/canaries.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """The guarantee that a run promises.

    Attributes:
        epsilon: ε of all answers together, above 0; inf adds no noise at all, for experiments only.
        delta: δ, between 0 and 1: a public constant, well below one over the number of private records.
        calibration: "tight"; or "paper", sigma by the papers' formula, for comparison: its true ε is printed as well.
        unit: "sample", one record; or "user", all records of one user (column `user`, else the party).
        max_records: m, at least 1: records of one user that count; further records are ignored.
    """

    epsilon: float = 4.0
    delta: float = 1e-5
    calibration: str = "tight"
    unit: str = "sample"
    max_records: int = 1

    def __post_init__(self) -> None:
        if self.epsilon != math.inf:
            validate.positive(epsilon=self.epsilon)
        validate.probability(delta=self.delta)
        validate.one_of("calibration", self.calibration, among=("tight", "paper"))
        validate.one_of("unit", self.unit, among=("sample", "user"))
        validate.integers(1, max_records=self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hospital:
    """One hospital of a deployment.

    Attributes:
        name: The party's name in the roster.
        node: Number of its Flower node, an unsigned 64-bit integer.
    """

    name: str
    node: int

    def __post_init__(self) -> None:
        validate.integers(0, node=self.node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Federation:
    """The parties of a run, and the protocol's waits and retries.

    Attributes:
        parties: L, number of parties, at least 1.
        hospitals: Names from the roster in a deployment, by number; None: "party 0" and so on.
        max_records: Public bound on the number of records of a party; in a deployment, the roster's bound; None: 2^20.
        max_dropouts: Parties that may be missing from a round, fewer than all; each increases the noise.
        max_attempts: Attempts at each query, at least 1, all paid for: with 2, and secagg=malicious, a run survives the
            loss of a party between its answer and the agreement on who has answered.
        colluders: Parties assumed to tell the coordinator their noise, fewer than all; each increases the noise. None:
            with secagg=malicious as many as `secagg.corrupt`, which is what hospitals assume; otherwise none.
        expected_records: M, at least 1, a public guess of the number of all records: `plan` compares their signal with
            the noise. None: unknown, or in a simulation the number of records that it deals out.
        timeout: Seconds to wait for replies and for nodes to connect, at least 0.
        retries: Retries of a failed query, at least 0, with the same bytes and at no privacy cost, before the run ends.
    """

    parties: int = 3
    hospitals: tuple[Hospital, ...] | None = None
    max_records: int | None = None
    max_dropouts: int = 0
    max_attempts: int = 1
    colluders: int | None = None
    expected_records: int | None = None
    timeout: float = 600.0
    retries: int = 1

    def __post_init__(self) -> None:
        validate.integers(1, parties=self.parties, max_attempts=self.max_attempts)
        validate.integers(0, retries=self.retries)
        validate.at_least(0, timeout=self.timeout)
        validate.integers(1, **given(max_records=self.max_records, expected_records=self.expected_records))
        for name, number in given(max_dropouts=self.max_dropouts, colluders=self.colluders).items():
            validate.integers(0, **{name: number})
            if number >= self.parties:
                raise ConfigError(name, expected=f"fewer than federation.parties, {self.parties}", got=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFederation(Federation):
    """Simulated parties, among whom private records are dealt out.

    Attributes:
        records: M, total number of private records, at least 1; None takes all.
        partition: "natural", which keeps each hospital's own records or, without hospitals, is Dirichlet; "dirichlet";
            or "iid".
        alpha: Concentration of the Dirichlet distribution, above 0; small: uneven.
        canaries: Records with a unique code and subject, at most 100, each added on the toss of a coin;
            evaluation.metrics=[canaries] looks for them.
        canary_form: "subject": one sentence for all; "beginning": half of a held-out text, and an unlikely end.
        canary_times: Number of times that an added canary is a record, at least 1.
        style_site: Number of a party whose records all begin with the same words; evaluation.metrics=[sites] looks for
            them. None: no party.
    """

    records: int | None = None
    partition: str = "natural"
    alpha: float = 1.0
    canaries: int = 0
    canary_form: str = "subject"
    canary_times: int = 1
    style_site: int | None = None

    def __post_init__(self) -> None:
        Federation.__post_init__(self)  # super() does not work in a dataclass with slots
        validate.one_of("partition", self.partition, among=("natural", "dirichlet", "iid"))
        validate.positive(alpha=self.alpha)
        validate.integers(1, **given(records=self.records))
        validate.integers_in(0, MOST_CANARIES, canaries=self.canaries)
        validate.one_of("canary_form", self.canary_form, among=("subject", "beginning"))
        validate.integers(1, canary_times=self.canary_times)
        validate.integers_in(0, self.parties - 1, **given(style_site=self.style_site))


@dataclass(frozen=True, slots=True, kw_only=True)
class Secagg:
    """Settings of secure aggregation.

    Attributes:
        mode: "semi_honest": the coordinator follows the protocol; "malicious": the coordinator is not trusted at all;
            "none": the coordinator sees each party's answer, and each party adds the whole noise.
        roster: File with each party's Ed25519 key, for "malicious"; a simulation generates it.
        threshold: Parties that recover a lost mask key on the full graph, at least 1; None: the smallest number that is
            safe.
        full_graph_up_to: Largest number of parties for which the graph is complete, at least 1; above that it is sparse
            and random.
        corrupt: Share of parties, rounded up, that pool what they see with the coordinator, in [0, 1].
        dropped: Share of parties that drop out of a sparse graph, in [0, 1].
        security_bits: A sparse graph lets a mask be lifted with probability below 2^-security_bits; at least 1.
        correctness_bits: A sparse graph lacks shares with probability below 2^-correctness_bits; at least 1.
    """

    mode: str = "semi_honest"
    roster: str | None = None
    threshold: int | None = None
    full_graph_up_to: int = 128
    corrupt: float = 0.3
    dropped: float = 0.1
    security_bits: int = 40
    correctness_bits: int = 30

    def __post_init__(self) -> None:
        validate.one_of("mode", self.mode, among=("semi_honest", "malicious", "none"))
        validate.in_range(0, 1, corrupt=self.corrupt, dropped=self.dropped)
        validate.integers(1, full_graph_up_to=self.full_graph_up_to, **given(threshold=self.threshold))
        validate.integers(1, security_bits=self.security_bits, correctness_bits=self.correctness_bits)

    @property
    def secure(self) -> bool:
        """Whether there is secure aggregation."""
        return self.mode != "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules for repairing or dropping the models' texts; `rounds.jsonl` has the counts.

    Attributes:
        fences: Remove Markdown fences.
        prefaces: Remove "Here is a note:" and similar prefaces.
        headings: Remove Markdown headings before the text.
        numbering: Remove a number or bullet before the text.
        quotes: Remove quotation marks around the whole text.
        loops: Cut a text where it begins to repeat the same words, three times or more in a row, after the first time.
        echoes: Drop a text that is a piece of the prompt.
        copies: Drop a text that the prompt showed, regardless of case and punctuation.
        duplicates: Drop an exact duplicate of a text that the run already has.
        foreign: Drop a text with more than 30 % of its letters in scripts that the public texts do not use; such texts
            are counted in any case.
    """

    fences: bool = True
    prefaces: bool = True
    headings: bool = True
    numbering: bool = True
    quotes: bool = True
    loops: bool = True
    echoes: bool = True
    copies: bool = True
    duplicates: bool = True
    foreign: bool = False

    @classmethod
    def none(cls) -> "Rules":
        """Return the rules with all of them off."""
        return cls(**dict.fromkeys((rule.name for rule in fields(cls)), False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Llm:
    """The language models, and caps on their cost.

    Attributes:
        use: Names of the models to use, at least one; None: all (K).
        clean: Rules that clean the texts, as in `configs/llm/clean`; None: the models write bare texts.
        max_cost: Cap on money for all models of the run together, in the currency of the prices, above 0; None: no cap.
        max_tokens: Cap on tokens, read and written, of all models of the run together, above 0; None: no cap.
        models: Models by name.
    """

    use: tuple[str, ...] | None = None
    clean: Rules | None = None
    max_cost: float | None = None
    max_tokens: float | None = None
    models: Mapping[str, Part] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate.positive(section="llm", **given(max_cost=self.max_cost, max_tokens=self.max_tokens))
        unknown = [name for name in self.use or () if name not in self.models]
        if unknown or self.use == ():
            raise ConfigError("llm.use", expected=f"some of {', '.join(self.models)}", got=unknown or "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a coordinator's run.

    Attributes:
        run: Identity of the run, unique among all runs of these parties; random by default.
        purpose: Purpose of the texts: part of the plan, shown to the hospitals before they approve it.
        recipient: Recipient of the texts: also part of the plan, and shown.
        embedding_cache: File that stores vectors of synthetic texts, for slow encoders; "run": in the run folder; None:
            they are not stored.
        reply_cache: File that stores the models' replies, which runs may share; None: in the run folder.
        experiment_seed: Seed of prompts, sampling and built-in models, at least 0; never of noise or keys.
        tracking: "tensorboard" writes figures of each round to RUN/tensorboard, and needs the extra `tracking`.
        method: Settings of the method.
        task: Settings of the task.
        llm: Settings of the language models.
        embedding: The encoder that coordinator and parties use.
        privacy: The guarantee.
        secagg: Secure aggregation.
        federation: The parties.
        evaluation: The evaluation.
        automatic: The method's settings that are `auto`; until a number is chosen they have the value for an unknown
            number of records.
        others: Further settings at the top, to which the user's settings may refer as ${NAME}.
    """

    run: str
    purpose: str = NOT_STATED
    recipient: str = NOT_STATED
    embedding_cache: str | None = None
    reply_cache: str | None = None
    experiment_seed: int = 0
    tracking: str | None = None
    method: MethodSettings | Part
    task: TaskSettings | Part
    llm: Llm = field(default_factory=Llm)
    embedding: Part
    privacy: Privacy = field(default_factory=Privacy)
    secagg: Secagg = field(default_factory=Secagg)
    federation: Federation = field(default_factory=Federation)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    automatic: tuple[str, ...] = ()
    others: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate.printable(purpose=self.purpose, recipient=self.recipient)
        validate.integers(0, experiment_seed=self.experiment_seed)
        if self.tracking is not None:
            validate.one_of("tracking", self.tracking, among=TRACKING)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings(Settings):
    """All settings of a whole federation on one machine.

    Attributes:
        row: Row of a sweep's table: chosen by an experiment, or named by its overrides; None outside a sweep.
        engine: "local": in this process; "flower": Flower's simulation engine on Ray.
        client: Content of the client.yaml of all simulated parties (`client.settings`).
        labels_from_records: Whether the labels were taken from private records, without noise.
        overrides: Overrides that the run of a sweep was started with.
        experiment: The experiment's table.
        refuse_disclosures: Whether the run ends as "refused" unless evaluation.metrics=[disclosures] finds nothing. Its
            files stay; the exit code is 1.
    """

    federation: SimulatedFederation = field(default_factory=SimulatedFederation)
    client: Mapping[str, Any]
    row: Any = None
    engine: str = "local"
    labels_from_records: bool = False
    overrides: tuple[str, ...] | None = None
    experiment: Mapping[str, Any] | None = None
    refuse_disclosures: bool = False

    def __post_init__(self) -> None:
        Settings.__post_init__(self)  # super() does not work in a dataclass with slots
        validate.one_of("engine", self.engine, among=("local", "flower"))
        if self.refuse_disclosures and "disclosures" not in self.evaluation.metrics:
            raise ConfigError(
                "evaluation.metrics", expected="disclosures among them, for refuse_disclosures=true", got="none"
            )
