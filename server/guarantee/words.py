"""What a run's guarantee means in words: for `privacy.json`, the report, files of released numbers, and the terminal.

`english.yaml` has the sentences; here the facts that they name are put together.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from common.page.words import catalogue
from common.plan.facts import not_covered, protected_unit, readers_guess, subsampling_clause
from common.plan.guesses import scale
from server.documents.files import Document
from server.documents.privacy import Privacy
from server.guarantee.case import Kind, effective_epsilon, guarantee_kind, lacks_guarantee
from server.guarantee.messages import fill_in, show_epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee(Document):
    """The guarantee of a run, in words for its readers.

    Attributes:
        kind: The case of the guarantee.
        epsilon: ε for one protected unit; 0 if no query was asked, infinite if there is no bound.
        title: The guarantee in a few words, beginning with "No guarantee" if there is none.
        reader: Sentences on what a reader of the texts can infer about one protected unit.
        insiders: Sentences on what the coordinator and the parties can infer about one protected unit.
        worth: The shortest answer to the question whether the texts are safe, without a full stop.
        safe: Sentences that say what `worth` means; the other fields state the conditions.
        assumes: Sentences on the assumptions of the guarantee, and on what it does not cover.
        further: Sentences for those who want to know more: other beliefs than an even one, what ε alone implies, and
            the thresholds of the words in `worth`.
        right_guesses: Upper bound on a reader's percentage of right guesses, as stated in `safe`; 100 if there is no
            bound.
    """

    kind: Kind
    epsilon: float
    title: str
    reader: str
    insiders: str
    worth: str
    safe: str
    assumes: str = ""
    further: tuple[str, ...] = ()
    right_guesses: float = 100


def guarantee_card(privacy: Privacy | None) -> Guarantee:
    """Return the guarantee of a run in words; pass None if `privacy.json` is missing or cannot be read."""
    kind, facts = guarantee_kind(privacy), _facts(privacy)
    if privacy and kind is Kind.BOUNDED:
        right = privacy.readers_guesses.right
    else:
        right = 50.0 if kind is Kind.NOT_ASKED else 100.0
    said = vars(getattr(catalogue(__package__).card, kind.name.lower()))
    further = (fill_in(sentence, **facts) for sentence in said["further"])
    return Guarantee(
        kind=kind,
        epsilon=effective_epsilon(privacy) if privacy else math.inf,
        right_guesses=right,
        further=tuple(filter(None, further)),
        **{name: fill_in(message, **facts) for name, message in said.items() if name != "further"},
    )


def with_statement(privacy: Privacy) -> Privacy:
    """Return the same document with its statement in words, and with the list of what the guarantee does not cover."""
    return replace(privacy, statement=statement(privacy), not_covered=tuple(run_not_covered(privacy)))


def statement(privacy: Privacy) -> str:
    """State what is guaranteed, against whom, and under which assumptions.

    Args:
        privacy: The run's `privacy.json`; its fields `statement` and `not_covered` are ignored.

    Returns:
        Paragraphs, separated by an empty line.
    """
    paragraphs = getattr(catalogue(__package__).statement, guarantee_kind(privacy).name.lower())
    facts = _facts(privacy)
    return "\n\n".join(filter(None, (fill_in(paragraph, **facts) for paragraph in paragraphs)))


def run_not_covered(privacy: Privacy) -> list[str]:
    """Return a list of what a run's guarantee does not cover; each item has the form "Heading: explanation."."""
    of_run = (fill_in(item, facts=privacy) for item in catalogue(__package__).not_covered)
    return [*not_covered(privacy, show_epsilon), *filter(None, of_run)]


def warning(privacy: Privacy | None) -> str | None:
    """Return the warning about a run at the top of its page; None if its texts have a guarantee, or need none."""
    say = catalogue(__package__)
    if privacy is None:
        return str(say.unknown)
    if not lacks_guarantee(privacy):
        return None
    # Baselines, which put no question, have statements of their own, each of which begins with such a warning.
    paragraph = privacy.statement.partition("\n\n")[0] if not privacy.queries else ""
    return paragraph or fill_in(say.warning, facts=privacy)


def numbers_guarantee(privacy: Privacy, run: str) -> str:
    """Return the guarantee of numbers, such as class sums, that the run with this ID released, in sentences."""
    return fill_in(catalogue(__package__).numbers, facts=privacy, run=run)


def privacy_cost(privacy: Privacy | None) -> str:
    """State the planned and spent privacy loss; pass None if `privacy.json` is missing or cannot be read."""
    return fill_in(catalogue(__package__).cost, facts=privacy, kind=guarantee_kind(privacy))


def plan_cost(privacy: Privacy) -> list[str]:
    """Return lines on ε for the terminal: of the plan, and against hospitals whose help it has no noise for."""
    say = catalogue(__package__)
    if not privacy.queries:
        return [str(say.plan_asks_nothing)]
    helpers = [row for row in privacy.against_colluders if row.colluders > privacy.assumed_colluders and privacy.noisy]
    lines = (fill_in(line, more=helpers, **_facts(privacy)) for line in say.plan_cost)
    return list(filter(None, lines))


def _facts(privacy: Privacy | None) -> dict[str, Any]:
    """Return the facts that the sentences name."""
    if privacy is None:
        return {}
    epsilon = effective_epsilon(privacy)
    return {
        "plan": catalogue("common.plan"),
        "facts": privacy,
        "kind": guarantee_kind(privacy),
        "epsilon": epsilon,
        "insiders_epsilon": max(epsilon, privacy.party_epsilon),
        "whose": protected_unit(privacy),
        "readers_guess": readers_guess,
        "scale": scale(),
        "subsampled": subsampling_clause,
    }
