"""What a party's service holds to over all runs: its limits for each record, and a ledger that can be written."""

from dataclasses import replace

import pytest

from common import messages as m
from common.domain import UNLABELLED
from common.errors import LedgerError
from common.ledger import file
from common.ledger.ledger import Ledger
from common.messages import Reason
from common.privacy.accountant import epsilon_by_norm
from common.queries.votes import VotesSpec
from tests.support.federations import OPEN, lenient, plan, query, records, service
from tests.support.ledgers import edited
from tests.support.party_requests import PLAIN, opened, send

FOR_ONE_RUN = lenient(lifetime_epsilon=5.0, lifetime_delta=1e-5)
"""One run of PLAIN has epsilon 4, two have 6.1."""
SEPARATE = replace(FOR_ONE_RUN, separate_data_sets=True)
OVER = m.Refusal(Reason.OVER_LIMIT)
MINE, OTHERS = records(0), records(1)


def whole_run(folder, private, name, limits=FOR_ONE_RUN, agreed=PLAIN):
    """The replies to a run's Open and its two queries."""
    party = service(folder, 0, private=private, limits=limits)
    queries = [query(seed, max_records=agreed.queries[0].spec.max_records) for seed in range(2)]
    bodies = [(m.Open(agreed.to_json()), 0), *((m.Ask(one), index) for index, one in enumerate(queries))]
    return [send(party, body, run=name, index=index, agreed=agreed) for body, index in bodies]


def accepted(replies):
    return [type(reply) for reply in replies] == [m.Opened, m.Answer, m.Answer]


@pytest.mark.parametrize(
    "private",
    [MINE, [*MINE, OTHERS[0]], MINE[1:], [MINE[0], *OTHERS], list(reversed(MINE)), OTHERS],
    ids=["the same", "one more", "one less", "one in common", "in another order", "none in common"],
)
def test_a_record_gets_no_fresh_budget_by_another_run_over_other_records(private, tmp_path):
    for name in ("without a limit", "nor then"):
        assert accepted(whole_run(tmp_path, MINE, name, limits=lenient()))
    (tmp_path / "limited").mkdir()
    tmp_path /= "limited"
    assert accepted(whole_run(tmp_path, MINE, "first"))
    assert whole_run(tmp_path, private, "second")[0] == OVER


@pytest.mark.parametrize(
    "private", [MINE, [*MINE, OTHERS[0]], MINE[1:], [MINE[0], *OTHERS]], ids=["same", "one more", "one less", "one"]
)
def test_separate_data_sets_with_a_record_in_common_share_a_budget(private, tmp_path):
    assert accepted(whole_run(tmp_path, MINE, "first", limits=SEPARATE))
    assert whole_run(tmp_path, private, "second", limits=SEPARATE)[0] == OVER


@pytest.mark.parametrize("now", ["without labels", "with labels"])
def test_the_same_texts_with_and_without_labels_share_a_budget(now, tmp_path):
    both = [MINE, [replace(record, label=UNLABELLED) for record in MINE]]
    first, second = both if now == "without labels" else reversed(both)
    assert whole_run(tmp_path, first, "first", limits=SEPARATE, agreed=PLAIN)
    assert whole_run(tmp_path, second, "second", limits=SEPARATE)[0] == OVER


def test_separate_data_sets_have_budgets_of_their_own(tmp_path):
    assert accepted(whole_run(tmp_path, MINE, "first", limits=SEPARATE))
    assert accepted(whole_run(tmp_path, OTHERS, "second", limits=SEPARATE))
    assert whole_run(tmp_path, [MINE[2], OTHERS[2]], "third", limits=SEPARATE)[0] == OVER


def test_a_user_may_have_records_in_every_data_set(tmp_path):
    users = plan(3, secure=False, unit="user", spec=VotesSpec(top=4, max_records=2))
    assert accepted(whole_run(tmp_path, MINE, "first", limits=SEPARATE, agreed=users))
    assert whole_run(tmp_path, OTHERS, "second", limits=SEPARATE, agreed=users)[0] == OVER
    # And what users were charged counts for their records.
    assert whole_run(tmp_path, OTHERS, "third", limits=SEPARATE)[0] == OVER


def test_two_runs_that_were_opened_before_either_was_charged_do_not_get_past_the_limit_together(tmp_path):
    parties = [service(tmp_path, 0, private=MINE, limits=FOR_ONE_RUN) for _ in range(2)]
    for number, party in enumerate(parties):
        assert isinstance(send(party, m.Open(PLAIN.to_json()), run=f"{number}"), m.Opened)
    replies = [
        send(party, m.Ask(query(index)), run=f"{number}", index=index)
        for index in range(2)
        for number, party in enumerate(parties)
    ]
    assert isinstance(replies[0], m.Answer)
    assert replies[-1] == OVER
    charged = Ledger(tmp_path / "party-0.db").releases()
    assert len(charged) == sum(isinstance(reply, m.Answer) for reply in replies)
    assert epsilon_by_norm(charged, 1e-5) <= 5.0 < epsilon_by_norm((*charged, PLAIN.answer_release(0)), 1e-5)


def test_a_full_disk_gives_a_coarse_refusal_and_no_answer(tmp_path, monkeypatch, caplog):
    party = opened(tmp_path)
    path = tmp_path / "party-0.db"
    with monkeypatch.context() as patch:
        pages = path.stat().st_size // 4096
        patch.setattr(file, "_PRAGMAS", (*file._PRAGMAS, f"max_page_count = {pages}"))
        # 24 000 numbers of 8 bytes: there may be room for the charge, but none for the answer.
        assert send(party, m.Ask(query(candidates=12_000))) == m.Refusal(Reason.INTERNAL)
    assert "is full" in caplog.text
    assert all(entry.answer is None for entry in Ledger(path).entries())
    assert isinstance(send(party, m.Ask(query(candidates=12_000))), m.Answer)
    assert len(Ledger(path).entries()) == 1


def test_an_edited_ledger_gives_a_coarse_refusal_and_no_answer(tmp_path, caplog):
    party = opened(tmp_path)
    assert isinstance(send(party, m.Ask(query())), m.Answer)
    edited(
        tmp_path / "party-0.db",
        """UPDATE events SET body = replace(body, '"scale"', '"scala"') WHERE sequence = 1""",
    )
    assert send(party, m.Ask(query(1)), index=1) == m.Refusal(Reason.INTERNAL)
    assert send(party, m.Open(PLAIN.to_json()), run="other") == m.Refusal(Reason.INTERNAL)
    assert "is damaged" in caplog.text
    with pytest.raises(LedgerError):
        service(tmp_path, 0)


@pytest.mark.parametrize(("declared", "accepted"), [(4, True), (5, False)])
@pytest.mark.parametrize("count", [0, 3])
def test_a_delta_of_one_in_the_declared_number_of_records_is_refused_however_many_there_are(
    declared, accepted, count, tmp_path, caplog
):
    agreed = plan(3, secure=False, delta=0.2)
    party = service(tmp_path, 0, private=records(0, count), limits=OPEN, declared=declared)
    reply = send(party, m.Open(agreed.to_json()), agreed=agreed)
    assert isinstance(reply, m.Opened) if accepted else reply == m.Refusal(Reason.OVER_LIMIT)
    assert ("below 1/5" in caplog.text) == (not accepted)
