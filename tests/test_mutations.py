"""`make mutations` cannot rot: what it changes is still there, what it names is still there, and it works."""

import ast
from itertools import chain

import pytest

from tests.mutations import MUTATIONS, ROOT, Mutation, caught, copied
from tests.support.lanes import slow_but


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_text_is_found_once_and_the_result_is_a_program(mutation):
    source = (ROOT / mutation.file).read_text("utf-8")
    assert source.count(mutation.old) == 1
    ast.parse(source.replace(mutation.old, mutation.new))


def test_every_mutation_has_a_name_of_its_own_and_tests_that_are_there():
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 20
    for test in set(chain.from_iterable(mutation.tests for mutation in MUTATIONS)):
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text("utf-8") if name else (ROOT / file).is_file(), test


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return copied(tmp_path_factory.mktemp("copy"))


QUICKEST = ("the l2 sensitivity of a user's m records grows with sqrt(m)", "a noisy choice at half of its scale")


@pytest.mark.parametrize("name", slow_but(QUICKEST[:1], QUICKEST))
def test_a_mutation_is_caught_and_undone(name, copy):
    (mutation,) = (mutation for mutation in MUTATIONS if mutation.name == name)
    assert caught(copy, mutation)
    assert (copy / mutation.file).read_bytes() == (ROOT / mutation.file).read_bytes()


def test_what_changes_nothing_is_not_caught_and_a_text_that_is_gone_stops_everything(copy):
    (first,) = (mutation for mutation in MUTATIONS if mutation.name == QUICKEST[0])
    comment = Mutation(name="a comment", file=first.file, old=first.old, new=f"{first.old}  # !", tests=first.tests)
    assert not caught(copy, comment)
    with pytest.raises(SystemExit, match="0 times"):
        caught(copy, Mutation(name="gone", file=first.file, old="no such text", new="", tests=()))
    with pytest.raises(SystemExit, match="be run"):
        caught(copy, Mutation(name="no test", file=first.file, old=first.old, new=first.new, tests=("tests/none.py",)))
