"""What both sides of secure aggregation must agree on, down to a sign."""

from collections.abc import Collection
from typing import Literal

from common.domain import PartyId
from common.errors import DropoutError, ProtocolError
from common.secagg.keys import SEAL_OVERHEAD
from common.secagg.shamir import SHARE_BYTES

SEALED_BYTES = 2 * SHARE_BYTES + SEAL_OVERHEAD
"""Length of one ciphertext of step 2: a share of the self-mask seed, a share of the mask key, the tag."""


def point_of(party: PartyId) -> int:
    """Where a party's shares are evaluated; 0 is where the secret is."""
    return party + 1


def sign_of_mask(party: PartyId, peer: PartyId) -> Literal[1, -1]:
    """How `party` adds the mask that it shares with `peer`; the peer does the opposite, so that the two cancel."""
    return 1 if party < peer else -1


def halves(pair: bytes) -> tuple[bytes, bytes]:
    """The share of the self-mask seed and the share of the mask key, which travel as one."""
    return pair[:SHARE_BYTES], pair[SHARE_BYTES:]


def check_members(step: str, found: Collection[PartyId], allowed: Collection[PartyId]) -> None:
    """Refuse messages of or about parties that take no part in this step.

    Raises:
        ProtocolError: Naming the strangers and the step.
    """
    strangers = set(found) - set(allowed)
    if strangers:
        raise ProtocolError(
            "parties in this step", expected=f"some of {sorted(allowed)}", got=sorted(strangers), where=step
        )


def check_enough(step: str, count: int, needed: int) -> None:
    """Refuse to go on with too few parties.

    Raises:
        DropoutError: With both numbers and the step.
    """
    if count < needed:
        raise DropoutError(
            "too few parties are left",
            expected=f"at least {needed}",
            got=count,
            where=step,
            do="Start a new attempt, or plan for fewer survivors and more noise per party",
        )
