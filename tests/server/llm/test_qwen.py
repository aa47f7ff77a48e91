"""The prompts of every kind, answered by the real weights of `llm=qwen`."""

import pytest

from server.llm.base import PROMPTS, Request
from server.llm.local import Local
from tests.support.real_models import fetched

pytestmark = [pytest.mark.slow, pytest.mark.openvino]

LABELS = (
    ("late_card", "a new card that has not come"),
    ("age_limit", "how old one must be to open an account"),
)
NOTES = (
    "Where is my new card? I ordered it two weeks ago.",
    "My card still has not come, is it lost in the post?",
    "I ordered a card on the first of May and nothing came.",
)
FIELDS = {
    "zero_shot": {},
    "examples": {"good": NOTES},
    "contrast": {"good": NOTES[:2], "bad": ("Dear Sir or Madam, I write to you about cards.",)},
    "paraphrase": {"source": NOTES[:1]},
    "blanks": {"source": NOTES[:1], "blanks": 0.5},
    "crossing": {"source": NOTES[:2]},
    "keyphrases": {"must": ("card", "post office")},
    "abstracts": {"abstract": True},
    "from_abstract": {"abstract": True, "source": ("The customer asks where a card is.",)},
    "subtopics": {"phrases": True, "words": None},
    "section": {"before": "Where is my card?"},
}
READ, REPEATS = 0.95, 8
"""Share of the requested texts that must be read, and number of requests of each kind."""


def test_the_real_weights_answer_every_kind_of_prompt_so_that_it_can_be_read():
    fetched("qwen")
    assert FIELDS.keys() == set(PROMPTS)
    model = Local(name="qwen", model="qwen", max_new_tokens=1024)
    requests = [
        Request(
            task_kind="message to a bank",
            labels=LABELS,
            label=LABELS[seed % 2][0],
            seed=seed,
            **({"words": 12} | fields),
        )
        for fields in FIELDS.values()
        for seed in range(REPEATS)
    ]
    replies = model.generate(requests)
    assert sum(len(reply.texts) for reply in replies) >= READ * len(requests)
    for kind in FIELDS:
        texts = [reply.texts for request, reply in zip(requests, replies, strict=True) if request.prompt == kind]
        assert len({text for reply in texts for text in reply}) > REPEATS / 2  # they are different texts
