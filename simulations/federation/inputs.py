"""Weaknesses of the files of a simulation, logged once, before its parties are built, and kept for its report.

A simulation has all records in one place and may count them. In a deployment the coordinator sees no records and cannot
give such warnings.
"""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from itertools import chain
from pathlib import Path

from common.domain import Record, is_one_population
from common.errors import CheckpointError, ConfigError
from common.system.files import SECRET, write_atomic
from server.documents.run import InputWeaknesses, Weakness, WeaknessCode
from server.planning.make_plan import check_delta, large_delta
from server.prepare.build import build
from server.report.quality import ACCURACY, MICRO_F1
from server.settings.schema import SimulationSettings
from server.settings.sections import setting
from server.tasks.sources import LabelledFiles, Source
from simulations.federation import parties

log = logging.getLogger("caucus.simulation")

INPUTS = "inputs.json"
"""File in `parties` with digests of the private records and of the other texts. Like the ledgers beside it, it tells of
records without noise, and only its owner can read it: a simulation hides nothing from its operator."""
_MOST_SHARED = 0.1
"""Largest fraction of the private texts that may also be public texts; above it the run is refused."""
_SHOWN = 5
"""Maximum number of labels that are named in a warning."""


def check_inputs(settings: SimulationSettings, folder: Path) -> None:
    """Log and keep weaknesses of the data that make results worse or misleading, before any party is built.

    Args:
        settings: The complete settings.
        folder: The run folder, which keeps the weaknesses for the report, and digests of records and texts: a run goes
            on with those that it began with.

    Raises:
        CheckpointError: The run was begun with other records or texts.
        ConfigError: δ is one over a party's number of records, or above, so that the party would refuse each plan; more
            than a tenth of the private texts are in the public text (models learn from public text, and
            prompts show it word for word), or the records cannot be dealt out as configured.
        DataError: A file cannot be read.
    """
    source: Source = build(settings.task)
    dealt = parties.deal(settings)
    private = list(chain.from_iterable(dealt))
    check_delta(settings.privacy.delta, settings.federation.max_records or max(map(len, dealt)))
    held_out = source.held_out()
    public = source.public_texts() if isinstance(source, LabelledFiles) and source.public_text else []
    weaknesses = (
        *_dealing(source, dealt),
        *_labels(source, private),
        *_guarantee(settings, private),
        *_other_files(source, private, held_out, public),
    )
    for line in (*_notes(settings, source, held_out), *weaknesses):
        log.warning("%s", line)
    content = {
        "task.train": [[astuple(record) for record in share] for share in dealt],
        "task.test": [astuple(record) for record in held_out],
        "task.public_text": public,
    }
    _check_unchanged(settings, content, folder / "parties" / INPUTS)
    InputWeaknesses(weaknesses=weaknesses).save(folder)


def _check_unchanged(settings: SimulationSettings, content: Mapping[str, object], path: Path) -> None:
    digests = {name: hashlib.sha256(json.dumps(rows).encode()).hexdigest() for name, rows in content.items()}
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, json.dumps(digests).encode(), mode=SECRET)
        return
    known = json.loads(path.read_text())
    for name, digest in digests.items():
        if digest != known[name]:
            raise CheckpointError(
                name,
                expected="what the run was begun with",
                got="other records" if name == "task.train" else "other texts",
                where=setting(settings, name),
                do="Restore it, or start a new run: noise for some records does not protect others",
            )


def _notes(settings: SimulationSettings, source: Source, held_out: Sequence[Record]) -> Iterator[str]:
    """Yield what is no weakness of the files, but may surprise; the report says by itself what was not measured."""
    if isinstance(source, LabelledFiles) and settings.federation.partition == "natural":
        yield (
            "federation.partition=natural: the file of records does not say which hospital has which, so they are "
            f"dealt as by dirichlet with federation.alpha={settings.federation.alpha:g}; iid makes all alike"
        )
    if not held_out:
        yield f"no held-out texts (task.test): no {_measure(source)} and no FID will be measured"


def _measure(source: Source) -> str:
    task = source.task()
    return MICRO_F1 if task.labels_per_text > 1 and not task.headings else ACCURACY


def _dealing(source: Source, dealt: Sequence[Sequence[Record]]) -> Iterator[Weakness]:
    rows = list(chain.from_iterable(dealt))
    if isinstance(source, LabelledFiles) and (repeated := len(rows) - len(set(rows))):
        what = f"{repeated} rows of the training file repeat others, and each votes"
        yield _private(WeaknessCode.RECORDS_REPEATED, what, "Remove those that are no records of their own")
    if empty := sum(not share for share in dealt):
        what = f"{empty} of {len(dealt)} parties have no record: they contribute only noise"
        yield _private(WeaknessCode.PARTIES_WITHOUT_RECORD, what, "Take fewer parties (federation.parties)")


def _labels(source: Source, private: Sequence[Record]) -> Iterator[Weakness]:
    task = source.task()
    labels = task.labels
    if is_one_population(labels):
        return
    counts = Counter(label for record in private for label in task.labels_of(record))
    if task.one_label and (several := sum(bool(record.more) for record in private)):
        what = f"{several} rows have several labels, of which only the first counts"
        yield _private(WeaknessCode.LABELS_IGNORED, what, "Raise task.labels_per_text")
    if absent := [label for label in labels if not counts[label]]:
        what = f"{len(absent)} of {len(labels)} labels have no record: their votes are only noise"
        do = "Leave out of task.labels those that you know to be absent without the records"
        yield _private(WeaknessCode.LABELS_WITHOUT_RECORD, what, do)
    if single := [label for label in labels if counts[label] == 1]:
        named = ", ".join([*single[:_SHOWN], *["..."] * (len(single) > _SHOWN)])
        what = f"{len(single)} of {len(labels)} labels have one record, too few to be seen in the noise: {named}"
        yield _private(WeaknessCode.LABELS_WITH_ONE_RECORD, what, "Look whether a label is misspelt")


def _guarantee(settings: SimulationSettings, private: Sequence[Record]) -> Iterator[Weakness]:
    of_users = settings.privacy.unit == "user"
    if of_users and (unnamed := sum(record.user is None for record in private)):
        yield _private(
            WeaknessCode.RECORDS_WITHOUT_USER,
            f"privacy.unit=user, and {unnamed} of {len(private)} records name no user: at a party these are one user "
            "of whom a query counts only as many records as the plan protects",
            "Name users in a column user",
        )
    units = len({record.user for record in private}) if of_users else len(private)
    for line in large_delta(settings.privacy.delta, units, f"the number of {'users' if of_users else 'records'}"):
        yield Weakness.from_advice(WeaknessCode.LARGE_DELTA, line, simulation_only=True)


def _other_files(
    source: Source, private: Sequence[Record], held_out: Sequence[Record], public_texts: Sequence[str]
) -> Iterator[Weakness]:
    if not isinstance(source, LabelledFiles):
        return
    texts = {_normal(record.text) for record in private}
    public = set(map(_normal, public_texts))
    for code, known, where, private_only in (
        (WeaknessCode.TEST_TEXTS_PRIVATE, texts, "private records too", True),
        (WeaknessCode.TEST_TEXTS_PUBLIC, public, "in task.public_text too, from which models learn", False),
    ):
        if shared := sum(_normal(record.text) in known for record in held_out):
            what = f"{shared} of {len(held_out)} texts of task.test are {where}: the {_measure(source)} is too high"
            yield Weakness(code=code, what=what, do="Take other texts (task.test)", simulation_only=private_only)
    if shared := len(texts & public):
        if shared > _MOST_SHARED * len(texts):
            raise ConfigError(
                "task.public_text",
                expected="text that is public",
                got=f"{shared} of {len(texts)} private texts, those of task.train",
                where=source.public_text,
                do="Remove them, or name another file, or none: task.public_text=null",
            )
        yield _private(
            WeaknessCode.PRIVATE_TEXTS_PUBLIC,
            f"{shared} of {len(texts)} private texts are in task.public_text too: models learn from them and prompts "
            "show them word for word, which no guarantee covers",
            "Remove them from task.public_text",
        )


def _private(code: WeaknessCode, what: str, do: str) -> Weakness:
    """Return a weakness that reveals something about the private records without noise."""
    return Weakness(code=code, what=what, do=do, simulation_only=True)


def _normal(text: str) -> str:
    """Return the text in lower case, with single spaces, for comparisons that ignore case and white space."""
    return " ".join(text.casefold().split())
