import pytest

from client import approvals as module
from client.approvals import MOST_AWAITING, Approvals, approvals, decide
from client.service import LARGEST_PLAN
from client.session import RefusalError
from common import messages as m
from common import wire
from common.errors import ConfigError
from tests.support.federations import CANARY, plan, service

PLAN = plan(3, secure=False, threshold=1)


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_text("text,label\n")
    return path


def made(tmp_path, records, approval="manual"):
    return Approvals(tmp_path / "private", approval=approval, records=records, key=b"k" * 32)


def refused(reason, wanted, run="r", agreed=PLAN):
    with pytest.raises(RefusalError) as caught:
        wanted.admit(run, agreed)
    assert caught.value.reason is reason
    return str(caught.value)


def test_a_plan_waits_for_a_person_and_is_then_let_in_for_this_run_and_plan_alone(tmp_path, records):
    wanted = made(tmp_path, records)
    assert "caucus-party approve" in refused(m.Reason.AWAITING, wanted)
    (approval,) = approvals(tmp_path / "private")
    assert (approval.run, approval.decision, approval.by) == ("r", "awaiting", "")
    decision = decide(tmp_path / "private", approval, approve=True, by="anna")
    wanted.admit("r", PLAN)
    wanted.admit("r", PLAN)
    refused(m.Reason.AWAITING, wanted, run="another")
    refused(m.Reason.AWAITING, wanted, agreed=plan(4, secure=False, threshold=1))
    with pytest.raises(ConfigError, match="expected one that awaits a decision; got approved by anna"):
        decide(tmp_path / "private", decision, approve=False, by="bob")


def test_a_refusal_stays(tmp_path, records):
    wanted = made(tmp_path, records)
    refused(m.Reason.AWAITING, wanted)
    decide(tmp_path / "private", *approvals(tmp_path / "private"), approve=False, by="anna")
    assert "refused by anna" in refused(m.Reason.OVER_LIMIT, wanted)
    assert "refused by anna" in refused(m.Reason.OVER_LIMIT, made(tmp_path, records))


def test_the_limits_may_decide(tmp_path, records):
    made(tmp_path, records, "auto").admit("r", PLAN)
    (approval,) = approvals(tmp_path / "private")
    assert (approval.decision, approval.by) == ("approved", "limits")
    with pytest.raises(ConfigError, match="approval"):
        made(tmp_path, records, "always")


def test_a_coordinator_cannot_fill_the_disk_with_plans(tmp_path, records):
    wanted = made(tmp_path, records)
    for number in range(MOST_AWAITING + 5):
        refused(m.Reason.AWAITING, wanted, run=str(number))
    assert sum(1 for _ in approvals(tmp_path / "private")) == MOST_AWAITING


def test_nor_with_plans_that_the_limits_let_in(tmp_path, records, monkeypatch):
    monkeypatch.setattr(module, "MOST_APPROVALS", 3)
    wanted = made(tmp_path, records, "auto")
    for number in range(3):
        wanted.admit(str(number), PLAN)
    said = refused(m.Reason.INTERNAL, wanted, run="one more")
    assert f"expected below 3: move old files out of {tmp_path / 'private' / 'runs'}" in said
    wanted.admit("0", PLAN)  # what is under way goes on
    next((tmp_path / "private" / "runs").glob("*.json")).unlink()
    wanted.admit("one more", PLAN)


def test_a_run_keeps_to_the_records_it_began_with(tmp_path, records):
    wanted = made(tmp_path, records, "auto")
    wanted.admit("r", PLAN)
    before = records.read_bytes()
    records.write_text(f"text,label\n{CANARY},a\n")
    with pytest.raises(RefusalError, match="as it was when this service started") as caught:
        wanted.unchanged()
    assert caught.value.reason is m.Reason.INTERNAL
    restarted = made(tmp_path, records, "auto")
    assert "the one that this run began with" in refused(m.Reason.INTERNAL, restarted)
    restarted.admit("a new run", PLAN)
    records.write_bytes(before)
    made(tmp_path, records, "auto").admit("r", PLAN)
    records.unlink()
    with pytest.raises(RefusalError):
        wanted.unchanged()


def test_a_huge_plan_is_not_kept(tmp_path, records):
    party = service(tmp_path, 0)
    party._approvals = made(tmp_path, records, "auto")
    body = m.Open(PLAN.to_json() + b" " * LARGEST_PLAN)
    parcel = wire.pack(m.Envelope(run="r", party=0, plan_digest=PLAN.digest(), body=body))
    assert wire.unpack(party.handle(parcel)).body == m.Refusal(m.Reason.MALFORMED)
    assert not list(approvals(tmp_path / "private"))
