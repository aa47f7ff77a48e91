"""The contract of every method; a test suite subclasses `MethodContract` and builds a small method."""

import functools
import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from common import rng
from common.domain import UNLABELLED as ALONE
from common.errors import ConfigError, ProviderError
from common.queries import closed_set, seed_choice
from common.queries import text_codec as texts
from common.queries.histograms import LabelHistogramSpec, VocabularySpec
from common.queries.texts import Texts
from common.queries.votes import Votes
from server.domain import Membership, PrivacyTarget, Task
from server.llm.base import MODES, Reply
from server.llm.generate import generate, write_texts
from server.llm.render import whole
from server.method import State
from server.planning.make_plan import make_plan
from server.report.write import write_report
from server.settings.schema import MOST_LOST, Secagg
from tests.support.prompts import render

TASK = Task(name="t", kind="note", labels={"a": "about a", "b": "about b"})
UNLABELLED = TASK.without_labels()
SPANNED = replace(TASK, spans={"drug": "name of a medicine"})
MODELS = ("m", "k")
PARTIES = 3


class Echo:
    """A model with texts that depend only on the request, or one that writes nothing; it stores the requests.

    Attributes:
        silent: Whether it writes nothing; a function of the request decides for each.
        dead: Whether its server does not answer; a function without arguments decides for each request.
    """

    remote = False

    def __init__(self, name, *, silent):
        self.name, self.silent, self.dead, self.requests = name, lambda _: silent, lambda: False, []

    def generate(self, requests, *, arrived=None):
        replies = [self._reply(request) for request in requests]
        for place, reply in enumerate(replies):
            arrived(place, reply)
        return replies

    def _reply(self, request):
        if self.dead():
            return Reply(texts=(), input_tokens=0, output_tokens=0, loss="failed")
        self.requests.append(request)
        number = "" if request.phrases else "number "  # a keyword has four words at most
        texts = (f"{self.name} wrote {request.seed} {number}{i}" for i in range(request.n))
        prompt = whole(render(request))
        texts = () if self.silent(request) else tuple(texts)
        return Reply(texts=texts, input_tokens=3, output_tokens=2 * request.n, prompt=prompt, raw=str(texts))


def embed(texts):
    """Return unit vectors that depend only on the text."""
    rows = [np.random.default_rng(rng.stream(0, text)).normal(size=8) for text in texts]
    return np.array([row / np.linalg.norm(row) for row in rows], dtype=np.float32)


def plan_of(method, max_records=1, *, task=TASK, epsilon=math.inf, **membership):
    """Return the queries that a method plans for units of `max_records` records."""
    return method.plan(task, PrivacyTarget(epsilon=epsilon, max_records=max_records), Membership(**membership))


def agreed_plan(method, *, task, epsilon=4.0, parties=3, **changes):
    """Return the calibrated plan of a method between these parties."""
    known = {"encoder": "e", "membership": Membership(parties=parties), "secagg": Secagg(mode="none")}
    return make_plan(method, task=task, target=PrivacyTarget(epsilon=epsilon), **known | changes)


class World:
    """Fake tools for one run of a method: models that echo, and parties that answer only planned queries."""

    def __init__(
        self, method, *, seed=0, silent=(), answers=None, deviation=2.0, task=TASK, most_lost=MOST_LOST, **membership
    ):
        self.task, self.models, self.experiment_seed = task, MODELS, seed
        self.providers = {name: Echo(name, silent=name in silent) for name in MODELS}
        self.planned = {query.name: query for query in plan_of(method, task=task, **membership)}
        self.texts_per_request, self.deviation = method.texts_per_request, deviation
        self.most_lost = most_lost
        self.asked, self.answers = [], answers or (lambda name, nth, query: None)

    def generate(self, orders, make_request, *, round_number):
        return generate(
            self.providers,
            orders,
            make_request,
            round_number=round_number,
            texts_per_request=self.texts_per_request,
            experiment_seed=self.experiment_seed,
            most_lost=self.most_lost,
        )

    def write(self, requests):
        return write_texts(self.providers, requests, most_lost=self.most_lost)

    def embed(self, texts):
        return embed(texts)

    def spec(self, name):
        return self.planned[name].spec

    def ask(self, name, nth, **arrays):
        planned = self.planned[name]
        assert 0 <= nth < planned.times, f"{name}: answer {nth} is not planned"
        query = closed_set.make_query(planned.spec, arrays)
        query.check(labels=len(self.task.labels), dimensions=self.embed(["any"]).shape[1])
        self.asked.append((name, nth, query))
        answer = self.answers(name, nth, query)
        if answer is not None:
            return np.asarray(answer, dtype=np.float64)
        draws = np.random.default_rng(int.from_bytes(closed_set.digest(query)[:8]))
        if isinstance(query, seed_choice.SeedChoice):
            return np.sort(draws.integers(len(query.vectors), size=(PARTIES, query.length))).astype(np.float64)
        if isinstance(query, Texts):
            return np.array([self._texts(party, query.spec) for party in range(PARTIES)], dtype=np.float64)
        return draws.normal(3, 2, query.length if planned.summed else (PARTIES, query.length))

    def noise(self, name, nth):
        assert (name, nth) in [place[:2] for place in self.asked]
        return self.deviation

    def _texts(self, party, spec):
        """Return a party's encoded texts: two thirds of the number allowed, rounded up, with alternating labels."""
        written = [(i % len(self.task.labels), f"party {party} text {i}") for i in range(-(-2 * spec.texts // 3))]
        return texts.encode(written, spec.texts, spec.longest)

    @property
    def requests(self):
        return [request for model in self.providers.values() for request in model.requests]


def steps(method, world, state=None):
    """Run a method, starting from `state` if it is given, and yield the state after each step."""
    state = method.start(world) if state is None else state
    while state.round < method.rounds:
        state = method.step(state, world)
        yield state


def run(method, world):
    """Run a method and return its last state."""
    return list(steps(method, world))[-1]


@functools.lru_cache(maxsize=1)  # the tests of a class follow each other
def usual_run(method):
    """Return the world of a method's run, and the state after each step."""
    world = World(method)
    return world, tuple(steps(method, world))


def without_prompts(state):
    """Return a state in JSON's types, without the prompts that its rounds keep as examples."""
    return replace(state, rounds=tuple(replace(line, prompts={}) for line in state.rounds)).to_dict()


def through_json(method, state):
    return State.from_dict(json.loads(json.dumps(state.to_dict())), method.memory)


class MethodContract:
    """Tests of a method; a subclass provides the fixture `build`, which makes a small method with changed settings.

    Attributes:
        wrong: Settings that are refused, and a word of the error message.
        too_small: Settings that are too small for both labels.
        needs_labels: Why the method needs a task with labels, in the words of the refusal; None if it does not.
        marks_nothing: Why spans in its texts are not marked, in the words of the refusal; None if they are marked.
    """

    wrong: tuple[tuple[dict[str, object], str], ...] = ()
    too_small: tuple[tuple[str, object], ...] = ()
    needs_labels: str | None = None
    marks_nothing: str | None = None

    @pytest.fixture
    def method(self, build):
        return build()

    def test_names_itself_and_its_size(self, method):
        assert method.name
        assert method.rounds >= 1
        assert method.texts_per_request >= 1

    def test_plans_without_noise_for_all_of_epsilon_and_for_users_of_many_records(self, method):
        queries = plan_of(method)
        assert all(query.scale == 0 and query.spec.max_records == 1 for query in queries)
        assert not queries or sum(query.share for query in queries) == pytest.approx(1)
        assert all(query.spec.max_records == 8 for query in plan_of(method, 8))

    def test_makes_requests_in_the_modes_that_it_states(self, method):
        world, _ = usual_run(method)
        assert set().union(*(request.modes for request in world.requests)) == set(method.modes) <= set(MODES)

    def test_asks_what_was_planned_each_once(self, method):
        world, _ = usual_run(method)
        placed = [(name, nth) for name, nth, _ in world.asked]
        assert len(set(placed)) == len(placed)
        assert bool(placed) == bool(world.planned)

    def test_says_among_how_many_the_records_choose(self, method):
        (world, _), most = usual_run(method), Counter()
        for name, _, query in world.asked:
            if isinstance(query, (Votes, seed_choice.SeedChoice)):
                most[name] = max(most[name], len(query.labels))
        stated = method.compared(TASK)
        assert {name: stated.get(name) for name in most} == most
        assert all(stated[query.name] for query in plan_of(method) if isinstance(query.spec, VocabularySpec))
        assert set(stated) <= set(world.planned)

    def test_a_step_is_a_round_with_a_line_of_its_own(self, method):
        for number, state in enumerate(usual_run(method)[1], start=1):
            assert state.round == number
            assert [line.round for line in state.rounds] == list(range(number))
            assert state.rounds[-1].candidates == len(state.candidates)

    def test_the_same_seed_gives_the_same_and_another_seed_another(self, method):
        first, again, other = (run(method, World(method, seed=seed)).to_dict() for seed in (1, 1, 2))
        assert first == again
        assert [row["text"] for row in first["candidates"]] != [row["text"] for row in other["candidates"]]

    def test_goes_on_from_any_saved_step_as_if_it_had_not_stopped(self, method):
        *before, last = usual_run(method)[1]
        for state in before:
            world = World(method)
            *_, resumed = steps(method, world, through_json(method, state))
            assert through_json(method, resumed) == through_json(method, last)

    def test_candidates_are_texts_of_known_labels_and_models_all_labels_among_them(self, method):
        for state in usual_run(method)[1]:
            assert {candidate.label for candidate in state.candidates} == set(TASK.labels)
            assert {candidate.model for candidate in state.candidates} <= set(MODELS)
            assert all(candidate.text.strip() for candidate in state.candidates)
            assert all(0 <= candidate.round <= state.round for candidate in state.candidates)

    def test_ends_with_as_many_texts_as_were_asked_for_labels_balanced(self, method):
        counts = Counter(candidate.label for candidate in usual_run(method)[1][-1].candidates)
        assert sum(counts.values()) == method.samples
        assert max(counts.values()) - min(counts.values()) <= 1

    def test_reports_what_models_were_asked_and_wrote(self, method):
        world, (*_, last) = usual_run(method)
        lines = [report.to_json() for report in last.rounds]
        for line in lines:
            assert line.keys() >= {"candidates", "tokens", "calls", "queries", "notes"}
            assert set(line["requested"]) == set(line["generated"]) == set(line["lost"]) == set(MODELS)
            assert all(line["requested"][name] == line["generated"][name] + line["lost"][name] for name in MODELS)
        assert sum(line["calls"] for line in lines) == len(world.requests)
        assert sum(line["tokens"]["input"] for line in lines) == 3 * len(world.requests)
        assert sum(line["tokens"]["output"] for line in lines) == 2 * sum(request.n for request in world.requests)

    def test_keeps_a_prompt_of_each_kind_that_shows_no_text_from_a_party(self, method):
        world, (*_, state) = usual_run(method)
        private = [request for request in world.requests if any("party" in text for text in request.shown)]
        shown = {request.prompt for request in world.requests if request.may_be_shown}
        assert not any(request.may_be_shown for request in private)
        assert private or shown == {request.prompt for request in world.requests}
        assert {kind for line in state.rounds for kind in line.prompts} == shown
        assert "party" not in json.dumps([line.to_json().get("prompts") for line in state.rounds])

    def test_the_forecast_covers_what_is_asked_of_models_that_lose_nothing(self, method):
        world, _ = usual_run(method)
        assert sum(request.n for request in world.requests) <= method.max_texts(TASK, MODELS)

    def test_the_page_shows_its_rounds(self, method, tmp_path):
        times = {"fid": None, "seconds": {"generate": 0.0, "embed": 0.0, "ask": 0.0}}
        lines = [{**line.to_json(), **times} for line in usual_run(method)[1][-1].rounds]
        (tmp_path / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert "Texts asked" in write_report(tmp_path).read_text("utf-8")

    @pytest.mark.parametrize("silent", MODELS)
    def test_a_model_that_writes_nothing_is_stated_and_the_others_write_its_texts(self, method, silent, tmp_path):
        (other,) = {*MODELS} - {silent}
        usual, worlds = usual_run(method)[1][-1], [World(method, silent=(silent,)) for _ in range(2)]
        state, again = (run(method, world) for world in worlds)
        assert len(state.candidates) == len(usual.candidates)
        assert {candidate.label for candidate in state.candidates} == set(TASK.labels)
        assert {candidate.model for candidate in state.candidates} == {other}
        assert state.to_dict() == again.to_dict()
        for line in state.rounds:
            assert (line.generated[silent], line.lost[other]) == (0, 0)
            assert line.lost[silent] == line.requested[silent]
            assert line.requested[other] == line.generated[other]
            assert sum(note.startswith(f"{silent} wrote no") for note in line.notes) == (line.lost[silent] > 0)
        assert 0 < state.rounds[0].lost[silent] <= usual.rounds[0].requested[silent]
        once = sum(request.n for request in worlds[0].providers[silent].requests if not request.phrases)
        assert once == sum(line.lost[silent] for line in state.rounds)
        (tmp_path / "rounds.jsonl").write_text("".join(json.dumps(line.to_json()) + "\n" for line in state.rounds))
        assert f"{silent} wrote no" in write_report(tmp_path).read_text("utf-8")

    @pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
    def test_after_a_server_died_no_query_is_asked(self, method, share):
        usual, _ = usual_run(method)
        if not usual.requests:  # it asks no model
            return
        world, asked_before = World(method), []

        def dead():
            if len(world.requests) >= int(share * len(usual.requests)):
                asked_before.append(len(world.asked))
                return True
            return False

        for model in world.providers.values():
            model.dead = dead
        with pytest.raises(ProviderError, match="unanswered"):
            run(method, world)
        assert [place[:2] for place in world.asked] == [place[:2] for place in usual.asked[: asked_before[0]]]

    def test_settings_that_make_no_method_are_named(self, build):
        for settings, word in self.wrong:
            with pytest.raises(ConfigError, match=word):
                build(**settings)

    def test_too_few_texts_for_the_labels_are_refused_before_anything_is_asked(self, build):
        for name, value in self.too_small:
            with pytest.raises(ConfigError, match=name):
                plan_of(build(**{name: value}))

    def test_spans_change_prompts_and_nothing_that_is_asked_or_are_refused_when_it_is_planned(self, method):
        if self.marks_nothing:
            with pytest.raises(ConfigError, match=f"no spans, {self.marks_nothing}.*task.spans=drug"):
                plan_of(method, task=SPANNED)
            return
        assert plan_of(method, task=SPANNED) == plan_of(method)
        (plain, (*_, last)), spanned = usual_run(method), World(method, task=SPANNED)
        assert without_prompts(run(method, spanned)) == without_prompts(last)  # as these models mark nothing
        assert [closed_set.digest(query) for *_, query in spanned.asked] == [
            closed_set.digest(query) for *_, query in plain.asked
        ]
        for request in spanned.requests:
            texts = not request.phrases and not (request.abstract and not request.source)
            assert bool(request.marks) == texts
            assert ("<drug> (name of a medicine)" in render(request)[1]) == texts

    def test_without_labels_it_asks_about_one_population_or_is_refused_when_it_is_planned(self, method):
        if self.needs_labels:
            with pytest.raises(ConfigError, match=f"labels, {self.needs_labels}.*task.labels=unlabelled"):
                plan_of(method, task=UNLABELLED)
            return
        specs = [query.spec for query in plan_of(method, task=UNLABELLED)]
        assert {spec.labels for spec in specs if hasattr(spec, "labels")} <= {1}
        assert not any(isinstance(spec, LabelHistogramSpec) for spec in specs)  # no share of epsilon for a constant
        world = World(method, task=UNLABELLED)
        *before, last = steps(method, world)
        assert len(last.candidates) == method.samples
        assert {label for state in (*before, last) for label in (text.label for text in state.candidates)} == {ALONE}
        assert all("label" not in text.to_json() for text in last.candidates)
        for state in before:
            *_, resumed = steps(method, World(method, task=UNLABELLED), through_json(method, state))
            assert through_json(method, resumed) == through_json(method, last)
        for request in world.requests:
            assert request.label is None
            assert not any(ALONE in prompt or "label" in prompt for prompt in render(request))
