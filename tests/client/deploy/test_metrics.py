"""The metrics of a hospital: what they say, where alone they are to be had, and that they are off."""

import json
import threading
from http.client import HTTPConnection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from client.deploy import metrics, start
from client.deploy.settings import HospitalSettings
from common.errors import ConfigError
from common.system import processes
from tests.support.hospital import change, charge, note
from tests.support.ledgers import RELEASE


@pytest.fixture
def ask(hospital):
    """Asks a running server for a path."""
    served = metrics.server(hospital, 0)
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def ask(path, method="GET", **headers):
        connection = HTTPConnection("127.0.0.1", served.server_port, timeout=120)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    assert served.server_address[0] == "127.0.0.1"
    yield ask
    served.shutdown()
    thread.join()
    served.server_close()


def samples(text):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_metrics_say_what_a_hospital_watches(hospital, ask):
    status, text = ask("/metrics")
    values = samples(text)
    assert status == 200
    assert values["caucus_requests_answered_total",] == 1
    assert values["caucus_requests_refused_total", "AWAITING"] == 1
    assert values["caucus_requests_refused_total", "OVER_LIMIT"] == 2
    assert values["caucus_ledger_events_total",] == 1
    assert values["caucus_ledger_accepted",] == 1
    assert values["caucus_certificate_days",] in {3649, 3650}
    spent = HospitalSettings.load(hospital).party.limits.spent([RELEASE])
    assert values["caucus_epsilon_spent",] == pytest.approx(spent)
    assert values["caucus_epsilon_left",] == pytest.approx(10.0 - spent)
    assert values["caucus_epsilon_limit",] == 10
    last = json.loads((hospital / "private" / "audit.jsonl").read_text().splitlines()[-1])["when"]
    assert f"{values['caucus_last_contact_timestamp_seconds',]:.0f}" == f"{metrics.datetime.fromisoformat(last):%s}"
    assert {name for name, *_ in values} >= {"caucus_plans_awaiting_approval", "caucus_audit_log_used_ratio"}


def test_the_metrics_follow_log_and_ledger(hospital, ask):
    ask("/metrics")
    note(hospital, "Ask")
    charge(hospital, 1)
    values = samples(ask("/metrics")[1])
    assert (values["caucus_requests_answered_total",], values["caucus_ledger_events_total",]) == (2, 2)
    (hospital / "private" / "audit.jsonl").rename(hospital / "private" / "audit-1.jsonl")
    values = samples(ask("/metrics")[1])
    assert values["caucus_requests_answered_total",] == 0
    assert ("caucus_last_contact_timestamp_seconds",) not in values


def test_a_spent_budget_is_zero_and_no_limit_is_no_figure(hospital, ask):
    change(hospital, limits={"lifetime_epsilon": 1e-3, "lifetime_delta": 1e-4})
    assert samples(ask("/metrics")[1])["caucus_epsilon_left",] == 0
    change(hospital, limits={"lifetime_epsilon": None})
    assert ("caucus_epsilon_left",) not in samples(ask("/metrics")[1])


def test_an_older_ledger_and_a_note_that_is_none_show(hospital, ask):
    (hospital / "private" / "ledger.head").write_text("ab" * 32)
    assert samples(ask("/metrics")[1])["caucus_ledger_accepted",] == 0
    (hospital / "private" / "ledger.head").write_text("none")
    assert ask("/metrics") == (503, "see logs/metrics.log\n")


def test_there_is_one_path_under_this_machines_own_names_and_nothing_is_taken(ask):
    for path in ("/", "/metrics/", "/private/ledger.db", "/favicon.ico"):
        assert ask(path)[0] == 404
    assert ask("/metrics", Host="attacker.example")[0] == 404  # a web page whose name was pointed at this machine
    assert ask("/metrics", Host="localhost:9000")[0] == 200
    assert ask("/metrics", "POST")[0] == 405


@pytest.mark.parametrize(
    ("only", "port", "names"),
    [
        ("both", None, ["service", "supernode", "relay"]),
        ("both", 9470, ["service", "metrics", "supernode", "relay"]),
        ("service", 9470, ["service", "metrics"]),
        ("relay", 9470, ["supernode", "relay"]),
    ],
)
def test_the_metrics_are_off_unless_there_is_a_port_and_go_with_the_service(only, port, names, hospital, monkeypatch):
    started = []
    monkeypatch.setattr(processes, "supervise", lambda children, **_: started.extend(child.name for child in children))
    monkeypatch.setattr(start, "check_records", lambda _: None)
    monkeypatch.setattr(HospitalSettings, "roster", lambda _: None)
    monkeypatch.setattr(HospitalSettings, "number", lambda *_: 0)
    for name in ("node.key", "superexec.secret"):
        (hospital / "node" / name).touch(mode=0o600)
    change(hospital, metrics_port=port)
    list(start._start(start.argparse.Namespace(folder=hospital, only=only, until_idle=None)))
    assert started == names


@pytest.mark.parametrize("port", [0, 65536, "9000", True, 1.5])
def test_a_port_that_is_none_is_named_with_its_line(port, hospital):
    change(hospital, metrics_port=port)
    with pytest.raises(ConfigError, match=r"metrics_port; .*client\.yaml:"):
        HospitalSettings.load(hospital)


def test_server_without_a_port_says_so(hospital, monkeypatch, caplog):
    monkeypatch.setattr("sys.argv", ["metrics", str(hospital)])
    assert metrics.main() == 1
    assert "metrics_port;" in caplog.text
