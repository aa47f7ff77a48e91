"""The sheets of plans at a hospital, and the facts behind them."""

import re

from client.approval.entries import approvals
from client.approval.sheet import plan_sheets
from client.deploy.settings import HospitalSettings
from common.page.words import catalogue

SAY = catalogue("client.approval")
"""The sentences of a sheet in English."""


def sheet_of(folder, run=None, language="en"):
    """Return the sheet of the only plan at a hospital, or of this run's plan."""
    known = approvals(folder / "private")
    (entry,) = (entry for entry in known if run in {None, entry.run})
    return plan_sheets(HospitalSettings.load(folder), [entry], known, language)[0]


def sentences_of(sheet):
    """Return the sheet's sentences, keyed by the name of the fact that they belong to."""
    values, name = {}, ""
    for section in sheet.sections:
        for fact in section.facts:
            name = fact.name or name
            values.setdefault(name, []).extend(fact.sentences)
    return values


def says(sentence, template):
    """Return whether a sentence is one of the catalogue, with whatever values."""
    pattern = re.sub(r"\\{\w*\\}", ".*", re.escape(template))
    return re.fullmatch(pattern, sentence, re.DOTALL) is not None


def sentence_of(folder, name, template):
    """Return the only sentence under a name that is this one of the catalogue; fail if there is another number."""
    (sentence,) = (each for each in sentences_of(sheet_of(folder))[name] if says(each, template))
    return sentence
