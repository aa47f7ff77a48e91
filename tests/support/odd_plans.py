"""Plans of which one leaf has an odd value of JSON, as a coordinator could send them."""

import copy
from collections.abc import Iterator

ODD = (None, True, False, 0, 1, -1, 1.5, 1e308, 10**400, "", "x", "x" * 30_000, "a\nb\x1b[2J\u202e\u2800\ud800")
ODD_CONTAINERS = ([], ["x"], [1], {}, {"x": 1})


def odd_plans(plain: dict) -> Iterator[tuple[str, object, dict]]:
    """Yield the place of each leaf, the odd value there, and the plan's plain values with it."""
    for path in _leaves(plain):
        for value in (*ODD, *ODD_CONTAINERS):
            changed = copy.deepcopy(plain)
            *way, last = path
            at = changed
            for key in way:
                at = at[key]
            at[last] = copy.deepcopy(value)
            yield ".".join(map(str, path)), value, changed


def _leaves(value: object, path: tuple = ()) -> Iterator[tuple]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _leaves(item, (*path, key))
