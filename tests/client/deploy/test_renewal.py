"""New keys and a new invitation for a folder that goes on: the ledger stays, and so does what a person wrote."""

import json
import os
import shutil

import pytest
import yaml

from client.command import main
from client.deploy.settings import HospitalSettings
from common.system import locks
from common.system.enrolment import PartyFile
from tests.support.enrolment import invitation

SECRETS = ("private/identity.key", "node/node.key", "node/superexec.secret")


@pytest.fixture
def hospital(made, tmp_path):
    """A hospital with an invitation of before, which has answered something."""
    invitation(tmp_path / "before", "old.example:9443", "ab" * 32)
    (made / "private" / "ledger.db").write_bytes(b"the ledger")
    return made


def content(folder, *but):
    """Path to content of all files, except these."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {path: data for path, data in files.items() if path not in but}


def test_new_keys_leave_ledger_settings_and_log_as_they_are(hospital, capsys):
    before, changed = content(hospital), (*SECRETS, "party.json")
    assert main(["rotate", str(hospital)]) == 0
    after = content(hospital)
    assert content(hospital, *changed) == {path: data for path, data in before.items() if path not in changed}
    assert all(after[path] != before[path] for path in changed)
    assert all((hospital / path).stat().st_mode & 0o077 == 0 for path in SECRETS)
    party = PartyFile.load(hospital / "party.json")
    assert party.name == "St. Mary #1"
    assert party.identity == HospitalSettings.load(hospital).identity().public.hex()
    assert party.fingerprint in capsys.readouterr().out


def test_declared_number_of_records_stays_unless_another_is_declared_that_they_keep_to(hospital):
    for arguments, declared in (((), 1000), (("--max-records", "25"), 25), ((), 25)):
        before = PartyFile.load(hospital / "party.json")
        assert main(["rotate", str(hospital), *arguments]) == 0
        assert PartyFile.load(hospital / "party.json").max_records == declared
        assert PartyFile.load(hospital / "party.json").fingerprint != before.fingerprint
    HospitalSettings.load(hospital).records.write_text("text,label\none,a\ntwo,b\n")
    kept = content(hospital)
    for wrong in (2**21, 1):
        assert main(["rotate", str(hospital), "--max-records", str(wrong)]) == 2
        assert content(hospital) == kept
    assert main(["rotate", str(hospital), "--max-records", "2"]) == 0


def test_no_key_is_replaced_under_a_running_service(hospital, monkeypatch, capsys):
    before = content(hospital)
    monkeypatch.setattr(locks, "holder", lambda _, half: 7 if half == "relay" else None)
    assert main(["rotate", str(hospital)]) == 2
    assert "relay of" in capsys.readouterr().err
    assert content(hospital) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_nodes_files_stay_its_accounts(hospital):
    for path in ("node/node.key", "node/superexec.secret", "node/ca.crt"):
        os.chown(hospital / path, 65534, 65534)
    assert main(["rotate", str(hospital)]) == 0
    shutil.copy(hospital.parent / "before" / "invitation.json", hospital.parent)
    assert main(["invitation", str(hospital), str(hospital.parent / "invitation.json")]) == 0
    owners = {path: (hospital / path).stat().st_uid for path in (*SECRETS, "node/ca.crt")}
    assert owners == {"private/identity.key": 0} | dict.fromkeys((*SECRETS[1:], "node/ca.crt"), 65534)


def test_a_new_invitation_changes_address_bundle_and_authority_alone(hospital, tmp_path, capsys):
    before = (hospital / "client.yaml").read_text()
    invited = invitation(tmp_path / "after", "new.example:9444", "cd" * 32)
    assert main(["invitation", str(hospital), str(invited)]) == 0
    assert capsys.readouterr().out.count("(changed)") == 3
    settings = HospitalSettings.load(hospital)
    assert (settings.coordinator, settings.bundle) == ("new.example:9444", "cd" * 32)
    assert (hospital / "node" / "ca.crt").read_text() == (tmp_path / "after" / "ca.crt").read_text()
    lines = (hospital / "client.yaml").read_text().splitlines()
    changed = [line.split(":")[0] for line, old in zip(lines, before.splitlines(), strict=True) if line != old]
    assert changed == ["coordinator", "bundle"]
    assert all("  # " in line for line in lines if line.startswith(("coordinator", "bundle")))
    assert (hospital / "client.yaml").stat().st_mode & 0o077 == 0
    assert main(["invitation", str(hospital), str(invited)]) == 0
    assert "changed" not in capsys.readouterr().out


def test_a_file_whose_lines_are_not_found_is_left_as_it_is(hospital, tmp_path):
    path = hospital / "client.yaml"
    path.write_text(
        "{" + ", ".join(f"{k}: {json.dumps(v)}" for k, v in yaml.safe_load(path.read_text()).items()) + "}\n"
    )
    before = content(hospital)
    invited = invitation(tmp_path / "after", "new.example:9444", "cd" * 32)
    assert main(["invitation", str(hospital), str(invited)]) == 2
    assert content(hospital) == before
