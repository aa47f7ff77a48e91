"""The only module that reads private files, and the only form in which the rest of the party accesses private data.

The rows of a database are copied into such a file first, by `client/database.py`.
"""

import hmac
import logging
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from common import sections
from common.domain import Record, is_one_population
from common.errors import CaucusError, ConfigError, DataError, InternalError
from common.labelled_files import named_by, read_records
from common.models.encoder import Encoder
from common.spelling import BLANK
from common.system.progress import progress
from common.validate import in_range

log = logging.getLogger("caucus.party")

LARGEST_ENTRY = 1.001
"""Upper bound on the entries of a vector of unit norm, with more margin than any rounding needs."""
MOST_LABELS, LONGEST_LABEL = 30, 40
"""Maximum number of labels shown, and of characters shown of each: if the columns of a file were swapped, its labels
would be whole texts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmbeddedRecords:
    """One party's private records, ready to answer queries. No attribute appears in the repr.

    The bounds on what a record adds to an answer are proved for finite numbers, and for products that fit into
    integers. So a vector with other values, which no encoder should return, is replaced by zero here.

    Attributes:
        vectors: (records, dimensions) float32, unit norm, or zero.
        labels: (records,) int32, index of each record's label among the plan's labels.
        texts: The records' texts.
        owners: The user that each record belongs to, by name or number; users with the same `repr` are the same user.
            None if each record is a separate unit.
        parts: (records,) index of the record that each row belongs to, ascending: a record with several labels has one
            row for each of them, and no label twice. None if each record has one label.

    Raises:
        InternalError: The numbers of vectors, labels, texts, owners and parts differ.
    """

    vectors: NDArray[np.float32] = field(repr=False)
    labels: NDArray[np.int32] = field(repr=False)
    texts: tuple[str, ...] = field(repr=False)
    owners: tuple[Hashable, ...] | None = field(default=None, repr=False)
    parts: NDArray[np.int64] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        counts = {len(self.vectors), len(self.labels), len(self.texts)}
        counts |= {len(given) for given in (self.owners, self.parts) if given is not None}
        if len(counts) > 1:
            raise InternalError("vectors, labels, texts and owners of records disagree in number")
        if self.vectors.size and not (self.vectors.min() >= -LARGEST_ENTRY and self.vectors.max() <= LARGEST_ENTRY):
            sound = np.all(np.abs(self.vectors) <= LARGEST_ENTRY, axis=1, keepdims=True)  # which NaN is not either
            object.__setattr__(self, "vectors", np.where(sound, self.vectors, np.float32(0)))

    @property
    def record_numbers(self) -> NDArray[np.int64]:
        """The index of the record that each row belongs to, ascending."""
        return np.arange(len(self.texts)) if self.parts is None else self.parts

    def limited(self, max_records: int, labels_per_record: int = 1) -> Self:
        """Return the first `max_records` records of each owner, in their original order.

        Without owners, all records are returned. For a record with several labels, only the first `labels_per_record`
        labels are kept. As the sensitivities require, the choice for an owner depends on that owner's records alone,
        and it is deterministic.
        """
        if self.owners is None and self.parts is None:
            return self
        numbers = self.record_numbers
        firsts = np.searchsorted(numbers, numbers)  # for each row the row of its record's first label
        kept = np.arange(len(firsts)) - firsts < labels_per_record
        if self.owners is not None:
            seen: Counter[str] = Counter()
            allowed = np.zeros(len(firsts), dtype=np.bool_)
            for first in np.unique(firsts).tolist():
                owner = repr(self.owners[first])
                allowed[first] = seen[owner] < max_records
                seen[owner] += 1
            kept &= allowed[firsts]
        return self if kept.all() else self._only(kept)  # a copy would need their memory again

    def sampled(self, rate: float, key: bytes) -> Self:
        """Return a Poisson subsample: each unit takes part with probability `rate`, independently of all other units.

        A unit takes part if its keyed 64-bit digest is below rate * 2^64, rounded down. If HMAC-SHA256 is regarded as a
        random function, units are independent, and the probability is at most 2^-64 below `rate` and never above it.
        The same key draws the same units, so one subsample can serve several queries.

        Args:
            rate: The probability, in [0, 1].
            key: Secret bytes, used for this subsample alone.

        Raises:
            ConfigError: The rate is not a probability.
        """
        in_range(0, 1, rate=rate)
        below = int(rate * 2.0**64)  # Exact: a power of two only moves the exponent.
        if self.owners is None:
            digests = self.digests(key).tolist()
        else:
            digests = [_digest(key, b"owner:" + _bytes(repr(owner))) for owner in self.owners]
        return self._only(np.array([digest < below for digest in digests], dtype=np.bool_))

    def digests(self, key: bytes) -> NDArray[np.uint64]:
        """Return each record's digest: the first 64 bits of HMAC-SHA256 of label, number among equal records, and text.

        Removing a record removes the digest of the last record equal to it; all other digests stay the same.
        """
        seen: Counter[tuple[str, int]] = Counter()
        digests = np.empty(len(self.texts), dtype=np.uint64)
        for record, content in enumerate(zip(self.texts, self.labels.tolist(), strict=True)):
            text, label = content
            digests[record] = _digest(key, f"{label}:{seen[content]}:".encode() + _bytes(text))
            seen[content] += 1
        return digests

    def drawn(self, count: int, key: bytes) -> NDArray[np.intp]:
        """Return the indices of a random sample of at most `count` records: those with the smallest digests.

        Args:
            count: The size of the sample.
            key: Secret bytes, used for this sample alone.
        """
        return np.argsort(self.digests(key), kind="stable")[:count]

    def _only(self, kept: NDArray[np.bool_]) -> Self:
        places = np.flatnonzero(kept).tolist()
        return type(self)(
            vectors=self.vectors[kept],
            labels=self.labels[kept],
            texts=tuple(self.texts[place] for place in places),
            owners=None if self.owners is None else tuple(self.owners[place] for place in places),
            parts=None if self.parts is None else self.parts[kept],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartyRecords:
    """All private records of a party, embedded once, before any plan is known. No attribute appears in the repr.

    Attributes:
        records: The records.
        vectors: (records, dimensions) float32, unit norm.
        encoder: The encoder that made the vectors.
        sections: The records' sections, under the headings named in this party's own file; None if it names none.
    """

    records: tuple[Record, ...] = field(repr=False)
    vectors: NDArray[np.float32] = field(repr=False)
    encoder: Encoder
    sections: "RecordSections | None" = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.records)

    def for_plan(
        self, labels: Sequence[str], *, unit: str = "sample", labels_per_record: int = 1, by_section: bool = False
    ) -> EmbeddedRecords:
        """Return the records that take part in a plan with these public labels and this unit, "sample" or "user".

        Records with other labels do not take part. Refusing the plan because of them would reveal to the coordinator,
        without noise, which labels this party has. Whether a record is omitted depends on that record alone, so no
        sensitivity grows. Records that name no user belong to one user, the party. In a plan without labels all records
        take part, as one population, whatever labels this party's file gives them. Each record still adds to one label
        alone, so no sensitivity grows.

        In a plan with several labels per record (`labels_per_record`), a record has one row for each of its labels that
        is in the plan, in the file's order, up to `labels_per_record` rows. In any other plan it takes part under its
        first label alone, or not at all.

        In a plan by sections the labels are headings. A record has one row for each of its own headings that is in the
        plan, with the text and the vector of that section, in the order of the text, up to `labels_per_record` rows. A
        record without such headings does not take part.
        """
        if by_section:
            return self._under_headings(labels, unit, labels_per_record)
        number = {label: position for position, label in enumerate(labels)}
        several = labels_per_record > 1 and not is_one_population(labels)
        if is_one_population(labels):
            known = [[0] for _ in self.records]
        elif several:
            listed = ([number[label] for label in record.labels if label in number] for record in self.records)
            known = [list(dict.fromkeys(mine))[:labels_per_record] for mine in listed]
        else:
            known = [[number[record.label]] if record.label in number else [] for record in self.records]
        if not all(known):
            log.warning("some private records have no label that the plan knows: they do not take part")
        parts = np.repeat(np.arange(len(known)), [len(mine) for mine in known])
        records = [self.records[part] for part in parts.tolist()]
        return EmbeddedRecords(
            # A copy would need their memory again.
            vectors=self.vectors if all(known) and not several else self.vectors[parts],
            labels=np.array([label for mine in known for label in mine], dtype=np.int32),
            texts=tuple(record.text for record in records),
            owners=tuple(record.user or "" for record in records) if unit == "user" else None,
            parts=parts if several else None,
        )

    def _under_headings(self, headings: Sequence[str], unit: str, most: int) -> EmbeddedRecords:
        number = {sections.normal_heading(heading): position for position, heading in enumerate(headings)}
        mine = self.sections or RecordSections.of((), self.encoder, ())
        kept, seen = list[int](), Counter[int]()
        for row, (record, heading) in enumerate(zip(mine.numbers, mine.headings, strict=True)):
            if heading in number and seen[record] < most:
                kept.append(row)
                seen[record] += 1
        if len(seen) < len(self.records):
            log.warning("some private records have no section under a heading of the plan: they do not take part")
        parts = [mine.numbers[row] for row in kept]
        return EmbeddedRecords(
            vectors=mine.vectors[kept],
            labels=np.array([number[mine.headings[row]] for row in kept], dtype=np.int32),
            texts=tuple(mine.texts[row] for row in kept),
            owners=tuple(self.records[part].user or "" for part in parts) if unit == "user" else None,
            parts=np.array(parts, dtype=np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordSections:
    """The embedded sections of a party's records. No attribute appears in the repr.

    Attributes:
        numbers: The index of the record that each section belongs to, ascending.
        headings: The sections' headings, in the form in which they are compared; no heading occurs twice in a record.
        texts: The sections' texts, without headings.
        vectors: (sections, dimensions) float32, unit norm.
    """

    numbers: tuple[int, ...] = field(repr=False)
    headings: tuple[str, ...] = field(repr=False)
    texts: tuple[str, ...] = field(repr=False)
    vectors: NDArray[np.float32] = field(repr=False)

    @classmethod
    def of(cls, private: Sequence[Record], encoder: Encoder, headings: Sequence[str]) -> "RecordSections":
        """Return the sections of these records, with their embeddings."""
        rows = [
            (number, sections.normal_heading(part.heading), record.text[part.start : part.end])
            for number, record in enumerate(private)
            for part in sections.sections(record.text, headings)
        ]
        numbers, names, texts = zip(*rows, strict=True) if rows else ((), (), ())
        return cls(numbers=numbers, headings=names, texts=texts, vectors=_alone(texts, encoder))


def load_records(
    path: Path,
    *,
    may_be_empty: bool = False,
    labelled: bool = True,
    remarks: list[str] | None = None,
) -> list[Record]:
    """Read a party's own file: `text`, `label` and, if records name their users, `user` (`common.labelled_files`).

    A hospital's file may be empty: the hospital then contributes only noise, and nobody learns that it has no records.
    If the party expects no labels (`labelled` is False), its records take part only in plans without labels. `remarks`
    receives lines on the file, for this hospital alone, since they may contain counts.

    Raises:
        DataError: The file is invalid; the message contains the path and the line, or the number of the record, and
            never a word of the text.
        MissingPackageError: The file is Parquet, and pyarrow is not installed.
    """
    with named_by("records"):
        return read_records(path, may_be_empty=may_be_empty, labelled=labelled, remarks=remarks)


def embed_records(private: Sequence[Record], encoder: Encoder, headings: Sequence[str] = ()) -> PartyRecords:
    """Embed all of a party's records, needed or not, since the duration of an opening must not depend on them.

    For the same reason their sections are embedded here too, under all headings that this party's own file names.

    Raises:
        ConfigError: The encoder would send texts to an endpoint.
        DataError: The encoder cannot embed a text; the message does not show it.
    """
    if not encoder.runs_here:
        what = "a party's encoder must run here, as private text is never sent anywhere"
        do = "Choose embedding=pretrained, or another that is computed locally"
        raise ConfigError(what, got=type(encoder).__name__, do=do)
    try:
        vectors = _alone([record.text for record in private], encoder)
        parts = RecordSections.of(private, encoder, headings) if headings else None
    except CaucusError:
        raise
    except Exception as error:  # noqa: BLE001 a library's message can quote the text, which no log may hold
        raise DataError(
            "embedding of the records", got=type(error).__name__, do="Try the encoder on texts that are not private"
        ) from None
    return PartyRecords(records=tuple(private), vectors=vectors, encoder=encoder, sections=parts)


def shown_labels(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the most frequent labels, as shown, with their numbers of records; the last entry counts all others."""
    shown = Counter[str]()
    for label, count in Counter(counts).most_common(MOST_LABELS):
        shown[shown_label(label)] += count
    if len(counts) > MOST_LABELS:
        shown[f"and {len(counts) - MOST_LABELS} others"] = sum(counts.values()) - shown.total()
    return dict(shown)


def shown_label(label: str) -> str:
    """Return the label, cut, in a form that fits on one line and cannot move a terminal's cursor."""
    signs = (sign if sign.isprintable() and sign not in BLANK else ascii(sign)[1:-1] for sign in label)
    seen = "".join(signs)
    return seen if len(seen) <= LONGEST_LABEL else f"{seen[:LONGEST_LABEL]}..."


def _alone(texts: Sequence[str], encoder: Encoder) -> NDArray[np.float32]:
    # One at a time: in a batch a transformer's padding lets a record's neighbours move its vector by a hair, and
    # sensitivities are proved for records that do not touch each other.
    vectors = [encoder.encode([])]
    with progress("embedding private records", len(texts), "record") as advance:
        for text in texts:
            vectors.append(encoder.encode([text]))
            advance(1)
    return np.concatenate(vectors)


def _digest(key: bytes, content: bytes) -> int:
    return int.from_bytes(hmac.digest(key, content, "sha256")[:8], "big")


def _bytes(text: str) -> bytes:
    # Half a surrogate pair, which JSON can hold, is text too; an error would quote it.
    return text.encode("utf-8", errors="surrogatepass")
