"""One prompt of a run's own kind, tried before any private query: can the reply be read?"""

import logging

from common.errors import ProviderError
from server.llm.base import Provider, Request

log = logging.getLogger("caucus.llm")

_LONGEST_SHOWN = 200
_DECLINED = ("refused", "filtered")


def try_request(provider: Provider, request: Request) -> None:
    """Send one request, whose prompt shows no texts, and check that its reply has a text.

    A model may refuse one prompt and write many others, so a refusal is a warning.

    Raises:
        ProviderError: The reply has no text; the error shows the reply and says what to change. Or the model fails.
    """
    (reply,) = provider.generate([request])
    if reply.texts:
        return
    shown = " ".join(reply.raw.split())[:_LONGEST_SHOWN]
    got = f"one without ({reply.loss}): {shown!r}" if shown else f"an empty one ({reply.loss})"
    if reply.loss in _DECLINED:
        log.warning("%s declines a first prompt of this task: %s", provider.name, got)
        return
    settings = f"llm.models.{provider.name}"
    longer = f"raise {settings}.max_tokens, which a model that reasons uses up before it writes"
    simpler = f"ask for one text at a time (method.texts_per_request=1), or take a larger model ({settings}.model)"
    raise ProviderError(
        f"a first prompt to the language model {provider.name}",
        expected=f"a reply with {request.n} texts" if request.n > 1 else "a reply with a text",
        got=got,
        do=longer if reply.loss == "truncated" else simpler,
    )
