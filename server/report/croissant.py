"""`croissant.json`: a data set's description for programs, in Croissant 1.0 with its responsible-AI fields.

The formats are those of https://docs.mlcommons.org/croissant/docs/croissant-spec.html and croissant-rai-spec.html.
Croissant has no field for a guarantee, so the numbers of the guarantee are in `additionalProperty` of schema.org.
"""

import json
import math
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from common.page.words import catalogue
from server.guarantee.messages import fill_in
from server.report.dataset_card import JSON_LINES, MARKED, PARQUET, SYNTHETIC, TRANSFER, Card

FILE = "croissant.json"
_CONTEXT = "croissant-context.json"
"""File in `templates/` with the context of the specification, unchanged."""
_FORMATS = {PARQUET: "application/x-parquet", JSON_LINES: "application/jsonlines"}
_TYPES = {"round": "sc:Integer", "weight": "sc:Float", "probabilities": "sc:Float"}


def description(card: Card, digests: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of `croissant.json`; `digests` has each file's SHA-256, in hex, by its path in the folder."""
    terms, parts = card.terms, [part for part in (SYNTHETIC, TRANSFER) if f"{part}/{PARQUET}" in digests]
    stated = {
        "@context": json.loads((resources.files(__package__) / "templates" / _CONTEXT).read_text("utf-8")),
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": card.name,
        "description": f"{card.collection} {card.guarantee.title}. {card.attested}",
        "license": sorted({name for name in (terms.license, terms.public_license) if name}),
        "url": terms.repository and f"https://huggingface.co/datasets/{terms.repository}",
        "creator": terms.creator and {"@type": "sc:Organization", "name": terms.creator},
        "inLanguage": terms.language,
        "datePublished": card.published.isoformat(),
        "version": "1.0.0",
        "isLiveDataset": False,
        "additionalProperty": [
            {"@type": "sc:PropertyValue", "name": name, "value": value} for name, value in _guarantee(card)
        ],
        **_responsible(card),
        "distribution": [_file(path, digest) for path, digest in digests.items()],
        "recordSet": [*_labels(card), *(_records(card, part) for part in parts)],
    }
    return {name: value for name, value in stated.items() if value is not None}


def _guarantee(card: Card) -> Iterator[tuple[str, Any]]:
    epsilon = card.guarantee.epsilon
    yield "epsilon", epsilon if math.isfinite(epsilon) else "infinite"
    yield "delta", card.privacy.delta
    yield "unit", card.privacy.adjacency.unit
    yield "records of one unit at most", card.privacy.adjacency.max_records
    yield "adjacency", f"{card.privacy.adjacency.relation} one unit"
    yield "attested", card.attested


def _responsible(card: Card) -> dict[str, Any]:
    """Return the fields of the responsible-AI extension."""
    return {
        "rai:dataCollection": card.collection,
        "rai:dataCollectionType": ["Others"],
        "rai:dataAnnotationProtocol": [
            f"Label: {_column('labels' if card.several else 'label')}. No person has checked the labels."
            if card.labels
            else "There are no labels.",
            *[f"Spans: {_column('spans')}. No person has checked them."] * bool(card.run.spans),
        ],
        "rai:machineAnnotationTools": list(card.run.models or ()),
        "rai:personalSensitiveInformation": [card.guarantee.title, card.guarantee.reader, card.attested],
        "rai:dataBiases": [catalogue(__package__).biases],
        "rai:dataUseCases": [card.run.purpose or fill_in(catalogue(__package__).use, card=card)],
        "rai:dataLimitations": ["Nobody has tested the texts for any medical use.", *card.privacy.not_covered],
    }


def _file(path: str, digest: str) -> dict[str, Any]:
    name = path.rpartition("/")[2]
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
        "encodingFormat": _FORMATS[name],
        "sha256": digest,
    }


def _labels(card: Card) -> Iterator[dict[str, Any]]:
    """Yield the list of labels to which the labels of the texts refer, if there are any."""
    if not card.labels:
        return
    yield {
        "@type": "cr:RecordSet",
        "@id": "labels",
        "name": "labels",
        "dataType": "sc:Enumeration",
        "key": {"@id": "labels/name"},
        "field": [
            {"@type": "cr:Field", "@id": f"labels/{name}", "name": name, "dataType": "sc:Text"}
            for name in ("name", "description")
        ],
        "data": [{"labels/name": label, "labels/description": words or ""} for label, words in card.labels.items()],
    }


def _records(card: Card, part: str) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": part,
        "name": part,
        "description": getattr(catalogue(__package__).parts, part),
        "field": [_field(part, column) for column in card.columns_of(part)],
    }


def _column(name: str) -> str:
    """Return the description of a column."""
    return str(getattr(catalogue(__package__).columns, name))


def _field(part: str, column: str) -> dict[str, Any]:
    """Return the field of a column; spans and sections are lists of objects in one column."""
    source = {"fileObject": {"@id": f"{part}/{PARQUET}"}, "extract": {"column": column}}
    field = {"@type": "cr:Field", "@id": f"{part}/{column}", "name": column, "description": _column(column)}
    if column in MARKED:
        types = {"start": "sc:Integer", "end": "sc:Integer", MARKED[column]: "sc:Text"}
        parts = [
            {
                "@type": "cr:Field",
                "@id": f"{part}/{column}/{name}",
                "name": name,
                "dataType": kind,
                "source": source | {"transform": {"jsonPath": name}},
            }
            for name, kind in types.items()
        ]
        return field | {"repeated": True, "subField": parts}
    repeated = {"repeated": True} if column in {"probabilities", "labels"} else {}
    references = {"references": {"field": {"@id": "labels/name"}}} if column in {"label", "labels"} else {}
    return field | {"dataType": _TYPES.get(column, "sc:Text")} | repeated | references | {"source": source}
