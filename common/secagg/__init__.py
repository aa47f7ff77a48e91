"""Secure aggregation: the sum becomes known, the vectors do not. What is protected, against whom, and why.

The protocol of Bonawitz et al. 2017 ("Practical Secure Aggregation for Privacy-Preserving Machine Learning", figure 4),
on the full graph or on the k-regular one of Bell et al. 2020 ("Secure Single-Server Aggregation with (Poly)Logarithmic
Overhead"). `client/secagg.py` and `server/federation/secagg.py` hold its steps, each a state that is spent by its
transition.

Several rounds are R instances side by side with independent secrets. Only what carries the shares is common: one
ciphertext from each party to each neighbour holds the shares of all rounds. So each round's proof holds as it stands,
and a dropout in one round reveals nothing about another.

**What each side learns.** The coordinator: who took part and dropped at which step, the graph, and the sum over the
survivors, at least `SetUp.minimum_survivors` of them; nothing else about any vector. A party: the roster, who
advertised (U1), shared (U2) and survived (U3); nothing about any other vector. Colluders subtract their own vectors
from the sum: what is left is protected by noise alone.

**Semi-honest mode.** All follow the protocol; then the coordinator pools what it saw with `SetUp.corrupt` parties.
Bonawitz et al., section 6 (honest-but-curious server): a round's view can be simulated from its sum as long as fewer
than t holders of a party's shares are corrupt. On the full graph `SetUp` demands t > corrupt. On the k-regular graph:
Bell et al., section 3, with k and t from `graph.parameters`, for dropouts that happen at random.

**Malicious mode.** The coordinator and the corrupt parties may send anything to anybody.

1. Keys cannot be replaced: parties sign them, and each holds the roster of identities itself.
2. Parties that were shown different keys have different transcripts and cannot open each other's shares.
3. A round's (U2, U3) needs q > (L + corrupt) / 2 signatures (`SetUp.signers`) before a party unmasks, and an honest
   party signs once a round. Two different ones would need 2 q > L + corrupt signatures, but the L - corrupt honest
   parties give one each and the corrupt ones two. So all honest parties that unmask do it for one and the same
   (U2, U3), and nobody's seed and mask key both come out as long as fewer than t holders of its shares are corrupt.
4. Full graph. The honest survivors that signed hold the same U2 and are all masked with each other. Any other honest
   survivor u was shown a U2 of its own with q members that really shared with it; with the q signers it has at least
   2 q - L > corrupt parties in common, so an honest one, with which it is masked. No mask between honest survivors
   comes out, so nothing does but the sum over all of them, at least q - corrupt: Bonawitz et al., section 6 (active
   adversaries, random oracle).
5. k-regular graph. A coordinator that chooses who drops can try to cut the ring in two, and can show a survivor another
   U2. `graph.parameters` bounds the chance of a graph where that helps. It counts on all L parties; who lets a
   coordinator leave out parties from the start (`SetUp.minimum_survivors` of L must remain) gives it the corrupt
   fraction among those that remain.
6. The graph's seed, the transcript, can be ground: who sees the honest keys first may try other keys for corrupt
   parties, or leave parties out. After W tries a graph that is bad with probability δ is found with at most W·δ. Honest
   keys are fresh, so it cannot begin before them. Ask `graph.parameters` for 40 + log2 W bits, or use the full graph,
   where nothing can be chosen.

Both modes assume decisional Diffie-Hellman, a secure PRG and authenticated encryption (X25519 with HKDF-SHA256, AES-256
in counter mode, AES-256-GCM); the malicious one also unforgeable signatures (Ed25519).

**Forward secrecy.** A party's own seed and private mask key of a round are dropped when it, or a later one, is masked;
its peers' shares when it is unmasked, or when its state is let go of, at the latest for the next round's; sealing keys
as soon as the shares are in. Who takes a party's whole memory later, and has recorded all that was ever sent, learns
nothing of rounds dropped by then, unless t holders of some party's shares lost theirs before they dropped them. Rounds
still to come are lost with the memory. Dropped means unreachable: the interpreter does not overwrite what it frees.
Identities open nothing; who steals one can sign in future set-ups.

**Not covered.** A party that lies about its vector: masks hide nonsense as well as truth. Whoever wants a round to
fail can make it fail, never make it wrong unnoticed but by lying about a vector. Timing, sizes, who takes part. Two
sums of one query over different survivors can be subtracted; the ledger sees to it that there is one.

**Phases.** A set-up is 2 exchanges; a round is 2 more (mask, unmask), 3 in malicious mode (mask, agree, unmask); the
shares of the set-up travel with the first round's query. R rounds: 2 + 2 R or 2 + 3 R, where keys for each round alone
take 4 R or 5 R. Nothing depends on clocks: what comes late is known by its place, so their skew is of no matter.

**Decisions.** Set up once for all rounds, because a phase costs seconds in a deployment. Independent secrets, not round
keys derived from one: a recovered key would betray all rounds when a party drops in one. Cost: after a restart of
either side the rounds that are left need a new set-up, with the next attempt. Survivors agreed among all rather than
among neighbours (Bell et al., section 4), so the sum is over all; cost: q signatures to verify. Not the engine's own
SecAgg+ (Flower 1.41): its masks come from a generator seeded with 32 bits folded from the 32-byte secret, so they can
be searched; it clips large values silently, so its sum can be wrong without a word; one dropout before masking aborts
its round.
"""
