"""Limits of a run's guarantee, in plain words."""

from common.plan.words import differences
from server.documents.privacy import Privacy
from server.guarantee.rounding import show_epsilon


def not_covered(privacy: Privacy) -> list[str]:
    """List what the guarantee does not cover; each item reads "Heading: explanation."."""
    asked = bool(privacy.queries)
    items: list[str] = []
    if privacy.unproven:
        items.append(
            f"The private records: texts from {', '.join(privacy.unproven)} are written from them. Names and "
            "numbers are masked by patterns, which miss some; any other content of a record can appear in its text."
        )
    elif asked and not privacy.noisy:
        items.append(
            "The private records: without noise, nothing about them is protected"
            + " except what secure aggregation hides: which party contributed which part of a sum" * privacy.masked
            + "."
        )
    if asked and privacy.masked:
        items += _aggregation_gaps(privacy)
    if asked:
        items += _party_gaps(privacy)
    if asked and privacy.noisy:
        items += _unit_gaps(privacy)
    if privacy.noisy and any(query.noise_multiplier for query in privacy.queries):
        items.append(
            "Training in floating point: sums of gradients and their noise are exact integers, but a single record's "
            "gradient is not. If a party computes several gradients at once (micro_batch above 1 in its own file), "
            "records change each other's gradients by rounding errors, for which no noise was planned."
        )
    if privacy.labels_from_records:
        items.append(
            "Labels: they were taken from the private training file; which labels occur there is not protected."
        )
    items.append(
        "What was public before: language models and public texts may contain facts about real people, true or false, "
        "and may repeat them. The guarantee is about the parties' records only."
    )
    items.append(
        "Other uses of the same records: each further run or release adds its own loss to this one, trial runs "
        "included. So does any choice made by looking at the records, such as labels, settings or the best of "
        "several runs."
    )
    if privacy.simulation:
        items.append(
            "Figures computed in the simulation: accuracy and FID were computed from the test records without noise, "
            "and those marked as simulation only from the private records without noise. None of these figures is "
            "protected."
        )
    items.append(
        "Faults in software or machines: the guarantee is proved for the protocol. Its implementation is tested, not "
        "formally verified."
    )
    return items


def _aggregation_gaps(privacy: Privacy) -> list[str]:
    noisy, colluders = privacy.noisy, privacy.assumed_colluders
    exposed = "with only that party's own share of the noise" if noisy else "without noise"
    against = {row.colluders: show_epsilon(row.epsilon) for row in privacy.against_colluders}
    if privacy.malicious:
        items = [
            (
                "A coordinator that stops or distorts the run: keys and survivors are signed by the parties, so it "
                "cannot open a single party's answer, but it can leave parties out, fail rounds and falsify the sum "
                f"that it uses. This holds while at most {privacy.corrupt} parties are corrupt and each party "
                "received the others' identity keys over a separate channel."
            )
        ]
    else:
        items = [
            (
                "A malicious coordinator: it is assumed to follow the protocol. One that deviates from it, for example "
                "by telling parties different things about who dropped out, may be able to see single parties' answers."
            )
        ]
    if noisy and colluders == 0:
        items.append(
            "A curious party: each party knows its own share of the noise and can subtract it. Against a party, the ε "
            "of one colluder applies" + (f" (ε = {against[1]})." if 1 in against else ".")
        )
    more = f" Against {colluders + 1}, ε is {against[colluders + 1]}." if noisy and colluders + 1 in against else ""
    return [
        *items,
        (
            f"More colluding parties than planned: the plan allows for {colluders}.{more} If "
            f"{privacy.largest_coalition + 1} or more parties collude with the coordinator, they may open the masks "
            f"of the others and see each answer {exposed}."
        ),
        (
            f"Sums over different parties: {differences(privacy.max_dropouts)}. ε holds for its records; that its "
            "answer is hidden among the others' does not."
        ),
        (
            f"More dropouts than planned: if fewer than {privacy.assumed_survivors} parties stay, the round is "
            "refused. This preserves the noise but not the run."
        ),
        (
            "Broken cryptography: the masks hide single answers by computational hardness, not unconditionally. "
            "An attacker who breaks the key agreement or the ciphers, even years later from recorded traffic, sees "
            f"each party's answer {exposed}."
        ),
    ]


def _party_gaps(privacy: Privacy) -> list[str]:
    unseen = ", and behind the masks only a sum that no records add up to shows it" if privacy.masked else ""
    shirking = ""
    if privacy.masked and privacy.noisy:
        shirking = " One that leaves out its share of the noise counts as a colluder."
    return [
        (
            f"A malicious party: it can stuff the ballot with votes for records that it does not have{unseen}. That "
            f"distorts the released texts.{shirking}"
        ),
        "Traffic: the coordinator and the network see which parties took part, when, and how much they sent.",
        (
            "Side channels at a party: its disks, memory, logs and staff are its own to protect. In a deployment its "
            "replies leave at times that depend on public numbers alone, as long as they are ready by then: a late one "
            "leaves at twice, four times and so on of its time, which shows that the party's machine was slow or busy, "
            "and how long it took up to that doubling; a coordinator may try to make replies late. How long a party's "
            "service takes to start tells roughly how many records it has. "
            "Who shares that machine can measure how long it really computes. Texts of a party's own model leave on "
            "the same doublings, so how long they took is known to a factor of two."
        ),
        (
            "A changed file of records: a party whose file differs from the one that the run began with refuses to go "
            "on, and names this reason. That the file was changed, and between which two questions, becomes known."
        ),
        (
            "A person's decision: who approves or refuses a plan at a party sees how many of its records have the "
            "plan's labels. The decision, and when it was made, become known without noise, and may depend on that."
        ),
    ]


def _unit_gaps(privacy: Privacy) -> list[str]:
    group = (
        "Facts about groups: what many records have in common, such as which words go with which diagnosis, is what "
        "the texts are meant to show. Such a fact can be learnt about a person whether or not their record was used."
    )
    if privacy.by_user:
        several = (
            "Who a user is: the person named in the column `user` of a party's file; if the file names nobody, all its "
            f"records belong to one user. At most {privacy.adjacency.max_records} records of one user count. A "
            "person with records at several parties, or under several names, is protected less."
        )
    else:
        several = (
            "People with several records: the guarantee is for one record. For a person with more, ε grows with the "
            "number of records; with Gaussian noise and the same δ it grows faster than in proportion to it."
        )
    return [group, several]
