import json
import os
import signal
from types import SimpleNamespace

import pytest

from simulations.laboratory.nodes import failing
from simulations.laboratory.nodes.failing import Faulty, Run

TOO_FEW = "too few parties"


class Hospitals:
    """Nodes whose relays stop as scripted: at each look at a run, the numbers of those that are stopped by then."""

    def __init__(self, folder, script=(), code=0, said=""):
        self.folder, self.count = folder, 3
        self.there, self.killed, self.resumed, self.overrides = {0, 1, 2}, [], [], ()
        self._script, self._ended = iter(script), (code, said)
        self._stopped = []

    def begin(self, name, *overrides):
        self.overrides = overrides

    def is_running(self, name):
        self._stopped = next(self._script, None)
        return self._stopped is not None

    def revive(self):
        pass

    def stopped(self):
        return [number for number in self._stopped if number in self.there and number not in self.resumed]

    def kill(self, number):
        self.killed.append(number)
        self.there.remove(number)

    def resume(self, number):
        self.resumed.append(number)

    def finish(self, name):
        return self._ended

    def started(self):
        return self.there

    def online(self):
        return len(self.there)

    def up(self, *numbers):
        self.there.update(numbers)


@pytest.fixture
def _no_waits(monkeypatch):
    now = iter(range(1000))
    monkeypatch.setattr(failing, "time", SimpleNamespace(sleep=lambda _: None, monotonic=lambda: next(now)))


@pytest.mark.usefixtures("_no_waits")
def test_a_hospital_that_is_gone_is_killed_and_back_before_the_next_run(tmp_path):
    nodes = Hospitals(tmp_path, [[], [1], [1]])
    faulty = Faulty(nodes, 20.0, 1)
    assert faulty.run("first", 1, 0.05, lasting=True)[::2] == (True, 1)
    assert (nodes.killed, nodes.there, nodes.resumed) == ([1], {0, 2}, [])
    assert json.loads((tmp_path / "faults.json").read_text()) == {"run": "first", "rate": 0.05}
    assert {"federation.timeout=20.0", "federation.retries=1", "federation.max_dropouts=1"} <= {*nodes.overrides}
    faulty.run("second", 1, 0.05, lasting=True)
    assert nodes.there == {0, 1, 2}


@pytest.mark.usefixtures("_no_waits")
@pytest.mark.parametrize("looks", [1, 40])
def test_one_that_is_away_goes_on_after_the_timeout_or_the_run(tmp_path, looks):
    nodes = Hospitals(tmp_path, [[2]] * looks)
    assert Faulty(nodes, 20.0, 1).run("away", 1, 0.05, lasting=False).failed == 1
    assert (nodes.killed, nodes.resumed) == ([], [2])


@pytest.mark.usefixtures("_no_waits")
def test_a_run_that_fails_with_its_hospitals_is_counted_and_any_other_failure_is_an_error(tmp_path):
    few = Hospitals(tmp_path, [[1]], code=1, said=TOO_FEW)
    assert not Faulty(few, 20.0, 0).run("few", 0, 0.2, lasting=True).whole
    with pytest.raises(RuntimeError, match="another"):
        Faulty(Hospitals(tmp_path, code=1, said="another"), 20.0, 0).run("other", 0, 0.2, lasting=True)


@pytest.mark.parametrize(("rate", "stops"), [(0.0, False), (1.0, True)])
def test_a_relay_stops_itself_before_it_answers(tmp_path, monkeypatch, rate, stops):
    (tmp_path / "h0").mkdir()
    (tmp_path / "faults.json").write_text(json.dumps({"run": "run", "rate": rate}))
    monkeypatch.chdir(tmp_path / "h0")
    order = []
    monkeypatch.setattr(failing, "app", lambda *_: order.append("answered"))
    monkeypatch.setattr(os, "kill", lambda *signalled: order.append(signalled))
    monkeypatch.setattr(failing.relay, "serve", lambda client_app: client_app("message", "context"))

    def serving():
        failing.relay.serve()

    monkeypatch.setattr(failing.relay, "main", serving)
    failing.failing_relay()
    assert order == [*[(os.getpid(), signal.SIGSTOP)] * stops, "answered"]


def test_a_table_has_what_was_predicted_beside_it(tmp_path, monkeypatch, capsys):
    class Nodes:
        def __init__(self, folder, count, relay):
            assert relay == failing.RELAY

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def set(self, number, **values):
            assert values == {"lifetime_epsilon": "null"}

        def requests(self, number, run):
            return [("Open", 0.0), ("Ask", 2.0), ("Close", 4.0)]

    def run(faulty, name, dropouts, rate, *, lasting):
        return Run(whole=not name.endswith("-1"), seconds=10.0 if rate == 0 else 33.0, failed=int(rate > 0))

    monkeypatch.setattr(failing, "Nodes", Nodes)
    monkeypatch.setattr(Faulty, "run", run)
    options = ["--parties", "5", "--kinds", "away", "--rates", "0.000001", "--runs", "2", "--predicted", "1"]
    assert failing.main(options) == 0
    calm, _, line = capsys.readouterr().out.splitlines()
    assert calm.startswith("without faults: 10.0 s, 2.00 s a phase")
    assert line.split() == ["away", "0%", "0", "1", "50%", "100%", "23.0", "0.0", "1.0"]
