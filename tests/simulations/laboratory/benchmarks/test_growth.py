import re
import xml.etree.ElementTree as ET

import pytest

from simulations.laboratory.benchmarks.growth import Panel, draw

SVG = "{http://www.w3.org/2000/svg}"
SIZES = (10, 100, 1000)
LINES = {"level": (20.0, 20.0, 20.0), "linear": (2.0, 20.0, 200.0), "late": (None, 0.0, 20.0), "gap": (2.0, None, 2.0)}


def drawn(*rows):
    picture = draw("title", x_name="parties", sizes=SIZES, rows=rows)
    return picture, ET.fromstring(picture)


def spots(root, number):
    """Places of the points of a line, by the only path that is drawn as a line in its colour."""
    (path,) = (one.get("d") for one in root.iter(f"{SVG}path") if one.get("class") == f"line c{number}")
    return path[0], [tuple(map(float, spot.split())) for spot in re.split("[ML]", path)[1:]], path


def test_equal_factors_are_equal_distances_on_both_axes():
    _, root = drawn([Panel(title="cost, s", lines=LINES)])
    _, level, _ = spots(root, 0)
    _, linear, _ = spots(root, 1)
    xs, ys = zip(*linear, strict=True)
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)
    assert ys[0] - ys[1] == pytest.approx(ys[1] - ys[2], abs=0.2)
    assert ys[0] - ys[1] > 20
    assert len({y for _, y in level}) == 1
    assert level[1] == linear[1]


def test_missing_values_and_zeros_leave_gaps():
    _, root = drawn([Panel(title="cost, s", lines=LINES)])
    assert [spots(root, number)[2].count("L") for number in (1, 2, 3)] == [2, 0, 0]
    assert [len(spots(root, number)[1]) for number in (1, 2, 3)] == [3, 1, 2]


def test_a_line_without_values_is_not_drawn_and_its_colour_is_not_another_s():
    _, root = drawn([Panel(title="cost, s", lines={"none": (None, 0.0, None)} | LINES)])
    assert "none" not in {text.text for text in root.iter(f"{SVG}text")}
    assert not [path for path in root.iter(f"{SVG}path") if "c0" in path.get("class").split()]
    assert len(spots(root, 1)[1]) == 3


def test_panels_share_the_width_and_everything_lies_inside():
    many = {f"a part with a long name {number}": (1.0, 1.0, 1.0) for number in range(6)}
    _, root = drawn(
        [Panel(title="left", lines=many), Panel(title="right", lines=LINES)], [Panel(title="below", lines=LINES)]
    )
    width, height = float(root.get("width")), float(root.get("height"))
    shown = {text.text: (float(text.get("x")), float(text.get("y"))) for text in root.iter(f"{SVG}text")}
    assert shown["left"][0] < width / 2 < shown["right"][0]
    assert shown["left"][1] == shown["right"][1] < shown["below"][1]
    assert len({shown[name][1] for name in many}) > 1  # names that do not fit go to a further row
    assert all(0 < x < width and 0 < y < height for x, y in shown.values())


def test_axes_are_named_and_the_words_for_screen_readers_have_every_value():
    picture, root = drawn([Panel(title="cost, s", lines=LINES)])
    shown = [text.text for text in root.iter(f"{SVG}text")]
    assert {"cost, s", *LINES, "parties", "10", "100", "1000", "1"} <= set(shown)
    (words,) = [element.text for element in root.iter(f"{SVG}desc")]
    assert words == (
        "cost, s, at 10, 100, 1000 parties: level: 20, 20, 20; linear: 2, 20, 200; late: none, 0, 20; gap: 2, none, 2."
    )
    assert "@media (prefers-color-scheme: dark)" in picture
    assert picture.count("http") == 1  # the name of the format: nothing is loaded
