"""What `caucus-party status` tells a hospital's operator."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from client.audit_log import AuditLog
from client.command import main
from client.guard import Limits
from client.session import RefusalError
from common.ledger.ledger import Ledger
from common.privacy.accountant import ReleasedAnswers
from common.privacy.sensitivity import Sensitivity
from server.deploy.authority import AUTHORITY_VALID, make_authority
from tests.support.hospital import LIMITS, change, charge, note
from tests.support.ledgers import RELEASE, reservation


def output_of(capsys, folder, *flags):
    assert main(["status", str(folder), *flags]) == 0
    return capsys.readouterr().out


def as_json(capsys, folder):
    def constant(name):
        raise ValueError(name)  # such as Infinity, which is no JSON

    return json.loads(output_of(capsys, folder, "--json"), parse_constant=constant)


def test_requests_refusals_and_the_last_contact(hospital, capsys):
    last = json.loads((hospital / "private" / "audit.jsonl").read_text().splitlines()[-1])["when"]
    requests = as_json(capsys, hospital)["requests"]
    assert (requests["answered"], requests["waiting"], requests["refused"]) == (1, 1, {"OVER_LIMIT": 2})
    assert requests["last_contact"] == requests["last_refusal"]["when"] == last
    shown = f"{last}, run r, Ask, OVER_LIMIT: the detail"
    note(hospital, "Ask", "AWAITING")
    assert output_of(capsys, hospital).count(f"{shown}\n") == 1
    assert not as_json(capsys, hospital)["requests"]["answered_since"]
    note(hospital, "Ask")
    assert output_of(capsys, hospital).count(f"{shown};") == 1
    assert as_json(capsys, hospital)["requests"]["answered_since"]


def test_what_a_coordinator_sent_writes_over_no_line(hospital, capsys):
    forged = "x\nepsilon left: 10\x1b[8m"
    AuditLog(hospital / "private").note(
        run=forged, plan_digest=bytes(32), request="Open", index=0, reason="MALFORMED", detail=forged
    )
    lines = output_of(capsys, hospital).splitlines()
    assert not any("\x1b" in line or line == "epsilon left: 10" for line in lines)
    assert any(line.endswith("MALFORMED: x?epsilon left: 10?[8m") for line in lines)


def test_what_was_spent_is_rounded_up_and_what_is_left_down(hospital, capsys):
    spent = Limits(**LIMITS).spent([RELEASE])
    facts = as_json(capsys, hospital)
    assert 0 <= facts["epsilon"] - spent < 1.01e-4
    assert 0 <= 10 - spent - facts["epsilon_left"] < 1.01e-4
    assert f"epsilon left: {facts['epsilon_left']} of 10" in output_of(capsys, hospital)
    change(hospital, limits={"lifetime_epsilon": 1e-3})
    assert as_json(capsys, hospital)["epsilon_left"] == 0
    change(hospital, limits={"lifetime_epsilon": None, "max_epsilon": math.inf, "unsafe_no_noise": True})
    facts = as_json(capsys, hospital)
    assert (facts["epsilon_left"], facts["limits"]["max_epsilon"]) == (None, "inf")
    assert "epsilon left: no limit" in output_of(capsys, hospital)


def test_no_budget_is_promised_that_the_limit_refuses(hospital, capsys):
    laplace = replace(RELEASE, mechanism="laplace", sensitivity=Sensitivity(l1=2, l2_squared=4, touched=2), scale=2.0)
    ledger = Ledger(hospital / "private" / "ledger.db")
    ledger.reserve(**reservation(index=1) | {"release": laplace})
    left, limits = as_json(capsys, hospital)["epsilon_left"], Limits(**LIMITS)
    assert left == math.floor(limits.left(limits.spent([RELEASE, laplace])) * 1e4) / 1e4
    once = Sensitivity(l1=1, l2_squared=1, touched=1)
    promised = ReleasedAnswers(mechanism="pure", sensitivity=once, scale=1 / left)
    limits.allow([RELEASE, laplace, promised])  # is not refused
    with pytest.raises(RefusalError):
        limits.allow([RELEASE, laplace, replace(promised, scale=1 / (left + 1e-3))])


def test_an_answer_without_noise_is_infinite(hospital, capsys):
    ledger = Ledger(hospital / "private" / "ledger.db")
    ledger.reserve(**reservation(index=1) | {"release": replace(RELEASE, scale=0.0)})
    facts = as_json(capsys, hospital)
    assert (facts["epsilon"], facts["epsilon_left"]) == ("inf", 0)
    assert "infinite\nepsilon left: 0.0 of 10\n" in output_of(capsys, hospital)


def test_the_noted_head_and_a_ledger_that_is_older(hospital, capsys):
    older = (hospital / "private" / "ledger.db").read_bytes()
    charge(hospital, 1)
    head = (hospital / "private" / "ledger.head").read_text().split()[0]
    assert head in output_of(capsys, hospital)
    assert as_json(capsys, hospital)["ledger"] == {"events": 2, "noted_head": head, "problem": ""}
    (hospital / "private" / "ledger.db").write_bytes(older)
    for damage in ("older", "missing"):
        if damage == "missing":
            (hospital / "private" / "ledger.db").unlink()
        facts = as_json(capsys, hospital)
        assert facts["epsilon_left"] is None
        assert facts["ledger"]["problem"] in output_of(capsys, hospital)
        assert facts["ledger"]["problem"]
    assert not (hospital / "private" / "ledger.db").exists()


def test_a_certificate_that_ends_soon_is_warned_about(hospital, capsys):
    assert as_json(capsys, hospital)["certificate_days"] in {3649, 3650}
    assert "WARNING" not in output_of(capsys, hospital)
    make_authority(hospital / "node", now=datetime.now(UTC) - AUTHORITY_VALID + timedelta(days=9, hours=1))
    assert "ends in 9 days; WARNING" in output_of(capsys, hospital)


def test_half_a_folder_has_a_status_too(hospital, capsys):
    (hospital / "private").rename(hospital.parent / "private")
    (hospital / "node" / "ca.crt").unlink()  # or this account may not read it
    facts = as_json(capsys, hospital)
    assert (facts["charged"], facts["ledger"]["noted_head"], facts["certificate_days"]) == (0, None, None)
    assert "certificate" not in output_of(capsys, hospital)
