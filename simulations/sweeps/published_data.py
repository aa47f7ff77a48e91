"""OpenReview and PubMed as published with Aug-PE (Xie et al. 2024), converted to the format of `task=csv`.

    python -m simulations.sweeps.published_data iclr23_reviews_train.csv train.csv --label label1
    python -m simulations.sweeps.published_data pubmed_train.csv train.csv

The published files are CSV with the column `text` and, for OpenReview, `label1` ("Area: ...") and `label2`
("Recommendation: ..."). The name and the colon are removed from each label. PubMed has no labels, so all its texts get
the same label.
"""

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

from common.errors import DataError

ONLY_LABEL = "abstract"
"""Label of all texts in a file without labels."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Convert the published file that is named on the command line."""
    parser = argparse.ArgumentParser(prog="published", description=__doc__.split("\n", 1)[0])
    parser.add_argument("published", type=Path)
    parser.add_argument("ours", type=Path)
    parser.add_argument("--label", help="column of the label; none: all texts get one label")
    options = parser.parse_args(arguments)
    convert(options.published, options.ours, label=options.label)


def convert(published: Path, ours: Path, *, label: str | None = None) -> int:
    """Convert a published file to CSV with the columns `text,label`; return the number of rows.

    Args:
        published: The published file.
        ours: The file that is written.
        label: Name of the column with the label; None if all texts are to get `ONLY_LABEL`.

    Raises:
        DataError: A column is missing, or a row has no text or label; the message contains file and line, never the
            content.
    """
    csv.field_size_limit(2**24)  # abstracts with reviews are longer than the module's default
    with published.open(encoding="utf-8-sig", newline="") as source, ours.open("w", encoding="utf-8", newline="") as to:
        rows, write = csv.DictReader(source), csv.writer(to)
        columns = ["text", *([label] if label else [])]
        if not set(columns) <= set(rows.fieldnames or ()):
            missing = " and ".join(f"no column {name}" for name in columns if name not in (rows.fieldnames or ()))
            raise DataError(f"there is {missing}", where=f"{published}:1")
        write.writerow(("text", "label"))
        count = 0
        for row in rows:
            values = [(row[column] or "").strip() for column in columns]
            if not all(values):
                raise DataError("empty text or label", where=f"{published}:{rows.line_num}")
            write.writerow((values[0], _bare(values[1]) if label else ONLY_LABEL))
            count += 1
    return count


def _bare(label: str) -> str:
    """Return a label without the name before it: "8: accept" for "Recommendation: 8: accept"."""
    name, colon, rest = label.partition(": ")
    return rest if colon and name.isalpha() else label


if __name__ == "__main__":
    main()
