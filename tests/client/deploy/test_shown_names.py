"""What a person compares stands where no text of others reaches: fingerprints, the digest, the hospitals' names."""

from dataclasses import replace
from itertools import cycle

from client.approval.command import WIDTH, terminal_lines
from client.approval.entries import approvals
from client.approval.facts import PlanFacts
from client.approval.sheet import PlanSheet, sheet_sections
from client.command import main
from client.deploy.settings import HospitalSettings
from common.errors import ConfigError
from common.system.enrolment import PartyFile, RosterFile
from tests.support.enrolment import node_key
from tests.support.federations import plan
from tests.support.hospital import opened
from tests.support.impostors import compared, impostors


def said_of(made, capsys, *parties):
    path = made.parent / "roster.json"
    path.write_text(RosterFile(parties=parties).to_json())
    assert main(["roster", str(made), str(path), "--yes"]) == 0
    return capsys.readouterr().out.splitlines()


def stranger(name):
    return PartyFile(name=name, identity="cd" * 32, node_key=node_key(), max_records=1000)


def test_no_name_shows_another_fingerprint_or_another_hospital(made, capsys):
    luke, own = HospitalSettings.load(made).roster_file().parties
    genuine = said_of(made, capsys, luke, own)
    assert compared(genuine) == [(party.name, party.fingerprint) for party in (luke, own)]
    shown = refused = 0
    for name in impostors(genuine):
        try:
            parties = luke, own, stranger(name[:100])
            output = said_of(made, capsys, *parties)
        except ConfigError:
            refused += 1
            continue
        shown += 1
        assert compared(output) == [(party.name, party.fingerprint) for party in parties]
    assert shown > 5
    assert refused > 50


def lines_of(facts):
    """Lines of a plan's sheet in the terminal."""
    sheet = PlanSheet(approval=facts.approval, facts=facts, sections=sheet_sections(facts))
    return list(terminal_lines(sheet))


def facts_of(output):
    """Sentences, keyed by the fact's name, each name as often as it comes."""
    named = [line for line in output if line.startswith("    ") and line[4 : 4 + WIDTH].strip()]
    return [(line[4 : 4 + WIDTH].strip(), line[4 + WIDTH :]) for line in named]


def test_no_text_of_the_coordinator_shows_another_digest_or_other_hospitals(made):
    agreed = plan(2)
    opened(made, agreed)
    (waiting,), settings = approvals(made / "private"), HospitalSettings.load(made)
    facts = PlanFacts.gather(waiting, settings, settings.read_records())
    genuine = [fact for fact in facts_of(lines_of(facts)) if fact[0] in {"digest", "hospitals"}]
    assert [name for name, _ in genuine] == ["digest", "hospitals"]
    assert genuine[1][1] == '2: "St. Luke", "St. Mary #1" (this hospital), with 2 or more in each sum'
    texts = list(impostors(lines_of(facts)))
    printable = cycle([text[:200] for text in texts if text[:200].isprintable()])
    assert len(texts) > 500
    for label, run, other in zip(texts[::3], texts[1::3], texts[2::3], strict=False):
        planned = replace(agreed, purpose=next(printable), recipient=next(printable), labels=(label, "b"))
        counts = replace(facts.records, of_label={label: 1}, without=(other,), unasked={other: 1})
        sheet = lines_of(replace(facts, plan=planned, records=counts, approval=replace(waiting, run=run)))
        assert [fact for fact in facts_of(sheet) if fact[0] in {"digest", "hospitals"}] == genuine
