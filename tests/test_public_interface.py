# ruff: noqa: E501 a signature is one line
"""The names that `server/methods/YOUR_OWN.md` promises keep their signatures; a change here breaks other people's code.

A line may get a new argument with a default at its end. Anything else is a new version: 0.(x + 1), and a line in the
changelog.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "server" / "methods" / "YOUR_OWN.md").read_text("utf-8")
PROMISE = PAGE.partition("## What stays as it is")[2]
TABLE = {
    module: re.findall(r"`(\w+)`", names)
    for module, names in re.findall(r"^\| `([\w.]+)` \| (.*) \|", PROMISE, re.MULTILINE)
}
"""By module, the names that the page promises."""


IMPLEMENTED = ("Method", "Memory", "Provider")
"""Protocols that other people's classes implement: a new member would break them."""

PROMISED = {
    "simulations.simulate": "train=None, test=None, *, public_text=None, labels=None, method='wasp', parties=3, epsilon=4.0, delta=1e-05, folder=None, overrides=(), config_dir=None",
    "simulations.plan": "train=None, test=None, *, public_text=None, labels=None, method='wasp', parties=3, epsilon=4.0, delta=1e-05, overrides=(), config_dir=None",
    "simulations.resume": "folder, train=None, test=None, *, public_text=None, overrides=()",
    "simulations.Result": "*, folder, status, texts, metrics, privacy, rounds, report",
    "server.method.Method": {
        "name": "value",
        "rounds": "value",
        "texts_per_request": "value",
        "memory": "value",
        "modes": "value",
        "plan": "self, task, target, membership",
        "max_texts": "self, task, models",
        "compared": "self, task",
        "start": "self, tools",
        "step": "self, state, tools",
    },
    "server.method.Tools": {
        "task": "value",
        "models": "value",
        "experiment_seed": "value",
        "generate": "self, orders, make_request, *, round_number",
        "write": "self, requests",
        "embed": "self, texts",
        "spec": "self, name",
        "ask": "self, name, nth, **arrays",
        "noise": "self, name, nth",
    },
    "server.method.State": "*, round=0, candidates=(), rounds=(), released=<factory>, memory",
    "server.method.Memory": {"to_dict": "self", "from_dict": "cls, saved"},
    "server.method.NoMemory": "",
    "server.method.RoundReport": "*, round, requested, generated, lost, candidates, tokens, calls, losses=<factory>, cleaned=<factory>, queries=(), notes=(), figures=<factory>, fid=None, fid_error=None, seconds=None, paid=<factory>, epsilon=None",
    "server.domain.Task": "*, name, kind, labels, attributes=(), wording=<factory>",
    "server.domain.Wording": "*, writer='', style='', label='label'",
    "server.domain.Candidate": "*, text, label, model, round, weight=1.0",
    "server.domain.Example": "*, text, topic=None",
    "server.domain.PrivacyTarget": "*, epsilon=4.0, delta=1e-05, calibration='tight', unit='sample', max_records=1",
    "server.domain.Membership": "*, parties=1, max_dropouts=0, colluders=0, max_attempts=1",
    "server.llm.base.Provider": {
        "name": "value",
        "identity": "value",
        "remote": "value",
        "declines": "value",
        "check": "self",
        "generate": "self, requests, *, arrived=None",
        "estimate": "self, request",
    },
    "server.llm.base.Request": "*, task_kind, labels, label=None, n=1, attribute=None, good=(), bad=(), source=(), blanks=0.0, abstract=False, must=(), good_must=(), phrases=False, words=None, temperature=1.0, seed=0, wording=<factory>",
    "server.llm.base.Reply": "*, texts, input_tokens, output_tokens, cached_tokens=0, loss=None",
    "server.llm.base.MODES": "value",
    "server.llm.base.LOSSES": "value",
    "server.llm.base.accepted": "request, declines",
    "server.llm.requests.by_example": "task, label, *, texts, rng, good=(), bad=(), attribute=None, temperature=1.0, words=None",
    "server.llm.requests.paraphrase": "task, label, source, *, texts, rng, temperature=1.0, words=None",
    "server.llm.orders.Order": "*, model, label, count",
    "server.llm.orders.even_orders": "samples, task, models",
    "server.llm.generate.Generated": "candidates=<factory>, lost=<factory>, use=<factory>",
    "server.llm.generate.Written": "texts, lost=<factory>, use=<factory>",
    "server.llm.generate.Use": "*, calls=0, input_tokens=0, cached_tokens=0, output_tokens=0, losses=<factory>, cleaned=<factory>",
    "server.operators.selection.label_numbers": "candidates, task",
    "server.operators.selection.top_per_label": "scores, labels, k, label_count",
    "server.operators.round_report.make_report": "number, models, *, requested, generated, candidates, work, notes=(), figures=None",
    "server.evaluation.small_model.Metric": "value",
    "common.plan.planned.PlannedQuery": "*, name, spec, times=1, mechanism='gaussian', scale=0.0, share=1.0, rate=1.0, redraw=False, pure=False",
    "common.queries.votes.VotesSpec": "*, top, furthest=True, fine=1, max_records=1",
    "common.queries.class_sums.ClassSumsSpec": "*, labels, directions, count, grid=1024, max_records=1",
    "common.queries.histograms.LabelHistogramSpec": "*, labels, max_records=1",
    "common.queries.histograms.LengthHistogramSpec": "*, bins=100, max_records=1",
    "common.queries.histograms.VocabularySpec": "*, first, max_records=1",
    "common.rng.experiment": "experiment_seed, *purpose",
    "common.errors.CaucusError": "what, *, expected=None, got=None, where=None, do=None",
    "common.errors.InputError": "what, *, expected=None, got=None, where=None, do=None",
    "common.errors.ConfigError": "what, *, expected=None, got=None, where=None, do=None",
    "common.errors.DataError": "what, *, expected=None, got=None, where=None, do=None",
    "common.errors.PlanError": "what, *, expected=None, got=None, where=None, do=None",
    "common.errors.ProviderError": "what, *, expected=None, got=None, where=None, do=None",
    "common.errors.CheckpointError": "what, *, expected=None, got=None, where=None, do=None",
}


def shape(named):
    """The part that must stay: a call's parameters, `*` before those by keyword; the same of a protocol's members."""
    if getattr(named, "_is_protocol", False):
        members = {name: value for name, value in vars(named).items() if not name.startswith("_")}
        return dict.fromkeys(named.__annotations__, "value") | {name: shape(member) for name, member in members.items()}
    if isinstance(named, classmethod):
        named = named.__func__
    if not callable(named) or hasattr(named, "__origin__"):
        return "value"
    bare = [parameter.replace(annotation=parameter.empty) for parameter in inspect.signature(named).parameters.values()]
    return str(inspect.Signature(bare))[1:-1]


def parted(call):
    """Arguments by position, and those by keyword."""
    before, star, after = call.partition("*, ")
    return [part.removesuffix(",") for part in before.split(", ") if part], set(after.split(", ")) if star else set()


def kept(promised, now):
    """Whether who relies on the promise can go on: arguments are as they were, and new ones have a default."""
    (before, keywords), (order, others) = parted(promised), parted(now)
    more = {*order[len(before) :], *(others - keywords)}
    return order[: len(before)] == before and keywords <= others and all("=" in new or "**" in new for new in more)


def test_the_page_and_this_file_promise_the_same_names():
    assert [f"{module}.{name}" for module, names in TABLE.items() for name in names] == list(PROMISED)


@pytest.mark.parametrize("path", PROMISED)
def test_a_promised_name_keeps_its_signature(path):
    module, _, name = path.rpartition(".")
    promised, now = PROMISED[path], shape(getattr(import_module(module), name))
    if isinstance(promised, str):
        assert promised == now == "value" or kept(promised, now), now
        return
    assert all(kept(promised[member], now[member]) for member in promised), now
    assert name not in IMPLEMENTED or promised.keys() == now.keys()


@pytest.mark.parametrize(
    ("promised", "now", "stays"),
    [
        ("self, a, *, b=1", "self, a, c=2, *, d=3, b=1", True),
        ("self, a, *, b=1", "self, a, *, b=1, **more", True),
        ("self, a, *, b=1", "self, a, c, *, b=1", False),
        ("self, a, *, b=1", "self, a, *, b=1, c", False),
        ("self, a, *, b=1", "self, a, *, b=2", False),
        ("self, a, *, b=1", "self, a, b=1", False),
        ("self, a", "self, b", False),
        ("a, b=1", "b=1, a", False),
    ],
)
def test_what_keeps_a_promise_and_what_breaks_it(promised, now, stays):
    assert kept(promised, now) is stays
