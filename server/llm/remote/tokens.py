"""Token counts of a request: estimated beforehand, counted afterwards, and bounded from above."""

from dataclasses import replace

from server.llm.base import Reply, Request
from server.llm.parse import parse
from server.llm.remote.chat import ChatReply
from server.llm.render import whole
from server.llm.spending import Usage

_CHARACTERS_PER_TOKEN = 4.0
_TOKENS_PER_WORD = 1.4
_AROUND_A_PROMPT = 64  # tokens at most that a chat template adds


def read_reply(completion: ChatReply, prompt: tuple[str, str], request: Request) -> Reply:
    """Return the reply to a request with this prompt; the texts are parsed from the completion."""
    refused = completion.loss in ("refused", "filtered")
    cut = completion.loss == "truncated"
    texts = () if refused else parse(completion.text, request.n, phrases=request.phrases, cut=cut)
    use = completion.usage
    return Reply(
        texts=texts,
        input_tokens=use.read,
        output_tokens=use.output,
        cached_tokens=use.cached,
        loss=completion.loss or (None if texts else "empty"),
        prompt=whole(prompt),
        raw=completion.text,
    )


def estimate(prompt: tuple[str, str], request: Request, max_tokens: int) -> tuple[int, int]:
    """Estimate input tokens, one per four characters of the prompt, and output tokens, 1.4 per word."""
    size = sum(map(len, prompt)) / _CHARACTERS_PER_TOKEN
    return round(size), min(round(request.expected_words * _TOKENS_PER_WORD), max_tokens)


def with_usage(completion: ChatReply, prompt: tuple[str, str], request: Request, max_tokens: int) -> ChatReply:
    """Return the completion, with estimated usage if the server reported none, so that it counts towards any cap."""
    if completion.usage.tokens:
        return completion
    read_in, _ = estimate(prompt, request, max_tokens)
    return replace(completion, usage=Usage(input=read_in, output=round(len(completion.text) / _CHARACTERS_PER_TOKEN)))


def worst(prompt: tuple[str, str], max_tokens: int) -> Usage:
    """Return an upper bound on a request's usage.

    The number of input tokens is at most the number of bytes in the prompt plus 64 for a chat template, and all of them
    may be written to a prompt cache.
    """
    return Usage(kept=sum(len(part.encode()) for part in prompt) + _AROUND_A_PROMPT, output=max_tokens)
