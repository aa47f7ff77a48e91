"""`caucus-coordinator plan`: the price, before anything private is touched."""

import json
from pathlib import Path

import pytest

from server.command import main
from server.methods.wasp import VOTES
from server.page.drafts import MADE
from server.planning import forecast
from tests.support.documents import write_run
from tests.support.lanes import slow
from tests.support.runs import labelled
from tests.support.screens import assert_accepted, under_headings

pytestmark = pytest.mark.usefixtures("nothing_private")
FORECAST = {"texts": 9, "model_calls": 8, "input_tokens": 7, "output_tokens": 6, "cost": 0.5}
FORECAST |= {"models": {"a": {"cost": 0.5}, "b": {"cost": None}}}


@pytest.fixture
def unrehearsed(monkeypatch):
    """Most tests do without the forecast: a rehearsal of the run takes a second."""
    monkeypatch.setattr(forecast, "forecast", lambda *_, **__: FORECAST)


def plan(capsys, *overrides):
    assert main(["plan", "--json", *overrides]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_defaults_cost_what_the_readme_says(capsys):
    report = plan(capsys, "privacy.epsilon=4")
    (query,) = report["queries"]
    assert f"{query['scale']:.4g}" == "3.531"
    assert (report["epsilon"], report["delta"], query["times"], query["top"]) == (4, 1e-5, 4, 8)
    assert query["sensitivity_l2"] == pytest.approx(1.63298, abs=1e-5)
    assert [line["colluders"] for line in report["against_colluders"]] == [0, 1, 2]
    assert report["forecast"]["texts"] == 2000
    assert report["forecast"]["model_calls"] == 420
    assert min(report["forecast"][kind] for kind in ("input_tokens", "output_tokens")) > 0
    assert report["forecast"]["cost"] == 0
    assert "spent" not in report


@pytest.mark.usefixtures("unrehearsed")
def test_a_query_has_its_signal_and_what_is_hopeless_is_said(capsys):
    report = plan(capsys, "--records", "100", "privacy.epsilon=1", "method.samples=600")
    (query,) = report["queries"]
    signal = query["signal"]
    assert signal["signal"] == pytest.approx(100 * (2 - 2**-7) / 480)
    assert signal["noise"] == pytest.approx(query["scale"])
    assert signal["ratio"] == pytest.approx(signal["signal"] / signal["noise"])
    assert 0.5 < signal["ranked_rightly"] < 0.6
    assert report["expected_records"] == 100
    (message,) = report["advice"]
    assert all(fact in message for fact in (VOTES, "be noise", "0.42 votes", "against 12"))
    assert report["chosen"] == {"method.texts_per_request": 5, "method.top": 8, "method.shots": 8}


@pytest.mark.usefixtures("unrehearsed")
def test_without_a_guess_of_records_it_says_how_many_it_takes(capsys, tmp_path):
    report = plan(capsys, *labelled(tmp_path), "privacy.epsilon=1", "method.samples=600")
    assert report["expected_records"] is None
    least = report["queries"][0]["signal"]["clear_from_records"]
    assert report["queries"][0]["signal"]["not_estimated"]
    assert f"takes {least:,}" in report["advice"][0]


@pytest.mark.usefixtures("unrehearsed")
def test_without_test_texts_it_says_what_a_count_of_the_hospitals_costs(capsys, tmp_path):
    known = ("--records", "8000", *labelled(tmp_path), "task.test=null", "method.samples=60")
    (said,) = [sentence for sentence in plan(capsys, *known)["advice"] if "task.test" in sentence]
    counted = plan(capsys, *known, "evaluation.federated=0.05")
    noise = counted["queries"][-1]["signal"]["noise"]
    assert all(fact in said for fact in ("evaluation.federated=0.05", "5%", f"{noise:.2g} records"))
    assert not [sentence for sentence in counted["advice"] if "task.test" in sentence]
    for other in ("task.labels_per_text=2", "task.labels=unlabelled"):
        made = plan(capsys, *known, "method=class_sums", "method.directions=6", "method.rounds=2", other)
        assert not [sentence for sentence in made["advice"] if "task.test" in sentence]


@pytest.mark.parametrize(
    ("use", "labels", "said"), [("own", "{a: a, b: b}", True), ("own", None, False), ("broad", "{a: a, b: b}", False)]
)
@pytest.mark.usefixtures("unrehearsed")
def test_names_that_say_little_are_in_the_plan_if_a_model_reads_them(use, labels, said, capsys, tmp_path):
    models = ["+llm.models.own={_target_: tests.support.counting_models.Chat}", f"llm.use=[{use}]"]
    names = [f"task.labels={labels}"] if labels else []
    small = ["method.samples=64", "method.rounds=2", "method.words=9"]
    advice = plan(capsys, *labelled(tmp_path), *names, *models, *small)["advice"]
    assert any("task.labels=" in sentence for sentence in advice) == said


def test_a_plan_is_solved_for_the_least_epsilon_without_a_rehearsal(capsys, monkeypatch):
    monkeypatch.setattr("server.planning.forecast.rehearse", lambda *_: pytest.fail("rehearsed"))
    monkeypatch.setattr("server.llm.providers.providers", lambda *_, **__: pytest.fail("models were looked at"))
    solved = plan(capsys, "--records", "20000", "--signal", "1", "task.public_notes=60")
    assert solved["solved_for"] == "epsilon"
    assert (solved["expected_records"], solved["signal"], solved["decided_by"]) == (20000, 1, VOTES)
    assert solved["queries"][0]["signal"]["ratio"] >= 1
    epsilon = solved["epsilon"]
    assert 0 < epsilon < 1
    solved = plan(capsys, "--epsilon", f"{epsilon}", "--signal", "1", "task.public_notes=60")
    assert (solved["solved_for"], solved["epsilon"]) == ("records", epsilon)
    assert 19_000 < solved["expected_records"] <= 20_000
    assert all(fact in solved["advice"][0] for fact in (VOTES, "weak"))


WRONG_QUESTIONS = [
    ("--signal 3 task.public_notes=60", "--signal"),
    ("--signal 3 --records 9 --epsilon 1 task.public_notes=60", "--signal"),
    ("--signal many --records 9 task.public_notes=60", "--signal"),
    ("--signal -1 --records 9 task.public_notes=60", "--signal"),
    ("--signal 3 --records 0 task.public_notes=60", "federation.expected_records"),
    ("--records 2.5 task.public_notes=60", "federation.expected_records"),
    ("--signal 3 --epsilon x task.public_notes=60", "privacy.epsilon"),
    ("--signal 3 --epsilon 0 task.public_notes=60", "privacy.epsilon"),
    ("--signal 3 --records 9 method=fusegen task.public_notes=60", "no query of this plan has a signal"),
    ("--signal 3 --records 9 task.public_notes=60", "signal"),
]
WRONG_SETTINGS = [
    ("privacy.epsilon=.nan", "privacy.epsilon"),
    ("federation.max_dropouts=2 federation.colluders=1", "shares of noise"),
]


@pytest.mark.parametrize(("words", "what"), [*WRONG_QUESTIONS, *WRONG_SETTINGS])
def test_a_wrong_question_or_setting_is_one_clear_line_and_a_code(words, what, capsys):
    assert main(["plan", *words.split()]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.startswith(f"caucus-coordinator: {what}")
    assert captured.err.count("\n") == 1


@pytest.mark.usefixtures("unrehearsed")
def test_a_delta_above_one_over_the_expected_records_is_advised_against(capsys):
    def said(records):
        settings = ("llm.use=[broad]", "method.samples=60", "method.rounds=2", "privacy.delta=0.01")
        advice = plan(capsys, *settings, f"federation.expected_records={records}")["advice"]
        return [sentence for sentence in advice if sentence.startswith("privacy.delta=0.01 ")]

    assert said(100) == []
    (sentence,) = said(101)
    assert "1 / 101" in sentence


@pytest.mark.usefixtures("unrehearsed")
def test_without_noise_it_is_still_json(capsys):
    assert main(["plan", "--json", "privacy.epsilon=.inf"]) == 0
    report = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (report["epsilon"], report["mechanism"], report["queries"][0]["scale"]) == ("inf", "none", 0)


def short(capsys, *overrides):
    assert main(["plan", *overrides]) == 0
    return capsys.readouterr().out.splitlines()


def test_without_json_a_line_says_each_thing_that_decides(capsys):
    screens = {
        "class_sums": ["--records", "300", "method=class_sums", "method.samples=40"],
        "votes": ["--records", "100", "method.samples=40"],
        "solved": ["--epsilon", "4", "--signal", "3", "method=class_sums"],
        "malicious": ["secagg=malicious", "federation.parties=10", "method=class_sums", "method.samples=40"],
    }
    shown = under_headings({name: short(capsys, *words) for name, words in screens.items()})
    assert_accepted(shown, Path(__file__).parent / "screens" / "plan.txt")


WITHOUT_NOISE = [(method, ".inf") if method in {"wasp", "class_sums"} else slow(method, ".inf") for method in MADE]


@pytest.mark.parametrize(("method", "epsilon"), [*((method, 2) for method in MADE), *WITHOUT_NOISE])
@pytest.mark.usefixtures("unrehearsed")
def test_each_method_has_a_short_form(method, epsilon, tmp_path, capsys):
    (tmp_path / "terms.txt").write_text("\n".join(f"term{number}" for number in range(1000)))
    terms = [f"method.vocabulary={tmp_path}/terms.txt"] if method in {"aug_pe_plus", "dp_kps"} else []
    lines = short(capsys, f"method={method}", f"privacy.epsilon={epsilon}", *terms)
    (forecast_line,) = [line for line in lines if line.startswith("9 texts")]
    assert all(fact in forecast_line for fact in ("8 model calls", "13 tokens", "0.5", "price: b"))
    assert all(line and "None" not in line and "nan" not in line for line in lines)
    asked = [line for line in lines if " answer: " in line or " answers: " in line]
    assert bool(asked) != ("asked nothing" in lines[0])


def test_a_report_is_written_again_from_its_folder(capsys, tmp_path):
    run = write_run(tmp_path / "run")
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'report.html'}\n"
    assert "40 synthetic texts" in (run / "report.html").read_text("utf-8")
    assert (run / "report.json").is_file()
    assert main(["report", str(tmp_path)]) == 2  # a sweep has a page of its own, which must not be lost
    assert "run folder;" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


@pytest.mark.usefixtures("unrehearsed")
def test_settings_and_options_come_in_any_order(capsys):
    orders = (
        ["method=fusegen", "--records", "300", "privacy.delta=1e-6"],
        ["--records", "300", "method=fusegen", "privacy.delta=1e-6"],
        ["method=fusegen", "privacy.delta=1e-6", "--records", "300"],
    )
    first, *others = (plan(capsys, "task.public_notes=60", *order) for order in orders)
    assert first["expected_records"] == 300
    assert others == [first, first]
    assert main(["plan", "method=fusegen", "--records", "300", "privacy.delta=7"]) == 2
    assert "privacy.delta;" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["plan", "method=fusegen", "--recrods", "300"])
    assert "--recrods" in capsys.readouterr().err
