import dataclasses
import hashlib
import itertools
import json

import pytest

from client.command import main
from common.ledger.ledger import Ledger
from common.privacy.accountant import ReleasedAnswers, epsilon
from common.privacy.sensitivity import Sensitivity
from tests.support.ledgers import RELEASE as VOTES
from tests.support.ledgers import reservation

SEXES = ReleasedAnswers(
    mechanism="laplace", sensitivity=Sensitivity(l1=1, l2_squared=1, touched=1, shifts=(1,)), scale=4.0
)
ANSWER = b"the noised answer, kept until it is closed"
KEY = b"the secret key of one subsample!"
RECORD = b"seen for chest pain on the third"


@pytest.fixture
def path(tmp_path):
    """Run "first" of two answers over named records, one closed; run "second" over unnamed ones."""
    path = tmp_path / "ledger.db"
    ledger = Ledger(path)
    data_set = ledger.data_set([RECORD])
    ledger.sample_key("first", "draw", KEY)
    for index, release in enumerate((SEXES, VOTES)):
        ledger.reserve(**reservation(run="first", index=index, release=release, data_set=data_set))
    ledger.survivors("first", 0, {0, 1, 2})
    ledger.commit("first", 0)
    ledger.keep("first", 1, ANSWER)
    ledger.reserve(**reservation(run="second"))
    return path


def output_of(capsys, *arguments):
    """What the command prints if all is well."""
    assert main(["ledger", *map(str, arguments)]) == 0
    out, err = capsys.readouterr()
    assert not err
    return out


def refused(capsys, *arguments):
    """The one line on standard error, and nothing elsewhere."""
    assert main(["ledger", *map(str, arguments)]) == 1
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("caucus-party: ")
    assert err.count("\n") == 1
    return err


def test_show_is_a_table_of_runs_and_their_sum(path, capsys):
    lines = output_of(capsys, "show", path).splitlines()
    first, second, both = (line.split() for line in lines[1:])
    entries = Ledger(path).entries()
    assert first[:8] == ["first", entries[0].data_set[:8], "2", "1", "1", "laplace", "1", "gaussian"]
    assert first[8:10] == [entries[0].charged, entries[1].charged]
    assert second[:6] == ["second", "-", "1", "0", "1", "gaussian"]
    assert both[:4] == ["all", entries[0].data_set[:8], "3", "1"]
    for line, releases in ((first, [SEXES, VOTES]), (second, [VOTES]), (both, [SEXES, VOTES, VOTES])):
        # Rounded, as everything about privacy, toward more of it lost.
        assert 0 <= float(line[-1]) - epsilon(releases, 1e-5) < 1e-4


def test_show_at_another_delta_as_json(path, capsys):
    output = json.loads(output_of(capsys, "show", path, "--json", "--delta", "1e-7"))
    (data_set,) = output["all"]["data_sets"]
    assert (output["delta"], [run["run"] for run in output["runs"]]) == (1e-7, ["first", "second"])
    assert data_set == Ledger(path).entries()[0].data_set
    assert [(row["charged"], row["closed"]) for row in (*output["runs"], output["all"])] == [(2, 1), (1, 0), (3, 1)]
    assert output["all"]["noise"] == {"laplace": 1, "gaussian": 2}
    assert output["runs"][1]["epsilon"] == epsilon([VOTES], 1e-7)
    assert output["all"]["epsilon"] == epsilon([SEXES, VOTES, VOTES], 1e-7)
    for delta in ("0", "1", "nan"):
        assert main(["ledger", "show", str(path), "--delta", delta]) == 2
        assert "delta;" in capsys.readouterr().err
    table, private = output_of(capsys, "show", path), path.parent / "hospital" / "private"
    private.mkdir(parents=True)
    path.rename(private / "ledger.db")
    assert output_of(capsys, "show", private.parent) == table  # a hospital's folder will do


def test_without_noise_epsilon_is_infinite(path, capsys):
    Ledger(path).reserve(**reservation(run="open", release=dataclasses.replace(VOTES, scale=0.0)))
    output = {line.split()[0]: line.split()[-1] for line in output_of(capsys, "show", path).splitlines()}
    assert [run for run, epsilon in output.items() if epsilon == "infinite"] == ["open", "all"]
    assert json.loads(output_of(capsys, "show", path, "--json"))["all"]["epsilon"] == "inf"


def test_an_empty_ledger(tmp_path, capsys):
    head = Ledger(tmp_path / "new.db").verify()
    assert " ".join(output_of(capsys, "show", tmp_path / "new.db").splitlines()[1].split()) == "all - 0 0 - - - 0.0000"
    assert output_of(capsys, "verify", tmp_path / "new.db") == f"0 events, head {head.chain}\n"
    assert output_of(capsys, "export", tmp_path / "new.db") == ""


def test_verify_prints_the_head_and_knows_it_again(path, capsys):
    head = Ledger(path).verify().chain
    assert output_of(capsys, "verify", path) == f"6 events, head {head}\n"
    Ledger(path).commit("second", 0)
    assert output_of(capsys, "verify", path, "--head", head).startswith("7 events")
    assert "was noted" in refused(capsys, "verify", path, "--head", "ab" * 32)


def test_export_lets_anybody_compute_the_chain(path, capsys):
    events = [json.loads(line) for line in output_of(capsys, "export", path).splitlines()]
    assert [event["kind"] for event in events] == ["charge", "charge", "survivors", "close", "keep", "charge"]
    assert ReleasedAnswers.from_dict(events[0]["body"]["release"]) == SEXES
    for before, event in itertools.pairwise(events):
        sealed = [event[name] for name in ("sequence", "run", "position", "kind", "body")]
        text = json.dumps(sealed, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(bytes.fromhex(before["chain"]) + text.encode()).hexdigest() == event["chain"]


def test_export_holds_no_answer_key_or_record(path, capsys):
    exported = output_of(capsys, "export", path)
    for secret in (ANSWER, KEY, RECORD):
        assert secret in path.read_bytes() or secret == RECORD
        assert secret.decode() not in exported
        assert secret.hex() not in exported


@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_errors_are_one_line_and_nothing_is_made_or_changed(command, tmp_path, capsys):
    assert main(["ledger", command, str(tmp_path / "missing.db")]) == 2
    assert "ledger;" in capsys.readouterr().err
    assert not (tmp_path / "missing.db").exists()
    (tmp_path / "other.db").write_text("no ledger\n" * 100)
    assert "another kind" in refused(capsys, command, tmp_path / "other.db")


@pytest.mark.parametrize("command", [["show", "--json"], ["verify"], ["export"]])
def test_looking_changes_nothing(command, path, capsys):
    path.chmod(0o400)
    before = path.read_bytes()
    output_of(capsys, *command, path)
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o400
