"""`release.md`: what was tested and what was not, for a person who decides."""

import pytest

from common.page.words import catalogue
from server.report.write import RELEASE as FILE
from server.report.write import escape_markdown, write_report
from server.settings.evaluation import METRICS
from tests.support.documents import edit, write_run

TESTS = vars(catalogue("server.report").tests)


def page(run):
    write_report(run)
    return (run / FILE).read_text("utf-8")


def section(text, heading):
    return text.split(f"## {heading}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("metric", METRICS)
def test_every_group_of_figures_is_named_as_tested_or_not(metric):
    assert metric.replace("_", " ") in TESTS


def test_a_test_is_either_done_or_not(tmp_path):
    text = page(write_run(tmp_path / "run"))
    done, missing = section(text, "What was tested"), section(text, "What was not tested")
    for title in TESTS:
        named = f"- **{title.capitalize()}**"
        assert (named in done) != (named in missing)


def test_what_others_wrote_stays_text(tmp_path):
    text = page(edit(write_run(tmp_path / "run"), "run.json", purpose="a | b\n## <b>Approved</b>"))
    assert r"| Purpose | a \| b \#\# \<b\>Approved\</b\> |" in text
    assert escape_markdown("[x](y)") == r"\[x\](y)"
