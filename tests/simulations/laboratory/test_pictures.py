import xml.etree.ElementTree as ET

from server.report.plots import lines
from simulations.laboratory.pictures import picture

SVG = "{http://www.w3.org/2000/svg}"
NAMES = [f"line {number}" for number in range(6)]


def drawn():
    values = {name: [1.0 + at, None, 3.25] for at, name in enumerate(NAMES)}
    left, right, below = (
        lines(key, f"{key}, s", note="", x_name="parties", places=[1, 2, 3], values=values)
        for key in ("left", "right", "below")
    )
    text = picture("<title>", [[left, right], [below]], note="a note")
    return text, ET.fromstring(text)


def placed(root):
    """Texts of a picture with their places, in its own units."""
    positions = {}
    for group in root.iter(f"{SVG}g"):
        x, y = map(float, group.get("transform", "translate(0 0)")[10:-1].split())
        for text in group.iter(f"{SVG}text"):
            positions.setdefault(text.text, (x + float(text.get("x")), y + float(text.get("y"))))
    return positions


def test_plots_of_a_row_share_the_width_and_everything_lies_inside():
    _, root = drawn()
    width, height = float(root.get("width")), float(root.get("height"))
    places = placed(root)
    assert places["left, s"][0] < width / 2 < places["right, s"][0]
    assert places["left, s"][1] == places["right, s"][1] < places["line 0"][1] < places["below, s"][1]
    assert all(0 < x < width and 0 < y < height for x, y in places.values())


def test_every_line_is_named_in_the_legend_of_its_row_which_has_several_rows_of_names():
    _, root = drawn()
    labels = [text.text for text in root.iter(f"{SVG}text")]
    assert [labels.count(name) for name in NAMES] == [2] * 6
    assert placed(root)["line 0"][1] == placed(root)["line 3"][1] < placed(root)["line 4"][1]
    assert {"parties", "1", "2", "3", "a note"} <= set(labels)


def test_screen_readers_are_given_every_value():
    _, root = drawn()
    (title,) = [element.text for element in root.iter(f"{SVG}title")]
    (words,) = [element.text for element in root.iter(f"{SVG}desc")]
    assert title == "<title>"
    assert "left, s, by parties (1, 2, 3): line 0: 1, –, 3.25; line 1: 2, –, 3.25;" in words
    assert words.count("line 5: 6, –, 3.25.") == 3
    assert words.endswith("a note")


def test_a_picture_is_for_light_and_dark_pages_and_loads_nothing():
    text, _ = drawn()
    assert "@media (prefers-color-scheme: dark)" in text
    assert text.count("http") == 1  # the name of the format
