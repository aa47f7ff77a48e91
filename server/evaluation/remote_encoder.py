"""Embeddings from an endpoint with OpenAI's protocol, for figures on texts that may be sent to it, never for votes.

Votes need the same encoder at every party, and private text is never sent anywhere, so no party uses this class: it is
not an `Encoder`, has no digest that a plan could contain, and is refused by a party. Only the evaluation's models
(`evaluation.embedding`) use it, on synthetic and held-out texts, which thereby leave this machine.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.address import check_web_address
from common.errors import ConfigError, ProviderError
from common.system.network_variables import HTTPX, check_network_variables, key_in
from common.validate import integers, not_empty

_RETRIES = 6


class RemoteEncoder:
    """An encoder at a remote endpoint, which converts texts to unit vectors.

    Args:
        model: Name of the model at the endpoint.
        base_url: Address of the endpoint; if None, the address of OpenAI's endpoint.
        key_variable: Name of the environment variable that contains the key.
        batch: Number of texts in one request.

    Raises:
        ConfigError: The environment variable contains no key, or another one cannot be used; or `base_url` is wrong.
    """

    runs_here = False

    def __init__(
        self, *, model: str, base_url: str | None = None, key_variable: str = "OPENAI_API_KEY", batch: int = 256
    ) -> None:
        not_empty(model=model)
        integers(1, batch=batch)
        if base_url is not None:
            check_web_address("base_url", base_url)
        check_network_variables(HTTPX)
        key = key_in(key_variable)
        if not key:
            raise ConfigError(
                "evaluation.embedding",
                expected=f"a key in the environment variable {key_variable}",
                got="none",
                do="Export it; a server without authentication accepts any value",
            )
        import openai

        self._model, self._batch = model, batch
        self._errors = (openai.OpenAIError, AttributeError, TypeError, ValueError)
        self._client = openai.OpenAI(api_key=key, base_url=base_url, max_retries=_RETRIES)

    @property
    def digest(self) -> str:
        """Digest of the encoder, which is not available: no one can prove that two endpoints compute the same vectors.

        Raises:
            ConfigError: Always, since a plan identifies an encoder by its digest.
        """
        raise ConfigError(
            "embedding",
            expected="an encoder that every party runs itself: private text is never sent anywhere",
            got="an endpoint",
            do="Choose embedding=pretrained; an endpoint goes to +embedding@evaluation.embedding=",
        )

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of at least one text, in the same order: (len(texts), dimensions) float32, unit norm.

        Raises:
            ProviderError: The endpoint fails, or does not return one finite vector for each text, all of the same
                width.
        """
        rows: list[list[float]] = []
        for start in range(0, len(texts), self._batch):
            batch = list(texts[start : start + self._batch])
            try:
                reply = self._client.embeddings.create(model=self._model, input=batch, encoding_format="float")
                vectors = [entry.embedding for entry in sorted(reply.data, key=lambda entry: entry.index)]
            except self._errors as error:
                # The SDK's message may quote a text: only the type of the error and the status are passed on.
                status = getattr(error, "status_code", "none")
                raise self._broken(f"{type(error).__name__}, HTTP status {status}") from None
            if len(vectors) != len(batch):
                raise self._broken(f"{len(vectors)} vectors for {len(batch)} texts")
            rows += vectors
        widths = {len(row) for row in rows}
        if len(widths) != 1:
            raise self._broken(f"vectors of {len(widths)} widths")
        raw = np.array(rows, np.float64)
        norms = np.linalg.norm(raw, axis=1, keepdims=True)
        if not np.all(np.isfinite(norms) & (norms > 0)):
            raise self._broken("vectors that are zero or not finite")
        unit: NDArray[np.float32] = (raw / norms).astype(np.float32)
        return unit

    def _broken(self, got: str) -> ProviderError:
        return ProviderError(
            "the endpoint for embeddings fails",
            expected="one vector a text",
            got=got,
            where=self._model,
            do="Check the key, the model's name and the address; or leave evaluation.embedding out",
        )
