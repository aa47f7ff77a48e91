import contextlib
import copy
import pickle
import threading

import pytest

from common.errors import ProtocolError
from common.secagg.once import Once


def test_taken_once():
    once = Once("held", step="mask")
    assert once.get() == "held"
    assert once.take() == "held"
    for again in (once.take, once.get):
        with pytest.raises(ProtocolError, match=r"twice.*at mask"):
            again()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_cannot_be_copied(duplicate):
    with pytest.raises(TypeError, match="cannot be copied"):
        duplicate(Once("held", step="mask"))


def test_of_many_threads_one_wins():
    once, barrier, won = Once("held", step="mask"), threading.Barrier(8), []

    def race():
        barrier.wait()
        with contextlib.suppress(ProtocolError):
            won.append(once.take())

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == ["held"]
