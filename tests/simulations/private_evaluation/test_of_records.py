import json
import math
from dataclasses import replace

import pytest

from common.domain import Record
from common.errors import ConfigError
from server.documents.codec import strict
from server.domain import Candidate
from server.evaluation.of_texts import text_groups
from server.evaluation.small_model import Evaluation
from server.prepare.compose import compose_settings
from simulations.baselines import unprotected
from simulations.federation.measured import with_promise
from simulations.private_evaluation.canaries import canaries
from simulations.private_evaluation.of_records import MeasuredWithRecords, record_groups
from tests.support.documents import privacy_json
from tests.support.embedding_endpoint import remote_encoder
from tests.support.federations import ENCODER
from tests.support.measured_texts import FAST, assert_whole, candidates, measured_parts, records

OWN = ("private", "sites", "canaries", "style_site", "epsilon")


def measured(**changes):
    fields = {"private": records(208)} | {name: changes.pop(name) for name in OWN if name in changes}
    return MeasuredWithRecords(**fields, **measured_parts(**changes))


def test_every_figure_has_a_value_rows_and_a_definition_and_is_marked():
    planted = canaries(60, ["a", "b"], 0)
    fields = {"sites": [at // 10 for at in range(40)], "style_site": 1, "epsilon": 4.0}
    groups = record_groups(measured(canaries=planted, **fields))
    names = ["utility_real", "language_real", "fidelity_real", "fidelity_private"]
    names += ["membership", "canaries", "sites", "disclosures", "subgroups"]
    assert list(groups) == names
    assert_whole(groups)
    assert [name for name, group in groups.items() if group["simulation_only"]] == names
    json.dumps(strict(groups), allow_nan=False)


def test_nothing_that_was_not_chosen_is_measured():
    assert record_groups(measured(settings={"metrics": ["diversity"]})) == {}


def test_canaries_that_came_out_are_found_and_others_are_not():
    known = [canary for canary in canaries(40, ["a", "b"], 0) if canary.inside]
    settings = {"metrics": ["canaries"], "language_model": replace(FAST, epochs=12, length=32)}
    parrots = [Candidate(text=known[i % 2].record.text, label="a", model="m", round=0) for i in range(40)]
    for texts, extracted in ((parrots, 1.0), (candidates(), 0.0)):
        group = record_groups(measured(candidates=texts, canaries=known[:2], settings=settings))["canaries"]
        assert group["extracted"].value == extracted
        assert (group["exposure"].value > 7) is bool(extracted)
        assert "8 canaries" in group["auc"].reason
    reason = record_groups(measured(settings=settings))["canaries"]["extracted"].reason
    assert "federation.canaries" in reason


def test_canaries_are_not_among_the_records_whose_hospital_is_sought():
    planted = canaries(10, ["a", "b"], 0)
    private = [*records(208), *(canary.record for canary in planted if canary.inside)]
    parts = {"private": private, "canaries": planted, "settings": {"metrics": ["sites"]}}
    group = record_groups(measured(sites=[at % 2 for at in range(len(private))], **parts))["sites"]
    assert group["gain"].rows == 40
    assert "planted" not in group
    reason = record_groups(measured(sites=[0] * len(private), **parts))["sites"]["gain"].reason
    assert "two hospitals" in reason


def test_too_few_records_for_an_attack(caplog):
    caplog.set_level("INFO", "caucus.measures")
    group = record_groups(measured(private=records(208, 5), settings={"metrics": ["membership"]}))["membership"]
    assert group["simulation_only"]
    assert [group[name].value for name in ("PPL", "REFER", "LIRA")] == [None] * 3
    assert all(number in group["PPL"].reason for number in ("20", "40"))
    assert group["PPL"].reason in caplog.text


def test_copies_of_records_are_disclosures_and_texts_of_nobody_are_not():
    private, test = ([Record(f"{kind} {i} saw the {i * i} th lantern", "a") for i in range(40)] for kind in "xz")
    copies = [Candidate(text=record.text, label="a", model="m", round=0) for record in private[:15]]
    for texts, least in ((copies, 15), (candidates(), 0)):
        parts = {"candidates": texts, "private": private, "test": test, "settings": {"metrics": ["disclosures"]}}
        group = record_groups(measured(**parts))["disclosures"]
        assert group["rare_word_sequences"].value == least / 40
        assert group["rare_word_sequences_control"].value == 0
        assert (group["rare_word_sequences_p"].value < 0.001) is bool(least)
    few = record_groups(measured(private=records(208, 5), settings={"metrics": ["disclosures"]}))["disclosures"]
    assert "20 or more" in few["rare_word_sequences"].reason


def test_no_private_record_is_sent_to_an_endpoint_by_the_comparison_of_a_simulation(monkeypatch):
    encoder, sent = remote_encoder(monkeypatch, lambda texts: ([[len(text), 1.0] for text in texts], 200))
    evaluation = Evaluation(model="encoder", embedding=encoder, metrics=["utility"])
    held_out, private = [Record("held out", "a"), Record("so is this", "b")], [Record("zyxcanary", "a")]
    measured = MeasuredWithRecords(
        candidates=[Candidate(text=text, label=label, model="m", round=0) for text, label in (("x", "a"), ("yy", "b"))],
        test=held_out,
        evaluation=evaluation,
        encoder=ENCODER,
        private=private,
    )
    assert text_groups(measured)["utility"]["accuracy"].value is not None
    assert sent
    group = record_groups(measured)["utility_real"]
    assert group.value is None
    assert "never sent" in group.reason
    assert "zyxcanary" not in str(sent)


def test_a_baseline_of_private_records_does_not_begin_with_an_endpoint(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-word")
    chosen = ["+embedding@evaluation.embedding=openai_compatible", "task.public_notes=60"]
    private = [Record("zyxcanary", "a"), Record("b", "b")]
    with pytest.raises(ConfigError, match=r"^evaluation\.embedding;"):
        unprotected.train_on_records(compose_settings([*chosen, "evaluation.model=encoder"]), private, private)
    measured = unprotected.train_on_records(compose_settings(chosen), private, private)
    assert measured["real_private"]["records"] == 2  # TF-IDF asks no encoder


@pytest.mark.parametrize("epsilon", [0.0, 3.99, "inf"])
def test_what_a_run_promises_is_in_its_folder_and_not_in_its_settings(epsilon, tmp_path):
    (tmp_path / "privacy.json").write_text(json.dumps(privacy_json(planned_epsilon=epsilon)))
    promise = with_promise(measured(), tmp_path)
    assert (promise.epsilon, promise.delta) == (float(epsilon), 1e-5)
    assert (measured().epsilon, measured().delta) == (math.inf, 0.0)
