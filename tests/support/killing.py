"""Kills a run at any of its events: before or after each call that writes, asks, answers or pays.

A diary next to the run records what is compared before and after the kill: the requests that reached a model, each
party's answers, the total that was about to be committed, and the event at which the process died.
"""

import functools
import hashlib
import json
import pkgutil
import threading

from tests.support.runs import die

POINTS = (
    "os.fsync",
    "os.replace",
    "server.federation.checkpoint.Checkpoint.save",
    "server.federation.checkpoint.Checkpoint.reserve",
    "server.federation.checkpoint.Checkpoint.commit",
    "common.ledger.ledger.Ledger.reserve",
    "common.ledger.ledger.Ledger.keep",
    "common.ledger.ledger.Ledger.survivors",
    "common.ledger.ledger.Ledger.commit",
    "common.ledger.ledger.Ledger.commit_before",
    "common.ledger.ledger.Ledger.data_set",
    "common.ledger.ledger.Ledger.forget",
    "server.llm.cache._write",
    "server.llm.builtin.model.BuiltinModel._write",
    "client.service.PartyService.handle",
    "client.answer.answer",
    "client.secagg.Ready.mask",
    "client.secagg.Masked.agree",
    "client.secagg.Agreed.unmask",
    "server.federation.secagg.collect_adverts",
    "server.federation.secagg.Sharing.collect",
    "server.federation.secagg.Masking.close",
    "server.federation.secagg.Unmasking.combine",
    "server.federation.ask.Federation.open",
    "server.federation.ask.Federation.close",
    "server.evaluation.small_model.metrics",
    "server.run.write_report",
    "simulations.run._compare",
)


class Diary:
    """A file with one JSON line for each entry, which is written at once."""

    def __init__(self, path):
        self.path = path

    def write(self, kind, *values):
        with self.path.open("a") as file:
            file.write(json.dumps([kind, *values]) + "\n")

    def read(self, kind):
        entries = map(json.loads, self.path.read_text().splitlines()) if self.path.exists() else ()
        return [values for what, *values in entries if what == kind]


def arm(diary, event=None):
    """Wrap all calls in `POINTS`: die at event number `event`, from 0; if it is None, only write the diary.

    Return a function that returns the number of events so far.
    """
    count, one_at_a_time = 0, threading.Lock()  # parties answer in threads: no two may be the same event

    def happens(what):
        nonlocal count
        with one_at_a_time:
            if count == event:
                diary.write("died", what)
                die()
            count += 1

    def wrap(name):
        owner, attribute = _owner(name)
        inner = getattr(owner, attribute)

        @functools.wraps(inner)
        def wrapped(*args, **kwargs):
            happens(f"before {name}")
            _note(diary, name, args, kwargs)
            result = inner(*args, **kwargs)
            if name == "client.answer.answer":
                diary.write("answer", kwargs["index"], kwargs["party"].ledger._path.name, _digest(result))
            happens(f"after {name}")
            return result

        setattr(owner, attribute, wrapped)

    for name in POINTS:
        wrap(name)
    return lambda: count


def _note(diary, name, args, kwargs):
    if name == "server.llm.builtin.model.BuiltinModel._write":
        model, request = args[:2]
        diary.write("request", request.key(model.identity))
    if name == "server.federation.checkpoint.Checkpoint.commit":
        _, index, total = args
        diary.write("total", index, _digest(total))


def _digest(array):
    return hashlib.sha256(array.tobytes()).hexdigest()


def _owner(name):
    path, attribute = name.rsplit(".", 1)
    return pkgutil.resolve_name(path), attribute
