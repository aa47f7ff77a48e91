"""Every document comes back as it was written, what is wrong is named, and no field is a key anywhere else."""

import ast
import inspect
import json
import math
import pkgutil
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import server.documents
from server.documents import codec
from server.documents.codec import FieldError
from server.documents.files import FORMAT, Document, read_lines
from server.documents.maps import PrivateMap, TextMap
from server.documents.metrics import Figure, Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import RunSummary, WeaknessCode
from tests.support.documents import privacy_json, report_of, round_json, summary_json

ROOT = Path(server.documents.__file__).parents[2]
MODULES = [
    import_module(f"server.documents.{module.name}") for module in pkgutil.iter_modules(server.documents.__path__)
]
DOCUMENTS = [
    kind
    for module in MODULES
    for _, kind in inspect.getmembers(module, inspect.isclass)
    if is_dataclass(kind) and issubclass(kind, Document) and kind.__module__ == module.__name__
]
SPECIAL = {
    Metrics: {"utility": {"accuracy": {"value": 0.5}}, "note": "a text"},
    TextMap: {"explained": [0.5, 0.25], "mean": [0.0], "axes": [[1.0], [0.5]], "points": [[1.5, 2]]},
    WeaknessCode: WeaknessCode.LARGE_DELTA.value,
    PrivateMap: {"simulation_only": True, "points": {"flu": [[1.5, 2]]}},
}


def example(hint, *, full):
    """JSON of this type; not `full`: with nothing where nothing may stand."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in SPECIAL:
        return SPECIAL[hint]
    if is_dataclass(hint):
        return document(hint, full=full)
    if origin in {typing.Union, types.UnionType}:
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        return example(inner, full=full) if full else None
    if origin is tuple:
        return [example(arguments[0], full=full)] * 2 if full else []
    if origin is Mapping:
        return {"a": example(arguments[1], full=full)} if full else {}
    return {float: "inf" if full else 0.25, int: 3, str: "text", bool: full, typing.Any: [1, {"b": None}]}[hint]


def document(kind, *, full):
    hints, made = typing.get_type_hints(kind), {}
    for declared in fields(kind):
        value = example(hints[declared.name], full=full)
        if "others" in declared.metadata:
            made |= {"another": 1.5} if full else {}
        elif full or "absent" not in declared.metadata:
            made[declared.name] = value
    return made


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("kind", DOCUMENTS, ids=lambda kind: kind.__name__)
def test_document_from_json_and_back_is_the_same(kind, full):
    if kind is RoundReport and not full:
        made = round_json(1, epsilon=None)  # measurements are absent together, below
        del made["epsilon"]
        made |= {"losses": {}, "cleaned": {}, "fid_error": None, "paid": {}, "tokens": made["tokens"] | {"cached": 0}}
    else:
        made = example(kind, full=full)
    parsed = kind.from_json(json.loads(json.dumps(made)))
    assert parsed.to_json() == made
    assert json.dumps(parsed.to_json(), allow_nan=False) == json.dumps(parsed.from_json(parsed.to_json()).to_json())


PLAN_LINES = {"cost", "epsilon", "input_tokens", "models", "name", "noise", "output_tokens", "queries"}
PLAN_LINES |= {"texts", "times"}

KEYS_OF_OTHERS = {
    "server/deploy/enrolment.py": {"status"},  # Flower's nodes
    "server/deploy/plan_command.py": {"texts"},  # the forecast
    "server/deploy/plan_lines.py": PLAN_LINES,  # the forecast, and a plan that was solved for
    "server/deploy/run_state.py": {"status"},  # Flower's runs
    "server/domain.py": {"labels"},  # a text with several
    "server/page/app.py": {"name"},  # the form of a page
    "server/page/drafts.py": {"name"},  # defaults, and fields of the form
    "server/flower/front_door.py": {"method"},  # a request
    "server/llm/reasoning.py": {"value"},  # a part of a message's content
    "server/llm/requests.py": {"texts"},  # what every request may have
    "server/llm/serve/app.py": {"content", "name"},  # a message of a chat, and a part of an address
    "server/llm/spending.py": {"cost"},  # the account of payments
    "server/method.py": {"candidates", "round"},  # state.json
    "server/run_folder.py": {"seconds"},  # state.json
    "server/prepare/calls.py": {"calls", "cost", "input_tokens", "models", "output_tokens"},  # the forecast
    "server/settings/reading.py": {"method", "name", "run"},  # settings
    "server/settings/sections.py": {"name"},  # a setting
    "server/tasks/demo_letters.py": {"reason"},  # words of the letters
    "server/tasks/grammar.py": {"task"},  # words of a corpus
    "server/report/weaknesses.py": {"weaknesses"},  # report.json
    "server/tasks/span_files.py": {"spans"},  # a row of a file
    "simulations/laboratory/audit/replay.py": {"index"},  # a message
    "simulations/laboratory/benchmarks/__main__.py": {"name", "value"},  # recorded ratios
    "simulations/laboratory/nodes/deployment.py": {"parties"},  # what the coordinator's status says
    "simulations/laboratory/results/claims.py": {"method", "rows"},  # a claim in YAML
    "simulations/laboratory/results/execution.py": {"fid", "figures"},  # columns of a run
    "simulations/sweeps/combinations.py": {"task"},  # overrides in Hydra's file
    "simulations/sweeps/experiments.py": {"rows"},  # an experiment in YAML
    "simulations/sweeps/table.py": {  # columns of the data frame
        "epsilon",
        "fid",
        "figures",
        "method",
        "parties",
        "seconds",
        "title",
        "tokens",
    },
}
"""By file, the keys of mappings that are no documents but share a field's name."""


def keys(file):
    """All constant texts by which anything is looked up in a file."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield node.slice.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            (first, *_), method = node.args, node.func.attr
            if method in {"get", "pop", "setdefault"} and isinstance(first, ast.Constant):
                yield first.value


def test_no_field_of_a_document_is_a_key_outside_the_room():
    names = {declared.name for kind in DOCUMENTS for declared in fields(kind)}
    files = [
        file
        for room in ("server", "simulations")
        for file in (ROOT / room).rglob("*.py")
        if (ROOT / "server" / "documents") not in file.parents
    ]
    used = {file.relative_to(ROOT).as_posix(): names & set(keys(file)) for file in files}
    assert {file: shared for file, shared in used.items() if shared} == KEYS_OF_OTHERS


@pytest.mark.parametrize(
    ("change", "field", "expected"),
    [
        ({"epsilon": "much"}, "epsilon", "a number"),
        ({"simulation": 1}, "simulation", "true or false"),
        ({"spent": {"epsilon": 1.0}}, "spent.queries_asked", "an entry"),
        ({"queries": [{"scale": None}]}, "queries.scale", "a number"),
        ({"adjacency": 3}, "adjacency", "an object"),
        ({"unproven": "seeds"}, "unproven", "a list"),
        ({"parties": True}, "parties", "a whole number"),
        ({"mechanism": 3}, "mechanism", "text"),
    ],
)
def test_field_that_is_missing_or_of_another_type_is_named(change, field, expected):
    with pytest.raises(FieldError) as refused:
        Privacy.from_json(privacy_json(**change))
    assert (refused.value.field, refused.value.expected) == (field, expected)
    assert refused.value.missing == (expected == "an entry")


@pytest.mark.parametrize("number", [None, FORMAT, FORMAT + 1])
def test_file_states_the_version_of_its_form_and_a_later_one_is_refused(tmp_path, number):
    RunSummary.from_json(summary_json()).save(tmp_path)
    file, problems = tmp_path / RunSummary.FILE, []
    content = json.loads(file.read_text("utf-8"))
    assert content.pop("format") == FORMAT
    file.write_text(json.dumps(content | ({} if number is None else {"format": number})))
    summary = RunSummary.read(tmp_path, problems)
    if number == FORMAT + 1:
        assert (summary, len(problems)) == (None, 1)
    else:
        assert (summary, problems) == (RunSummary.from_json(summary_json()), [])


def test_infinities_are_texts_what_is_no_number_is_nothing_and_arrays_are_base64():
    array = np.array([[1.5, -2.0], [0.1, 3e38]], dtype=np.float32)
    assert np.array_equal(codec.unpack_floats(codec.pack_floats(array), 2), array)
    assert codec.strict({1: [-math.inf, (2.0, math.nan)]}) == {"1": ["-inf", [2.0, None]]}
    assert codec.with_infinities({"a": ["inf", {"b": "-inf"}, "in"]}) == {"a": [math.inf, {"b": -math.inf}, "in"]}
    assert Privacy.from_json(privacy_json(epsilon="inf")).epsilon == math.inf


def test_file_of_an_earlier_version_is_read():
    assert RunSummary.from_json(summary_json(warnings=["few records"])).warnings == {"few records": "few records"}
    early = Privacy.from_json(privacy_json())
    assert (early.max_attempts, early.unproven, early.earlier, early.statement) == (1, (), None, "")


def test_round_has_its_measurements_together_and_the_methods_figures_beside():
    line = round_json(1, weights={"m": 1.0})
    report = RoundReport.from_json(line)
    assert report.figures == {"weights": {"m": 1.0}}
    assert (report.for_readers().round, report.for_readers().to_json()["weights"]) == (2, {"m": 1.0})
    del line["seconds"]
    assert not {"fid", "paid", "seconds", "epsilon"} & set(RoundReport.from_json(line).to_json())


@pytest.mark.parametrize("figures", [{"shares": 3}, {"shares": {"a": "much"}}, {"metadata": [1]}, {}])
def test_shares_that_are_none_are_left_out(figures):
    assert report_of(1, **figures).label_shares == {}


def test_figures_are_read_by_their_names_whatever_form_they_have():
    content = {
        "utility": {
            "accuracy": {"value": 0.5, "interval": [0.25, "inf"], "rows": 8},
            "note": "n",
            "inner": {"f1": 0.5},
        },
        "records": {"value": None, "reason": "none"},
        "written": Figure(value=1.0, noise=2.0),
        "count": 3,
        "broken": {"value": math.nan},
    }
    metrics = Metrics(content)
    assert metrics.figure("utility", "accuracy") == Figure(
        name="accuracy", value=0.5, interval=(0.25, math.inf), rows=8
    )
    assert metrics.figure("utility", "inner", "f1").value == 0.5
    assert metrics.figure("records").reason == "none"
    assert metrics.figure("written").noise == 2.0
    assert metrics.figure("broken") == metrics.figure("none", "at all") == metrics.figure("utility") == Figure()
    assert (metrics.count("count"), metrics.count("utility", "note")) == (3, None)
    assert (metrics.text("utility", "note"), metrics.text("count")) == ("n", None)
    assert metrics.group("count") == metrics.group("utility", "note") == {}
    assert Metrics.from_json(json.loads(json.dumps(codec.strict(metrics)))).named.keys() == metrics.named.keys()


def test_lines_that_cannot_be_read_are_counted_and_the_others_read(tmp_path):
    (tmp_path / "rounds.jsonl").write_text(json.dumps(round_json(1, notes=["a\u2028b"]), ensure_ascii=False) + "\n{\n")
    problems = []
    assert len(read_lines(tmp_path / "rounds.jsonl", RoundReport.from_json, problems)) == 1
    assert problems == ["rounds.jsonl: 1 of 2 lines cannot be read, the first is line 2"]
