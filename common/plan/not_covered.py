"""The limits of a plan's guarantee, in plain words, which a run's statement and a hospital's sheet must contain."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace

from common.page.words import ENGLISH, catalogue
from common.plan.facts import PlanGuarantee
from common.plan.words import differences


def not_covered(facts: PlanGuarantee, show: Callable[[float], str], language: str = ENGLISH) -> list[str]:
    """Return a list of what the guarantee does not cover; each item reads "Heading: explanation.".

    Args:
        facts: The facts about the plan and its guarantee.
        show: Function that formats an epsilon as text, rounded up.
        language: Code of the reader's language.
    """
    say = catalogue(__package__, language).not_covered
    asked, noisy, masked = bool(facts.queries), facts.noisy, facts.masked
    items: list[str] = []
    if facts.unproven:
        items.append(say.unproven.format(", ".join(facts.unproven)))
    elif asked and not noisy:
        items.append(say.bare_masked if masked else say.bare)
    if asked and masked:
        against = {row.colluders: show(row.epsilon) for row in facts.against_colluders}
        items += _aggregation_gaps(facts, against, say, differences(facts.max_dropouts, language))
    if asked:
        stuffing = say.stuffing_masked if masked else say.stuffing
        items.append(f"{stuffing} {say.shirking}" if masked and noisy else stuffing)
        items += [say.traffic, say.side_channels, say.changed_file, say.decision]
    if asked and noisy:
        items += [say.groups, say.users.format(facts.adjacency.max_records) if facts.by_user else say.several]
    if noisy and facts.trains:
        items.append(say.training)
    return [*items, say.public, say.other_uses, say.faults]


def _aggregation_gaps(
    facts: PlanGuarantee, against: dict[int, str], say: SimpleNamespace, differing: str
) -> Iterator[str]:
    noisy, colluders = facts.noisy, facts.assumed_colluders
    exposed = say.noisy_share if noisy else say.no_share
    if facts.malicious:
        yield say.signed.format(say.one_corrupt if facts.corrupt == 1 else say.few_corrupt.format(facts.corrupt))
    else:
        yield say.trusted
    if noisy and colluders == 0:
        yield say.curious_of.format(against[1]) if 1 in against else say.curious
    shown = noisy and colluders + 1 in against
    more = f" {say.against.format(colluders + 1, against[colluders + 1])}" if shown else ""
    yield say.colluding.format(colluders, more, facts.largest_coalition + 1, exposed)
    yield say.sums.format(differing)
    yield say.dropouts.format(facts.assumed_survivors)
    yield say.cryptography.format(exposed)
