"""The request layer under both real SDKs, against servers that fail in every way that is known of."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

import pytest

from common.errors import ConfigError, ProviderError
from server.llm.base import Provider
from server.llm.cache import Cached
from server.llm.remote.provider import cancel_requests
from server.llm.remote.retry import Clock, Failure, Outage
from server.llm.render import Prompts
from server.llm.spending import Spending
from tests.support.loopback import error
from tests.support.provider_contract import ProviderContract, requests
from tests.support.remote_models import KEY

HTML = (200, {"content-type": "text/html"}, b"<html>gateway</html>")
PRICE = {"as_of": "today", "input": 1.0, "output": 10.0}


def limited(message, after=None):
    """An answer that the rate limit is reached, with a time to come back in its header."""
    return 429, {} if after is None else {"retry-after": after}, error("rate_limit_error", message)


class TestRemote(ProviderContract):
    @pytest.fixture
    def provider(self, model) -> Provider:
        return model

    @pytest.fixture
    def effect(self, sent):
        return sent


@pytest.mark.parametrize("around", [" {}", "{}\n", "\t{}\r\n", "\u00a0{}"])
def test_white_space_around_a_key_is_left_out(build, monkeypatch, kind, sent, around):
    monkeypatch.setenv(f"{kind.name.upper()}_API_KEY", around.format(KEY))
    assert len(sent(build(), requests(1))) == 1


@pytest.mark.parametrize("key", ['"{}"', "\u201c{}\u201d", "{0} {0}", "{0}\n{0}", "{}\0", "{}ä", "{0}\u200b{0}"])
def test_a_key_with_other_characters_is_refused_by_its_variable_and_not_shown(build, monkeypatch, kind, key):
    variable = f"{kind.name.upper()}_API_KEY"
    monkeypatch.setattr(os, "environ", dict(os.environ) | {variable: key.format(KEY)})  # no environment takes NUL
    with pytest.raises(ConfigError) as refused:
        build()
    assert refused.value.what == variable
    assert KEY not in str(refused.value)


def test_a_variable_that_the_sdk_cannot_use_is_named_before_anything_is_sent(build, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/gone")
    with pytest.raises(ConfigError) as refused:
        build()
    assert refused.value.what == "SSL_CERT_FILE"


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "localhost:8000/v1"},
        {"max_tokens": 0},
        {"concurrency": 0},
        {"model": ""},
        {"name": ""},
        {"timeout": 0},
        {"retries": -1},
        {"requests_per_minute": 0},
        {"price": {"as_of": "", "input": 1, "output": 1}},
        {"price": {"as_of": "today", "input": -1, "output": 1}},
    ],
)
def test_wrong_settings_are_refused(build, wrong):
    with pytest.raises(ConfigError):
        build(**wrong)


@pytest.mark.parametrize(
    ("status", "kind_of_error"), [(429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error"), (408, "t")]
)
def test_what_passes_is_tried_again_with_growing_waits(model, server, time, status, kind_of_error):
    server.script = [(status, {}, error(kind_of_error))] * 3
    (reply,) = model.generate(requests(1))
    assert reply.texts
    assert reply.loss is None
    assert len(server.seen) == 4
    assert time.slept == [0.75, 1.5, 3.0]


@pytest.mark.parametrize("after", ["7", "7000ms", "0m7s", formatdate(1_700_000_007.0, usegmt=True)])
def test_the_servers_word_on_when_to_come_back_counts_for_all(build, server, time, after):
    model = build(concurrency=2)
    server.script = [limited("no", after)]
    assert all(reply.texts for reply in model.generate(requests(4)))
    assert time.at == pytest.approx(1007.0)


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (limited("no", "soon"), 0.75),
        (limited("no", "nan"), 0.75),
        (limited("Limit 9, used 9. Please try again in 1m1.5s. See the page 4s"), 61.5),
        (limited("Please try again. Code 500 deadline exceeded"), 0.75),
        (limited("Please try again later (max 20 million tokens)"), 0.75),
        (limited("Please wait; limit: 10 messages per minute"), 0.75),
    ],
)
def test_a_wait_is_read_from_the_header_or_else_the_message(model, server, time, answer, wait):
    server.script = [answer]
    assert model.generate(requests(1))[0].texts
    assert time.slept == [wait]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (limited("no", "7200"), "until 2023-11-15 00:13 UTC.*resume"),
        (limited("no", "120 minutes"), "until 2023-11-15 00:13 UTC.*resume"),
        (limited("no", "1e12"), "until 2024-11-14"),
        (limited("Rate limit reached: requests per day (RPD): limit 200, used 200."), "tomorrow"),
    ],
)
def test_a_server_that_asks_for_hours_stops_the_run_and_says_until_when(model, server, time, answer, said):
    server.script = [answer]
    with pytest.raises(ProviderError, match=said):
        model.generate(requests(2))
    assert not time.slept


def test_a_server_that_has_answered_is_not_believed_to_refuse_a_parameter_and_may_lose_a_single_request(model, server):
    model.generate(requests(1))
    server.script = [(400, {}, error("invalid_request_error", "'temperature' is not allowed by policy"))]
    assert model.generate(requests(1))[0].loss == "failed"
    assert model.generate(requests(1))[0].texts


def test_a_slow_server_is_not_given_up_after_two_failures():
    clock = Clock(now=iter((0.0, 600.0, 1200.0)).__next__)
    outage = Outage(model="m", clock=clock)
    failure = Failure(kind="again", summary="timeout")
    assert [outage.lasts_too_long(failure) for _ in range(3)] == [False, False, True]


REPORTED = [
    ({"code": 429, "message": "slow down"}, "again"),
    ({"type": "overloaded_error", "message": "x"}, "again"),
    ({"message": "Too many requests, try again in 7s"}, "again"),
    ("rate limit", "again"),
    ({"code": "insufficient_quota", "message": "x"}, "hopeless"),
    ({"type": "authentication_error", "message": "x"}, "hopeless"),
    ({"code": 400, "message": "Unsupported parameter: 'max_tokens'"}, "hopeless"),
    ({"type": "invalid_request_error", "message": "not found and busy"}, "failed"),
    ({"message": "prompt is too long", "code": 400}, "too long"),
]
"""Errors that gateways report under HTTP status 200, and what follows."""


@pytest.mark.parametrize(("reported", "follows"), REPORTED, ids=str)
def test_an_error_in_a_good_answer_counts_as_what_it_says(model, server, time, reported, follows):
    server.script = [(200, {}, {"error": reported})]
    if follows == "hopeless":
        with pytest.raises(ProviderError):
            model.generate(requests(2))
        assert len(server.seen) == 1
        return
    first, second = model.generate(requests(2))
    assert second.texts
    assert first.loss == (None if follows == "again" else follows)
    assert bool(time.slept) is (follows == "again")


def test_an_error_counts_beside_no_completion_alone(model, server, time, kind):
    server.script = [(200, {}, {"error": {"code": 429}, "choices": None, "content": []})]
    assert model.generate(requests(1))[0].texts
    assert time.slept
    server.script = [(200, {}, kind.answer(["a", "b"]) | {"error": {"message": "half of it was lost"}})]
    assert model.generate(requests(1))[0].texts == ("a", "b")


@pytest.mark.parametrize("fault", ["cut", "cut short", "slow"])
def test_connections_that_are_cut_and_answers_that_do_not_come(build, server, fault):
    server.script = [fault]
    assert build(timeout=1.0 if fault == "slow" else 60.0).generate(requests(1))[0].texts
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("bad", "loss"),
    [
        ("refusal", "refused"),
        ("written empty", "empty"),
        ("empty list", "unreadable"),
        ("null fields", "malformed"),
        ((200, {}, {}), "malformed"),
        ((200, {}, b'{"id": "msg_1", "conte'), "malformed"),
        (HTML, "malformed"),
        ((400, {}, error("invalid_request_error")), "failed"),
        ((400, {}, error("x", "prompt is too long: 9 tokens > 8 maximum")), "too long"),
        ((400, {}, error("x", code="context_length_exceeded")), "too long"),
        ((400, {}, error("x", code="content_filter")), "filtered"),
    ],
    ids=str,
)
def test_one_lost_item_is_an_empty_reply_that_says_why(model, server, kind, bad, loss):
    answers = {"refusal": kind.refusal, "written empty": kind.answer([], written=""), "empty list": kind.answer([])}
    answers["null fields"] = kind.answer([]) | {"content": None, "choices": None, "usage": None}
    server.script = [(200, {}, answers[bad]) if isinstance(bad, str) else bad]
    first, second = model.generate(requests(2))
    assert (first.texts, first.loss) == ((), loss)
    assert len(second.texts) == 2


def test_a_text_that_breaks_off_gives_its_complete_items(model, server, kind):
    server.script = [(200, {}, kind.answer([], stop=kind.length, written='["whole", "in two, the sec'))]
    (reply,) = model.generate(requests(1))
    assert (reply.texts, reply.loss) == (("whole",), "truncated")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        *((status, error("no")) for status in (401, 402, 403, 404)),
        (429, error("insufficient_quota", code="insufficient_quota")),
        (400, error("x", "Your credit balance is too low")),
    ],
)
def test_hopeless_errors_stop_at_once_without_key_or_prompt(model, server, time, status, body):
    server.script = [(status, {}, body)] * 2
    with pytest.raises(ProviderError) as caught:
        model.generate(requests(2, good=("an exemplar",)))
    message = str(caught.value)
    assert str(status) in message
    assert not any(secret in message for secret in (KEY, "exemplar"))
    assert len(server.seen) == 1
    assert not time.slept


def test_what_is_under_way_when_all_stops_is_kept(build, server):
    model = build(concurrency=2)
    server.together = threading.Barrier(2, action=lambda: setattr(server, "together", None))
    server.script = [(401, {}, error("no"))]
    arrivals = []
    with pytest.raises(ProviderError, match="401"):
        model.generate(requests(50), arrived=lambda place, reply: arrivals.append(reply))
    # The other one may have been answered before the refusal came, and a next one sent.
    assert 1 <= len(arrivals) == len(server.seen) - 1 < 49


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ((400, {}, error("invalid_request_error")), "400"),
        (HTML, "Malformed"),
        ((400, {}, error("x", code="context_length_exceeded")), r"method\.shots"),
    ],
)
def test_when_nothing_but_errors_comes_the_run_stops(model, server, bad, word):
    server.script = [bad] * 3
    with pytest.raises(ProviderError, match=word):
        model.generate(requests(3))


@pytest.mark.parametrize(("concurrency", "asked"), [(1, 100), (2, 3)])
def test_an_outage_in_the_middle_or_at_the_end_stops_before_all_items_are_lost(build, server, concurrency, asked):
    model = build(retries=1, concurrency=concurrency)
    model.generate(requests(1))
    server.script = [(500, {}, error("api_error"))] * 1000
    with pytest.raises(ProviderError, match="500"):
        model.generate(requests(asked))
    assert len(server.seen) == 1 + 2 * min(asked, 8)


@pytest.mark.parametrize("concurrency", [1, 4, 32])
def test_a_server_that_answers_nothing_is_tried_for_two_minutes_and_the_log_says_so(
    build, server, time, concurrency, caplog
):
    caplog.set_level("INFO", logger="caucus.llm")
    server.script = [(500, {}, error("api_error"))] * 1000
    with pytest.raises(ProviderError, match="500"):
        build(concurrency=concurrency).generate(requests(100))
    assert 30 < time.at - 1000 < 180
    (line,) = [record.getMessage() for record in caplog.records if record.name == "caucus.llm"]
    assert line.startswith("m does not answer (InternalServerError,")


def test_a_busy_server_that_says_when_to_come_back_is_not_given_up_after_two_minutes(model, server, time):
    server.script = [limited("no", "90")] * 5
    assert model.generate(requests(1))[0].texts
    assert time.at == pytest.approx(1450.0)


def test_requests_of_other_threads_are_cancelled_and_replies_that_came_are_kept(build, server, kind):
    arrivals, slow = [], threading.Event()
    give = server._give

    def given(handler, answer):
        if answer == "slow":
            slow.set()
        give(handler, answer)

    server._give = given
    server.script = [(200, {}, kind.answer([f"text {n}"])) for n in range(4)] + ["slow"]
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(build(concurrency=1).generate, requests(9), arrived=lambda place, _: arrivals.append(place))
        assert slow.wait(60)
        cancel_requests()
        with pytest.raises(ProviderError, match="interrupt"):
            asked.result(60)
    assert arrivals == [0, 1, 2, 3]
    assert len(server.seen) == 5
    cancel_requests()  # nothing is under way any more


def test_no_server_is_a_provider_error_that_names_the_proxy(build):
    gone = build(base_url="http://127.0.0.1:9", retries=1)
    for ask in (gone.check, lambda: gone.generate(requests(1))):
        with pytest.raises(ProviderError, match=r"APIConnectionError.*HTTPS_PROXY"):
            ask()


def test_concurrency_is_used_and_bounded(build, server):
    server.together = threading.Barrier(3)
    model = build(concurrency=3)
    assert len(model.generate(requests(6))) == 6
    assert server.most == 3


def test_requests_are_paced_by_number_and_by_tokens_really_used(build, time):
    build(requests_per_minute=30, concurrency=4).generate(requests(5))
    assert time.at == pytest.approx(1008.0)
    model = build(tokens_per_minute=160)
    assert sum(model.estimate(requests(1)[0])) > 100
    model.generate(requests(3))  # each used 16 tokens, six seconds' worth, whatever was expected
    assert time.at == pytest.approx(1020.0)


def test_the_check_asks_for_the_model_alone_and_for_no_word_that_a_cap_forbids(build, server):
    build().check()
    assert server.paths == ["/v1/models/test-model"]
    server.missing = True
    build(spending=Spending(max_tokens=10)).check()
    assert not server.seen


def test_the_check_names_a_model_that_there_is_not_a_wrong_key_and_a_server_that_loads(model, server):
    server.unknown = True
    with pytest.raises(ProviderError, match="404"):
        model.check()
    server.script = [(401, {}, error("authentication_error", f"{KEY} is no key"))]
    with pytest.raises(ProviderError, match="401") as caught:
        model.check()
    assert KEY not in str(caught.value)
    server.script = [(503, {}, error("unavailable_error", "Loading model"))] * 3
    with pytest.raises(ProviderError, match="loads its"):
        model.check()


def test_the_check_asks_a_server_without_a_list_for_a_word_and_waits_for_a_busy_one(build, server):
    server.missing = True
    model = build(spending=(spending := Spending()))
    model.check()
    assert "Say yes." in str(server.seen[0]["messages"])
    assert {server.seen[0].get(field, 16) for field in ("max_tokens", "max_completion_tokens")} == {16}
    assert spending.paid()["m"].replies == 1
    server.script = [(503, {}, error("api_error"))]
    model.check()
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"detail": "Server is pinned to\n'a'."}),
        (500, error("server_error", "Server is pinned to 'a'." + "b" * 999)),
    ],
)
def test_the_check_passes_on_what_a_server_without_a_list_says_of_the_word(model, server, status, body):
    server.missing = True
    server.script = [(404, {}, {"detail": "Not Found"}), (status, {}, body)] * 3
    with pytest.raises(ProviderError, match=rf"HTTP status {status}: Server is pinned to 'a'[;.]") as caught:
        model.check()
    assert len(str(caught.value)) < 600


def test_the_identity_names_what_a_reply_depends_on_and_nothing_shows_the_key(build, server):
    changes = ({}, {"model": "o"}, {"max_tokens": 9}, {"base_url": "http://x"})
    assert len({build(**change).identity for change in changes}) == 4
    assert build().identity == build(concurrency=2, name="n").identity
    model = build()
    model.generate(requests(1))
    assert KEY not in repr(model) + repr(vars(model)) + model.identity
    assert any(KEY in value for value in server.headers[0].values())


# Spending


def test_what_was_paid_is_kept_and_replies_from_the_cache_cost_nothing(build, tmp_path):
    account = tmp_path / "spending.jsonl"
    for _ in range(2):
        spending = Spending(path=account)
        cached = Cached(provider=build(spending=spending, price=PRICE), path=tmp_path / "replies.sqlite")
        cached.generate(requests(3))
        paid = spending.paid()["m"].payment.to_json()
        assert (paid["replies"], paid["input_tokens"], paid["output_tokens"]) == (3, 33, 15)
        assert spending.cost() == pytest.approx(3 * (11 + 50) / 1e6)


@pytest.mark.parametrize("cap", [{"max_cost": 0.02}, {"max_tokens": 3000}])
def test_a_cap_stops_before_the_request_that_could_exceed_it_and_a_higher_one_goes_on(build, server, tmp_path, cap):
    account, replies = tmp_path / "spending.jsonl", tmp_path / "replies.sqlite"
    batch = requests(40)
    use = {"input_tokens": 100, "output_tokens": 300, "prompt_tokens": 100, "completion_tokens": 300}

    def run(**caps):
        spending = Spending(path=account, **caps)
        model = build(spending=spending, price=PRICE, concurrency=4)
        return spending, lambda: Cached(provider=model, path=replies).generate(batch)

    fresh = server._fresh
    server._fresh = lambda *args: fresh(*args) | {"usage": use}
    spending, go = run(**cap)
    with pytest.raises(ProviderError, match=r"llm\.max_.*--resume"):
        go()
    first = len(server.seen)
    assert 0 < first < 40
    assert (spending.cost() or 0) <= cap.get("max_cost", 9)
    assert spending.paid()["m"].usage.tokens <= cap.get("max_tokens", 1e9)
    spending, go = run()
    assert all(reply.texts for reply in go())
    assert len(server.seen) == 40
    assert spending.paid()["m"].replies == 40


def test_a_cap_on_money_needs_prices(build):
    with pytest.raises(ConfigError, match=r"llm\.models\.m\.price"):
        build(spending=Spending(max_cost=1.0))


def test_a_server_that_does_not_count_is_counted_for(model, server, kind):
    server.script = [(200, {}, kind.answer(["a text", "another"], usage={}))]
    (reply,) = model.generate(requests(1))
    assert reply.input_tokens == model.estimate(requests(1)[0])[0]
    assert reply.output_tokens > 0


# What goes over the wire


@pytest.fixture
def prompts(tmp_path):
    """Prompts with a system part."""
    (tmp_path / "examples.jinja").write_text("Be terse.\n---\nWrite {{ n }}. {% include '_answer.jinja' %}")
    return Prompts(tmp_path)


def test_an_empty_system_part_sends_no_system_message(model, server):
    model.generate(requests(1))
    assert "system" not in server.seen[0]
    assert [turn["role"] for turn in server.seen[0]["messages"]] == ["user"]


def test_nothing_goes_out_but_the_prompt(build, prompts, server, kind):
    request = requests(1, good=("Where is it?",), temperature=0.3)[0]
    (reply,) = build(prompts=prompts).generate([request])
    system, user = prompts.render(request)
    asked = {"role": "user", "content": user}
    cached = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
    fields = {
        "anthropic": {"max_tokens": 300, "system": cached, "messages": [asked]},
        "openai": {
            "max_completion_tokens": 300,
            "temperature": 0.3,
            "messages": [{"role": "system", "content": system}, asked],
        },
    }
    assert server.seen == [{"model": "test-model"} | fields[kind.name]]
    assert reply.texts == ("Text 0 of a kind, line 0.", "Text 0 of a kind, line 1.")
    assert (reply.input_tokens, reply.output_tokens) == (11, 5)


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
def test_servers_of_the_house(build, server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    model = build(key_variable=None, length_field="max_tokens", temperature=False, seed=True)
    model.generate([requests(9)[8]])
    body = server.seen[0]
    assert (body["max_tokens"], body["seed"]) == (300, 8)
    assert not body.keys() & {"temperature", "max_completion_tokens"}
    with pytest.raises(ConfigError, match="length_field"):
        build(key_variable=None, length_field="most")


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
def test_the_temperature_is_lowered_to_what_a_server_takes_and_the_log_says_so_once(build, server, caplog):
    caplog.set_level("INFO", logger="caucus.llm")
    model = build(max_temperature=1.0, top_p=0.95)
    model.generate([*requests(2, temperature=1.4), *requests(1, temperature=0.7)])
    assert [body["temperature"] for body in server.seen] == [1.0, 1.0, 0.7]
    assert {body["top_p"] for body in server.seen} == {0.95}
    (line,) = [record.getMessage() for record in caplog.records if record.name == "caucus.llm"]
    assert all(fact in line for fact in ("temperature 1.4", "to 1 (llm.models.m.max_temperature)"))
    assert len({model.identity, build().identity, build(top_p=0.95).identity, build(system_role=False).identity}) == 4
    for wrong in ({"max_temperature": 2.1}, {"top_p": 0.0}, {"top_p": 1.1}):
        with pytest.raises(ConfigError):
            build(**wrong)


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
def test_without_a_system_role_its_part_comes_first_in_the_users(build, prompts, server):
    request = requests(1, good=("Where is it?",))[0]
    build(prompts=prompts, system_role=False).generate([request])
    system, user = prompts.render(request)
    assert server.seen[0]["messages"] == [{"role": "user", "content": f"{system}\n\n{user}"}]


@pytest.mark.parametrize("kind", ["anthropic"], indirect=True)
def test_prompt_caching_can_be_left_out_and_is_counted(build, prompts, server, kind):
    price = PRICE | {"cached": 0.1, "kept": 2.0}
    model = build(prompts=prompts, prompt_caching=False, price=price, spending=(spending := Spending()))
    use = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 50, "output_tokens": 1}
    server.script = [(200, {}, kind.answer(["one", "two"], usage=use))]
    (reply,) = model.generate(requests(1, good=("Where is it?",)))
    assert server.seen[0]["system"] == "Be terse."
    assert (reply.input_tokens, reply.cached_tokens) == (160, 100)
    assert spending.cost() == pytest.approx((10 + 10 + 100 + 10) / 1e6)


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
def test_cached_tokens_are_told_apart(build, server, kind):
    use = {"prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 60}}
    server.script = [(200, {}, kind.answer(["one", "two"], usage=use))]
    spending = Spending()
    (reply,) = build(price=PRICE | {"cached": 0.5}, spending=spending).generate(requests(1))
    assert (reply.input_tokens, reply.cached_tokens) == (100, 60)
    assert spending.cost() == pytest.approx((40 + 30 + 10) / 1e6)


@pytest.mark.parametrize("kind", ["anthropic"], indirect=True)
def test_an_answer_longer_than_the_sdk_allows_is_refused(build):
    with pytest.raises(ConfigError, match="max_tokens"):
        build(max_tokens=30_000)
