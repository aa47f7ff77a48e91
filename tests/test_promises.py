"""Promises about the sources, kept by reading their syntax."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import server

ROOT = Path(server.__file__).parent
PUBLIC_RECORDS = {"held_out", "real", "record", "records", "target", "test", "train"}
"""Names in `server` for `Record`s: real texts that are no party's, or synthetic texts in that form."""


def declared(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Name and annotation of every parameter and every annotated field."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg, ast.unparse(node.annotation) if node.annotation else ""
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign):
                    yield ast.unparse(field.target), ast.unparse(field.annotation)


def takes_private_records(name: str, annotation: str) -> bool:
    identifiers, words = set(re.findall(r"\w+", annotation)), set(name.split("_"))
    return (
        ("private" in words and "key" not in words)
        or any(re.search("Private(?!Key)|WithRecords", identifier) for identifier in identifiers)
        or ("Record" in identifiers and name not in PUBLIC_RECORDS)
    )


def test_nothing_in_the_coordinator_s_package_takes_private_records():
    files = sorted(ROOT.rglob("*.py"))
    assert len(files) > 50
    taken = {
        f"{path.relative_to(ROOT)}: {name}: {annotation}"
        for path in files
        for name, annotation in declared(ast.parse(path.read_text("utf-8")))
        if takes_private_records(name, annotation)
    }
    assert taken == set()


def test_the_reading_finds_what_it_is_for():
    source = """
def score(private, held_out: Sequence[Record], members: Sequence[Record], *private_texts): ...
class Measured:
    records: Sequence[Record]
    names: list[str]
    private: list[str] = field()
    cases: MeasuredWithRecords
    private_key: bytes
lambda private: None
"""
    taken = [name for name, annotation in declared(ast.parse(source)) if takes_private_records(name, annotation)]
    assert sorted(taken) == ["cases", "members", "private", "private", "private", "private_texts"]
