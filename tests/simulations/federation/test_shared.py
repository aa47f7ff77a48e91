import dataclasses

import pytest

from common.errors import SignatureError
from common.secagg import rules
from common.secagg.identity import Roster
from simulations.federation.parties import LastValues
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
