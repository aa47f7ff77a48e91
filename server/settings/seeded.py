"""Settings of the methods that write texts from keyphrases (DP-KPS) or abstracts (RPSG) chosen by private records."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from common import validate
from common.errors import ConfigError
from common.queries.texts import LONGEST, AbstractedSeedsSpec
from common.queries.votes import MOST_VOTES
from server.settings.bounds import (
    Count,
    NotNegative,
    OptionalCount,
    Positive,
    PositiveShare,
    Probability,
    check_bounds,
    one_of,
    whole,
)
from server.settings.sections import FineTuning, PromptingSettings

MOST_ABSTRACTS = 1000
"""Size of RPSG's pool for many texts; for fewer than half as many, twice their number leaves as much to choose."""
ABSTRACT_WORDS = 40
MECHANISMS = {
    "pool": ("exponential", "permute and flip"),  # the latter for `nearest` = 0 alone
    "histogram": ("laplace", "gaussian"),
    "seed_unproven": AbstractedSeedsSpec.mechanisms,
}
"""Mechanisms for RPSG's query, keyed by kind of candidates; the first is the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DpKpsSettings(PromptingSettings):
    """DP-KPS, with the paper's symbols and defaults; defaults that the paper does not state are ours.

    Attributes:
        samples: N, total number of synthetic texts, N/C per label; the paper has 1,000 per label.
        vocabulary: A `.txt` of public terms, one per line.
        first_terms: k, number of terms of a record that count in the histogram, and in the sketch over single phrases.
        kept_terms: |V'|, number of terms kept, those with the highest noised counts.
        vocabulary_share: Fraction of epsilon spent on the histogram; the sketches share the rest equally. The paper
            spends epsilon 1 or 5 on the histogram, and 5 or 10 on the densities.
        mechanism: "laplace", as in the paper: pure DP and single features; "gaussian": (epsilon, delta)-DP and paired
            features, with far less noise.
        features: I, number of features of each sketch; with Laplace noise and M records per label, about epsilon M / 2
            at most.
        grid: B, number of grid units per unit of a feature; if None, as many as the table of the noise allows, at most
            256.
        bandwidth: h of the kernel exp(-|x - y|^2 / h^2), for vectors and sequences of norm 1. The paper's value is 1,
            for encoders in which unrelated terms are near each other; where their cosine is 0, terms barely stand out
            from a background of exp(-2).
        sequence: "independent"; or "iterative": each phrase given those before it, which needs very many records.
        ensemble: Ensemble for iterative sequences: "linear", K sketches; or "logarithmic", ⌈log2 K⌉ sketches.
        length: K, number of phrases in a sequence, at most `kept_terms`.
        few_shot: File of the recipient's own texts; each prompt shows all of them, with their own phrases. They are no
            party's, are not protected, and must not be test texts. None: no such texts.
        ablation: "none"; "no_llm": sequences are released; "only_llm": prompts have the label alone, and nothing is
            asked.
        rounds: Always 1, since no later round would ask a query.
        texts_per_request: Number of texts that one prompt requests with "only_llm"; otherwise each sequence has one.
    """

    made_by: ClassVar[str] = "server.methods.dp_kps.DpKps"

    name: str = "dp_kps"
    vocabulary: str
    first_terms: Count = 10
    kept_terms: Count = 1000
    vocabulary_share: Probability = 0.16666667  # 1/6; as every plan so far has it
    mechanism: Annotated[str, one_of("laplace", "gaussian")] = "laplace"
    features: Count = 1000
    grid: OptionalCount = None
    bandwidth: Positive = 0.5
    sequence: Annotated[str, one_of("independent", "iterative")] = "independent"
    ensemble: Annotated[str, one_of("linear", "logarithmic")] = "logarithmic"
    length: Count = 10
    few_shot: str | None = None
    ablation: Annotated[str, one_of("none", "no_llm", "only_llm")] = "none"
    rounds: int = 1

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.rounds != 1:
            raise ConfigError("method.rounds", expected="1: nothing is asked again", got=self.rounds)
        if self.length > self.kept_terms:
            expected = f"at most {self.kept_terms}, the private vocabulary (kept_terms)"
            do = "Keep more terms, or draw shorter sequences"
            raise ConfigError("method.length", expected=expected, got=self.length, do=do)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinementSettings(FineTuning):
    """Refinement of RPSG's texts, as in Table 7 of the paper, whose rows are in experiment/rpsg_table1.yaml.

    The inherited settings are for the training of the surrogate, which the paper starts from BERT-small.

    Attributes:
        similarity: Fraction of the texts to keep, those least similar to the variants that they rephrase; 1 keeps all.
        nll: Fraction of the rest to keep, those least likely under the surrogate; 1 keeps all and needs no surrogate.
    """

    made_by: ClassVar[str] = "server.operators.refinement.Refinement"
    place: ClassVar[str] = "method.refinement"

    similarity: PositiveShare = 0.65
    nll: PositiveShare = 0.55


@dataclass(frozen=True, slots=True, kw_only=True)
class RpsgSettings(PromptingSettings):
    """RPSG: records choose seeds among public abstracts, and a synthetic text is written for each seed.

    At first ⌈⌈N / nll⌉ / similarity⌉ texts are written, so that about N remain after the refinement.

    Attributes:
        candidates: "pool": each record's own choice leaves its party, with pure ε; "histogram": choices are summed over
            the parties and noised, which is far more accurate; "seed_unproven": as in the paper, with NO guarantee
            (infinite ε): texts made from records leave their party.
        pool: Number of abstracts that the models write, over labels and models; `auto`: twice `samples`, at most 1,000.
        abstract_words: Requested length of an abstract in words; None leaves it open. `auto` is 40, or the length of a
            text if that is less: `words`, or else the median length of the public texts.
        choices: Number of seeds that each party chooses, or releases; a public number. If None, all parties together
            choose `samples` seeds or, with "seed_unproven", release a seed for each text written at first. A party with
            fewer records than choices makes the remaining choices at random, which is worse than fewer choices that
            each serve for several texts.
        mechanism: Mechanism of the query. With "pool": "exponential", or, with `nearest` 0, "permute and flip"; with
            "histogram": "laplace", pure ε, or "gaussian"; None uses the first of these.
        nearest: With "pool": number of abstracts that a record rates as equally good, all others as equally bad. With
            0, ratings are cosines, far weaker at the same epsilon. None: about pool / (1 + e^epsilon).
        top: With "histogram": number of votes per record; each vote has half the weight of the preceding vote.
        threshold: With "histogram": number of noised votes that an abstract must exceed, about the scale of the noise.
        fine: With "histogram": number of grid units in a vote.
        smoothing: With "histogram": whether votes are smoothed (`server/operators/smoothing.py`); lower the threshold
            then.
        abstracts: With "seed_unproven": K, number of abstracts per record to choose from (Table 4), written as its
            client.yaml says.
        longest: With "seed_unproven": maximum number of bytes in a released abstract.
        refinement: Settings of the choice of texts to keep.
        texts_per_request: Number of abstracts of the pool that one prompt requests; each seed has one prompt and one
            text.
        rounds: Always 2: the first round writes the variants, and the second rephrases and refines them.
    """

    made_by: ClassVar[str] = "server.methods.rpsg.Rpsg"
    auto_by_default: ClassVar[tuple[str, ...]] = ("words", "pool", "abstract_words")

    name: str = "rpsg"
    candidates: Annotated[str, one_of(*MECHANISMS)] = "pool"
    pool: Annotated[int, whole(2)] = MOST_ABSTRACTS
    abstract_words: OptionalCount = ABSTRACT_WORDS
    choices: OptionalCount = None
    mechanism: str | None = None
    nearest: Annotated[int | None, whole(0)] = None
    top: Annotated[int, whole(1, MOST_VOTES)] = 1
    threshold: NotNegative = 0.5
    fine: Count = 128
    smoothing: bool = False
    abstracts: Annotated[int, whole(2)] = 5
    longest: Annotated[int, whole(4, LONGEST)] = 2048
    refinement: RefinementSettings = field(default_factory=RefinementSettings)
    rounds: int = 2

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.mechanism is not None:
            validate.one_of("mechanism", self.mechanism, among=MECHANISMS[self.candidates])
        if self.smoothing and self.candidates != "histogram":
            do = "Set method.candidates=histogram, or leave smoothing out"
            raise ConfigError("method.smoothing needs votes", got=f"candidates={self.candidates}", do=do)
        if self.nearest is not None:
            validate.integers_in(0, self.pool - 1, nearest=self.nearest)
        if self.rounds != 2:
            raise ConfigError("method.rounds", expected="2: variants, then rephrasings", got=self.rounds)
