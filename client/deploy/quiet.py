"""Why the run of a plan that waits may be over: a coordinator can tell that it has ended, but need not."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from client.approvals import PlanApproval
from common.system.log_lines import printable_line

QUIET = timedelta(days=7)
"""Time after which a plan that nobody has asked for is shown apart from those that wait."""


def quiet(approval: PlanApproval, known: Sequence[PlanApproval]) -> str:
    """Return why the run of a plan may be over; empty if it was asked for last, and lately, or is approved.

    Args:
        approval: The plan's entry.
        known: All plans that this hospital was asked about.
    """
    no_harm = "Approving it does no harm: nothing is answered unless it is asked for again"
    if approval.decision == "approved":
        return ""
    if approval.ended:
        return f"the coordinator ended this run, {approval.ended}. {no_harm}"
    asked = approval.asked or approval.first_seen
    others = [(other.asked, other.run) for other in known if other.run != approval.run and other.asked > asked]
    if not others and datetime.now(UTC) - datetime.fromisoformat(asked) < QUIET:
        return ""
    since = f"; run {printable_line(max(others)[1])} was, {max(others)[0]}" if others else ""
    return f"not asked for since {asked}{since}. Only the coordinator knows whether it goes on. {no_harm}"
