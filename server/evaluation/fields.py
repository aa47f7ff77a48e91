"""Fractions of structured texts that have each field and each value of an enumeration: a group of `metrics.json`.

The fractions of synthetic texts do not need private records. A simulation adds a separate group with the fractions of
the real records.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from common.structure import Structure
from server.documents.metrics import Figure, Group

SYNTHETIC, RECORDS = "fields", "fields_records"
"""Names of the groups; only a simulation has the second."""

DEFINITION = (
    "Share of the texts that have a field, and of those with an enumeration or a truth value, the share of each value. "
    "Classifier, fidelity and diversity read the text field, {text_field}; votes compare whole texts."
)


Cleaned = Iterable[Mapping[str, Mapping[str, int]]]
"""For each round, the numbers of repaired and dropped texts, keyed by model and by the cleaner's rule."""


def of_run(texts: Sequence[str], structure: Structure | None, cleaned: Cleaned) -> dict[str, Group]:
    """Return the figures for a run's texts, with a note on repaired and dropped texts; empty for unstructured texts."""
    if structure is None:
        return {}
    note = _note(cleaned)
    return {SYNTHETIC: shares(texts, structure) | ({"note": note} if note else {})}


def shares(texts: Sequence[str], structure: Structure) -> Group:
    """Return the figures for these texts. Texts without the structure are counted, but excluded from the fractions."""
    read = [fields for text in texts if (fields := structure.fields(text)) is not None]
    group: Group = {
        "definition": DEFINITION.format(text_field=structure.text_field),
        "not of the structure": Figure(value=len(texts) - len(read), rows=len(texts)),
    }
    for name, field in structure.properties.items():
        values = [fields[name] for fields in read if name in fields]
        group[f"with {name}"] = _share(len(values), len(read))
        for value in field.get("enum", [True, False] if field["type"] == "boolean" else []):
            group[f"{name} = {str(value).lower() if value in (True, False) else value}"] = _share(
                values.count(value), len(values)
            )
    return group


def _note(cleaned: Cleaned) -> str | None:
    """Return a sentence on what the cleaner repaired and dropped in all rounds, by kind; None if it changed nothing."""
    rounds = list(cleaned)
    said = [counted(rounds, "repaired", "structure: "), counted(rounds, "dropped", "no structure: ")]
    return f"Of what the models wrote, {'; '.join(filter(None, said))}." if any(said) else None


def counted(cleaned: Cleaned, what: str, prefix: str) -> str:
    """Return `what`, followed by the number of the cleaner's changes of each kind in all rounds; empty without changes.

    Args:
        cleaned: The changes.
        what: Word for the changes, such as "dropped".
        prefix: Prefix of the names of the rules whose changes are counted.
    """
    counts: Counter[str] = Counter()
    for kinds in (kinds for by_model in cleaned for kinds in by_model.values()):
        counts.update({kind.removeprefix(prefix): count for kind, count in kinds.items() if kind.startswith(prefix)})
    listed = ", ".join(f"{kind} {count:,}" for kind, count in sorted(counts.items()))
    return f"{what}: {listed}" if listed else ""


def _share(count: int, rows: int) -> Figure:
    return Figure(value=count / rows, rows=rows) if rows else Figure(reason="there are no such texts", rows=0)
