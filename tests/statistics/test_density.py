"""What noise and random features do to a private density, and that parties do not matter to it.

Seeds of data and frequencies are fixed; noise is real, so a test can fail by chance, with the rate that it states.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from client.contributions.sketch import contribution
from client.records import embed_records
from common.domain import Record
from common.privacy import accountant
from common.privacy.samplers import discrete_gaussian, discrete_laplace
from common.queries import closed_set, sketch
from common.queries.sketch import SketchSpec
from common.queries.terms import encode_terms
from common.rng import experiment, secure_bytes
from server.methods.dp_kps import DpKps
from server.operators import keyphrases
from server.operators.keyphrases import Density
from server.planning.guarantee_facts import noise_error
from tests.support.federations import ENCODER, LABELS, federation, plan, service
from tests.support.method_contract import plan_of

EPSILON, DELTA, GRID, PHRASES, DIM = 5.0, 1e-5, 64, 10, 96
TERMS = tuple(f"w{i}" for i in range(400))
WAYS = {
    "none": (True, None),
    "laplace": (False, "laplace"),
    "paired laplace": (True, "laplace"),
    "gaussian": (True, "gaussian"),
}


def data(records, seed=0):
    """Records of ten of 400 terms each, whose vectors lie so that a density is about 0.17, and the terms' vectors."""
    generator = np.random.default_rng(seed)
    vectors = generator.standard_normal((len(TERMS), DIM))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors += 0.36 * vectors[0]
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    phrases = [generator.choice(len(TERMS), PHRASES, replace=False) for _ in range(records)]
    return vectors, phrases


def scale(spec, mechanism):
    """Of the noise, in grid units."""
    return accountant.calibrate(
        mechanism=mechanism,
        sensitivity=spec.sensitivity,
        times=1,
        shares=1,
        rate=1.0,
        redraw=False,
        epsilon=EPSILON,
        delta=DELTA,
    )


def errors(way, records, features, draws, noises, *, from_plain=False):
    """Root mean square over densities of 50 terms, `draws` of the frequencies and `noises` of the noise for each.

    From the exact densities, or from those of the sketch without noise.
    """
    paired, mechanism = WAYS[way]
    spec = SketchSpec(labels=1, features=features, paired=paired, first=PHRASES, grid=GRID)
    vectors, phrases = data(records)
    private = embed_records(
        [Record(" ".join(TERMS[i] for i in terms_of_record), "a") for terms_of_record in phrases], ENCODER
    ).for_plan(("a",))
    of_terms = np.bincount(np.concatenate(phrases), minlength=len(TERMS)) / (PHRASES * records)
    asked_for = vectors[:50].astype(np.float64)
    exact = np.exp(-((asked_for[:, None] - vectors[None]) ** 2).sum(axis=2)) @ of_terms
    assert exact.mean() == pytest.approx(0.17, abs=0.02)
    squares = []
    for draw in range(draws):
        frequencies, phases = keyphrases.draw_frequencies(spec, DIM, 1.0, experiment(draw, way))
        query = sketch.Sketch(
            spec=spec, terms=encode_terms(TERMS), vectors=vectors, frequencies=frequencies, phases=phases
        )
        answer = contribution(query, private)
        if from_plain:
            exact = Density.of(spec, frequencies, phases, answer / GRID).at(vectors[:50])[0] / records
        for _ in range(noises):
            noisy = answer if mechanism is None else answer + _noise(spec, mechanism, len(answer))
            estimate = Density.of(spec, frequencies, phases, noisy / GRID).at(vectors[:50])[0] / records
            squares.append(np.mean((estimate - exact) ** 2))
    return math.sqrt(np.mean(squares))


def _noise(spec, mechanism, size):
    sample = discrete_laplace if mechanism == "laplace" else discrete_gaussian
    return sample(scale(spec, mechanism), size, secure_bytes(32))


def added(way, records, features):
    """What noise adds, by the formula that the plan states."""
    paired, mechanism = WAYS[way]
    spec = SketchSpec(labels=1, features=features, paired=paired, first=PHRASES, grid=GRID)
    rows = features // 2 if paired else features
    return 0.0 if mechanism is None else noise_error(mechanism, scale(spec, mechanism) / GRID, rows) / records


@pytest.mark.parametrize("way", [way for way in WAYS if way != "none"])
def test_noise_adds_to_a_density_what_the_plan_states(way):
    """100 draws of the noise: the mean square is known to about a tenth, and 5 of these are a quarter of its root.

    A draw's errors of 50 points go together; were they one error, 100 draws would know the mean square to a seventh.
    False alarm below 1e-3 then, and about 1e-6 as it is.
    """
    assert errors(way, 100, 200, 1, 100, from_plain=True) == pytest.approx(added(way, 100, 200), rel=0.25)


TABLE = {
    ("none", 300): 0.0123,
    ("laplace", 300): 0.0450,
    ("paired laplace", 300): 0.0343,
    ("gaussian", 300): 0.0129,
    ("none", 8000): 0.0104,
    ("laplace", 8000): 0.0117,
    ("paired laplace", 8000): 0.0104,
    ("gaussian", 8000): 0.0104,
}
"""Root mean square errors at epsilon 5, density about 0.17, ten phrases a record, 1,000 features, as once measured."""


@pytest.mark.slow
@pytest.mark.parametrize(("way", "records"), TABLE)
def test_the_measured_errors_of_a_thousand_features(way, records):
    """Within a fifth: what 10 draws of frequencies, ours and those that were measured, leave to chance.

    Errors of one draw of the frequencies go together over all points, so that the mean of ten has a deviation of about
    a tenth; mechanisms lie a quarter and more apart where they differ.
    """
    assert errors(way, records, 1000, 10, 3) == pytest.approx(TABLE[way, records], rel=0.2)


ONE = [Record(f"{('w1 w2', 'w3')[i % 2]} w{4 + i % 3}", LABELS[i % 2]) for i in range(30)]
RUNS = 12


def outcomes(folder, vocabulary, parties):
    """Of runs over these records, dealt out: noise of all sketches' coordinates, and how often phrases were drawn."""
    method = DpKps(
        samples=200,
        vocabulary=str(vocabulary),
        kept_terms=6,
        first_terms=3,
        features=40,
        mechanism="laplace",
        length=3,
        ablation="no_llm",
    )
    agreed = plan(parties, epsilon=8.0, queries=plan_of(method, task=_TASK, epsilon=8.0))
    noises, drawn = [], []
    for number in range(RUNS):
        (folder / f"{number}").mkdir(parents=True)
        services = {
            party: service(folder / f"{number}", party, private=ONE[party::parties]) for party in range(parties)
        }
        ours = federation(folder / f"{number}", services, agreed, run=f"run {number}")
        ours.open()

        def ask(name, nth, ours=ours, **arrays):
            spec = next(query.spec for query in agreed.queries if query.name == name)
            query = closed_set.make_query(spec, arrays)
            answer = ours.ask(name, nth, query).values
            if isinstance(query, sketch.Sketch):
                noises.append(answer - contribution(query, embed_records(ONE, ENCODER).for_plan(LABELS)))
            return answer / spec.grid

        specs = {query.name: query.spec for query in agreed.queries}
        tools = SimpleNamespace(
            task=_TASK, models=("m",), experiment_seed=0, embed=ENCODER.encode, spec=specs.__getitem__, ask=ask
        )
        state = method.step(method.start(tools), tools)
        ours.close()
        words = [
            [word for row in state.candidates if row.label == label for word in row.text.split("; ")]
            for label in LABELS
        ]
        drawn.append(
            [terms_of_record.count(term) / len(terms_of_record) for terms_of_record in words for term in TERMS[:8]]
        )
    return np.concatenate(noises), np.array(drawn)


def _task():
    from server.domain import Task

    return Task(name="t", kind="note", labels=dict.fromkeys(LABELS, "x"))


_TASK = _task()


def apart(one, other, shuffles=2000):
    """Probability that relabelled runs are as far apart, in the mean, as these."""
    both, generator = np.concatenate([one, other]), np.random.default_rng(0)

    def distance(order):
        first, second = both[order[: len(one)]], both[order[len(one) :]]
        return np.abs(first.mean(axis=0) - second.mean(axis=0)).sum()

    observed = distance(np.arange(len(both)))
    return np.mean([distance(generator.permutation(len(both))) >= observed for _ in range(shuffles)])


def test_four_parties_give_the_same_distribution_of_results_as_one(tmp_path):
    """False alarm 1e-4 for the noise, by Kolmogorov and Smirnov, and 1e-3 for the phrases, by relabelling the runs.

    960 coordinates each: noise of another scale by a half is noticed for sure.
    """
    vocabulary = tmp_path / "terms.txt"
    vocabulary.write_text("\n".join(TERMS[:8]))
    one, of_one = outcomes(tmp_path / "one", vocabulary, 1)
    four, of_four = outcomes(tmp_path / "four", vocabulary, 4)
    assert stats.ks_2samp(abs(one), abs(four)).pvalue > 1e-4
    assert stats.ks_2samp(abs(one), 1.5 * abs(four)).pvalue < 1e-4
    assert apart(of_one, of_four) >= 1e-3
    assert apart(of_one, np.roll(of_four, 1, axis=1)) < 1e-3
