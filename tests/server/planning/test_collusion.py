"""The price of hospitals that help the coordinator: in epsilon, in noise, and in further hospitals."""

import json
import math

import pytest

from common.plan.guarantee import epsilon_against
from common.queries.votes import VotesSpec
from server.command import main
from server.planning import forecast
from server.planning.collusion import collusion, collusion_advice
from tests.support.federations import plan, roster
from tests.support.lanes import slow


def signed(parties, corrupt, **changes):
    settings = {"threshold": (parties + corrupt + 1) // 2, "roster": roster(parties).digest.hex()}
    return plan(parties, spec=VotesSpec(top=8), corrupt=corrupt, **settings | changes)


def test_a_plan_that_expects_none_to_help_says_what_it_costs_if_some_do():
    agreed = signed(10, 3, epsilon=8.0)
    price = collusion(agreed, 0.3)
    assert (price.helping, price.planned, price.hospitals) == (3, 0, 3)
    assert price.epsilon == epsilon_against(agreed, 3) == pytest.approx(9.9, abs=0.1)
    assert price.noise == pytest.approx(math.sqrt(10 / 7))
    (sentence,) = collusion_advice(price, agreed.epsilon)
    assert [
        fact
        for fact in ("3 hospitals", "9.9", "federation.colluders=3", "1.20 times", "3 more")
        if fact not in sentence
    ] == []


@pytest.mark.parametrize(("parties", "dropouts"), [slow(5, 1), (10, 0), slow(10, 1), (20, 2)])
def test_its_noise_and_further_hospitals_are_those_of_the_plan_that_expects_them(parties, dropouts):
    corrupt = math.ceil(0.3 * parties)
    trusting, wary = (
        signed(parties, corrupt, max_dropouts=dropouts, colluders=colluders) for colluders in (0, corrupt)
    )
    price = collusion(wary, 0.3)
    assert price.epsilon == pytest.approx(4.0)
    assert collusion_advice(price, 4.0) == []
    (before,), (after,) = trusting.queries, wary.queries
    assert price.noise == pytest.approx(wary.share_sigma(after) / trusting.share_sigma(before))

    def signal(count, helping):
        """M records at each of so many hospitals, against the noise of a sum over all of them, in units of sigma."""
        return count / math.sqrt(count / (count - dropouts - helping))

    enough = parties + price.hospitals
    assert signal(enough, math.ceil(0.3 * enough)) >= signal(parties, 0) * (1 - 1e-12)
    assert signal(enough - 1, math.ceil(0.3 * (enough - 1))) < signal(parties, 0)


def test_where_nobody_else_s_noise_would_be_left_only_more_hospitals_help():
    agreed = signed(3, 1, max_dropouts=0)
    assert collusion(agreed, 0.3).noise == pytest.approx(math.sqrt(3 / 2))
    lonely = plan(4, max_dropouts=2, threshold=2, corrupt=2, secure=True, degree=2)
    price = collusion(lonely, 0.5)
    assert (price.noise, price.hospitals) == (None, None)
    assert "any noise" in collusion_advice(price, 4.0)[0]


@pytest.mark.parametrize(
    ("overrides", "planned", "advised"),
    [
        (["secagg=malicious"], 1, False),
        (["secagg=malicious", "federation.colluders=0"], 0, True),
        (["secagg=semi_honest"], None, False),
    ],
)
def test_plan_prints_it_where_the_coordinator_is_not_trusted(overrides, planned, advised, capsys, monkeypatch):
    monkeypatch.setattr(forecast, "forecast", lambda *_, **__: {})  # a rehearsal of the run takes a second
    assert main(["plan", "--json", "privacy.epsilon=4", *overrides]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["collusion"] and report["collusion"]["planned"]) == planned
    assert any("federation.colluders=1 " in sentence for sentence in report["advice"]) == advised
