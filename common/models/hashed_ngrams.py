"""The hashed n-gram encoder as a module of sentence-transformers, which a saved encoder names for that library's use.

`Encoder.hashed_ngrams` gives the same vectors from the same table (`common.models.ngram_table`) without torch.
"""

from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers.sentence_transformer.modules import InputModule

from common.models import ngram_table


class HashedNgrams(InputModule):
    """Input module of a SentenceTransformer: texts to unnormalised vectors of whole numbers.

    Args:
        dimensions: Width of a vector.
        bits: Base-2 logarithm of the number of rows; the table takes 2^bits x dimensions x 4 bytes.
        public_seed: Fills the table. Public and part of the encoder's identity; not the experiment seed.
    """

    config_keys: list[str] = ["dimensions", "bits", "public_seed"]  # noqa: RUF012 — declared so by the base class

    def __init__(self, dimensions: int, bits: int, public_seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dimensions, self.bits, self.public_seed = dimensions, bits, public_seed
        signs = torch.from_numpy(ngram_table.signs(dimensions, bits, public_seed))
        self.table = torch.nn.EmbeddingBag.from_pretrained(signs, freeze=True, mode="sum")

    def preprocess(  # type: ignore[override]
        self,
        inputs: Sequence[str],
        prompt: str | None = None,
        **_: Any,
    ) -> dict[str, torch.Tensor]:
        """Rows of the table for each text, and where each text's rows begin."""
        texts = [f"{prompt}{text}" for text in inputs] if prompt else inputs
        rows, offsets = ngram_table.hashed_rows(texts, self.bits)
        return {"rows": torch.from_numpy(rows), "offsets": torch.from_numpy(offsets)}

    def forward(self, features: dict[str, torch.Tensor], **_: Any) -> dict[str, torch.Tensor]:
        """Adds `sentence_embedding`, (texts, dimensions) float32."""
        features["sentence_embedding"] = self.table(features["rows"], features["offsets"])
        return features

    def get_embedding_dimension(self) -> int:
        """Width of a vector."""
        return self.dimensions

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Writes the three integers; the table follows from them."""
        self.save_config(output_path)
