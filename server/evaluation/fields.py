"""Shares of fields among structured texts, and of the values of enumerations: one group of figures for `metrics.json`.

Those of the synthetic texts need no private record. Beside them a simulation puts the real records' own, marked.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from common.structure import Structure

SYNTHETIC, RECORDS = "fields", "fields_records"
"""Names of the groups; the second is of a simulation alone."""

DEFINITION = (
    "Share of the texts that have a field, and of those with an enumeration or a truth value, the share of each value. "
    "Classifier, fidelity and diversity read the text field, {text_field}; votes compare whole texts."
)


def shares(texts: Sequence[str], structure: Structure) -> dict[str, Any]:
    """The group of these texts; it counts texts that are not of the structure, and leaves them out of the shares."""
    read = [fields for text in texts if (fields := structure.fields(text)) is not None]
    group: dict[str, Any] = {
        "definition": DEFINITION.format(text_field=structure.text_field),
        "not of the structure": {"value": len(texts) - len(read), "rows": len(texts)},
    }
    for name, field in structure.properties.items():
        values = [fields[name] for fields in read if name in fields]
        group[f"with {name}"] = _share(len(values), len(read))
        known = field.get("enum", [False, True] if field["type"] == "boolean" else [])
        counts = Counter(values) if known else Counter()
        group |= {
            f"{name} = {str(value).lower() if value in (False, True) else value}": _share(counts[value], len(values))
            for value in known
        }
    return group


def losses(cleaned: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, str]:
    """What the run repaired and dropped, as the group's note, of `rounds.jsonl`'s counts; empty for no such counts."""
    counts: Counter[str] = Counter()
    for by_model in cleaned:
        for kinds in by_model.values():
            counts.update(kinds)
    parts = []
    for said, prefix in (("repaired", "structure: "), ("dropped", "no structure: ")):
        kinds = [
            f"{kind.removeprefix(prefix)}: {count:,}" for kind, count in counts.most_common() if kind.startswith(prefix)
        ]
        parts += [f"{said} ({', '.join(kinds)})"] if kinds else []
    return {"note": f"Of what the models wrote, texts were {' and '.join(parts)}."} if parts else {}


def _share(count: int, rows: int) -> dict[str, Any]:
    if not rows:
        return {"value": None, "reason": "there are no such texts", "rows": 0}
    return {"value": count / rows, "rows": rows}
