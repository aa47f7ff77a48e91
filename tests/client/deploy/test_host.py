"""The deployed service: its terms are the file's, everything else is as it was at its start."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from unittest.mock import Mock

import pytest
import yaml

from client.channel import READY
from client.command import main
from client.deploy import host
from client.deploy.host import CurrentTerms, PendingService
from client.deploy.settings import HospitalSettings
from client.guard import Limits
from client.session import RefusalError
from common import messages as m
from common import wire
from common.errors import ConfigError
from common.messages import Reason
from common.models.encoder import Encoder
from common.plan.planned import PlannedQuery
from common.queries.closed_set import make_query
from common.queries.histograms import LabelHistogramSpec
from common.system.enrolment import RosterFile
from server.tasks import demo_notes
from simulations.laboratory.nodes.deployment import write_records
from tests.support.federations import CANARY, plan, query, service
from tests.support.hospital import change, change_limits
from tests.support.party_requests import send

NUMBER = 1


def in_force(folder):
    settings = HospitalSettings.load(folder)
    return CurrentTerms(settings, settings.roster_file())


def refused(terms):
    with pytest.raises(RefusalError) as caught:
        terms()
    assert caught.value.reason is Reason.SETTINGS
    return str(caught.value)


def test_limits_and_approval_are_those_of_the_file_now(made):
    terms = in_force(made)
    assert (terms().approval, terms().limits.max_epsilon) == ("manual", 8.0)
    change(made, approval="auto")
    change_limits(made, max_epsilon=2.0)
    assert (terms().approval, terms().limits.max_epsilon) == ("auto", 2.0)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"records": "other.csv"}, "records"),
        ({"encoder": "model", "name": "St. Anne"}, "encoder, name"),
        ({"coordinator": "elsewhere:1"}, "coordinator"),
        ({"fine_tuning": {"max_steps": 5}}, "fine_tuning"),
        ({"limits": {"separate_data_sets": True}}, "limits.separate_data_sets"),
    ],
)
def test_what_a_running_service_cannot_change_is_refused_and_named(values, names, made):
    terms, before = in_force(made), (made / "client.yaml").read_text()
    change(made, **values)
    assert f" since this service started: {names}. " in refused(terms)
    (made / "client.yaml").write_text(before)
    assert terms().approval == "manual"


def test_a_roster_that_changed_since_the_start_is_refused_and_named(made):
    terms, path = in_force(made), made / "roster.json"
    parties = RosterFile.load(path).parties
    path.write_text(RosterFile(parties=parties[::-1]).to_json())
    assert ": roster.json. " in refused(terms)
    path.unlink()
    assert "roster.json" in refused(terms)


@pytest.mark.parametrize("content", ["limits: {max_epsilom: 1}", "limits: [", "approval: perhaps", "\udcff", None])
def test_a_file_that_is_wrong_or_gone_is_refused(content, made):
    terms, path = in_force(made), made / "client.yaml"
    before = path.read_bytes()
    if content is None:
        path.unlink()
    elif content.startswith("approval"):
        path.write_bytes(before + content.encode() + b"\n")
    else:
        path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert refused(terms).startswith("client.yaml")
    path.write_bytes(before)
    path.chmod(0o600)
    assert terms().approval == "manual"


STRICTER = {
    "max_epsilon": 1.0,
    "max_delta": 1e-6,
    "lifetime_epsilon": 2.0,
    "lifetime_delta": 1e-6,
    "separate_data_sets": False,  # no value is stricter, nor is any of the last two
    "queries": ["votes"],
    "max_top": 4,
    "min_survivors": 12,
    "unit": "user",
    "min_unit_records": 3,
    "malicious_coordinator": True,
    "corrupt": 0.5,
    "security_bits": 64,
    "unsafe_no_noise": False,
    "unsafe_unproven": False,
}
"""A value for each limit that accepts less than its default, where there is one."""


def test_a_file_that_was_cut_off_never_loosens_a_limit(made):
    assert set(STRICTER) == {field.name for field in fields(Limits)}
    change_limits(made, **STRICTER)
    path = made / "client.yaml"
    content, reasons = yaml.safe_load(path.read_text()), set()
    for last in (*STRICTER, "name"):  # the last line of the file
        whole = {key: value for key, value in content.items() if key != "limits"} | {"limits": dict(content["limits"])}
        section = whole if last == "name" else whole["limits"]
        section[last] = section.pop(last)
        text = yaml.safe_dump(whole, sort_keys=False)
        path.write_text(text)
        terms = in_force(made)
        full = terms()
        for line in range(len(lines := text.splitlines(keepends=True))):
            for cut in ("", lines[line].partition(":")[0] + ":", lines[line].rstrip()[:-1]):
                path.write_text("".join(lines[:line]) + cut)
                try:
                    assert not terms().limits.looser(full.limits), (lines[line], cut)
                except RefusalError as error:
                    reasons.add(error.reason)
        path.write_text(text)
        assert terms() == full
    assert reasons == {Reason.SETTINGS}


def test_a_line_that_was_written_since_the_start_must_not_go_either(made):
    change(made, limits={"max_epsilon": 2.0})
    terms = in_force(made)
    change_limits(made, max_top=4)
    assert terms().limits.max_top == 4
    change(made, limits={"max_epsilon": 2.0})
    assert "limits.max_top" in refused(terms)


@pytest.mark.parametrize("command", ["start", "check"])
def test_no_service_starts_without_the_section_of_limits(command, made, capsys):
    path = made / "client.yaml"
    path.write_text(path.read_text().partition("limits:")[0])
    with pytest.raises(ConfigError, match=r"^limits;"):
        host.service(HospitalSettings.load(made))
    assert main([command, str(made)]) != 0
    out, err = capsys.readouterr()
    assert "limits;" in out + err


def test_a_limit_lowered_in_the_file_is_what_the_running_service_answers_by(made, caplog):
    change(made, approval="auto")
    party = host.service(HospitalSettings.load(made))
    agreed = plan(2, encoder=Encoder.hashed_ngrams().digest, secure=False, threshold=1)
    change_limits(made, min_survivors=1, malicious_coordinator=False)
    opening = {"agreed": agreed, "party": NUMBER, "run": "pilot-1a2b3c4d"}
    assert isinstance(send(party, m.Open(agreed.to_json()), **opening), m.Opened)
    change_limits(made, lifetime_epsilon=1.0)
    assert send(party, m.Ask(query()), **opening) == m.Refusal(Reason.OVER_LIMIT)
    change(made, name="St. Anne")
    assert send(party, m.Ask(query()), **opening) == m.Refusal(Reason.SETTINGS)
    assert party._ledger.entries() == ()
    over, settings = [record.getMessage() for record in caplog.records if "refuses" in record.getMessage()]
    assert "(OVER_LIMIT)" in over
    assert "(SETTINGS)" in settings


def test_a_record_more_than_declared_changes_no_reply(made, caplog, capsys):
    path, records = made / "roster.json", HospitalSettings.load(made).records
    parties = [replace(party, max_records=2) for party in RosterFile.load(path).parties]
    path.write_text(RosterFile(parties=tuple(parties)).to_json())
    (made / "party.json").write_text(parties[NUMBER].to_json())
    given = {"max_epsilon": math.inf, "lifetime_epsilon": None, "unsafe_no_noise": True}
    change(made, approval="auto", limits=given | {"malicious_coordinator": False, "min_survivors": 1})
    asked, encoder = LabelHistogramSpec(labels=2), Encoder.hashed_ngrams().digest
    queries = (PlannedQuery(name="labels", spec=asked),)
    shared = {"encoder": encoder, "secure": False, "threshold": 1}
    agreed = plan(2, epsilon=math.inf, queries=queries, max_records_per_party=2, **shared)
    for number in (2, 3):  # records, of which the hospital declares two
        records.write_text("text,label\n" + f"{CANARY},a\n" * number)
        caplog.clear()
        party = host.service(HospitalSettings.load(made))
        assert ("more records" in caplog.text) == (number > 2)
        opening = {"agreed": agreed, "party": NUMBER, "run": f"pilot-0000000{number}"}
        assert isinstance(send(party, m.Open(agreed.to_json()), **opening), m.Opened)
        assert send(party, m.Ask(make_query(asked, {})), **opening).words.tolist() == [2, 0]
        assert send(party, m.Close(), **opening) == m.Closed()
        assert main(["check", str(made), "--offline"]) == 0
        assert ("more records" in capsys.readouterr().out) == (number > 2)


def test_the_key_of_the_records_digest_has_no_other_purpose(made):
    path = made / "private" / "records.key"
    digest = host.service(HospitalSettings.load(made))._admission._approvals.digest()
    assert path.read_bytes() != (made / "private" / "identity.key").read_bytes()
    (made / "private" / "identity.key").touch()
    path.unlink()
    made_anew = host.service(HospitalSettings.load(made))._admission._approvals.digest()
    assert path.stat().st_mode & 0o077 == 0
    assert len(path.read_bytes()) == host.KEY_BYTES
    assert made_anew != digest
    assert host.service(HospitalSettings.load(made))._admission._approvals.digest() == made_anew
    path.write_bytes(b"short")
    with pytest.raises(ConfigError, match="got 5 bytes"):
        host.service(HospitalSettings.load(made))
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="got 0644"):
        host.service(HospitalSettings.load(made))


def test_the_process_starts_in_a_new_folder_and_again_and_says_what_it_has_read(made, monkeypatch):
    for name, replacement in (("serve_socket", Mock()), ("signal", Mock())):
        monkeypatch.setattr(host, name, replacement)
    monkeypatch.setattr(sys, "argv", ["host", str(made)])
    monkeypatch.chdir(made)
    settings = HospitalSettings.load(made)
    assert not (settings.private / "runs").exists()
    for _ in range(2):
        assert host.main() == 0
        read = (settings.roster_file().fingerprint, settings.approvals().digest())
        assert tuple((made / READY).read_text().splitlines()) == read
        (made / READY).unlink()


def test_messages_wait_for_a_service_that_starts(tmp_path):
    starting, agreed = PendingService(), plan(3, secure=False, threshold=1)
    opening = wire.pack(m.Envelope(run="r", party=0, plan_digest=agreed.digest(), body=m.Open(agreed.to_json())))
    with ThreadPoolExecutor(1) as relay:
        reply = relay.submit(starting.handle, opening)
        assert not reply.done()
        starting.built.set_result(service(tmp_path, 0))
        assert isinstance(wire.unpack(reply.result(timeout=120)).body, m.Opened)


HEAVY = {
    *("torch", "transformers", "sentence_transformers", "pandas", "sklearn", "spacy", "presidio_analyzer", "openai"),
    *("anthropic", "ray", "flwr", "hydra", "peft", "opacus", "mauve", "ot"),
}
"""Packages that an idle service has no use for; most of them alone take as much memory as all of it."""


def loaded(script, among):
    """What a Python prints after this script: the packages of these that it has loaded, and its megabytes."""
    ending = f"""
import sys
from pathlib import Path
status = Path("/proc/self/status").read_text()
print(sorted({among} & sys.modules.keys()), int(status.partition("VmRSS:")[2].split()[0]) // 1000)
"""
    completed = subprocess.run([sys.executable, "-c", script + ending], capture_output=True, text=True, check=True)
    names, megabytes = completed.stdout.rsplit(maxsplit=1)
    return names, int(megabytes)


def test_an_idle_service_of_a_thousand_records_is_small_and_loads_nothing_that_only_others_need(made):
    write_records(made.parent / "notes.csv", demo_notes.private_notes(0, 1000, 0))
    script = f"""
from client.deploy import host
party = host.service(host.HospitalSettings.load(host.Path({str(made)!r})))
assert len(party._private) == 1000
"""
    names, megabytes = loaded(script, HEAVY)
    assert names == "[]"
    assert 50 < megabytes < 300


def test_what_keeps_the_processes_running_loads_nothing_that_they_compute_with():
    assert loaded("import client.deploy.start", HEAVY | {"scipy.optimize", "scipy.stats", "dp_accounting"})[0] == "[]"
