import itertools

import pytest

from client.session import RefusalError, Session, Step
from common import messages as m
from common.messages import Reason
from tests.federations import plan, query

PLANS = {secure: plan(3, secure=secure, threshold=2 if secure else 1) for secure in (True, False)}
BODIES = {
    "keys": m.AskKeys((0, 1, 2), 24),
    "shares": m.AskShares({}),
    "votes": m.AskVotes(query()),
    "unmask": m.AskUnmask(frozenset({0, 1})),
}
ROUND = ["keys", "shares", "votes", "unmask"]


def envelope(body, index=0, attempt=0, *, secure=True, run="run", digest=None):
    return m.Envelope(
        run=run,
        party=0,
        plan_digest=digest or PLANS[secure].digest(),
        index=index,
        attempt=attempt,
        body=BODIES.get(body, body),
    )


def session(*done, secure=True):
    made = Session("run", PLANS[secure])
    for body in done:
        made.admit(envelope(body, secure=secure))
    return made


def refused(made, sent, reason):
    before = (made.at, made.step)
    with pytest.raises(RefusalError) as caught:
        made.admit(sent)
    assert caught.value.reason is reason
    assert (made.at, made.step) == before


def test_two_rounds_in_order():
    made = session(*ROUND)
    for body in ROUND:
        made.admit(envelope(body, index=1))
    assert (made.at, made.step) == ((1, 0), Step.BETWEEN)


@pytest.mark.parametrize(("done", "sent"), list(itertools.product(range(5), ROUND)))
def test_every_other_order_is_refused(done, sent):
    made = session(*ROUND[:done])
    legal = done < 4 and sent == ROUND[done]
    if legal:
        made.admit(envelope(sent))
    else:
        refused(made, envelope(sent), Reason.OUT_OF_ORDER)


def test_a_failed_round_may_be_begun_again_as_a_later_attempt_only():
    made = session("keys", "shares")
    made.admit(envelope("keys", attempt=1))
    refused(made, envelope("votes", attempt=0), Reason.OUT_OF_ORDER)
    refused(made, envelope("shares", attempt=0), Reason.OUT_OF_ORDER)
    refused(made, envelope("keys", attempt=0), Reason.OUT_OF_ORDER)
    made.admit(envelope("shares", attempt=1))


def test_a_step_of_another_query_is_refused():
    refused(session("keys"), envelope("shares", index=1), Reason.OUT_OF_ORDER)


@pytest.mark.parametrize("change", [{"run": "other"}, {"digest": bytes(32)}, {"index": 2}])
def test_another_run_plan_or_query_is_unplanned(change):
    refused(session(), envelope("keys", **change), Reason.UNPLANNED)


def test_without_secure_aggregation_votes_stand_alone():
    made = session("votes", secure=False)
    refused(made, envelope("votes", secure=False), Reason.OUT_OF_ORDER)
    for body in ("keys", "shares", "unmask"):
        refused(made, envelope(body, index=1, secure=False), Reason.OUT_OF_ORDER)
    made.admit(envelope("votes", index=1, secure=False))


def test_votes_without_masks_are_refused_under_secure_aggregation():
    refused(session(), envelope("votes"), Reason.OUT_OF_ORDER)


def test_a_reply_is_no_request():
    refused(session(), envelope(m.Closed()), Reason.OUT_OF_ORDER)
