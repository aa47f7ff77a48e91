"""RPSG's seeds at a party: one abstraction of each drawn record, chosen with noise (sections 3.1 and 3.2).

1. draw       the records with the lowest keyed digests, as many as there are choices
2. redact     personal information, by patterns and optionally a model for names
3. abstract   into more candidates than step 5 chooses from; draw some more if none is sure to keep the tone
4. prune      to K by w cosine + (1 - w) [same polarity, surely enough] - penalty [polarity flipped]   (equation 5)
5. choose     the highest (1 + cosine) / 2 with Gaussian noise (equation 2)
6. redact     the chosen one again

The released texts have no privacy proof: see `common.queries.texts.AbstractedSeedsSpec`. A record yields a blank text
if nothing is left of it after redaction, or if the model returned its input as every candidate. If all candidates have
the wrong polarity, the best of them are used nevertheless.
"""

import logging
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from client.records import EmbeddedRecords
from client.writers.abstractors import Abstraction, same, says
from client.writers.base import OR_REFUSE, spec_of
from client.writers.sentiment import Mood, Sentiment
from common import redaction
from common.errors import ConfigError
from common.models.encoder import Encoder
from common.plan.planned import PlannedQuery
from common.privacy import gaussian_max
from common.privacy.keystream import Keystream
from common.privacy.mechanisms import round_to_grid
from common.queries.text_codec import Labelled
from common.queries.texts import AbstractedSeedsSpec
from common.redaction import Redactor
from common.validate import in_range, integers

log = logging.getLogger("caucus.party")


class Seeds:
    """The `PartyWriter` that makes seeds from a party's records; the defaults are those of table 4.

    Args:
        abstraction: Writer of the abstractions.
        sentiment: Classifier of the polarity.
        names: A model for named entities, for redaction; None uses only patterns.
        language: Language of the records, for redaction (`common.personal_patterns`).
        oversampled: Number of candidates for each record before pruning.
        similarity: w, weight of the cosine.
        flip_penalty: Number subtracted from the score of a candidate of the opposite polarity.
        confidence: Smallest confidence with which a candidate must be judged to have the record's polarity.
        most: Maximum number of texts that a plan may request.
    """

    def __init__(
        self,
        *,
        abstraction: Abstraction,
        sentiment: Sentiment,
        names: str | None = None,
        language: str = "english",
        oversampled: int = 10,
        similarity: float = 0.75,
        flip_penalty: float = 0.15,
        confidence: float = 0.55,
        most: int = 1000,
    ) -> None:
        integers(2, section="seeds", oversampled=oversampled)
        integers(1, section="seeds", most=most)
        in_range(0, 1, section="seeds", similarity=similarity, flip_penalty=flip_penalty, confidence=confidence)
        self._abstraction, self._sentiment = abstraction, sentiment
        self._names, self._language = names, language
        self._oversampled, self._most = oversampled, most
        self._similarity, self._flip_penalty, self._confidence = similarity, flip_penalty, confidence

    def check(self, planned: PlannedQuery, labels: Sequence[str]) -> None:
        """Check that these settings can answer the planned query.

        Raises:
            ConfigError: The query needs more texts than allowed, more candidates than are made, or a model for names
                that is missing.
        """
        del labels
        spec = spec_of(planned, AbstractedSeedsSpec)
        choices = spec.choices * planned.times
        if choices > self._most:
            raise ConfigError("seeds.most", expected=f"at least {choices}, for this plan", got=self._most, do=OR_REFUSE)
        if spec.candidates > self._oversampled:
            expected = f"at least {spec.candidates}, for this plan"
            raise ConfigError("seeds.oversampled", expected=expected, got=self._oversampled, do=OR_REFUSE)
        _ = self._redactor

    def write(
        self, planned: PlannedQuery, records: EmbeddedRecords, *, labels: Sequence[str], encoder: Encoder, key: bytes
    ) -> list[Labelled]:
        """Return the seeds; there are fewer than planned if records are blank or too few."""
        del labels
        spec, stream = spec_of(planned, AbstractedSeedsSpec), Keystream(key)
        positions = records.drawn(spec.choices, stream.read(32)).tolist()
        seeds: list[Labelled] = []
        for place in positions:
            redacted = self._redactor.redact(records.texts[place])
            if not says(redacted):
                continue
            candidates = self._candidates(redacted, np.random.default_rng(int.from_bytes(stream.read(32))))
            if not candidates:
                continue
            cosines = _cosines(redacted, candidates, encoder)
            pruned = self._pruned(redacted, candidates, cosines, spec.candidates)
            utilities = round_to_grid((1 + cosines[pruned]) / 2)
            chosen = candidates[pruned[gaussian_max.choose_noisy_max(utilities, planned.scale, stream.read(32))]]
            seeds.append((int(records.labels[place]), self._redactor.redact(chosen)))
        if len(seeds) < len(positions):
            log.warning("of some records nothing is left after redaction, or no abstraction: their seeds are blank")
        return seeds

    @cached_property
    def _redactor(self) -> Redactor:
        return redaction.redactor(self._language, self._names)

    def _candidates(self, redacted: str, rng: np.random.Generator) -> list[str]:
        """Return abstractions written by beam search and, if none is sure to keep the tone, some more random ones."""
        mood = self._sentiment.judge(redacted)
        candidates: list[str] = []
        for sampled in (False, True):
            written = self._abstraction.write(redacted, self._oversampled, tone=mood.polarity, sampled=sampled, rng=rng)
            candidates += [candidate for candidate in written if says(candidate) and not same(candidate, redacted)]
            if any(self._agrees(self._sentiment.judge(candidate), mood) for candidate in candidates):
                break
        return list(dict.fromkeys(candidates))

    def _pruned(
        self, redacted: str, candidates: Sequence[str], cosines: NDArray[np.float64], count: int
    ) -> NDArray[np.int64]:
        """Return the indices of the `count` candidates with the highest scores, or of all if there are fewer."""
        mood = self._sentiment.judge(redacted)
        moods = [self._sentiment.judge(candidate) for candidate in candidates]
        agree = np.array([self._agrees(candidate, mood) for candidate in moods])
        flipped = np.array([candidate.polarity * mood.polarity < 0 for candidate in moods])
        scores = self._similarity * cosines + (1 - self._similarity) * agree - self._flip_penalty * flipped
        return np.argsort(-scores, kind="stable")[:count]

    def _agrees(self, candidate: Mood, record: Mood) -> bool:
        return candidate.polarity == record.polarity and candidate.confidence >= self._confidence


def _cosines(redacted: str, candidates: Sequence[str], encoder: Encoder) -> NDArray[np.float64]:
    """Return the candidates' cosines with the record, (candidates,); each text is embedded separately."""
    seed = encoder.encode([redacted])[0]
    return np.array([encoder.encode([candidate])[0] @ seed for candidate in candidates], dtype=np.float64)
