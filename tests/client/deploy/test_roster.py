"""`caucus-party roster`: what a person compares, and what has changed."""

import sys
from dataclasses import replace

import pytest

from client.channel import READY
from client.command import main
from client.deploy import host
from client.deploy.preflight import findings
from client.deploy.roster import RESTART
from client.deploy.settings import HospitalSettings
from common.system import processes
from common.system.enrolment import PartyFile, RosterFile
from common.system.files import text_of
from tests.support.enrolment import node_key
from tests.support.hospital import said


@pytest.fixture
def kept(made):
    """The roster that this hospital has: St. Luke, and itself."""
    return HospitalSettings.load(made).roster_file()


def sent(folder, *parties):
    (folder / "new.json").write_text(RosterFile(parties=parties).to_json())
    return folder / "new.json"


def taken(capsys, folder, *parties, flags=("--yes",)):
    assert main(["roster", *flags, str(folder), str(sent(folder, *parties))]) == 0
    assert HospitalSettings.load(folder).roster_file().parties == parties
    return capsys.readouterr().out.splitlines()


def third():
    return PartyFile(name="St. Anne", identity="cd" * 32, node_key=node_key())


def test_each_hospital_has_its_number_name_and_the_fingerprint_that_its_init_printed(made, kept, capsys):
    mary = PartyFile.load(made / "party.json")
    lines = taken(capsys, made, *kept.parties, flags=())
    luke_print, luke, mary_print, this, change, roster, _ = lines
    assert (luke_print, mary_print, change) == (kept.parties[0].fingerprint, mary.fingerprint, "no change")
    assert luke.split()[:2] == ["party", "0,"]
    assert luke.endswith('"St. Luke"')
    assert this.startswith("  party 1 (this hospital)")
    assert this.endswith('"St. Mary #1"')
    assert roster.endswith(kept.fingerprint)


def test_what_has_changed_is_said(made, kept, capsys):
    luke, mary = kept.parties
    new = third()
    assert 'added: "St. Anne"' in taken(capsys, made, luke, mary, new)
    taken(capsys, made, new, luke, mary, flags=())  # in another order: nobody is asked
    lines = taken(capsys, made, new, mary)
    assert 'removed: "St. Luke"' in lines
    assert not any(line.startswith(("added", "CHANGED", "no change")) for line in lines)
    other = PartyFile(name="St. Anne", identity="ef" * 32, node_key=new.node_key)
    (line,) = [line for line in taken(capsys, made, other, mary) if line.startswith("CHANGED KEYS")]
    assert "St. Anne" in line
    assert any("numbers" in line for line in taken(capsys, made, mary, other))


def test_the_first_roster_and_one_after_a_broken_one_have_nothing_to_be_compared_with(made, kept, capsys):
    for before in (None, '{"0": "ab"}'):
        (made / "roster.json").unlink()
        if before:
            (made / "roster.json").write_text(before)
        assert len(taken(capsys, made, *kept.parties)) == 6


def test_a_running_service_has_the_roster_from_before_until_it_is_restarted(made, kept, capsys, monkeypatch):
    monkeypatch.setattr(processes, "status", lambda *_: {"children": {"service": {"process": 7}}})
    (made / READY).write_text(kept.fingerprint)
    assert not taken(capsys, made, *kept.parties)[-1].endswith(RESTART)
    assert taken(capsys, made, *kept.parties, third())[-1].endswith(RESTART)
    (finding,) = findings(HospitalSettings.load(made), only=["roster"])
    assert (finding.result, finding.fix) == ("warning", RESTART)
    (made / READY).write_text(HospitalSettings.load(made).roster_file().fingerprint)
    (finding,) = findings(HospitalSettings.load(made), only=["roster"])
    assert finding.result == "passed"


def test_a_running_service_has_read_the_records_from_before_until_it_is_restarted(made, kept, monkeypatch):
    monkeypatch.setattr(processes, "status", lambda *_: {"children": {"service": {"process": 7}}})
    settings = HospitalSettings.load(made)
    read = host.service(settings).records_digest
    for change, warned in (("", False), ("another,record\n", True)):
        with settings.records.open("a") as file:
            file.write(change)
        for text in (kept.fingerprint, f"{kept.fingerprint}\n{read}"):  # the first is that of an earlier version
            (made / READY).write_text(text)
            (finding,) = findings(settings, only=["records"])
            assert (RESTART in finding.fix) is (warned and read in text)


NEW = {
    "removed": lambda mary, luke, anne: (mary, anne),
    "alone": lambda mary, luke, anne: (mary,),
    "added": lambda mary, luke, anne: (mary, luke, anne, replace(third(), name="St. Jude", identity="34" * 32)),
    "another name": lambda mary, luke, anne: (mary, luke, replace(anne, name="St. Ann")),
    "another key of the node": lambda mary, luke, anne: (mary, replace(luke, node_key=node_key()), anne),
    "another identity": lambda mary, luke, anne: (mary, replace(luke, identity="12" * 32), anne),
    "exchanged": lambda mary, luke, anne: (mary, replace(luke, name=anne.name), replace(anne, name=luke.name)),
}


@pytest.mark.parametrize("change", [*NEW, "the first"])
def test_hospitals_and_keys_that_are_new_are_taken_by_a_person_or_with_yes_alone(
    change, made, kept, capsys, monkeypatch
):
    (luke, mary), anne = kept.parties, third()
    taken(capsys, made, luke, mary, anne)
    if change == "the first":
        (made / "roster.json").unlink()
    parties = NEW.get(change, lambda *all_three: all_three)(mary, luke, anne)
    new, before = sent(made, *parties), text_of(made / "roster.json")

    def answered(reply):
        def asked(prompt):
            assert prompt.endswith("[y/N] ")
            assert f'"{parties[-1].name}"\n' in capsys.readouterr().out
            if reply is None:
                raise EOFError
            return reply

        monkeypatch.setattr("builtins.input", asked)
        return main(["roster", str(made), str(new)])

    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    said(capsys, "roster", made, new)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    for reply in ("", "n", "no", "perhaps", None):
        assert answered(reply) == 1
        assert text_of(made / "roster.json") == before
    assert answered(" Y ") == 0
    assert HospitalSettings.load(made).roster_file().parties == parties


def test_a_name_that_an_earlier_version_took_is_refused_until_a_new_roster_is_taken(made, kept, capsys):
    (made / "roster.json").write_text(kept.to_json().replace("St. Luke", "St. Luke: A"))
    assert f"at {made / 'roster.json'}." in said(capsys, "start", made)
    taken(capsys, made, *kept.parties)


def test_a_roster_with_another_entry_for_this_hospital_is_refused_and_the_old_one_stays(made, kept, capsys):
    mary = PartyFile.load(made / "party.json")
    for changed in ({"node_key": third().node_key}, {"name": "St. Marie"}, {"max_records": 2}):
        false = replace(mary, **changed)
        sent(made, kept.parties[0], false)
        line = said(capsys, "roster", made, made / "new.json")
        assert f"fingerprint {mary.fingerprint}; got {false.fingerprint}" in line
        assert HospitalSettings.load(made).roster_file() == kept
