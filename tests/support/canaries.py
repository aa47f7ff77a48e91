"""The private texts of a run, and which of their words something holds."""

import csv


def private_texts(tmp_path):
    with (tmp_path / "data" / "train.csv").open(newline="") as file:
        return [row["text"] for row in csv.DictReader(file)]


def words_in(content, texts):
    """Canary words and runs of five words of private texts that the content holds."""
    lowered = content.lower()
    wanted = set()
    for text in texts:
        words = text.split()
        wanted |= {word.strip(".") for word in words if word[:2] in ("zq", "zw")}
        wanted |= {" ".join(words[at : at + 5]) for at in range(len(words) - 4)}
    return {word for word in wanted if word.encode() in lowered}
