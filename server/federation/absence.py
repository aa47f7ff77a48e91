"""Reasons why parties are missing from an exchange, and what the coordinator's operator can do about each.

A hospital gives one coarse reason (`common.messages.Reason`), and this module has advice for each. Most causes can be
removed, and the run can then be resumed. A run that exceeds a hospital's limits would be refused again; it needs a new
plan.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from common.domain import PartyId
from common.messages import Reason
from common.phrases import Phrase, join_phrases, list_parties

ADVICE: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.UNKNOWN: "Ask {who}: the log there says more",
        Reason.MALFORMED: "Install the same version of Caucus here and at {who}",
        Reason.OUT_OF_ORDER: "See that the service of {who} stays up",
        Reason.UNPLANNED: "Install the same version of Caucus here and at {who}, and begin a new run",
        Reason.OVER_LIMIT: "Beyond a limit of {who}: ask {it}, or lower privacy.epsilon or privacy.delta in a new run, "
        "or set privacy.unit=user privacy.max_records=N if files there name users; the page there shows what fits",
        Reason.TOO_FEW: "Bring the missing hospitals back, without which {who} may not answer",
        Reason.ENCODER: "Let {who} name the plan's encoder in client.yaml and restart the service",
        Reason.INTERNAL: "Ask {who}: the log there says what failed",
        Reason.IDENTITY: "Compare roster.json with {who} (caucus-party roster)",
        Reason.AWAITING: "Let {who} decide, on the page there (or by caucus-party approve), which says if a limit is "
        "in the way; a file that names users needs privacy.unit=user privacy.max_records=N",
        Reason.DECLINED: "Ask {who} for the reason, and to reconsider, on the page there (or by caucus-party approve "
        "--refused)",
        Reason.ROSTER: "Compare roster.json with {who} (caucus-party roster), and let the service there be restarted",
        Reason.RECORDS: "Let {who} put back the file of records that this run began with, and restart the service",
        Reason.SETTINGS: "Let {who} restart the service, whose settings or roster have changed; its log says which",
        Reason.FULL: "Let {who} make room: the log there names the file to move away",
        Reason.SURVIVORS: "Bring back those who answered this query before: {who} may agree to no other sum",
    }
)
"""Advice for each reason; {who} is replaced by the hospitals that gave the reason, and {it} by a pronoun for them."""
FOR_SILENCE = "See why {who} did not answer: a service or a network may be down"
FOR_OTHERS = "See the logs of {who}"
"""Advice if a reply cannot be read, or does not belong to the exchange."""
NEEDS_NEW_RUN = frozenset({Reason.UNPLANNED, Reason.OVER_LIMIT})
"""Reasons for which a resumed run would be refused again."""
OF_THIS_PLAN = frozenset({Reason.AWAITING, Reason.DECLINED})
"""Reasons that do not apply to a new run, since hospitals decide about its plan separately."""


@dataclass(frozen=True, slots=True)
class Absence:
    """Reason why a party is missing from an exchange.

    Attributes:
        words: Clause that describes what the party did; it follows the party's name.
        refusal: The reason that the party gave, if it refused.
        silent: Whether the party sent nothing.
    """

    words: str | Phrase
    refusal: Reason | None = None
    silent: bool = False

    @property
    def restarts(self) -> bool:
        """Whether the party may be restarting (it is silent) or has restarted (it does not recognise the run)."""
        return self.silent or self.refusal is Reason.OUT_OF_ORDER

    @property
    def advice(self) -> str:
        """Advice on this absence, with placeholders for names as in `ADVICE`."""
        if self.refusal is not None:
            return ADVICE[self.refusal]
        return FOR_SILENCE if self.silent else FOR_OTHERS


SILENT = Absence("did not answer", silent=True)


def would_refuse_again(absences: Mapping[PartyId, Absence]) -> bool:
    """Return whether a party gave a reason for which it would refuse a resumed run again."""
    return any(absence.refusal in NEEDS_NEW_RUN for absence in absences.values())


def absence_advice(absences: Mapping[PartyId, Absence]) -> Phrase:
    """Return advice on missing parties: a sentence for each reason and, if it can help, the advice to resume."""
    return join_phrases(_sentences(absences), ". ")


def _sentences(absences: Mapping[PartyId, Absence]) -> Iterator[object]:
    parties_of: dict[str, list[PartyId]] = {}
    over = would_refuse_again(absences)
    for party, absence in sorted(absences.items()):
        if over and absence.refusal in OF_THIS_PLAN:
            continue
        parties_of.setdefault(absence.advice, []).append(party)
    for sentence, parties in parties_of.items():
        before, _, after = sentence.replace("{it}", "them" if len(parties) > 1 else "it").partition("{who}")
        yield Phrase(before, list_parties(parties, " and "), after)
    if over:
        return
    missing = all(absence.silent or absence.refusal is Reason.TOO_FEW for absence in absences.values())
    yield "Then resume, or allow for more dropouts in a new run" if missing else "Then resume"
