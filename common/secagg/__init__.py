"""Secure aggregation, which reveals the sum but not the vectors: protection goals, threat model and proofs.

This is the protocol of Bonawitz et al. 2017 ("Practical Secure Aggregation for Privacy-Preserving Machine Learning",
figure 4), on the full graph or on the k-regular one of Bell et al. 2020 ("Secure Single-Server Aggregation with
(Poly)Logarithmic Overhead"). `client/secagg.py` and `server/federation/secagg.py` have its steps; each step is a state
that its transition consumes.

R rounds are R parallel instances with independent secrets. They share only the transport of the shares: one
ciphertext from each party to each neighbour contains the shares of all rounds. So the proof of a single round applies
to each round, and a dropout in one round reveals nothing about another.

**What each side learns.** The coordinator learns who took part, who dropped out at which step, the graph, and the sum
over the survivors, at least `AggregationSetup.minimum_survivors` of them, but nothing else about any vector. A party
learns the roster and who advertised (U1), shared (U2) and survived (U3), but nothing about any other party's vector.
Colluders can subtract their own vectors from the sum; the rest is protected by noise alone.

**What all must agree on, and what binds it.** A coordinator may send different data to each party. So masks cancel,
shares open and signatures verify only among parties that received the same values of everything that determines what a
sum means:

    version of the protocol                      `PROTOCOL`, in everything that is signed, hashed or derived
    run, attempt, rounds, parties, thresholds    `AggregationSetup.binding`: own secrets are derived from it, keys
                                                 signed over it
    the plan: labels, encoder, queries, noise,   `plan_digest`, in the binding
      ε, unit, purpose, recipient
    the parties' identities                      `roster_digest`, in the binding (malicious mode)
    everybody's keys (U1), and so the graph      the transcript over them: shares are sealed under it
    the round: index of the query                `of_round`: label of its shares, in all that follows
    the query with its arrays                    `about`: the masks are derived from it, survivors signed under it
    who shared, who survived (U2, U3)            `survivors_statement`, signed (malicious mode)
    one set of survivors for a question          each party's ledger

Each party's records, limits and noise are its own and are not part of this list. Before version 5 the list lacked the
plan: the answer of a hospital charged for ε = 1 was summed with answers of hospitals whose plan added the noise of ε =
8 (in all, the noise of ε = 3.2 with ten hospitals). `tests/properties/test_one_plan_for_all.py` changes each field of
all these types for one party.

**Semi-honest mode.** All parties and the coordinator follow the protocol, but the coordinator combines its view with
the views of `AggregationSetup.corrupt` parties. Bonawitz et al., section 6 (honest-but-curious server): a round's view
can be simulated from its sum as long as fewer than t holders of a party's shares are corrupt. On the full graph
`AggregationSetup` requires t > corrupt. On the k-regular graph, the proof is that of Bell et al., section 3, with k and
t from `graph.parameters`, for dropouts that happen at random.

**Malicious mode.** The coordinator and the corrupt parties may send anything to anybody.

1. Keys cannot be replaced: parties sign them, and each party has its own copy of the roster of identities.
2. Parties that were shown different keys have different transcripts and cannot open each other's shares.
3. With L parties, a round's (U2, U3) needs q > (L + corrupt) / 2 signatures (`AggregationSetup.signers`) before a party
   unmasks, and an honest party signs once a round. Two different pairs (U2, U3) would need 2 q > L + corrupt
   signatures, but the L - corrupt honest parties give one each and the corrupt parties two. So all honest parties that
   unmask do so for the same (U2, U3), and no party's seed and mask key are both revealed as long as fewer than t
   holders of its shares are corrupt.
4. A question is opened over one set of survivors in a run, under any number and attempt. An honest party whose shares
   opened the question over one set has this set on disk and signs no other set for the question. Let H be the smallest
   number of parties that can have sent shares. At least H - corrupt of them are honest, so that at most L - H + corrupt
   can sign another set: q is above this number too (`messages.signers`). Parties that signed but sent no share may sign
   again, in a further attempt after a party was lost between its answer and the agreement.
5. Full graph. The honest survivors that signed have the same U2 and are all masked with each other. Any other honest
   survivor u was shown a U2 of its own, with q members that really shared with u. This U2 has at least 2 q - L >
   corrupt parties in common with the q signers, so at least one honest party, with which u is masked. No mask between
   honest survivors is revealed, so only the sum over all of them, at least q - corrupt parties, is revealed: Bonawitz
   et al., section 6 (active adversaries, random oracle).
6. k-regular graph. A coordinator that chooses who drops out can try to cut the ring in two, and can send a survivor a
   different U2. `graph.parameters` bounds the probability of a graph in which this succeeds. The bound assumes that all
   L parties take part; a caller that allows a coordinator to leave out parties from the start
   (`AggregationSetup.minimum_survivors` of L must remain) must pass the corrupt fraction of the remaining parties.
7. The graph's seed, the transcript, can be ground: an attacker that sees the honest keys first may try other keys for
   corrupt parties, or leave parties out. If a graph is bad with probability δ, W tries find a bad one with probability
   at most W·δ. Honest keys are fresh, so the search cannot begin before they are known. Request 40 + log2 W bits from
   `graph.parameters`, or use the full graph, where there is nothing to choose.

Both modes assume decisional Diffie-Hellman, a secure PRG and authenticated encryption (X25519 with HKDF-SHA256, AES-256
in counter mode, AES-256-GCM); malicious mode also assumes unforgeable signatures (Ed25519).

**Forward secrecy.** A party drops its own seed and private mask key of a round when this round, or a later one, is
masked; it drops its peers' shares when the round is unmasked or when the round's state is released, at the latest when
the next round's state replaces it. It drops sealing keys as soon as the shares have arrived. An attacker that seizes a
party's whole memory later, and has recorded all traffic, learns nothing about rounds whose secrets were dropped by
then, unless t holders of some party's shares were seized before they dropped these shares. Future rounds of the set-up
are not protected. Dropped means unreachable: the interpreter does not overwrite freed memory. Identities decrypt
nothing; a stolen one can sign in future set-ups.

**Not covered.** A party that lies about its vector: masks hide false values as well as true ones. Any participant can
make a round fail, but can make its result wrong without being noticed only by lying about its own vector. Timing, sizes
and participation are visible. Two sums over different parties can be subtracted. For one question in a run only one sum
is opened. But two questions may be nearly the same, as in consecutive rounds or in two runs. If a party takes part in
only one of them, the difference of the two sums is that party's own answer, with the noise of both sums: differential
privacy holds for its records, but its answer is not hidden among the answers of other parties.

**Phases.** A set-up is 2 exchanges; a round is 2 more (mask, unmask), 3 in malicious mode (mask, agree, unmask); the
shares of the set-up travel with the first round's query. R rounds: 2 + 2 R or 2 + 3 R exchanges, whereas new keys for
each round would take 4 R or 5 R. Nothing depends on clocks: a late message is recognised by its position, so clock skew
is harmless.

**Decisions.** One set-up for all rounds, because an exchange takes seconds in a deployment. Independent secrets, not
round keys derived from one secret: a key recovered after a dropout in one round would open all rounds. Cost: after a
restart of either side the remaining rounds need a new set-up, with the next attempt. All parties agree on the
survivors, rather than only neighbours (Bell et al., section 4), so the sum is over all; cost: q signatures to verify.
Flower's own SecAgg+ (Flower 1.42) is not used: its masks come from a generator seeded with 32 bits folded from the
32-byte secret, so they can be searched; it clips large values silently, so its sum can be wrong without an error; one
dropout before masking aborts its round.
"""
