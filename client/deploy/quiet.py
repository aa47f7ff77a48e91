"""Reasons to assume that the run of a waiting plan is over: a coordinator can announce the end of a run, but need not.

Only requests of the run itself count, since a coordinator may have several runs at once, each waiting for approval.
"""

from datetime import UTC, datetime, timedelta

from client.approvals import PlanApproval
from common.system.log_lines import utc

QUIET = timedelta(days=1)
"""Time after which a waiting plan that the coordinator has not requested again is shown separately."""


def quiet(approval: PlanApproval) -> str:
    """Return why the run of a plan may be over; empty if the plan was requested recently, or is approved."""
    no_harm = "Approving it does no harm: nothing is answered unless it is asked for again"
    if approval.closed:
        before = f"; the coordinator had ended it, {utc(approval.ended)} UTC" if approval.ended else ""
        after = f"no further question is answered{before}"
        return f"this hospital ended this run for good, {utc(approval.closed)} UTC: {after}"
    if approval.decision == "approved":
        return ""
    if approval.ended:
        return f"the coordinator ended this run, {utc(approval.ended)} UTC. {no_harm}"
    asked = approval.asked or approval.first_seen
    if datetime.now(UTC) - datetime.fromisoformat(asked) < QUIET:
        return ""
    return f"not asked for since {utc(asked)} UTC. Only the coordinator knows whether it goes on. {no_harm}"
