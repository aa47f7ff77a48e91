import pytest

from common.errors import ConfigError
from server.llm.serve.body import MOST_TOKENS, ChatBody, read_body

TURN = {"role": "user", "content": "Write of my card."}
LEAST = {"model": "m", "messages": [TURN]}
OPTIONAL = ("max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "n", "stop", "stream", "tools")


def test_what_is_not_said_has_openais_defaults_and_a_bounded_length():
    expected = ChatBody(model="m", turns=(TURN,))
    assert (expected.temperature, expected.top_p, expected.seed, expected.stop) == (1.0, None, None, "")
    assert expected.max_tokens == MOST_TOKENS
    assert read_body(LEAST) == read_body(LEAST | dict.fromkeys(OPTIONAL)) == expected


def test_what_is_said_is_taken():
    turns = [{"role": "developer", "content": "Be brief."}, TURN, {"role": "assistant", "content": ""}, TURN]
    sampling = {"temperature": 0, "top_p": 0.5, "seed": 2**63 - 1}
    read = read_body({"model": "m", "messages": turns, "n": 1, "stop": ["."], "stream": False, **sampling})
    assert read.turns == ({"role": "system", "content": "Be brief."}, *turns[1:])
    assert (read.stop, read.temperature, read.top_p, read.seed) == (".", 0, 0.5, 2**63 - 1)
    assert [read_body(LEAST | {"stop": stop}).stop for stop in ("", [], "\n")] == ["", "", "\n"]


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_both_names_of_the_length_are_known_and_named_in_errors(field):
    read = read_body(LEAST | {field: 7})
    assert (read.max_tokens, read.length_field) == (7, field)
    for wrong in (0, -1, 7.0, True, "7"):
        with pytest.raises(ConfigError) as refused:
            read_body(LEAST | {field: wrong})
        assert refused.value.what == field


WRONG = [
    ("body", []),
    ("body", None),
    ("model", {"messages": [TURN]}),
    ("model", LEAST | {"model": ["m"]}),
    ("messages", {"model": "m"}),
    ("tools", LEAST | {"tools": []}),
    ("max_completion_tokens", LEAST | {"max_tokens": 1, "max_completion_tokens": 1}),
    *(("messages", LEAST | {"messages": wrong}) for wrong in ([], {}, "Write.", 1)),
    *(("messages[1]", LEAST | {"messages": [TURN, wrong]}) for wrong in ([], "Write.", 1, None)),
    ("messages[0].role", LEAST | {"messages": [{"content": "x"}]}),
    *(("messages[0].role", LEAST | {"messages": [TURN | {"role": wrong}]}) for wrong in ("tool", 1, [], None)),
    ("messages[0].content", LEAST | {"messages": [{"role": "user"}]}),
    *(("messages[0].content", LEAST | {"messages": [TURN | {"content": wrong}]}) for wrong in (1, None, [], "\ud83d")),
    *(("temperature", LEAST | {"temperature": wrong}) for wrong in (-0.1, 2.1, "warm", True, float("nan"), [])),
    *(("top_p", LEAST | {"top_p": wrong}) for wrong in (0, 1.1, "all", False)),
    *(("seed", LEAST | {"seed": wrong}) for wrong in (-1, 2**63, 1.0, "s", True)),
    *(("n", LEAST | {"n": wrong}) for wrong in (0, 2, "1", [])),
    *(("stop", LEAST | {"stop": wrong}) for wrong in (1, {}, ["a", "b"], [1])),
    *(("stream", LEAST | {"stream": wrong}) for wrong in (True, 0, "no")),
]


@pytest.mark.parametrize(("field", "body"), WRONG, ids=str)
def test_a_wrong_field_is_named(field, body):
    with pytest.raises(ConfigError) as refused:
        read_body(body)
    assert refused.value.what == field


def test_no_error_repeats_a_message():
    for wrong in ({"content": "secret\ud83d"}, {"content": ["secret"]}, {"content": {"secret": 1}}):
        with pytest.raises(ConfigError) as refused:
            read_body(LEAST | {"messages": [TURN | wrong]})
        assert "secret" not in str(refused.value)
