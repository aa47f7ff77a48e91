"""A structure for notes, and a text that has this structure."""

from common.structure import Structure

SETTINGS = {
    "text_field": "note",
    "schema": {
        "type": "object",
        "properties": {
            "triage": {"type": "string", "enum": ["red", "yellow", "green"], "description": "how urgent it is"},
            "age": {"type": "integer", "minimum": 0, "maximum": 110},
            "pain": {"type": "number"},
            "admitted": {"type": "boolean"},
            "ward": {"type": "string"},
            "note": {"type": "string"},
        },
        "required": ["triage"],
    },
}
STRUCTURE = Structure.of(SETTINGS)
WHOLE = '{"triage": "red", "age": 54, "note": "He fell."}'
