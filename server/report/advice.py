"""Steps that several weaknesses advise, in words."""

from collections.abc import Sequence

from server.documents.privacy import Privacy
from server.documents.run import RunSummary
from server.documents.weaknesses import Weakness
from server.domain import Candidate
from server.guarantee.rounding import show_epsilon
from server.planning.signal import FEWER_CANDIDATES

MOST_NAMED = 3
"""Maximum number of labels that a sentence names."""
FEWER_TEXTS = "ask for fewer texts (method.samples)"
"""Step that helps where texts repeat others."""


def more_signal(run: RunSummary, privacy: Privacy | None) -> list[str]:
    """Return the steps that make answers stand out from their noise."""
    now = f" (now {show_epsilon(privacy.planned_epsilon)})" if privacy else ""
    return ["more records", f"a larger epsilon{now}", *(["method=census"] if run.method != "census" else [])]


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def more_texts(texts: Sequence[Candidate], causes: Sequence[Weakness]) -> list[str]:
    """Return the step of writing more than these texts; empty if one of the `causes` is mended by fewer texts.

    Repeated texts, and votes that are noise, are causes of what more texts could mend, and more texts make them worse.
    """
    if any(step in cause.do for cause in causes for step in (FEWER_TEXTS, FEWER_CANDIDATES)):
        return []
    return [f"write more than these {len(texts):,} texts (method.samples)"]
