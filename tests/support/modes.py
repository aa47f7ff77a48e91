"""The parties of a federation in each mode, with services that restart and coordinators that forget."""

from common.ledger.ledger import Ledger
from tests.support.federations import federation, plan, records, roster, service

MODES = {
    "alone": {"parties": 1},
    "unmasked": {"parties": 3, "secure": False},
    "masked": {"parties": 3},
    "signed": {"parties": 3, "roster": roster(3).digest.hex()},
}


class World:
    """The parties of one mode with their ledgers; `private` returns a party's records."""

    def __init__(self, folder, mode, *planned, private=records, **changes):
        settings = MODES[mode] | changes
        self.folder, self.count = folder, settings.pop("parties")
        self.agreed = plan(self.count, queries=planned, **settings)
        self.private = [private(party) for party in range(self.count)]
        self.known = roster(3) if self.agreed.malicious else None
        self.restart()

    def of_service(self, party):
        """Return further settings of a party's service."""
        return {}

    def restart(self):
        self.services = [
            service(self.folder, party, mine, known=self.known, **self.of_service(party))
            for party, mine in enumerate(self.private)
        ]

    def coordinator(self, *, fresh=False, **faults):
        """One that goes on, or one that has forgotten all."""
        folder = self.folder
        if fresh:
            folder = folder / f"fresh-{len(list(folder.iterdir()))}"
            folder.mkdir()
        made = federation(folder, self.services, self.agreed, known=self.known, **faults)
        made.open()
        return made

    def ledgers(self):
        return [Ledger(self.folder / f"party-{party}.db").entries() for party in range(self.count)]
