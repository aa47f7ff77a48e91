"""`client.yaml`: what it may say, what comes of it, and what is refused with the key, the known ones and the file."""

import pytest
import yaml
from omegaconf import OmegaConf

from client.deploy.settings import HospitalSettings
from client.guard import Limits
from client.settings import PartySettings
from client.writers.abstracted_seeds import Seeds
from client.writers.abstractors import Extracts, Summariser
from client.writers.fine_tuning import FineTuning
from client.writers.rewriting import Instructed, Rewriting
from client.writers.sentiment import Classifier, Vader
from common.errors import ConfigError
from simulations.parties import party_settings
from tests.support.tiny_models import tiny_summariser

EXTRACTS = {"kind": "extracts", "longest": 7}
SECTIONS = {
    "limits": {"max_epsilon": 3, "queries": ["votes", "abstracted seeds"], "unsafe_unproven": True, "max_top": 5},
    "seeds": {"abstraction": EXTRACTS, "sentiment": {"kind": "vader"}, "oversampled": 4, "most": 9},
    "fine_tuning": {"max_steps": 5},
    "rewriting": {"rewriter": EXTRACTS, "candidates": 2, "nearest": 0},
}
DEPLOYMENT = {
    "name": "St. Mary", "records": "notes.csv", "encoder": "hashed_ngrams", "coordinator": "localhost:1",
    "bundle": "ab" * 32,
}  # fmt: skip


def read(**sections):
    return PartySettings.read(sections, "FILE")


def contents(value):
    """A writer as plain values, its parts too."""
    if isinstance(value, (Seeds, Rewriting, Extracts, Vader)):
        return type(value), {name: contents(part) for name, part in vars(value).items()}
    return value


def test_the_same_sections_are_the_same_limits_and_writers_in_a_simulation_and_in_a_deployment(tmp_path):
    (tmp_path / "client.yaml").write_text(yaml.safe_dump(DEPLOYMENT | SECTIONS))
    (tmp_path / "client.yaml").chmod(0o600)
    deployed = HospitalSettings.load(tmp_path).party
    simulated = party_settings(OmegaConf.create(SECTIONS))
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

    made = {name: kind for kinds in (settings.SENTIMENTS, settings.REWRITERS) for name, kind in kinds.items()}
    assert made == {
        "extracts": Extracts, "summariser": Summariser, "instructed": Instructed, "vader": Vader,
        "classifier": Classifier,
    }  # fmt: skip
    chosen = {"kind": "summariser", "name_or_path": str(tiny_summariser(tmp_path)), "longest": 9, "shortest": 1}
    (writer,) = read(rewriting={"rewriter": chosen}).writers().values()
    assert isinstance(writer._rewriter, Summariser)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"seed": {}}, "client.yaml; expected settings fine_tuning, limits, rewriting, seeds; got ['seed']; at FILE"),
        ({"limits": {"max_epsilom": 1}}, "max_top, min_survivors, min_unit_records, queries, "),
        ({"limits": {"max_epsilom": 1}}, "got ['max_epsilom']; at FILE"),
        ({"limits": {"max_epsilon": "many"}}, "limits; expected values like those of configs/client.yaml; at FILE"),
        ({"limits": [1]}, "limits; expected settings colluders, "),
        ({"limits": {"max_epsilon": -1}}, "max_epsilon; at FILE. max_epsilon; expected a number > 0; got -1"),
        (
            {"fine_tuning": {"model": "x"}},
            "fine_tuning; expected settings device, max_steps, micro_batch, ",
        ),
        ({"fine_tuning": True}, "got bool; at FILE"),
        ({"fine_tuning": {"max_steps": 0}}, "max_steps; at FILE. max_steps; expected an integer >= 1; got 0"),
        ({"seeds": {}}, "seeds.abstraction.kind; expected one of extracts, summariser; got none; at FILE"),
        ({"rewriting": {}}, "rewriting.rewriter.kind; expected one of extracts, summariser, instructed"),
        ({"seeds": {"abstraction": {"kind": "instructed"}}}, "expected one of extracts, summariser; got instructed"),
        ({"seeds": {"abstraction": {"kind": ["extracts"]}}}, "one of extracts, summariser; got ['extracts']"),
        ({"seeds": {"abstraction": "extracts"}}, "seeds.abstraction; expected settings control, "),
        (
            {"seeds": {"abstraction": EXTRACTS, "sentiment": {"kind": "lexicon"}}},
            "seeds.sentiment.kind; expected one",
        ),
        ({"rewriting": {"rewriter": EXTRACTS | {"far": 1}}}, "rewriting.rewriter; expected settings control, device"),
        ({"rewriting": {"rewriter": EXTRACTS | {"name_or_path": "x"}}}, "expected settings least, longest, most"),
        ({"rewriting": {"rewriter": {"kind": "instructed"}}}, "rewriting.rewriter.name_or_path; expected a value"),
        ({"rewriting": {"rewriter": EXTRACTS, "oversampled": 3}}, "got ['oversampled']; at FILE"),
        ({"rewriting": {"rewriter": {"_target_": "client.writers.abstractors.Extracts"}}}, "got ['_target_']"),
    ],
)
def test_what_is_wrong_is_named_with_the_known_ones_and_the_file(sections, message):
    with pytest.raises(ConfigError) as caught:
        read(**sections).writers()
    assert message in str(caught.value)
    assert "FILE" in str(caught.value)


@pytest.mark.parametrize("content", [[], None, "limits", 3])
def test_a_file_that_is_no_mapping_is_refused(content):
    with pytest.raises(ConfigError, match=r"client.yaml; expected settings .*; at FILE"):
        PartySettings.read(content, "FILE")
