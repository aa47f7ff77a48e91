"""Advice of `caucus-party check` on users and labels of the records and on earlier charges; it names no user."""

import re
from collections.abc import Sequence

from client.approval.entries import find_entry
from client.deploy.settings import HospitalSettings
from client.records import MOST_LABELS, shown_label
from common.domain import Record
from common.spelling import alike

_TURNED = re.compile(r"[0-9][.,][0-9]+E[+-]?[0-9]+")
"""How a spreadsheet shows the code 1E50 of ICD-11, which it takes for a number."""


def advice_on_users(private: Sequence[Record], unit: str) -> list[str]:
    """Return advice where several names may be one user's, or where there are none although users are the `unit`."""
    users = {record.user for record in private} - {None}
    similar = sum(map(len, alike(user for user in users if user is not None)))
    advice = []
    if similar:
        advice.append(
            f"{similar} of the {len(users)} users differ from another one in case, spaces, encoding or look-alike "
            "letters alone, and each is protected as a user apart: write each user in one way"
        )
    if len(users) == 1 and len(private) > 1:
        advice.append('All records name one user: in a query, write AS "user", since user alone is the account')
    if unit == "user" and private and not users:
        advice.append("Name the users in a column `user`: without it, all records count as those of one user")
    return advice


def advice_on_labels(private: Sequence[Record]) -> list[str]:
    """Return advice on labels that look like others or like numbers, or end in spaces, and on one for all records."""
    labels = list(dict.fromkeys(label for record in private for label in record.labels))
    groups = [" and ".join(map(_quoted, group)) for group in alike(labels)[:MOST_LABELS]]
    turned = [_quoted(label) for label in labels if _TURNED.fullmatch(label.strip())][:MOST_LABELS]
    spaced = [_quoted(label) for label in labels if label != label.strip()][:MOST_LABELS]
    advice = []
    if len(labels) == 1 and len(private) > 1:
        advice.append(
            f"All records have one label, {_quoted(labels[0])}: if they should have several, take them from another "
            "column. In FHIR, type.coding[0].code is often the kind of document: write the rows as .jsonl, with a label"
        )
    if turned:
        advice.append(f"A spreadsheet may have turned codes such as 1E50 into {', '.join(turned)}: export them as text")
    if groups:
        advice.append(f"A plan's labels are compared letter by letter: write {', '.join(groups)} in one way")
    if spaced:
        advice.append(f"Remove the spaces at the ends of {', '.join(spaced)}, unless plans have them too")
    return advice


def _quoted(label: str) -> str:
    # As ASCII, since two encodings of the same letters look the same.
    return f"'{shown_label(ascii(label)[1:-1])}'"


def advice_on_charges(settings: HospitalSettings) -> list[str]:
    """Return advice if answers were charged that protect, or may protect, fewer of a user's records than is demanded.

    Raises:
        DataError: A file of the hospital's runs is damaged.
        LedgerError: The ledger cannot be read.
    """
    limits = settings.party.limits
    if limits.unit == "sample" and limits.min_unit_records == 1:
        return []
    ledger, _ = settings.noted_head.inspected(settings.ledger)
    charged = {(entry.run, entry.plan_digest.hex()) for entry in ledger.entries()} if ledger else set()
    approvals = [find_entry(settings.private, run, digest) for run, digest in charged]
    plans = [approval.read_plan() if approval else None for approval in approvals]
    less, unknown = sum(plan is not None and not limits.protects(plan) for plan in plans), plans.count(None)
    advice = []
    if less:
        advice.append(
            "count on more epsilon for a user with several records than the ledger says: it has answers of plans that "
            f"protect fewer records together than unit and min_unit_records demand now ({less})"
        )
    if unknown:
        advice.append(
            "whether all charged plans protect as many records together as unit and min_unit_records demand now is "
            f"not known: the ledger has answers of plans that are not known here ({unknown})"
        )
    return advice
