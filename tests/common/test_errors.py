from common import errors
from common.phrases import Turnout


def test_zero_and_empty_are_things_that_can_be_got():
    assert str(errors.ConfigError("count", got=0, where="")) == "count; got 0; at "
    assert str(errors.ConfigError("broken row")) == "broken row"


def test_a_message_shows_the_beginning_of_a_long_value_and_all_else():
    error = errors.ConfigError("override", expected="NAME=VALUE", got="x" * 10_000, where="line 3", do="Quote it")
    shown = f"override; expected NAME=VALUE; got {'x' * errors.MOST_SHOWN}… (10,000 characters); at line 3. Quote it"
    assert error.text() == shown
    turnout = Turnout(1, dict.fromkeys(range(100), "is silent"))
    assert "99 is silent" in errors.DropoutError("hospitals", expected="60", got=turnout).text()


def test_an_error_without_its_advice_names_the_same_problem():
    error = errors.CaucusError("a step", expected="an answer", got="none", where="here", do="Then resume")
    assert str(error.without_advice()) == error.problem
    assert str(error) == f"{error.problem}. Then resume"
