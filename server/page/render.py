"""The templates of the coordinator's page, and what they use."""

from common.page.render import Pages
from common.plan.words import in_fours
from common.system.certificates import in_words
from server.guarantee.rounding import show_delta, show_epsilon
from server.report.write import show_duration, show_number

PAGES = Pages(
    __package__,
    tabs=("runs", "hospitals", "plan"),
    filters={
        "days": in_words,
        "delta": show_delta,
        "duration": show_duration,
        "epsilon": show_epsilon,
        "fours": in_fours,
        "number": show_number,
    },
    values={},
)
