"""Abstractions of a record: shorter texts with its gist but without its details (RPSG, section 3.1, appendix B.1).

An abstraction is written from one record and may disclose its content. It is not protected by differential privacy, and
neither are texts made from it (`common.queries.texts.AbstractedSeedsSpec`).
"""

import re
from collections import Counter
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from common.models import checkpoints
from common.system.extras import needs
from common.validate import in_range, integers


class Abstraction(Protocol):
    """A writer of abstractions."""

    def write(self, text: str, count: int, *, tone: int, sampled: bool, rng: np.random.Generator) -> list[str]:
        """Return up to `count` abstractions, the best first.

        Args:
            text: The redacted text.
            count: Maximum number of abstractions.
            tone: Sentiment polarity of the record: 1 positive, -1 negative, 0 neither.
            sampled: Whether to draw the abstractions at random instead of taking the likeliest.
            rng: Generator for drawing, seeded from the operating system's entropy.
        """


_MASKS = {
    "PERSON": "someone",
    "DATE": "some time",
    "AGE": "of some age",
    "CURRENCY": "some money",
    "LOCATION": "some place",
    "ADDRESS": "some place",
    "ORGANISATION": "some organisation",
}
"""Words that replace the masks, keyed by mask; masks that are not listed are removed."""

_PIECES = re.compile(r"(?<=[.!?;:])\s+|\n+|,\s+|\s+(?:and|but|because|although|while|which|who|so|then)\s+")
_EXAMPLES = re.compile(r"\([^()]*\)|\"[^\"]*\"|“[^”]*”")
_NUMBERS = re.compile(r"\b\d[\w.,:/%-]*")
_WORDS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SAYS = re.compile(r"\w")
_MASK = re.compile(r"\[[A-Z]+\]")
_NAMED = re.compile(r"(?<=\w )[A-Z][a-z]+(?: [A-Z][a-z]+)*")


class Extracts:
    """A writer that extracts the most informative clauses and removes or generalises details; needs no model weights.

    Brackets and quotations are removed; numbers become "some", and masks and words with a capital letter inside a
    clause become "someone" and the like. The score of a clause is the mean frequency of its words in the text
    (SumBasic, Nenkova and Vanderwende 2005). Each further candidate keeps a smaller fraction of the words, in their
    order, but at least the clause with the highest score. For sampled candidates, noise is added to the scores. This
    writer abstracts little: clauses keep the record's own words, and a record of one clause is kept whole.

    Args:
        longest: Maximum number of words of an abstraction.
        most: Fraction of the words that the first candidate keeps.
        least: Fraction of the words that the last candidate keeps.

    Raises:
        ConfigError: The scikit-learn package, which provides the list of frequent words, is not installed.
    """

    def __init__(self, *, longest: int = 150, most: float = 0.7, least: float = 0.3) -> None:
        needs("abstraction extracts", "sklearn", extra="transformers")
        integers(1, longest=longest)
        in_range(0, 1, most=most, least=least)
        self._longest, self._most, self._least = longest, most, least

    def write(self, text: str, count: int, *, tone: int, sampled: bool, rng: np.random.Generator) -> list[str]:
        """Return up to `count` abstractions, as `Abstraction` defines; the tone is ignored."""
        del tone
        clauses = [clause for piece in _PIECES.split(_EXAMPLES.sub(" ", text)) if (clause := _general(piece))]
        telling = [_content(clause) for clause in clauses]
        frequent = Counter(word for words in telling for word in words)
        scores = np.array([sum(frequent[word] for word in words) / max(1, len(words)) for words in telling])
        abstracts = []
        for share in np.linspace(self._most, self._least, count):
            noise = rng.gumbel(size=len(clauses)) if sampled else np.zeros(len(clauses))
            abstracts.append(self._selection(clauses, scores + noise, share))
        return list(dict.fromkeys(abstract for abstract in abstracts if abstract))

    def _selection(self, clauses: list[str], scores: NDArray[np.float64], share: float) -> str:
        words = [len(clause.split()) for clause in clauses]
        room = min(self._longest, round(share * sum(words)))
        positions: list[int] = []
        for place in np.argsort(-scores, kind="stable").tolist():
            if words[place] <= room or not positions:
                positions.append(place)
                room -= words[place]
        sentences = (" ".join(clauses[place].split()[: self._longest]) for place in sorted(positions))
        return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences)


class Summariser:
    """A sequence-to-sequence model from transformers; the paper uses facebook/bart-large-cnn.

    Args:
        name_or_path: A folder, or a name in the local cache; nothing is downloaded, and code that comes with the model
            is not run.
        longest: Maximum number of tokens of an abstraction.
        shortest: Minimum number of tokens of an abstraction.
        control: Whether to put "Keep positive tone:" or "Keep negative tone:" before a text that has a tone.
        device: Device, as torch names it.

    Raises:
        ConfigError: There is no such model on this machine.
    """

    def __init__(
        self, name_or_path: str, *, longest: int = 150, shortest: int = 50, control: bool = True, device: str = "cpu"
    ) -> None:
        integers(1, longest=longest, shortest=shortest)
        self._longest, self._shortest, self._control = longest, min(shortest, longest), control
        self._model, self._tokenizer = checkpoints.load_checkpoint(
            name_or_path, "AutoModelForSeq2SeqLM", what="abstraction model", device=device
        )

    def write(self, text: str, count: int, *, tone: int, sampled: bool, rng: np.random.Generator) -> list[str]:
        """Return up to `count` abstractions, as `Abstraction` defines, by beam search or drawn from the model."""
        import torch

        if self._control and tone:
            text = f"Keep {'positive' if tone > 0 else 'negative'} tone: {text}"
        given = self._tokenizer(text, return_tensors="pt", truncation=True).to(self._model.device)
        how: dict[str, Any] = (
            {"do_sample": True, "num_beams": 1} if sampled else {"do_sample": False, "num_beams": count}
        )
        with torch.random.fork_rng(), torch.inference_mode():
            torch.manual_seed(int(rng.integers(2**63)))
            rows = self._model.generate(
                input_ids=given["input_ids"],
                attention_mask=given["attention_mask"],
                num_return_sequences=count,
                max_length=self._longest,
                min_length=self._shortest,
                **how,
            )
        written = (row.strip() for row in self._tokenizer.batch_decode(rows, skip_special_tokens=True))
        return list(dict.fromkeys(abstract for abstract in written if abstract))


def same(one: str, other: str) -> bool:
    """Return whether two texts are the same except for case, punctuation and numbers."""
    return _WORDS.findall(one.lower()) == _WORDS.findall(other.lower())


def says(text: str) -> bool:
    """Return whether the text has a letter or digit outside of masks."""
    return _SAYS.search(_MASK.sub("", text)) is not None


def _general(piece: str) -> str:
    for mask, word in _MASKS.items():
        piece = piece.replace(f"[{mask}]", word)
    piece = _NUMBERS.sub("some", _MASK.sub(" ", piece))
    return _NAMED.sub("someone", " ".join(piece.split()).strip(" .!?;:,-"))


def _content(clause: str) -> list[str]:
    return [word for word in _WORDS.findall(clause.lower()) if word not in _common()]


@cache
def _common() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset({*ENGLISH_STOP_WORDS, "some", "someone"})
