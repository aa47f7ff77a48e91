import dataclasses

import pytest

from common.errors import SignatureError
from common.queries import closed_set
from common.secagg import rules
from common.secagg.identity import Roster
from simulations.federation.shared import LastValues
from tests.support.federations import federation, plan, query, roster, service
from tests.support.secagg_rounds import Run, identity, setup


def test_a_value_is_computed_again_only_for_other_arguments_and_after_an_error():
    shared, calls = LastValues(), []

    def quotient(one, other=1):
        calls.append((one, other))
        return one / other

    def negative(one):
        calls.append(one)
        return -one

    assert [shared(quotient, 6, other=3), shared(negative, 6), shared(quotient, 6, other=3), shared(negative, 6)] == [
        2,
        -6,
        2,
        -6,
    ]
    assert calls == [(6, 3), 6]
    assert [shared(quotient, 6, other=2), shared(quotient, 6)] == [3, 6]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            shared(quotient, 6, other=0)
    assert shared(quotient, 6) == 6
    assert calls[2:] == [(6, 2), (6, 1), (6, 0), (6, 0)]


def test_equal_keys_of_everybody_are_checked_once_and_any_others_again(monkeypatch):
    run = Run(setup(malicious=True)).advertise()
    verified, verify, shared = [], rules.verify, LastValues()
    monkeypatch.setattr(rules, "verify", lambda *args, **names: (verified.append(args[1]), verify(*args, **names)))

    def checked(asked=run.setup, adverts=run.adverts, known=run.roster):
        return shared(rules.check_adverts, asked, adverts, known, "share")

    first = checked()
    del verified[:]
    copies = {party: dataclasses.replace(advert) for party, advert in run.adverts.items()}
    assert checked(setup(malicious=True), copies, Roster(dict(run.roster.keys))) == first
    assert not verified

    for change in (
        {"adverts": run.adverts | {3: dataclasses.replace(run.adverts[3], signature=bytes(64))}},
        {"known": None},
        {"known": Roster(run.roster.keys | {3: identity(9).public})},
        {"asked": dataclasses.replace(run.setup, attempt=1)},
    ):
        for _ in range(2):
            checked()
            with pytest.raises(SignatureError):
                checked(**change)


@pytest.mark.parametrize("compute", [{}, {"compute": LastValues()}], ids=["alone", "shared"])
def test_parties_digest_a_question_once_if_they_share_the_work(compute, tmp_path, monkeypatch):
    digested, digest = [], closed_set.digest
    monkeypatch.setattr(closed_set, "digest", lambda asked: (digested.append(asked), digest(asked))[1])
    known = roster(4)
    services = {party: service(tmp_path, party, known=known, **compute) for party in range(4)}
    asking = federation(tmp_path, services, plan(4, roster=known.digest.hex(), threshold=3), known=known)
    asking.open()
    asking.ask("votes", 0, query())
    assert len(digested) == 1 + (1 if compute else 4)  # the coordinator's, and the parties'
