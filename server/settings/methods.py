"""Settings of the baselines and of methods outside `voting.py` and `seeded.py`, and the list of all methods."""

from dataclasses import dataclass, fields
from typing import Annotated, ClassVar

from common import validate
from common.domain import PRESENT_NAMES
from common.errors import ConfigError
from common.queries.class_sums import MOST_DIRECTIONS
from common.queries.texts import LONGEST, MOST_ROUNDS, MOST_TEXTS, FineTunedSpec
from server.settings.bounds import Count, LabelSetsShare, Natural, Share, between, one_of, whole
from server.settings.sections import USUAL_TEXTS, MethodSettings, PromptingSettings, SynthesisSettings, has
from server.settings.seeded import DpKpsSettings, RpsgSettings
from server.settings.voting import AugPePlusSettings, AugPeSettings, DpgaSettings, PreTextSettings, WaspSettings

DIRECTIONS = 32
"""Number of directions of class sums if the expected number of records is unknown."""
GRID = 1024
"""Number of grid units in the radius of class sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FuseGenSettings(PromptingSettings):
    """FuseGen, which queries no party, with the paper's symbols; N, T and S are as in the WASP paper's baseline.

    Attributes:
        rounds: T, number of generation rounds; the first is zero-shot.
        shots: S, number of exemplars in a prompt.
        pool: R, size of the pool of exemplars per label, half easy and half ambiguous; at least 2.
        epochs: Number of epochs for which each small model is trained.
        boosts: Number of adjustments of the texts' weights; 0 leaves them equal, for the ablation.
    """

    made_by: ClassVar[str] = "server.methods.fusegen.FuseGen"
    auto_by_default: ClassVar[tuple[str, ...]] = ("texts_per_request", "words")

    name: str = "fusegen"
    rounds: Count = 5
    shots: Count = 8
    pool: Annotated[int, whole(2)] = 20
    epochs: Count = 6
    boosts: Natural = 3
    texts_per_request: Count = USUAL_TEXTS


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSumsSettings(PromptingSettings):
    """Class sums: the answer to a single noised query, about where the records' vectors lie, steers all rounds.

    Attributes:
        rounds: T, generation rounds; the one private query comes after the first.
        directions: k, number of directions of the subspace, so of coordinates requested for each label beside its
            count. `auto` chooses k from the expected number of records (`server/prepare/automatic.py`).
        count: Amount that a record adds to its label's count, in radii, from one grid unit (1/1024) to 1: a larger
            amount makes the means less precise.
        description: Weight of a label's public description in its centre, relative to the label's first-round texts.
        shots: S, number of exemplars in a prompt, drawn from a pool of 2 S per label.
        shrinkage: Whether to shrink the estimates according to their known noise; off for the ablation.
        model_weighting: Whether to weight models by the estimates; off for the ablation.
        steering: Whether to choose exemplars by the estimates; off for the ablation, where all rounds are zero-shot.
        need: Whether labels get texts according to need; off for the ablation, where all labels get the same number.
        labels: Labels of released texts: "probabilities": the most probable label, and the probability of each label;
            "class_sums": the most probable label only; "requested": the requested label, for models that write what is
            requested; or "nearest": as "requested", for the 70% of each label's texts that are nearest to its records,
            so for fewer texts than `samples`.
        evidence: Whether to count the requested label as evidence about a text's label, where the released numbers
            indicate that the text's model writes what is requested; off for the ablation.
        share_weights: Whether to weight the released texts by the labels' estimated proportions; off for the ablation.
        transfer: Maximum number of public texts that are given label probabilities (`transfer.jsonl`), at least 0.
        questionnaire: Questions about the form of the records' texts, asked in the same query: "none"; "questions",
            about length, person and the like; or "terms", these questions and common words of the first round's texts.
            The noise grows with the number of questions. If there are any, later rounds request texts of matching
            lengths.
        best_of: Number of texts that later rounds order for each text kept, if a questionnaire was answered: for each
            label, the texts that best match the answers are kept. With 1, all texts are kept.
        census: `census.json` of a finished run, to be used instead of a new query.
        label_sets_share: Fraction of epsilon for the query about which labels occur together, asked only if texts have
            several (`task.labels_per_text`), or about the order of sections.
        shown_words: Maximum number of words from a text's earlier sections in the prompt for its next section.
    """

    made_by: ClassVar[str] = "server.methods.class_sums.ClassSumsMethod"
    auto_by_default: ClassVar[tuple[str, ...]] = ("directions", "texts_per_request", "words")

    name: str = "class_sums"
    rounds: Count = 2
    directions: Annotated[int, whole(1), between(1, MOST_DIRECTIONS)] = DIRECTIONS
    count: Annotated[float, between(1 / GRID, 1)] = 0.25
    description: Share = 0.5
    shots: Count = 4
    shrinkage: bool = True
    model_weighting: bool = True
    steering: bool = True
    need: bool = True
    labels: Annotated[str, one_of("probabilities", "class_sums", "requested", "nearest")] = "probabilities"
    evidence: bool = True
    share_weights: bool = True
    texts_per_request: Count = USUAL_TEXTS
    transfer: Natural = 1000
    questionnaire: Annotated[str, one_of("none", "questions", "terms")] = "none"
    best_of: Count = 2
    census: str | None = None
    label_sets_share: LabelSetsShare = 0.2
    shown_words: Natural = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyTextsSettings(SynthesisSettings):
    """A method with a single query, to which the parties respond with the texts themselves.

    Attributes:
        longest: Maximum number of bytes in a text, at least 4, so that any character fits.
        rounds: Always 1, since each party answers once.
        texts_per_request: Has no effect, since the coordinator's language models write nothing.
    """

    longest: Annotated[int, whole(4, LONGEST)] = 2048
    rounds: int = 1
    texts_per_request: Count = 1

    def __post_init__(self) -> None:
        SynthesisSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        validate.integers_in(1, MOST_TEXTS, samples=self.samples)
        if self.rounds != 1:
            raise ConfigError("method.rounds", expected="1: one answer", got=self.rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class DpSgdSettings(PartyTextsSettings):
    """DP-SGD at each party; `common.queries.texts.FineTunedSpec` defines the query and checks the bounds.

    Attributes:
        steps: T, number of training steps; T times `rate` is the number of epochs.
        rate: q, the probability that a record takes part in a step, a public number in [0, 1].
        batch: Public guess of q times a party's number of records; sums of gradients are divided by it.
        clip: C, norm at which a record's gradient is clipped.
        resolution: B, number of grid units in C; B² must be at least 14 times the number of trained weights.
        learning_rate: Learning rate of Adam; a pretrained checkpoint needs a lower rate.
        lora: Rank of the adapters that are trained instead of the weights; 0 trains all weights.
        max_tokens: Maximum number of tokens used from a record, or written for a text, including those of the label.
        temperature: Sampling temperature.
        top_p: Sampling draws from the likeliest tokens with this total probability; with 1, from all tokens.
    """

    made_by: ClassVar[str] = "server.methods.dp_sgd.DpSgd"

    name: str = "dp_sgd"
    steps: int = 500
    rate: Share = 0.05
    batch: int = 64
    clip: float = 1.0
    resolution: int = 4096
    learning_rate: float = 2e-3
    lora: int = 0
    max_tokens: int = 128
    temperature: float = 1.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        PartyTextsSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        self.spec(texts=1, max_records=1)

    def spec(self, *, texts: int, max_records: int) -> FineTunedSpec:
        """Return the query's specification, for this number of texts per party; the specification checks its bounds."""
        training = {field.name: getattr(self, field.name) for field in fields(FineTunedSpec) if has(self, field.name)}
        return FineTunedSpec(texts=texts, max_records=max_records, **training)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuptaSettings(PartyTextsSettings):
    """RUPTA, which releases at most as many texts (`samples`) as there are records.

    Attributes:
        rewritings: Maximum number of times a record is rewritten, 1 to 256.
    """

    made_by: ClassVar[str] = "server.methods.rupta.Rupta"

    name: str = "rupta"
    rewritings: Annotated[int, whole(1, MOST_ROUNDS)] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyPrivateSettings(MethodSettings):
    """The small model trained only on the private records; a baseline that no coordinator can run."""

    name: str = "only_private"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateExemplarsSettings(PromptingSettings):
    """Texts from prompts that contain private records; a baseline that no coordinator can run.

    Attributes:
        texts: Whether texts are written; otherwise the exemplars themselves are the training data.
        exemplars: Number of exemplars per label, drawn from all private records; a prompt shows half of them.
    """

    name: str = "private_exemplars"
    texts: bool = True
    exemplars: Count = 8


METHODS: tuple[type[MethodSettings], ...] = (
    WaspSettings,
    FuseGenSettings,
    AugPeSettings,
    AugPePlusSettings,  # made by the same class, whose settings are read as the former's
    PreTextSettings,
    DpgaSettings,
    ClassSumsSettings,
    DpKpsSettings,
    RpsgSettings,
    DpSgdSettings,
    RuptaSettings,
    OnlyPrivateSettings,
    PrivateExemplarsSettings,
)

RENAMED = {**PRESENT_NAMES, "server.methods.census.CensusMethod": ClassSumsSettings.made_by}
"""Present names of methods and of their classes, by former ones, which users may still give and older files contain."""
