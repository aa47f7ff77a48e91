"""Values as strict JSON has them: one form for run folders, the report's twin and what commands print."""

import math
from collections.abc import Mapping
from typing import Any


def for_json(value: Any) -> Any:  # noqa: ANN401
    """The value with an infinity as "inf" or "-inf", None for what is no number, and keys as strings."""
    match value:
        case float() if not math.isfinite(value):
            return None if math.isnan(value) else str(value)
        case Mapping():
            return {str(key): for_json(inner) for key, inner in value.items()}
        case list() | tuple():
            return [for_json(inner) for inner in value]
        case _:
            return value
