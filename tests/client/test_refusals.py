import pytest

from client.refusals import detail, reason
from common import messages as m
from common.errors import CaucusError, DropoutError, FullError, MembershipError, RefusedError, SignatureError
from common.messages import WORDS, Reason
from common.secagg.rules import check_exactly, check_members
from tests.client.test_service import send
from tests.support.federations import plan, service

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
        (KeyError("text"), Reason.INTERNAL),
    ],
)
def test_a_reason_is_the_narrowest_that_fits(error, expected):
    assert reason(error) is expected


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("where party 1, sealed shares", "where St. Luke, sealed shares"),
        ("that of party 2 over this", "that of Charité: #2 over this"),
        ("party 3, party 12 and party 99999999", "party 3, party 12 and party 99999999"),
        ("party 0's, parties 1, [1, 2]", "St. Mary's, parties 1, [1, 2]"),
    ],
)
def test_numbers_of_parties_become_names(told, shown):
    assert detail(CaucusError(told), NAMES) == shown
    assert detail(CaucusError(told)) == told


def test_so_do_lists_of_parties_and_no_other_numbers():
    with pytest.raises(MembershipError) as strangers:
        check_members("receive 2", {0, 7}, {0, 2})
    assert detail(strangers.value, NAMES).endswith(
        "expected some of [St. Mary, Charité: #2]; got [party 7]; at receive 2"
    )
    with pytest.raises(MembershipError) as others:
        check_exactly("share", [], [1])
    assert detail(others.value, NAMES).endswith("expected [St. Luke]; got []; at share")


def test_the_log_has_the_hospitals_name_the_requests_and_the_runs(tmp_path, caplog):
    agreed = plan(3)
    party = service(tmp_path, 0, names=NAMES)
    asked = {"agreed": agreed, "run": "pilot-1a2b3c4d"}
    advert = send(party, m.Open(agreed.to_json()), **asked).advert
    send(party, m.AskShares({0: advert, 2: advert}), **asked)
    send(party, m.Open(b"{}"), agreed=agreed, run="a\nforged line")
    party.handle(m.Parcel(b"\xff"))
    shares, forged, unreadable = [record.getMessage() for record in caplog.records]
    assert shares.startswith("St. Mary refuses AskShares of run pilot-1a2b3c4d (MALFORMED): public key; ")
    assert "at Charité: #2, share" in shares
    assert forged.startswith("St. Mary refuses Open of run 'a\\nforged line' (MALFORMED): name of the run")
    assert unreadable.startswith("St. Mary refuses an unreadable message (MALFORMED)")
