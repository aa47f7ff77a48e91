import logging

import pytest

from client import app as module
from client.app import app, relay
from client.channel import SOCKET_NAME, Channel
from common import messages as m
from common import wire
from common.errors import DropoutError
from server.federation.network import FlowerNetwork
from simulations.federation.local_grid import LocalGrid
from tests.support.federations import CANARY, federation, plan, query, service
from tests.support.party_requests import PLAIN, on_socket

OPENING = wire.pack(m.Envelope(run="r", party=0, plan_digest=PLAIN.digest(), body=m.Open(PLAIN.to_json())))


@pytest.fixture(autouse=True)
def made(monkeypatch):
    """Makes channels, also for the app; they are closed, since other tests fork this process."""
    channels = []

    def make(*address, **how):
        channels.append(Channel(*address, **how))
        return channels[-1]

    monkeypatch.setattr(module, "_channel", make)
    yield make
    for channel in channels:
        channel.close()


def join(client_app, parties=1):
    """What the coordinator sees of one exchange: replies by party, and the errors that came in their place."""
    errors = []

    def watch(_, message):
        if message.has_error():
            errors.append((message.error.code, message.error.reason))
        return (message,)

    grid = LocalGrid(client_app, parties, on_reply=watch)
    return FlowerNetwork(grid, timeout=0).join(OPENING, parties), errors


def test_a_service_that_is_down_is_a_missing_reply_without_a_word(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv(SOCKET_NAME, f"unix:{tmp_path / CANARY}")
    monkeypatch.setitem(Channel.__init__.__kwdefaults__, "patience", 0.1)
    replies, errors = join(app)
    assert not replies
    assert errors == [(2, None)]
    assert CANARY not in caplog.text


def test_without_an_address_the_node_says_so_in_its_own_log_alone(monkeypatch, caplog):
    monkeypatch.delenv(SOCKET_NAME, raising=False)
    assert join(app) == ({}, [(2, None)])
    assert SOCKET_NAME in caplog.text


def test_whatever_the_relay_meets_its_text_stays_behind(caplog):
    caplog.set_level(logging.DEBUG)

    class Broken:
        def handle(self, parcel):
            raise ValueError(CANARY)

    assert join(relay(lambda _: Broken())) == ({}, [(2, None)])
    assert CANARY not in caplog.text
    assert "ValueError" in caplog.text


def test_the_relay_finds_its_own_service_and_passes_bytes_on_unchanged(tmp_path, monkeypatch):
    address = f"unix:{tmp_path / 'socket'}"
    monkeypatch.setenv(SOCKET_NAME, address)
    parties = {number: service(tmp_path, number) for number in range(3)}
    with on_socket(parties, address):
        replies, errors = join(app, 3)
    assert not errors
    assert replies == {number: parties[number].handle(OPENING) for number in range(3)}


def test_a_service_that_comes_back_is_found_again(tmp_path, made):
    address = f"unix:{tmp_path / 'socket'}"
    with on_socket({number: service(tmp_path, number) for number in range(3)}, address):
        channels = [made(address, number, patience=1.0) for number in range(3)]
        parties = federation(tmp_path, channels, plan(3))
        parties.open()
        parties.ask("votes", 0, query(0))
    with pytest.raises(DropoutError):
        parties.ask("votes", 1, query(1))
    with on_socket({number: service(tmp_path, number) for number in range(3)}, address):
        # The round failed, so the next try sets up anew, which is all that a restarted service needs.
        assert parties.ask("votes", 1, query(1)).survivors == 3
