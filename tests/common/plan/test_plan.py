import dataclasses
import json
import math
from dataclasses import replace

import pytest

from common.domain import UNLABELLED
from common.errors import ConfigError, PlanError
from common.plan.plan import MOST_ANSWERS, STATED, Plan
from common.plan.planned import PlannedQuery, polya_scale
from common.privacy.samplers import LARGEST_LAPLACE_TABLE
from common.queries.closed_set import KINDS
from common.queries.histograms import LabelHistogramSpec
from common.queries.label_sets import LabelSetsSpec
from common.queries.length_range import LengthRangeSpec
from common.queries.section_order import SectionOrderSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.sketch import SketchSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec, RewrittenSpec
from common.queries.votes import VotesSpec
from tests.support.federations import each_kind
from tests.support.odd_plans import odd_plans
from tests.support.plans import QUERY, SPEC, plan_with

COUNT = PlannedQuery(name="count", spec=LabelHistogramSpec(labels=2), mechanism="laplace", scale=9.0, times=2)
ORDER = PlannedQuery(name="order", spec=SectionOrderSpec(labels=1), scale=99.0)
OWN = PlannedQuery(name="own", spec=LengthRangeSpec(cap=30), mechanism="sparse vector", scale=8.0)
SEEDS = PlannedQuery(name="seeds", spec=SeedChoiceSpec(choices=3), mechanism="exponential", scale=5.0)
UNPROVEN = PlannedQuery(name="seeds", spec=AbstractedSeedsSpec(choices=3), mechanism="gaussian max", scale=5.0)


def test_shares_of_noise_make_up_the_planned_noise_among_fewest_honest_survivors():
    noisy = plan_with()
    assert noisy.survivors == 9
    assert noisy.noise_parties == noisy.shares(QUERY) == 6
    assert noisy.share_sigma(QUERY) == pytest.approx(1560 / math.sqrt(6))
    (release,) = noisy.releases()
    assert release == replace(noisy.answer_release(0), times=4)
    assert (release.mechanism, release.scale, release.shares, release.times) == ("gaussian", 1560, 6, 4)
    assert release.sensitivity == SPEC.sensitivity
    # Tolerating 10% dropouts and 30% colluders costs sqrt(1 / 0.6) in standard deviation.
    least = plan_with(max_dropouts=0, colluders=0)
    assert noisy.share_sigma(QUERY) / least.share_sigma(QUERY) == pytest.approx(1.29, abs=0.002)


def test_noise_of_a_sum_in_the_unit_of_its_answer():
    assert QUERY.noise_deviation == pytest.approx(1560 / 128)
    assert COUNT.noise_deviation == pytest.approx(9 * math.sqrt(2))
    assert replace(QUERY, scale=0.0).noise_deviation == 0


def test_every_survivor_beyond_the_planned_shares_adds_noise():
    plan = plan_with()
    assert plan.surplus(QUERY, plan.noise_parties) == 1
    assert plan.surplus(QUERY, 4 * plan.noise_parties) == 2


def test_answers_are_numbered_over_all_queries():
    two = plan_with(queries=(QUERY, COUNT))
    assert two.total_queries == 6
    assert [two.query(index).name for index in range(6)] == ["votes"] * 4 + ["count"] * 2
    assert [two.index("votes", nth) for nth in range(4)] + [two.index("count", nth) for nth in range(2)] == [*range(6)]
    assert two.answer_release(5).mechanism == "laplace"
    assert two.answer_release(5).times == 1
    for index in (-1, 6):
        with pytest.raises(PlanError, match="0 to 5"):
            two.query(index)
    for place in (("votes", 4), ("votes", -1), ("other", 0), ("count", 0, 1)):
        with pytest.raises(PlanError, match="not planned"):
            two.index(*place)


def test_attempts_are_numbered_one_after_the_other_and_all_are_paid_for():
    thrice = plan_with(queries=(QUERY, COUNT), max_attempts=3)
    assert thrice.total_queries == 18
    assert [thrice.index("votes", 1, attempt) for attempt in range(3)] == [3, 4, 5]
    assert thrice.query(thrice.index("count", 0, 2)) is COUNT
    assert [release.times for release in thrice.releases()] == [12, 6]
    assert sum(release.times for release in thrice.releases_of(COUNT)) == 6


def test_what_a_party_answers_by_itself_has_all_its_noise():
    mixed = plan_with(queries=(QUERY, OWN, SEEDS))
    assert [(query.summed, mixed.shares(query)) for query in mixed.queries] == [(True, 6), (False, 1), (False, 1)]
    votes, lengths, seeds = mixed.releases()
    assert (lengths.mechanism, lengths.scale, lengths.sensitivity.l1) == ("pure", 8, 4)
    assert (seeds.mechanism, seeds.scale, seeds.sensitivity.l1) == ("pure", 5, 2)
    # What colluders know of sums, they do not know of these.
    assert mixed.releases(1)[1:] == (lengths, seeds)
    assert mixed.releases(1)[0].scale == pytest.approx(votes.scale / math.sqrt(6))


def test_a_query_without_proof_or_noise_is_charged_as_having_none():
    bare = replace(QUERY, scale=0.0)
    releases = plan_with(queries=(bare, UNPROVEN), epsilon=math.inf).releases()
    assert [(release.mechanism, release.scale) for release in releases] == [("pure", 0), ("pure", 0)]
    assert UNPROVEN.unproven
    assert not SEEDS.unproven


def test_what_has_no_noise_has_no_scale():
    with pytest.raises(ConfigError, match="scale of own"):
        PlannedQuery(name="own", spec=RewrittenSpec(texts=1), mechanism="none", scale=1.0)


def test_laplace_noise_of_which_a_part_is_known_is_the_polya_mechanism():
    plan = plan_with(queries=(COUNT,))
    (planned,), (less,), (more,) = (plan.releases(shares) for shares in (None, 3, 9))
    assert (planned.mechanism, planned.scale, planned.shares) == ("laplace", 9, 6)
    assert (less.mechanism, less.scale) == ("pure", polya_scale(9, 0.5))
    assert (more.mechanism, more.scale, more.shares) == ("laplace", 9, 9)
    # The whole noise is a discrete Laplace, whose loss at one step is 1 / b; less noise loses more.
    assert polya_scale(9, 1 - 1e-12) == pytest.approx(9, rel=1e-6)
    scales = [polya_scale(9, shape) for shape in (0.1, 0.3, 0.5, 0.9)]
    assert scales == sorted(scales)
    assert scales[-1] < 9


def test_a_record_counts_under_as_many_labels_as_the_query_that_counts_most():
    two = replace(QUERY, spec=VotesSpec(top=8, labels_per_record=2))
    assert plan_with(queries=(COUNT, two)).labels_per_record == 2
    assert plan_with(queries=(COUNT,)).labels_per_record == 1


def test_a_query_is_without_noise_if_it_could_have_some_and_its_scale_is_zero():
    assert replace(COUNT, scale=0.0).without_noise
    assert not COUNT.without_noise
    assert not PlannedQuery(name="texts", spec=RewrittenSpec(texts=1), mechanism="none").without_noise


def test_a_plan_that_asks_for_the_order_of_sections_is_by_section():
    order = replace(ORDER, spec=SectionOrderSpec(labels=2))
    assert plan_with(queries=(COUNT, order)).by_section
    assert not plan_with(queries=(COUNT,)).by_section


def test_subsamples_have_names():
    once, anew = replace(COUNT, rate=0.5), replace(QUERY, rate=0.25, redraw=True)
    plan = plan_with(queries=(once, anew, OWN), max_attempts=2)
    assert [plan.draw(index) for index in range(4)] == ["count"] * 4
    assert [plan.draw(index) for index in range(4, 12)] == [f"votes/{nth}" for nth in (0, 0, 1, 1, 2, 2, 3, 3)]
    assert plan.draw(12) == ""
    drawn = [(release.draw, release.rate, release.times) for release in plan.releases()]
    assert drawn == [("count", 0.5, 4), *((f"votes/{nth}", 0.25, 2) for nth in range(4)), ("", 1.0, 2)]
    assert plan.answer_release(5).draw == "votes/0"


def test_without_secure_aggregation_each_party_adds_all_noise():
    bare = plan_with(secure=False)
    assert bare.noise_parties == 1
    assert bare.share_sigma(QUERY) == QUERY.scale
    # Colluders and threshold mean nothing then.
    plan_with(secure=False, parties=1, max_dropouts=0, colluders=5, threshold=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": ""}, "method"),
        ({"labels": ()}, "labels"),
        ({"labels": ("a", "a")}, "each name once"),
        ({"labels": ("a", UNLABELLED)}, "no other label beside 'all texts'"),
        ({"queries": (QUERY, QUERY)}, "each name once"),
        ({"parties": 0}, "parties"),
        ({"parties": 10.0}, "an integer"),
        ({"max_dropouts": -1}, "max_dropouts"),
        ({"colluders": True}, "colluders"),
        ({"threshold": 0}, "threshold"),
        ({"max_records_per_party": 0}, "max_records_per_party"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -math.inf}, "epsilon"),
        ({"delta": -1e-5}, "delta"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": 1.0}, "max_attempts"),
        ({"max_attempts": MOST_ANSWERS // 4 + 1}, "attempts included"),
        ({"parties": 2**20 + 1}, "parties"),
        ({"queries": tuple(replace(COUNT, name=f"{n}") for n in range(101))}, "queries"),
        ({"delta": 1e-31}, "delta"),
        ({"method": "two\nlines"}, "method"),
        ({"calibration": "guess"}, "calibration"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"unit": "patient"}, "unit"),
        ({"secure": 1}, "secure"),
        *(({"labels": ("a", f"b{letter}c")}, "one line") for letter in "\n\x1b\u2028"),  # would break a sheet or a log
    ],
)
def test_values_out_of_range_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        plan_with(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_dropouts": 10}, "10 parties - 10 dropouts = 0"),
        ({"secure": False, "max_dropouts": 12}, "10 parties - 12 dropouts = -2"),
        ({"max_dropouts": 4, "colluders": 6}, "10 parties - 4 dropouts - 6 colluders = 0"),
        ({"parties": 1, "max_dropouts": 0, "colluders": 0, "threshold": 1}, "at least 2; got 1"),
        ({"threshold": 5}, "6 to 9.*got 5"),
        ({"threshold": 10}, "6 to 9.*got 10"),
        ({"colluders": 7, "threshold": 7}, "8 to 9.*got 7"),
        ({"parties": 4, "max_dropouts": 2, "colluders": 0, "threshold": 2}, "3 to 2"),
        ({"queries": (replace(QUERY, scale=0.0),)}, "a scale above 0 and a proof"),
        ({"queries": (UNPROVEN,)}, "a scale above 0 and a proof"),
        ({"queries": (replace(COUNT, spec=LabelHistogramSpec(labels=3)),)}, "labels of count; expected 2"),
        ({"queries": (replace(QUERY, spec=SketchSpec(labels=3, features=2)),)}, "labels of votes"),
        ({"queries": (replace(COUNT, scale=1.001 * LARGEST_LAPLACE_TABLE),)}, "Gaussian noise"),
        ({"queries": (replace(QUERY, scale=4.8),)}, "at least 2 grid units; got 1.96"),
        ({"queries": (replace(QUERY, spec=VotesSpec(top=8, max_records=2)),)}, "1 at sample level"),
        (
            {"queries": (replace(QUERY, rate=0.5, spec=VotesSpec(top=8, labels_per_record=2)),)},
            "several labels",
        ),
        ({"queries": (ORDER,), "labels": (UNLABELLED,)}, "labels of order; expected headings; got all texts"),
        ({"max_records_per_party": 2**53}, "below 2\\^63"),
        ({"queries": (replace(QUERY, scale=1e18),)}, "below 2\\^63"),
        ({"degree": 6, "threshold": 8}, "threshold|degree"),
        ({"degree": 7, "threshold": 5}, "threshold|degree"),
        ({"degree": 0, "threshold": 5}, "threshold|degree"),
        ({"secure": False, "roster": 32 * "ab"}, "aggregation"),
        ({"corrupt": 2}, "3 colluders"),
        ({"roster": 32 * "ab", "corrupt": 8, "threshold": 9}, "at least 10"),
        # Three honest ones could open a sum, and seven with six others sign another.
        ({"roster": 32 * "ab", "corrupt": 6, "threshold": 7}, "at least 10"),
        ({"roster": "ab"}, "64 hex digits"),
    ],
)
def test_values_that_do_not_go_together_are_refused(changes, message):
    with pytest.raises(PlanError, match=message):
        plan_with(**changes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"times": 0},
        {"times": 2.0},
        {"name": "two\nlines"},
        {"rate": 2.0**-41},
        *({number: value} for number in ("scale", "share", "rate") for value in (-1.0, math.nan, math.inf, -math.inf)),
        {"share": 0.0},
        {"share": 1.1},
        {"rate": 0.0},
        {"rate": 1.1},
        {"redraw": True},
        {"redraw": 1, "rate": 0.5},
        {"mechanism": "sparse vector"},
        {"mechanism": "none"},
    ],
)
def test_impossible_queries_are_refused(wrong):
    with pytest.raises(ConfigError):
        replace(QUERY, **wrong)


def test_limits_that_are_just_allowed():
    plan_with(queries=(replace(COUNT, scale=LARGEST_LAPLACE_TABLE),))
    plan_with(queries=(replace(QUERY, times=MOST_ANSWERS // 4),), max_attempts=4)
    plan_with(threshold=6)
    plan_with(threshold=9)
    plan_with(queries=(replace(QUERY, scale=4.9),))
    plan_with(parties=2, max_dropouts=0, colluders=0, threshold=2)
    plan_with(max_records_per_party=2**52)


def test_a_plan_of_a_renamed_method_is_that_of_its_former_name():
    plan = plan_with(method="class_sums")
    assert plan.to_dict() == plan_with(method="census").to_dict() == plan.to_dict() | {"method": "census"}
    assert Plan.from_json(plan.to_json()) == plan
    with pytest.raises(PlanError, match="another"):
        Plan.from_dict(plan.to_dict() | {"method": "class_sums"})


def test_round_trip_and_digest():
    one = plan_with(epsilon=2)
    again = Plan.from_dict(json.loads(json.dumps(one.to_dict())))
    assert again == one
    assert again.digest() == one.digest() == plan_with(epsilon=2.0).digest()
    assert len(one.digest()) == 32
    changed = [
        {"method": "other"},
        {"labels": ("b", "a")},
        {"encoder": "other"},
        {"parties": 11},
        {"max_dropouts": 2},
        {"colluders": 2},
        {"threshold": 8},
        {"secure": False},
        {"epsilon": 2.5},
        {"delta": 2e-5},
        {"unit": "user"},
        {"max_records_per_party": 1000},
        {"degree": 8},
        {"corrupt": 4},
        {"max_attempts": 2},
        {"calibration": "paper"},
        {"roster": 32 * "ab"},
        *({name: "a statement"} for name in STATED),
        {"queries": (replace(QUERY, times=3),)},
        {"queries": (replace(QUERY, scale=1561.0),)},
        {"queries": (replace(QUERY, mechanism="laplace"),)},
        {"queries": (replace(QUERY, share=0.5),)},
        {"queries": (replace(QUERY, rate=0.5),)},
        {"queries": (replace(QUERY, rate=0.5, redraw=True),)},
        {"queries": (replace(QUERY, spec=VotesSpec(top=7)),)},
    ]
    assert {next(iter(change)) for change in changed} == {field.name for field in dataclasses.fields(Plan)}
    digests = {plan_with(**{"epsilon": 2, **change}).digest() for change in changed}
    assert len(digests | {one.digest()}) == len(changed) + 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda plain: plain.pop("colluders"),
        lambda plain: plain.pop("max_records_per_party"),
        lambda plain: plain.update(extra=1),
        lambda plain: plain.update(epsilon="1.0"),
        lambda plain: plain["queries"][0].pop("times"),
        lambda plain: plain["queries"][0]["spec"].pop("top"),
        lambda plain: plain["queries"][0].pop("mechanism"),
        lambda plain: plain["queries"][0]["spec"].update(kind="another"),
        lambda plain: plain["queries"][0]["spec"].pop("kind"),
    ],
)
def test_a_plan_from_elsewhere_that_is_not_one_is_refused(spoil):
    plain = plan_with().to_dict()
    spoil(plain)
    with pytest.raises((PlanError, ConfigError)):
        Plan.from_dict(plain)


@pytest.mark.parametrize("unit", ["sample", "user"])
def test_each_value_of_a_plan_has_the_type_of_its_field_whatever_a_coordinator_sends(unit):
    one = plan_with(queries=(QUERY, COUNT, OWN, SEEDS), unit=unit)
    tried = accepted = 0
    for place, value, plain in odd_plans(one.to_dict()):
        tried += 1
        try:
            again = Plan.from_json(json.dumps(plain))
        except (PlanError, ConfigError):
            continue
        accepted += 1
        assert _of_its_types(again), (place, value)
        assert again.to_dict() == plain
    assert accepted > 20
    assert tried - accepted > 800


def _of_its_types(value):
    """Whether each field of a plan, its queries and their specifications has a value of its own type, never a bool."""
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if dataclasses.is_dataclass(item):
            fits = _of_its_types(item)
        elif isinstance(item, tuple):
            fits = all(_of_its_types(one) if dataclasses.is_dataclass(one) else type(one) is str for one in item)
        else:
            fits = type(item) is field.type
        if not fits:
            return False
    return True


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"labels": ["a", 1]}, "labels"), ({"encoder": ["x"]}, "encoder"), ({"roster": None}, "roster")],
)
def test_a_value_of_another_type_is_named(changes, field):
    with pytest.raises(PlanError, match=f"{field};"):
        Plan.from_dict(plan_with().to_dict() | changes)


def test_a_plan_without_queries_has_one_spelling_of_no_epsilon():
    none = plan_with(queries=(), epsilon=0)
    assert plan_with(queries=(), epsilon=-0.0).digest() == none.digest()


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", "[" * 100_000, "{}", "3", '{"epsilon": 1e999}'], ids=range(7))
def test_what_is_no_plan_s_json_is_refused(data):
    with pytest.raises((PlanError, ConfigError)):
        Plan.from_json(data)


@pytest.mark.parametrize("query", [QUERY, COUNT, OWN, SEEDS], ids=lambda query: query.name)
def test_a_plan_of_any_query_survives_json(query):
    one = plan_with(queries=(query,))
    assert Plan.from_json(one.to_json()) == one
    open_plan = plan_with(queries=(replace(query, scale=0.0),), epsilon=math.inf)
    assert open_plan.to_dict()["epsilon"] == "inf"
    assert Plan.from_json(open_plan.to_json().decode()) == open_plan


def test_a_sparse_graph_comes_back_from_json():
    sparse = plan_with(degree=6, threshold=5)
    assert Plan.from_dict(sparse.to_dict()) == sparse


def test_a_plan_with_a_roster_expects_a_malicious_coordinator():
    assert plan_with(roster=32 * "ab", corrupt=6, threshold=8).malicious
    assert not plan_with().malicious


SPECS = (
    *(query.spec for query in each_kind().values()),
    AbstractedSeedsSpec(choices=3),
    RewrittenSpec(texts=1),
    FineTunedSpec(texts=1, steps=2),
)
REDRAWN = [
    PlannedQuery(name="a", spec=spec, mechanism=mechanism, times=2, rate=0.5, redraw=True)
    for spec in SPECS
    for mechanism in spec.mechanisms
    if spec.labels_per_record == 1
]


def names_in_the_ledger(*queries):
    """The name of the subsample of each attempt, by query, as a ledger is charged for it."""
    plan = plan_with(queries=queries, epsilon=math.inf, max_attempts=2)
    names = {query.name: set() for query in queries}
    for index in range(plan.total_queries):
        names[plan.query(index).name].add(plan.answer_release(index).draw)
    assert {release.draw for release in plan.releases()} == set().union(*names.values())
    return names


def test_of_every_kind_some_are_redrawn_here():
    assert {spec.kind for spec in SPECS} == set(KINDS)
    assert {query.spec.kind for query in REDRAWN} == set(KINDS) - {LabelSetsSpec.kind}
    assert {query.mechanism for query in REDRAWN} > {"gaussian", "laplace", "dp-sgd", "exponential", "sparse vector"}


@pytest.mark.parametrize("first", REDRAWN, ids=lambda query: f"{query.spec.kind}, {query.mechanism}")
def test_two_subsamples_never_share_a_name(first):
    """Two independent subsamples of one name would be priced as one, in the plan and in every later run's budget."""
    taken = names_in_the_ledger(first)["a"]
    names = {"a/0", *taken, *(f"{name}/0" for name in taken)}  # what a query may be called to resemble a subsample
    refused = set()
    for other in REDRAWN:
        for second in (other, replace(other, redraw=False) if other.mechanism != "dp-sgd" else other):
            for name in names:
                renamed = replace(second, name=name)
                if taken & names_in_the_ledger(renamed)[name]:
                    refused.add(second.mechanism)
                    with pytest.raises(ConfigError, match="of subsamples"):
                        plan_with(queries=(first, renamed), epsilon=math.inf, max_attempts=2)
                else:
                    both = names_in_the_ledger(first, renamed)
                    assert not both["a"] & both[name]
    assert refused


def test_a_model_and_sums_that_redraw_cannot_be_priced_as_one_subsample():
    # As one subsample at rate 4e-5 the two would cost next to nothing at delta 4.1e-5; as two, 13.
    common = {"rate": 4e-5, "redraw": True}
    trained = PlannedQuery(name="x", spec=FineTunedSpec(texts=4, steps=1), mechanism="dp-sgd", scale=585.0, **common)
    votes = PlannedQuery(name="x/0", spec=VotesSpec(top=8), scale=60.0, **common)
    with pytest.raises(ConfigError, match="of subsamples"):
        plan_with(queries=(trained, votes))
    plan_with(queries=(trained, replace(votes, name="y")))
