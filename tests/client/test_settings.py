"""`client.yaml`: what it may say, what comes of it, and what is refused with the key, the known ones and the file."""

from dataclasses import fields
from types import NoneType
from typing import get_args

import pytest
import yaml

from client.deploy.settings import HospitalSettings
from client.guard import Limits
from client.settings import PartySettings
from client.writers.abstracted_seeds import Seeds
from client.writers.abstractors import Extracts, Summariser
from client.writers.fine_tuning import FineTuning
from client.writers.instructed import ABSTRACT, REWRITE, Instructed
from client.writers.rewriting import Rewriting
from client.writers.sentiment import Classifier, Vader
from common.errors import ConfigError
from simulations.federation.parties import party_settings
from tests.support.tiny_models import tiny_llama, tiny_summariser

EXTRACTS = {"kind": "extracts", "longest": 7}
SECTIONS = {
    "limits": {"max_epsilon": 3, "queries": ["votes", "abstracted seeds"], "unsafe_unproven": True, "max_top": 5},
    "seeds": {"abstraction": EXTRACTS, "sentiment": {"kind": "vader"}, "oversampled": 4, "most": 9},
    "fine_tuning": {"max_steps": 5},
    "rewriting": {"rewriter": EXTRACTS, "candidates": 2, "nearest": 0},
}
DEPLOYMENT = {
    "name": "St. Mary",
    "records": "notes.csv",
    "encoder": "hashed_ngrams",
    "coordinator": "localhost:1",
    "bundle": "ab" * 32,
}


def read(**sections):
    return PartySettings.read(sections, "FILE:{}".format)


def contents(value):
    """A writer as plain values, its parts too."""
    if isinstance(value, (Seeds, Rewriting, Extracts, Vader)):
        return type(value), {name: contents(part) for name, part in vars(value).items()}
    return value


def test_the_same_sections_are_the_same_limits_and_writers_in_a_simulation_and_in_a_deployment(tmp_path):
    (tmp_path / "client.yaml").write_text(yaml.safe_dump(DEPLOYMENT | SECTIONS))
    (tmp_path / "client.yaml").chmod(0o600)
    deployed = HospitalSettings.load(tmp_path).party
    simulated = party_settings(SECTIONS)
    assert deployed.limits == simulated.limits
    assert deployed.limits == Limits(
        max_epsilon=3, queries=("votes", "abstracted seeds"), unsafe_unproven=True, max_top=5
    )
    writers, others = deployed.writers(), simulated.writers()
    assert set(writers) == set(others) == {"abstracted seeds", "fine-tuned samples", "rewritten records"}
    assert {kind: contents(writer) for kind, writer in writers.items()} == {
        kind: contents(writer) for kind, writer in others.items()
    }
    assert writers["fine-tuned samples"] == FineTuning(max_steps=5)
    assert writers["abstracted seeds"]._abstraction._longest == 7


def test_a_section_that_is_absent_or_null_writes_nothing_and_an_empty_one_takes_its_defaults():
    assert read().writers() == read(seeds=None, fine_tuning=None, rewriting=None).writers() == {}
    assert read().limits == read(limits=None).limits == read(limits={}).limits == Limits()
    assert read(fine_tuning={}).writers() == {"fine-tuned samples": FineTuning()}


def test_each_kind_of_part_has_a_short_name(tmp_path, monkeypatch):
    from client import settings

    made = {
        name: getattr(kind, "func", kind)
        for kinds in (settings.SENTIMENTS, settings.REWRITERS)
        for name, kind in kinds.items()
    }
    assert made == {
        "extracts": Extracts,
        "summariser": Summariser,
        "instructed": Instructed,
        "vader": Vader,
        "classifier": Classifier,
    }
    chosen = {"kind": "summariser", "name_or_path": str(tiny_summariser(tmp_path)), "longest": 9, "shortest": 1}
    (writer,) = read(rewriting={"rewriter": chosen}).writers().values()
    assert isinstance(writer._rewriter, Summariser)


def test_an_instructed_model_abstracts_and_rewrites_by_instructions_of_its_own(tmp_path):
    chosen = {"kind": "instructed", "name_or_path": str(tiny_llama(tmp_path / "model", chat=True)), "top_p": 0.9}
    seeds = {"abstraction": chosen, "sentiment": {"kind": "vader"}}
    abstracting, rewriting = read(seeds=seeds, rewriting={"rewriter": chosen}).writers().values()
    assert abstracting._abstraction._instruction == ABSTRACT
    assert rewriting._rewriter._instruction == REWRITE
    (other,) = read(rewriting={"rewriter": chosen | {"instruction": "Shorten."}}).writers().values()
    assert other._rewriter._instruction == "Shorten."


def test_a_model_of_the_catalogue_that_was_not_fetched_is_named_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("CAUCUS_MODELS", str(tmp_path))
    chosen = {"kind": "instructed", "name_or_path": "smollm2"}
    seeds = {"abstraction": chosen, "sentiment": {"kind": "vader"}}
    for sections in ({"seeds": seeds}, {"rewriting": {"rewriter": chosen}}):
        with pytest.raises(ConfigError, match=r"model smollm2.* at a hospital caucus-party models smollm2"):
            read(**sections).writers()


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"seed": {}},
            "seed; expected one of fine_tuning, limits, rewriting, seeds; got an unknown key; at FILE:seed",
        ),
        ({"seed": {}}, "at FILE:seed. Did you mean seeds?"),
        ({1: {}}, "1; expected one of fine_tuning, limits, rewriting, seeds; got an unknown key"),
        ({"limits": {"max_epsilom": 1}}, "limits.max_epsilom; expected one of "),
        ({"limits": {"max_epsilom": 1}}, "max_top, min_survivors, min_unit_records, queries, "),
        (
            {"limits": {"max_epsilom": 1}},
            "got an unknown key; at FILE:limits.max_epsilom. Did you mean max_epsilon?",
        ),
        (
            {"limits": {"max_epsilon": "many"}},
            "limits.max_epsilon; expected a number; got 'many'; at FILE:limits.max_ep",
        ),
        ({"limits": {"max_epsilon": True}}, "limits.max_epsilon; expected a number; got True"),
        ({"limits": {"max_top": 2.0}}, "limits.max_top; expected an integer; got 2.0; at FILE:limits.max_top"),
        ({"limits": {"max_top": None}}, "limits.max_top; expected an integer; got null; at FILE:limits.max_top"),
        ({"limits": {"lifetime_epsilon": "none"}}, "limits.lifetime_epsilon; expected a number or null; got 'none'"),
        ({"limits": {"queries": "votes"}}, "limits.queries; expected a list, each item text; got 'votes'"),
        ({"limits": {"queries": ["vote"]}}, "limits.queries; expected one of "),
        ({"limits": {"unsafe_no_noise": "yes"}}, "limits.unsafe_no_noise; expected true or false; got 'yes'"),
        ({"limits": [1]}, "limits; expected keys corrupt, "),
        (
            {"limits": {"max_epsilon": -1}},
            "limits.max_epsilon; expected a number > 0; got -1; at FILE:limits.max_epsilon",
        ),
        ({"fine_tuning": {"model": "x"}}, "fine_tuning.model; expected one of device, max_steps, micro_batch, "),
        (
            {"fine_tuning": True},
            "fine_tuning; expected keys device, max_steps, micro_batch, name_or_path; got true or false",
        ),
        ({"fine_tuning": {"max_steps": 0}}, "fine_tuning.max_steps; expected an integer >= 1; got 0; at FILE:fine_tun"),
        ({"fine_tuning": {"name_or_path": 3}}, "fine_tuning.name_or_path; expected text or null; got 3; at FILE:fine_"),
        (
            {"seeds": {}},
            "seeds.abstraction.kind; expected one of extracts, summariser, instructed; got none; at FILE:",
        ),
        ({"rewriting": {}}, "rewriting.rewriter.kind; expected one of extracts, summariser, instructed"),
        ({"seeds": {"abstraction": {"kind": "retold"}}}, "one of extracts, summariser, instructed; got retold"),
        (
            {"seeds": {"abstraction": {"kind": ["extracts"]}}},
            "one of extracts, summariser, instructed; got ['extracts']",
        ),
        ({"seeds": {"abstraction": "extracts"}}, "seeds.abstraction; expected keys control, "),
        (
            {"seeds": {"abstraction": EXTRACTS, "sentiment": {"kind": "lexicon"}}},
            "seeds.sentiment.kind; expected one",
        ),
        (
            {"seeds": {"abstraction": EXTRACTS, "sentiment": {"kind": "vader"}, "similarity": 2}},
            "seeds.similarity; expected a number in [0, 1]; got 2; at FILE:seeds.similarity",
        ),
        (
            {"rewriting": {"rewriter": EXTRACTS | {"longest": 0}}},
            "rewriting.rewriter.longest; expected an integer >= 1; got 0; at FILE:rewriting.rewriter.longest",
        ),
        ({"rewriting": {"rewriter": EXTRACTS | {"far": 1}}}, "rewriting.rewriter.far; expected one of control, device"),
        (
            {"rewriting": {"rewriter": EXTRACTS | {"name_or_path": "x"}}},
            "name_or_path; expected one of least, longest,",
        ),
        (
            {"rewriting": {"rewriter": {"kind": "instructed"}}},
            "rewriting.rewriter.name_or_path; expected a value; got no",
        ),
        (
            {"rewriting": {"rewriter": {"kind": "instructed", "name_or_path": "/nowhere"}}},
            "at FILE:rewriting.rewriter",
        ),
        ({"rewriting": {"rewriter": EXTRACTS, "oversampled": 3}}, "rewriting.oversampled; expected one of candidates"),
        (
            {"rewriting": {"rewriter": {"_target_": "client.writers.abstractors.Extracts"}}},
            "rewriting.rewriter._target_",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_key_and_where_it_stands(sections, message):
    with pytest.raises(ConfigError) as caught:
        PartySettings.read(sections, "FILE:{}".format).writers()
    assert message in str(caught.value)
    assert str(caught.value).count("FILE:") == 1


def test_a_simulations_error_names_the_setting():
    with pytest.raises(ConfigError, match=r"got 0; at client.limits.max_top \(configs/client.yaml\)"):
        party_settings({"limits": {"max_top": 0}})


@pytest.mark.parametrize("content", [[], None, "limits", 3])
def test_a_file_that_is_no_mapping_is_refused(content):
    with pytest.raises(ConfigError, match=r"the file; expected keys .*; at FILE"):
        PartySettings.read(content, "FILE:{}".format)


def write(folder, text):
    (folder / "client.yaml").write_text(text)
    (folder / "client.yaml").chmod(0o600)
    return folder


GOOD = yaml.safe_dump(DEPLOYMENT, sort_keys=False)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("limits:\n  max_top: 4\n  max_epsilon: -1\n", "limits.max_epsilon; expected a number > 0; got -1; at FILE:8"),
        ("limits: {max_epsilom: 1}\n", "got an unknown key; at FILE:6. Did you mean max_epsilon?"),
        ("limits:\n  max_top: 4\nlimits: {}\n", "limits; expected one entry; got another in line 6; at FILE:8"),
        (
            "limits:\n  max_top: 4\n  max_top: 9\n",
            "limits.max_top; expected one entry; got another in line 7; at FILE:8",
        ),
        ("seeds:\n  sentiment: {kind: vader}\n", "seeds.abstraction.kind; expected one of"),
        ("seeds:\n  sentiment: {kind: vader}\n", "got none; at FILE:6"),
        ("aproval: auto\n", "aproval; expected one of approval, "),
        ("aproval: auto\n", "at FILE:6. Did you mean approval?"),
        ("approval: perhaps\n", "approval; expected one of manual, auto; got 'perhaps'; at FILE:6"),
        ("approval: yes\n", "approval; expected text; got True; at FILE:6"),
        ("relay_user: 7\n", "relay_user; expected text or null; got 7; at FILE:6"),
        ("limits: [\n", "client.yaml; expected YAML; got "),
        ("limits:\n  max_top: 4\n max_epsilon: 3\n", "at FILE:8"),
        ("limits: {max_top: !python 4}\n", "at FILE:6"),
    ],
)
def test_a_hospitals_file_names_the_key_and_the_line(more, message, tmp_path):
    folder = write(tmp_path, GOOD + more)
    with pytest.raises(ConfigError) as caught:
        HospitalSettings.load(folder)
    assert message.replace("FILE", str(folder / "client.yaml")) in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("name: St. Mary", "name: [St. Mary]", "name; expected text; got ['St. Mary']; at FILE:1"),
        ("records: notes.csv", "records: null", "records; expected text; got null; at FILE:2"),
        ("encoder: hashed_ngrams\n", "", "encoder; expected a value; got none; at FILE"),
        ("localhost:1", "nowhere", "; got 'nowhere'; at FILE:4"),
        ("localhost:1", "localhost:70000", "; got 'localhost:70000'; at FILE:4"),
        ("ab" * 32, "short", "bundle; expected 64 hexadecimal digits; got short; at FILE:5"),
    ],
)
def test_a_deployments_own_keys_are_checked_too(before, after, message, tmp_path):
    assert before in GOOD
    folder = write(tmp_path, GOOD.replace(before, after))
    with pytest.raises(ConfigError) as caught:
        HospitalSettings.load(folder)
    assert message.replace("FILE", str(folder / "client.yaml")) in str(caught.value)


def test_numbers_are_read_as_hydra_reads_them(tmp_path):
    folder = write(tmp_path, GOOD + "limits: {max_delta: 1e-5, max_epsilon: 2}\n")
    limits = HospitalSettings.load(folder).party.limits
    assert limits == party_settings({"limits": {"max_delta": 1e-5, "max_epsilon": 2}}).limits
    assert limits.max_delta == 1e-5


def test_a_limit_without_a_value_is_refused_and_the_word_null_is_a_value(tmp_path):
    for limit in fields(Limits):
        with pytest.raises(ConfigError, match=rf"limits.{limit.name}; expected a value; null for none; got nothing"):
            HospitalSettings.load(write(tmp_path, GOOD + f"limits:\n  {limit.name}:\n"))
        if NoneType in get_args(limit.type):
            settings = HospitalSettings.load(write(tmp_path, GOOD + f"limits: {{{limit.name}: null}}\n"))
            assert getattr(settings.party.limits, limit.name) is None
    with pytest.raises(ConfigError, match="limits; expected a value"):
        HospitalSettings.load(write(tmp_path, GOOD + "limits:\n"))


def test_settings_that_say_the_same_are_equal(tmp_path):
    folder = write(tmp_path, GOOD)
    assert HospitalSettings.load(folder) == HospitalSettings.load(folder)
