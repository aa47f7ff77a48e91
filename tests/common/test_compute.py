import re
from itertools import chain
from pathlib import Path

import pytest

from common.compute import directly

ROOT = Path(__file__).parents[2]
PROTOCOL = ("common/*.py", "common/plan", "common/queries", "common/secagg", "client/*.py", "client/contributions")
PERMITTED = {
    "common/redaction.py": "patterns of the process, which no message decides",
    "client/app.py": "the one lasting channel of a relay to its service",
}


def test_a_party_alone_computes_with_named_arguments_too():
    assert directly(int, "10", base=2) == 2


@pytest.mark.parametrize(
    "file",
    sorted(chain.from_iterable(ROOT.glob(place if "*" in place else f"{place}/*.py") for place in PROTOCOL)),
    ids=lambda file: str(file.relative_to(ROOT)),
)
def test_protocol_code_keeps_nothing_in_caches_of_the_process(file):
    """What a simulation shares goes through `Compute`: no party's value depends on what others in the process did."""
    caches = re.search(r"\b(lru_cache|functools\.cache|import .*\bcache)\b", file.read_text(encoding="utf-8"))
    assert bool(caches) == (str(file.relative_to(ROOT)) in PERMITTED)
