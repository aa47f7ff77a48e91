"""Plans in JSON of which one part is changed, for example to a value that only a hostile coordinator would send."""

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator

ODD = (None, True, False, 0, 1, -1, 1.5, 1e308, 10**400, "", "x", "x" * 30_000, "a\nb\x1b[2J\u202e\u2800\ud800")
ODD_CONTAINERS = ([], ["x"], [1], {}, {"x": 1})


def odd_plans(plain: dict, ways: Iterable[Callable] | None = None) -> Iterator[tuple[str, object, dict]]:
    """Yield the place of each part of a plan, its new value there, and the plan's plain values with it.

    `ways` are functions from the value to a new one, of which those that fail are left out; by default each part takes
    all odd values.
    """
    ways = ways or [lambda _, odd=odd: copy.deepcopy(odd) for odd in (*ODD, *ODD_CONTAINERS)]
    for path in _paths(plain):
        for way in ways:
            changed = copy.deepcopy(plain)
            *parents, last = path
            at = changed
            for key in parents:
                at = at[key]
            with contextlib.suppress(TypeError, KeyError):
                at[last] = way(at[last])
                yield ".".join(map(str, path)), at[last], changed


def _paths(value: object, path: tuple = ()) -> Iterator[tuple]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _paths(item, (*path, key))
