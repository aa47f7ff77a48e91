"""Steps that several weaknesses advise, in words."""

from collections.abc import Sequence

from server.documents.privacy import Privacy
from server.documents.run import RunSummary
from server.domain import Candidate
from server.guarantee.rounding import show_epsilon

MOST_NAMED = 3
"""Maximum number of labels that a sentence names."""


def more_signal(run: RunSummary, privacy: Privacy | None) -> list[str]:
    """Return the steps that make answers stand out from their noise."""
    now = f" (now {show_epsilon(privacy.planned_epsilon)})" if privacy else ""
    return ["more records", f"a larger epsilon{now}", *(["method=census"] if run.method != "census" else [])]


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def more_texts(texts: Sequence[Candidate]) -> str:
    """Return the step of writing more than these texts."""
    return f"write more than these {len(texts):,} texts (method.samples)"
