"""What fixed runs compute, compared with what they computed before: `make golden`; ACCEPT=yes records it anew.

Each run covers a method, a kind of task or a mode of protection. Digests are compared of its plan, of each message
between the parties and the coordinator, of the ledgers' events, of the stored replies' keys and of the released texts.
All randomness is fixed, that of noise and keys too. Models round by processor: compare on the machine that recorded.
"""

import contextlib
import hashlib
import itertools
import json
import logging
import os
import secrets
import sqlite3
import sys
import tempfile
from pathlib import Path
from unittest import mock

from client.writers import causal_model
from common import wire
from server.prepare.compose import compose_settings
from simulations.run import simulate
from tests.mutations import say
from tests.support.loopback import Loopback
from tests.support.runs import labelled, sections_task, with_columns

RECORDED = Path(__file__).with_suffix(".json")
DEMO = ("task=demo_notes", "task.records_per_party=16", "task.test_records=24", "task.public_notes=120")
TERMS = "fever\ncough\nchest pain\noxygen\nlactate\nswelling\nantibiotics\n"

WASP = ("method=wasp", "method.samples=60", "method.rounds=3", "method.top=3", "method.shots=4")
AUG_PE = ("method=aug_pe", "method.samples=24", "method.rounds=2")
CLASS_SUMS = ("method=class_sums", "method.samples=24", "method.rounds=2", "method.directions=6")
KEYPHRASES = ("method=dp_kps", "method.samples=24", "method.rounds=1", "method.length=4", "method.features=40")
RPSG = ("method=rpsg", "method.samples=16", "method.pool=16", "method.rounds=2", "llm.use=[broad,noisy]")
METADATA = ("method=dpga", "method.samples=12", "method.rounds=2", "method.keywords=4", "method.longest=80")
ALONE = ("federation.parties=1",)
REMOTE = "llm.models"
PORT = 28473
"""Fixed, since the address of a model's server is part of the keys of its replies."""


def runs(folder: Path, server: Loopback) -> dict[str, tuple[str, ...]]:
    """Return the overrides of each run, by its name."""
    vocabulary = folder / "terms.txt"
    vocabulary.write_text(TERMS)
    terms = (f"method.vocabulary={vocabulary}", "method.kept_terms=4")
    task = labelled(folder / "task")
    several = labelled(folder / "several")
    with_columns(folder / "several", ("text", "labels"), lambda text, row: (text, ("a", "a;b", "b;a", "b")[row % 4]))
    unlabelled = ["task.labels=unlabelled" if "labels=" in line else line for line in task]
    sections = folder / "sections"
    sections.mkdir()
    texts_in_sections = sections_task(sections)
    small = ("method.samples=8", "method.rounds=1")
    return {
        "wasp": WASP,
        "wasp without noise": (*WASP, "privacy.epsilon=inf"),
        "wasp at half the budget, smoothed": (*WASP, "privacy.epsilon=2", "method.smoothing=true"),
        "wasp without masks": (*WASP, "secagg=none"),
        "wasp under malicious aggregation": (*WASP, "secagg=malicious"),
        "wasp by a trusted coordinator": (*WASP, "privacy=central", "secagg=none"),
        "wasp with one party": (*WASP, *ALONE),
        "wasp of patients": (*WASP, "privacy.unit=user", "privacy.max_records=4"),
        "wasp, one party may drop out": (*WASP, "federation.max_dropouts=1", "federation.parties=4"),
        "wasp on labels by name": (*WASP, *task),
        "aug_pe": (*AUG_PE, "method.look_ahead=1"),
        "aug_pe sampling": (*AUG_PE, "method.select=sample", "method.threshold=1.0"),
        "aug_pe_plus": (*AUG_PE, "method=aug_pe_plus", "method.terms=2", *terms),
        "pre_text": ("method=pre_text", "method.samples=24", "method.rounds=2", "method.seeds=12"),
        "fusegen": ("method=fusegen", "method.samples=24", "method.rounds=2"),
        "class_sums": (*CLASS_SUMS, "method.labels=requested", "method.need=false"),
        "class_sums that plans its questions": CLASS_SUMS,
        "class_sums of messages": (*CLASS_SUMS, "task=demo_messages"),
        "class_sums of letters in sections": (*CLASS_SUMS, "task=demo_letters", "method.samples=28"),
        "class_sums of sections": (*CLASS_SUMS, *texts_in_sections),
        "class_sums of one population": (*CLASS_SUMS, *unlabelled),
        "class_sums of several labels": (*CLASS_SUMS, *several, "task.labels_per_text=2"),
        "dp_kps": (*KEYPHRASES, *terms, "method.mechanism=gaussian"),
        "dp_kps in sequence": (*KEYPHRASES, *terms, "method.mechanism=laplace", "method.sequence=iterative"),
        "dpga": (*METADATA, "method.bins=20", "method.buckets=16", "method.tau=null"),
        "rpsg by choices": (*RPSG, "method.candidates=pool"),
        "rpsg by votes": (*RPSG, "method.candidates=histogram"),
        "rupta": ("method=rupta", *small, *ALONE),
        "dp_sgd": ("method=dp_sgd", *small, *ALONE, "method.steps=3", "method.rate=1.0", "method.max_tokens=32"),
        "only_private": ("method=only_private",),
        "private_exemplars": ("method=private_exemplars", "method.samples=24"),
        "wasp by a remote model": (
            *WASP,
            "llm=openai",
            "llm.use=[small]",
            f"{REMOTE}.small.base_url={server.url}/v1",
            f"{REMOTE}.small.model=test-model",
            f"{REMOTE}.small.concurrency=1",
        ),
        "aug_pe by another remote model": (
            *AUG_PE,
            "llm=anthropic",
            "llm.use=[haiku]",
            f"{REMOTE}.haiku.base_url={server.url}",
            f"{REMOTE}.haiku.model=test-model",
            f"{REMOTE}.haiku.concurrency=1",
        ),
    }


def digests(folder: Path, overrides: tuple[str, ...]) -> dict[str, str]:
    """Make a run with fixed randomness; return a digest of each thing that must stay as it is."""
    draws, messages = itertools.count(), []

    def token_bytes(count):
        return hashlib.shake_256(next(draws).to_bytes(8)).digest(count)

    def unpack(parcel, *rest, **settings):
        messages.append(_digest(parcel.envelope, parcel.bulk))
        return received(parcel, *rest, **settings)

    received = wire.unpack
    with (
        mock.patch.object(secrets, "token_bytes", token_bytes),
        mock.patch.object(os, "cpu_count", return_value=1),  # one thread: parties draw in order
        mock.patch.object(wire, "unpack", unpack),
        mock.patch.multiple(causal_model, _WIDTH=16, _LAYERS=1, _HEADS=2),
    ):
        task = () if any(override.startswith("task=") for override in overrides) else DEMO
        simulate(compose_settings(["run=" + 32 * "0", "evaluation.metrics=[]", *task, *overrides]), folder)
    ledgers = [line for path in sorted(folder.rglob("*.db")) for line in _events(path)]
    plans = sorted({event["plan"] for line in ledgers if "plan" in (event := json.loads(line))})
    replies = folder / "state" / "replies.db"
    keys = _rows(replies, "SELECT key FROM answers ORDER BY key") if replies.exists() else []
    return {
        "plan": " ".join(plans),
        "messages": _digest(*messages),
        "ledgers": _digest(*ledgers),
        "replies": _digest(*(key for (key,) in keys)),
        "texts": _digest((folder / "synthetic.jsonl").read_bytes()),
    }


def _events(path: Path) -> list[str]:
    if not _rows(path, "SELECT 1 FROM sqlite_master WHERE name = 'events'"):
        return []
    events = _rows(path, "SELECT position, kind, body FROM events ORDER BY sequence")
    bodies = [{"position": position, "kind": kind} | json.loads(body) for position, kind, body in events]
    return [json.dumps({name: value for name, value in body.items() if name != "time"}) for body in bodies]


def _rows(path: Path, query: str) -> list[tuple]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def _digest(*parts: bytes | str) -> str:
    whole = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else bytes(part)
        whole.update(len(content).to_bytes(8) + content)
    return whole.hexdigest()[:16]


def main() -> int:
    """Compare all runs, or those that are named; return 1 if one differs."""
    logging.disable()
    os.environ |= {"OPENAI_API_KEY": "a-key-of-nobody", "ANTHROPIC_API_KEY": "a-key-of-nobody"}
    known = json.loads(RECORDED.read_text())
    named, accept = [name for name in sys.argv[1:] if name != "--accept"], "--accept" in sys.argv
    differ = 0
    server = Loopback(PORT)
    try:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            for number, (name, overrides) in enumerate(runs(folder, server).items()):
                if named and name not in named:
                    continue
                made, server.seen = digests(folder / str(number), overrides), []
                changed = [what for what, digest in made.items() if known.get(name, {}).get(what) != digest]
                differ += bool(changed)
                say(f"{name}: {'differs in ' + ', '.join(changed) if changed else 'equal'}")
                known[name] = made
    finally:
        server.close()
    if accept:
        RECORDED.write_text(json.dumps(known, indent=1) + "\n")
    return 0 if accept else min(differ, 1)


if __name__ == "__main__":
    sys.exit(main())
