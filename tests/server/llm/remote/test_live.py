"""The real services, for whoever has a key: `make test-live`. Costs a fraction of a cent."""

import os

import pytest

from server.llm.base import Provider
from server.llm.remote import anthropic, openai
from tests.support.provider_contract import ProviderContract

pytestmark = pytest.mark.live


@pytest.mark.skipif(not os.environ.get("ANTHROPIC_API_KEY"), reason="no key")
class TestAnthropic(ProviderContract):
    @pytest.fixture(scope="class")
    def provider(self) -> Provider:
        return anthropic.provider(name="claude", model=os.environ.get("CAUCUS_TEST_CLAUDE", "claude-haiku-4-5"))


@pytest.mark.skipif(not os.environ.get("OPENAI_API_KEY"), reason="no key")
class TestOpenAi(ProviderContract):
    @pytest.fixture(scope="class")
    def provider(self) -> Provider:
        return openai.provider(name="gpt", model=os.environ.get("CAUCUS_TEST_GPT", "gpt-4.1-mini"))
