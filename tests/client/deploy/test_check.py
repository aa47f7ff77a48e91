"""`caucus-party check`: each check by itself, its problem and how to fix it."""

import json
import math
import os
import shutil
import sys
import tempfile
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from client.command import main
from client.deploy import check_advice, connection, preflight
from client.deploy.create import shipped_limits
from client.deploy.settings import HospitalSettings
from client.guard import Limits
from common.domain import Record
from common.errors import ConfigError
from common.models.encoder import Encoder
from common.queries.closed_set import KINDS
from common.queries.votes import VotesSpec
from common.system import processes
from common.system.enrolment import RosterFile
from common.system.log_lines import WIDTH
from server.deploy.authority import make_authority
from tests.support.enrolment import PARTY
from tests.support.federations import CANARY, plan
from tests.support.front_door import front_door
from tests.support.hospital import change, init_words, opened, said, spend
from tests.support.spellings import UNSEEN, WORDS, spellings
from tests.support.tiny_models import tiny_transformer
from tests.support.wheels import as_fetched

UNCONNECTED = {"connection", "clock", "node's key", "coordinator's certificate"}


def checked(capsys, folder, *flags, code=0):
    """The findings by name, from `--json`."""
    assert main(["check", str(folder), "--json", *flags]) == code
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert CANARY not in out + err
    assert [check["check"] for check in report["checks"]] == list(preflight.CHECKS)
    problems = [check["check"] for check in report["checks"] if check["result"] == "problem"]
    assert report["ready"] is (not problems)
    assert all(check["fix"] for check in report["checks"] if check["result"] in {"problem", "warning", "waiting"})
    if problems:
        assert f"got {len(problems)}: {', '.join(problems)}. Follow the advice of each problem\n" in err
    return {check.pop("check"): check for check in report["checks"]}


def test_the_table_and_the_json_say_the_same_and_then_what_leaves(made, capsys, monkeypatch):
    room = shutil.disk_usage(made)  # which other tests change
    monkeypatch.setattr(shutil, "disk_usage", lambda _: room)
    checks = checked(capsys, made, "--offline")
    assert main(["check", str(made), "--offline"]) == 0
    out = capsys.readouterr().out
    assert CANARY not in out
    said = " ".join(out.split())  # long rows go on in a second line
    for name, check in checks.items():
        assert f" {check['result']} {name} {check['detail']} " in said
        assert not check["fix"] or f" how to fix: {check['fix']} " in said
    rows = out.partition("leaves: ")[0].splitlines()
    assert all(len(line) <= WIDTH or len(line.split()) == 1 for line in rows)  # a path alone may be longer
    assert {name for name, check in checks.items() if check["result"] == "skipped"} >= UNCONNECTED
    assert checks["roster"]["detail"] == 'party 1 of 2: "St. Luke", "St. Mary #1"'
    leaves, never = out[out.index("leaves: ") :].split("never leaves: ")
    assert "the time" in leaves
    assert "how many" not in never


def test_one_problem_hides_no_other(made, capsys):
    settings = HospitalSettings.load(made)
    (settings.node / "superexec.secret").chmod(0o644)
    settings.records.unlink()
    (made / "roster.json").write_text("{}")
    change(made, encoder="/no/such/model", fine_tuning={"max_steps": 0})
    checks = checked(capsys, made, code=1)
    problems = {name: check for name, check in checks.items() if check["result"] == "problem"}
    assert set(problems) == {"secrets", "connection", "records", "roster", "writers", "encoder"}
    assert problems["connection"]["detail"].endswith("Connection refused; at localhost:1")
    assert "fine_tuning.max_steps;" in problems["writers"]["detail"]
    assert {name for name, check in checks.items() if check["result"] == "skipped"} >= {"clock", "node's key", "labels"}


def test_an_encoder_by_name_is_looked_for_and_the_command_that_fetches_it_is_told(made, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("CAUCUS_MODELS", str(tmp_path / "models"))
    change(made, encoder="minilm")
    check = checked(capsys, made, "--offline", code=1)["encoder"]
    assert "model minilm;" in check["detail"]
    assert "caucus-party models minilm" in check["fix"]
    folder = tiny_transformer(tmp_path / "own")
    digest = Encoder.pretrained(folder).digest
    fetched = shutil.copytree(folder, tmp_path / "models" / "minilm")
    as_fetched(fetched, "minilm")
    assert checked(capsys, made, "--offline")["encoder"]["detail"] == f"{digest[:16]}, 16 dimensions"
    shutil.rmtree(fetched)
    shutil.copytree(folder, made / "minilm")  # a folder of the hospital's own has to be named as one
    assert "fetched before;" in checked(capsys, made, "--offline", code=1)["encoder"]["detail"]
    change(made, encoder="./minilm")
    assert checked(capsys, made, "--offline")["encoder"]["result"] == "passed"


@pytest.mark.parametrize("name", ["private/identity.key", "node/node.key", "node/superexec.secret"])
def test_a_secret_that_others_can_read_or_that_is_missing(name, made, capsys):
    (made / name).chmod(0o644)
    check = checked(capsys, made, "--offline", code=1)["secrets"]
    assert (check["result"], check["fix"]) == ("problem", f"Run chmod 600 {made / name}")
    (made / name).unlink()
    check = checked(capsys, made, "--offline", code=1)["secrets"]
    assert check["result"] == "problem"
    assert check["detail"].endswith(f"at {made / name}")


def test_records_that_are_open_to_others_or_no_table_are_a_problem_and_are_not_shown(made, capsys):
    records = HospitalSettings.load(made).records
    records.chmod(0o644)
    assert "got 0644" in checked(capsys, made, "--offline", code=1)["records"]["detail"]
    records.chmod(0o600)
    records.write_text(f"{CANARY},influenza\n")
    checks = checked(capsys, made, "--offline", code=1)
    assert checks["records"]["detail"].endswith(f"; at {records}:1")
    assert checks["labels"]["result"] == "skipped"
    records.unlink()
    records.mkdir()
    assert checked(capsys, made, "--offline", code=1)["records"]["result"] == "problem"


def rows(folder, *labels):
    HospitalSettings.load(folder).records.write_text(
        "text,label\n" + "".join(f"{number},{label}\n" for number, label in enumerate(labels))
    )


def test_a_folder_that_declares_no_number_of_records_or_a_needlessly_large_one_is_a_warning(made, capsys):
    file = made / "party.json"
    public = json.loads(file.read_text())
    del public["max_records"]  # as an older version wrote it
    file.write_text(json.dumps(public))
    check = checked(capsys, made, "--offline", code=1)["records"]  # and the roster has another file
    assert check["result"] == "warning"
    assert "1,048,576" in check["detail"]
    assert "--max-records" in check["fix"]


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        (("lung cancer", "Lung  Cancer", "flu"), ("'lung cancer'", "'Lung  Cancer'")),
        ((" flu", " cold"), ("' flu'", "' cold'")),
        (("1E50", "1.00E+50", "2.5E+3"), ("'1.00E+50'", "'2.5E+3'")),  # codes that a spreadsheet took for numbers
    ],
)
def test_labels_that_may_be_misspelt_are_a_warning_that_names_them(labels, named, made, capsys):
    rows(made, *labels)
    check = checked(capsys, made, "--offline")["labels"]
    assert check["result"] == "warning"
    assert all(label in check["fix"] for label in named)


@pytest.mark.parametrize("word", WORDS)
def test_each_spelling_of_a_label_is_a_warning(word):
    for other in spellings(word):
        (similar, *_) = check_advice.advice_on_labels([Record("x", word), Record("y", "flue"), Record("z", other)])
        assert "by letter" in similar
        assert not {*other} & {*UNSEEN} & {*similar}


def test_labels_after_the_first_of_a_record_are_looked_at_too(made, capsys):
    HospitalSettings.load(made).records.write_text("text,labels\nx,a;flu\ny,b;Flu\n")
    assert "'flu' and" in checked(capsys, made, "--offline")["labels"]["fix"]


@pytest.mark.parametrize("word", WORDS)
def test_each_spelling_of_a_user_is_a_warning_that_names_none(word):
    for other in spellings(word):
        (advice,) = check_advice.advice_on_users(
            [Record(*"xa", word), Record(*"yb", "zoe"), Record(*"zc", other)], "user"
        )
        assert advice.startswith("2 of the 3")
        assert word not in advice
        assert other not in advice


def test_users_who_may_be_one_or_are_not_named_are_a_warning_of_the_records(made, capsys):
    records = HospitalSettings.load(made).records
    records.write_text(f"text,label,user\nx,a,{CANARY}\ny,a,{CANARY} \nz,a,{CANARY.upper()}\nz,a,other\n")
    check = checked(capsys, made, "--offline")["records"]
    assert (check["result"], check["fix"][:10]) == ("warning", "3 of the 4")
    rows(made, "flu", "cold")
    assert checked(capsys, made, "--offline")["records"]["result"] == "passed"
    change(made, limits={"unit": "user"})
    assert checked(capsys, made, "--offline")["records"]["result"] == "warning"
    records.write_text("text,label\n")
    assert checked(capsys, made, "--offline")["records"]["result"] == "passed"


def test_own_labels_and_what_was_found_in_the_file_are_said_to_this_hospital(made, capsys):
    (made / "roster.json").unlink()  # which has not come yet
    rows(made, "flu", "cold", "flu")
    checks = checked(capsys, made, "--offline")
    assert (checks["roster"]["result"], checks["encoder"]["result"]) == ("waiting", "passed")
    assert checks["labels"]["detail"].startswith("flu: 2, cold: 1 ")
    assert checks["records"]["detail"].startswith("3 records ")
    (made.parent / "notes.csv").write_text("text;label\r\nx, y;a\r\nz;b\r\n")
    assert main(init_words(made.parent / "new")) == 0
    assert "semicolons" in capsys.readouterr().out
    assert "semicolons" in checked(capsys, made, "--offline")["records"]["detail"]


def test_one_label_for_all_records_is_a_warning_of_init_and_check(made, capsys):
    rows(made, "54094-8", "54094-8")
    check = checked(capsys, made, "--offline")["labels"]
    assert check["result"] == "warning"
    assert main(init_words(made.parent / "new")) == 0
    assert f"\nWARNING: {check['fix'][:40]}" in capsys.readouterr().out
    rows(made, "54094-8")  # of a single record nothing can be said
    assert checked(capsys, made, "--offline")["labels"]["result"] == "passed"


def test_a_lifetime_delta_that_is_too_large_for_the_declared_number_of_records(made, capsys):
    change(made, limits={"lifetime_delta": 1e-3})
    check = checked(capsys, made, "--offline")["lifetime_delta"]
    assert check["result"] == "warning"
    assert all("1/1000" in check[part] for part in ("detail", "fix"))
    change(made, limits={"lifetime_delta": 9.9e-4})
    assert checked(capsys, made, "--offline")["lifetime_delta"]["result"] == "passed"
    change(made, limits={"lifetime_epsilon": None, "lifetime_delta": 0.5})
    assert checked(capsys, made, "--offline")["lifetime_delta"]["result"] == "skipped"


def test_a_roster_of_others_or_with_another_node_key(made, capsys):
    roster = HospitalSettings.load(made).roster_file()
    (made / "roster.json").write_text(RosterFile(parties=roster.parties[:1]).to_json())
    assert checked(capsys, made, "--offline", code=1)["roster"]["result"] == "problem"
    public = json.loads((made / "party.json").read_text())
    (made / "party.json").write_text(json.dumps(public | {"node_key": PARTY["node_key"]}))
    (made / "roster.json").write_text(RosterFile(parties=roster.parties[1:]).to_json())
    assert "caucus-party roster" in checked(capsys, made, "--offline", code=1)["roster"]["fix"]


LOOSEST = {
    "max_epsilon": 1e9,
    "max_delta": 0.999,
    "lifetime_epsilon": 1e9,
    "lifetime_delta": 0.999,
    "separate_data_sets": True,
    "queries": list(KINDS),
    "max_top": 10**6,
    "min_survivors": 1,
    "unit": "sample",
    "min_unit_records": 1,
    "malicious_coordinator": False,
    "corrupt": 0.0,
    "security_bits": 0,
    "unsafe_no_noise": True,
    "unsafe_unproven": True,
}
"""The value of each limit that accepts most."""
SHIPPED = {"unit", "min_unit_records"}
"""Limits that accept most already at a new hospital."""


@pytest.mark.parametrize("limits", [{"unit": "user"}, {"min_unit_records": 3}])
def test_answers_of_plans_that_protect_less_than_the_limits_demand_now_are_counted(limits, made, capsys):
    plans = {"sample": plan(2), "user": plan(2, unit="user", spec=VotesSpec(top=4, max_records=3)), "unasked": plan(2)}
    for run, agreed in plans.items():
        opened(made, agreed, run)
    for run in ("sample", "user"):
        spend(made, run, plan_digest=plans[run].digest())
    assert checked(capsys, made, "--offline")["limits"]["result"] == "passed"
    change(made, limits=limits)
    check = checked(capsys, made, "--offline")["limits"]
    assert (check["result"], check["fix"][-3:]) == ("warning", "(1)")
    assert "more epsilon" in check["fix"]


def test_answers_of_plans_that_are_not_known_here_are_counted_apart(made, capsys):
    change(made, limits={"unit": "user"})
    spend(made, "of another folder")
    fix = checked(capsys, made, "--offline")["limits"]["fix"]
    assert "here (1)" in fix
    assert "more epsilon" not in fix


def test_limit_looser_than_a_new_hospitals_is_a_warning(made, capsys):
    assert set(LOOSEST) == {field.name for field in fields(Limits)}
    check = checked(capsys, made, "--offline")["limits"]
    assert check["result"] == "passed"
    assert check["detail"].startswith("max_epsilon 8.0, max_delta 0.0001, lifetime_epsilon 10.0, ")
    for name, value in LOOSEST.items():
        change(made, limits={name: value})
        check = checked(capsys, made, "--offline")["limits"]
        if name in SHIPPED:
            assert (check["result"], value) == ("passed", getattr(shipped_limits(), name))
        else:
            assert check["result"] == "warning", name
            assert check["fix"].startswith(f"set {name}: ")
    for value in (math.inf, -math.inf, math.nan):
        change(made, limits={"lifetime_epsilon": value})
        assert "limits.lifetime_epsilon;" in said(capsys, "check", made)


@pytest.mark.parametrize(
    ("place", "result", "detail"),
    [
        ("private/ledger.head", "warning", "whole folder"),
        ("../head", "warning", "whole disk"),
        ("/proc/head", "passed", "/proc/head"),
        ("../disk/head", "problem", "ledger_head;"),
    ],
)
def test_whether_the_ledgers_head_is_noted_on_another_file_system(place, result, detail, made, capsys):
    if place != "private/ledger.head":  # which init writes
        change(made, ledger_head=place)
    check = checked(capsys, made, "--offline", code=int(result == "problem"))["ledger's head"]
    assert check["result"] == result
    assert detail in check["detail"]
    assert ("ledger_head" in check["fix"]) is (result != "passed")


def test_a_folder_that_is_missing_is_a_problem_of_its_check(made, capsys):
    change(made, ledger_head="../head")
    shutil.rmtree(made / "private")
    assert str(made / "private") in checked(capsys, made, "--offline", code=1)["ledger's head"]["detail"]


def test_a_writer_that_the_limits_refuse_is_a_warning(made, capsys):
    change(made, fine_tuning={}, limits={"queries": ["votes"]})
    check = checked(capsys, made, "--offline")["writers"]
    assert check["result"] == "warning"
    assert check["detail"].endswith("limits.queries: fine-tuned samples")


@pytest.mark.parametrize(
    ("section", "missing"),
    [("fine_tuning", "torch"), ("seeds", "vaderSentiment"), ("rewriting", "sklearn")],
)
def test_a_writer_whose_packages_are_not_installed_names_the_extra(made, capsys, monkeypatch, section, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    chosen = {"abstraction": {"kind": "extracts"}, "sentiment": {"kind": "vader"}}
    parts = {"seeds": chosen, "rewriting": {"rewriter": {"kind": "extracts"}}}
    change(made, **{section: parts.get(section, {})})
    check = checked(capsys, made, "--offline", code=1)["writers"]
    assert check["result"] == "problem"
    assert f"package {missing}" in check["detail"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can try another account")
def test_whether_the_relays_account_can_execute_the_interpreter(made, monkeypatch, capsys):
    check = checked(capsys, made, "--offline")["relay's account"]
    assert check["result"] == "warning"
    change(made, relay_user="no-such-account")
    check = checked(capsys, made, "--offline", code=1)["relay's account"]
    assert check["detail"].endswith("got no-such-account")
    change(made, relay_user="nobody")
    monkeypatch.setattr(sys, "executable", "/bin/true")
    assert checked(capsys, made, "--offline")["relay's account"]["result"] == "passed"
    with tempfile.TemporaryDirectory() as folder:  # it may neither write to our terminal nor type there
        script = Path(folder) / "python"
        alone = "#!/bin/sh\nread line || test $(cut -d' ' -f6 /proc/$$/stat) = $$"
        script.write_text(f"{alone} && printf 'it\\033[2J' >&2; exit 1\n")
        for path in (script.parent, script):
            path.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(script))
        assert "got 'it\\x1b[2J'" in checked(capsys, made, "--offline", code=1)["relay's account"]["detail"]
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert "got code 1" in checked(capsys, made, "--offline", code=1)["relay's account"]["detail"]
    with tempfile.TemporaryDirectory() as closed:
        (Path(closed) / "python").symlink_to("/bin/true")
        monkeypatch.setattr(sys, "executable", f"{closed}/python")
        check = checked(capsys, made, "--offline", code=1)["relay's account"]
    assert "Permission denied" in check["detail"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can try another account")
def test_only_root_tries_the_relays_account(made, capsys):
    assert checked(capsys, made, "--offline")["relay's account"]["result"] == "skipped"


def test_the_clock_is_held_against_the_coordinators():
    for ahead, deviation in ((0, "within 1 s"), (4, "within 5 s"), (-299, "within 300 s")):
        assert deviation in connection.check_clock(ahead)
    for ahead, deviation in ((5, "5 s ahead"), (-300, "300 s behind"), (-7200, "7200 s behind")):
        with pytest.raises(ConfigError) as error:
            connection.check_clock(ahead)
        assert (error.value.what, error.value.got) == ("clock of this machine", deviation)


@pytest.mark.parametrize(("ahead", "result"), [(7200, "problem"), (None, "passed")])
def test_clock_that_is_off_or_not_known_hides_nothing_else(ahead, result, made, capsys):
    with front_door(made, ahead=ahead):
        checks = checked(capsys, made, code=int(result == "problem"))
    assert (checks["clock"]["result"], checks["node's key"]["result"]) == (result, "passed")


def test_a_connection_that_is_well(made, capsys):
    with front_door(made) as heard:
        checks = checked(capsys, made)
    assert {checks[name]["result"] for name in UNCONNECTED} == {"passed"}
    assert "364 days" in checks["coordinator's certificate"]["detail"]
    ((path, headers, request),) = heard
    assert path == "/v1/fleet/activate-node"
    assert {"flwr-public-key", "flwr-signature", "flwr-timestamp"} <= {name.lower() for name in headers}
    assert request.heartbeat_interval == 0  # outside Flower's range: nothing is activated


@pytest.mark.parametrize(
    ("answer", "detail", "fix"),
    [
        ((412, 2004), "not enrolled", "Send party.json"),
        ((401, None), "node's signature", "Compare"),
        ((503, None), "status 503", "Ask"),
        ((200, None), "status 200", "Ask"),
    ],
)
def test_a_key_that_is_not_accepted(answer, detail, fix, made, capsys):
    with front_door(made, status=answer[0], code=answer[1]):
        checks = checked(capsys, made, code=1)
    assert checks["node's key"]["result"] == "problem"
    assert detail in checks["node's key"]["detail"]
    assert checks["node's key"]["fix"].startswith(fix)
    assert checks["connection"]["result"] == "passed"


def test_days_until_certificates_end(made, capsys):
    with front_door(made, certificate={"valid": timedelta(days=20)}):
        check = checked(capsys, made)["coordinator's certificate"]
    assert (check["result"], check["detail"][:15]) == ("warning", "ends in 19 days")
    make_authority(made.parent, now=datetime.now(UTC) - timedelta(days=3640))
    (made / "node" / "ca.crt").write_bytes((made.parent / "ca.crt").read_bytes())
    check = checked(capsys, made, "--offline")["coordinator's authority"]
    assert (check["result"], check["detail"][:15]) == ("warning", "ends in 9 days,")
    make_authority(made.parent, now=datetime.now(UTC) - timedelta(days=3660))
    (made / "node" / "ca.crt").write_bytes((made.parent / "ca.crt").read_bytes())
    assert checked(capsys, made, "--offline", code=1)["coordinator's authority"]["result"] == "problem"
    for content in ("nothing", (made / "node" / "ca.crt").read_text() * 2):
        (made / "node" / "ca.crt").write_text(content)
        checks = checked(capsys, made, code=1)
        for name in ("coordinator's authority", "connection"):
            assert checks[name]["fix"] == f"caucus-party invitation {made} invitation.json"
        assert "certificate;" in said(capsys, "start", made)


def test_a_certificate_of_another_authority_or_that_has_ended(made, capsys):
    with front_door(made, certificate={"now": datetime.now(UTC) - timedelta(days=400)}):
        check = checked(capsys, made, code=1)["connection"]
    assert "has expired" in check["detail"]
    assert "clocks" in check["fix"]
    make_authority(made.parent)
    with front_door(made):
        check = checked(capsys, made, code=1)["connection"]
    assert check["detail"].startswith("coordinator's certificate;")
    assert "fingerprint" in check["fix"]


@pytest.mark.parametrize("link", [False, True])
def test_a_node_key_that_is_none_or_a_link_to_another_with_which_root_must_not_sign(link, made, capsys):
    path = made / "node" / "node.key"
    if link:
        path.rename(made / "key")
        path.symlink_to(made / "key")
    else:
        path.write_text("nothing")
    with front_door(made):
        check = checked(capsys, made, code=1)["node's key"]
    assert "P-384" in check["detail"]


def test_records_of_text_alone_are_what_this_hospital_expects(made, capsys):
    HospitalSettings.load(made).records.write_text("text\nwet cough\n")
    assert "no column label" in checked(capsys, made, "--offline", code=1)["records"]["detail"]
    change(made, labelled=False)
    checks = checked(capsys, made, "--offline")
    assert checks["records"]["result"] == "passed"
    assert checks["labels"]["detail"].startswith("none:")


@pytest.mark.parametrize(
    ("free", "result"),
    [(preflight.LEAST_ROOM - 1, "problem"), (preflight.LEAST_ROOM, "warning"), (2**40, "passed")],
)
def test_a_disk_without_room_for_the_next_answers_is_a_problem(made, monkeypatch, free, result):
    room = shutil.disk_usage(made)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: room)
    (finding,) = preflight.findings(HospitalSettings.load(made), only=["disk"])
    assert finding.result == result


@pytest.mark.parametrize(
    ("state", "result"),
    [
        (None, "skipped"),
        ({"process": 7}, "warning"),
        ({"process": 7, "noted": {"connected": True, "since": "2026-01-02T10:00:00+00:00"}}, "passed"),
    ],
)
def test_the_node_of_a_running_hospital_is_checked(made, monkeypatch, state, result):
    monkeypatch.setattr(processes, "status", lambda *_: {"children": {"supernode": state} if state else {}})
    (finding,) = preflight.findings(HospitalSettings.load(made), only=["node"])
    assert finding.result == result


def test_a_known_node_that_is_still_counted_waits(made, monkeypatch):
    monkeypatch.setattr(processes, "status", lambda *_: {"children": {"supernode": {"process": None}}})
    monkeypatch.setattr(connection, "connect", lambda _: SimpleNamespace(secure="TLSv1.3", via=None))
    monkeypatch.setattr(connection, "check_node_key", lambda _: None)
    (made / "logs" / "supernode.log").write_text("[code: 2004] Failed to activate SuperNode.\n")
    _, _, finding = preflight.findings(HospitalSettings.load(made), only=["connection", "node's key", "node"])
    assert finding.result == "waiting"
