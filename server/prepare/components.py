"""All objects that the settings of a run describe, built and checked together before any private data is accessed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from common.models.encoder import Encoder
from common.plan.plan import Plan
from common.queries.class_sums import ClassSumsSpec
from common.secagg.identity import Roster
from common.system.extras import needs
from server.documents.privacy import Earlier
from server.evaluation.small_model import Evaluation
from server.llm import providers
from server.llm.base import Provider
from server.llm.clean import PLAIN, Cleaner
from server.llm.render import Prompts, our_prompts
from server.llm.spending import Spending
from server.method import Method, Reusing
from server.prepare.automatic import built_in, resolve_auto
from server.prepare.build import build, method_of, plan_of, roster_of
from server.prepare.model_checks import refuse_declined
from server.settings.schema import MOST_LOST, Settings
from server.tasks.sources import Source
from server.vector_cache import Remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComponents:
    """The objects that a run's settings describe, as built by `build_components`.

    Attributes:
        source: The task: public description, public texts, held-out texts.
        method: The method to run.
        plan: The agreed privacy plan.
        roster: The parties' identities, if the plan contains their digest.
        encoder: The encoder, which the parties use too.
        providers: Language models, keyed by name.
        prompted: Whether any of the models reads the labels' descriptions in a prompt, as all do that do not compose.
        cleaner: Rules that clean the models' texts.
        prompts: Wordings of the chat models' prompts.
        spending: Record of payments for remote models.
        most_lost: Share of the requested texts that may be missing.
        evaluation: The small model that measures the quality of the texts.
        earlier: The run whose released numbers replace the queries; None if the method asks the plan's queries itself.
    """

    source: Source
    method: Method[Any]
    plan: Plan
    roster: Roster | None = None
    encoder: Encoder
    providers: Mapping[str, Provider]
    prompted: bool = False
    cleaner: Cleaner = PLAIN
    prompts: Prompts = field(default_factory=our_prompts)
    spending: Spending = field(default_factory=Spending)
    most_lost: float = MOST_LOST
    evaluation: Evaluation = field(default_factory=Evaluation)
    earlier: Earlier | None = None

    @property
    def epsilon(self) -> float:
        """Epsilon of the texts: the plan's epsilon, or that of the earlier run if its numbers are used."""
        return self.plan.epsilon if self.earlier is None else self.earlier.epsilon


def build_components(settings: Settings, *, folder: Path | None = None) -> RunComponents:
    """Build and check everything that the settings describe, before any private data is accessed.

    Args:
        settings: The settings, which may contain `auto`.
        folder: Folder of caches and accounts, created if missing; None stores nothing on disk.
    """
    settings = resolve_auto(settings)
    check_tracking(settings.tracking)
    roster = roster_of(settings)
    (folder or Path()).mkdir(parents=True, exist_ok=True)
    source: Source = build(settings.task)
    encoder: Encoder = build(settings.embedding)
    method = method_of(settings)
    evaluation: Evaluation = build(settings.evaluation)
    plan = plan_of(settings, method, source.task(), encoder=encoder.digest, roster=roster)
    _check_directions(plan, encoder)
    cache = settings.embedding_cache
    if path := (folder and folder / "vectors.db") if cache == "run" else cache:
        encoder = Remembered(encoder, path)
    replies, llm = settings.reply_cache, settings.llm
    prompts = Prompts(llm.prompts, name_other_labels=llm.name_other_labels)
    spending = Spending(
        path=folder / providers.SPENDING if folder else None,
        max_cost=llm.max_cost,
        max_tokens=llm.max_tokens,
    )
    models = providers.providers(
        {name: build(model, partial=True) for name, model in llm.used.items()},
        public_texts=source.public_texts,
        public_examples=source.public_examples,
        encoder=encoder,
        experiment_seed=settings.experiment_seed,
        spending=spending,
        folder=folder,
        cache=Path(replies) if replies else None,
        prompts=prompts,
    )
    refuse_declined(method, models)
    earlier = method.earlier() if isinstance(method, Reusing) else None
    if earlier:
        _check_earlier(earlier, encoder, plan)
    return RunComponents(
        source=source,
        method=method,
        plan=plan,
        roster=roster,
        encoder=encoder,
        cleaner=providers.cleaner(llm.clean, source.task(), source.public_texts, source.public_examples, prompts),
        prompts=prompts,
        prompted=bool(llm.used.keys() - built_in(settings)),
        providers=models,
        spending=spending,
        most_lost=llm.most_lost,
        evaluation=evaluation,
        earlier=earlier,
    )


def check_tracking(kind: str | None) -> None:
    """Raise a ConfigError if figures are to be tracked, and the package for that is not installed."""
    if kind is not None:
        needs("tracking", kind, extra="tracking")


def _check_directions(plan: Plan, encoder: Encoder) -> None:
    """Raise a ConfigError if the plan has more directions than the encoder has dimensions."""
    for query in plan.queries:
        if isinstance(query.spec, ClassSumsSpec) and query.spec.directions > encoder.dimensions:
            expected = f"at most {encoder.dimensions}, the encoder's dimensions"
            raise ConfigError("method.directions", expected=expected, got=query.spec.directions)


def _check_earlier(earlier: Earlier, encoder: Encoder, plan: Plan) -> None:
    """Raise a ConfigError if an earlier run's numbers belong to another encoder, or this run would ask as well."""
    if encoder.digest != earlier.encoder:
        expected = f"the encoder of run {earlier.run}, {earlier.encoder[:12]}"
        do = "Choose the encoder of that run: its numbers mean nothing in another one's space"
        raise ConfigError("embedding", expected=expected, got=encoder.digest[:12], do=do)
    if plan.queries:
        do = "Set it to 0, and evaluate on public texts: this run asks no party, but uses an earlier run's answers"
        got = ", ".join(query.name for query in plan.queries)
        raise ConfigError("evaluation.federated", expected=0, got=got, do=do)
