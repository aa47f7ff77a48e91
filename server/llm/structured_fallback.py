"""Structured texts from models that write only plain text: n-gram models, and models that complete a list of examples.

Such a model reads the text fields of the texts shown, and writes the text field of a new text. The other fields are
copied from a random one of the texts shown, so that votes steer them from round to round. If no texts are shown,
enumerated values, truth values and numbers between two bounds are drawn uniformly, and all other optional fields are
left out.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from common import rng
from common.errors import ProviderError
from common.structure import Object, Structure
from server.llm.base import Request


def plain(request: Request) -> Request:
    """Return the same request for plain texts, which shows only the text fields of structured texts."""
    if request.structure is None:
        return request
    return request.with_texts(request.structure.reading, structure=None, marks=request.marks)


def structured(texts: Sequence[str], request: Request, model: str) -> tuple[str, ...]:
    """Return a model's plain texts with the other fields added, or unchanged if the request is for plain texts.

    Raises:
        ProviderError: A required field cannot be drawn.
    """
    structure = request.structure
    if structure is None:
        return tuple(texts)
    free = [name for name in structure.required - {structure.text_field} if not _drawable(structure, name)]
    if free:
        raise ProviderError(
            f"{model} writes plain texts alone",
            expected=f"a task whose required fields, other than {structure.text_field}, can be drawn",
            got=", ".join(sorted(free)),
            where="task.structure.schema",
            do="Make them optional, or enumerations, or numbers with minimum and maximum; or choose a chat model (llm)",
        )
    stream = rng.experiment(request.seed, "fields")
    shown = [fields for text in request.good or request.source if (fields := structure.fields(text))]
    return tuple(
        structure.canonical(_others(structure, shown, stream) | {structure.text_field: text}) for text in texts
    )


def _others(structure: Structure, shown: Sequence[Object], stream: np.random.Generator) -> Object:
    """Choose a text's other fields: copies from a random text that was shown; random values if no texts were shown."""
    if shown:
        return shown[int(stream.integers(len(shown)))]
    return dict(_drawn(structure, stream))


def _drawn(structure: Structure, stream: np.random.Generator) -> Iterable[tuple[str, object]]:
    for name, field in structure.properties.items():
        if not _drawable(structure, name):
            continue
        if field["type"] == "string":
            yield name, field["enum"][stream.integers(len(field["enum"]))]
        elif field["type"] == "boolean":
            yield name, bool(stream.integers(2))
        elif field["type"] == "integer":
            yield name, int(stream.integers(field["minimum"], field["maximum"], endpoint=True))
        else:
            yield name, round(float(stream.uniform(field["minimum"], field["maximum"])), 3)


def _drawable(structure: Structure, name: str) -> bool:
    field = structure.properties[name]
    return field["type"] == "boolean" or "enum" in field or {"minimum", "maximum"} <= field.keys()
