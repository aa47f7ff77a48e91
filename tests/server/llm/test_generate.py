import threading
from dataclasses import replace

import pytest

from common.errors import ProviderError
from server.llm.base import NO_REPLY, Reply, Request
from server.llm.clean import Cleaner, Rules
from server.llm.generate import MOST_PASSES, PASSES_OF_A_LABEL, generate
from server.llm.generate import write_texts as write_each
from server.llm.orders import Order

ONE = Request(task_kind="note", labels=(("a", "A"),))
REFUSAL = "I'm sorry, but I can't help with that."


class Scripted:
    """A provider that answers each request with as many texts as `give` says, after it has done what `first` says.

    With `texts`, each reply has these; None for a reply that never comes.
    """

    def __init__(self, give=lambda request, _: request.n, *, first=lambda: None, remote=False, texts=()):
        self.give, self.first, self.remote, self.texts = give, first, remote, texts
        self.asked, self.calls = [], 0

    def generate(self, requests, *, arrived):
        self.first()
        self.calls += 1
        return [self._reply(request) for request in requests]

    def _reply(self, request):
        self.asked.append(request)
        count = self.give(request, len(self.asked))
        if count is None:
            return NO_REPLY
        texts = self.texts[:count] if self.texts else tuple(f"{request.seed} {i}" for i in range(count))
        return Reply(texts=texts, input_tokens=3, output_tokens=2)


def ask_for(order, texts, rng):
    return replace(ONE, labels=(("a", "A"), ("b", "B")), label=order.label, n=texts, seed=int(rng.integers(2**60)))


def order(count, model="m", label="a"):
    return Order(model=model, label=label, count=count)


def run(providers, *orders, seed=0, number=1, size=4, **more):
    settings = {"round_number": number, "texts_per_request": size, "experiment_seed": seed}
    return generate(providers, orders, ask_for, **settings, **more)


def test_orders_are_filled_exactly_and_marked_and_all_labels_are_asked_for_at_once():
    provider = Scripted()
    harvest = run({"m": provider}, order(10), order(3, label="b"))
    assert ([request.n for request in provider.asked], provider.calls) == ([4, 4, 2, 3], 1)
    assert [candidate.label for candidate in harvest.candidates] == ["a"] * 10 + ["b"] * 3
    assert {(candidate.model, candidate.round) for candidate in harvest.candidates} == {("m", 1)}
    assert (harvest.use.calls, harvest.use.input_tokens, harvest.use.output_tokens) == (4, 12, 8)
    assert not +harvest.lost


def test_too_many_are_cut_at_random_to_the_order():
    cut = [run({"m": Scripted(lambda r, _: r.n + 5)}, order(4), seed=seed) for seed in (0, 1)]
    texts = [[candidate.text.split()[1] for candidate in harvest.candidates] for harvest in cut]
    assert [len(kept) for kept in texts] == [4, 4]
    assert texts[0] != texts[1]


def test_too_few_are_asked_for_again_and_the_shortage_is_stated():
    refilled = Scripted(lambda r, number: 1 if number == 1 else r.n)
    assert len(run({"m": refilled}, order(4)).candidates) == 4
    assert [request.n for request in refilled.asked] == [4, 3]
    harvest = run({"m": Scripted(lambda *_: 1)}, order(9), most_lost=1)
    assert len(harvest.candidates) == 3 + 2 + 1
    assert harvest.lost["m"] == 3


def test_a_label_without_any_text_stops_the_first_round_and_is_named_in_later_ones(caplog):
    first, later = (Scripted(lambda request, _: request.n if request.label == "a" else 0) for _ in range(2))
    orders = order(2), order(2, label="b")
    with pytest.raises(ProviderError, match=rf"b \(passes: {PASSES_OF_A_LABEL}\)"):
        run({"m": first}, *orders, number=0)
    assert [request.label for request in first.asked] == ["a", *["b"] * PASSES_OF_A_LABEL]
    harvest = run({"m": later}, *orders)
    assert [candidate.label for candidate in harvest.candidates] == ["a", "a"]
    assert harvest.lost["m"] == 2
    assert f"of b (passes: {PASSES_OF_A_LABEL})" in caplog.text


def test_a_label_gets_its_first_text_late_and_no_label_with_one_is_asked_again():
    slow = Scripted(lambda request, number: 1 if request.label == "a" or number > 10 else 0)
    harvest = run({"m": slow}, order(9), order(2, label="b"), number=0, most_lost=1)
    assert {candidate.label for candidate in harvest.candidates} == {"a", "b"}
    assert sum(request.label == "a" for request in slow.asked) == 3 + 2 + 1


def silent(texts):
    """A provider of no texts, or of none that the cleaner leaves."""
    return Scripted(texts=texts) if texts else Scripted(lambda *_: 0)


@pytest.mark.parametrize("texts", [(), (REFUSAL,)], ids=["empty", "refusals"])
@pytest.mark.parametrize("number", [0, 1])
def test_the_others_write_in_turn_what_a_model_without_usable_texts_does_not(texts, number):
    calls = []
    for _ in range(2):
        providers = {"m": silent(texts), "k": Scripted(), "j": Scripted()}
        orders = order(8), order(4, "k", "b"), order(4, "j", "b")
        harvest = run(providers, *orders, number=number, cleaner=Cleaner(Rules()))
        asked = {name: [(request.label, request.n) for request in model.asked] for name, model in providers.items()}
        assert asked == {"m": [("a", 4)] * 2, "k": [("b", 4), ("a", 4)], "j": [("b", 4), ("a", 4)]}
        by = [(candidate.model, candidate.label) for candidate in harvest.candidates]
        assert by == [*[("k", "a")] * 4, *[("j", "a")] * 4, *[("k", "b")] * 4, *[("j", "b")] * 4]
        assert (harvest.requested, +harvest.lost) == ({"m": 8, "k": 8, "j": 8}, {"m": 8})
        assert +harvest.use.passed_on == {"m": 8}
        calls.append([request for model in providers.values() for request in model.asked])
    assert calls[0] == calls[1]
    assert len({request.seed for request in calls[0]}) == len(calls[0])


@pytest.mark.parametrize("texts", [(), (REFUSAL,)], ids=["empty", "refusals"])
def test_single_requests_go_in_turn_to_the_others(texts):
    providers = {"m": silent(texts), "k": Scripted(), "j": Scripted()}
    requests = [(model, replace(ONE, seed=10 * i)) for i, model in enumerate("mmmkj")]
    written = write_each(providers, requests, cleaner=Cleaner(Rules()))
    assert written.models == [("k",), ("j",), ("k",), ("k",), ("j",)]
    assert written.texts == [("1 0",), ("11 0",), ("21 0",), ("30 0",), ("40 0",)]
    assert (written.requested, written.use.passed_on) == ({"m": 3, "k": 3, "j": 2}, {"m": 3})


def test_nobody_is_asked_for_a_text_that_its_model_may_still_write_or_where_nobody_writes():
    weak, providers = Scripted(lambda *_: 1), {name: silent(()) for name in "mk"}
    harvest = run({"m": weak, "k": Scripted()}, order(5), order(5, "k"))
    assert (+harvest.lost, +harvest.use.passed_on) == ({"m": 1}, {})
    assert len(weak.asked) == 2 + 1 + 1
    written = write_each(providers, [(name, ONE) for name in "mk"])
    assert (written.texts, written.lost, +written.use.passed_on) == ([(), ()], {"m": 1, "k": 1}, {})
    assert [len(model.asked) for model in providers.values()] == [MOST_PASSES] * 2


def test_remote_models_work_side_by_side_and_a_local_one_meanwhile():
    met = threading.Barrier(3)
    models = {name: Scripted(first=lambda: met.wait(10), remote=name != "here") for name in ("x", "here", "y")}
    harvest = run(models, *(order(3, name) for name in models))
    assert [candidate.model for candidate in harvest.candidates] == ["x"] * 3 + ["here"] * 3 + ["y"] * 3


@pytest.mark.parametrize("remote", [True, False])
def test_a_model_that_fails_does_not_take_from_the_others_what_is_under_way(remote):
    reported = threading.Event()

    def fail():
        reported.set()
        raise ProviderError("no key")

    slow = Scripted(first=lambda: reported.wait(10), remote=True)
    with pytest.raises(ProviderError, match="no key"):
        run({"slow": slow, "m": Scripted(first=fail, remote=remote)}, order(1, "slow"), order(1))
    assert len(slow.asked) == 1


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_cancels_the_requests_of_remote_models(monkeypatch, stop):
    cancelled = threading.Event()
    monkeypatch.setattr("server.llm.passes.cancel_requests", cancelled.set)

    def wait():
        assert cancelled.wait(60)
        raise ProviderError("cancelled")

    def interrupted():
        raise stop

    providers = {"far": Scripted(first=wait, remote=True), "near": Scripted(first=interrupted)}
    with pytest.raises(stop):
        run(providers, order(2, "far"), order(2, "near"))
    assert cancelled.is_set()


def test_losses_and_cleaning_are_counted_by_model():
    lossy = Scripted(lambda r, number: None if number == 1 else 2, texts=("1. one", "one"))
    harvest = run({"m": lossy}, order(2), number=0, size=2, cleaner=Cleaner(Rules()), run_texts={"held"}, most_lost=1)
    assert [candidate.text for candidate in harvest.candidates] == ["one"]
    assert harvest.use.losses == {"m": {"failed": 1}}
    assert harvest.use.cleaned == {"m": {"numbering": 2, "duplicates": 3}}
    assert (harvest.use.calls, harvest.lost["m"]) == (3, 1)


@pytest.mark.parametrize("answers", [0, 1, 5])
@pytest.mark.parametrize("way", ["generate", "write"])
def test_a_model_that_does_not_answer_any_more_stops_the_run_unless_any_loss_is_allowed(answers, way):
    def ask(**more):
        model = {"m": Scripted(lambda request, number: request.n if number <= answers else None)}
        if way == "generate":
            return run(model, order(6), size=1, **more)
        return write_each(model, [("m", replace(ONE, seed=10 * at)) for at in range(6)], **more)

    with pytest.raises(ProviderError, match=f"{6 - answers} of 6 .*{answers} replies"):
        ask()
    assert ask(most_lost=1).lost["m"] == 6 - answers


def test_a_model_that_does_not_answer_and_never_wrote_is_replaced_by_others():
    written = write_each({"m": Scripted(lambda *_: None), "k": Scripted()}, [("m", ONE), ("k", replace(ONE, seed=9))])
    assert written.models == [("k",), ("k",)]


@pytest.mark.parametrize(("lost", "stops"), [(0, False), (3, False), (4, False), (5, True), (20, True)], ids=str)
def test_more_than_a_fifth_of_the_texts_lost_stops_the_run_and_fewer_are_a_warning(lost, stops, caplog):
    requests = [("m", replace(ONE, seed=10 * at)) for at in range(20)]
    model = {"m": Scripted(lambda request, _: int(request.seed // 10 >= lost))}
    if stops:
        with pytest.raises(ProviderError, match=f"20% .* {lost} of 20"):
            write_each(model, requests)
    else:
        assert write_each(model, requests).lost["m"] == lost
        assert (f"{lost} of 20 " in caplog.text) == (lost > 0)


@pytest.mark.parametrize(("few", "stops"), [(1, False), (2, False), (3, True)])
def test_all_texts_of_a_kind_of_prompt_lost_stops_the_run_and_a_few_requests_never_do(few, stops):
    blanks = [("m", replace(ONE, source=("one two",), blanks=0.5, seed=10 * at)) for at in range(few)]
    requests = [*blanks, *(("m", replace(ONE, seed=1000 + 10 * at)) for at in range(20))]
    model = {"m": Scripted(lambda request, _: int(not request.blanks))}
    if stops:
        with pytest.raises(ProviderError, match=f"{few} of {few + 20} .* of blanks"):
            write_each(model, requests)
    assert write_each(model, requests, most_lost=float(stops)).lost["m"] == few
    assert write_each({"m": silent(())}, blanks[:2]).lost["m"] == min(few, 2)


def test_a_model_that_wrote_is_not_asked_again_after_hopeless_replies(caplog):
    alike = Scripted(texts=("the same",))
    harvest = run({"m": alike}, order(80), most_lost=1, cleaner=Cleaner(Rules()))
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
        write_each({"m": Half()}, [("m", ONE), ("m", replace(ONE, seed=1))], unusable=told)
    assert [request.seed for _, request, _ in told] == [0]
