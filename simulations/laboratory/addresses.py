"""Addresses with annotated spans, from the training data of usaddress: a public corpus for `task.spans`, as JSON Lines.

    pip download usaddress==0.5.16 --no-deps --no-binary usaddress
    python -m simulations.laboratory.addresses training/labeled.xml FOLDER

usaddress (https://github.com/datamade/usaddress, MIT licence) has 1,513 addresses of the United States, each word
labelled by hand, in `training/labeled.xml` of its source distribution. This module writes `public.jsonl`, `train.jsonl`
and `test.jsonl`, which contain a fifth, a half and the rest of the addresses, in a fixed order. Neighbouring words with
the same type form one span, without the comma after it.
"""

import argparse
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from common.errors import DataError
from common.rng import experiment

TYPES = {
    "number": ("AddressNumber",),
    "street": ("StreetName",),
    "unit": ("Occupancy", "Subaddress"),
    "box": ("USPSBox",),
    "place": ("PlaceName",),
    "state": ("StateName",),
    "zip": ("ZipCode",),
    "name": ("Recipient", "BuildingName", "LandmarkName"),
}
"""For each type, the prefixes of the usaddress labels that it comprises; all other labels are left out."""
_PARTS = {"public": 0.2, "train": 0.7, "test": 1.0}
_AFTER = ",;."


def rows(xml: str) -> list[dict[str, Any]]:
    """Return the addresses in a file as rows with `text` and `spans`, with each text only once.

    Raises:
        DataError: The file is not XML, or has no addresses.
    """
    try:
        strings = list(ET.fromstring(xml).iter("AddressString"))  # noqa: S314 — a file of the user
    except ET.ParseError:
        strings = []
    if not strings:
        raise DataError("addresses", expected="usaddress's training/labeled.xml", got="another file")
    made = [_row(list(string)) for string in strings]
    return list({row["text"]: row for row in made if row["text"]}.values())


def write(xml: str, folder: Path) -> dict[str, int]:
    """Write the three files into a folder, and return the number of addresses in each."""
    whole = rows(xml)
    order = experiment(0, "addresses").permutation(len(whole))
    start, sizes = 0, {}
    for name, share in _PARTS.items():
        end = round(share * len(whole))
        lines = [json.dumps(whole[at], ensure_ascii=False) + "\n" for at in order[start:end]]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        start, sizes[name] = end, len(lines)
    return sizes


def _row(words: list[ET.Element]) -> dict[str, Any]:
    text, spans, before = "", [], None
    for element in words:
        word = (element.text or "").strip()
        if not word:
            continue
        text += " " * bool(text) + word
        kind, end = _type(element.tag), len(text.rstrip(_AFTER))
        start = len(text) - len(word)
        if kind and kind == before:
            spans[-1]["end"] = end
        elif kind and end > start:
            spans.append({"start": start, "end": end, "type": kind})
        before = kind if kind and end > start else None
    return {"text": text, "spans": spans}


def _type(label: str) -> str | None:
    return next((kind for kind, beginnings in TYPES.items() if label.startswith(beginnings)), None)


def main() -> None:
    """Convert the file that is named on the command line."""
    parser = argparse.ArgumentParser(description="Write usaddress's labelled addresses as JSON Lines with spans.")
    parser.add_argument("file", type=Path, help="training/labeled.xml")
    parser.add_argument("folder", type=Path, help="where to write; created if missing")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for name, count in write(chosen.file.read_text(encoding="utf-8"), chosen.folder).items():
        sys.stdout.write(f"{chosen.folder / name}.jsonl: {count}\n")


if __name__ == "__main__":
    main()
