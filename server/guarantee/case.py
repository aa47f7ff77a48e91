"""The four cases of a run's guarantee; only this module distinguishes them.

unknown    there is no readable `privacy.json`
none       private records were used without a bound: no noise, or no proof (ε = ∞)
not asked  no party was asked anything (ε = 0)
bounded    ε is finite
"""

import math
from enum import StrEnum

from server.documents.privacy import Privacy

NO_GUARANTEE = "no guarantee"
"""Text for the case "none" in tables, next to an ε that is infinite or only planned."""


class Kind(StrEnum):
    """The four cases of a guarantee."""

    UNKNOWN = "unknown"
    NONE = "none"
    NOT_ASKED = "not asked"
    BOUNDED = "bounded"


def lacks_guarantee(privacy: Privacy) -> bool:
    """Return whether the texts have no guarantee although they need one; a run without queries needs none."""
    return guarantee_kind(privacy) is Kind.NONE


def guarantee_kind(privacy: Privacy | None) -> Kind:
    """Return the case for the content of a `privacy.json`; pass None for a file that is missing or cannot be read."""
    if privacy is None:
        return Kind.UNKNOWN
    # A baseline that trains on the records themselves asks no party, and plans ε = ∞.
    if privacy.unproven or math.isinf(privacy.planned_epsilon):
        return Kind.NONE
    if not privacy.queries:
        return Kind.NOT_ASKED
    return Kind.NONE if math.isinf(privacy.epsilon) else Kind.BOUNDED


def effective_epsilon(privacy: Privacy) -> float:
    """Return ε for one protected unit. If the noise follows a paper's formula, this is the true cost of that noise."""
    match guarantee_kind(privacy):
        case Kind.NONE:
            return math.inf
        case Kind.NOT_ASKED:
            return 0.0
        case _:
            return privacy.planned_epsilon if privacy.calibration == "paper" else privacy.epsilon
