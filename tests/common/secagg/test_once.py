import contextlib
import copy
import pickle
import threading
import weakref

import pytest

from common.errors import ProtocolError, ReplayError
from common.secagg.once import Once, OnceEach


def test_taken_once():
    once = Once("held", step="mask")
    assert once.get() == "held"
    assert once.take() == "held"
    for again in (once.take, once.get):
        with pytest.raises(ReplayError, match=r"twice.*at mask"):
            again()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_cannot_be_copied(duplicate):
    with pytest.raises(TypeError, match="copied"):
        duplicate(Once("held", step="mask"))
    with pytest.raises(TypeError, match="copied"):
        duplicate(OnceEach({0: "held"}, step="mask"))


def test_rounds_go_forward_and_each_is_taken_once():
    rounds = OnceEach({1: "a", 3: "b", 4: "c"}, step="mask")
    assert rounds.take(3) == "b"
    for spent in (3, 1):
        with pytest.raises(ReplayError, match=rf"at round {spent}, mask"):
            rounds.take(spent)
    assert rounds.take(4) == "c"


def test_taking_a_round_drops_those_before_it():
    values = [Value() for _ in range(3)]
    rounds = OnceEach(dict(enumerate(values)), step="mask")
    watched = [weakref.ref(value) for value in values]
    del values
    assert rounds.take(1) is watched[1]()
    assert [reference() is None for reference in watched] == [True, True, False]


def test_other_rounds_are_refused():
    with pytest.raises(ProtocolError, match=r"got 2; at mask"):
        OnceEach({1: "a", 3: "b"}, step="mask").take(2)


@pytest.mark.parametrize("make", [lambda: Once("held", step="mask"), lambda: OnceEach({0: "held"}, step="mask")])
def test_of_many_threads_one_wins(make):
    once, barrier, won = make(), threading.Barrier(8), []
    arguments = () if isinstance(once, Once) else (0,)

    def race():
        barrier.wait()
        with contextlib.suppress(ReplayError):
            won.append(once.take(*arguments))

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == ["held"]


class Value:
    """Something that can be watched as it goes."""
