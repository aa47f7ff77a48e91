"""A coordinator that breaks every rule, loaded into the ServerApp's process before our own code runs there.

The bundle is the honest one, which the hospitals accept; the code that the coordinator has installed is hostile.
`folder` makes the folder that `Deployment(path={"coordinator": (FOLDER,)})` puts first on the coordinator's Python
path, `choose` selects the act for its next runs, and `replies` returns all bytes with which hospitals answered.
"""

import hashlib
import json
import pickle
import time
from collections import Counter
from dataclasses import replace

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from common import messages as m
from common import wire
from common.errors import ProtocolError
from common.parcels import parcel_of
from common.plan.plan import Plan
from common.secagg import rules
from server.federation.network import POLL_SECONDS, FlowerNetwork

SITE = """\
import sys
if any("flwr-serverapp" in word for word in sys.orig_argv):
    from pathlib import Path
    from tests.support import hostile
    hostile.install(Path({folder!r}))
"""


def folder(path):
    path.mkdir()
    (path / "sitecustomize.py").write_text(SITE.format(folder=str(path)))
    choose(path, "nothing")
    return path


def choose(path, act):
    (path / "act").write_text(act)


def replies(path, step=None):
    """Return the hospitals' answers to all steps of an act, or to one step."""
    content = (path / "replies.jsonl").read_text() if (path / "replies.jsonl").exists() else ""
    return [reply for reply in map(json.loads, content.splitlines()) if step in {None, reply["step"]}]


def outcomes(path, step):
    """Return the number of answers by outcome, such as {"OUT_OF_ORDER": 3}."""
    return dict(Counter(reply["outcome"] for reply in replies(path, step)))


def install(path):
    """Replace the messages of FlowerNetwork with the act's messages, from now on."""
    honest = FlowerNetwork._send

    def send(network, parcels, timeout):
        if not isinstance(network._grid, Recording):
            network._grid = Recording(network._grid, path)
        coordinator = Coordinator(network, lambda parcels: honest(network, parcels, timeout), path)
        body = wire.unpack(next(iter(parcels.values()))).body
        return ACTS[(path / "act").read_text()](coordinator, parcels, body)

    FlowerNetwork._send = send


class Recording:
    """A wrapper of Flower's Grid that records every reply with the step in which it was requested."""

    def __init__(self, grid, path):
        self._grid, self._path = grid, path
        self.step = ""

    def __getattr__(self, name):
        return getattr(self._grid, name)

    def pull_messages(self, ids):
        pulled = list(self._grid.pull_messages(ids))
        with (self._path / "replies.jsonl").open("a") as file:
            for reply in pulled:
                file.write(json.dumps({"step": self.step, **_seen(reply)}) + "\n")
        return pulled


def _seen(reply):
    if reply.has_error():
        return {"outcome": f"error {reply.error.code}", "said": str(reply.error.reason or "")}
    sent = parcel_of(reply.content)
    said = (sent.envelope + sent.bulk).hex()
    others = sorted({*reply.content, *reply.content.config_records["envelope"]} - {"envelope", "bulk", "bytes"})
    try:
        body = wire.unpack(sent).body
    except ProtocolError:
        return {"outcome": "unreadable", "said": said}
    outcome = body.reason.name if isinstance(body, m.Refusal) else type(body).__name__
    return {"outcome": outcome, "said": said, "bulk": sent.bulk.hex(), "others": others}


class Coordinator:
    """The functions with which an act sends messages in the coordinator's place."""

    def __init__(self, network, send, path):
        self.network, self._send, self.path = network, send, path
        self.kept = network.__dict__.setdefault("kept", [])

    def send(self, parcels, step="honest"):
        """Send each node its parcel, with our own code."""
        self.network._grid.step = step
        return self._send(parcels)

    def altered(self, parcels, step, *alterations):
        """Send each node its parcel, each with a different alteration of the envelope's values."""
        altered = {}
        for (node, parcel), alter in zip(sorted(parcels.items()), alterations, strict=False):
            altered[node] = wire.pack(alter(wire.unpack(parcel)))
        return self.send(altered, step)

    def flipped(self, parcels, step, *places):
        """Send each node its parcel with one bit flipped, at different positions in the envelope or bulk array."""
        changed = {}
        for (node, parcel), place in zip(sorted(parcels.items()), places, strict=False):
            if isinstance(place, int):
                changed[node] = replace(parcel, bulk=_flip(parcel.bulk, place))
            else:
                changed[node] = replace(parcel, envelope=_flip(parcel.envelope, parcel.envelope.index(place)))
        return self.send(changed, step)

    def raw(self, node, step, content, kind="query"):
        """Send one Flower message with any type and content."""
        grid = self.network._grid
        grid.step = step
        (sent,) = grid.push_messages([Message(content, dst_node_id=node, message_type=kind)])
        deadline = time.monotonic() + 60
        while not grid.pull_messages([sent]) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)


def _flip(data, at):
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def nothing(coordinator, parcels, _):
    return coordinator.send(parcels)


def twice(coordinator, parcels, body):
    """Send each question and each request for shares twice."""
    given = coordinator.send(parcels)
    if isinstance(body, (m.Ask, m.AskUnmask)):
        coordinator.send(parcels, f"{type(body).__name__} again")
    return given


def after_close(coordinator, parcels, body):
    """Repeat the run's requests after it was closed, also after opening it again; store the question."""
    if isinstance(body, (m.Open, m.Ask, m.AskUnmask)):
        coordinator.kept.append(parcels)
    given = coordinator.send(parcels)
    if isinstance(body, m.Close):
        opening, question, *_, unmasking = coordinator.kept
        coordinator.send(question, "Ask after Close")
        coordinator.send(unmasking, "AskUnmask after Close")
        coordinator.send(opening, "Open after Close")
        coordinator.send(question, "Ask after Open after Close")
        (coordinator.path / "question").write_bytes(pickle.dumps(question))
    return given


def elsewhere(coordinator, parcels, body):
    """Ask the question of an earlier run, and questions with one bit changed, before the honest one."""
    if isinstance(body, m.Ask) and not coordinator.kept:
        coordinator.kept.append(parcels)
        coordinator.send(pickle.loads((coordinator.path / "question").read_bytes()), "Ask of another run")
        parcel = next(iter(parcels.values()))
        envelope, digest = wire.unpack(parcel), hashlib.sha256(parcel.bulk).digest()
        coordinator.flipped(parcels, "envelope", envelope.run.encode(), envelope.plan_digest, digest)
        coordinator.flipped(parcels, "bulk", 0, 1000, -1)
    return coordinator.send(parcels)


def lost(coordinator, parcels, body):
    """Read the answers, then let the run fail as if no answers had come."""
    return coordinator.send(parcels) and {} if isinstance(body, m.Ask) else coordinator.send(parcels)


def changed(coordinator, parcels, body):
    """Ask one hospital the same query with different vectors."""
    if not isinstance(body, m.Ask):
        return coordinator.send(parcels)
    chosen = sorted(parcels)[1]
    others = {node: parcel for node, parcel in parcels.items() if node != chosen}
    given = coordinator.altered({chosen: parcels[chosen]}, "changed question", _other_vectors)
    return given | coordinator.send(others)


def _other_vectors(envelope):
    query = envelope.body.query
    other = replace(query, vectors=np.roll(query.vectors, 1, axis=0))
    return replace(envelope, body=replace(envelope.body, query=other))


def fewer(coordinator, parcels, body):
    """Ask for unmasking with all survivors, then with fewer; then let the run fail as if no shares had come."""
    if not isinstance(body, m.AskUnmask):
        return coordinator.send(parcels)
    coordinator.send(parcels, "AskUnmask of all")
    coordinator.altered(parcels, "AskUnmask of fewer", *[_without_the_last] * 3)
    return {}


def fewer_later(coordinator, parcels, body):
    """Ask, in a further set-up, for unmasking of the same question with fewer survivors."""
    if isinstance(body, m.AskUnmask):
        coordinator.altered(parcels, "AskUnmask of fewer, later", *[_without_the_last] * 3)
    return coordinator.send(parcels)


def _without_the_last(envelope):
    fewer = frozenset(sorted(envelope.body.survivors)[:-1])
    return replace(envelope, body=replace(envelope.body, survivors=fewer))


def plans(coordinator, parcels, body):
    """Send plans in which no hospital should take part, before the honest plan."""
    if isinstance(body, m.Open):
        plan = json.loads(body.plan)
        less_noise = [query | {"scale": query["scale"] // 8} for query in plan["queries"]]
        for step, plan_changed in {
            "epsilon above the limits": {"epsilon": 100.0},
            "less noise than epsilon needs": {"queries": less_noise},
            "delta above the limits": {"delta": 0.01},
            "more parties than the roster's": {"parties": 9, "degree": 8, "threshold": 5},
        }.items():
            other = Plan.from_dict(plan | plan_changed)
            change = _planned(other.to_json(), other.digest())
            coordinator.altered(parcels, step, *[change] * 3)
        coordinator.altered(parcels, "another digest", *[_planned(body.plan, bytes(32))] * 3)
        coordinator.altered(parcels, "no plan", *(_planned(data) for data in (b"{}", b"[" * 9999, body.plan[:-1])))
    return coordinator.send(parcels)


def forked(coordinator, parcels, body):
    """Show one hospital a different plan, with more noise, in all messages; pass its replies off as the others'."""
    rules.verify = lambda *_, **__: None  # a coordinator that does not care who has signed
    victim = min(parcels)
    others = {node: parcel for node, parcel in parcels.items() if node != victim}
    if isinstance(body, m.Open):
        plan = json.loads(body.plan)
        more_noise = [query | {"scale": 2 * query["scale"]} for query in plan["queries"]]
        coordinator.kept[:] = [Plan.from_dict(plan | {"queries": more_noise})]
    (other,) = coordinator.kept
    seen = wire.unpack(parcels[victim])
    opening = {"body": m.Open(other.to_json(), body.first)} if isinstance(body, m.Open) else {}
    shown = wire.pack(replace(seen, plan_digest=other.digest(), **opening))
    step = f"{type(body).__name__} under two plans"
    given = coordinator.send(others | {victim: shown}, step)
    if victim in given:
        reply = wire.unpack(given[victim])
        given[victim] = wire.pack(replace(reply, plan_digest=seen.plan_digest))
    return given


def _planned(data, digest=bytes(32)):
    return lambda envelope: replace(envelope, plan_digest=digest, body=m.Open(data))


def garbage(coordinator, parcels, body):
    """Send messages of other types, and bytes that are not in our format, before the honest question."""
    if isinstance(body, m.Ask) and not coordinator.kept:
        coordinator.kept.append(parcels)
        node, parcel = min(parcels.items())
        good = _content(parcel.envelope, parcel.bulk)
        for kind in ("train", "evaluate", "query.other"):
            coordinator.raw(node, "another type", good, kind)
        for content in (RecordDict(), RecordDict({"envelope": ConfigRecord({"bytes": "text"})}), _content(b"", b"x")):
            coordinator.raw(node, "no parcel", content)
        noise = np.random.default_rng(0).bytes(5000)
        coordinator.raw(node, "no parcel", _content(noise, noise))
        coordinator.raw(node, "no parcel", _content(parcel.envelope[:-5], parcel.bulk))
        coordinator.altered(parcels, "a reply as request", *[lambda message: replace(message, body=m.Closed())] * 3)
        coordinator.altered(
            parcels, "to another party", *[lambda message: replace(message, party=message.party ^ 1)] * 3
        )
    return coordinator.send(parcels)


def _content(envelope, bulk):
    bulk = ArrayRecord({"bytes": Array("uint8", (len(bulk),), "raw", bulk)})
    return RecordDict({"envelope": ConfigRecord({"bytes": envelope}), "bulk": bulk})


ACTS = {
    act.__name__: act
    for act in (nothing, twice, after_close, elsewhere, lost, changed, fewer, fewer_later, plans, forked, garbage)
}
