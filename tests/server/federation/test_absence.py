"""Each reason of a refusal has advice that fits it."""

import pytest

from common.messages import Reason
from server.federation.absence import ADVICE, NEEDS_NEW_RUN, SILENT, Absence, absence_advice, would_refuse_again

NAMES = ("St. Mary", "St. Luke", "St. John")


def refusal(reason):
    return Absence("refused", refusal=reason)


def advised(*absences):
    return absence_advice(dict(enumerate(absences))).text(NAMES)


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_advice_that_names_the_hospital_and_says_whether_to_resume(reason):
    assert ADVICE.keys() == set(Reason)
    assert len(set(ADVICE.values())) == len(Reason)
    text = advised(refusal(reason))
    assert "St. Mary" in text
    assert "{" not in text
    assert ("resume" in text) == (reason not in NEEDS_NEW_RUN) == (not would_refuse_again({0: refusal(reason)}))
    assert ("new run" in text) == (reason in NEEDS_NEW_RUN or reason is Reason.TOO_FEW)


def test_beyond_a_limit_nobody_is_told_to_resume_or_to_allow_for_dropouts():
    over = refusal(Reason.OVER_LIMIT)
    for text in (advised(over), advised(over, over), advised(over, SILENT, refusal(Reason.SETTINGS))):
        assert "St. Mary" in text
        assert "resume" not in text
        assert "dropouts" not in text
    assert "St. Mary and St. Luke" in advised(over, over)
    assert all(name in advised(over, SILENT, refusal(Reason.SETTINGS)) for name in NAMES)


def test_nobody_is_asked_to_decide_about_a_plan_that_a_limit_ends():
    over, awaiting, declined = map(refusal, (Reason.OVER_LIMIT, Reason.AWAITING, Reason.DECLINED))
    assert advised(over, awaiting, declined) == advised(over)
    assert advised(awaiting, declined).startswith(advised(awaiting).partition(",")[0])


def test_silence_may_be_mended_or_allowed_for_and_other_replies_are_in_the_logs():
    assert all(word in advised(SILENT) for word in ("resume", "dropouts"))
    other = advised(SILENT, Absence("out of place: Answer"))
    assert ("logs of" in other, "dropouts" in other) == (True, False)
