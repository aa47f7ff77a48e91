"""Every method keeps the contract; a new one adds a class here."""

import pytest

from common.queries import text_codec
from server.methods.aug_pe import AugPe
from server.methods.class_sums import ClassSumsMethod
from server.methods.dp_kps import DpKps
from server.methods.dp_sgd import DpSgd
from server.methods.dpga import Dpga
from server.methods.fusegen import FuseGen
from server.methods.pre_text import PreText
from server.methods.rpsg import Rpsg
from server.methods.rupta import Rupta
from server.methods.wasp import Wasp
from server.operators import refinement
from server.operators.refinement import Refinement
from server.settings.voting import Variation
from tests.support.method_contract import MODELS, TASK, MethodContract, World, plan_of, run, steps, usual_run

VARIATION = (
    ({"texts_per_request": 0}, "texts_per_request"),
    ({"temperature": 3.0}, "temperature"),
    ({"threshold": -1.0}, "threshold"),
    ({"look_ahead": -1}, "look_ahead"),
    ({"rounds": 0}, "rounds"),
    ({"samples": 0}, "samples"),
)


class Smoothed:
    """Beside a method's own class: the same with smoothed votes."""

    @pytest.fixture
    def method(self, build):
        return build(smoothing=True)

    def test_smoothing_changes_what_noised_votes_decide_and_nothing_without_noise(self, method, build):
        plain = run(build(), World(build())).to_dict()
        assert usual_run(method)[1][-1].to_dict() != plain
        assert run(method, World(method, deviation=0.0)).to_dict() == plain


class TestWasp(MethodContract):
    wrong = (
        ({"rounds": 1}, "rounds"),
        ({"samples": 0}, "samples"),
        ({"top": 0}, "top"),
        ({"shots": 1}, "shots"),
        ({"look_ahead": -1}, "look_ahead"),
    )
    too_small = (("samples", 5),)

    @pytest.fixture
    def build(self):
        return lambda **changes: Wasp(**{"samples": 24, "rounds": 3, "shots": 4, "texts_per_request": 3} | changes)


class TestWaspSmoothed(Smoothed, TestWasp):
    pass


class TestWaspLookingAhead(TestWasp):
    @pytest.fixture
    def build(self):
        return lambda **changes: Wasp(**{"samples": 24, "rounds": 3, "shots": 4, "look_ahead": 2} | changes)


class TestClassSums(MethodContract):
    wrong = (
        ({"samples": 0}, "samples"),
        ({"rounds": 0}, "rounds"),
        ({"directions": 0}, "directions"),
        ({"count": 0.0}, "count"),
        ({"description": 1.1}, "description"),
        ({"shots": 0}, "shots"),
        ({"labels": "any"}, "labels"),
    )
    too_small = (("samples", 5),)

    @pytest.fixture
    def build(self):
        # Labels that the answer decides are balanced only if the answer is.
        small = {"samples": 24, "rounds": 3, "directions": 3, "shots": 2, "labels": "requested", "need": False}
        return lambda **changes: ClassSumsMethod(**small | changes)


class TestClassSumsOfOneRound(TestClassSums):
    too_small = (("samples", 1),)

    @pytest.fixture
    def build(self):
        small = {"samples": 24, "rounds": 1, "directions": 8, "shots": 2, "labels": "requested"}
        return lambda **changes: ClassSumsMethod(**small | changes)


class TestAugPe(MethodContract):
    wrong = (*VARIATION, ({"select": "best"}, "select"), ({"expansion": 1}, "expansion"))
    too_small = (("samples", 3),)

    @pytest.fixture
    def build(self):
        return lambda **changes: AugPe(**{"samples": 24, "rounds": 3} | changes)


class TestAugPeSampling(TestAugPe):
    @pytest.fixture
    def build(self):
        small = {
            "samples": 25,
            "rounds": 3,
            "select": "sample",
            "threshold": 1.0,
            "variation": Variation(kind="fill_in"),
            "expansion": 4,
            "look_ahead": 2,
            "texts_per_request": 2,
        }
        return lambda **changes: AugPe(**small | changes)


class TestAugPeSmoothed(Smoothed, TestAugPe):
    pass


class TestAugPePlus(TestAugPe):
    wrong = (
        *TestAugPe.wrong,
        ({"terms": 0}, "terms"),
        ({"kept_terms": 1}, "kept_terms"),
        ({"vocabulary_share": 1.0}, "vocabulary_share"),
    )

    @pytest.fixture
    def build(self, tmp_path):
        file = tmp_path / "terms.txt"
        file.write_text("".join(f"term{i}\n" for i in range(20)))
        small = {
            "samples": 24,
            "rounds": 3,
            "vocabulary": str(file),
            "kept_terms": 6,
            "terms": 2,
            "name": "aug_pe_plus",
        }
        return lambda **changes: AugPe(**small | changes)


class TestPreText(MethodContract):
    wrong = (*VARIATION, ({"seeds": 0}, "seeds"), ({"shots": 0}, "shots"))
    too_small = (("seeds", 1), ("samples", 1))

    @pytest.fixture
    def build(self):
        return lambda **changes: PreText(**{"samples": 24, "seeds": 10, "rounds": 3, "look_ahead": 2} | changes)


class TestPreTextSmoothed(Smoothed, TestPreText):
    pass


class TestFuseGen(MethodContract):
    wrong = tuple(
        ({name: low}, name) for name, low in (("rounds", 0), ("shots", 0), ("pool", 1), ("epochs", 0), ("boosts", -1))
    )
    too_small = (("samples", 5),)
    needs_labels = "which its small models learn"

    @pytest.fixture
    def build(self):
        return lambda **changes: FuseGen(**{"samples": 24, "rounds": 3, "shots": 4, "pool": 4} | changes)


class TestDpga(MethodContract):
    wrong = (
        ({"rounds": 0}, "rounds"),
        ({"samples": 0}, "samples"),
        ({"initial": 0.9}, "initial"),
        ({"crossed": -1.0}, "crossed"),
        ({"fresh": -1.0}, "fresh"),
        ({"mask": 0.0}, "mask"),
        ({"mask": 1.5}, "mask"),
        ({"subsample": 0.0}, "subsample"),
        ({"subsample": 1.1}, "subsample"),
        ({"longest": 0}, "longest"),
        ({"bins": 0}, "bins"),
        ({"keywords": -1}, "keywords"),
        ({"softmax": 0.0}, "softmax"),
        ({"tau": 1.5}, "tau"),
        ({"tau_step": -0.01}, "tau_step"),
        ({"tau_step": 1e-9}, "tau_step"),
        ({"temperature": 3.0}, "temperature"),
    )
    too_small = (("samples", 1),)

    @pytest.fixture
    def build(self):
        small = {"samples": 12, "rounds": 3, "keywords": 5, "longest": 40, "bins": 10, "tau": None}
        return lambda **changes: Dpga(**small | changes)

    def test_ends_with_as_many_texts_as_were_asked_for_labels_balanced(self, method):
        """As many: but labels follow the records', and which texts live on the votes alone."""
        assert len(run(method, World(method)).candidates) == method.samples


class TestDpgaSmoothed(Smoothed, TestDpga):
    pass


class TestDpgaWithoutMetadata(TestDpga):
    @pytest.fixture
    def build(self):
        bare = {"samples": 12, "rounds": 3, "keywords": 0, "length": False, "suppression": False, "subsample": 1.0}
        return lambda **changes: Dpga(**bare | changes)


class TestDpKps(MethodContract):
    wrong = (
        ({"samples": 0}, "samples"),
        ({"rounds": 2}, "rounds"),
        ({"length": 7}, "length"),
        ({"length": 0}, "length"),
        ({"features": 0}, "features"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"vocabulary_share": 1.0}, "vocabulary_share"),
        ({"mechanism": "none"}, "mechanism"),
        ({"sequence": "random"}, "sequence"),
        ({"ensemble": "none"}, "ensemble"),
        ({"ablation": "all"}, "ablation"),
        ({"temperature": 3.0}, "temperature"),
        ({"texts_per_request": 0}, "texts_per_request"),
    )
    too_small = (("samples", 1),)

    @pytest.fixture
    def small(self, tmp_path):
        file = tmp_path / "terms.txt"
        file.write_text("".join(f"term{i}\n" for i in range(20)))
        return {"samples": 24, "vocabulary": str(file), "kept_terms": 6, "length": 5, "features": 40}

    @pytest.fixture
    def build(self, small):
        return lambda **changes: DpKps(**small | changes)


class TestDpKpsIterative(TestDpKps):
    @pytest.fixture
    def build(self, small):
        iterative = {"samples": 25, "sequence": "iterative", "mechanism": "gaussian"}
        return lambda **changes: DpKps(**small | iterative | changes)


class TestDpKpsOnlyModels(TestDpKps):
    @pytest.fixture
    def build(self, small):
        return lambda **changes: DpKps(**small | {"ablation": "only_llm"} | changes)


class TestRpsg(MethodContract):
    wrong = (
        ({"samples": 0}, "samples"),
        ({"rounds": 3}, "rounds"),
        ({"candidates": "seed"}, "candidates"),
        ({"pool": 1}, "pool"),
        ({"choices": 0}, "choices"),
        ({"mechanism": "sparse vector"}, "mechanism"),
        ({"nearest": -1}, "nearest"),
        ({"nearest": 20}, "nearest"),
        ({"threshold": -1.0}, "threshold"),
        ({"abstract_words": 0}, "abstract_words"),
        ({"words": 0}, "words"),
        ({"texts_per_request": 0}, "texts_per_request"),
        ({"temperature": 3.0}, "temperature"),
    )
    too_small = (("samples", 1),)
    candidates = "pool"

    @pytest.fixture
    def build(self, monkeypatch):
        monkeypatch.setattr(refinement, "redact", lambda text, _: text)
        small = {"samples": 13, "pool": 20, "candidates": self.candidates, "refinement": Refinement(nll=1.0)}
        return lambda **changes: Rpsg(**small | changes)


class TestRpsgByHistogram(TestRpsg):
    candidates = "histogram"


class TestRpsgSmoothed(Smoothed, TestRpsgByHistogram):
    pass


class TestRpsgUnproven(TestRpsg):
    candidates = "seed_unproven"


class FromParties(MethodContract):
    """For methods whose texts are the parties' own: the language models are asked for nothing."""

    marks_nothing = "as the hospitals' own models write the texts and mark none"

    def test_candidates_are_texts_of_known_labels_and_models_all_labels_among_them(self, method):
        (state,) = steps(method, World(method))
        assert {candidate.label for candidate in state.candidates} == set(TASK.labels)
        assert {(candidate.model, candidate.round) for candidate in state.candidates} == {(method.name, 0)}
        assert all(candidate.text.startswith("party ") for candidate in state.candidates)

    def test_a_model_that_writes_nothing_is_stated_and_the_others_write_its_texts(self, method):
        world = World(method, silent=MODELS)
        assert len(run(method, world).candidates) == method.samples
        assert world.requests == []

    def test_parties_that_answer_with_fewer_texts_are_stated_and_stop_nothing(self, method):
        def one(_, __, query):
            return [text_codec.encode([(0, "only")], query.spec.texts, query.spec.longest)]

        state = run(method, World(method, answers=one))
        assert [candidate.text for candidate in state.candidates] == ["only"]
        assert len(state.rounds[0].notes) == 2

    def test_parties_share_the_texts_out(self, build):
        for parties in (1, 3, 5):
            (query,) = plan_of(build(), parties=parties)
            assert 13 <= parties * query.spec.texts < 13 + 2 * parties


class TestDpSgd(FromParties):
    wrong = (
        ({"samples": 0}, "samples"),
        ({"rounds": 2}, "rounds"),
        ({"steps": 0}, "steps"),
        ({"rate": 1.5}, "rate"),
        ({"batch": 0}, "batch"),
        ({"clip": 0.0}, "clip"),
        ({"resolution": 100}, "resolution"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"lora": -1}, "lora"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"longest": 0}, "longest"),
        ({"temperature": 0.0}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
    )
    too_small = (("samples", 1),)

    @pytest.fixture
    def build(self):
        return lambda **changes: DpSgd(**{"samples": 13, "steps": 5} | changes)

    def test_plans_steps_on_subsamples_of_their_own_or_on_all(self, build):
        (query,) = plan_of(build(rate=0.1, steps=7, clip=0.5))
        assert (query.mechanism, query.rate, query.redraw) == ("dp-sgd", 0.1, True)
        assert (query.spec.steps, query.spec.clip, query.unproven) == (7, 0.5, False)
        (query,) = plan_of(build(rate=1.0))
        assert (query.rate, query.redraw) == (1.0, False)


class TestRupta(FromParties):
    wrong = (
        ({"samples": 0}, "samples"),
        ({"rounds": 2}, "rounds"),
        ({"rewritings": 0}, "rewritings"),
        ({"longest": 0}, "longest"),
    )
    too_small = (("samples", 1),)
    needs_labels = "which the rewritten records must still show"

    @pytest.fixture
    def build(self):
        return lambda **changes: Rupta(**{"samples": 13} | changes)

    def test_ends_with_as_many_texts_as_were_asked_for_labels_balanced(self, method):
        """As many texts as were asked for; their labels are the records' labels, not balanced."""
        assert len(run(method, World(method)).candidates) == method.samples

    def test_is_unproven(self, method):
        (query,) = plan_of(method)
        assert query.unproven
        assert (query.mechanism, query.spec.rounds) == ("none", 3)
