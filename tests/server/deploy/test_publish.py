"""`caucus-coordinator publish`: what it writes is read by two libraries, and holds nothing but what its card takes."""

import json
import shutil
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from itertools import count

import pytest
import yaml

from common.plan.facts import MALICIOUS
from server.command import main
from server.documents.files import split
from server.documents.privacy import Privacy
from server.documents.run import TRANSFER, ZERO_SHOT, RunSummary
from tests.support.documents import privacy_json, summary_json
from tests.support.documents import write_run as write
from tests.support.offline import refuse_network
from tests.support.runs import lines, read, tiny

LICENCES = ("--license", "cc-by-4.0", "--public-license", "cc0-1.0")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = ("method=class_sums", "method.samples=60", "method.rounds=2", "task.spans=true")
    run = tiny(tmp_path_factory.mktemp("publish") / "run", *settings)
    assert main(["publish", str(run), *LICENCES, "--language", "en", "--repository", "ward/notes"]) == 0
    return run


@pytest.fixture
def offline(monkeypatch):
    refuse_network(monkeypatch, AssertionError("a library went to the network"))


def published_rows(run, name):
    """The rows of a run's file, as they are published."""
    labels = list(read(run, RunSummary.FILE)["labels"])
    rows = lines(run, name)
    return [row | {"probabilities": [row["probabilities"].get(label, 0.0) for label in labels]} for row in rows]


PARTS = {"synthetic": "synthetic.jsonl", "transfer": TRANSFER}


@pytest.mark.parametrize("part", PARTS)
def test_datasets_loads_each_part_of_the_folder(run, part, tmp_path, offline):
    import datasets

    wanted = published_rows(run, PARTS[part])
    name = {} if part == "synthetic" else {"name": part}  # the first is the default
    loaded = datasets.load_dataset(str(run / "dataset"), **name, split="train", cache_dir=str(tmp_path))
    assert loaded.to_list() == wanted
    same = datasets.load_dataset(
        "json", data_files=str(run / "dataset" / part / "train.jsonl"), cache_dir=str(tmp_path)
    )
    assert same["train"].to_list() == wanted


@pytest.mark.parametrize("part", PARTS)
def test_croissant_is_valid_and_its_reader_reads_the_texts(run, part, offline, caplog):
    import mlcroissant

    described = mlcroissant.Dataset(run / "dataset" / "croissant.json")
    assert described.metadata.issues.errors == set()
    wanted = published_rows(run, PARTS[part])
    assert [plain(row) for row in described.records(part)] == wanted


def plain(value):
    """What Croissant's reader has read: texts, lists, and the last parts of names."""
    match value:
        case bytes():
            return value.decode()
        case dict():
            return {name.rpartition("/")[2]: plain(inner) for name, inner in value.items()}
        case str() | int() | float():
            return value
    return [plain(inner) for inner in value]


def test_spans_are_described_where_there_are_any(run):
    card = (run / "dataset" / "README.md").read_text("utf-8")
    assert f"- `treatment`: {read(run, RunSummary.FILE)['spans']['treatment']}\n" in card
    assert yaml.safe_load(card.split("---\n")[1])["task_categories"] == ["text-classification", "token-classification"]
    (_, protocol) = read(run / "dataset", "croissant.json")["rai:dataAnnotationProtocol"]
    assert "`start`" in protocol
    assert any(row["spans"] for row in lines(run / "dataset" / "synthetic", "train.jsonl"))
    assert not any("spans" in row for row in lines(run / "dataset" / "transfer", "train.jsonl"))


def test_it_states_the_guarantee_and_who_attests_it(run):
    stated = read(run / "dataset", "croissant.json")
    numbers = {entry["name"]: entry["value"] for entry in stated["additionalProperty"]}
    attested = numbers.pop("attested")
    assert numbers == {
        "epsilon": 4.0,
        "delta": 1e-5,
        "unit": "sample",
        "records of one unit at most": 1,
        "adjacency": "add or remove one unit",
    }
    assert "simulation" in attested
    assert stated["license"] == ["cc-by-4.0", "cc0-1.0"]
    assert stated["url"].endswith("/ward/notes")
    card = (run / "dataset" / "README.md").read_text("utf-8")
    metadata = yaml.safe_load(card.split("---\n")[1])
    assert (metadata["license"], metadata["language"]) == (["cc-by-4.0", "cc0-1.0"], ["en"])
    assert metadata["tags"] == ["synthetic", "differential-privacy"]
    assert attested in card
    assert "**not synthetic**" in card


class Canaries:
    """A value for each field of a document that no other field has."""

    def __init__(self, numbers):
        self.shown = {}
        self._numbers = numbers

    def of(self, hint, place):
        """Return JSON of this type, and keep under `place` the texts by which its values are found."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        number = next(self._numbers)
        if is_dataclass(hint):
            return self.document(hint, place)
        if origin in {typing.Union, types.UnionType}:
            (hint,) = [argument for argument in arguments if argument is not type(None)]
            return self.of(hint, place)
        if origin is tuple:
            return [self.of(arguments[0], f"{place}[]")]
        if origin is Mapping:
            return {self.of(str, f"{place}{{}}"): self.of(arguments[1], f"{place}{{}}")}
        if hint is bool:
            return place.endswith(".summed")  # secure aggregation has the most to state
        value = {float: 70000.5 + number, int: 20000 + number}.get(hint, f"zq{number}zq")
        self.shown.setdefault(place, []).extend({str(value), f"{value:,}"} if hint in {int, float} else {value})
        return value

    def document(self, kind, place=""):
        hints = typing.get_type_hints(kind)
        return {
            declared.name: self.of(hints[declared.name], f"{place}.{declared.name}".lstrip("."))
            for declared in fields(kind)
            if "others" not in declared.metadata
        }

    def found(self, content):
        return {place for place, shown in self.shown.items() if any(canary in content for canary in shown)}


PUBLISHED = {
    RunSummary: {"encoder", "labels{}", "method", "models[]", "purpose", "spans{}", "started", "task"},
    Privacy: {
        "adjacency.max_records",
        "adjacency.relation",
        "adjacency.unit",
        "corrupt",
        "delta",
        "epsilon",
        "if_all_add_noise_epsilon",
        "mechanism",
        "not_covered[]",
        "parties",
        "plan_digest",
        "released_epsilon",
        "released_guesses.beliefs[].average",
        "released_guesses.beliefs[].highest",
        "released_guesses.beliefs[].one_in",
        "released_guesses.right",
        "released_guesses.worst",
    },
}
"""Document to the fields that everybody may read: a new field of a document is not published until it stands here."""
OTHER_FILES = ("metrics.json", "map.json", "map_private.json", "rounds.jsonl", "traffic.json", "census.json", "run.log")


def test_nothing_of_a_run_is_published_but_its_texts_and_what_the_card_takes(tmp_path):
    run, numbers = write(tmp_path / "run"), count(1)
    canaries = {kind: Canaries(numbers) for kind in PUBLISHED}
    made = {kind: canaries[kind].document(kind) for kind in PUBLISHED}
    made[RunSummary] |= {"status": "complete", "reason": None}
    made[Privacy] |= {"unproven": [], "aggregation": MALICIOUS}
    for kind, document in made.items():
        (run / kind.FILE).write_text(json.dumps(document))
    for name in (*OTHER_FILES, ZERO_SHOT, "config.yaml", "report.json", "release.md"):
        (run / name).write_text(f"another file: {name}")
    assert main(["publish", str(run), str(tmp_path / "out"), "--license", "cc0-1.0"]) == 0
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == ["README.md", "croissant.json", "train.jsonl", "train.parquet"]
    content = "".join(path.read_text("utf-8", errors="ignore") for path in files)
    assert {kind: canaries[kind].found(content) for kind in PUBLISHED} == PUBLISHED
    assert "another file" not in content
    assert str(tmp_path) not in content


def refused(capsys, *arguments):
    assert main(["publish", *map(str, arguments)]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ((), "--license;"),
        (("--license", "CC BY"), "got CC BY"),
        (("--license", "other"), "got other"),
        (("--license", "cc0-1.0"), "--public-license"),
        ((*LICENCES, "--language", "English"), "--language"),
        ((*LICENCES, "--repository", "notes; rm"), "OWNER/NAME"),
    ],
)
def test_what_only_a_person_knows_is_asked_for(options, named, run, tmp_path, capsys):
    assert named in refused(capsys, run, tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


def test_a_licence_may_be_an_address_and_the_public_texts_may_be_left_out(run, tmp_path, capsys):
    out, address = tmp_path / "out", ["--public-license", "https://a.example/open"]
    assert main(["publish", str(run), str(tmp_path / "two"), "--license", "cc0-1.0", *address]) == 0
    assert "license_link: https://a.example/open" in (tmp_path / "two" / "README.md").read_text("utf-8")
    capsys.readouterr()
    assert main(["publish", str(run), str(out), "--license", "https://a.example/terms", "--without-public-text"]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "croissant.json", "synthetic"]
    assert "license_link: https://a.example/terms" in (out / "README.md").read_text("utf-8")
    assert f"hf upload OWNER/NAME {out} " in capsys.readouterr().out
    assert str(out) in refused(capsys, run, out, *LICENCES)  # it is not empty


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("run.json", json.dumps(summary_json(status="partial")), "partial"),
        ("run.json", "{", "run.json"),
        ("error.txt", "the models are gone\n", "models are gone"),
        ("cancelled.txt", "", "cancelled"),
        ("privacy.json", None, "privacy.json"),
        ("synthetic.jsonl", "", "synthetic.jsonl"),
        (None, None, "run folder"),
    ],
)
def test_runs_that_have_not_ended_well_are_refused_with_the_reason(name, content, named, tmp_path, capsys):
    run = write(tmp_path / "run")
    if name is None:
        shutil.rmtree(run)
    elif content is None:
        (run / name).unlink()
    else:
        (run / name).write_text(content)
    assert named in refused(capsys, run, "--license", "cc0-1.0", "--without-guarantee")


@pytest.mark.parametrize("changes", [{"epsilon": "inf", "planned_epsilon": "inf"}, {"unproven": ["rewritten"]}])
def test_a_run_without_a_guarantee_is_published_only_if_that_is_said(changes, tmp_path, capsys):
    run, licence = write(tmp_path / "run", **changes), ("--license", "cc0-1.0", "--creator", "A ward")
    assert "--without-guarantee" in refused(capsys, run, *licence)
    assert main(["publish", str(run), *licence, "--without-guarantee"]) == 0
    stated = read(run / "dataset", "croissant.json")
    assert {"@type": "sc:PropertyValue", "name": "epsilon", "value": "infinite"} in stated["additionalProperty"]
    assert "private data" in stated["description"]
    assert stated["creator"]["name"] == "A ward"
    assert "differential-privacy" not in (run / "dataset" / "README.md").read_text("utf-8")


def test_a_run_that_asked_nobody_has_nothing_to_protect(tmp_path):
    run = write(tmp_path / "run")
    (run / "privacy.json").write_text(json.dumps(privacy_json(epsilon=0.0) | {"queries": []}))
    public = {"text": "x", "label": "flu", "model": "none", "round": 1, "probabilities": {"sepsis": 1.0}}
    (run / TRANSFER).write_text(json.dumps(public) + "\n")
    assert main(["publish", str(run), *LICENCES]) == 0
    assert "No hospital" in (run / "dataset" / "README.md").read_text("utf-8")
    files = [(run / "dataset" / part / "train.jsonl").read_text("utf-8") for part in PARTS]
    first = [json.loads(split(file)[0])["probabilities"] for file in files]  # one of the texts has U+2028
    assert first == [None, [0.0, 1.0]]
