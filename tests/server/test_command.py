"""`caucus-coordinator plan`: the price as JSON, before anything private is touched."""

import json
import logging

import pytest

from client import records
from common import labelled_files
from server.command import main
from server.tasks import demo_notes
from tests.server.report.test_report import write_run


@pytest.fixture(autouse=True)
def nothing_private(monkeypatch):
    """Whoever reads a record here fails the test."""

    def forbidden(*_args, **_kwargs):
        raise AssertionError("a private record was asked for")

    monkeypatch.setattr(demo_notes, "private_notes", forbidden)
    monkeypatch.setattr(demo_notes, "test_notes", forbidden)
    monkeypatch.setattr(labelled_files, "read_records", forbidden)
    monkeypatch.setattr("server.tasks.sources.read_records", forbidden)
    monkeypatch.setattr(records, "read_records", forbidden)


def plan(capsys, *overrides):
    assert main(["plan", *overrides]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_defaults_cost_what_the_readme_says(capsys):
    told = plan(capsys, "privacy.epsilon=4")
    (query,) = told["queries"]
    assert f"{query['scale']:.4g}" == "3.531"
    assert (told["epsilon"], told["delta"], query["times"], query["top"]) == (4, 1e-5, 4, 8)
    assert query["sensitivity_l2"] == pytest.approx(1.63298, abs=1e-5)
    assert [line["colluders"] for line in told["against_colluders"]] == [0, 1, 2]
    assert told["forecast"]["texts"] == 2000
    assert told["forecast"]["model_calls"] == 420
    assert min(told["forecast"][kind] for kind in ("input_tokens", "output_tokens")) > 0
    assert told["forecast"]["cost"] == 0
    assert "spent" not in told


def test_the_same_settings_as_for_a_run(capsys):
    told = plan(capsys, "federation.parties=10", "method.rounds=3", "privacy.epsilon=1", "secagg=none")
    assert (told["parties"], told["queries"][0]["times"], told["noise_parties"]) == (10, 2, 1)
    assert told["aggregation"] == "none"


def test_files_of_a_simulation_are_not_even_looked_at(capsys, tmp_path):
    (tmp_path / "public.txt").write_text("A public text.\nAnother public text.\n")
    told = plan(
        capsys,
        "task=csv",
        "task.labels={flu: influenza, cold: a common cold}",
        f"task.train={tmp_path}/absent.csv",
        f"task.test={tmp_path}/absent.csv",
        f"task.public_text={tmp_path}/public.txt",
    )
    assert told["forecast"]["texts"] == 2000


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (
            ["task=csv", "task.train=private.csv"],
            "task.labels; expected label: public description; got none. Name them",
        ),
        (["task=csv", "task.labels=[a,b]"], "task.public_text; expected a file of public text"),
        (["privacy.epsilon=0"], "epsilon; expected a finite number > 0; got 0"),
        (["privacy.epsilon=-1"], "epsilon; expected a finite number > 0; got -1"),
        (["privacy.epsilon=nan"], "epsilon; expected a finite number > 0; got nan"),
        (["privacy.epsilon=.nan"], "privacy.epsilon; expected a number, or inf"),
        (["privacy.epsilon=many"], "privacy.epsilon; expected a number, or inf; got 'many'"),
        (["privacy.delta=0"], "delta; expected a number strictly between 0 and 1"),
        (["method.rounds=1"], "method.rounds; expected at least 2"),
        (["federation.parties=0"], "parties"),
        (["federation.max_dropouts=3"], "parties that remain; expected at least 1"),
        (["federation.colluders=3"], "shares of noise"),
        (["llm.use=[nobody]"], "llm.use; expected some of broad, narrow, noisy"),
        (["llm.use=[]"], "llm.use"),
        (["privacy.unit=patient"], "unit; expected one of sample, user"),
        (["secagg.mode=tree"], "secagg.mode; expected one of semi_honest, malicious, none"),
        (["no.such=1"], "no"),
        (["privacy.epsilon"], "privacy.epsilon"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_setting_is_one_clear_line_and_a_code(overrides, said, capsys):
    assert main(["plan", *overrides]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert said in captured.err
    assert captured.err.startswith("caucus-coordinator: ")
    assert "Traceback" not in captured.err


def test_without_noise_it_is_still_json(capsys):
    assert main(["plan", "privacy.epsilon=.inf"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (told["epsilon"], told["mechanism"], told["queries"][0]["scale"]) == ("inf", "none", 0)


def test_one_party_alone_is_said(capsys, caplog):
    caplog.set_level(logging.WARNING)
    assert plan(capsys, "federation.parties=1")["aggregation"] == "none"
    assert "one party alone" in caplog.text


def test_without_a_command_it_says_how(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "plan" in capsys.readouterr().err


def test_a_report_is_written_again_from_its_folder(capsys, tmp_path):
    run = write_run(tmp_path / "run")
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'report.html'}\n"
    assert "40 synthetic texts" in (run / "report.html").read_text("utf-8")
    assert (run / "report.json").is_file()
    assert main(["report", str(tmp_path)]) == 2  # a sweep has a page of its own, which must not be lost
    assert "run folder; expected one with a config.yaml; got none" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()
