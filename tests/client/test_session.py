import itertools

import pytest

from client.session import RefusalError, Session, Step
from common import messages as m
from common.messages import Reason
from common.plan.planned import PlannedQuery
from common.queries.length_range import LengthRangeSpec
from tests.support.federations import plan, query, roster

PLANS = {
    "plain": plan(3, secure=False, threshold=1),
    "trusting": plan(3),
    "signed": plan(3, roster=roster(3).digest.hex()),
}
BODIES = {
    "shares": m.AskShares({}),
    "votes": m.Ask(query()),
    "agree": m.AskAgree(frozenset({0, 1})),
    "unmask": m.AskUnmask(frozenset({0, 1})),
}
RUN = {
    "plain": ["votes"],
    "trusting": ["shares", "votes", "unmask"],
    "signed": ["shares", "votes", "agree", "unmask"],
}


def envelope(body, index=0, attempt=0, *, mode="trusting", run="run", digest=None):
    return m.Envelope(
        run=run,
        party=0,
        plan_digest=digest or PLANS[mode].digest(),
        index=index,
        attempt=attempt,
        body=BODIES.get(body, body),
    )


def session(*done, mode="trusting", first=0):
    opening = envelope(m.Open(b"", first), index=first, mode=mode)
    made = Session.opened(opening, PLANS[mode], first)
    for body in done:
        made = made.after(envelope(body, index=first, mode=mode))
    return made


def refused(made, sent, reason):
    with pytest.raises(RefusalError) as caught:
        made.after(sent)
    assert caught.value.reason is reason


@pytest.mark.parametrize("mode", PLANS)
def test_a_run_of_two_queries_in_order(mode):
    made = session(*RUN[mode], mode=mode)
    for body in RUN[mode]:
        if body != "shares":
            made = made.after(envelope(body, index=1, mode=mode))
    assert (made.at, made.step) == (1, Step.READY)


@pytest.mark.parametrize(
    ("mode", "done", "sent"),
    [(mode, done, sent) for mode, done, sent in itertools.product(PLANS, range(5), BODIES) if done <= len(RUN[mode])],
)
def test_every_other_order_is_refused(mode, done, sent):
    made = session(*RUN[mode][:done], mode=mode)
    if done < len(RUN[mode]) and sent == RUN[mode][done]:
        assert made.after(envelope(sent, mode=mode)) == session(*RUN[mode][: done + 1], mode=mode)
    else:
        refused(made, envelope(sent, mode=mode), Reason.OUT_OF_ORDER)


@pytest.mark.parametrize("mode", ["trusting", "signed"])
def test_an_answer_of_a_partys_own_leaves_nothing_to_unmask(mode):
    unsummed = PlannedQuery(name="own", spec=LengthRangeSpec(cap=9), mechanism="sparse vector", share=0.5)
    sums = PlannedQuery(name="sums", spec=query().spec, share=0.5)
    known = {"roster": PLANS[mode].roster}
    mixed = plan(3, queries=(unsummed, sums), **known)
    made = Session.opened(envelope(m.Open(b"", 0), digest=mixed.digest()), mixed, 0)
    made = made.after(envelope("shares", digest=mixed.digest()))
    made = made.after(envelope("votes", digest=mixed.digest()))
    assert (made.at, made.step) == (0, Step.READY)
    for body in ("votes", "agree", "unmask"):
        refused(made, envelope(body, digest=mixed.digest()), Reason.OUT_OF_ORDER)
    assert made.after(envelope("votes", index=1, digest=mixed.digest())).step is Step.ANSWERED


@pytest.mark.parametrize("mode", ["trusting", "signed"])
def test_an_unfinished_round_may_be_left_but_not_gone_back_to(mode):
    made = session("shares", "votes", mode=mode)
    made = made.after(envelope("votes", index=1, mode=mode))
    for body in ("votes", "agree", "unmask"):
        refused(made, envelope(body, index=0, mode=mode), Reason.OUT_OF_ORDER)


def test_nothing_of_another_set_up_is_taken():
    refused(session(), envelope("shares", attempt=1), Reason.OUT_OF_ORDER)
    refused(session("shares"), envelope("votes", attempt=1), Reason.OUT_OF_ORDER)


def test_a_resumed_run_begins_at_its_first_query():
    made = session(first=1)
    made = made.after(envelope("shares", index=1))
    refused(made, envelope("votes", index=0), Reason.OUT_OF_ORDER)
    assert made.after(envelope("votes", index=1)).at == 1


@pytest.mark.parametrize("change", [{"run": "other"}, {"digest": bytes(32)}, {"index": 2}])
def test_another_run_plan_or_query_is_unplanned(change):
    refused(session("shares"), envelope("votes", **change), Reason.UNPLANNED)


def test_a_run_with_no_query_left_is_not_opened():
    with pytest.raises(RefusalError):
        session(first=2)


def test_a_reply_is_no_request():
    refused(session(), envelope(m.Closed()), Reason.OUT_OF_ORDER)
