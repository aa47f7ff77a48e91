"""A run's differential-privacy guarantee in plain words.

The text is made from the fields of a run's `privacy.json`. Figures that bound a loss are rounded up, never down.
"""

import math
from collections.abc import Mapping
from typing import Any


def statement(privacy: Mapping[str, Any]) -> str:
    """State what is guaranteed, against whom, and under which assumptions.

    Args:
        privacy: The fields of `privacy.json`; "statement" and "not_covered" are not read.

    Returns:
        Paragraphs, separated by an empty line.
    """
    # With noise by the papers' formula, the real cost differs from the requested epsilon.
    epsilon = float(privacy["planned_epsilon" if privacy.get("calibration") == "paper" else "epsilon"])
    if not privacy["queries"]:
        paragraphs = [
            "No question was put to any party about its private records, so the released texts do not depend on them."
        ]
    elif privacy.get("unproven"):
        paragraphs = _unproven(privacy)
    elif math.isinf(epsilon):
        paragraphs = _without_noise(privacy)
    else:
        paragraphs = [*_guarantee(privacy, epsilon), _how(privacy), *_figures(privacy), *_spent(privacy)]
    if privacy.get("earlier"):
        paragraphs.insert(0, _reused(privacy))
    if privacy.get("labels_from_records"):
        paragraphs.append(
            "Not covered: the labels. They were taken from the private training file without noise, so the texts show "
            "which labels occur there. Name the labels in the task's file instead, from public knowledge."
        )
    if privacy["simulation"]:
        paragraphs.append(
            "This was a simulation: the records of all parties were on one machine, so nothing was hidden from the "
            "person who ran it. The statements about parties and coordinator hold in a deployment, where each party "
            "keeps its own records."
        )
    return "\n\n".join(paragraphs)


def show_epsilon(epsilon: float | str) -> str:
    """Write an epsilon with at most three decimals, rounded up (beyond 1e-5 of numerical noise)."""
    value = float(epsilon)
    return "∞" if math.isinf(value) else f"{math.ceil(value * 1000 - 0.01) / 1000:g}"


def show_delta(delta: float) -> str:
    """Write a delta with three digits, as in 1e-5."""
    mantissa, _, exponent = f"{delta:.3g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def one_in(delta: float) -> str:
    """A delta above 0 as one in so many, rounded toward the larger chance (beyond 1e-6 of numerical noise)."""
    return f"1 in {int(1.000001 / delta):,}"


def at_most_times(epsilon: float) -> str:
    """How many times as probable a result is at most with one unit as without: e^epsilon, rounded up."""
    # Above e^20 the number is meaningless to readers, and above e^709 it is no floating-point number.
    return f"{_up(math.exp(epsilon), 1):,.12g} times (e to the power ε)" if epsilon < 20 else "e^ε times"


def right_guesses(epsilon: float, delta: float) -> float:
    """Most right guesses between two equally likely neighbours, in percent, rounded up.

    It is (e^epsilon + delta) / (1 + e^epsilon): add up the two inequalities by which a test's errors are bounded,
    P_FA + e^epsilon P_MD >= 1 - delta and its mirror image (Kairouz, Oh and Viswanath, "The composition theorem for
    differential privacy", 2015).
    """
    odds = 1 / (1 + math.exp(-epsilon))
    return min(_up(100 * (odds + delta * (1 - odds)), 2), 100)


def _unproven(privacy: Mapping[str, Any]) -> list[str]:
    """No end-to-end guarantee: the paper's claim for a noised choice, and the guarantee of the other queries."""
    names = privacy["unproven"]
    paragraphs = [
        (
            f"The released texts have no end-to-end guarantee (ε is infinite): {', '.join(names)} takes texts from the "
            "parties that are written from private records, and there is no proof that these do not reveal a record."
        )
    ]
    delta = show_delta(float(privacy["delta"]))
    for query in privacy["queries"]:
        choice = query.get("choice")
        if not choice or math.isinf(float(choice["claimed_epsilon"])):
            continue
        paragraphs.append(
            f"{query['name']}: the method's paper claims ε = {show_epsilon(choice['claimed_epsilon'])} and δ = {delta} "
            f"for its choice. This claim is not about the texts: it would hold if the {query['candidates']} candidates "
            "were the same for every record, but they are written from the record. With such candidates, one choice "
            f"with this noise would cost ε = {show_epsilon(choice['epsilon_among_public_candidates'])}, and no δ."
        )
    proven = [query["name"] for query in privacy["queries"] if query["name"] not in names]
    if proven and math.isfinite(float(privacy["proven_epsilon"])):
        paragraphs.append(
            f"What is still guaranteed: {', '.join(proven)}, and everything computed from their answers alone, have "
            f"computational differential privacy with ε = {show_epsilon(privacy['proven_epsilon'])} and δ = {delta}."
        )
    return paragraphs


def _reused(privacy: Mapping[str, Any]) -> str:
    """What a run that asked nobody owes to one that did."""
    run = privacy["earlier"]["run"]
    return (
        "No question was put to any party in this run. Its texts depend on the parties' records only through the "
        f"numbers that run {run} released, and using these again costs nothing more: what follows is the guarantee "
        f"under which run {run} got them. It holds for everything that is made of these numbers, together."
    )


def _without_noise(privacy: Mapping[str, Any]) -> list[str]:
    first = (
        "No privacy: no noise was added to the parties' answers (ε is infinite). The released texts can depend on "
        "single records without any bound. Such a run is for experiments with data that need no protection."
    )
    if privacy["aggregation"] == "none" or not any(query["summed"] for query in privacy["queries"]):
        return [first, "The coordinator saw the exact answers of each party."]
    own = ", ".join(query["name"] for query in privacy["queries"] if not query["summed"])
    others = f"; and of {own} each party's own exact answer" if own else ""
    return [first, f"Secure aggregation showed the coordinator only the parties' sums, but those are exact{others}."]


def _guarantee(privacy: Mapping[str, Any], epsilon: float) -> list[str]:
    delta = float(privacy["delta"])
    if privacy["adjacency"]["unit"] == "user":
        most = privacy["adjacency"]["max_records"]
        unit, given = (
            f"all records of any one user (of which at most {most} count)",
            "a given user's records were",
        )
    else:
        unit, given = "any one record", "a given record was"
    factor, right = at_most_times(epsilon), right_guesses(epsilon, delta)
    extra = f", apart from an additional probability of at most δ ({one_in(delta)})" if delta else ""
    first = (
        f"The parties' records are protected by computational differential privacy with ε = {show_epsilon(epsilon)} "
        f"and δ = {show_delta(delta)}. Adding or removing {unit} makes no result of the run more than {factor} as "
        f"probable{extra}."
    )
    second = (
        "What this means: suppose somebody knows everything else and has to guess from the released texts whether "
        f"{given} used, with yes and no equally likely. At worst that guess is right in {right:g} % of cases; a coin "
        "toss is right in 50 %. This is a limit for any feasible attack, not a forecast of one. The smaller ε is, the "
        "closer the limit is to the coin toss."
    )
    third = (
        "Computational means: the noise, and every random choice of records, is computed from secret keys by AES-256. "
        "The guarantee holds against everybody who cannot tell its output from true randomness."
    )
    return [first, second, third]


def _how(privacy: Mapping[str, Any]) -> str:
    if privacy["aggregation"] == "none" or not any(query["summed"] for query in privacy["queries"]):
        return (
            f"How: {privacy['mechanism']}. Each party adds the whole noise to its own answers before they leave it, so "
            "the guarantee also holds against the coordinator and against the other parties."
            + _subsampled(privacy)
            + _trained(privacy)
        )
    share = privacy["noise_parties"]
    colluders = privacy["assumed_colluders"]
    trusted = (
        f"even if {_count(colluders, 'party', 'parties')} told the coordinator all they know"
        if colluders
        else "as long as no party tells the coordinator what it knows"
    )
    return (
        f"How: {privacy['mechanism']}. Each party adds 1/{share} of the noise variance to its answers. "
        f"Secure aggregation shows the coordinator only the sum over all parties that stayed, at least "
        f"{privacy['assumed_survivors']} of {privacy['parties']}. That sum contains the whole noise {trusted}. "
        + (
            "The coordinator is not trusted: parties sign their keys and the list of parties whose answers are in the "
            "sum."
            if privacy["aggregation"] == "secure, malicious coordinator"
            else "The coordinator is assumed to follow the protocol, but may try to learn from everything that it sees."
        )
        + _own(privacy)
        + _subsampled(privacy)
        + _trained(privacy)
    )


def _subsampled(privacy: Mapping[str, Any]) -> str:
    subsampled = [query for query in privacy["queries"] if query.get("subsampling")]
    return "".join(
        f" {query['name']}: each record takes part with probability {query['subsampling']['rate']:g}, and only its "
        "party knows whether it does; against anybody who learns that a record took part, the loss is larger than ε."
        for query in subsampled
    )


def _trained(privacy: Mapping[str, Any]) -> str:
    return "".join(
        f" {query['name']}: each party trains its own language model in {query['steps']} steps. The standard deviation "
        f"of the noise is {query['noise_multiplier']:.3g} times the largest change that one protected unit can make to "
        "a step. The texts are sampled from that model."
        for query in privacy["queries"]
        if query.get("noise_multiplier")
    )


def _own(privacy: Mapping[str, Any]) -> str:
    names = [query["name"] for query in privacy["queries"] if not query["summed"]]
    if not names:
        return ""
    return (
        f" Not summed: {', '.join(names)}. For these, each party adds the whole noise itself, and the coordinator sees "
        "each party's own answer."
    )


def _figures(privacy: Mapping[str, Any]) -> list[str]:
    """Figures that differ from the guaranteed one: against outsiders, without δ, and for the papers' formula."""
    paragraphs = []
    released = show_epsilon(privacy["released_epsilon"])
    if float(privacy["released_epsilon"]) < float(privacy["planned_epsilon"]):
        paragraphs.append(
            f"Against outsiders, who know no party's noise, the released texts have ε = {released}. Against the "
            f"coordinator and {_count(privacy['assumed_colluders'], 'colluding party', 'colluding parties')}, a "
            f"party's answers have ε = {show_epsilon(privacy['party_epsilon'])}."
        )
    pure = privacy.get("pure_epsilon")
    if pure is not None and pure <= float(privacy["epsilon"]) * (1 + 1e-9):
        paragraphs.append(
            f"The guarantee is pure: it also holds with ε = {show_epsilon(pure)} and no δ, except that each "
            "draw of noise deviates from its distribution by less than 1e-30 in total variation."
        )
    if privacy["calibration"] == "paper":
        paragraphs.append(
            "The noise is that of the papers' formula (the classical Gaussian mechanism, with the papers' "
            f"sensitivity) for ε = {show_epsilon(privacy['epsilon'])}, for comparison only. Its actual cost is "
            f"ε = {show_epsilon(privacy['planned_epsilon'])}."
        )
    return paragraphs


def _spent(privacy: Mapping[str, Any]) -> list[str]:
    spent, attempts = privacy["spent"], privacy.get("max_attempts", 1)
    if privacy.get("earlier"):
        return []
    if attempts > 1 and spent["queries_asked"] >= spent["queries_planned"]:
        sentence = (
            f"The ε above pays for {attempts} attempts at each of {spent['queries_planned']} queries. The queries "
            f"asked cost ε = {show_epsilon(spent['epsilon'])}."
        )
        return [sentence]
    if spent["queries_asked"] >= spent["queries_planned"]:
        return []
    planned = _count(spent["queries_planned"], "planned query", "planned queries")
    sentence = (
        f"Of {planned}, {spent['queries_asked']} had been asked when this was written; they cost "
        f"ε = {show_epsilon(spent['epsilon'])}. The ε above is that of the whole plan."
    )
    return [sentence]


def _up(value: float, decimals: int) -> float:
    """Round up at `decimals`, so that a bound stays a bound."""
    return math.ceil(value * 10.0**decimals) / 10.0**decimals


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
