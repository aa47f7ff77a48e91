"""DP-KPS on real parties, alone and under secure aggregation, and Deep CORAL for the recipient of the texts."""

import json
import math

import pytest

from common.errors import DataError
from server.command import main
from tests.support.runs import lines, read, tiny

TERMS = "Fever\ncough\nchest pain\noxygen\nlactate\nswelling\nantibiotics\nno note has this\nfever\n"


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    file = tmp_path_factory.mktemp("public") / "terms.txt"
    file.write_text(TERMS)
    return file


def small(vocabulary, *, terms=6):
    return (
        "method=dp_kps",
        f"method.vocabulary={vocabulary}",
        f"method.kept_terms={terms}",
        "method.length=4",
        "method.features=40",
        "method.samples=24",
        "method.rounds=1",
    )


def run_one(folder, vocabulary, *overrides, **size):
    return tiny(folder, *small(vocabulary, **size), *overrides)


def test_the_plan_shows_the_errors_of_both_mechanisms_side_by_side(vocabulary, capsys):
    errors = {}
    for mechanism in ("laplace", "gaussian"):
        assert main(["plan", "--json", *small(vocabulary), f"method.mechanism={mechanism}"]) == 0
        plan = json.loads(capsys.readouterr().out)
        errors[mechanism] = plan["queries"][1]["density_error_times_records"]
    laplace, gaussian = errors["laplace"], errors["gaussian"]
    for other in ("laplace", "gaussian"):
        assert laplace[other] == pytest.approx(gaussian[other])
    share = 4.0 * (1 - 0.16666667)
    assert laplace["laplace"] == pytest.approx(2 * math.sqrt(40) / share)
    # The grid's largest value is sqrt(2) B rounded down.
    assert laplace["planned"] == pytest.approx(laplace["laplace"], rel=0.01)
    # Alone at its share; together with the histogram the whole plan leaves a little more or less.
    assert gaussian["planned"] == pytest.approx(gaussian["gaussian"], rel=0.2)
    assert gaussian["planned"] < laplace["planned"] / 2


def test_a_vocabulary_that_no_record_uses_gives_texts_from_noise_alone(tmp_path):
    file = tmp_path / "terms.txt"
    file.write_text("".join(f"zq{i}\n" for i in range(8)))
    run = run_one(tmp_path / "run", file, "llm.use=[broad]")
    assert len(lines(run, "synthetic.jsonl")) == 24


NETWORK = ("evaluation.model=network", "evaluation.domain_adaptation=deep_coral", "evaluation.epochs=3")


def test_the_recipient_adapts_to_texts_of_its_own_that_are_no_test_texts(vocabulary, tmp_path):
    from server.tasks import demo_notes

    target = tmp_path / "target.txt"
    target.write_text("\n".join(" ".join(note.text.split()) for note in demo_notes.held_out_notes(60, 7)))
    run = run_one(tmp_path / "run", vocabulary, *NETWORK, f"evaluation.target={target}", "llm.use=[broad]")
    metrics = read(run, "metrics.json")
    assert "Deep CORAL" in metrics["definition"]
    assert 0 <= metrics["synthetic"]["accuracy"] <= 1
    assert metrics["real_private"]["simulation_only"]
    target.write_text("\n".join(" ".join(note.text.split()) for note in demo_notes.held_out_notes(24, 0)))
    with pytest.raises(DataError, match="test texts"):
        run_one(tmp_path / "again", vocabulary, *NETWORK, f"evaluation.target={target}", "llm.use=[broad]")


def test_sequences_are_tested_on_sequences(vocabulary, tmp_path):
    run = run_one(
        tmp_path / "run",
        vocabulary,
        "method.ablation=no_llm",
        f"evaluation.vocabulary={vocabulary}",
        "privacy.epsilon=inf",
        terms=7,
    )
    assert "sequences" in read(run, "metrics.json")["definition"]
    assert {row["model"] for row in lines(run, "synthetic.jsonl")} == {"keyphrases"}
