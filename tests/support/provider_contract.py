"""The contract of every provider; a test suite subclasses `ProviderContract` and defines a fixture `provider`.

The suite names the modes that its provider declines, and overrides the fixture `effect` if the replies do not depend on
the request.
"""

import pytest

from common.errors import InternalError
from server.llm.base import LOSSES, MODES, SIMPLIFIED, Provider, Reply, Request

LABELS = (("late card", "a card that has not come"), ("lost card", "a card that was lost or stolen"))


SOURCE, OTHER = "Where is my card? I have waited for a week.", "Someone stole my card at the gym, can you block it?"
REQUESTS = {
    "zero-shot": {"attribute": "in a hurry", "words": 12},
    "by example": {"good": (SOURCE, OTHER)},
    "contrastive": {"good": (SOURCE,), "bad": (OTHER,)},
    "paraphrase": {"source": (SOURCE,)},
    "fill in": {"source": (SOURCE,), "blanks": 0.5},
    "crossover": {"source": (SOURCE, OTHER)},
    "keyphrases, no label": {"label": None, "must": ("card", "stolen at the gym")},
    "keyphrases by example": {"must": ("card",), "good": (OTHER,), "good_must": (("stole", "gym"),)},
    "subtopics": {"phrases": True, "n": 4},
    "subtopics of everything": {"phrases": True, "label": None},
    "abstracts": {"abstract": True, "words": 8},
    "from abstract": {"source": (SOURCE,), "abstract": True},
}

DIFFERENCES = {
    "contrast": ({"good": (SOURCE,), "bad": (OTHER,)}, {"good": (SOURCE,)}),
    "keyphrases": ({"must": ("stolen at the gym",)}, {}),
    "rewriting": ({"source": (SOURCE,)}, {}),
    "crossing": ({"source": (SOURCE, OTHER)}, {"source": (SOURCE,)}),
    "blanks": ({"source": (SOURCE,), "blanks": 0.5}, {"source": (SOURCE,)}),
    "abstracts": ({"source": (SOURCE,), "abstract": True}, {"source": (SOURCE,)}),
    "subtopics": ({"phrases": True}, {}),
}
"""Fields of a request that uses a mode, and of the same request without it, keyed by mode."""


def requests(count: int = 3, n: int = 2, **fields) -> list[Request]:
    """Return requests that differ only in their seed."""
    fixed = {"task_kind": "customer's question", "labels": LABELS, "label": "late card", "n": n} | fields
    return [Request(**fixed, seed=seed) for seed in range(count)]


class ProviderContract:
    declines = frozenset[str]()

    @pytest.fixture
    def effect(self):
        """Return a function that maps a provider and requests to the texts, or the prompt sent, for each request."""
        return lambda provider, batch: [reply.texts for reply in provider.generate(batch)]

    def test_says_which_modes_it_declines(self, provider: Provider):
        assert provider.declines == self.declines
        assert self.declines <= set(MODES)

    @pytest.mark.parametrize("mode", MODES)
    def test_a_mode_is_honoured_or_declined_openly(self, provider: Provider, effect, mode: str):
        fields, without = DIFFERENCES[mode]
        batch, plain = requests(3, **fields), requests(3, **without)
        if mode not in self.declines:
            pairs = zip(effect(provider, batch), effect(provider, plain), strict=True)
            assert all(honoured != ignored for honoured, ignored in pairs)
        elif mode == SIMPLIFIED:
            assert effect(provider, batch) == effect(provider, plain)
        else:
            with pytest.raises(InternalError, match=f"got .*{mode}"):
                provider.generate(batch)

    def test_names_itself_without_a_key(self, provider: Provider):
        assert provider.name
        assert provider.identity
        assert "sk-" not in repr(provider) + provider.identity + provider.name

    def test_one_reply_for_each_request_in_order(self, provider: Provider):
        replies = provider.generate(requests(4))
        assert len(replies) == 4
        assert all(isinstance(reply, Reply) for reply in replies)

    def test_says_whether_it_works_elsewhere_and_whether_it_would(self, provider: Provider):
        assert provider.remote in (True, False)
        provider.check()

    def test_what_is_written_is_counted_and_a_reply_without_texts_says_why(self, provider: Provider):
        for reply in provider.generate(requests(3)):
            assert reply.loss in (None, *LOSSES)
            assert reply.texts or reply.loss
            assert 0 <= reply.cached_tokens <= reply.input_tokens
            assert reply.output_tokens >= bool(reply.texts)

    def test_no_request_no_reply(self, provider: Provider):
        assert provider.generate([]) == []

    def test_tells_of_each_reply_as_it_comes(self, provider: Provider):
        arrivals: dict[int, Reply] = {}
        replies = provider.generate(requests(4), arrived=arrivals.__setitem__)
        assert [arrivals[place] for place in range(4)] == replies

    @pytest.mark.parametrize("mode", REQUESTS)
    def test_every_mode_is_answered(self, provider: Provider, mode: str):
        batch = requests(3, **REQUESTS[mode])
        if batch[0].modes & self.declines - {SIMPLIFIED}:
            return
        assert all(tokens >= 0 for tokens in provider.estimate(batch[0]))
        replies = provider.generate(batch)
        assert any(reply.texts for reply in replies)
        for reply in replies:
            assert len(reply.texts) <= batch[0].n
            assert all(text and text == text.strip() for text in reply.texts)

    def test_forecast_grows_with_what_is_asked(self, provider: Provider):
        small, large = requests(1, n=1)[0], requests(1, n=4)[0]
        assert all(tokens >= 0 for tokens in provider.estimate(small))
        assert provider.estimate(small)[1] < provider.estimate(large)[1]
