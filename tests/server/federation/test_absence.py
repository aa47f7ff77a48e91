"""Each reason of a refusal has advice that fits it."""

import pytest

from common.messages import Reason
from server.federation.absence import ADVICE, NEEDS_NEW_RUN, SILENT, Absence, advice, rejected

NAMES = ("St. Mary", "St. Luke", "St. John")


def refusal(reason):
    return Absence("refused", refusal=reason)


def advised(*absences):
    return advice(dict(enumerate(absences))).text(NAMES)


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_advice_that_names_the_hospital_and_says_whether_to_resume(reason):
    assert ADVICE.keys() == set(Reason)
    assert len(set(ADVICE.values())) == len(Reason)
    text = advised(refusal(reason))
    assert "St. Mary" in text
    assert "{" not in text
    assert ("resume" in text) == (reason not in NEEDS_NEW_RUN) == (not rejected({0: refusal(reason)}))
    assert ("new run" in text) == (reason in NEEDS_NEW_RUN or reason is Reason.TOO_FEW)


def test_beyond_a_limit_nobody_is_told_to_resume_or_to_allow_for_dropouts():
    over = refusal(Reason.OVER_LIMIT)
    sentence = (
        "Beyond a limit of St. Mary: ask it, or lower privacy.epsilon or privacy.delta in a new run, "
        "or set privacy.unit=user privacy.max_records=N if files there name users; the page there shows what fits"
    )
    assert advised(over) == sentence
    assert advised(over, over).startswith("Beyond a limit of St. Mary and St. Luke: ask them, or")
    assert advised(over, SILENT, refusal(Reason.SETTINGS)) == (
        f"{sentence}. See why St. Luke did not answer: a service or a network may be down. "
        "Let St. John restart the service, whose settings or roster have changed; its log says which"
    )


def test_nobody_is_asked_to_decide_about_a_plan_that_a_limit_ends():
    over, awaiting, declined = map(refusal, (Reason.OVER_LIMIT, Reason.AWAITING, Reason.DECLINED))
    assert advised(over, awaiting, declined) == advised(over)
    assert advised(awaiting, declined).startswith("Let St. Mary decide")


def test_silence_may_be_mended_or_allowed_for_and_other_replies_are_in_the_logs():
    assert advised(SILENT).endswith("Then resume, or allow for more dropouts in a new run")
    assert advised(SILENT, Absence("out of place: Answer")).endswith("See the logs of St. Luke. Then resume")
