"""The layout of plots, and what a page makes of it."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from server.documents.maps import TextMap
from server.documents.metrics import Metrics
from server.report import plots
from server.report.facts import gather
from server.report.plots import Histogram, count_bins, dots, steps
from server.report.run_plots import plot_rounds
from server.report.write import rendered_plot
from tests.support.pages import report
from tests.support.screens import assert_accepted, under_headings

NAN = float("nan")


def lines(values, **more):
    """Lines over as many places as the first has values."""
    places = range(1, len(next(iter(values.values()))) + 1)
    return plots.lines("k", "T", note="", x_name="x", places=places, values=values, **more)


def bars(histogram, **more):
    return plots.bars("k", "T", note="", x_name="x", histogram=histogram, **more)


DRAWN = {
    "a gap where a value is missing": lines({"FID": [2.0, None, NAN, 1.0]}),
    "nothing": lines({"FID": [None]}),
    "one value, which is 0": lines({"FID": [0.0]}),
    "below 0": lines({"l": [-3.0, 2.0]}),
    "intervals": lines({"a": [0.5, 0.75]}, intervals={"a": [(0.25, 1.0), None]}),
    "single results": lines({"a": [0.5, 0.75, None]}, singles={"a": [[0.1, 0.9], [0.75], []]}),
    "intervals side by side": lines(
        {name: [1.0, 1.0] for name in "abc"}, intervals={name: [(0.5, 1.5)] * 2 for name in "ac"}
    ),
    "lines in one place": lines({name: [1.0, 1.0] for name in "ab"}, intervals={"a": [None, None]}),
    "from 0": lines({"a": [70.0, 80.0]}),
    "from another value": lines({"a": [70.0, 80.0]}, including=[62.0, 91.0]),
    "bars with a shade that is cut": bars(Histogram(edges=(0, 1, 2), counts=(4, 2), open_end=False), shade=(-5.0, 1.0)),
    "open end": bars(Histogram(edges=(0, 1, 2), counts=(0, 2), open_end=True)),
    "a map": dots("k", "T", "", {"a": {"x": [[0, 0], [10, 0]]}, "b": {"y": [[5, 1]]}}),
    "an empty map": dots("k", "T", "", {"a": {}}),
}


def test_layout_of_each_plot_is_that_accepted():
    screens = {
        name: [f"{field.name}: {getattr(plot, field.name)}" for field in fields(plot)] if plot else ["no plot"]
        for name, plot in DRAWN.items()
    }
    assert_accepted(under_headings(screens), Path(__file__).parent / "screens" / "plots.txt")


@pytest.mark.parametrize("places", [2, 3])
def test_lines_over_two_places_are_a_table_without_a_drawing(places):
    page = rendered_plot(lines({"a": [0.5, 0.75, 1.0][:places]}, singles={"a": [[0.1, 0.9], [0.75], []][:places]}))
    drawn = ("<svg", "<details>", 'class="dots s0"', "Small dots: the single runs.")
    assert [part in page for part in drawn] == [places == 3] * 4
    assert ">0.75<" in page


@pytest.mark.parametrize(
    ("top", "last", "most"),
    [(0.0, 1.0, 2), (0.34, 0.35, 8), (1.0, 1.0, 6), (12.3, 14.0, 8), (9.99, 10.0, 6), (7e-4, 8e-4, 8)],
)
def test_ticks_reach_the_top_in_few_round_steps(top, last, most):
    ticks = steps(0.0, top)
    assert ticks[0] == 0
    assert ticks[-1] >= top
    assert ticks[-1] == pytest.approx(last, rel=0.5)
    assert 2 <= len(ticks) <= most


@pytest.mark.parametrize(
    ("values", "whole", "open_end"),
    [
        ([5], True, False),
        ([0, 0, 0], True, False),
        ([3] * 990 + [100_000] * 2, True, True),
        (list(range(500)), True, False),
        ([-2.5, 7.25, 0.0], False, False),
        ([1.0, 1.0], False, False),
        ([1e-7, 2e-7], False, False),
        ([-3e6, 5e6], False, False),
    ],
)
def test_a_histogram_counts_everything_in_few_bins(values, whole, open_end):
    histogram = count_bins(values, whole=whole)
    assert sum(histogram.counts) == len(values)
    assert len(histogram.edges) == len(histogram.counts) + 1 <= 50
    assert histogram.open_end == open_end
    for start, end, count in zip(histogram.edges, histogram.edges[1:], histogram.counts, strict=False):
        if not open_end:
            assert sum(start <= value < end for value in values) == count, (start, end)
    drawn = bars(histogram)
    assert sum(count for _, count in drawn.rows) == len(values)
    assert len(drawn.x_ticks) <= 10


def test_labels_on_a_map_differ_in_colour_and_shape_and_each_is_in_the_legend(run):
    places = {f"label {at}": [[at, at % 3]] for at in range(9)}
    plot = dots("map", "T", "", {"synthetic": places, "private": places})
    looks = {(cloud.source, cloud.kind, cloud.label % 8) for cloud in plot.clouds}
    assert len(looks) == 18
    assert [mark.label for marks in plot.legend for mark in marks] == [at for at in range(9) for _ in range(2)]
    (run / TextMap.FILE).write_text(json.dumps({"points": [[at, 0] for at in range(40)]}))
    page = report(run)
    marks = [attrs for attrs in page.tags("path") if "dots" in attrs.get("class", "")]
    # Choosing a label hides what has another one: the legend has none.
    assert sorted(attrs.get("data-label", "") for attrs in marks) == ["", "", "0", "1"]


def test_fid_has_the_distance_of_real_texts_beside(run):
    rounds = gather(run).rounds
    real = {"fid": {"value": 0.5, "rows": 7}}
    marked = Metrics(content={"fidelity": real, "fidelity_real": real | {"simulation_only": True}}).groups
    (plot,) = [plot for plot in plot_rounds(rounds, marked) if plot.key == "round-fid"]
    assert [line.name for line in plot.series] == ["fid", "real against real (simulation only)"]
    assert plot.series[1].values == (0.5, 0.5, 0.5)
    unmarked = Metrics(content={"fidelity": real}).groups
    (alone,) = [plot for plot in plot_rounds(rounds, unmarked) if plot.key == "round-fid"]
    assert len(alone.series) == 1
