"""What our pictures share: the report's colours, on light pages and on dark ones, and how a picture begins."""

from typing import Any

PALETTES: tuple[dict[str, Any], ...] = (
    {
        "paper": "#fff",
        "ink": "#1b1f24",
        "soft": "#545c66",
        "rule": "#d5d9de",
        "hues": ("#0b62a8", "#b8430a", "#00735c", "#8a3a8f", "#7a5c00"),
    },
    {
        "paper": "#14171b",
        "ink": "#e8eaed",
        "soft": "#a9b1bb",
        "rule": "#39414a",
        "hues": ("#6bb3ff", "#ff9a62", "#4fd1a5", "#d59bea", "#e3c34f"),
    },
)
"""Of a light page and of a dark one."""


def opening(rules: str, of_palette: str) -> str:
    """The beginning of a template for Jinja: size, words for screen readers, styles.

    The template is given `width`, `height`, `title`, `summary` and `palettes`: those above, with `colours`, which the
    classes c0, c1, ... have.

    Args:
        rules: Styles that are the same on light and dark pages, one or more lines.
        of_palette: Styles by the fields of `palette`, one or more lines.
    """
    return (
        """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{ width }} {{ height }}" width="{{ width }}" \
height="{{ height }}" role="img" aria-labelledby="title text">
<title id="title">{{ title }}</title>
<desc id="text">{{ summary }}</desc>
<style>
"""
        + rules
        + """\
{% for palette in palettes %}
{% if not loop.first %}@media (prefers-color-scheme: dark) {
{% endif %}
"""
        + of_palette
        + """\
.paper { fill: {{ palette.paper }}; } .rule { stroke: {{ palette.rule }}; }
{% for colour in palette.colours %}
.c{{ loop.index0 }} { stroke: {{ colour }}; fill: {{ colour }}; }
{% endfor %}
{% if not loop.first %}}
{% endif %}
{% endfor %}
</style>
"""
    )
