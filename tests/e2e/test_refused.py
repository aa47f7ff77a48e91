"""Runs of a simulation whose texts are refused: their documents, pages, last lines and exit code."""

import pytest

from common.errors import ConfigError
from server.report.write import RELEASE
from simulations.private_evaluation import attacks
from tests.support.runs import SMALL, command, read, settings

FOUND = {
    "found": {"value": 1, "rows": 40},
    "features": "one near text (9 of 16 records, 0 of 24 test texts)",
    "note": "n",
}
NOTHING = {"found": {"value": 0, "rows": 40}, "note": "Fewer than 8 cannot be found."}
ASKED = (
    *(setting for setting in SMALL if not setting.startswith(("evaluation", "method.rounds"))),
    "method.rounds=2",
    "evaluation.metrics=[disclosures]",
    "refuse_disclosures=true",
)


def ended(folder, monkeypatch, measured):
    monkeypatch.setattr(attacks, "phantom_figures", lambda *_, **__: measured)
    run = folder / "run"
    return run, *command(folder, *ASKED, f"hydra.run.dir={run}")


def test_texts_that_disclose_records_are_refused_and_stay_where_they_are(tmp_path, monkeypatch):
    run, code, said = ended(tmp_path, monkeypatch, FOUND)
    assert code == 1, said
    assert "(9 of 16 records, 0 of 24 test texts)" in said
    assert (read(run, "run.json")["status"], (run / "synthetic.jsonl").stat().st_size > 0) == ("refused", True)
    page, released = ((run / name).read_text("utf-8") for name in ("report.html", RELEASE))
    assert "<strong>Refused.</strong>" in page
    assert "Partial run" not in page
    assert "are refused" in released


def test_texts_that_disclose_nothing_are_not(tmp_path, monkeypatch):
    run, code, said = ended(tmp_path, monkeypatch, NOTHING)
    assert (code, read(run, "run.json")["status"], "refused" in said) == (0, "complete", False)
    assert "found 0." in (run / RELEASE).read_text("utf-8")


def test_what_could_not_be_tested_is_refused(tmp_path, monkeypatch):
    run, code, _ = ended(tmp_path, monkeypatch, {"found": None})
    assert (code, read(run, "run.json")["status"]) == (1, "refused")


def test_it_takes_the_figures_that_it_is_about():
    with pytest.raises(ConfigError, match="disclosures"):
        settings("refuse_disclosures=true")
