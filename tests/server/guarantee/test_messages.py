"""Messages show the facts that they name; bounds on a loss are rounded up."""

import jinja2
import pytest

from server.guarantee.messages import at_most_times, fill_in, number_with_noun, one_in, show_delta, show_epsilon


@pytest.mark.parametrize(
    ("value", "text"),
    [(4.0, "4"), (3.999999, "4"), (1.0000008, "1"), (5.12341, "5.124"), (0.2831, "0.284"), ("inf", "∞")],
)
def test_epsilon_is_rounded_up(value, text):
    assert show_epsilon(value) == text


@pytest.mark.parametrize(("value", "text"), [(1e-5, "1e-5"), (1.234e-6, "1.23e-6"), (0.01, "0.01"), (0.0, "0")])
def test_delta_is_short(value, text):
    assert show_delta(value) == text


def test_derived_figures_are_rounded_toward_more_loss():
    assert at_most_times(1.0).startswith("2.8 times")  # e = 2.71828
    assert at_most_times(20.0) == "e^ε times"
    assert one_in(3e-6) == "1 in 333,333"


def test_a_number_agrees_with_its_noun():
    assert [number_with_noun(number, "query", "queries") for number in (1, 2000)] == ["1 query", "2,000 queries"]
    assert [number_with_noun(number, "hospital") for number in (0, 1)] == ["0 hospitals", "1 hospital"]


def test_a_message_joins_its_sentences_and_leaves_out_those_that_do_not_apply():
    message = ["{% if epsilon > 9 %}Much.{% endif %}", "ε = {{ epsilon | epsilon }}{{ end }}", ["It holds."]]
    assert fill_in(message, epsilon=1.9999, end=".") == "ε = 2. It holds."
    assert fill_in(message, epsilon=float("inf"), end="  <b>") == "Much. ε = ∞ <b> It holds."


def test_a_message_that_names_an_unknown_fact_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        fill_in("{{ epsilon_spent | epsilon }}", epsilon=1.0)
