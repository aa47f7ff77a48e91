"""Settings of the methods in which parties vote on texts, and of the variation of texts in these methods."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from common import validate
from common.errors import ConfigError
from common.queries.length_range import LARGEST_CAP
from common.queries.votes import MOST_VOTES
from server.settings.bounds import (
    Count,
    LabelSetsShare,
    Natural,
    NotNegative,
    OptionalCount,
    Positive,
    PositiveShare,
    Probability,
    Share,
    Temperature,
    between,
    check_bounds,
    not_below,
    one_of,
    whole,
)
from server.settings.sections import USUAL_TEXTS, PromptingSettings, SynthesisSettings

USUAL_VOTES = 8
"""Q and S of WASP's paper, which take twice as many candidates of each label: votes choose at most half of them."""
RANKING = "a record gives its nearest candidate 1 vote, the next 1/2, the next 1/4, and so on"
FEWEST_SHOTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """Settings of the variation of texts.

    Attributes:
        kind: "paraphrase" or "fill_in".
        mask: Fraction of the words that a fill-in replaces, in (0, 1].
        length_spread: Standard deviation of a variation's requested length, as a share of its parent's; None requests
            none.
    """

    kind: Annotated[str, one_of("paraphrase", "fill_in")] = "paraphrase"
    mask: PositiveShare = 0.5
    length_spread: Annotated[float | None, between(0, 1)] = 0.2

    def __post_init__(self) -> None:
        check_bounds(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaspSettings(PromptingSettings):
    """WASP, with the paper's symbols and defaults.

    Attributes:
        samples: N, total number of synthetic texts, at least one per round; 6,000 in the paper.
        rounds: T, number of generation rounds, at least 2, with T - 1 private queries.
        top: Q, number of nearest and of furthest votes per record, at most 20: 1 vote for the nearest candidate, 1/2
            for the next, 1/4 for the next. `auto` is 8, or half of a label's candidates in the last vote if that is
            less.
        shots: S, number of exemplars in a prompt and size of each pool, at least 2; a pool never has more than half of
            a label's candidates. `auto` is as for `top`.
        contrast: Whether to use bad exemplars too, and furthest votes to find them; off for the ablation.
        weighting: Whether to weight models by votes; off for the ablation.
        look_ahead: k, number of paraphrases; in votes, their mean embedding represents a candidate (Aug-PE); with 0,
            its own.
        smoothing: Whether to smooth noised votes over the embeddings, which costs no privacy
            (`server/operators/smoothing.py`).
        label_sets_share: Fraction of epsilon for the query about which labels occur together, in [0.01, 0.99]; the
            query is asked only if texts have several labels (`task.labels_per_text`).
    """

    made_by: ClassVar[str] = "server.methods.wasp.Wasp"
    auto_by_default: ClassVar[tuple[str, ...]] = ("texts_per_request", "words", "top", "shots")

    name: str = "wasp"
    rounds: int = 5
    top: Annotated[int, whole(1, MOST_VOTES)] = USUAL_VOTES
    shots: Annotated[int, whole(FEWEST_SHOTS)] = USUAL_VOTES
    contrast: bool = True
    weighting: bool = True
    texts_per_request: Count = USUAL_TEXTS
    look_ahead: Natural = 0
    smoothing: bool = False
    label_sets_share: LabelSetsShare = 0.2

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.rounds < 2:
            do = "Set it to 2 or more: the private votes of a round guide the next"
            raise ConfigError("method.rounds", expected="at least 2", got=self.rounds, do=do)
        if self.samples < self.rounds:
            raise ConfigError("method.samples", expected=f"at least one a round ({self.rounds})", got=self.samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class AugPeSettings(PromptingSettings):
    """Aug-PE and, with a vocabulary, Aug-PE+, with the papers' terms and defaults.

    Attributes:
        rounds: T, number of rounds, each with a private query.
        select: Choice of survivors: "rank", most votes; "sample", in proportion to votes above the threshold.
        threshold: Number of votes that a survivor must exceed; if none does, survivors are drawn uniformly, with a
            note.
        expansion: L, at least 2: one in L texts of the next population is a survivor; the others are variations.
        look_ahead: k, number of variations; in votes, their mean embedding represents a text; with 0, its own.
        variation: Kind and length of the variations.
        fine: Number of grid units in a vote: lower it if sums grow too large; raise it for many parties, since integers
            cannot represent noise shares that are too small.
        smoothing: Whether to smooth noised votes over the embeddings, which costs no privacy
            (`server/operators/smoothing.py`).
        vocabulary: For Aug-PE+, a `.txt` of public terms, one per line.
        first_terms: k, number of terms of a record that count in the vocabulary.
        kept_terms: |V'|, number of terms for initial prompts, those with the highest noised counts, at least `terms`.
        terms: Number of random terms in an initial prompt.
        vocabulary_share: Fraction of epsilon spent on the vocabulary, between 0 and 1; the votes get the rest.
    """

    made_by: ClassVar[str] = "server.methods.aug_pe.AugPe"

    name: str = "aug_pe"
    rounds: Count = 10
    select: Annotated[str, one_of("rank", "sample")] = "rank"
    threshold: NotNegative = 0.0
    expansion: Annotated[int, whole(2)] = 2
    look_ahead: Natural = 0
    variation: Variation = field(default_factory=Variation)
    fine: Count = 128
    smoothing: bool = False
    vocabulary: str | None = None
    first_terms: Count = 10
    kept_terms: int = 1000
    terms: Count = 10
    vocabulary_share: Probability = 0.2

    def __post_init__(self) -> None:
        check_bounds(self)
        validate.integers(self.terms, kept_terms=self.kept_terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class AugPePlusSettings(AugPeSettings):
    """Aug-PE+: Aug-PE from random words of a noised vocabulary, without classes in prompts (DP-KPS, section 3).

    Attributes:
        vocabulary: Vocabulary, as in Aug-PE.
    """

    name: str = "aug_pe_plus"
    vocabulary: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreTextSettings(PromptingSettings):
    """PrE-Text: seeds evolve by votes, and the released texts are then written from the seeds.

    Attributes:
        seeds: Size of the population that evolves; if None, a fifth of N, at most 400, at least `shots` per label. A
            seed costs 1 + k texts in every round: with 400 seeds, 20,000 texts would be written to release N = 100.
        rounds: T, number of rounds, each with a private query.
        threshold: Number of votes that a survivor must exceed; if none does, survivors are drawn uniformly, with a
            note.
        look_ahead: k, number of variations; in votes, their mean embedding represents a text; with 0, its own.
        shots: Number of seeds in a prompt of the last phase.
        variation: Kind and length of the variations.
        fine: As in Aug-PE.
        smoothing: As in Aug-PE.
    """

    made_by: ClassVar[str] = "server.methods.pre_text.PreText"

    name: str = "pre_text"
    seeds: OptionalCount = None
    rounds: Count = 10
    threshold: NotNegative = 0.0
    look_ahead: Natural = 4
    shots: Count = 4
    variation: Variation = field(default_factory=lambda: Variation(kind="fill_in"))
    fine: Count = 128
    smoothing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DpgaSettings(SynthesisSettings):
    """DPGA-TextSyn, with the paper's defaults except for `tau`.

    The first population has `initial` times N texts, and each generation writes 4 N: with T = 10, 41 N texts in total.
    The shares are fractions of epsilon; the votes for texts get the rest: 0.5, less if `tau` is None, more if an
    ablation leaves out a query. The paper's delta is 1/(M ln M), where M, the number of private records, is itself
    private: set privacy.delta to it only if M is published anyway.

    Attributes:
        samples: N, number of elites in a generation, and of synthetic texts released.
        rounds: T, number of generations, each with a private query.
        initial: Number of texts in the first population, as a multiple of N, at least 1.
        rewritten: Number of rewritten elites in each generation, as a multiple of N.
        filled: Number of elites with a fraction of their words replaced, as a multiple of N.
        crossed: Number of crossovers of two elites of one label, as a multiple of N.
        fresh: Number of new texts written from the metadata, as a multiple of N.
        mask: Fraction of the words that are replaced, in (0, 1].
        subsample: q, probability that a record takes part in the votes, in (0, 1]; with 1, all records do.
        redraw: Whether each generation has a subsample of its own, charged accordingly; else one serves all.
        length: Whether to query the lengths of records; off for the ablation.
        longest: Largest length in words that the sparse vector technique searches, a public number; the nearer to the
            actual range of lengths, the better.
        bins: Number of bins of the length histogram.
        keywords: Number of keywords per label, listed by the models and voted on; 0 for the ablation.
        keyword_temperature: Temperature of the language models when they list keywords, in [0, 2].
        softmax: Number of additional votes that make a keyword e times as likely.
        suppression: Whether texts too similar to a text with more votes are dropped; off for the ablation.
        tau: Initial threshold of the similarity, in [-1, 1]. The default drops only near copies. None follows the
            paper: it queries the mean similarity of private records and uses it as the threshold, which drops most
            texts that records voted for.
        tau_step: Step by which the threshold grows until there are N elites; with 0, it stays, and there may be fewer.
        buckets: Number of buckets in the query for the mean similarity: a public guess of one party's number of
            records.
        label_share: Fraction of epsilon for the label histogram; in a task without labels, the votes get this fraction.
        length_range_share: Fraction for the length range.
        length_share: Fraction for the length histogram.
        keyword_share: Fraction for the votes on keywords.
        similarity_share: Fraction for the mean similarity, which the paper does not charge to the budget.
        temperature: Sampling temperature of the language models, in [0, 2].
        fine: As in Aug-PE.
        smoothing: As in Aug-PE.
    """

    made_by: ClassVar[str] = "server.methods.dpga.Dpga"

    name: str = "dpga"
    rounds: Count = 10
    initial: Annotated[float, not_below(1)] = 5.0
    rewritten: NotNegative = 1.0
    filled: NotNegative = 1.0
    crossed: NotNegative = 1.0
    fresh: NotNegative = 1.0
    mask: PositiveShare = 0.5
    subsample: PositiveShare = 0.8
    redraw: bool = False
    length: bool = True
    longest: Annotated[int, whole(1, LARGEST_CAP)] = 500
    bins: Count = 100
    keywords: Natural = 50
    keyword_temperature: Temperature = 1.4
    softmax: Positive = 1.0
    suppression: bool = True
    tau: Annotated[float | None, between(-1, 1)] = 0.8
    tau_step: float = 0.01
    buckets: Count = 300
    label_share: PositiveShare = 0.1
    length_range_share: Share = 0.2
    length_share: Share = 0.1
    keyword_share: Share = 0.1
    similarity_share: Share = 0.05
    temperature: Temperature = 1.2
    fine: Count = 128
    smoothing: bool = False

    def __post_init__(self) -> None:
        check_bounds(self)
        asked = {
            "length_range_share": self.length,
            "length_share": self.length,
            "keyword_share": self.keywords > 0,
            "similarity_share": self.suppression and self.tau is None,
        }
        validate.positive(**{name: getattr(self, name) for name, query in asked.items() if query})
        if self.tau_step:
            validate.at_least(0.001, tau_step=self.tau_step)
