"""The templates of the coordinator's page, and the functions that they use."""

from functools import partial

from common.page.render import Pages
from common.page.words import catalogue
from common.phrases import group_by_four
from server.guarantee.messages import show_delta, show_epsilon
from server.report.write import show_duration, show_number


def number(value: object) -> str:
    """Return a number as in reports: with narrow spaces, not commas, which mark decimals in German and French."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return show_number(value).replace(",", "\u202f")


PAGES = Pages(
    __package__,
    tabs=("runs", "hospitals", "plan"),
    filters={"fours": group_by_four},
    figures={
        "delta": show_delta,
        "duration": show_duration,
        "epsilon": show_epsilon,
        "number": number,
    },
    values={"plan_words": partial(catalogue, "common.plan")},
)
