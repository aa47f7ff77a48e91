"""Records rewritten by a party's own models until its own evaluators accept them (RUPTA: Yang et al. 2025).

For each drawn record, up to n rounds:

1. redact     personal information, by patterns and optionally a model for names
2. generalise leave out words that occur in fewer than k records, k = 2, 4, 8, ... by round; this is feedback
              on what identifies a record, in a form that every rewriter can use
3. rewrite    into several candidates; the rewriter's input is a candidate too
4. evaluate   privacy: no personal information is found, little is copied, and the record is not among those nearest
              to the text; utility: the label whose mean is nearest to the text is the record's own
5. keep       the best so far, privacy first; stop when both evaluators accept it

A text that the privacy evaluator never accepted is withheld. None of this proves privacy, and evaluators may be wrong:
see `common.queries.texts.RewrittenSpec`. The paper's evaluators and rewriter are prompts to one large language model,
which guesses whom a text is about. Here the privacy evaluator guesses from which of the party's records the text was
written. No private text leaves this machine, as there is no remote provider.
"""

import logging
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from client.records import EmbeddedRecords
from client.writers.abstractors import Abstraction
from client.writers.base import OR_REFUSE, spec_of
from common import redaction
from common.errors import ConfigError
from common.models.encoder import Encoder
from common.plan.planned import PlannedQuery
from common.privacy.keystream import Keystream
from common.queries.text_codec import Labelled
from common.queries.texts import RewrittenSpec
from common.redaction import Redactor
from common.validate import in_range, integers

log = logging.getLogger("caucus.party")

_WORDS = re.compile(r"\[[A-Z]+\]|\w+(?:['’-]\w+)*")
_RUN = 3
"""Number of consecutive words that count as a copy."""


class RewriteVerdict(NamedTuple):
    """The evaluators' verdict on a text; verdicts are ordered from best to worst, with privacy first.

    Attributes:
        findings: Number of the privacy evaluator's objections, 0 to 3.
        mistaken: Whether the label is not recognised.
        copied: Fraction of the record's three-word sequences that the text repeats.
    """

    findings: int
    mistaken: bool
    copied: float


class Rewriting:
    """The `PartyWriter` that rewrites a party's records, with settings from the party's own file.

    Args:
        rewriter: `client.writers.abstractors.Extracts`, its `Summariser`, or
            `client.writers.instructed.Instructed`.
        names: A model for named entities, for redaction; None uses only patterns.
        language: Language of the records, for redaction (`common.personal_patterns`).
        candidates: Number of texts that the rewriter writes in each round.
        copied: Largest fraction of a record's three-word sequences that its text may repeat.
        nearest: Number n: a text's record must not be among the n records nearest to the text; 0 for no such check.
        most: Maximum number of texts that a plan may request.
    """

    def __init__(
        self,
        *,
        rewriter: Abstraction,
        names: str | None = None,
        language: str = "english",
        candidates: int = 5,
        copied: float = 0.5,
        nearest: int = 1,
        most: int = 1000,
    ) -> None:
        integers(1, section="rewriting", candidates=candidates, most=most)
        integers(0, section="rewriting", nearest=nearest)
        in_range(0, 1, section="rewriting", copied=copied)
        self._rewriter, self._candidates = rewriter, candidates
        self._names, self._language = names, language
        self._copied, self._nearest, self._most = copied, nearest, most

    def check(self, planned: PlannedQuery, labels: Sequence[str]) -> None:
        """Check that these settings can answer the planned query.

        Raises:
            ConfigError: The query needs more texts than allowed, or a model for names that is missing.
        """
        del labels
        spec = spec_of(planned, RewrittenSpec)
        texts = spec.texts * planned.times
        if texts > self._most:
            expected = f"at least {texts}, for this plan"
            raise ConfigError("rewriting.most", expected=expected, got=self._most, do=OR_REFUSE)
        _ = self._redactor

    def write(
        self, planned: PlannedQuery, records: EmbeddedRecords, *, labels: Sequence[str], encoder: Encoder, key: bytes
    ) -> list[Labelled]:
        """Return the rewritten records; there are fewer than planned if records are too few or texts are withheld."""
        spec, stream = spec_of(planned, RewrittenSpec), Keystream(key)
        positions = records.drawn(spec.texts, stream.read(32)).tolist()
        evaluators = Evaluators(
            records, len(labels), encoder, self._redactor, copied=self._copied, nearest=self._nearest
        )
        rng = np.random.default_rng(int.from_bytes(stream.read(32)))
        written = [
            (int(records.labels[place]), self._rewritten(place, evaluators, spec.rounds, rng)) for place in positions
        ]
        if not all(text for _, text in written):
            log.warning("some rewritten records still looked like their records: they are withheld")
        return [(label, text) for label, text in written if text]

    def _rewritten(self, place: int, evaluators: "Evaluators", rounds: int, rng: np.random.Generator) -> str:
        """Return the best text for the record with index `place`; empty if the privacy evaluator accepts no text."""
        best, text = RewriteVerdict(4, True, 1.0), ""
        redacted = self._redactor.redact(evaluators.records.texts[place])
        for number in range(rounds):
            given = evaluators.general(redacted, 2 ** (number + 1))
            for candidate in (
                given,
                *self._rewriter.write(given, self._candidates, tone=0, sampled=number > 0, rng=rng),
            ):
                masked = self._redactor.redact(candidate).strip()
                if masked and (verdict := evaluators.judge(place, masked)) < best:
                    best, text = verdict, masked
            if not (best.findings or best.mistaken):
                break
        return "" if best.findings else text

    @cached_property
    def _redactor(self) -> Redactor:
        return redaction.redactor(self._language, self._names)


class Evaluators:
    """Evaluators of the privacy and utility of texts that were each written from one of a party's records.

    Args:
        records: All of the party's records.
        labels: Number of labels.
        encoder: The encoder of the records' vectors.
        redactor: Redactor, used to find personal information.
        copied: See `Rewriting`.
        nearest: See `Rewriting`.
    """

    def __init__(
        self,
        records: EmbeddedRecords,
        labels: int,
        encoder: Encoder,
        redactor: Redactor,
        *,
        copied: float,
        nearest: int,
    ) -> None:
        self.records = records
        self._encoder, self._redactor, self._copied, self._nearest = encoder, redactor, copied, nearest
        self._known = Counter(word for text in records.texts for word in set(_words(text)))
        self._sums = np.zeros((labels, records.vectors.shape[1]))
        np.add.at(self._sums, records.labels, records.vectors)

    def general(self, text: str, fewest: int) -> str:
        """Return a text without the words that occur in fewer than `fewest` records."""
        return " ".join(
            piece
            for piece in text.split()
            if all(self._known[word] >= fewest or word.startswith("[") for word in _words(piece))
        )

    def judge(self, place: int, text: str) -> RewriteVerdict:
        """Return the verdict on a text that was written from the record with index `place`."""
        (vector,) = self._encoder.encode([text])
        copied = _repeated(self.records.texts[place], text)
        cosines = self.records.vectors @ vector
        # A record with an equal vector is as near: each of the two hides the other.
        nearer = int(np.count_nonzero(cosines >= cosines[place])) - 1
        findings = (bool(self._redactor.entities(text)), copied > self._copied, nearer < self._nearest)
        mistaken = self._recognised(place, vector) != int(self.records.labels[place])
        return RewriteVerdict(sum(findings), mistaken, copied)

    def _recognised(self, place: int, vector: NDArray[np.float32]) -> int:
        """Return the label with the mean nearest to `vector`; omit the record at `place` from its own label's mean."""
        sums = self._sums.copy()
        sums[self.records.labels[place]] -= self.records.vectors[place]
        lengths = np.linalg.norm(sums, axis=1)
        # Without another record of its label nothing can be said against it.
        if lengths[self.records.labels[place]] < 1e-6:
            return int(self.records.labels[place])
        return int(np.argmax(np.where(lengths > 1e-6, sums @ vector / np.maximum(lengths, 1e-6), -2)))


def _words(text: str) -> list[str]:
    return [word if word.startswith("[") else word.lower() for word in _WORDS.findall(text)]


def _repeated(source: str, text: str) -> float:
    """Return the fraction of the source's three-word sequences that the text repeats; a short source counts as one."""
    source_words, text_words = _words(source), _words(text)
    length = max(1, min(_RUN, len(source_words)))
    runs = {tuple(source_words[at : at + length]) for at in range(len(source_words) - length + 1)}
    text_runs = {tuple(text_words[at : at + length]) for at in range(len(text_words) - length + 1)}
    return len(runs & text_runs) / max(1, len(runs))
