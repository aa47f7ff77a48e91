"""The two families of servers for language models, and a clock without waits."""

import asyncio

from server.llm.remote import anthropic, openai
from server.llm.remote.retry import Clock
from tests.support import loopback

KEY = "sk-test-key-of-nobody"


class Time:
    """A clock that jumps ahead instead of waiting."""

    def __init__(self):
        self.at, self.slept = 1000.0, []
        self.clock = Clock(now=lambda: self.at, date=lambda: 1_700_000_000.0, sleep=self.sleep, chance=lambda: 0.5)

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.at += seconds
        await asyncio.sleep(0)


class Kind:
    """One family of servers: how to build a model for it, and the format of its answers."""

    def __init__(self, name, build, answer, *, refusal, length, path):
        self.name, self.build, self.answer, self.refusal = name, build, answer, refusal
        self.length, self.path = length, path


KINDS = {
    "anthropic": Kind(
        "anthropic",
        anthropic.provider,
        loopback.message,
        refusal=loopback.message([], stop="refusal", written="No."),
        length="max_tokens",
        path="",
    ),
    "openai": Kind(
        "openai",
        openai.provider,
        loopback.chat,
        refusal=loopback.chat([], refusal="I would rather not."),
        length="length",
        path="/v1",
    ),
}
