"""Structured texts from files to figures: whole runs of a task with a schema, and files that are not of it."""

import csv
import json
import random

import pytest
import yaml

from common.errors import DataError, ProviderError
from common.structure import Structure
from server.prepare.compose import compose_settings, load
from simulations.run import simulate
from tests.support.lanes import slow_but
from tests.support.runs import lines, read, tiny

WORDS = {"a": "harbour lantern meadow copper violin", "b": "kettle forest gravel ribbon barrel"}
SETTINGS = (
    "{text_field: note, schema: {properties: {triage: {type: string, enum: [red, yellow, green]}, "
    "age: {type: integer, minimum: 0, maximum: 110}, ward: {type: string}, note: {type: string}}, required: [triage]}}"
)
STRUCTURE = Structure.of(yaml.safe_load(SETTINGS))


def document(draw, label):
    """A record: its label is to be had from the note alone, and it is never green."""
    note = " ".join(draw.choices(WORDS[label].split(), k=8)).capitalize() + "."
    return json.dumps({"triage": draw.choice(["red", "red", "yellow"]), "ward": "zqward", "note": note})


def structured_task(folder, ward="{} ward"):
    """Write the files of a task whose texts are JSON objects; return the overrides that name them.

    The name of each file's only ward has the file's name in it.
    """
    draw = random.Random(0)
    for name, count in (("train", 40), ("test", 30), ("public", 60)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            rows = [
                (document(draw, "ab"[i % 2]).replace("zqward", ward.format(name)), "ab"[i % 2]) for i in range(count)
            ]
            csv.writer(file).writerows([("text", "label"), *rows])
    return of_files(folder)


def of_files(folder):
    return [
        "task=csv",
        "task.labels={a: harbour and lantern, b: kettle and forest}",
        f"task.structure={SETTINGS}",
        f"task.train={folder}/train.csv",
        f"task.test={folder}/test.csv",
        f"task.public_text={folder}/public.csv",
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    structured_task(folder)
    return folder


def task(folder, *more):
    of_run = ("method.samples=40", "method.rounds=2", "federation.parties=2", "federation.partition=iid")
    return [*of_files(folder), *of_run, *more]


@pytest.fixture(scope="module")
def run(files, tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("run"), *task(files), "evaluation.metrics=[utility,fidelity]")


def test_each_released_text_is_an_object_of_the_schema_in_one_line(run):
    released = [line["text"] for line in lines(run, "synthetic.jsonl")]
    assert len(released) > 20
    for text in released:
        fields = STRUCTURE.fields(text)
        assert fields
        assert text == STRUCTURE.canonical(fields)
        assert "{" not in fields["note"]


def test_the_classifier_reads_the_text_field(run):
    """The label is in no other field, and texts of the field alone are learnt from."""
    metrics = read(run, "metrics.json")
    released = lines(run, "synthetic.jsonl")
    notes = [STRUCTURE.reading(line["text"]) for line in released]
    assert metrics["synthetic"]["records"] == len(notes)
    assert metrics["synthetic"]["accuracy"] > 0.9
    assert metrics["real_private"]["accuracy"] > 0.9
    assert metrics["fidelity"]["length_distance"]["value"] < 12  # words; whole objects have six words more


def test_fields_are_in_the_figures_and_in_the_report_and_the_records_own_are_marked(run):
    metrics, report = read(run, "metrics.json"), read(run, "report.json")
    released = [json.loads(line["text"]) for line in lines(run, "synthetic.jsonl")]
    ours, theirs = metrics["fields"], metrics["fields_records"]
    assert ours["triage = red"]["value"] == sum(fields_of_text["triage"] == "red" for fields_of_text in released) / len(
        released
    )
    assert ours["with age"]["value"] == 1
    assert ours["with ward"]["value"] == 0
    assert "simulation_only" not in ours
    assert (theirs["with ward"]["value"], theirs["with age"]["value"], theirs["triage = green"]["value"]) == (1, 0, 0)
    assert theirs["simulation_only"] is True
    groups = {group["title"]: group for group in report["metrics"]}
    assert groups["fields"]["simulation_only"] is False
    assert groups["fields records"]["simulation_only"] is True
    page = (run / "report.html").read_text("utf-8")
    assert "triage = yellow" in page


def test_nothing_of_the_structure_reaches_a_party_and_nothing_of_a_field_leaves_one(run):
    """The plan is that of a task without structure: no query, no field."""
    privacy = read(run, "privacy.json")
    assert [query["kind"] for query in privacy["queries"]] == ["votes"]
    for file in ("synthetic.jsonl", "rounds.jsonl", "privacy.json", "run.json"):
        assert "train ward" not in (run / file).read_text("utf-8")


@pytest.mark.parametrize("method", slow_but({"fusegen"}, ["aug_pe", "fusegen", "dpga"]))
def test_other_methods_write_objects_too(files, tmp_path, method):
    folder = tiny(tmp_path / "run", *task(files), f"method={method}", "method.samples=30", "method.rounds=2")
    released = [line["text"] for line in lines(folder, "synthetic.jsonl")]
    assert released
    assert all(STRUCTURE.fields(text) for text in released)


def test_a_classifier_of_the_records_themselves_reads_their_text_field(files, tmp_path):
    overrides = [setting for setting in task(files) if not setting.startswith("method.")]
    simulate(compose_settings([*overrides, "method=only_private", "evaluation.metrics=[]"]), tmp_path)
    assert read(tmp_path, "metrics.json")["real_private"]["accuracy"] > 0.9


@pytest.mark.parametrize("name", ["train", "test"])
def test_real_texts_that_are_not_of_the_schema_are_named_by_number_alone(files, tmp_path, name):
    rows = (files / f"{name}.csv").read_text().splitlines()
    rows[3] = '"a secret, in words",a'
    (tmp_path / "bad.csv").write_text("\n".join(rows))
    with pytest.raises(DataError) as refused:
        tiny(tmp_path / "run", *task(files), f"task.{name}={tmp_path}/bad.csv")
    assert str(refused.value).startswith(f"task.{name}: texts that are not")
    assert "bad.csv, records 3" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_required_field_that_the_built_in_models_cannot_write_is_refused(files, tmp_path):
    needed = SETTINGS.replace("required: [triage]", "required: [ward]")
    with pytest.raises(ProviderError, match=r"got ward; at task.structure.schema\. Make them optional"):
        tiny(tmp_path / "run", *task(files, f"task.structure={needed}"))


def test_a_run_keeps_its_schema_for_a_resumption(run):
    assert Structure.of(load(run).task.structure) == STRUCTURE
