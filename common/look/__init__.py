"""The appearance of all pages: colours, layout and plots, for the reports and for a hospital's page."""

from importlib import resources

SHEETS = ("colours.css", "plots.css", "page.css")


def style() -> str:
    """Return the style sheet of a page."""
    folder = resources.files(__package__)
    return "".join((folder / name).read_text("utf-8") for name in SHEETS)
