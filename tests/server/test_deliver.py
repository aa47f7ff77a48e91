"""A run's texts on their way to the hospitals that answered it, by Flower's messages in one process."""

import json

import pytest
from flwr.app import Context, RecordDict

from client.app import relay
from client.approval.entries import approvals, decide
from client.releases import releases
from common import messages as m
from common import wire
from common.errors import ConfigError
from common.ledger.ledger import Ledger
from server import app
from server.documents.hospitals import SentDocument
from server.documents.run import TEXTS
from server.federation.ask import Federation
from server.federation.checkpoint import Checkpoint
from server.federation.exchange import OFFLINE, send_texts
from server.federation.network import FlowerNetwork
from server.prepare.compose import compose_settings, store
from server.run_folder import SENDING
from server.settings.schema import Hospital
from server.settings.sections import with_values
from simulations.federation.local_grid import LocalGrid
from tests.support.federations import query
from tests.support.party_requests import PLAIN, hospital

NAMES = ("St. Mary", "St. Luke", "Charité", "St. Anna")
LINES = "".join(json.dumps({"text": f"A text of number {number}"}) + "\n" for number in range(9000)).encode()
"""More bytes than travel in an envelope's record."""


class Grid(LocalGrid):
    """Nodes of which some are offline."""

    offline = frozenset()

    def get_node_ids(self):
        return [node for node in super().get_node_ids() if node not in self.offline]


@pytest.fixture
def grid(tmp_path):
    """Four hospitals, the fourth of which was enrolled after the run."""
    services = [hospital(tmp_path / str(party), party) for party in range(4)]
    return Grid(relay(lambda context: services[context.node_config["partition-id"]]), 4)


@pytest.fixture
def run(tmp_path, grid):
    """The folder of a run that three hospitals have answered, with its texts."""
    folder = tmp_path / "runs" / "first"
    hospitals = tuple(Hospital(name=name, node=node) for node, name in enumerate(NAMES[:3], start=1))
    known = {"run": "first-1", "federation.hospitals": hospitals, "federation.timeout": 1.0}
    store(with_values(compose_settings(["federation.parties=3"], "server"), known), folder)
    federation = Federation(
        network=FlowerNetwork(grid, timeout=0, enrolled={1: 0, 2: 1, 3: 2}),
        plan=PLAIN,
        run="first-1",
        checkpoint=Checkpoint(folder / "state"),
        ledger=Ledger(folder / "state" / "ledger.db"),
    )
    federation.ask("votes", 0, query())
    (folder / TEXTS).write_bytes(LINES)
    (folder / SENDING).mkdir()
    return folder


def sent(grid, run):
    context = Context(1, 0, {}, RecordDict(), {"run-folder": str(run / SENDING)})
    app.app(grid, context)
    return SentDocument.load(run / SENDING)


def test_the_hospitals_that_answered_get_the_texts_and_who_did_not_is_named(grid, run, tmp_path):
    private = [tmp_path / str(party) / "private" for party in range(4)]
    grid.offline = {2}
    (entry,) = approvals(private[2])
    decide(private[2], entry, approve=False, by="anna")
    first = sent(grid, run)
    assert list(first.received) == ["St. Mary"]
    declined = f"refused: DECLINED, {m.WORDS[m.Reason.DECLINED]}"
    assert first.missing == {"St. Luke": OFFLINE, "Charité": declined}
    (one,) = releases(private[0])
    assert (one.run, one.texts, one.path.read_bytes()) == ("first-1", 9000, LINES)
    assert (run / TEXTS).read_bytes() == LINES
    assert not (run / "error.txt").exists()

    grid.offline = {1}
    second = sent(grid, run)
    assert second.received.keys() == {"St. Mary", "St. Luke"}
    assert second.received["St. Mary"] == first.received["St. Mary"]
    assert second.missing == {"Charité": declined}
    audits = [(folder / "audit.jsonl").read_text() for folder in private]
    assert ["Release" in text for text in audits] == [True, True, True, False]  # the fourth took no part


def test_who_has_taken_texts_has_them_since_then_and_does_not_have_others_that_came_to_stand_there(
    grid, run, monkeypatch
):
    first = sent(grid, run)
    monkeypatch.setattr(app, "now", lambda: "later")
    (run / SENDING / SentDocument.FILE).replace(run / SENDING / SentDocument.BEFORE)  # as the coordinator does
    assert sent(grid, run).received == first.received
    (run / TEXTS).write_bytes(LINES + LINES)
    others = sent(grid, run)
    assert others.received == {}
    assert set(others.missing.values()) == {f"refused: OVER_LIMIT, {m.WORDS[m.Reason.OVER_LIMIT]}"}
    (run / SENDING / SentDocument.FILE).write_text("{")
    assert sent(grid, run).missing == others.missing


def test_a_run_that_no_hospital_answered_is_sent_to_nobody(grid, run):
    (run / "state" / "ledger.db").unlink()
    Ledger(run / "state" / "ledger.db")
    with pytest.raises(ConfigError) as caught:
        sent(grid, run)
    assert (run / SENDING / "error.txt").read_text() == str(caught.value)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (lambda _: m.Parcel(b"\xff"), "cannot be read"),
        (lambda place: wire.pack(m.Envelope(body=m.Closed(), **place)), "out of place"),
        (lambda place: wire.pack(m.Envelope(body=m.Received(), **place | {"run": "b"})), "out of place"),
        (lambda place: wire.pack(m.Envelope(body=m.Received(), **place)), ""),
        (lambda _: None, "did not answer"),
    ],
)
def test_a_reply_counts_only_in_its_place(reply, problem):
    place = {"run": "a", "party": 0, "plan_digest": bytes(32)}

    class Network:
        def online(self):
            return {0}

        def exchange(self, parcels):
            assert wire.unpack(parcels[0]).body == m.Release(b"texts")
            answer = reply(place)
            return {0: answer} if answer else {}

    (said,) = send_texts(Network(), b"texts", {0}, run="a", plan_digest=bytes(32)).values()
    assert problem in said
    assert bool(problem) is bool(said)
