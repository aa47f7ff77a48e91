"""Documents of a run: one frozen class for each JSON file of a run folder, with its fields documented.

    run.py       run.json: identity, progress and parts of a run; traffic.json
    privacy.py   privacy.json: the guarantee
    rounds.py    rounds.jsonl: a line for each round
    metrics.py   metrics.json: the figures, which figure_groups.py groups
    maps.py      map.json, map_private.json: coordinates
    census.py    census.json: released numbers
    codec.py     dataclasses to JSON and back, by the types of their fields
    files.py     documents in files

The run writes them; report, API, sweeps, commands and later runs read them. No name of a field is a key anywhere else.
Each file states the version of its form (`format`, in files.py). A folder of an earlier version is read as well: a
field that it lacks has a default, and `from_json` renames the rest.
"""
