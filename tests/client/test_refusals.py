import pytest

from client.refusals import detail, reason
from common import messages as m
from common.errors import (
    CaucusError,
    ConfigError,
    DropoutError,
    FullError,
    MembershipError,
    MissingPackageError,
    RefusedError,
    SignatureError,
)
from common.messages import WORDS, Reason
from common.phrases import NumberedParty, Phrase
from common.secagg.rules import check_exactly, check_members
from tests.support.federations import plan, service
from tests.support.party_requests import send

NAMES = ("St. Mary", "St. Luke", "Charité: #2")


def test_each_reason_has_words_of_its_own():
    assert set(WORDS) == set(Reason)
    assert len(set(WORDS.values())) == len(Reason)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FullError("answers"), Reason.FULL),
        (RefusedError("closed"), Reason.OVER_LIMIT),
        (DropoutError("few"), Reason.TOO_FEW),
        (SignatureError("s"), Reason.IDENTITY),
        (MembershipError("s"), Reason.IDENTITY),
        (OverflowError(), Reason.MALFORMED),
        (ConfigError("steps"), Reason.MALFORMED),
        (MissingPackageError("fine_tuning"), Reason.SETTINGS),
        (KeyError("text"), Reason.INTERNAL),
    ],
)
def test_a_reason_is_the_narrowest_that_fits(error, expected):
    assert reason(error) is expected


def test_parties_have_their_names_and_no_text_is_searched_for_numbers():
    error = CaucusError("party 0", got=Phrase("that of ", NumberedParty(2)), where=NumberedParty(12))
    assert detail(error, NAMES) == "party 0; got that of Charité: #2; at party 12"
    assert detail(error) == "party 0; got that of party 2; at party 12"


def test_lists_of_parties_have_their_names_and_no_other_number_has_one():
    with pytest.raises(MembershipError) as strangers:
        check_members("receive 2", {0, 7}, {0, 2})
    assert detail(strangers.value, NAMES).endswith("got party 7; at receive 2")
    with pytest.raises(MembershipError) as others:
        check_exactly("share", [], [1])
    assert detail(others.value, NAMES).endswith("St. Luke; got none; at share")


def test_the_log_has_the_hospitals_name_the_requests_and_the_runs(tmp_path, caplog):
    agreed = plan(3)
    party = service(tmp_path, 0, names=NAMES)
    opening = {"agreed": agreed, "run": "pilot-1a2b3c4d"}
    advert = send(party, m.Open(agreed.to_json()), **opening).advert
    send(party, m.AskShares({0: advert, 2: advert}), **opening)
    send(party, m.Open(b"{}"), agreed=agreed, run="a\nforged line")
    party.handle(m.Parcel(b"\xff"))
    shares, forged, unreadable = [record.getMessage() for record in caplog.records]
    assert shares.startswith("St. Mary refuses AskShares")
    assert "at Charité: #2, share" in shares
    assert forged.startswith("St. Mary refuses Open")
    assert unreadable.startswith("St. Mary")
