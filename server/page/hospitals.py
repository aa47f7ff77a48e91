"""The hospitals as the page shows them, and reasons why they cannot connect to the coordinator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.errors import CaucusError
from common.system import processes
from common.system.certificates import days_left
from common.system.enrolment import Invitation, PartyFile, RosterFile
from server.deploy.enrolment import Attending, attendance, enrolled, versions
from server.deploy.health import fault
from server.deploy.settings import LOCKS, CoordinatorSettings
from server.documents.hospitals import HospitalVersion

CERTIFICATES = ("server.crt", "ca.crt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hospitals:
    """The coordinator's view of the federation at this moment.

    Attributes:
        address: host:port that the hospitals connect to.
        processes: The processes of `serve`, keyed by name; empty if `serve` is not running.
        problem: Why hospitals cannot connect, or why their attendance is unknown; empty if there is no problem.
        certificates: Days until each certificate expires, keyed by its file.
        invitation: Fingerprint of the invitation.
        roster: Fingerprint of the roster; empty if no hospital is enrolled.
        enrolled: Each hospital with its attendance; None if it is unknown.
        versions: The version of Caucus that each hospital reported last, keyed by the hospital's name.
    """

    address: str
    processes: Mapping[str, Mapping[str, int | None]]
    problem: str
    certificates: Mapping[str, int]
    invitation: str
    roster: str
    enrolled: tuple[tuple[PartyFile, Attending | None], ...]
    versions: Mapping[str, HospitalVersion]


def hospitals(settings: CoordinatorSettings) -> Hospitals:
    """Return the hospitals. Flower takes seconds to answer, so it is queried only while `serve` is running.

    Raises:
        ConfigError: A certificate, the invitation or the roster cannot be read.
    """
    parties = [entry.party for entry in enrolled(settings)]
    served = settings.is_served
    problem = fault(settings.folder) or "" if served else ""
    attending: Sequence[Attending | None] = [None] * len(parties)
    if served and parties:
        try:
            attending = attendance(settings)
        except CaucusError as error:
            problem = problem or str(error)
    return Hospitals(
        address=settings.address,
        processes=processes.children(settings.folder, LOCKS),
        problem=problem,
        certificates={name: days_left(settings.folder / name) for name in CERTIFICATES},
        invitation=Invitation.load(settings.folder / Invitation.FILE).fingerprint,
        roster=RosterFile.load(settings.folder / RosterFile.FILE).fingerprint if parties else "",
        enrolled=tuple(zip(parties, attending, strict=True)),
        versions=versions(settings),
    )
