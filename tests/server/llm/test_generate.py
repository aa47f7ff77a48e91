import threading
from dataclasses import replace

import pytest

from common.errors import ProviderError
from server.llm.base import Reply, Request
from server.llm.clean import Cleaner, Rules
from server.llm.generate import MOST_PASSES, PASSES_OF_A_LABEL, generate
from server.llm.generate import write_texts as write_each
from server.llm.orders import Order


class Scripted:
    """A provider that answers each request with as many texts as `give` says."""

    remote = False

    def __init__(self, give):
        self.give = give
        self.asked, self.calls = [], 0

    def generate(self, requests, *, arrived):
        self.asked += requests
        self.calls += 1
        counts = [self.give(request, len(self.asked)) for request in requests]
        return [
            Reply(texts=tuple(f"{request.seed} {i}" for i in range(count)), input_tokens=3, output_tokens=2)
            for request, count in zip(requests, counts, strict=True)
        ]


def obedient():
    """A provider that writes as many texts as it is asked for."""
    return Scripted(lambda request, _: request.n)


def write_texts(order, texts, rng):
    return Request(
        task_kind="note", labels=(("a", "A"), ("b", "B")), label=order.label, n=texts, seed=int(rng.integers(2**60))
    )


def run(providers, orders, seed=0, number=1, **more):
    return generate(
        providers, orders, write_texts, round_number=number, texts_per_request=4, experiment_seed=seed, **more
    )


def test_orders_are_filled_exactly_and_marked_and_all_labels_are_asked_for_at_once():
    provider = obedient()
    harvest = run({"m": provider}, [Order(model="m", label="a", count=10), Order(model="m", label="b", count=3)])
    assert ([request.n for request in provider.asked], provider.calls) == ([4, 4, 2, 3], 1)
    assert [candidate.label for candidate in harvest.candidates] == ["a"] * 10 + ["b"] * 3
    assert {(candidate.model, candidate.round) for candidate in harvest.candidates} == {("m", 1)}
    assert (harvest.use.calls, harvest.use.input_tokens, harvest.use.output_tokens) == (4, 12, 8)
    assert not +harvest.lost


def test_too_many_are_cut_at_random_to_the_order():
    cut = [run({"m": Scripted(lambda r, _: r.n + 5)}, [Order(model="m", label="a", count=4)], seed) for seed in (0, 1)]
    texts = [[candidate.text.split()[1] for candidate in harvest.candidates] for harvest in cut]
    assert [len(kept) for kept in texts] == [4, 4]
    assert texts[0] != texts[1]


def test_too_few_are_asked_for_again_and_the_shortage_is_stated():
    refilled = Scripted(lambda r, number: 1 if number == 1 else r.n)
    assert len(run({"m": refilled}, [Order(model="m", label="a", count=4)]).candidates) == 4
    assert [request.n for request in refilled.asked] == [4, 3]

    stingy = Scripted(lambda *_: 1)
    harvest = run({"m": stingy}, [Order(model="m", label="a", count=9)], most_lost=1)
    assert len(harvest.candidates) == 3 + 2 + 1
    assert harvest.lost["m"] == 3


def test_a_label_without_any_text_stops_the_run_before_anything_private():
    silent = Scripted(lambda request, _: request.n if request.label == "a" else 0)
    with pytest.raises(ProviderError, match=rf"b \(passes: {PASSES_OF_A_LABEL}\)"):
        run({"m": silent}, [Order(model="m", label="a", count=2), Order(model="m", label="b", count=2)], number=0)
    assert [request.label for request in silent.asked] == ["a", *["b"] * PASSES_OF_A_LABEL]


def test_a_label_without_any_new_text_is_named_in_later_rounds(caplog):
    silent = Scripted(lambda request, _: request.n if request.label == "a" else 0)
    harvest = run({"m": silent}, [Order(model="m", label="a", count=2), Order(model="m", label="b", count=2)])
    assert [candidate.label for candidate in harvest.candidates] == ["a", "a"]
    assert harvest.lost["m"] == 2
    assert f"of b (passes: {PASSES_OF_A_LABEL})" in caplog.text


def test_a_label_gets_its_first_text_late_and_no_label_with_one_is_asked_again():
    slow = Scripted(lambda request, number: 1 if request.label == "a" or number > 10 else 0)
    orders = [Order(model="m", label="a", count=9), Order(model="m", label="b", count=2)]
    harvest = run({"m": slow}, orders, number=0, most_lost=1)
    assert {candidate.label for candidate in harvest.candidates} == {"a", "b"}
    assert sum(request.label == "a" for request in slow.asked) == 3 + 2 + 1


REFUSAL = "I'm sorry, but I can't help with that."


class Refusing(Scripted):
    """A provider whose every text is a refusal, which the cleaner drops."""

    def __init__(self, *texts):
        super().__init__(lambda request, _: request.n)
        self.texts = texts

    def generate(self, requests, *, arrived):
        return [replace(reply, texts=self.texts) for reply in super().generate(requests, arrived=arrived)]


@pytest.mark.parametrize("texts", [(), (REFUSAL,)], ids=["empty", "refusals"])
@pytest.mark.parametrize("number", [0, 1])
def test_the_others_write_in_turn_what_a_model_without_usable_texts_does_not(texts, number):
    orders = [Order(model="m", label="a", count=8), *(Order(model=name, label="b", count=4) for name in "kj")]
    calls = []
    for _ in range(2):
        providers = {"m": Refusing(*texts), **{name: obedient() for name in "kj"}}
        harvest = run(providers, orders, number=number, cleaner=Cleaner(Rules()))
        asked = {name: [(request.label, request.n) for request in model.asked] for name, model in providers.items()}
        assert asked == {"m": [("a", 4)] * 2, "k": [("b", 4), ("a", 4)], "j": [("b", 4), ("a", 4)]}
        by = [(candidate.model, candidate.label) for candidate in harvest.candidates]
        assert by == [*[("k", "a")] * 4, *[("j", "a")] * 4, *[("k", "b")] * 4, *[("j", "b")] * 4]
        assert (harvest.requested, +harvest.lost) == ({"m": 8, "k": 8, "j": 8}, {"m": 8})
        assert +harvest.use.passed_on == {"m": 8}
        calls.append([request for model in providers.values() for request in model.asked])
    assert calls[0] == calls[1]
    assert len({request.seed for request in calls[0]}) == len(calls[0])


def test_a_text_that_its_model_may_still_write_is_requested_of_no_other():
    weak = Scripted(lambda *_: 1)
    harvest = run({"m": weak, "k": obedient()}, [Order(model=m, label="a", count=5) for m in "mk"])
    assert (+harvest.lost, +harvest.use.passed_on) == ({"m": 1}, {})
    assert len(weak.asked) == 2 + 1 + 1


@pytest.mark.parametrize("texts", [(), (REFUSAL,)], ids=["empty", "refusals"])
def test_single_requests_go_in_turn_to_the_others(texts):
    requests = [
        (model, Request(task_kind="note", labels=(("a", "A"),), seed=10 * i)) for i, model in enumerate("mmmkj")
    ]
    providers = {"m": Refusing(*texts), **{name: obedient() for name in "kj"}}
    written = write_each(providers, requests, cleaner=Cleaner(Rules()))
    assert written.models == [("k",), ("j",), ("k",), ("k",), ("j",)]
    assert written.texts == [("1 0",), ("11 0",), ("21 0",), ("30 0",), ("40 0",)]
    assert (written.requested, written.use.passed_on) == ({"m": 3, "k": 3, "j": 2}, {"m": 3})


def test_nobody_is_asked_for_another_where_nobody_writes():
    providers = {name: Scripted(lambda *_: 0) for name in "mk"}
    written = write_each(providers, [(name, Request(task_kind="note", labels=(("a", "A"),))) for name in "mk"])
    assert (written.texts, written.lost, +written.use.passed_on) == ([(), ()], {"m": 1, "k": 1}, {})
    assert [len(model.asked) for model in providers.values()] == [MOST_PASSES] * 2


class Meeting(Scripted):
    """Models that answer only when all of them were asked."""

    remote = True

    def __init__(self, barrier):
        super().__init__(lambda request, _: request.n)
        self.barrier = barrier

    def generate(self, requests, *, arrived):
        self.barrier.wait(10)
        return super().generate(requests, arrived=arrived)


def test_remote_models_work_side_by_side_and_a_local_one_meanwhile():
    barrier = threading.Barrier(3)
    here = Meeting(barrier)
    here.remote = False
    models = {"x": Meeting(barrier), "here": here, "y": Meeting(barrier)}
    harvest = run(models, [Order(model=name, label="a", count=3) for name in models])
    assert [candidate.model for candidate in harvest.candidates] == ["x"] * 3 + ["here"] * 3 + ["y"] * 3


@pytest.mark.parametrize("remote", [True, False])
def test_a_model_that_fails_does_not_take_from_the_others_what_is_under_way(remote):
    reported, finished = threading.Event(), []

    class Slow(Scripted):
        def generate(self, requests, *, arrived):
            reported.wait(10)
            finished.append(len(requests))
            return super().generate(requests, arrived=arrived)

    class First(Scripted):
        def generate(self, requests, *, arrived):
            reported.set()
            raise ProviderError("no key")

    slow, first = Slow(lambda r, _: r.n), First(None)
    slow.remote, first.remote = True, remote
    with pytest.raises(ProviderError, match="no key"):
        run({"slow": slow, "m": first}, [Order(model=name, label="a", count=1) for name in ("slow", "m")])
    assert finished == [1]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_cancels_the_requests_of_remote_models(monkeypatch, stop):
    cancelled = threading.Event()
    monkeypatch.setattr("server.llm.passes.cancel_requests", cancelled.set)

    class Waiting(Scripted):
        remote = True

        def generate(self, requests, *, arrived):
            assert cancelled.wait(60)
            raise ProviderError("cancelled")

    class Stopped(Scripted):
        def generate(self, requests, *, arrived):
            raise stop

    providers = {"far": Waiting(lambda r, _: r.n), "near": Stopped(lambda r, _: r.n)}
    with pytest.raises(stop):
        run(providers, [Order(model=name, label="a", count=2) for name in providers])
    assert cancelled.is_set()


def test_losses_and_cleaning_are_counted_by_model():
    class Lossy(Scripted):
        def generate(self, requests, *, arrived):
            self.asked += requests
            bad = len(self.asked) == 1
            texts = ("1. one", "one") if not bad else ()
            return [
                Reply(texts=texts, input_tokens=3, output_tokens=2, cached_tokens=1, loss="refused" if bad else None)
                for _ in requests
            ]

    harvest = generate(
        {"m": Lossy(None)},
        [Order(model="m", label="a", count=2)],
        write_texts,
        round_number=0,
        texts_per_request=2,
        experiment_seed=0,
        cleaner=Cleaner(Rules()),
        run_texts={"held"},
    )
    assert [candidate.text for candidate in harvest.candidates] == ["one"]
    assert harvest.use.losses == {"m": {"refused": 1}}
    assert harvest.use.cleaned == {"m": {"numbering": 2, "duplicates": 3}}
    assert (harvest.use.calls, harvest.use.cached_tokens, harvest.lost["m"]) == (3, 3, 1)


class Dying(Scripted):
    """A provider that answers so many requests, and then none."""

    def __init__(self, answers):
        super().__init__(lambda request, _: request.n)
        self.answers = answers

    def generate(self, requests, *, arrived):
        before = len(self.asked)
        failed = Reply(texts=(), input_tokens=0, output_tokens=0, loss="failed")
        replies = super().generate(requests, arrived=arrived)
        return [reply if before + at < self.answers else failed for at, reply in enumerate(replies)]


ONE = Request(task_kind="note", labels=(("a", "A"),))


@pytest.mark.parametrize("answers", [0, 1, 5])
@pytest.mark.parametrize("way", ["generate", "write"])
def test_a_model_that_does_not_answer_any_more_stops_the_run_unless_any_loss_is_allowed(answers, way):
    def ask(**more):
        model = {"m": Dying(answers)}
        if way == "write":
            return write_each(model, [("m", replace(ONE, seed=10 * at)) for at in range(6)], **more)
        orders = [Order(model="m", label="a", count=6)]
        return generate(model, orders, write_texts, round_number=1, texts_per_request=1, experiment_seed=0, **more)

    with pytest.raises(ProviderError, match=f"{6 - answers} of 6 .*{answers} replies"):
        ask()
    assert ask(most_lost=1).lost["m"] == 6 - answers


def test_a_model_that_does_not_answer_and_never_wrote_is_replaced_by_others():
    written = write_each({"m": Dying(0), "k": obedient()}, [("m", ONE), ("k", replace(ONE, seed=9))])
    assert written.models == [("k",), ("k",)]


@pytest.mark.parametrize(
    ("silent", "stops"), [(0, False), (2, False), (3, False), (4, False), (5, True), (20, True)], ids=str
)
def test_more_than_a_fifth_of_the_texts_lost_stops_the_run_and_fewer_are_a_warning(silent, stops, caplog):
    requests = [("m", replace(ONE, seed=10 * at)) for at in range(20)]
    model = {"m": Scripted(lambda request, _: int(request.seed // 10 >= silent))}
    if stops:
        with pytest.raises(ProviderError, match=f"20% .* {silent} of 20"):
            write_each(model, requests)
    else:
        assert write_each(model, requests).lost["m"] == silent
        assert (f"{silent} of 20 " in caplog.text) == (silent > 0)


@pytest.mark.parametrize(("few", "stops"), [(1, False), (2, False), (3, True)])
def test_all_texts_of_a_kind_of_prompt_lost_stops_the_run_and_a_few_requests_never_do(few, stops):
    blanks = [("m", replace(ONE, source=("one two",), blanks=0.5, seed=10 * at)) for at in range(few)]
    requests = [*blanks, *(("m", replace(ONE, seed=1000 + 10 * at)) for at in range(20))]
    model = {"m": Scripted(lambda request, _: int(not request.blanks))}
    if stops:
        with pytest.raises(ProviderError, match=f"{few} of {few + 20} .* of blanks"):
            write_each(model, requests)
    assert write_each(model, requests, most_lost=float(stops)).lost["m"] == few
    assert write_each({"m": Scripted(lambda *_: 0)}, blanks[:2]).lost["m"] == min(few, 2)


def test_a_model_that_wrote_is_not_asked_again_after_hopeless_replies(caplog):
    alike = Refusing("the same")
    harvest = run({"m": alike}, [Order(model="m", label="a", count=80)], most_lost=1, cleaner=Cleaner(Rules()))
    assert len(harvest.candidates) == 1
    assert len(alike.asked) == 20 + 20  # the first pass had a text, the second only duplicates
    assert "m is not" in caplog.text


def test_of_a_model_that_fails_the_replies_without_texts_are_told():
    class Half(Scripted):
        def generate(self, requests, *, arrived):
            arrived(0, Reply(texts=(), input_tokens=1, output_tokens=1))
            arrived(1, Reply(texts=("a",), input_tokens=1, output_tokens=1))
            raise ProviderError("the cap is reached")

    told = []
    with pytest.raises(ProviderError, match="cap"):
        write_each({"m": Half(None)}, [("m", ONE), ("m", replace(ONE, seed=1))], unusable=told)
    assert [request.seed for _, request, _ in told] == [0]
