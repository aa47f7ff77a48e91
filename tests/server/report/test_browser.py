"""The page in a real browser: it runs, fetches nothing, finds its texts, and can be read by everybody.

The browser is what `CHROMIUM` names, or a `chromium` on the path; none is downloaded.
"""

import json

import numpy as np
import pytest

from server.documents.maps import PrivateMap, TextMap
from server.report.write import write_report
from simulations.sweeps.render import write_table
from tests.support.chromium import MARKS, barriers, watching, width
from tests.support.documents import HOSTILE, write_run
from tests.support.sweeps import run as write_row

pytestmark = MARKS

TEXTS = 6000


@pytest.fixture
def visit(chromium):
    """Open a file and watch the page: whatever else it asks for is refused."""
    with watching(chromium) as watched:

        def opened(path, **settings):
            page = watched(**settings)
            page.route("**/*", lambda asked: asked.abort())
            page.route(path.as_uri(), lambda asked: asked.continue_())
            page.goto(path.as_uri())
            return page

        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page of 6,000 texts with every plot that there is."""
    run = write_run(tmp_path_factory.mktemp("run") / "run", texts=TEXTS)
    generator = np.random.default_rng(0)
    points = generator.normal(size=(TEXTS, 2)).round(3).tolist()
    (run / TextMap.FILE).write_text(json.dumps({"points": points}))
    (run / PrivateMap.FILE).write_text(json.dumps({"points": {"sepsis": points[:900], "pneumonia": points[900:1800]}}))
    metrics = json.loads((run / "metrics.json").read_text())
    metrics["synthetic"]["confusion"] = {"sepsis": {"sepsis": 160, "pneumonia": 40}, "pneumonia": {"sepsis": 100}}
    (run / "metrics.json").write_text(json.dumps(metrics | {"nearest_texts": [[7, 31], [8, 12]]}))
    (run / "state").mkdir()
    for index in range(2):
        np.save(run / "state" / f"answer-{index:03}.npy", generator.integers(-1000, 9000, 2 * TEXTS))
    return write_report(run)


def drawn(page):
    """Of every plot, whether something of it is painted."""
    return page.evaluate("""() => Object.fromEntries([...document.querySelectorAll("figure")].map((figure) => {
        const marks = [...figure.querySelectorAll("svg > g *, svg > path, svg > .bar")];
        return [figure.id, marks.some((mark) => mark.getBBox().width + mark.getBBox().height > 0)];
    }))""")


def test_every_plot_is_drawn_nothing_is_fetched_and_nothing_complains(visit, report):
    page = visit(report)
    plots = drawn(page)
    assert set(plots) == {
        *("plot-map", "plot-lengths", "plot-round-weights", "plot-round-fid"),
        *("plot-votes-0", "plot-votes-1"),
    }
    assert all(plots.values())
    assert page.asked == [report.as_uri()]
    assert page.said == []


def test_a_long_label_breaks_and_hides_no_figure_beside_it(visit, tmp_path):
    run = write_run(tmp_path / "run")
    metrics = json.loads((run / "metrics.json").read_text())
    metrics["synthetic"]["confusion"] = {"x" * 300: {"x" * 300: 5, "b": 3}}
    (run / "metrics.json").write_text(json.dumps(metrics))
    tables = visit(write_report(run)).locator("#labels .scroll")
    assert tables.count() == 2
    assert tables.evaluate_all("all => all.every((table) => table.scrollWidth <= table.clientWidth)")


def test_search_and_filters(visit, report):
    page = visit(report)
    assert page.locator("#examples").is_visible()
    page.fill("#words", "note 599")
    assert page.locator("#state").inner_text() == "11 of 6,000 texts, page 1 of 1"
    assert page.locator("#found li").count() == 11
    page.select_option("#label", label="pneumonia (3,000)")
    assert {text.split(" · ")[0] for text in page.locator("#found .by").all_inner_texts()} == {"pneumonia"}
    page.fill("#words", "")
    page.select_option("#model", label="rural (2,000)")
    page.select_option("#round", index=3)
    assert page.locator("#state").inner_text().startswith("333 of 6,000 texts, page 1 of 17")
    page.click("#later")
    assert page.locator("#state").inner_text().endswith("page 2 of 17")
    assert page.said == []


def test_one_label_on_the_map(visit, report):
    page = visit(report)
    selector = "#plot-map .dots[data-label]:not([hidden])"
    assert page.locator(selector).count() == 4
    page.select_option("#map-label", label="sepsis")
    assert page.locator(selector).count() == 2
    displayed = "marks => marks.map((mark) => getComputedStyle(mark).display)"
    assert page.locator("#plot-map .legend .dots").evaluate_all(displayed) == ["inline"] * 4


def test_hostile_texts_are_shown_and_not_run(visit, report):
    page = visit(report)
    page.on("dialog", lambda dialog: page.said.append(dialog.message))
    page.fill("#words", "evil.example")
    assert page.locator("#found blockquote").text_content() == HOSTILE
    assert page.locator("img, script[src]").count() == 0
    assert (page.asked, page.said) == ([report.as_uri()], [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_accessibility_check_passes(visit, report, scheme):
    page = visit(report, color_scheme=scheme)
    assert barriers(page) == ""
    page.fill("#words", "note 599")
    assert barriers(page) == ""
    page.evaluate("() => document.querySelector('main').append(document.createElement('button'))")
    assert "button-name" in barriers(page)


def test_a_phone_scrolls_down_only(visit, report):
    page = visit(report)
    page.set_viewport_size({"width": 360, "height": 740})
    page.fill("#words", "e")
    assert width(page) <= 360
    assert page.locator("#words").bounding_box()["width"] > 250


def test_paper_has_the_examples_and_no_controls(visit, report):
    page = visit(report)
    page.fill("#words", "note 599")
    page.emulate_media(media="print")
    assert page.locator("#examples").is_visible()
    assert not any(page.locator(hidden).is_visible() for hidden in ("#controls", "#results", "nav"))
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_without_scripts_the_examples_are_there(visit, report):
    page = visit(report, java_script_enabled=False)
    assert page.locator("#examples").is_visible()
    assert not page.locator("#controls").is_visible()


def test_what_is_odd_is_drawn_too(visit, tmp_path):
    """Fifty labels, thirty-two models, a text of a hundred thousand characters, figures that are no numbers."""
    run = write_run(tmp_path / "run", texts=200)
    rows = [json.loads(line) for line in (run / "synthetic.jsonl").read_text().split("\n")[:-1]]
    for at, row in enumerate(rows):
        row |= {"label": f"label {at % 50}" + " and so on" * 9 * (at % 50 == 3), "model": f"model-{at % 32}"}
    rows[0]["text"] = "unbroken" * 12_500
    (run / "synthetic.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [json.loads(line) for line in (run / "rounds.jsonl").read_text().splitlines()]
    for line in lines:
        line["weights"] = {f"model-{at}": 1 / 32 + 0.001 * at * line["round"] for at in range(32)}
        line["fid"] = [float("nan"), float("inf"), 2.0][line["round"]]
    (run / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = visit(write_report(run))
    assert drawn(page) == {f"plot-{key}": True for key in ("lengths", "round-weights", "round-fid")}
    page.fill("#words", "unbroken")
    assert len(page.locator("#found blockquote").first.inner_text()) < 2000
    page.click("#found summary")
    assert len(page.locator("#found blockquote").last.inner_text()) == 100_000
    page.set_viewport_size({"width": 360, "height": 740})
    assert width(page) <= 360
    assert page.said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_sweep_compared(visit, tmp_path, scheme):
    for number in range(6):
        write_row(tmp_path, number, ["method=wasp", f"privacy.epsilon={1 + number}"], 0.5, epsilon=1 + number)
    write_table(tmp_path)
    page = visit(tmp_path / "report.html", color_scheme=scheme)
    assert drawn(page) == {"plot-epsilon": True}
    assert barriers(page) == ""
    page.set_viewport_size({"width": 360, "height": 740})
    assert width(page) <= 360
    assert page.said == []
