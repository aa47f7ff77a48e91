"""Settings of the methods that `voting.py` and `seeded.py` lack, and of the baselines; and the list of all methods."""

from dataclasses import dataclass, fields
from typing import ClassVar

from common import validate
from common.errors import ConfigError
from common.queries.class_sums import MOST_DIRECTIONS
from common.queries.texts import LONGEST, MOST_ROUNDS, MOST_TEXTS, FineTunedSpec
from server.settings.sections import (
    MethodSettings,
    PromptingSettings,
    SynthesisSettings,
    check_label_sets_share,
    has,
)
from server.settings.seeded import DpKpsSettings, RpsgSettings
from server.settings.voting import AugPePlusSettings, AugPeSettings, DpgaSettings, PreTextSettings, WaspSettings

DIRECTIONS = 32
"""Number of directions of a census for which no number of records is expected."""
GRID = 1024
"""Grid units in the radius of a census."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FuseGenSettings(PromptingSettings):
    """FuseGen, which asks no party, with the paper's symbols; N, T and S are those of WASP's baseline.

    Attributes:
        samples: N, total number of synthetic texts; the paper has 6,000.
        rounds: T, generation rounds; the first is zero-shot.
        shots: S, exemplars in a prompt.
        pool: R, exemplars of each label to draw from, half easy and half ambiguous; at least 2.
        epochs: Epochs of each small model's training.
        boosts: Number of adjustments of the texts' weights; 0 leaves them equal, for the ablation.
    """

    made_by: ClassVar[str] = "server.methods.fusegen.FuseGen"

    name: str = "fusegen"
    rounds: int = 5
    shots: int = 8
    pool: int = 20
    epochs: int = 6
    boosts: int = 3
    texts_per_request: int = 5

    def __post_init__(self) -> None:
        PromptingSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        validate.integers(1, section="method", rounds=self.rounds, shots=self.shots, epochs=self.epochs)
        validate.integers(0, section="method", boosts=self.boosts)
        validate.integers(2, section="method", pool=self.pool)


@dataclass(frozen=True, slots=True, kw_only=True)
class CensusSettings(PromptingSettings):
    """Census: the answer to one noised question, on where the records' vectors lie, steers all rounds.

    Attributes:
        rounds: T, generation rounds; the one private query comes after the first.
        directions: k, directions of the subspace: numbers requested for each label, in addition to its count. `auto`
            chooses it by the expected number of records (`server/settings/automatic.py`).
        count: Amount that a record adds to its label's count, in radii, from one grid unit (1/1024) to 1: a larger one
            takes precision from the means.
        description: Weight of a label's public description in its centre, relative to its texts of the first round, in
            [0, 1].
        shots: S, exemplars in a prompt, drawn from 2 S of each label.
        shrinkage: Shrink the estimates according to their known noise; off for the ablation.
        model_weighting: Weigh models by the estimates; off for the ablation.
        steering: Choose exemplars by the estimates; off for the ablation: all rounds are zero-shot.
        need: Labels get texts according to need; off for the ablation: all get the same number.
        labels: Labels of released texts: "probabilities": the most probable label, and the probability of each label;
            "census": the most probable label only; "requested": the label that was requested, for models that write
            what they are asked for; or "gate": as "requested", without the texts for which another label is more
            probable.
        evidence: Count the requested label as evidence for the probabilities of a text, where the released numbers
            support that its model writes what is requested; off for the ablation.
        share_weights: Weigh the released texts by the estimated shares of the labels; off for the ablation.
        transfer: Largest number of public texts that get probabilities of the labels (`transfer.jsonl`), at least 0.
        questionnaire: Questions about the form of the records' texts in the same answer, whose noise grows with their
            number: "none"; "questions", about length, person and the like; or "terms", these and common words of the
            first round's texts. Later rounds then ask for texts of such lengths.
        best_of: Texts that later rounds order for each one kept, if a questionnaire was answered: those that come near
            the answers are kept, label by label. 1: no choice.
        census: `census.json` of a finished run, to be used instead of asking.
        label_sets_share: Share of epsilon for the question which labels occur together, in [.01, .99]; asked only
            where texts have several labels (`task.labels_per_text`). Of texts in sections the question is in which
            order these follow one another.
        shown_words: Largest number of words of a text's earlier sections in the prompt for its next one, at least 0.
    """

    made_by: ClassVar[str] = "server.methods.census.CensusMethod"
    auto_by_default: ClassVar[tuple[str, ...]] = ("directions",)

    name: str = "census"
    rounds: int = 2
    directions: int = DIRECTIONS
    count: float = 0.25
    description: float = 0.5
    shots: int = 4
    shrinkage: bool = True
    model_weighting: bool = True
    steering: bool = True
    need: bool = True
    labels: str = "probabilities"
    evidence: bool = True
    share_weights: bool = True
    texts_per_request: int = 5
    transfer: int = 1000
    questionnaire: str = "none"
    best_of: int = 2
    census: str | None = None
    label_sets_share: float = 0.2
    shown_words: int = 200

    def __post_init__(self) -> None:
        PromptingSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        validate.integers(1, section="method", rounds=self.rounds, directions=self.directions, shots=self.shots)
        validate.in_range(1, MOST_DIRECTIONS, section="method", directions=self.directions)
        validate.integers(0, section="method", transfer=self.transfer, shown_words=self.shown_words)
        validate.integers(1, section="method", best_of=self.best_of)
        validate.in_range(1 / GRID, 1, section="method", count=self.count)
        validate.in_range(0, 1, section="method", description=self.description)
        check_label_sets_share(self.label_sets_share)
        validate.one_of("method.labels", self.labels, among=("probabilities", "census", "requested", "gate"))
        validate.one_of("method.questionnaire", self.questionnaire, among=("none", "questions", "terms"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyTextsSettings(SynthesisSettings):
    """A method with a single query whose answers are the texts themselves.

    Attributes:
        longest: Largest number of bytes of a text, at least 4, which every character fits in.
        rounds: 1: there is one answer.
        texts_per_request: Has no effect, since the language models of the coordinator write nothing.
    """

    longest: int = 2048
    rounds: int = 1
    texts_per_request: int = 1

    def __post_init__(self) -> None:
        validate.integers_in(1, MOST_TEXTS, samples=self.samples)
        validate.integers_in(4, LONGEST, longest=self.longest)
        validate.integers(1, texts_per_request=self.texts_per_request)
        if self.rounds != 1:
            raise ConfigError("method.rounds", expected="1: one answer", got=self.rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class DpSgdSettings(PartyTextsSettings):
    """DP-SGD at each party: see `common.queries.texts.FineTunedSpec`, which checks the bounds.

    Attributes:
        steps: T, training steps; T times `rate` is the number of epochs.
        rate: q, the probability with which a record takes part in a step, a public number in [0, 1].
        batch: Public guess of q times a party's number of records, by which sums of gradients are divided.
        clip: C, norm at which a record's gradient is clipped.
        resolution: B, whole numbers in C; B² must be 14 times the weights that are trained.
        learning_rate: Learning rate of Adam; a pretrained checkpoint needs a lower one.
        lora: Rank of adapters that are trained in place of the weights; 0 trains all weights.
        max_tokens: Largest number of tokens of a record that count, and of a text, including those of its label.
        temperature: Temperature of sampling.
        top_p: Total probability of the likeliest tokens that sampling draws from; 1: all tokens.
    """

    made_by: ClassVar[str] = "server.methods.dp_sgd.DpSgd"

    name: str = "dp_sgd"
    steps: int = 500
    rate: float = 0.05
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
        validate.in_range(0, 1, rate=self.rate)
        self.spec(texts=1, max_records=1)

    def spec(self, *, texts: int, max_records: int) -> FineTunedSpec:
        """Return the specification of the query, with this number of texts per party; bounds are checked there."""
        training = {field.name: getattr(self, field.name) for field in fields(FineTunedSpec) if has(self, field.name)}
        return FineTunedSpec(texts=texts, max_records=max_records, **training)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuptaSettings(PartyTextsSettings):
    """RUPTA, which releases at most as many texts (`samples`) as there are records.

    Attributes:
        rewritings: Largest number of rounds of rewriting a record, 1 to 256.
    """

    made_by: ClassVar[str] = "server.methods.rupta.Rupta"

    name: str = "rupta"
    rewritings: int = 3

    def __post_init__(self) -> None:
        PartyTextsSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        validate.integers_in(1, MOST_ROUNDS, rewritings=self.rewritings)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyPrivateSettings(MethodSettings):
    """The small model trained on the private records alone; a baseline that no coordinator can run."""

    name: str = "only_private"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateExemplarsSettings(PromptingSettings):
    """Texts from prompts that show private records themselves; a baseline that no coordinator can run.

    Attributes:
        texts: Whether texts are written; otherwise the exemplars alone are the training data.
        exemplars: Exemplars of each label, at least 1, drawn from all private records; a prompt shows half of them.
    """

    name: str = "private_exemplars"
    texts: bool = True
    exemplars: int = 8

    def __post_init__(self) -> None:
        PromptingSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        validate.integers(1, section="method", exemplars=self.exemplars)


METHODS: tuple[type[MethodSettings], ...] = (
    WaspSettings,
    FuseGenSettings,
    AugPeSettings,
    AugPePlusSettings,  # made by the same class, whose settings are read as the former's
    PreTextSettings,
    DpgaSettings,
    CensusSettings,
    DpKpsSettings,
    RpsgSettings,
    DpSgdSettings,
    RuptaSettings,
    OnlyPrivateSettings,
    PrivateExemplarsSettings,
)
