"""Labels that are whole texts, as in swapped columns: commands and pages show their beginnings alone."""

import html

import pytest
from starlette.routing import Route

from client.approval.entries import approvals
from client.command import MODULES, main
from client.deploy.settings import HospitalSettings
from client.page import app
from client.records import LONGEST_LABEL, MOST_LABELS, shown_label, shown_labels
from tests.support.browsing import Browser
from tests.support.federations import plan
from tests.support.held_back import unrelated, write
from tests.support.hospital import opened

TEXT = " ".join(f"{number}th word of a note" for number in range(100, 120))[:200]
SHOWING = {
    "check": (["--offline"], ["--offline", "--json"]),
    "status": ([], ["--json"]),
    "approve": (["--list"], ["--json"], ["--no", "--reason", "x"], ["--refused", "--list"], ["--refused", "--yes"]),
    "rotate": ([],),
}
"""Commands on a folder, with their arguments."""
OTHERS = {"init", "audit", "roster", "invitation", "ledger", "models", "refresh", "start", "stop", "page", "leave"}
"""Commands that need more than a folder, or that read no records and print none; `init`, `audit`, `page` below."""


def test_each_command_is_tested_here_or_shows_nothing_of_records():
    assert {name for names in MODULES.values() for name in names} == SHOWING.keys() | OTHERS


def without_texts(output):
    for start in range(len(TEXT) - LONGEST_LABEL):
        assert TEXT[start : start + LONGEST_LABEL + 1] not in output.lower()


@pytest.fixture
def swapped(trusting):
    """A hospital whose records have their texts as labels, some of them alike; a plan awaits its decision."""
    texts = [
        TEXT,
        *(f"{TEXT[:-3]}{number:03}" for number in range(50)),
        *(f"{number:03}{TEXT}" for number in range(47)),
        *(TEXT.upper(), f"{TEXT} "),
    ]
    rows = "".join(f"flu {number},{text}\n" for number, text in enumerate(texts))
    HospitalSettings.load(trusting).records.write_text(f"text,label\n{rows}")
    opened(trusting, plan(2))
    return trusting


def test_no_command_shows_more_than_the_beginning_of_a_label(swapped, tmp_path, capsys):
    init = ["init", tmp_path / "new", "--name", "N", "--records", HospitalSettings.load(swapped).records]
    control = write(tmp_path / "control.csv", [f"cold {number}" for number in range(100)])
    texts = write(tmp_path / "s.csv", unrelated(30))
    commands = [
        [*init, "--invitation", tmp_path / "invitation.json"],
        ["audit", swapped, texts, "--control", control],
        *([name, swapped, *flags] for name, each in SHOWING.items() for flags in each),
    ]
    for command in commands:
        assert main(list(map(str, command))) in {0, 1}, command
        captured = capsys.readouterr()
        without_texts(captured.out + captured.err)
        without_texts(html.unescape(captured.out))


def test_no_page_shows_more_than_the_beginning_of_a_label(swapped, monkeypatch):
    paths = []
    monkeypatch.setattr(app, "Route", lambda path, *how, **more: paths.append(path) or Route(path, *how, **more))
    browser = Browser.entered(swapped)
    (entry,) = approvals(swapped / "private")
    pages = [browser.get(f"{path[1:]}?run={entry.run}&digest={entry.plan_digest}").text for path in paths]
    assert sum(TEXT[:30] in html.unescape(page) for page in pages) == 2  # all plans, and this one
    for page in pages:
        without_texts(html.unescape(page))


def test_the_most_frequent_labels_are_shown_and_the_others_counted():
    counts = {f"{number:03} {'x' * 60}": number for number in range(1, 41)}
    shown = shown_labels(counts)
    assert len(shown) == MOST_LABELS + 1
    assert shown["and 10 others"] == sum(range(1, 11))
    assert sum(shown.values()) == sum(counts.values())
    assert shown_labels({"x" * 50: 2, "x" * 60: 3, "b": 1}) == {"x" * 40 + "...": 5, "b": 1}
    assert shown_label("grün\u200b\x1b\u3164") == r"grün\u200b\x1b\u3164"
