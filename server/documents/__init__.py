"""Documents of a run: one frozen class for each JSON file of a run folder, with its fields documented.

    run.py       run.json: ID, progress and parts of a run; traffic.json; input_weaknesses.json and a weakness
    privacy.py   privacy.json: the guarantee
    rounds.py    rounds.jsonl: a line for each round
    metrics.py   metrics.json: the figures, in groups
    maps.py      map.json, map_private.json: coordinates
    class_sums.py census.json: released numbers; classifier.json
    hospitals.py hospitals.json, sending/sent.json: versions at hospitals, and the delivery of the texts
    codec.py     converts dataclasses to JSON and back, following the types of their fields
    files.py     documents in files

A run writes these documents; the report, API, sweeps, commands and later runs read them. Other code never uses a
field's name as a JSON key. Each file states the version of its format (`format`, see files.py). Folders written by
earlier versions can be read, too: missing fields get their defaults, and `from_json` renames fields that had another
name.
"""
