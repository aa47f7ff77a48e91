"""Deals private records to simulated parties and builds their services, using the same code that a hospital runs."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client import records
from client.admission import HospitalTerms
from client.service import PartyService
from client.settings import PartySettings
from common import rng
from common.compute import Arguments, Compute, Result
from common.domain import MOST_RECORDS, Record
from common.errors import ConfigError, DataError
from common.file_diagnosis import SEPARATOR
from common.labelled_files import named_by, read_records
from common.ledger.ledger import Ledger
from common.models.encoder import Encoder
from common.secagg.identity import Identity, Roster
from common.system.files import SECRET, write_atomic
from common.validate import at_least, positive
from server.prepare.automatic import expected_records, resolve_auto
from server.prepare.build import build, roster_of
from server.prepare.compose import check_simulation
from server.settings.schema import SimulationSettings
from server.settings.sections import NO_LABELS, setting, with_values
from server.settings.tasks import LabelledFilesSettings
from server.tasks.sources import Demo, LabelledFiles, Source
from simulations.private_evaluation import canaries, sites
from simulations.private_evaluation.canaries import Canary

log = logging.getLogger("caucus.simulation")


def prepare_settings(settings: SimulationSettings, folder: Path) -> SimulationSettings:
    """Return the settings with labels, a roster, an expected number of records, and a number for each `auto`."""
    return check_simulation(resolve_auto(with_number(with_identities(with_labels(settings), folder))))


def with_labels(settings: SimulationSettings) -> SimulationSettings:
    """Return the settings with labels, by default those of the training file, which only a simulation may read."""
    train = setting(settings, "task.train")
    if not train or setting(settings, "task.labels") or setting(settings, "task.sections"):
        return settings
    with named_by("task.train"):
        private = read_records(train, show_names=True)
    labels = sorted({label for record in private for label in record.labels})
    if len(labels) < 2:
        do = f"Set task.labels={NO_LABELS} to make all texts one population"
        raise DataError("task.train: labels", expected="at least two", got=len(labels), where=train, do=do)
    log.warning("%d labels taken from the private training file: simulation only", len(labels))
    of_sets = {label for record in private if record.more is not None for label in record.labels}
    if joined := sum("," in label for label in of_sets):
        log.warning("%d of them have a comma in their name: labels of a text are separated by %s", joined, SEPARATOR)
    return with_values(settings, {"task.labels": dict.fromkeys(labels), "labels_from_records": True})


def with_identities(settings: SimulationSettings, folder: Path) -> SimulationSettings:
    """Return the settings with a roster; if `secagg=malicious` lacks one, write a roster and identities to `folder`."""
    if not settings.secagg.malicious or settings.secagg.roster:
        return settings
    (folder / "parties").mkdir(parents=True, exist_ok=True)
    keys = {party: rng.secure_bytes(32) for party in range(settings.federation.parties)}
    for party, key in keys.items():
        write_atomic(_identity_file(folder, party), key, mode=SECRET)
    roster = folder / "parties" / "roster.json"
    known = {party: Identity(key).public for party, key in keys.items()}
    roster.write_text(Roster(known, settings.federation.max_records or MOST_RECORDS).to_json())
    return with_values(settings, {"secagg.roster": str(roster.resolve())})


def with_number(settings: SimulationSettings) -> SimulationSettings:
    """Return the settings with an expected number of records, by default the number in the training file."""
    if expected_records(settings) or not isinstance(settings.task, LabelledFilesSettings):
        return settings
    number = len(_pool(build(settings.task), settings.federation.parties))
    return with_values(settings, {"federation.expected_records": number or None})


def parties(settings: SimulationSettings, folder: Path) -> dict[int, PartyService]:
    """Return the service of each simulated party, keyed by number, with its own records, limits and ledger."""
    encoder: Encoder = build(settings.embedding)
    task = build(settings.task).task()
    hospital = party_settings(settings.client)
    writers = hospital.writers()
    (folder / "parties").mkdir(parents=True, exist_ok=True)
    roster = roster_of(settings) if settings.secagg.malicious else None
    shared = LastValues()
    return {
        party: PartyService(
            party=party,
            private=records.embed_records(private, encoder, task.headings),
            declared=settings.federation.max_records or len(private),
            terms=lambda: HospitalTerms(limits=hospital.limits),
            writers=writers,
            ledger=Ledger(folder / "parties" / f"{party:04}.db", durable=False),
            identity=Identity(_identity_file(folder, party).read_bytes()) if roster else None,
            roster=roster,
            compute=shared,
        )
        for party, private in enumerate(deal(settings))
    }


def party_settings(client: Mapping[str, Any]) -> PartySettings:
    """Return the settings that all simulated parties share.

    Raises:
        ConfigError: A key is unknown, or a limit is out of range.
    """
    return PartySettings.read(client, lambda key: f"client.{key} (configs/client.yaml)")


def deal(settings: SimulationSettings) -> list[list[Record]]:
    """Deal the private records to the parties as configured, with the style and the canaries that are planted.

    Raises:
        ConfigError: There are no private records, or fewer than the settings require.
        DataError: A file has an invalid row; or canaries are to begin like held-out texts, and a label has no such
            text.
    """
    source: Source = build(settings.task)
    task, why = source.task(), "as neither a planted record nor its style has sections"
    if settings.federation.canaries:
        task.check_whole("federation.canaries", why, "Leave out federation.canaries")
    if settings.federation.style_site is not None:
        task.check_whole("federation.style_site", why, "Leave out federation.style_site")
    dealt = _dealt(settings, source)
    if (site := settings.federation.style_site) is not None:
        dealt[site] = [replace(record, text=sites.STYLE.format(record.text)) for record in dealt[site]]
    for number, canary in enumerate(planted_canaries(settings, source)):
        if canary.inside:
            dealt[number % len(dealt)] += [canary.record] * settings.federation.canary_times
    return dealt


def planted_canaries(settings: SimulationSettings, source: Source) -> list[Canary]:
    """Return all canaries, whether or not they are inserted.

    Raises:
        DataError: Canaries are to begin like held-out texts, and a label has no such text.
    """
    federation, labels = settings.federation, list(source.task().labels)
    held_out = source.held_out() if federation.canaries and federation.canary_form == canaries.BEGINNING else None
    return canaries.canaries(federation.canaries, labels, settings.experiment_seed, held_out=held_out)


def _dealt(settings: SimulationSettings, source: Source) -> list[list[Record]]:
    federation, count = settings.federation, settings.federation.parties
    if isinstance(source, Demo) and federation.partition == "natural":
        size = source.records_per_party if federation.records is None else federation.records // count
        return [source.private(hospital, size) for hospital in range(count)]

    pool = _pool(source, count)
    generator = rng.experiment(settings.experiment_seed, "partition")
    if federation.records is not None:
        if not 1 <= federation.records <= len(pool):
            raise ConfigError("federation.records", expected=f"1 to {len(pool)}, all there are", got=federation.records)
        pool = [pool[i] for i in generator.choice(len(pool), federation.records, replace=False)]
    if federation.partition == "iid":
        shares = deal_iid(len(pool), count, generator)
    else:
        shares = dirichlet([record.label for record in pool], count, federation.alpha, generator)
    if settings.privacy.unit == "user":
        return _whole_users(shares, pool)
    return [[pool[i] for i in share] for share in shares]


def dirichlet(
    labels: Sequence[str], parties: int, alpha: float, generator: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Split the records of each class among the parties, in proportions from a symmetric Dirichlet distribution.

    This is the partition of Yurochkin et al. 2019 (section 4), which WASP uses with alpha = 1. (Hsu et al. 2019 draw
    class proportions for each party instead, with parties of equal size.) Some parties may get no record, since
    some hospitals have no matching ones.

    Args:
        labels: Label of each record.
        parties: Number of parties, at least 1.
        alpha: Concentration, above 0. If alpha is small, each class is at few parties; if alpha is large, all parties
            are similar.
        generator: Generator for the proportions and for the assignment of records.

    Returns:
        The indices of each party's records, ascending.

    Raises:
        ConfigError: `parties` or `alpha` is out of range.
    """
    at_least(1, parties=parties)
    positive(section="federation", alpha=alpha)
    owner = np.empty(len(labels), np.int64)
    names = np.array(labels, dtype=str)
    for label in np.unique(names):
        members = generator.permutation(np.flatnonzero(names == label))
        shares = generator.dirichlet(np.full(parties, alpha))
        cuts = np.rint(np.cumsum(shares)[:-1] * len(members)).astype(np.int64)
        for party, part in enumerate(np.split(members, cuts)):
            owner[part] = party
    return [np.flatnonzero(owner == party) for party in range(parties)]


def deal_iid(records: int, parties: int, generator: np.random.Generator) -> list[NDArray[np.int64]]:
    """Deal shuffled records one by one, so that the sizes of the parties differ by at most 1.

    Args:
        records: Number of records.
        parties: Number of parties, at least 1.
        generator: Generator for the shuffle.

    Returns:
        The indices of each party's records, ascending.

    Raises:
        ConfigError: `parties` is out of range.
    """
    at_least(1, parties=parties)
    shuffled = generator.permutation(records)
    return [np.sort(shuffled[party::parties]) for party in range(parties)]


def _whole_users(shares: Sequence[NDArray[np.int64]], pool: Sequence[Record]) -> list[list[Record]]:
    """Deal each user's records to the first party with any of them; a user at several parties is protected less.

    A party has its records in the order of `pool`, so that which of a user's records count does not depend on others.
    """
    home: dict[str, int] = {}
    places: list[list[int]] = [[] for _ in shares]
    for party, share in enumerate(shares):
        for place in share.tolist():
            user = pool[place].user
            places[party if user is None else home.setdefault(user, party)].append(place)
    return [[pool[place] for place in sorted(of_party)] for of_party in places]


def _pool(source: Source, count: int) -> list[Record]:
    if isinstance(source, Demo):
        return [text for hospital in range(count) for text in source.private(hospital, source.records_per_party)]
    if isinstance(source, LabelledFiles) and source.train:
        with named_by("task.train"):
            return source.read(source.train)
    raise ConfigError("task", expected="private records to deal out", got="none", do="Set task.train=PATH")


def _identity_file(folder: Path, party: int) -> Path:
    return folder / "parties" / f"{party:04}.key"


class LastValues(Compute):
    """A cache of each function's last value, for all parties that need the same value.

    A party gets a value that another party computed only if all arguments are equal, down to the last byte, so the
    result of a check is never used for other values. A function that raised an error is called again. The parties get
    one question after another, so one value per function is enough. Threads that need a value at the same time may each
    compute it.
    """

    def __init__(self) -> None:
        self._last: dict[Callable[..., Any], tuple[object, Any]] = {}

    def __call__(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Return the function's value for these arguments; compute it unless the last call had equal arguments."""
        computed_for, value = self._last.get(function, (None, None))
        if computed_for != (arguments, named):
            value = function(*arguments, **named)
            self._last[function] = (arguments, named), value
        return value  # type: ignore[no-any-return]
