"""Codec that converts labelled texts to the integers of an answer and back, for queries whose answers are texts.

A text takes 1 + `longest` coordinates: the index of its label in the plan, then its UTF-8 bytes, one per coordinate,
padded with zeros. An answer always has room for `count` texts, so that its length is public; the coordinates of an
absent text are zeros.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from common.errors import InternalError, ProtocolError

_UNSHOWN = dict.fromkeys(
    [code for code in range(0xA0) if not (chr(code).isprintable() or chr(code) in "\t\n")]
    + [*range(0x202A, 0x202F), *range(0x2066, 0x206A)],
    " ",
)
"""Control characters and changes of text direction, each mapped to a space, so that a party's text cannot overwrite its
surroundings on a screen."""

Labelled = tuple[int, str]
"""The index of a label, and a text."""


def length(count: int, longest: int) -> int:
    """Return the number of coordinates of an answer."""
    return count * (1 + longest)


def encode(texts: Sequence[Labelled], count: int, longest: int) -> npt.NDArray[np.int64]:
    """Encode texts without zero bytes or outer spaces, each as the whole characters that fit into `longest` bytes.

    The texts are sorted, with blank ones last, so that the order of records is not revealed.

    Returns:
        (count * (1 + longest),) int64.

    Raises:
        InternalError: There are more than `count` texts.
    """
    if len(texts) > count:
        raise InternalError("texts of an answer", expected=f"at most {count}", got=len(texts))
    # Half a surrogate pair, which JSON can contain, has no UTF-8.
    contents = [(label, _cut(text.replace("\0", "").encode("utf-8", "replace"), longest)) for label, text in texts]
    answer = np.zeros((count, 1 + longest), dtype=np.int64)
    for row, (label, content) in zip(answer, sorted(pair for pair in contents if pair[1]), strict=False):
        row[0] = label
        row[1 : 1 + len(content)] = np.frombuffer(content, dtype=np.uint8)
    return answer.reshape(-1)


def decode(answers: npt.ArrayLike, count: int, longest: int, labels: int) -> list[Labelled]:
    """Decode the texts of one answer, or of several in order.

    Blank texts are omitted, and control characters are replaced by spaces.

    Args:
        answers: (count * (1 + longest),) or (parties, count * (1 + longest)), integers or floating-point numbers.
        count: Number of texts in an answer.
        longest: Maximum number of bytes in a text.
        labels: Number of labels of the plan.

    Raises:
        ProtocolError: The integers are not the result of `encode` for texts with these labels.
    """
    rows = np.atleast_2d(np.asarray(answers))
    if rows.ndim != 2 or rows.shape[1] != length(count, longest):
        raise _malformed(f"{length(count, longest)} coordinates", rows.shape)
    rows = rows.reshape(-1, 1 + longest)
    numbers, characters = rows[:, 0], rows[:, 1:]
    # Not-a-number fails these comparisons too.
    if not (((characters >= 0) & (characters <= 255)).all() and ((numbers >= 0) & (numbers < labels)).all()):
        raise _malformed(f"bytes, and labels below {labels}", "other numbers")
    if (rows != np.floor(rows)).any() or ((characters[:, :-1] == 0) & (characters[:, 1:] > 0)).any():
        raise _malformed("integers, zeros only after the text", "others")
    try:
        read = [bytes(row[row > 0].astype(np.uint8)).decode().translate(_UNSHOWN).strip() for row in characters]
    except UnicodeDecodeError:
        raise _malformed("UTF-8", "other bytes") from None
    return [(int(number), text) for number, text in zip(numbers, read, strict=True) if text]


def readable(answers: npt.ArrayLike, count: int, longest: int, labels: int) -> tuple[list[Labelled], list[str]]:
    """Decode the answers of all parties. Return the texts of all readable answers, and a note if some cannot be read.

    One party with a malformed answer must not end a run whose other answers are paid for.

    Raises:
        ProtocolError: No answer can be read.
    """
    read: list[Labelled] = []
    failed: list[ProtocolError] = []
    rows = np.atleast_2d(np.asarray(answers))
    for row in rows:
        try:
            read += decode(row, count, longest, labels)
        except ProtocolError as error:
            failed.append(error)
    if failed and len(failed) == len(rows):
        raise failed[0]
    return read, [f"{len(failed)} of {len(rows)} parties answered with what is no text: left out"] if failed else []


def _cut(content: bytes, longest: int) -> bytes:
    return content.strip()[:longest].decode("utf-8", "ignore").strip().encode()


def _malformed(expected: str, got: object) -> ProtocolError:
    return ProtocolError("texts of an answer", expected=expected, got=got)
