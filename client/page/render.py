"""The templates of a hospital's page, and the functions that they use."""

from functools import partial

from client.approval.facts import round_down, round_up
from client.approval.sheet import coordinator_sight
from client.page import steps
from common.domain import NOT_STATED
from common.page.render import Pages
from common.page.words import catalogue
from common.phrases import capital, group_by_four
from common.plan.words import readers_guess
from common.system.log_lines import escaped_line

PAGES = Pages(
    __package__,
    tabs=("plans", "budget", "limits", "now", "release"),
    filters={
        "fours": group_by_four,
        "plain": escaped_line,
        "sentence": capital,
    },
    figures={
        "down": round_down,
        "local": str,
        "up": round_up,
    },
    values={
        "coordinator_sight": coordinator_sight,
        "not_stated": NOT_STATED,
        "plan_words": partial(catalogue, "common.plan"),
        "readers_guess": readers_guess,
        "width": steps.WIDTH,
        "height": steps.HEIGHT,
        "left": steps.LEFT,
        "right": steps.RIGHT,
        "bottom": steps.BOTTOM,
    },
)
