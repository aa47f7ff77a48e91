"""kill -9 at any event of a run, then resume: nothing is lost, and nothing is asked or paid twice.

Events are the two sides of every call in `killing.POINTS`, some hundreds in one small run. Each killed run is a forked
child of this process. The quick tests take a spread of events, the slow one a quarter of them.
"""

import hashlib
import itertools

import numpy as np
import pytest

from common.errors import CheckpointError, DropoutError, FolderInUseError
from common.ledger.ledger import Ledger
from server.failure import lock_folder
from server.prepare.compose import load_settings, store
from server.settings.sections import with_values
from tests.support.killing import Diary, arm
from tests.support.lanes import slow, slow_but
from tests.support.runs import forked, lines, read, resume, texts, tiny

SEEN = ("method.samples=36", "llm.use=[broad,noisy]")
QUERIES = 2
IN_FLIGHT = ("after server.llm.builtin.model.BuiltinModel._write", "before server.llm.cache._write")
"""A reply that was written and not yet stored: the one that a kill can lose."""


def events(folder, *overrides):
    """How many events an uninterrupted run has."""
    diary = Diary(folder / "diary")

    def work():
        count = arm(diary)
        tiny(folder / "run", *SEEN, *overrides)
        diary.write("events", count())

    assert forked(work) == 0
    ((count,),) = diary.read("events")
    return count


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    return events(tmp_path_factory.mktemp("noisy"))


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exact")
    return events(folder, "privacy.epsilon=.inf"), folder


def kill(folder, event, *overrides):
    """A run killed at that event."""
    diary = Diary(folder / "diary")

    def work():
        arm(diary, event)
        tiny(folder / "run", *SEEN, *overrides)

    assert forked(work) == -9
    assert len(diary.read("died")) == 1
    return folder / "run", diary


def go_on(run, diary):
    """Resume it, in a process of its own; a run that died before its configuration was written starts again."""

    def work():
        arm(diary)
        resume(run)

    assert forked(work) == 0


def survives(folder, event, *overrides):
    """Kill at that event, resume, and check all that must hold for any run."""
    run, diary = kill(folder, event, *overrides)
    if not (run / "config.yaml").exists():  # nothing has happened yet
        assert not diary.read("request")
        return None
    committed = {path.name: path.read_bytes() for path in run.glob("state/answer-*.npy")}
    go_on(run, diary)

    assert read(run, "run.json")["status"] == "complete"
    assert len(lines(run, "synthetic.jsonl")) == 36
    assert [line["round"] for line in lines(run, "rounds.jsonl")] == [1, 2, 3]
    assert (run / "report.html").stat().st_size
    assert read(run, "metrics.json")["real_private"]
    # Once answered, always the same answer; and an interrupted query's total is the one it would have had.
    for name, content in committed.items():
        assert (run / "state" / name).read_bytes() == content
    for index in range(QUERIES):
        total = np.load(run / "state" / f"answer-{index:03}.npy")
        assert {digest for at, digest in diary.read("total") if at == index} == {
            hashlib.sha256(total.tobytes()).hexdigest()
        }
    answers = {(index, party): digest for index, party, digest in diary.read("answer")}
    assert all(answers[index, party] == digest for index, party, digest in diary.read("answer"))
    assert len(answers) == QUERIES * 3
    # One charge for each query, in every ledger, and closed.
    for ledger in (run / "state" / "ledger.db", *sorted((run / "parties").glob("*.db"))):
        entries = Ledger(ledger).entries()
        assert [(entry.index, entry.committed) for entry in entries] == [(0, True), (1, True)]
        assert all(entry.survivors == {0, 1, 2} and entry.answer is None for entry in entries)
    spent = read(run, "privacy.json")["spent"]
    assert (spent["queries_asked"], spent["queries_planned"]) == (QUERIES, QUERIES)
    # No text is paid twice, but for the one reply that a kill can catch between model and disk.
    requests = [key for (key,) in diary.read("request")]
    ((died,),) = diary.read("died")
    assert len(requests) - len(set(requests)) == (died in IN_FLIGHT)
    assert not list(run.rglob("*.part"))
    return run, diary


@pytest.mark.parametrize("part", slow_but({3}, range(7)))
def test_a_run_with_noise_survives_a_kill(part, noisy, tmp_path):
    survives(tmp_path, (2 * part + 1) * noisy // 14)


@pytest.mark.parametrize("part", slow_but({1}, range(3)))
def test_without_noise_a_killed_run_ends_as_if_nothing_had_happened(part, exact, tmp_path):
    count, reference = exact
    run, diary = survives(tmp_path, (part + 1) * count // 4, "privacy.epsilon=.inf")
    assert texts(run) == texts(reference / "run")
    assert set(map(tuple, diary.read("request"))) == set(map(tuple, Diary(reference / "diary").read("request")))


@pytest.mark.slow
def test_a_run_survives_a_kill_at_every_fourth_event(noisy, tmp_path):
    # Noise decides how many requests a run makes: the last events of one run may be beyond the end of another.
    for event in range(0, noisy - 20, 4):
        (tmp_path / str(event)).mkdir()
        survives(tmp_path / str(event), event)


@pytest.mark.slow
def test_a_run_killed_while_it_wrote_its_traffic_is_resumed_without_a_part_of_it(tmp_path):
    tiny(tmp_path, *SEEN)
    (tmp_path / "traffic.json.part").write_text("{")
    resume(tmp_path)
    assert not list(tmp_path.rglob("*.part"))


def kill_before(folder, name, times=1):
    """A run killed just before the n-th call of one function."""
    diary = Diary(folder / "diary")

    def work():
        from tests.support import killing

        killing.POINTS = (name,)
        arm(diary, 2 * (times - 1))
        tiny(folder / "run", *SEEN)

    assert forked(work) == -9
    return folder / "run"


def test_a_run_killed_before_its_first_run_json_is_resumed(tmp_path):
    for file in itertools.count(1):
        (tmp_path / str(file)).mkdir()
        run = kill_before(tmp_path / str(file), "os.replace", times=file)
        if (run / "run.json").exists():
            break
        assert (run / "state" / "state.json").exists() or not (run / "synthetic.jsonl").exists()  # as sweeps expect
        if (run / "config.yaml").exists():
            resume(run)
            assert read(run, "run.json")["status"] == "complete"
    assert (run / "synthetic.jsonl").exists()


def test_a_kill_twice_in_one_query_is_still_one_query(tmp_path):
    run = kill_before(tmp_path, "client.secagg.Agreed.unmask", times=2)
    again = Diary(tmp_path / "again")

    def work():
        arm(again, 40)
        resume(run)

    assert forked(work) == -9
    go_on(run, Diary(tmp_path / "last"))
    assert read(run, "privacy.json")["spent"]["queries_asked"] == QUERIES


def test_an_answer_on_disk_is_closed_in_the_ledger_by_whoever_resumes(tmp_path):
    run = kill_before(tmp_path, "common.ledger.ledger.Ledger.commit")
    assert [entry.committed for entry in Ledger(run / "state" / "ledger.db").entries()] == [False]
    resume(run)
    assert [entry.committed for entry in Ledger(run / "state" / "ledger.db").entries()] == [True] * QUERIES


def test_after_survivors_were_named_only_they_will_do(tmp_path, monkeypatch):
    run = kill_before(tmp_path, "server.federation.checkpoint.Checkpoint.commit")
    (entry,) = Ledger(run / "state" / "ledger.db").entries()
    assert entry.survivors == {0, 1, 2}
    assert not entry.committed

    from server.federation.ask import Federation

    opened = Federation._open

    def without_party_two(self):
        joined = opened(self)
        joined.parties -= {2}
        return joined

    with monkeypatch.context() as patch:
        patch.setattr(Federation, "_open", without_party_two)
        with pytest.raises(DropoutError, match=r"got party 0, party 1"):
            resume(run)
    resume(run)
    assert read(run, "run.json")["status"] == "complete"


def test_a_complete_run_resumed_asks_nothing_and_stays_the_same(tmp_path):
    run = tiny(tmp_path / "run", *SEEN)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    spent = read(run, "run.json")["seconds"]
    diary = Diary(tmp_path / "diary")
    go_on(run, diary)
    assert not diary.read("request")
    assert not diary.read("answer")
    assert read(run, "run.json")["seconds"] >= spent
    for path, content in before.items():
        if path.name not in {"lock", "run.json", "state.json", "report.html", "report.json"}:  # which process, how long
            assert path.read_bytes() == content, path


def test_a_second_process_on_a_run_folder_is_refused_and_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("server.failure.PATIENCE", 0.0)
    run = tiny(tmp_path / "run")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with lock_folder(run), pytest.raises(FolderInUseError, match="one process"):
        resume(run)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "name", ["server.federation.checkpoint.Checkpoint.commit", slow("server.federation.ask.Federation.open")]
)
@pytest.mark.parametrize(
    ("setting", "value", "named"),
    [
        ("privacy.epsilon", 8.0, "privacy plan"),
        slow("llm.use", ["broad"], "privacy plan"),  # which states the models
        slow("llm.use", ["noisy", "broad"], "language models"),  # whose order decides which one is asked for a text
    ],
)
def test_an_edited_configuration_is_refused_and_nothing_is_lost(name, setting, value, named, tmp_path):
    run = kill_before(tmp_path, name)
    original = load_settings(run)
    store(with_values(original, {setting: value}), run)
    with pytest.raises(CheckpointError, match=named):
        resume(run)
    store(original, run)
    resume(run)
    assert read(run, "run.json")["status"] == "complete"
    assert read(run, "privacy.json")["spent"]["queries_asked"] == QUERIES


def test_a_new_run_never_goes_into_the_folder_of_another(tmp_path):
    run = kill_before(tmp_path, "server.federation.checkpoint.Checkpoint.commit")
    before = (run / "config.yaml").read_bytes()
    with pytest.raises(CheckpointError, match="another run"):
        tiny(run, "privacy.epsilon=8", "secagg=malicious")
    assert (run / "config.yaml").read_bytes() == before
    assert not list((run / "parties").glob("*.key")), "identities of the refused run"
