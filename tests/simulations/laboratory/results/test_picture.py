"""What the picture leaves out; the project's own picture is compared with its file in test_findings.py."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from simulations.laboratory.results import cells, claims, page, runs
from simulations.laboratory.results.findings import finding
from simulations.laboratory.results.picture import draw

ACCURACY = {
    "method=fusegen": (0.64, 0.66, 0.65),
    "method=wasp": (0.70, 0.72, 0.74),
    "method=aug_pe": (0.60, 0.60, 0.60),
    "method=class_sums": (0.80, 0.80, 0.83),
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
    return findings, draw(findings, "A model")


def texts(picture, kind="text"):
    return [element.text for element in ET.fromstring(picture).iter(f"{{http://www.w3.org/2000/svg}}{kind}")]


def test_what_was_not_run_is_not_in_the_legend_and_nothing_is_not_drawn():
    _, picture = drawn(without=("method=class_sums", "method=fusegen"))
    assert "class sums" not in texts(picture)
    assert "WASP" in texts(picture)
    assert drawn(without=("method=wasp", "method=aug_pe", "method=class_sums", "method=private_exemplars"))[1] is None
    assert draw([], "A model") is None


def test_only_where_all_lines_were_measured_is_a_place():
    findings, _ = drawn()
    line = next(one for one in findings if one.claim.name == "WASP, M = 100")
    figures = [replace(one, mean=None) if one.epsilon in {2, 8} else one for one in line.figures]
    fewer = [replace(one, figures=figures) if one is line else one for one in findings]
    places = [text for text in texts(draw(fewer, "A model")) if text in {"1", "2", "4", "8", "∞"}]
    assert places == ["1", "4", "∞", "1", "2", "4", "8", "∞"]  # with a hundred records, and with a thousand
    none = [replace(one, figures=[replace(figure, mean=None) for figure in one.figures]) for one in findings]
    assert draw(none, "A model") is None


def test_a_page_has_a_picture_if_there_is_something_to_draw(tmp_path):
    findings, picture = drawn()
    nothing = {"findings": [], "planned": 0, "measured": 0, "core_hours": 0}
    measured = page.Measured(preset="full", model="A model", lines=findings, **nothing)
    page.write_pages(tmp_path, [measured])
    assert (tmp_path / measured.picture).read_text("utf-8") == picture
    assert f"]({measured.picture})" in (tmp_path / page.PAGE).read_text("utf-8")
    page.write_pages(tmp_path / "none", [replace(measured, lines=[])])
    assert measured.picture not in (tmp_path / "none" / page.PAGE).read_text("utf-8")
    assert not (tmp_path / "none" / measured.picture).exists()
