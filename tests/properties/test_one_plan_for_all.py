"""Whatever one hospital is shown that the others are not, nobody reads a sum with its answer in it.

The differences are generated from the types: each field of the plan, of its queries and their specifications, of each
query's arrays, of the envelope, of each message's body and of the roster, changed in the victim's world alone. So a
field that is added is covered unasked, and a type of field for which no change is known fails here.
"""

import math
import typing
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import count, islice

import numpy as np
import pytest

from common import messages as m
from common import wire
from common.errors import CaucusError
from common.plan.plan import UNITS, Plan
from common.plan.planned import PlannedQuery
from common.privacy.mechanisms import SUMMED
from common.queries.closed_set import inputs, make_query
from tests.support.adversary import Adversary, Shown
from tests.support.federations import ENCODER, LABELS, each_kind, lenient, roster
from tests.support.lanes import slow

PARTIES, CORRUPT, VICTIM = 5, (3, 4), 0
ASKED = {kind: query for kind, query in each_kind().items() if set(SUMMED) & set(query.spec.mechanisms)}
LIMITS = lenient(max_epsilon=100.0, malicious_coordinator=True, corrupt=0.3)
CHOICES = {
    "unit": UNITS,
    "mechanism": SUMMED,
    "calibration": ("tight", "paper"),
    "roster": (32 * "ab",),
}
"""The values of fields that hold one of a few words, or words of one form."""


def planned(kind, known=None):
    """A plan of two answers, with more noise that its epsilon needs: a little more or less is a valid plan too."""
    spec = ASKED[kind].spec
    return Plan(
        method="test",
        labels=LABELS,
        encoder=ENCODER.digest,
        parties=PARTIES,
        max_dropouts=1,
        colluders=0,
        threshold=4,
        secure=True,
        degree=PARTIES - 1,
        corrupt=len(CORRUPT),
        epsilon=40.0,
        delta=1e-5,
        unit="sample",
        roster=(known or roster(PARTIES)).digest.hex(),
        purpose="a test",
        recipient="nobody",
        queries=(PlannedQuery(name=kind, spec=spec, times=2, scale=4 * math.sqrt(spec.sensitivity.l2_squared)),),
    )


def variants(value, name="", path=""):
    """Other values of the same type, each with the path of the one thing that is changed; None where none is valid."""
    if is_dataclass(value) or isinstance(value, (Mapping, tuple)):
        yield from _of_whole(value, path)
        for key, part in _parts(value).items():
            field = key if is_dataclass(value) else name
            for where, other in variants(part, field, f"{path}/{key}"):
                yield where, None if other is None else _with(value, key, other)
    else:
        yield from ((path, other) for other in OTHERS[type(value)](value, name))


def _parts(value):
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    return value if isinstance(value, Mapping) else dict(enumerate(value))


def _of_whole(value, path):
    """With a part more, a part less or in another order."""
    if isinstance(value, Mapping):
        yield from ((f"{path}/{key}", {other: value[other] for other in value if other != key}) for key in value)
    elif isinstance(value, tuple):
        yield from ((path, other) for other in ((*value, *value[:1]), value[::-1]) if other != value)


def _with(value, key, other):
    if isinstance(value, Mapping):
        return {**value, key: other}
    if isinstance(value, tuple):
        return (*value[:key], other, *value[key + 1 :])
    try:
        return replace(value, **{key: other})
    except CaucusError:
        return None


OTHERS = {
    bool: lambda value, _: [not value],
    int: lambda value, _: [value + 1, *([value - 1] if value else [])],
    float: lambda value, _: [2 * value, 1.01 * value, 0.99 * value],
    str: lambda value, name: [word for word in CHOICES.get(name, [f"{value}x"]) if word != value],
    bytes: lambda value, _: [bytes([value[0] ^ 1]) + value[1:]] if value else [b"x"],
    frozenset: lambda value, _: [value - {VICTIM}, value - {max(value)}, value | {max(value) + 1}],
    np.ndarray: lambda value, _: [_nudged(value, 0), _nudged(value, -1), *_turned(value)],
    type(None): lambda *_: [],
}
"""By type: other values."""


def _nudged(array, place):
    """The array with the least change of one number."""
    other = array.copy()
    value = array.flat[place]
    other.flat[place] = np.nextafter(value, value + 1) if array.dtype.kind == "f" else value ^ 1
    return other


def _turned(array):
    turned = np.roll(array, 1, axis=0)
    return [] if np.array_equal(turned, array) else [turned]


def attacked(folder, shown, victims, tamper=lambda _, body: body, **world):
    """What the victim replied: nobody has read its answer, and nobody has paid for more than the plan it was shown."""
    adversary = Adversary(folder, PARTIES, corrupt=CORRUPT, limits=LIMITS, **world)
    everybody = frozenset(range(PARTIES))
    rightful = {frozenset(adversary.honest)} if victims == shown else set()
    for number, others in enumerate((everybody, everybody - {VICTIM})):
        ours, theirs = (replace(case, run=f"{case.run} {number}") for case in (shown, victims))
        attack = adversary.attack(ours, {VICTIM: theirs}, tamper).unmask({VICTIM: everybody}, otherwise=others)
        assert {group for group in attack.opened() if VICTIM in group} <= rightful
        for party, paid in attack.charges.items():
            agreed = attack.shown[party].plan
            unknown = LIMITS.unknown_shares(agreed)
            assert set(paid) <= {agreed.answer_release(index, unknown) for index in range(agreed.total_queries)}
            assert len(paid) <= 1
    return adversary.replies[VICTIM]


def of_spec(query, spec):
    """The query with another specification, if its arrays fit that."""
    try:
        return make_query(spec, inputs(query))
    except CaucusError:
        return query


TOGETHER = (
    ("votes", {"parties": 4, "degree": 3, "max_dropouts": 0}, {}, {}),
    ("votes", {"threshold": 5, "max_dropouts": 0}, {}, {}),
    ("votes", {"degree": 2, "threshold": 3, "max_dropouts": 0}, {}, {}),
    ("votes", {"secure": False, "degree": 0, "corrupt": 0, "threshold": 1, "roster": ""}, {}, {}),
    ("votes", {}, {"rate": 0.5, "redraw": True}, {}),
    ("votes", {}, {"mechanism": "laplace", "pure": True}, {}),
    *((kind, {"unit": "user"}, {"scale": 2 * planned(kind).queries[0].scale}, {"max_records": 2}) for kind in ASKED),
    *(
        (kind, {"labels": ("a", "b", "c")}, {}, {"labels": 3})
        for kind in ("label histogram", "label sets", "section order", "density sketch", "class sums", "questionnaire")
    ),
)
"""What can only be changed together: fields of the plan, of its query and of the specification."""


def plans():
    """Every field of a plan and of a planned query, and of the specification of each kind; None where none is valid."""
    for kind in ASKED:
        for path, other in variants(planned(kind)):
            if kind == "votes" or "/spec/" in path:
                yield kind + path, kind, other
    for kind, of_plan, of_query, of_spec in TOGETHER:
        (query,) = planned(kind).queries
        query = replace(query, **of_query, spec=replace(query.spec, **of_spec))
        other = replace(planned(kind), **of_plan, queries=(query,))
        for names, within in ((of_plan, ""), (of_query, "/queries/0"), (of_spec, "/queries/0/spec")):
            yield from ((f"{kind}{within}/{name}", kind, other) for name in names)
    more = (*planned("votes").queries, replace(planned("votes").queries[0], name="more"))
    yield "votes/queries", "votes", replace(planned("votes"), queries=more)


def params(changes):
    """Test cases by what is changed: a second change of the same number, word or array is slow."""
    seen = set()
    for path, kind, other in changes:
        if other is not None:
            yield pytest.param(kind, other, id=path, marks=[pytest.mark.slow] * (path in seen))
            seen.add(path)


PLANS = list(params(plans()))


@pytest.mark.parametrize("kind", ASKED)
def test_what_all_are_shown_alike_is_opened(kind, tmp_path):
    attack = Adversary(tmp_path, PARTIES, corrupt=CORRUPT, limits=LIMITS).attack(Shown(planned(kind), ASKED[kind]))
    assert attack.unmask().opened() == {frozenset({0, 1, 2})}


@pytest.mark.parametrize(("kind", "other"), PLANS)
def test_another_plan(kind, other, tmp_path):
    theirs = of_spec(ASKED[kind], other.queries[0].spec)
    attacked(tmp_path, Shown(planned(kind), ASKED[kind]), Shown(other, theirs))


def test_a_hospital_alone_does_not_see_that_the_others_have_another_plan(tmp_path):
    """Else the test above would show little: what it sees by itself are these fields."""
    adversary, seen, unseen = Adversary(tmp_path, PARTIES, limits=LIMITS), defaultdict(set), set()
    for path, kind, other in plans():
        refused = seen[path]  # of a field that can never be changed: for no reason
        if other and adversary.send(VICTIM, shown := Shown(other, ASKED[kind], run=path), shown.opening):
            unseen.add(path)
        elif other:
            refused.add(adversary.replies[VICTIM][-1])
    assert {path: reasons for path, reasons in seen.items() if path not in unseen} == {
        "votes/encoder": {"ENCODER"},
        "votes/roster": {"ROSTER", "OVER_LIMIT"},
        "votes/parties": {"ROSTER"},
        "votes/degree": {"ROSTER", "OVER_LIMIT"},
        "votes/max_records_per_party": {"ROSTER"},
        "votes/corrupt": {"OVER_LIMIT"},
        "votes/secure": {"OVER_LIMIT"},
        "questionnaire/queries/0/spec/labels_per_record": set(),  # always 1
    }


QUERIES = list(params((kind + path, kind, other) for kind, query in ASKED.items() for path, other in variants(query)))


def test_every_part_of_a_question_is_changed_alone_or_with_the_plan():
    changed = {param.id for param in (*QUERIES, *PLANS)}
    for kind, query in ASKED.items():
        unchanged = {path for path, _ in variants(query) if not {kind + path, f"{kind}/queries/0{path}"} & changed}
        assert unchanged == ({"/spec/labels_per_record"} if kind == "questionnaire" else set())


@pytest.mark.parametrize(("kind", "other"), QUERIES)
def test_another_question(kind, other, tmp_path):
    attacked(tmp_path, Shown(planned(kind), ASKED[kind]), Shown(planned(kind), other))


@pytest.mark.parametrize("field", [field.name for field in fields(m.Envelope) if field.name != "body"])
@pytest.mark.parametrize("whole", [True, False], ids=["in all that follows from it", "alone"])
def test_another_envelope(field, whole, tmp_path):
    shown = Shown(planned("votes"), ASKED["votes"])
    envelope = wire.unpack(shown.parcel(VICTIM, m.Close()))
    for _, other in variants(getattr(envelope, field), field):
        if whole and field in {declared_field.name for declared_field in fields(Shown)}:
            victims = replace(shown, **{field: other})
        else:
            victims = replace(shown, envelope={field: other})
        attacked(tmp_path / str(other), shown, victims)


MESSAGES = [
    (kind, field.name)
    for kind in typing.get_args(m.Request)
    for field in fields(kind)
    if kind is not m.Release  # it comes after the run, and changes no state of it
]


class Tampering:
    """The nth other value of one field of one kind of message to the victim; `done` once it was sent.

    Of what a message has for each party, it leaves alone what it has for the parties in `spared`.
    """

    def __init__(self, kind, field, number, spared):
        self.kind, self.field, self.number, self.done = kind, field, number, False
        self._spared = set(map(str, spared))

    def __call__(self, party, body):
        if party != VICTIM or not isinstance(body, self.kind):
            return body
        others = (
            other
            for path, other in variants(getattr(body, self.field), self.field)
            if other is not None and not self._spared & set(path.split("/"))
        )
        if (other := next(islice(others, self.number, None), None)) is None:
            return body
        self.done = True
        return replace(body, **{self.field: other})


@pytest.mark.parametrize(
    ("kind", "field"), [pytest.param(*case, id=f"{case[0].__name__}/{case[1]}") for case in MESSAGES]
)
@pytest.mark.parametrize("spared", [pytest.param((2, 4), id="of a party of each role"), slow(())])
def test_another_message(kind, field, spared, tmp_path):
    shown = Shown(planned("votes"), ASKED["votes"])
    for number in count():
        tampering = Tampering(kind, field, number, spared)
        attacked(tmp_path / str(number), shown, shown, tampering)
        if not tampering.done:
            break
    assert number


@pytest.mark.parametrize("other", [pytest.param(other, id=path) for path, other in variants(roster(PARTIES)) if other])
def test_another_roster(other, tmp_path):
    ours, theirs = (Shown(planned("votes", known), ASKED["votes"]) for known in (roster(PARTIES), other))
    attacked(tmp_path, ours, theirs, rosters={VICTIM: other})
