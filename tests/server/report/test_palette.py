"""The colours of lines and labels can be told apart by everybody, on paper and on a dark screen."""

import itertools
import re
from importlib import resources

import numpy as np
import pytest

import common.look

VISION = {
    # Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
)
COLOURS = (resources.files(common.look) / "colours.css").read_text("utf-8")
WHITE = np.array([0.95047, 1.0, 1.08883])
DISTINCT = 20
"""CIE 1976 difference; one of 2.3 is just noticeable side by side."""
PALETTES = [
    (paper, re.findall(r"--c\d: (#\w+)", colours))
    for paper, colours in re.findall(r"--paper: (#\w+);.*?(--c0: .*?--c7: #\w+)", COLOURS, re.DOTALL)
]


def linear(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    values = np.array([int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    scaled = TO_XYZ @ rgb / WHITE
    x, y, z = np.where(scaled > 216 / 24389, np.cbrt(scaled), (24389 / 27 * scaled + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize(("paper", "colours"), PALETTES, ids=["light", "dark"])
def test_no_two_colours_look_alike(paper, colours, vision):
    assert len(colours) == 8
    seen = [lab(np.clip(VISION[vision] @ linear(colour), 0, 1)) for colour in colours]
    assert min(np.linalg.norm(one - other) for one, other in itertools.combinations(seen, 2)) > DISTINCT


@pytest.mark.parametrize(("paper", "colours"), PALETTES, ids=["light", "dark"])
def test_every_colour_stands_out_from_the_page(paper, colours):
    background, *lights = (float(TO_XYZ[1] @ linear(colour)) + 0.05 for colour in (paper, *colours))
    assert min(max(light, background) / min(light, background) for light in lights) > 3  # WCAG 2.2, 1.4.11
