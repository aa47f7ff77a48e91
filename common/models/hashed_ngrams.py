"""The encoder without weights, based on hashed n-grams; `common.models.ngram_table` computes its vectors."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from common.models import ngram_table
from common.validate import at_least, in_range

_TYPE = "common.models.hashed_ngrams.HashedNgrams"
_NUMBERS = ("dimensions", "bits", "public_seed")
_BATCH = 256


class HashedNgrams:
    """An `EmbeddingModel` without weights; it computes the same bits in every batch and process and on every machine.

    Args:
        dimensions: Number of dimensions of a vector, at least 32.
        bits: Base-2 logarithm of the number of rows of the table, 8 to 22.
        public_seed: Seed of the table.

    Raises:
        ConfigError: A value is out of range.
    """

    def __init__(self, dimensions: int, bits: int, public_seed: int) -> None:
        at_least(32, dimensions=dimensions)
        in_range(8, 22, bits=bits)
        self._numbers = (dimensions, bits, public_seed)

    @classmethod
    def saved(cls, folder: Path) -> Self | None:
        """Return the encoder that `save` wrote to a folder; None if the folder contains another encoder."""
        try:
            modules = json.loads((folder / "modules.json").read_text("utf-8"))
            if [module["type"] for module in modules] != [_TYPE]:
                return None
            config = json.loads((folder / "config.json").read_text("utf-8"))
            return cls(*(int(config[name]) for name in _NUMBERS))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def dimensions(self) -> int:
        """Dimension of the vectors."""
        return self._numbers[0]

    @property
    def digest(self) -> str:
        """Hex SHA-256 of the three parameters and the table."""
        return ngram_table.digest(*self._numbers)

    def batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Yield, for each batch, the indices of its texts and their vectors.

        The vectors are a (texts, dimensions) array of whole numbers.
        """
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            yield list(range(start, start + len(batch))), ngram_table.sums(batch, *self._numbers)

    def save(self, folder: Path) -> None:
        """Write the three parameters, from which the table can be computed."""
        folder.mkdir(parents=True, exist_ok=True)
        modules = [{"idx": 0, "name": "0", "path": "", "type": _TYPE}]
        config = dict(zip(_NUMBERS, self._numbers, strict=True))
        (folder / "modules.json").write_text(json.dumps(modules, indent=2) + "\n", "utf-8")
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
