"""Deals private records out to simulated parties and builds their services: the same code that a hospital runs."""

import logging
from pathlib import Path

from hydra.utils import instantiate
from omegaconf import DictConfig

from client import records
from client.guard import Limits
from client.service import PartyService
from common import rng, validate
from common.data import demo_notes
from common.data.load import duplicates, read_records
from common.data.partition import dirichlet, iid
from common.data.sources import DemoNotes, LabelledFiles, Source
from common.domain import Record
from common.embedding import Encoder
from common.errors import ConfigError
from common.privacy.ledger import Ledger

log = logging.getLogger("caucus.simulation")


def with_labels(config: DictConfig) -> DictConfig:
    """Take missing labels from the training file. Only a simulation may: otherwise labels are public knowledge."""
    if config.task.get("train") and not config.task.labels:
        labels = sorted({record.label for record in read_records(Path(config.task.train), None)})
        config.task.labels = dict.fromkeys(labels)
        log.warning("%d labels taken from the private training file: simulation only", len(labels))
    return config


def parties(config: DictConfig, folder: Path) -> dict[int, PartyService]:
    """One service for each simulated party, with its records, limits and a ledger of its own."""
    encoder: Encoder = instantiate(config.embedding, _convert_="all")
    limits: Limits = instantiate(config.client, _convert_="all")
    (folder / "parties").mkdir(parents=True, exist_ok=True)
    return {
        party: PartyService(
            party=party,
            private=private,
            encoder=encoder,
            limits=limits,
            ledger=Ledger(folder / "parties" / f"{party:04}.db"),
        )
        for party, private in enumerate(deal(config))
    }


def deal(config: DictConfig) -> list[list[Record]]:
    """The private records of each party, by the configured partition.

    Raises:
        ConfigError: More records asked for than there are, or an unknown partition.
    """
    source: Source = instantiate(config.task, _convert_="all")
    wanted, count = config.federation, config.federation.parties
    validate.at_least(1, **{"federation.parties": count})
    validate.one_of(("natural", "dirichlet", "iid"), **{"federation.partition": wanted.partition})
    if isinstance(source, DemoNotes) and wanted.partition == "natural":
        each = source.records_per_party if wanted.records is None else wanted.records // count
        return [demo_notes.private_notes(hospital, each, source.corpus_seed) for hospital in range(count)]

    pool = _pool(source, count)
    generator = rng.experiment(config.experiment_seed, "partition")
    if wanted.records is not None:
        if not 1 <= wanted.records <= len(pool):
            raise ConfigError("federation.records", expected=f"1 to {len(pool)}, all there are", got=wanted.records)
        pool = [pool[i] for i in generator.choice(len(pool), wanted.records, replace=False)]
    if wanted.partition == "iid":
        shares = iid(len(pool), count, generator)
    else:
        shares = dirichlet([record.label for record in pool], count, wanted.alpha, generator)
    dealt = [[pool[i] for i in share] for share in shares]
    absent = len(source.task().labels) - len({record.label for record in pool})
    if absent:
        log.warning("%d of %d labels have no record: their votes are noise alone", absent, len(source.task().labels))
    empty = sum(not share for share in dealt)
    if empty:
        log.warning("%d of %d parties have no record: they contribute noise alone", empty, count)
    return dealt


def _pool(source: Source, count: int) -> list[Record]:
    if isinstance(source, DemoNotes):
        return [
            note
            for hospital in range(count)
            for note in demo_notes.private_notes(hospital, source.records_per_party, source.corpus_seed)
        ]
    if isinstance(source, LabelledFiles) and source.train:
        pool = records.read(Path(source.train), list(source.task().labels))
        repeated = duplicates(pool)
        if repeated:
            log.warning("%d rows of the training file repeat others; each votes", repeated)
        return pool
    raise ConfigError("task", expected="private records to deal out", got="none", do="Set task.train=PATH")
