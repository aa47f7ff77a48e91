"""The hospital's commands: each bad input is one clear line on the hospital's own side, and an exit code."""

import json
import math
import os
import pwd
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

import configs
from client.command import main
from client.deploy import host, start
from client.deploy.create import shipped_limits
from client.deploy.settings import REMOVED, SIDES, HospitalSettings
from client.flower.noted_connection import STILL_COUNTED
from common import messages as m
from common.errors import ConfigError
from common.models.encoder import Encoder
from common.plan.planned import PlannedQuery
from common.queries.closed_set import make_query
from common.queries.texts import AbstractedSeedsSpec
from common.system import processes
from common.system.commands import UNREACHED
from common.system.enrolment import PartyFile, RosterFile
from server.prepare.compose import values
from simulations.federation.parties import party_settings
from tests.support.enrolment import PARTY
from tests.support.federations import CANARY, plan
from tests.support.hospital import change, init_words, said
from tests.support.locking import locking
from tests.support.party_requests import send


@pytest.mark.parametrize(
    ("count", "flags", "declared"),
    [
        (0, (), 1000),
        (999, (), 1000),
        (1000, (), 1000),
        (1001, (), None),
        (1001, ("--max-records", "2000"), 2000),
        (3, ("--max-records", "0"), None),
        (3, ("--max-records", "3"), 3),
        (4, ("--max-records", "3"), None),
    ],
)
def test_a_hospital_declares_how_many_records_it_has_at_most_and_not_how_many(count, flags, declared, made, capsys):
    """A thousand if it says nothing, whatever their number: two files that differ in one record declare the same."""
    records, folder = made.parent / "counted.csv", made.parent / "counted"
    records.write_text("text,label\n" + f"{CANARY},a\n" * count)
    records.chmod(0o600)
    words = init_words(folder, *flags, records=records)
    if declared is None:
        assert ("max_records" if flags[1:] == ("0",) else "--max-records") in said(capsys, *words)
        assert not folder.exists()
        return
    assert main(words) == 0
    assert PartyFile.load(folder / "party.json").max_records == declared
    out = capsys.readouterr().out
    assert f"at most {declared:,} records" in out
    assert f"\n{count} record{'s' * (count != 1)} in {records} (" in out


SECRETS = ("client.yaml", "private/identity.key", "private/records.key", "node/node.key", "node/superexec.secret")


def test_init_leaves_closed_secrets_and_a_public_file_without_any(made):
    for name in (*SECRETS, ".", "private", "node", "logs"):
        assert (made / name).stat().st_mode & 0o077 == 0
    public = json.loads((made / "party.json").read_text())
    assert set(public) == {"name", "identity", "node_key", "max_records"}
    assert (made / "private" / "identity.key").read_bytes().hex() not in (made / "party.json").read_text()
    settings = HospitalSettings.load(made)
    assert (settings.name, settings.approval, settings.party.limits.min_survivors) == ("St. Mary #1", "manual", 2)


STATE = {"process": 7, "restarts": 0}


@pytest.mark.parametrize(
    ("running", "logged", "reason"),
    [
        (True, "INFO : SuperNode ID: 7", "starting;"),
        (True, "Failed to initialize", "Failed to initialize;"),
        (True, "Failed to initialize\n407 Proxy Authentication Required\n\nFor more", "407 Proxy"),
        (True, "", "starting;"),
        (True, "ERROR: \x1b]0;x\x07\x1b[2J", "?]0;x??[2J"),
        (False, "", ""),
        (False, "ID: 17\n\x1b[93mWARNING \x1b[0m:   Connection attempt failed\n", "Connection attempt failed"),
        (False, "[code: 2004] Failed to activate.\nERROR:    Traceback (most recent call last):\n", STILL_COUNTED),
        (False, "Failed to initialize.\n[SSL: UNKNOWN_CA] certificate", "[SSL: UNKNOWN_CA] certificate"),
    ],
)
def test_status_says_why_a_node_is_not_connected(made, capsys, monkeypatch, *, running, logged, reason):
    monkeypatch.setattr(processes, "status", lambda *_: {"children": {"supernode": STATE} if running else {}})
    (made / "logs" / "supernode.log").write_text(logged)
    assert main(["status", str(made)]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("node: "))
    said_before = "node: not connected: " if running else "node: not running" + "; its log ends with: " * bool(reason)
    assert line.startswith(said_before + reason)


@pytest.mark.parametrize(
    "name", ["records", "client.yaml", "private/identity.key", "node/node.key", "node/superexec.secret"]
)
def test_file_that_others_can_read_keeps_the_hospital_from_starting(name, made, capsys):
    path = HospitalSettings.load(made).records if name == "records" else made / name
    path.chmod(0o644)
    assert "got 0644" in said(capsys, "start", made)


@pytest.mark.parametrize("alone", [True, False])
def test_init_takes_records_of_text_alone_if_that_is_said(made, tmp_path, capsys, alone):
    records = tmp_path / "alone.csv"
    records.write_text("text\nwet cough\n")
    records.chmod(0o600)
    words = init_words(tmp_path / "new", records=records)
    if not alone:
        assert "no column label" in said(capsys, *words)
        assert not (tmp_path / "new").exists()
        return
    assert main([*words, "--unlabelled"]) == 0
    settings = HospitalSettings.load(tmp_path / "new")
    assert not settings.labelled
    assert [record.text for record in settings.read_records()] == ["wet cough"]
    assert HospitalSettings.load(made).labelled


@pytest.mark.parametrize(
    ("records", "unit"),
    [("text,label,user\nwet cough,flu,ann\n", "user"), ("text,label\nwet cough,flu\n", "sample")],
)
def test_init_over_records_that_name_persons_demands_plans_that_protect_them(records, unit, made, tmp_path, capsys):
    file = tmp_path / "persons.csv"
    file.write_text(records)
    file.chmod(0o600)
    assert main(init_words(tmp_path / "new", records=file)) == 0
    assert ("unit: user" in capsys.readouterr().out) == (unit == "user")
    assert HospitalSettings.load(tmp_path / "new").party.limits == replace(shipped_limits(), unit=unit)


def test_a_hospital_without_a_record_takes_part(made, capsys):
    HospitalSettings.load(made).records.write_text("text,label\n")
    assert main(["check", str(made), "--offline"]) == 0
    assert "0 records" in capsys.readouterr().out
    assert len(host.service(HospitalSettings.load(made))._private) == 0


def test_a_roster_without_this_hospital(made, tmp_path, capsys):
    (tmp_path / "other.json").write_text(RosterFile(parties=(PartyFile(**PARTY),)).to_json())
    said(capsys, "roster", made, tmp_path / "other.json")
    assert len(RosterFile.load(made / "roster.json").parties) == 2
    (made / "roster.json").unlink()
    assert "roster;" in said(capsys, "start", made)


def test_a_removed_key_reads_as_null_alone_in_an_older_file(made):
    assert REMOVED not in (made / "client.yaml").read_text()
    change(made, **{REMOVED: None})
    assert HospitalSettings.load(made).name
    change(made, **{REMOVED: {"text_field": "note", "schema": {"properties": {"note": {"type": "string"}}}}})
    with pytest.raises(ConfigError) as caught:
        HospitalSettings.load(made)
    assert caught.value.what == REMOVED
    assert str(caught.value.where).startswith(f"{made / 'client.yaml'}:")
    assert caught.value.do


def test_a_folder_that_is_none(tmp_path, capsys):
    for command in ("check", "start", "status", "approve", "stop"):
        assert "party's folder;" in said(capsys, command, tmp_path)


@pytest.mark.parametrize("only", ["both", "service", "relay"])
def test_a_half_that_runs_is_not_started_again_and_nothing_is_said_before(only, made, capsys, monkeypatch):
    started = []
    monkeypatch.setattr(
        processes, "supervise", lambda children, **_: started.append([child.name for child in children])
    )
    with locking(made, "service") as process:
        if only == "relay":
            assert main(["start", str(made), "--only", only]) == 0
            assert started == [["supernode", "relay"]]
            return
        assert main(["start", str(made), "--only", only]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert f"got process {process.pid}; at {made}." in err
    assert not started


@pytest.mark.parametrize(("duration", "seconds"), [(None, "inf"), ("90s", "90.0"), ("30m", "1800.0"), ("2h", "7200.0")])
def test_the_relay_knows_how_long_it_waits_and_the_end_is_told_with_what_awaits_a_person(
    duration, seconds, made, capsys, monkeypatch
):
    commands = {}

    def supervise(children, **_):
        commands.update({child.name: child.command for child in children if child.ends_all})
        return None if duration is None else []

    monkeypatch.setattr(processes, "supervise", supervise)
    assert main(["start", str(made), *(("--until-idle", duration) if duration else ())]) == 0
    assert {name: command[-1] for name, command in commands.items()} == {"relay": seconds}
    *_, last = capsys.readouterr().out.splitlines()
    assert (f"for {duration};" in last and last.endswith("approval: 0")) == (duration is not None)


def test_a_night_in_which_a_process_did_not_work_is_no_success(made, capsys, monkeypatch):
    change(made, metrics_port=9)
    monkeypatch.setattr(processes.signal, "signal", lambda *_: None)
    lasts = "import pathlib, sys, time; [pathlib.Path(path).touch() for path in sys.argv[1:]]; time.sleep(60)"
    waits = "import pathlib, time\nwhile len([*pathlib.Path().glob('born-*')]) < {}: time.sleep(0.05)"
    supervise = processes.supervise
    others = [
        child for child in start.hospital_children(HospitalSettings.load(made), SIDES["both"]) if not child.ends_all
    ]
    assert {child.name for child in others} == {"service", "metrics", "supernode"}

    def night(broken, fault):
        def replaced(children, **places):
            for path in made.glob("born-*"):
                path.unlink()
            known = []
            for child in children:
                script, made_by_it = lasts, ([child.ready] if child.ready else []) + [f"born-{child.name}"]
                if child.ends_all:
                    script, made_by_it = waits.format(len(others) - (fault == "fails")) + "; time.sleep(0.5)", []
                elif child.name == broken:
                    made_by_it = made_by_it[-1:]  # not ready
                command = (sys.executable, "-c", script, *made_by_it)
                fails = child.name == broken and fault == "fails"
                known.append(replace(child, command=("false",) if fails else command))
            return supervise(known, **places)

        monkeypatch.setattr(processes, "supervise", replaced)
        return main(["start", str(made), "--until-idle", "30m"])

    assert night("", "") == 0
    (made / "run" / "ready").touch()  # as one that was killed leaves it
    for child in others:
        for fault in ("fails", "is never ready") if child.ready else ("fails",):
            capsys.readouterr()
            if child.name == "supernode":
                (made / child.ready).unlink(missing_ok=True)
                assert night(child.name, fault) == UNREACHED, (child.name, fault)
                continue
            assert night(child.name, fault) == 1, (child.name, fault)
            assert f"{child.name}; at {made / 'logs' / child.name}.log" in capsys.readouterr().err


@pytest.mark.parametrize("duration", ["30", "0m", "-5m", "1.5h", "30 m", "1d", "m", "٣m"])
def test_duration_that_is_none_is_refused(duration, made, capsys):
    line = said(capsys, "start", made, f"--until-idle={duration}")
    assert "--until-idle;" in line
    assert f"got {duration}" in line
    # The service alone cannot tell when it is idle.
    assert "--only service" in said(capsys, "start", made, "--only", "service", "--until-idle", "30m")


def test_the_service_looks_for_models_where_its_operator_does_and_the_relay_for_none(made, monkeypatch):
    started = {}
    monkeypatch.setattr(
        processes,
        "supervise",
        lambda children, **_: started.update({child.name: child.environment for child in children}),
    )
    monkeypatch.delenv("CAUCUS_MODELS", raising=False)
    monkeypatch.setenv("HOME", "/home/operator")
    assert main(["start", str(made)]) == 0
    assert {name: variables.get("CAUCUS_MODELS") for name, variables in started.items()} == {
        "service": "/home/operator/.cache/caucus/models",
        "supernode": None,
        "relay": None,
    }


def test_status_and_approve_where_nothing_has_happened(made, capsys):
    assert main(["status", str(made)]) == 0
    assert "caucus-party start" in capsys.readouterr().out
    for command in ("approve", "stop"):
        assert main([command, str(made)]) == 0


def test_the_relays_account_can_read_its_own_part_alone(made, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give the relay an account of its own")
    account = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory() as reachable:
        Path(reachable).chmod(0o711)
        folder = Path(reachable) / "hospital"
        records, invitation = HospitalSettings.load(made).records, tmp_path / "invitation.json"
        named = ("--name", "x", "--records", records, "--invitation", invitation, "--relay-user", "nobody")
        assert main(["init", str(folder), *map(str, named)]) == 0
        (folder / "private" / "ledger.db").touch()

        def read(path):
            as_relay = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            return subprocess.run(["/bin/cat", path], **as_relay, capture_output=True, check=False).returncode == 0

        assert read(folder / "node" / "node.key")
        for closed in ("client.yaml", "private/identity.key", "private/ledger.db", "private"):
            assert not read(folder / closed)
        assert not read(HospitalSettings.load(made).records)


SEEDS = {"abstraction": {"kind": "extracts"}, "sentiment": {"kind": "vader"}}
UNPROVEN = {
    "queries": ["abstracted seeds"],
    "unsafe_unproven": True,
    "lifetime_epsilon": None,
    "min_survivors": 1,
    "malicious_coordinator": False,
}


def seeds_asked(folder):
    """What a hospital replies to a run's Open and Ask for abstracted seeds, as far as it gets."""
    spec = AbstractedSeedsSpec(choices=2)
    planned = PlannedQuery(name="seeds", spec=spec, mechanism="gaussian max", scale=2.0**20)
    agreed = plan(
        2,
        labels=("a", "b"),
        queries=(planned,),
        epsilon=math.inf,
        secure=False,
        threshold=1,
        encoder=Encoder.hashed_ngrams().digest,
    )
    party, replies = host.service(HospitalSettings.load(folder)), []
    for body in (m.Open(agreed.to_json()), m.Ask(make_query(spec, {}))):
        replies.append(send(party, body, agreed=agreed, party=1))
        if isinstance(replies[-1], m.Refusal):
            break
    return replies


def test_seeds_are_set_up_by_the_hospitals_own_file_as_in_a_simulation(made, capsys):
    HospitalSettings.load(made).records.write_text("text,label\nThe nurse was kind and the food was good.,a\n")
    change(made, seeds=SEEDS, limits=UNPROVEN, approval="auto")
    opened, answered = seeds_asked(made)
    assert isinstance(opened, m.Opened)
    assert isinstance(answered, m.Answer)
    assert main(["check", str(made), "--offline", "--json"]) == 0
    checks = {check["check"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["writers"]["detail"] == "abstracted seeds"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"seeds": None}, "expected seeds"),
        ({"limits": UNPROVEN | {"unsafe_unproven": False}}, "unsafe_unproven"),
        ({"limits": UNPROVEN | {"queries": ["votes"]}}, "got abstracted seeds"),
        ({"limits": UNPROVEN | {"lifetime_epsilon": 10.0}}, "at most 10"),
    ],
)
def test_seeds_need_the_section_the_kind_and_unsafe_unproven(changes, line, made, caplog):
    change(made, **({"seeds": SEEDS, "limits": UNPROVEN, "approval": "auto"} | changes))
    assert seeds_asked(made) == [m.Refusal(m.Reason.OVER_LIMIT)]
    assert line in caplog.text


def test_the_file_of_init_has_the_limits_of_a_simulations_and_no_writer_until_one_is_turned_on(made):
    simulated = party_settings(values(Path(configs.__file__).parent / "client.yaml"))
    written = HospitalSettings.load(made).party
    assert written.limits == simulated.limits
    assert written.sections == {}
    # As its comments say: the line with null goes, and the lines below lose their "# ".
    path = made / "client.yaml"
    text = re.sub(r"^(seeds|fine_tuning|rewriting): null.*\n", "", path.read_text(), flags=re.MULTILINE)
    start = text.index("# seeds:")
    path.write_text(text[:start] + re.sub(r"^# ", "", text[start:], flags=re.MULTILINE))
    turned_on = HospitalSettings.load(made).party
    assert turned_on.limits == simulated.limits
    assert turned_on.sections == simulated.sections
    assert set(turned_on.writers()) == set(simulated.writers())
