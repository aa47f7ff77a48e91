"""An adversarial coordinator that breaks every rule, run against real party services. A protocol review can start here.

    adversary = Adversary(tmp_path, 6, corrupt={4, 5})              four honest parties, and two that collude with it
    attack = adversary.attack(Shown(PLAN, QUERY), {0: Shown(OTHER, QUERY)})    party 0 is shown another plan
    attack.agree({0: {0, 1, 4, 5}}, otherwise=range(6)).unmask()    party 0 is told another set of survivors
    attack.opened(), attack.lifted(), attack.charges                what the adversary learned, and what it cost

The adversary reaches the services through the wire format alone, and can show each honest party a different run. In
each of these runs the colluding parties follow the protocol, but disclose all their keys and shares to the adversary,
and sign whatever helps it. What it can decrypt in the end is computed from everything that it received, and compared
with the answers in the honest parties' own ledgers: `opened` tries the sum over every set of honest parties, and
therefore every individual answer too. After a refusal the adversary continues with the other parties.
"""

import itertools
from collections import defaultdict
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

import numpy as np

from client import secagg
from client.guard import Limits
from common import messages as m
from common import wire
from common.errors import CaucusError
from common.ledger.ledger import Ledger
from common.plan.aggregation import aggregation_setup
from common.plan.plan import Plan
from common.queries.closed_set import Query, digest
from common.rng import secure_bytes
from common.secagg import ring, rules, shamir
from common.secagg.keys import KeyPair, Secret, mask_key, open_sealed
from common.secagg.masks import add_masks
from simulations.federation.parties import LastValues
from tests.support.federations import IDENTITIES, roster, service
from tests.support.shares import combine


@dataclass(frozen=True)
class Shown:
    """What one party is shown of the run; `first` replaces the number in its Open, `envelope` replaces more fields."""

    plan: Plan
    query: Query
    _: KW_ONLY
    run: str = "run"
    attempt: int = 0
    index: int = 0
    first: int | None = None
    envelope: dict = field(default_factory=dict)

    def parcel(self, party, body):
        place = {"run": self.run, "plan_digest": self.plan.digest(), "index": self.index, "attempt": self.attempt}
        return wire.pack(m.Envelope(**{"party": party, "body": body} | place | self.envelope))

    @cached_property
    def opening(self):
        return m.Open(self.plan.to_json(), self.index if self.first is None else self.first)

    @cached_property
    def setup(self):
        return aggregation_setup(self.plan, self.run, attempt=self.attempt, first=self.opening.first)


class Adversary:
    """The honest parties' services, which outlive a set-up; `rosters` contains rosters for individual parties."""

    def __init__(self, folder, parties, *, corrupt=(), limits=None, private=None, signed=True, rosters=None):
        folder.mkdir(exist_ok=True)
        self.parties, self.corrupt = range(parties), frozenset(corrupt)
        self.known = roster(parties) if signed else None
        self.rosters = dict.fromkeys(self.parties, self.known) | (rosters or {})
        self.honest = [party for party in self.parties if party not in self.corrupt]
        shared = LastValues()  # no check of one party may serve another that is shown something else
        self.services = {
            party: service(
                folder,
                party,
                (private or {}).get(party),
                limits=limits or Limits(),
                known=self.rosters[party],
                compute=shared,
            )
            for party in self.honest
        }
        self.ledgers = {party: Ledger(folder / f"party-{party}.db") for party in self.honest}
        self.replies = defaultdict(list)

    def attack(self, shown, others=None, tamper=lambda _party, body: body):
        """Run a set-up and a question, as far as the services allow; `tamper` modifies individual messages."""
        return Attack(self, {party: (others or {}).get(party, shown) for party in self.parties}, tamper)

    def send(self, party, shown, body):
        """Return the reply to a request; None for a refusal, of which the reason is stored."""
        reply = wire.unpack(self.services[party].handle(shown.parcel(party, body))).body
        self.replies[party].append(reply.reason.name if isinstance(reply, m.Refusal) else type(reply).__name__)
        return None if isinstance(reply, m.Refusal) else reply


class Attack:
    """One set-up with one question; `words` and `survivors` contain each honest party's masked answer and survivors."""

    def __init__(self, adversary, shown, tamper):
        self.adversary, self.shown, self._tamper = adversary, shown, tamper
        self.words, self.survivors, self.signatures = {}, {}, {}
        self._seeds, self._keys = defaultdict(dict), defaultdict(dict)  # by owner and holder: shares
        self._transcripts = {}
        self._corrupt = {}  # by corrupt party and world: what it knows there
        self._advertise()
        self._share()
        self._ask()

    def _advertise(self):
        adversary = self.adversary
        self.adverts = {}
        for party in adversary.honest:
            if reply := self._send(party, self.shown[party].opening):
                self.adverts[party] = reply.advert
        for party, (world, first) in itertools.product(adversary.corrupt, self._worlds().items()):
            setup, known = self.shown[first].setup, adversary.rosters[first]
            signed = {"identity": IDENTITIES[party], "roster": known} if setup.roster_digest else {}
            with suppress(CaucusError):  # a world whose roster it is not on
                self._corrupt[party, world] = _Corrupt(*secagg.begin(setup, party, secure_bytes(32), **signed))

    def _worlds(self):
        """Return the worlds that honest parties have entered, each with its first party."""
        worlds = {}
        for party in self.adverts:
            worlds.setdefault(self.shown[party].setup.binding, party)
        return worlds

    def adverts_for(self, party):
        """Return the keys that a party is shown: of honest parties, and of corrupt parties in this party's world."""
        binding = self.shown[party].setup.binding
        return self.adverts | {party: keys.advert for (party, world), keys in self._corrupt.items() if world == binding}

    def _share(self):
        self._sealed = {}  # by sender: receiver to ciphertext
        for party in self.adversary.honest:
            if self.adverts.get(party) and (reply := self._send(party, m.AskShares(self.adverts_for(party)))):
                self._sealed[party] = reply.sealed
        for (party, world), keys in self._corrupt.items():
            with suppress(CaucusError):  # an honest party's keys are not of this world
                sealed = keys.share(self.adverts_for(self._worlds()[world]))
                in_world = {to: text for to, text in sealed.items() if self.shown[to].setup.binding == world}
                self._sealed[party] = self._sealed.get(party, {}) | in_world

    @property
    def sharers(self):
        """U2: the parties that have shared."""
        return frozenset(self._sealed)

    def transcript(self, party):
        """Return the hash of the keys that a party was shown, once all are there; None if invalid in its world."""
        if party not in self._transcripts:
            shown, adverts, transcript = self.shown[party], self.adverts_for(party), None
            with suppress(CaucusError):
                transcript = rules.check_adverts(shown.setup, adverts, self.adversary.rosters[party], "adversary")[0]
            self._transcripts[party] = transcript
        return self._transcripts[party]

    def binding(self, party):
        """Return the binding of the party's secrets for this round."""
        return rules.round_context(self.transcript(party), self.shown[party].index)

    def asked(self, party):
        """Return the binding of the party's masks, which includes the query."""
        return rules.about(self.binding(party), digest(self.shown[party].query))

    def _ask(self):
        for party in self.adversary.honest:
            if party not in self._sealed:
                continue
            inbox = {sender: sealed[party] for sender, sealed in self._sealed.items() if party in sealed}
            ask = m.Ask(self.shown[party].query, m.Delivery(inbox, self.sharers))
            if reply := self._send(party, ask):
                self.words[party] = reply.words
        for (party, _), keys in self._corrupt.items():
            for sender in self.adversary.honest:  # a corrupt party's shares of their secrets, which it tells at once
                shown, sealed = self.shown[sender], self._sealed.get(sender, {}).get(party)
                if sealed and (pairs := keys.opened(sender, party, sealed)):
                    place = list(shown.setup.rounds).index(shown.index)
                    pair = pairs[place * shamir.PAIR_BYTES : (place + 1) * shamir.PAIR_BYTES]
                    self._seeds[sender][party], self._keys[sender][party] = rules.split_shares(pair)

    def agree(self, survivors=None, *, otherwise=None):
        """Name the survivors to each honest party, by default all parties that shared, and collect the signatures.

        Args:
            survivors: Survivors that are named to a party, keyed by party.
            otherwise: Survivors that are named to all other parties.
        """
        everybody = frozenset(self.sharers if otherwise is None else otherwise)
        self.survivors = {party: frozenset((survivors or {}).get(party, everybody)) for party in self.words}
        for party in self.words:
            if self.shown[party].plan.malicious and (reply := self._send(party, m.AskAgree(self.survivors[party]))):
                self.signatures[party] = reply.signature
        return self

    def unmask(self, survivors=None, *, otherwise=None, asking=None):
        """Ask honest parties, or those in `asking`, for unmasking shares, after agreeing on survivors (`agree`)."""
        if not self.survivors:
            self.agree(survivors, otherwise=otherwise)
        for party in self.words if asking is None else asking:
            if reply := self._send(party, m.AskUnmask(self.survivors[party], self._helpful(party))):
                for owner, share in reply.self_seeds.items():
                    self._seeds[owner][party] = share
                for owner, share in reply.mask_keys.items():
                    self._keys[owner][party] = share
        return self

    def _helpful(self, party):
        """Return signatures that a party may accept: of parties that were shown the same, and of corrupt parties."""
        if not self.shown[party].plan.malicious:
            return {}
        survivors, query = self.survivors[party], self.asked(party)
        statement = rules.survivors_statement(query, self.sharers, survivors)
        signed = {party: IDENTITIES[party].sign(statement) for party in self.adversary.corrupt & survivors}
        same = [other for other in self.signatures if (self.survivors[other], self.asked(other)) == (survivors, query)]
        return signed | {other: self.signatures[other] for other in same}

    def opened(self):
        """Return the sets of honest parties for which the adversary can read the noised sum."""
        able = sorted(self.words)
        groups = (itertools.combinations(able, count) for count in range(1, len(able) + 1))
        return {frozenset(group) for group in itertools.chain(*groups) if self.reads(group)}

    def lifted(self):
        """Return the honest parties for which the adversary can read the individual noised answer."""
        return {party for party in self.words if self.reads([party])}

    def reads(self, group):
        """Return whether the adversary can read the noised sum over this group of honest parties."""
        total = self._total(frozenset(group))
        return total is not None and np.array_equal(total, sum(self.answers[party] for party in group))

    @cached_property
    def answers(self):
        """Return the noised answers of the honest parties that sent an answer, read from their ledgers."""
        kept = {}
        for party in self.words:
            shown = self.shown[party]
            entries = self.adversary.ledgers[party].entries(shown.run)
            kept[party] = next(np.frombuffer(e.answer, "<i8") for e in entries if e.index == shown.index)
        return kept

    def _total(self, group):
        sizes = {self.words[party].shape for party in group}
        if len(sizes) > 1 or any(self.transcript(party) is None for party in group):
            return None
        total = np.zeros(sizes.pop(), dtype=np.uint64)
        for party in sorted(group):
            seed = self._recovered(party, self._seeds)
            if seed is None:
                return None
            ring.add_into(total, self.words[party])
            add_masks(total, [(seed, -1)])
        for party, peer in itertools.product(sorted(group), sorted(self.sharers)):
            alike = peer in group and self.asked(party) == self.asked(peer)
            if party == peer or alike:  # masks between them cancel
                continue
            key = self._mask_key(party, peer)
            if key is None:
                return None
            add_masks(total, [(key, -rules.sign_of_mask(party, peer))])
        return ring.decode(total)

    def _mask_key(self, party, peer):
        """Return the key of the mask that `party` added for its peer, by either's private key; None if unknown."""
        shown, query = self.shown[party], self.asked(party)
        place = list(shown.setup.rounds).index(shown.index)
        publics = {other: advert.mask_publics[place] for other, advert in self.adverts_for(party).items()}
        if peer in self.adversary.corrupt:
            pair = self._corrupt[peer, shown.setup.binding].mask_keys[shown.index]
            return mask_key(pair, publics[party], query, peer, party).reveal()
        for owner, other in ((peer, party), (party, peer)):
            if (private := self._recovered(owner, self._keys)) is not None:
                return mask_key(KeyPair(Secret(private)), publics[other], query, owner, other).reveal()
        return None

    def _recovered(self, owner, shares):
        """Return the secret of which the adversary has enough shares; None if it has too few."""
        threshold = self.shown[owner].plan.threshold
        for holders in itertools.combinations(sorted(shares[owner]), threshold):
            parts = {rules.point_of(holder): shares[owner][holder] for holder in holders}
            try:
                return combine(parts, threshold, label=self.binding(owner))
            except CaucusError:
                continue
        return None

    @property
    def charges(self):
        """The charges in each honest party's ledger for the run that it was shown, keyed by party."""
        return {party: self.adversary.ledgers[party].releases(self.shown[party].run) for party in self.adversary.honest}

    def _send(self, party, body):
        return self.adversary.send(party, self.shown[party], self._tamper(party, body))


class _Corrupt:
    """A corrupt party in one world: it follows the protocol there, and discloses everything that it knows."""

    def __init__(self, state, advert):
        self.advert, self._state, self._sharing = advert, state, None
        self.mask_keys = {index: secrets.mask_keys for index, secrets in state._secrets.get().rounds.items()}

    def share(self, adverts):
        state, sealed = self._state.share(adverts)
        self._sharing = state._secrets.get()
        return sealed

    def opened(self, sender, receiver, sealed):
        """Return the plaintext that an honest party sealed for this party; None if it was sealed in another world."""
        if self._sharing is None:
            return None
        try:
            return open_sealed(self._sharing.agreed[sender], self._sharing.transcript, sender, receiver, sealed)
        except CaucusError:
            return None
