"""A hostile coordinator over real nodes: the right bundle, but code of its own behind it (`tests/support/hostile.py`).

Whatever it sends, the hospitals refuse with a coarse reason or answer what they answered before; each query is paid
once; nothing of their records, planted canaries included, is among all the bytes that it ever got; and whatever it did
in a run or before, an honest run ends whole.
"""

import csv
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from common.ledger.ledger import Ledger
from simulations.laboratory.nodes.deployment import text
from tests.support import hostile
from tests.support.deployed import Deployment
from tests.support.faults import charges, measured, read_run

pytestmark = pytest.mark.deployment

NOISE = ("privacy.epsilon=4", "federation.timeout=60", "secagg=semi_honest")
QUERIES = 2
CANARY, LABEL = "zyxcanaryzyx", "qvqlabelqvq"
CLOSED_SET = {
    *("Opened", "Shares", "Answer", "UnmaskShares", "Closed"),
    *("MALFORMED", "OUT_OF_ORDER", "UNPLANNED", "OVER_LIMIT", "SURVIVORS", "ROSTER", "IDENTITY", "error 2"),
}


@pytest.fixture(scope="module")
def deployed():
    folder = Path(tempfile.mkdtemp(prefix="caucus-"))
    with Deployment(folder, path={"coordinator": (hostile.folder(folder / "hostile"),)}) as made:
        for number in range(3):
            made.set(number, lifetime_epsilon="null", malicious_coordinator="false")
            with (folder / f"notes{number}.csv").open("r+", newline="") as file:
                known = list(csv.reader(file))[1][1]  # a record of another label takes no part
                notes = [(f"{CANARY} {number} of asthma and cough", label) for label in (known, known, LABEL)]
                csv.writer(file).writerows(notes)
        made.up()
        yield made


def acted(deployed, act, run, *overrides, code=0, resumed=False):
    """One run, or its continuation, in which the coordinator does this; the last line that its operator reads."""
    hostile.choose(deployed.folder / "hostile", act)
    started = time.monotonic()
    output = deployed.resume(run, code=code) if resumed else deployed.run(run, *NOISE, *overrides, code=code)
    line = output.splitlines()[-1]
    measured(f"{act}, {run}", started, line)
    return line


def seen(deployed, step):
    """How hospitals answered to one step of an act; how often depends on how often the run tries again."""
    got = hostile.outcomes(deployed.folder / "hostile", step)
    measured(step, time.monotonic(), str(got))
    return set(got)


def paid(deployed, run):
    """Each hospital's charges for a run: which query, and whether it is closed."""
    return [charges(deployed.ledger(number), read_run(deployed, run)) for number in range(3)]


def whole(deployed, run):
    deployed.result(run)
    assert paid(deployed, run) == [[(0, True), (1, True)]] * 3


def test_what_is_sent_twice_is_answered_once(deployed):
    acted(deployed, "twice", "twice")
    assert seen(deployed, "Ask again") == {"OUT_OF_ORDER"}
    assert seen(deployed, "AskUnmask again") == {"OUT_OF_ORDER"}
    whole(deployed, "twice")


def test_what_was_closed_is_never_answered_again(deployed):
    acted(deployed, "after_close", "closed")
    for step in ("Ask after Close", "AskUnmask after Close", "Ask after Open after Close"):
        assert seen(deployed, step) == {"OUT_OF_ORDER"}
    assert seen(deployed, "Open after Close") == {"Opened"}
    # A coordinator that has forgotten what it asked, and asks all of it again in the right order.
    forgotten = deployed.here / "runs" / "forgotten"
    forgotten.mkdir()
    shutil.copy(deployed.here / "runs" / "closed" / "config.yaml", forgotten)
    line = acted(deployed, "nothing", "forgotten", code=1, resumed=True)
    assert line.count("refused: OVER_LIMIT") == 3
    assert "is closed" in text(deployed.at(0) / "logs" / "service.log")
    whole(deployed, "closed")


def test_another_run_s_question_and_flipped_bits_are_refused(deployed):
    acted(deployed, "elsewhere", "elsewhere")
    assert seen(deployed, "Ask of another run") == {"UNPLANNED"}
    assert seen(deployed, "envelope") == {"UNPLANNED", "MALFORMED"}
    assert seen(deployed, "bulk") == {"MALFORMED"}
    whole(deployed, "elsewhere")


def test_the_same_query_is_not_answered_about_other_vectors(deployed):
    acted(deployed, "lost", "changed", code=1)
    line = acted(deployed, "changed", "changed", code=1, resumed=True)
    assert line.count("refused: OVER_LIMIT") == 1
    assert seen(deployed, "changed question") == {"OVER_LIMIT"}
    assert paid(deployed, "changed") == [[(0, False)]] * 3
    acted(deployed, "nothing", "changed", resumed=True)
    whole(deployed, "changed")


def test_a_sum_is_opened_for_one_set_of_survivors_alone(deployed):
    acted(deployed, "fewer", "survivors", "federation.max_dropouts=1", code=1)
    assert seen(deployed, "AskUnmask of all") == {"UnmaskShares"}
    assert seen(deployed, "AskUnmask of fewer") == {"OUT_OF_ORDER"}
    acted(deployed, "fewer_later", "survivors", code=1, resumed=True)
    # The third is not among the fewer: it has no share for a sum that does not hold it.
    assert seen(deployed, "AskUnmask of fewer, later") == {"SURVIVORS", "IDENTITY"}
    acted(deployed, "nothing", "survivors", resumed=True)
    whole(deployed, "survivors")


def test_plans_beyond_limits_roster_or_digest_are_refused(deployed):
    acted(deployed, "plans", "plans")
    for step in ("epsilon above the limits", "less noise than epsilon needs", "delta above the limits"):
        assert seen(deployed, step) == {"OVER_LIMIT"}
    assert seen(deployed, "more parties than the roster's") == {"ROSTER"}
    assert seen(deployed, "another digest") == {"UNPLANNED"}
    assert seen(deployed, "no plan") == {"MALFORMED"}
    whole(deployed, "plans")


@pytest.mark.parametrize(
    ("mode", "step", "reasons"),
    [
        ("malicious", "AskShares under two plans", {"IDENTITY"}),  # the keys were signed for another plan
        ("semi_honest", "Ask under two plans", {"MALFORMED"}),  # the shares were sealed under another plan
    ],
)
def test_hospitals_that_were_shown_different_plans_share_no_mask(deployed, mode, step, reasons):
    line = acted(deployed, "forked", f"forked-{mode}", f"secagg.mode={mode}", "federation.retries=0", code=1)
    assert seen(deployed, "Open under two plans") == {"Opened"}
    assert seen(deployed, step) == reasons
    assert line.count(f"refused: {reasons.copy().pop()}") == 3
    assert paid(deployed, f"forked-{mode}") == [[]] * 3


def test_messages_of_another_type_and_garbage_are_refused(deployed):
    acted(deployed, "garbage", "garbage")
    assert seen(deployed, "another type") == {"error 2"}
    assert seen(deployed, "no parcel") == {"error 2", "MALFORMED"}
    assert seen(deployed, "a reply as request") == {"OUT_OF_ORDER"}
    assert seen(deployed, "to another party") == {"MALFORMED"}
    whole(deployed, "garbage")


def test_afterwards_an_honest_run_ends_whole_and_nothing_else_was_paid(deployed):
    acted(deployed, "nothing", "honest")
    whole(deployed, "honest")
    answered = [folder for folder in (deployed.here / "runs").iterdir() if not folder.name.startswith("forked")]
    runs = {read_run(deployed, folder.name) for folder in answered}
    for number in range(3):
        entries = Ledger(deployed.at(number) / "private" / "ledger.db", read_only=True).entries()
        assert {entry.run for entry in entries} == runs
        assert len(entries) == QUERIES * len(runs)


def test_nothing_that_it_got_is_outside_the_closed_set_or_of_a_record(deployed):
    got = hostile.replies(deployed.folder / "hostile")
    assert {reply["outcome"] for reply in got} <= CLOSED_SET
    assert not any(reply.get("others") for reply in got)
    assert all(reply["said"] == "" for reply in got if reply["outcome"].startswith("error"))
    answers = [np.frombuffer(bytes.fromhex(reply["bulk"]), "<i8") for reply in got if reply["outcome"] == "Answer"]
    assert len(answers) > 3 * QUERIES
    for words in answers:  # masked: all over the ring, where counts with noise would be small
        assert np.mean(np.abs(words.astype(float)) > 2.0**48) > 0.9
    replies = b"".join(bytes.fromhex(reply["said"]) for reply in got if not reply["outcome"].startswith("error"))
    for number in range(3):
        with (deployed.folder / f"notes{number}.csv").open(newline="") as file:
            private = [row[0][:20].encode() for row in list(csv.reader(file))[1:]]
        assert not any(note in replies for note in private)
        logs = "".join(text(log) for log in (deployed.at(number) / "logs").glob("*"))
        logs += text(deployed.at(number) / "private" / "audit.jsonl")
        for canary in (CANARY, LABEL):
            assert canary.encode() not in replies
            assert canary not in logs
    measured("replies recorded", time.monotonic(), f"{len(got)} replies, {len(replies)} bytes, no canary")
