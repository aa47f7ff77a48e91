"""The templates of a hospital's page, and the functions that they use."""

from client.deploy.plan_facts import down, up
from client.deploy.plan_sheet import plain
from client.page import steps
from common.domain import NOT_STATED
from common.page.render import Pages
from common.phrases import capital, in_fours

PAGES = Pages(
    __package__,
    tabs=("plans", "budget", "limits", "now", "release"),
    filters={
        "fours": in_fours,
        "plain": plain,
        "sentence": capital,
    },
    figures={
        "down": down,
        "local": str,
        "up": up,
    },
    values={
        "not_stated": NOT_STATED,
        "width": steps.WIDTH,
        "height": steps.HEIGHT,
        "left": steps.LEFT,
        "right": steps.RIGHT,
        "bottom": steps.BOTTOM,
    },
)
