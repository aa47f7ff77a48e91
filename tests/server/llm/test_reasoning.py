from itertools import product

import pytest
from anthropic.types import Message
from openai.types.chat import ChatCompletion

from server.llm.parse import parse
from server.llm.reasoning import answer_in, text_of
from server.llm.remote import anthropic, openai
from server.llm.remote.chat import MalformedError

THOUGHTS = 'They want ["a", "b"] or "c".'
OPEN = (
    "<think>",
    "<thought>",
    "[THINK]",
    "◁think▷",
    "<|begin_of_thought|>",
    "<|START_THINKING|>",
    "<|channel|>analysis<|message|>",
    "<|channel|>commentary to=functions.f<|message|>",
    "<unused94>thought\n",
    "analysis",
    "Here is my thought process:\n",
)


@pytest.mark.parametrize("opening", OPEN)
def test_reasoning_without_an_end_is_no_text(opening):
    for n, phrases in product((1, 5), (True, False)):
        assert parse(opening + THOUGHTS, n, phrases=phrases) == ()


@pytest.mark.parametrize("closing", ["</think>", "</thought>", "[/THINK]", "</reasoning>"])
def test_reasoning_that_was_never_opened_and_has_no_answer_is_no_text(closing):
    assert parse(THOUGHTS + closing, 1) == parse(THOUGHTS + closing, 5) == ()


def test_a_mark_inside_a_text_is_no_reasoning():
    text = "He had <thought>the idea</thought> that <analysis>x</analysis> was wrong."
    assert answer_in(text) == text


PART = {"type": "text", "text": "one"}
CONTENTS = [
    ("one", "one"),
    (None, ""),
    ([PART], "one"),
    ([{"type": "thinking", "thinking": [PART]}, PART], "one"),
    ([{"type": "reasoning", "text": "two"}, {"type": "output_text", "text": "one"}], "one"),
    ([{"text": "two", "thought": True}, {"text": "one"}], "one"),
    ([{"type": "text", "text": {"value": "one", "annotations": []}}], "one"),
    (["one"], "one"),
    (PART, "one"),
    ([{"type": "a new type", "text": "two"}], ""),
    ([{"type": "text", "text": None}, None, 3, [], PART], "one"),
    ([{"type": ["x"]}, {}], ""),
    (3, None),
    (True, None),
]


@pytest.mark.parametrize(("content", "text"), CONTENTS)
def test_content_of_any_type_is_its_text_or_malformed(content, text):
    assert text_of(content) == text
    message = {"content": content, "reasoning_content": "two", "reasoning": "two"}
    answer = ChatCompletion.construct(choices=[{"message": message, "finish_reason": ["x"]}])
    if text is None:
        with pytest.raises(MalformedError):
            openai.completion(answer)
    else:
        assert openai.completion(answer).text == text


@pytest.mark.parametrize("choices", [["x"], [None], [{}], "x", {"a": 1}, []])
def test_choices_of_any_type_are_malformed(choices):
    with pytest.raises(MalformedError):
        openai.completion(ChatCompletion.construct(choices=choices))


def test_reasoning_that_took_all_tokens_is_truncated():
    message = {"content": None, "reasoning_content": "two"}
    answer = openai.completion(ChatCompletion.construct(choices=[{"message": message, "finish_reason": "length"}]))
    assert (answer.text, answer.loss) == ("", "truncated")


@pytest.mark.parametrize("text", [None, 3, "one"])
def test_blocks_of_any_type_are_read(text):
    content = [{"type": "thinking", "thinking": "two"}, {"type": "new"}, {"type": "text", "text": text}]
    answer = anthropic.Messages.read(Message.construct(content=content, stop_reason=["x"], usage=None))
    assert answer.text == (text if isinstance(text, str) else "")
