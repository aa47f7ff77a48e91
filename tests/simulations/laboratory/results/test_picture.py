import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from simulations.laboratory.results import cells, claims, page, runs
from simulations.laboratory.results.findings import finding
from simulations.laboratory.results.picture import FILE, draw

SVG = "{http://www.w3.org/2000/svg}"
ACCURACY = {
    "method=fusegen": (0.64, 0.66, 0.65),
    "method=wasp": (0.70, 0.72, 0.74),
    "method=aug_pe": (0.60, 0.60, 0.60),
    "method=census": (0.80, 0.80, 0.83),
    "method=private_exemplars": (0.88, 0.90, 0.89),
}


def drawn(*, without=()):
    """The findings of all lines, and the picture, with made-up accuracies."""
    chosen, lines = cells.preset("full"), claims.read_lines()
    known = {}
    for cell in cells.cells_in_order(chosen, lines):
        method = next(one for one in cell.overrides if one.startswith("method="))
        key, figures = chosen.key(cell), {lines[0].figure: ACCURACY[method][cell.seed]}
        if method not in without:
            known[key] = runs.RunMeasurements(key=key, data=cell.data, seed=cell.seed, figures=figures)
    findings = [finding(chosen, line, known) for line in lines]
    return findings, draw(findings)


def texts(picture):
    return [element.text for element in ET.fromstring(picture).iter(f"{SVG}text")]


def test_two_panels_with_axes_and_every_line_named_also_for_screen_readers():
    findings, picture = drawn()
    labels = texts(picture)
    assert len(findings) == 9
    assert sum(f"{records} private records" in label for label in labels for records in (100, 1000)) == 2
    assert {"no votes", "WASP", "Aug-PE", "census", "private exemplars (no privacy)"} <= set(labels)
    assert [labels.count(tick) for tick in ("1", "2", "4", "8", "∞")] == [2] * 5
    (words,) = [element.text for element in ET.fromstring(picture).iter(f"{SVG}desc")]
    assert words.count("no votes: 65, 65, 65, 65, 65; WASP: 72, 72, 72, 72, 72") == 2
    assert "@media (prefers-color-scheme: dark)" in picture
    assert picture.count("http") == 1  # the name of the format: it loads nothing


def test_both_panels_have_one_axis_and_heights_are_those_of_the_numbers():
    _, picture = drawn()
    root = ET.fromstring(picture)
    ticks = [(text.text, float(text.get("y")) - 4) for text in root.iter(f"{SVG}text") if text.text in {"70", "80"}]
    (low,), (high,) = ({y for text, y in ticks if text == tick} for tick in ("70", "80"))
    squares = [float(mark.get("y")) + 3.2 for mark in root.iter(f"{SVG}rect") if mark.get("width") == "6.4"]
    in_panels = [y for y in squares if y != pytest.approx(6)]  # and one in the legend
    assert in_panels == [pytest.approx(low + (72 - 70) / 10 * (high - low), abs=0.1)] * 10


def test_every_mean_has_a_bar_of_its_deviation_to_either_side():
    _, picture = drawn()
    bars = "".join(
        path.get("d") for path in ET.fromstring(picture).iter(f"{SVG}path") if "thin" in path.get("class", "")
    )
    ends = [(float(low), float(high)) for low, high in re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", bars)]
    assert len(ends) == 2 * 5 * 5
    assert all(low >= high for low, high in ends)


def test_what_was_not_run_is_not_in_the_legend_and_nothing_is_not_drawn():
    _, picture = drawn(without=("method=census", "method=fusegen"))
    assert "census" not in texts(picture)
    assert "WASP" in texts(picture)
    assert drawn(without=tuple(ACCURACY))[1] is None
    assert drawn(without=("method=wasp", "method=aug_pe", "method=census", "method=private_exemplars"))[1] is None
    assert draw([]) is None


def test_page_and_picture_are_written_together(tmp_path):
    findings, picture = drawn()
    content = page.Content(
        preset="full", about="", findings=[], lines=findings, earlier=None, planned=0, measured=0, core_hours=0
    )
    page.write_page(tmp_path, content)
    assert (tmp_path / FILE).read_text("utf-8") == picture
    assert f"]({FILE})" in (tmp_path / page.PAGE).read_text("utf-8")
    page.write_page(tmp_path / "none", replace(content, lines=[]))
    assert FILE not in (tmp_path / "none" / page.PAGE).read_text("utf-8")
    assert not (tmp_path / "none" / FILE).exists()


def test_plots_share_the_width_and_everything_lies_inside():
    _, picture = drawn()
    root = ET.fromstring(picture)
    width, height = float(root.get("width")), float(root.get("height"))
    places = {}
    for group in root.iter(f"{SVG}g"):
        x, y = map(float, group.get("transform", "translate(0 0)")[10:-1].split())
        for text in group.iter(f"{SVG}text"):
            places.setdefault(text.text, (x + float(text.get("x")), y + float(text.get("y"))))
    left, right = (place for text, place in places.items() if text.endswith("0 private records"))
    assert left[0] < width / 2 < right[0]
    assert left[1] == right[1] < places["census"][1]
    assert all(0 < x < width and 0 < y < height for x, y in places.values())


def test_a_line_that_epsilon_does_not_change_runs_once_for_each_seed():
    lines = {line.name: line for line in claims.read_lines()}
    needed = cells.cells_in_order(cells.preset("full"), [lines["no votes"]])
    assert len(needed) == lines["no votes"].seeds
    assert (
        len(cells.cells_in_order(cells.preset("full"), [lines["WASP, M = 1000"]])) == 5 * lines["WASP, M = 1000"].seeds
    )
