"""A SuperNode that has given up ends, whatever threads of it are left."""

import subprocess
import sys

import pytest

BEGUN = """
import sys, threading
from client.deploy import supernode

threading.Thread(target=threading.Event().wait).start()  # as that of Flower's local API

def gives_up():
    pass

def fails():
    raise RuntimeError("it failed")

def heart_stops():
    threading.Thread(target=fails).start()
    threading.Event().wait()

supernode.flower_supernode = {}
supernode.main()
"""


@pytest.mark.parametrize("how", ["gives_up", "fails", "heart_stops"])
def test_a_supernode_that_has_given_up_ends(how):
    ended = subprocess.run(
        [sys.executable, "-c", BEGUN.format(how)], capture_output=True, text=True, check=False, timeout=120
    )
    assert ended.returncode == 1
    assert ("it failed" in ended.stderr) == (how != "gives_up")
