"""`client.yaml`: what it may say, what comes of it, and what is refused with the key, the known ones and the file."""

import re
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
from client.writers.fine_tuning import FineTuningWriter
from client.writers.instructed import ABSTRACT, REWRITE, Instructed
from client.writers.rewriting import Rewriting
from client.writers.sentiment import Classifier, Vader
from common.errors import ConfigError
from simulations.federation.parties import party_settings
from tests.support.tiny_models import tiny_llama, tiny_summariser

EXTRACTS = {"kind": "extracts", "longest": 7}
SECTIONS = {
    "limits": {
        "max_epsilon": 3,
        "max_delta": 1e-5,
        "queries": ["votes", "abstracted seeds"],
        "unsafe_unproven": True,
        "max_top": 5,
    },
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


def write(folder, text):
    (folder / "client.yaml").write_text(text)
    (folder / "client.yaml").chmod(0o600)
    return folder


def contents(value):
    """A writer as plain values, its parts too."""
    if isinstance(value, (Seeds, Rewriting, Extracts, Vader)):
        return type(value), {name: contents(part) for name, part in vars(value).items()}
    return value


def test_the_same_sections_are_the_same_limits_and_writers_in_a_simulation_and_in_a_deployment(tmp_path):
    deployed = HospitalSettings.load(write(tmp_path, yaml.safe_dump(DEPLOYMENT | SECTIONS))).party
    simulated = party_settings(SECTIONS)
    assert HospitalSettings.load(tmp_path) == HospitalSettings.load(tmp_path)
    assert deployed.limits == simulated.limits
    assert deployed.limits == Limits(
        max_epsilon=3, max_delta=1e-5, queries=("votes", "abstracted seeds"), unsafe_unproven=True, max_top=5
    )
    writers, others = deployed.writers(), simulated.writers()
    assert set(writers) == set(others) == {"abstracted seeds", "fine-tuned samples", "rewritten records"}
    assert {kind: contents(writer) for kind, writer in writers.items()} == {
        kind: contents(writer) for kind, writer in others.items()
    }
    assert writers["fine-tuned samples"] == FineTuningWriter(max_steps=5)
    assert writers["abstracted seeds"]._abstraction._longest == 7


def test_a_section_that_is_absent_or_null_writes_nothing_and_an_empty_one_takes_its_defaults():
    assert read().writers() == read(seeds=None, fine_tuning=None, rewriting=None).writers() == {}
    assert read().limits == read(limits=None).limits == read(limits={}).limits == Limits()
    assert read(fine_tuning={}).writers() == {"fine-tuned samples": FineTuningWriter()}


def test_each_kind_of_part_has_a_short_name(tmp_path):
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
        with pytest.raises(ConfigError, match="caucus-party models smollm2"):
            read(**sections).writers()


@pytest.mark.parametrize(
    ("sections", "what"),
    [
        ({"seed": {}}, "seed"),
        ({1: {}}, "1"),
        ({"limits": {"max_epsilom": 1}}, "limits.max_epsilom"),
        ({"limits": {"max_epsilon": "many"}}, "limits.max_epsilon"),
        ({"limits": {"max_epsilon": True}}, "limits.max_epsilon"),
        ({"limits": {"max_epsilon": -1}}, "limits.max_epsilon"),
        ({"limits": {"max_top": 2.0}}, "limits.max_top"),
        ({"limits": {"max_top": None}}, "limits.max_top"),
        ({"limits": {"lifetime_epsilon": "none"}}, "limits.lifetime_epsilon"),
        ({"limits": {"queries": "votes"}}, "limits.queries"),
        ({"limits": {"queries": ["vote"]}}, "limits.queries"),
        ({"limits": {"unsafe_no_noise": "yes"}}, "limits.unsafe_no_noise"),
        ({"limits": [1]}, "limits"),
        ({"fine_tuning": {"model": "x"}}, "fine_tuning.model"),
        ({"fine_tuning": True}, "fine_tuning"),
        ({"fine_tuning": {"max_steps": 0}}, "fine_tuning.max_steps"),
        ({"fine_tuning": {"name_or_path": 3}}, "fine_tuning.name_or_path"),
        ({"seeds": {}}, "seeds.abstraction.kind"),
        ({"seeds": {"abstraction": {"kind": "retold"}}}, "seeds.abstraction.kind"),
        ({"seeds": {"abstraction": {"kind": ["extracts"]}}}, "seeds.abstraction.kind"),
        ({"seeds": {"abstraction": "extracts"}}, "seeds.abstraction"),
        ({"seeds": {"abstraction": EXTRACTS, "sentiment": {"kind": "lexicon"}}}, "seeds.sentiment.kind"),
        ({"seeds": {"abstraction": EXTRACTS, "sentiment": {"kind": "vader"}, "similarity": 2}}, "seeds.similarity"),
        ({"rewriting": {}}, "rewriting.rewriter.kind"),
        ({"rewriting": {"rewriter": EXTRACTS | {"longest": 0}}}, "rewriting.rewriter.longest"),
        ({"rewriting": {"rewriter": EXTRACTS | {"far": 1}}}, "rewriting.rewriter.far"),
        ({"rewriting": {"rewriter": EXTRACTS | {"name_or_path": "x"}}}, "rewriting.rewriter.name_or_path"),
        ({"rewriting": {"rewriter": {"kind": "instructed"}}}, "rewriting.rewriter.name_or_path"),
        ({"rewriting": {"rewriter": EXTRACTS, "oversampled": 3}}, "rewriting.oversampled"),
        ({"rewriting": {"rewriter": {"_target_": "client.writers.x"}}}, "rewriting.rewriter._target_"),
    ],
)
def test_what_is_wrong_is_named_with_its_key_and_where_it_stands(sections, what):
    with pytest.raises(ConfigError) as caught:
        PartySettings.read(sections, "FILE:{}".format).writers()
    assert caught.value.what == what
    assert str(caught.value).count("FILE:") == 1


@pytest.mark.parametrize(
    ("sections", "fact"),
    [
        ({"seed": {}}, "mean seeds?"),
        ({"limits": {"max_epsilom": 1}}, "mean max_epsilon?"),
        ({"rewriting": {"rewriter": {"kind": "instructed", "name_or_path": "/nowhere"}}}, "at FILE:rewriting.rewriter"),
    ],
)
def test_a_misspelt_key_names_the_nearest_and_a_writer_its_place(sections, fact):
    with pytest.raises(ConfigError, match=re.escape(fact)):
        PartySettings.read(sections, "FILE:{}".format).writers()


def test_a_simulations_error_names_the_setting():
    with pytest.raises(ConfigError, match=r"client.limits.max_top"):
        party_settings({"limits": {"max_top": 0}})


@pytest.mark.parametrize("content", [[], None, "limits", 3])
def test_a_file_that_is_no_mapping_is_refused(content):
    with pytest.raises(ConfigError, match=r"at FILE"):
        PartySettings.read(content, "FILE:{}".format)


GOOD = yaml.safe_dump(DEPLOYMENT, sort_keys=False)


@pytest.mark.parametrize(
    ("more", "what", "line"),
    [
        ("limits:\n  max_top: 4\n  max_epsilon: -1\n", "limits.max_epsilon", 8),
        ("limits: {max_epsilom: 1}\n", "limits.max_epsilom", 6),
        ("limits:\n  max_top: 4\nlimits: {}\n", "limits", 8),
        ("limits:\n  max_top: 4\n  max_top: 9\n", "limits.max_top", 8),
        ("seeds:\n  sentiment: {kind: vader}\n", "seeds.abstraction.kind", 6),
        ("aproval: auto\n", "aproval", 6),
        ("approval: perhaps\n", "approval", 6),
        ("approval: yes\n", "approval", 6),
        ("relay_user: 7\n", "relay_user", 6),
        ("limits: [\n", "client.yaml", 7),
        ("limits:\n  max_top: 4\n max_epsilon: 3\n", "client.yaml", 8),
        ("limits: {max_top: !python 4}\n", "client.yaml", 6),
    ],
)
def test_a_hospitals_file_names_the_key_and_the_line(more, what, line, tmp_path):
    folder = write(tmp_path, GOOD + more)
    with pytest.raises(ConfigError) as caught:
        HospitalSettings.load(folder)
    assert caught.value.what == what
    assert f"at {folder / 'client.yaml'}:{line}" in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "what", "place"),
    [
        ("name: St. Mary", "name: [St. Mary]", "name", ":1"),
        ("records: notes.csv", "records: null", "records", ":2"),
        ("encoder: hashed_ngrams\n", "", "encoder", ""),
        ("localhost:1", "nowhere", "coordinator", ":4"),
        ("localhost:1", "localhost:70000", "coordinator", ":4"),
        ("ab" * 32, "short", "bundle", ":5"),
    ],
)
def test_a_deployments_own_keys_are_checked_too(before, after, what, place, tmp_path):
    assert before in GOOD
    folder = write(tmp_path, GOOD.replace(before, after))
    with pytest.raises(ConfigError) as caught:
        HospitalSettings.load(folder)
    assert caught.value.what == what
    assert f"at {folder / 'client.yaml'}{place}" in str(caught.value)


def test_a_limit_without_a_value_is_refused_and_the_word_null_is_a_value(tmp_path):
    for limit in fields(Limits):
        with pytest.raises(ConfigError, match=rf"limits.{limit.name};.*null"):
            HospitalSettings.load(write(tmp_path, GOOD + f"limits:\n  {limit.name}:\n"))
        if NoneType in get_args(limit.type):
            settings = HospitalSettings.load(write(tmp_path, GOOD + f"limits: {{{limit.name}: null}}\n"))
            assert getattr(settings.party.limits, limit.name) is None
    with pytest.raises(ConfigError, match="limits;"):
        HospitalSettings.load(write(tmp_path, GOOD + "limits:\n"))
