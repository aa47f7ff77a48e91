"""Queries whose answers are texts. Each party sends its own texts, neither summed nor masked, encoded by `text_codec`.

    specification         a text is                                           noise                    proof
    AbstractedSeedsSpec   chosen among abstractions of a record               on the choice alone      none: infinity
    FineTunedSpec         drawn from a model that was fine-tuned on records   DP-SGD                   (epsilon, delta)
    RewrittenSpec         a record, rewritten                                 none                     none: infinity

The number of texts and their largest length are public. A kind without a proof has infinite epsilon (`Spec.unproven`):
a party answers it only if its own limits name the kind and set `unsafe_unproven`.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from common.errors import ConfigError
from common.privacy.sensitivity import Sensitivity
from common.queries import text_codec
from common.queries.page import Query, Spec
from common.validate import integers_in

MOST_TEXTS = 2**16
LONGEST = 2**16
"""Maximum number of bytes in a text."""
MOST_ROUNDS = 2**8
"""Maximum number of rounds of rewriting a record."""

MOST_TRAINABLE = 2**28
"""Maximum number of weights that a party trains. It is a square, so that the l1 sensitivity is a whole number."""
MOST_STEPS = 100_000
_LARGEST_RATE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractedSeedsSpec(Spec):
    r"""One of K abstractions of each sampled record, chosen by noised similarity (RPSG, sections 3.1 and 3.2).

    There is no proof, and the cost is infinite. The paper treats the choice as a Gaussian mechanism of l2 sensitivity 1
    and everything made from the chosen text as post-processing (its proposition 1). But the candidates are written from
    the record itself: a neighbouring data set with another record in its place has other candidates, possibly none of
    these, so that one answer can distinguish the two data sets with certainty. No noise on the choice changes that.

    The choice alone would have the following cost if the K candidates were public. Utilities are (1 + cosine) / 2, in
    [0, 1], and the highest of u_c + Z_c wins, where the noise Z_c has scale sigma:

    - claimed: sigma = sqrt(2 ln(1.25 / delta)) / epsilon (equation 1), that is 1.20, 2.40 and 4.80 for epsilon = 4, 2
      and 1 at delta = 1 / (N ln N), N = 8948. That is the classical Gaussian mechanism for sensitivity 1, and proved
      for epsilon < 1 only;
    - that argument is incomplete: all K utilities move, each by up to 1, so that their l2 sensitivity is sqrt(K), 2.24
      for K = 5. As a Gaussian mechanism with that sensitivity, the three scales would cost epsilon = 9.08, 3.99 and
      1.82;
    - proved nevertheless, and without any delta: the probability that c wins grows with u_c and falls with the others.
      So over all u in [0, 1]^K it is largest where u_c = 1 and the others are 0, and smallest where u_c = 0 and the
      others are 1, and no outcome becomes more than

          e^epsilon = P(Z_c + 1 > max_b Z_b) / P(Z_c > 1 + max_b Z_b)     (b over the other K - 1)

      times as probable, for any two records (`gaussian_max.epsilon`): 1.96, 0.98 and 0.49 for K = 5. This is the
      smallest such epsilon. So the claim for the choice holds, for a reason other than the paper's.

    The sampled records are those with the lowest keyed digests (`client/contributions/seed_choices.py`). A party with
    fewer records than choices leaves the remaining texts blank, although this reveals its number of records: choosing a
    record again would release more of it, and texts from elsewhere would not look like abstractions of records.

    Attributes:
        choices: Number of texts that each party releases, public.
        longest: Maximum number of bytes in a text.
        candidates: K, number of candidates per record.
        max_records: m, maximum number of records per privacy unit; up to m of these texts may come from one user's
            records.
    """

    kind: ClassVar[str] = "abstracted seeds"
    unproven: ClassVar[bool] = True
    mechanisms: ClassVar[tuple[str, ...]] = ("gaussian max",)
    grid: ClassVar[int] = 1
    utility_grid: ClassVar[int] = 2**20
    choices: int
    longest: int = 2048
    candidates: int = 5
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, MOST_TEXTS, choices=self.choices)
        integers_in(4, LONGEST, longest=self.longest)
        integers_in(2, 2**8, candidates=self.candidates)
        integers_in(1, 2**20, max_records=self.max_records)

    @property
    def texts(self) -> int:
        """Number of texts in an answer."""
        return self.choices

    @property
    def noise_grid(self) -> int:
        """Number of integer units in a utility of 1."""
        return self.utility_grid

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the utilities of one choice among fixed candidates, on their grid; the text has no bound."""
        return Sensitivity.of((self.utility_grid,) * self.candidates, self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTunedSpec(Spec):
    r"""Texts from a language model that the party fine-tuned on its records by DP-SGD (Abadi et al. 2016).

    In a step, given the weights before it, each unit takes part with probability q, independently of the others
    (`PlannedQuery.rate`). Each of its records adds its own gradient, clipped at norm C and rounded to a vector of
    integers in which C is 0.99 B. The vector depends on that record, the weights and its own coins alone, and a vector
    whose squared norm exceeds B^2 is dropped (`client/writers/fine_tuning.py`). So a unit of m records moves the sum,
    by the triangle inequality, by at most m B in l2, and with a discrete Gaussian of scale sigma on each coordinate the
    step is a Poisson-subsampled Gaussian mechanism of noise multiplier sigma / (m B). The sum and its noise are exact
    integers, so that the proof does not depend on floating point. The divisor and the learning rate are public.

    T steps, each on a separate subsample, are composed by their privacy loss distributions (`Release.draws`), which is
    valid although each step depends on all earlier steps; weights and texts are then post-processing. The number of
    steps is public, and a step without any participant has the same noise.

    The model is the party's own, so that the number of coordinates is not known here: `MOST_TRAINABLE` takes the place
    of this number in the charge for the distance between sampled and ideal noise.

    Not covered: what the model and its tokenizer had learnt before; the time that training takes; and, if a record's
    gradient is computed together with others (`micro_batch` above 1 at the party), its independence from the others to
    the last bit: a rounding error in the gradient may change some of its integers by 1.

    Attributes:
        texts: Number of texts that each party releases, public, balanced across labels (+-1).
        longest: Maximum number of bytes in a text.
        steps: T, number of training steps.
        batch: Divisor of the sums of gradients: a public guess of q times the number of records.
        clip: C, clipping norm.
        resolution: B, integer units in C / 0.99. With sigma up to 10^4 noise is sampled fast.
        learning_rate: Learning rate of Adam.
        temperature: Sampling temperature; above 0.
        top_p: Nucleus sampling: only the likeliest tokens with this total probability; 1 for all tokens.
        lora: Rank of the adapters that are trained in place of the weights; 0 to train the weights.
        max_tokens: Maximum number of tokens of a record that count, and of a text, its label included.
        max_records: m, maximum number of records per privacy unit.
    """

    kind: ClassVar[str] = "fine-tuned samples"
    mechanisms: ClassVar[tuple[str, ...]] = ("dp-sgd",)
    grid: ClassVar[int] = 1
    texts: int
    longest: int = 2048
    steps: int = 100
    batch: int = 16
    clip: float = 1.0
    resolution: int = 4096
    learning_rate: float = 1e-3
    temperature: float = 1.0
    top_p: float = 1.0
    lora: int = 0
    max_tokens: int = 128
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, MOST_TEXTS, texts=self.texts)
        integers_in(4, LONGEST, longest=self.longest)
        integers_in(1, 2**20, max_tokens=self.max_tokens)
        integers_in(1, MOST_STEPS, steps=self.steps)
        integers_in(1, 2**20, batch=self.batch, max_records=self.max_records)
        integers_in(2**12, 2**20, resolution=self.resolution)
        integers_in(0, 2**10, lora=self.lora)
        # One spelling for each number, so that equal specifications have equal digests.
        for name in ("learning_rate", "temperature", "clip", "top_p"):
            value, most = getattr(self, name), 1.0 if name == "top_p" else _LARGEST_RATE
            if type(value) not in (int, float) or not 0 < value <= most:
                raise ConfigError(name, expected=f"a number above 0, at most {most:g}", got=repr(value))
            object.__setattr__(self, name, float(value))

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of one step's sum, in integer units."""
        l2 = self.max_records * self.resolution
        return Sensitivity(l1=l2 * math.isqrt(MOST_TRAINABLE), l2_squared=l2**2, touched=MOST_TRAINABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenSpec(Spec):
    """Sampled records, each rewritten by the party's own language models until they judge it private (RUPTA).

    There is no noise and no proof, and the cost is infinite: a text depends on one record, and the models' judgement is
    not a bound. Records are sampled as in `AbstractedSeedsSpec`.

    Attributes:
        texts: Number of texts that each party releases, public.
        longest: Maximum number of bytes in a text.
        rounds: Maximum number of rounds of rewriting.
        max_records: m, maximum number of records per privacy unit.
    """

    kind: ClassVar[str] = "rewritten records"
    unproven: ClassVar[bool] = True
    mechanisms: ClassVar[tuple[str, ...]] = ("none",)
    grid: ClassVar[int] = 1
    texts: int
    longest: int = 2048
    rounds: int = 3
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, MOST_TEXTS, texts=self.texts)
        integers_in(4, LONGEST, longest=self.longest)
        integers_in(1, MOST_ROUNDS, rounds=self.rounds)
        integers_in(1, 2**20, max_records=self.max_records)

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity in texts: one record changes one text, to which no noise is added."""
        return Sensitivity.of((1,), self.max_records)


TextSpec = AbstractedSeedsSpec | FineTunedSpec | RewrittenSpec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Texts(Query):
    """The query for texts of any kind. It has no arrays: the plan has the labels, the party its models and records."""

    spec: TextSpec

    @property
    def length(self) -> int:
        """Number of coordinates in an answer in the encoding of `common/queries/text_codec.py`."""
        return text_codec.length(self.spec.texts, self.spec.longest)
