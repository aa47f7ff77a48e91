"""All settings of a run, each with its type, unit, bounds and default.

The settings of the methods are in `voting.py`, `seeded.py` and `methods.py`, those of the tasks in `tasks.py`, those of
the evaluation in `evaluation.py`, and `PrivacyTarget` in `sections.py`.

Types and names are checked when settings are read (`reading.py`), bounds by each class (`bounds.py`). Defaults are only
here: `compose.py` passes them to Hydra, and a file in `configs/` contains only deviations from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar

from common import validate
from common.domain import NOT_STATED
from common.errors import ConfigError
from server.settings.bounds import (
    Count,
    Natural,
    NotNegative,
    OptionalCount,
    Positive,
    Share,
    check_bounds,
    not_below,
    one_of,
    whole,
)
from server.settings.evaluation import EvaluationSettings
from server.settings.sections import MethodSettings, Part, PrivacyTarget, TaskSettings

MOST_LOST = 0.2
"""Default of `Llm.most_lost`."""
MOST_CANARIES = 100
"""Number of distinct canary subjects, hence the maximum number of canaries
(`simulations/private_evaluation/canaries.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hospital:
    """One hospital of a deployment.

    Attributes:
        name: The party's name in the roster.
        node: ID of its Flower node, an unsigned 64-bit integer.
    """

    name: str
    node: Natural

    def __post_init__(self) -> None:
        check_bounds(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationSettings:
    """The parties of a run, and the protocol's timeouts and retries.

    Attributes:
        parties: L, the number of parties, at least 1.
        hospitals: In a deployment, the parties' names in the roster, in order; None: "party 0" and so on.
        max_records: Public bound on the records of a party, in a deployment the roster's; if None, 2^20.
        max_dropouts: Number of parties that may miss a round, fewer than all; each of them increases the noise.
        max_attempts: Maximum number of attempts at each query, all charged to the budget. With 2 and secagg=malicious,
            a run survives the loss of a party between its answer and the agreement on who has answered.
        colluders: Number of parties assumed to reveal their noise to the coordinator, fewer than all; each such party
            increases the noise. If None, the number is 0 or, with secagg=malicious, the number that `secagg.corrupt`
            implies, as hospitals assume.
        expected_records: M, at least 1, a public guess of the total number of records, from which `plan` computes the
            expected signal. If None, M is unknown or, in a simulation, the number of records that are dealt out.
        timeout: Maximum number of seconds to wait for replies and for nodes to connect, at least 0.
        retries: Number of times a failed query is sent again, with the same bytes and at no privacy cost.
    """

    parties: Count = 3
    hospitals: tuple[Hospital, ...] | None = None
    max_records: OptionalCount = None
    max_dropouts: Natural = 0
    max_attempts: Count = 1
    colluders: Annotated[int | None, whole(0)] = None
    expected_records: OptionalCount = None
    timeout: NotNegative = 600.0
    retries: Natural = 1

    def __post_init__(self) -> None:
        check_bounds(self)
        for name, number in {"max_dropouts": self.max_dropouts, "colluders": self.colluders or 0}.items():
            if number >= self.parties:
                raise ConfigError(name, expected=f"fewer than federation.parties, {self.parties}", got=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFederation(FederationSettings):
    """Simulated parties, to which private records are dealt out.

    Attributes:
        records: M, total number of private records, at least 1; None uses all.
        partition: "natural", "dirichlet" or "iid". "natural" keeps each hospital's own records; if the data name no
            hospitals, it is the same as "dirichlet".
        alpha: Concentration of the Dirichlet distribution; the smaller it is, the more unevenly records are dealt out.
        canaries: Number of records with a unique code and subject, at most 100, each added with probability 1/2;
            evaluation.metrics=[canaries] looks for these records.
        canary_form: "subject": one sentence for all; "beginning": half of a held-out text with an unlikely ending.
        canary_times: Number of copies of an added canary among the records, at least 1.
        style_site: Index of a party whose records all begin with the same words; evaluation.metrics=[sites] looks for
            these words. None if there is no such party.
    """

    records: OptionalCount = None
    partition: Annotated[str, one_of("natural", "dirichlet", "iid")] = "natural"
    alpha: Positive = 1.0
    canaries: Annotated[int, whole(0, MOST_CANARIES)] = 0
    canary_form: Annotated[str, one_of("subject", "beginning")] = "subject"
    canary_times: Count = 1
    style_site: int | None = None

    def __post_init__(self) -> None:
        FederationSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        if self.style_site is not None:
            validate.integers_in(0, self.parties - 1, style_site=self.style_site)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secagg:
    """Settings of secure aggregation.

    Attributes:
        mode: "semi_honest": the coordinator follows the protocol; "malicious": the coordinator is not trusted at all;
            "none": the coordinator sees each party's answer, and each party adds the full noise.
        roster: File with each party's Ed25519 key, for "malicious"; a simulation generates it.
        threshold: Number of parties needed to recover a lost mask key on the full graph; None: the smallest safe one.
        full_graph_up_to: Maximum number of parties of a complete graph; with more, it is sparse and random.
        corrupt: Fraction of the parties, rounded up, assumed to share all they receive with the coordinator, in [0, 1].
        dropped: Fraction of the parties assumed to drop out of a sparse graph, in [0, 1].
        security_bits: On a sparse graph, a mask can be removed with probability below 2^-security_bits; at least 1.
        correctness_bits: On a sparse graph, too few shares survive with probability below 2^-correctness_bits.
    """

    mode: Annotated[str, one_of("semi_honest", "malicious", "none")] = "semi_honest"
    roster: str | None = None
    threshold: OptionalCount = None
    full_graph_up_to: Count = 128
    corrupt: Share = 0.3
    dropped: Share = 0.1
    security_bits: Count = 40
    correctness_bits: Count = 30

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def secure(self) -> bool:
        """Whether secure aggregation is used."""
        return self.mode != "none"

    @property
    def malicious(self) -> bool:
        """Whether secure aggregation protects against a coordinator that does not follow the protocol."""
        return self.mode == "malicious"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules for repairing or dropping the models' texts; `rounds.jsonl` counts how often each is applied.

    A rule that would change or drop more than 0.5% of the public texts is off in that run.

    Attributes:
        characters: Remove control characters and other invisible or damaged characters.
        fences: Remove Markdown fences.
        prefaces: Remove "Here is a note:" and similar prefaces.
        headings: Remove Markdown headings, and the prompt's own headings such as "Good note 3:", before the text. A
            heading of the prompt inside the text ends it.
        numbering: Remove a number or bullet before the text, and "1 new version." after it. The second item of a list
            ends a text without a first one. A list that begins with its first item remains.
        quotes: Remove quotation marks around the whole text.
        salutations: Remove "Dear Support," or "Hi [Name]," before the text, and "Best regards, Ann" after it, unless
            the task's kind is a letter, e-mail or complaint. "Hi," without an addressee remains.
        loops: If a text has the same words three times or more in a row, cut it after their first occurrence.
        shells: Drop a text of which these repairs would leave nothing, that only greets, or that only has what models
            say around a text.
        names: Drop a text that is only a label's name or description, or the kind of text.
        refusals: Drop a refusal, and a text in which an assistant speaks about itself.
        placeholders: Drop a text with words in brackets, such as "[Your Name]", "{date}" or "<amount>", or that is only
            a word for a text, such as "Your text here".
        echoes: Drop a text that is part of the prompt, or that has a sentence of it.
        copies: Drop a text that equals one shown in the prompt, regardless of case and punctuation.
        duplicates: Drop an exact duplicate of an earlier text of the run.
        languages: Drop a text in another language than the task's, as its most frequent words show.
        foreign: Drop a text with a word in a script that no public text uses; off, such texts are still counted.
    """

    characters: bool = True
    fences: bool = True
    prefaces: bool = True
    headings: bool = True
    numbering: bool = True
    quotes: bool = True
    salutations: bool = True
    loops: bool = True
    shells: bool = True
    names: bool = True
    refusals: bool = True
    placeholders: bool = True
    echoes: bool = True
    copies: bool = True
    duplicates: bool = True
    languages: bool = True
    foreign: bool = True

    @classmethod
    def none(cls) -> "Rules":
        """Return rules that are all switched off."""
        return cls(**dict.fromkeys((rule.name for rule in fields(cls)), False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Llm:
    """The language models, and caps on their use.

    Attributes:
        use: Names of the K models to use, at least one; None uses all models.
        clean: Rules that clean the texts, as in `configs/llm/clean`; None: for models that write nothing but the text.
        max_cost: Cap on the total cost of all models of the run, in the currency of the prices; None sets no cap.
        max_tokens: Cap on the total number of tokens read and written by all models of the run; None sets no cap.
        confirm_calls: Number of calls of remote and chat models above which a command asks at the terminal, or stops
            without `--yes`; None never asks.
        prompts: Folder with files that replace wordings of the same names in `server/llm/prompts`; None replaces none.
        name_other_labels: Whether prompts name the task's other labels, to keep clear of them. Small models then write
            about those. Large models may profit; this was not measured.
        most_lost: Share of the texts requested at a time that may be missing after all passes, in [0, 1]. If more are
            missing, or all for one kind of prompt, or if a model does not answer any more, the run stops before it asks
            the hospitals. Up to two missing texts never stop it; with 1, no loss does.
        models: Settings of the models, keyed by name.
    """

    place: ClassVar[str] = "llm"

    use: tuple[str, ...] | None = None
    clean: Rules | None = None
    max_cost: Annotated[float | None, validate.positive] = None
    max_tokens: Annotated[float | None, validate.positive] = None
    confirm_calls: Annotated[float | None, not_below(0)] = 2000.0
    prompts: str | None = None
    name_other_labels: bool = False
    most_lost: Share = MOST_LOST
    models: Mapping[str, Part] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_bounds(self)
        unknown = [name for name in self.use or () if name not in self.models]
        if unknown or self.use == ():
            raise ConfigError("llm.use", expected=f"some of {', '.join(self.models)}", got=unknown or "none")

    @property
    def used(self) -> dict[str, Part]:
        """Settings of the models to use, keyed by name, in the order of `use`."""
        return {name: self.models[name] for name in self.use or self.models}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a coordinator's run.

    Attributes:
        run: ID of the run, unique among all runs of these parties; random by default.
        purpose: Purpose of the texts; it is part of the plan and is shown to the hospitals before they approve it.
        recipient: Recipient of the texts; it is part of the plan and is shown to the hospitals, too.
        contact: Address of a person who answers for the recipient; the hospitals read it in the plan.
        retention: How long the texts are kept, and whether they may be passed on; the hospitals read it in the plan.
        models_place: Who runs the language models and in which country; the hospitals read it in the plan, after the
            models' names, which are filled in from `llm`.
        embedding_cache: File for vectors of synthetic texts, for slow encoders; "run": in the run folder; None: no
            file.
        reply_cache: File that stores the models' replies, which runs may share; None stores them in the run folder.
        experiment_seed: Seed for prompts, sampling and built-in models, at least 0; never used for noise or keys.
        tracking: "tensorboard" writes the figures of each round to RUN/tensorboard, which needs the `tracking` extra.
        method: Settings of the method.
        task: Settings of the task.
        llm: Settings of the language models.
        embedding: The encoder that the coordinator and the parties use.
        privacy: The guarantee.
        secagg: Secure aggregation.
        federation: The parties.
        evaluation: The evaluation.
        automatic: Names of the method's settings that are `auto`, each with the value for unknown records and texts.
        others: Further top-level settings, to which the user's settings may refer as ${NAME}.
    """

    run: str
    purpose: str = NOT_STATED
    recipient: str = NOT_STATED
    contact: str = NOT_STATED
    retention: str = NOT_STATED
    models_place: str = NOT_STATED
    embedding_cache: str | None = None
    reply_cache: str | None = None
    experiment_seed: Natural = 0
    tracking: Annotated[str | None, one_of("tensorboard")] = None
    method: MethodSettings | Part
    task: TaskSettings | Part
    llm: Llm = field(default_factory=Llm)
    embedding: Part
    privacy: PrivacyTarget = field(default_factory=PrivacyTarget)
    secagg: Secagg = field(default_factory=Secagg)
    federation: FederationSettings = field(default_factory=FederationSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    automatic: tuple[str, ...] = ()
    others: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate.printable(purpose=self.purpose, recipient=self.recipient, contact=self.contact)
        validate.printable(retention=self.retention, models_place=self.models_place)
        check_bounds(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings(Settings):
    """All settings of a simulation of a whole federation on one machine.

    Attributes:
        row: This run's row in a sweep's table, set by an experiment or derived from the overrides; None outside one.
        engine: "local": this process; "flower": Flower's simulation engine on Ray.
        client: Content of client.yaml, the same for all simulated parties (`client.settings`).
        labels_from_records: Whether the labels were taken from private records, without noise.
        overrides: Overrides with which this run of a sweep was started.
        experiment: The experiment's table.
        refuse_disclosures: Whether the run ends as "refused" unless evaluation.metrics=[disclosures] finds nothing. Its
            files are kept; the exit code is 1.
    """

    federation: SimulatedFederation = field(default_factory=SimulatedFederation)
    client: Mapping[str, Any]
    row: Any = None
    engine: Annotated[str, one_of("local", "flower")] = "local"
    labels_from_records: bool = False
    overrides: tuple[str, ...] | None = None
    experiment: Mapping[str, Any] | None = None
    refuse_disclosures: bool = False

    def __post_init__(self) -> None:
        Settings.__post_init__(self)  # super() does not work in a dataclass with slots
        if self.refuse_disclosures and "disclosures" not in self.evaluation.metrics:
            do = "Add disclosures to evaluation.metrics"
            raise ConfigError("refuse_disclosures=true needs the metrics of disclosures", do=do)
