import json
from dataclasses import replace
from itertools import pairwise

import pytest
import yaml

from common.errors import ConfigError
from common.labelled_files import read_records
from server.prepare.compose import compose_settings
from simulations.laboratory.results import cells, claims, data_sets, execution

FILE = """
paper: A paper
base: [method=wasp, method.contrast=false]
claims:
  votes:
    claim: Votes help.
    where: Table 1
    published: "+1"
    rows:
      votes: [privacy.epsilon=4]
      none: [method=fusegen, method.rounds=1]
    compare: [votes, none]
"""


def test_a_later_override_replaces_an_earlier_one_and_another_method_drops_the_settings_of_the_one_before():
    settled = claims.merge_overrides(["++method.samples=300", "llm=smollm2"], ["method.samples=150"])
    assert settled == ("llm=smollm2", "method.samples=150")
    wasp, fusegen = ["method=wasp", "method.contrast=false"], ["method=fusegen", "method.rounds=1"]
    settled = claims.merge_overrides(["++method.samples=300"], wasp, fusegen)
    assert settled == ("++method.samples=300", *fusegen)


def test_a_shared_row_has_the_overrides_of_its_name(tmp_path):
    text = FILE.replace("none: [method=fusegen, method.rounds=1]", "no votes: shared").replace("none", "no votes")
    (tmp_path / "paper.yaml").write_text(text)
    (claim,) = claims.read_claims(tmp_path)
    assert claim.rows["no votes"] == ("method=fusegen", "method.rounds=1", "method.boosts=0")


@pytest.mark.parametrize(
    ("instead_of", "wrong", "message"),
    [
        ("where: Table 1", "were: Table 1", "were"),
        ("compare: [votes, none]", "compare: [votes, others]", "others"),
        ("claim: Votes help.", "expects: better", "better"),
        ("claim: Votes help.", "computed: nothing", "computed"),
        ("claim: Votes help.", "why: {proved: x}", "why"),
        ("claim: Votes help.", "seeds: 0", "seeds"),
        ("[method=fusegen, method.rounds=1]", "shared", "none"),
        ("claims:", "others:", "claims"),
        ("none: [method=fusegen, method.rounds=1]", "none: method=fusegen", r"rows\.none;.*paper.yaml:11"),
        ("compare: [votes, none]", "compare: [votes]", r"compare;.*paper.yaml:12"),
        ("compare: [votes, none]", "compare: [votes, none", "YAML"),
        ("claim: Votes help.", "data: banking10", "data;"),
        ("claim: Votes help.", "epsilons: [-1]", "epsilons;"),
        ("claim: Votes help.", "expects: {around: 1}", "within"),
        ("claim: Votes help.", "data: [banking]", r"claims\.votes\.data;"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, instead_of, wrong, message):
    text = FILE.replace(instead_of, wrong if "claim:" not in instead_of else f"claim: Votes help.\n    {wrong}")
    (tmp_path / "paper.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        cells.cells_in_order(cells.preset("full"), claims.read_claims(tmp_path))


def test_a_name_is_used_once(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text(FILE)
    with pytest.raises(ConfigError, match=r"votes.*once.*b\.yaml"):
        claims.read_claims(tmp_path)


@pytest.mark.slow
def test_every_override_of_every_claim_composes_with_its_method(tmp_path):
    """Each value of a setting is composed once for each method: a composition of every row would take a minute."""
    chosen = cells.preset("full")
    by_method = {}
    for cell in cells.cells_in_order(chosen, (*claims.read_claims(), *claims.read_lines())):
        overrides = chosen.overrides(replace(cell, seed=0))
        (method,) = [override for override in overrides if override.startswith("method=")]
        settings = by_method.setdefault(method, {})
        for override in overrides:
            settings.setdefault(override.partition("=")[0].lstrip("+"), {})[override] = None
    for settings in by_method.values():
        for number in range(max(map(len, settings.values()))):
            row = [list(values)[min(number, len(values) - 1)] for values in settings.values()]
            compose_settings(execution.with_folders(row, tmp_path))


def test_a_preset_has_more_for_the_rows_of_a_claim_or_of_a_method():
    rows = {"votes": ("method=wasp", "method.top=1"), "none": ("method=fusegen",)}
    claim = claims.Claim(**{**yaml.safe_load(FILE)["claims"]["votes"], "name": "votes", "paper": "", "rows": rows})
    more = {"votes": ["llm=mixed"], "method=wasp": ["method.top=8"]}
    chosen = cells.Preset(name="", model="", base=(), of_data={"banking10": ()}, more=more)
    assert {row: one[0].overrides for (row, epsilon), one in chosen.cells(claim).items() if epsilon == 4} == {
        "votes": ("method=wasp", "llm=mixed", "method.top=8", "privacy.epsilon=4"),
        "none": ("method=fusegen", "llm=mixed"),
    }


def test_the_small_preset_needs_nothing_that_the_full_one_does_not_and_few_runs():
    full, small = cells.preset("full"), cells.preset("small")
    everything = claims.read_claims()
    few = {small.key(cell) for cell in cells.cells_in_order(small, small.claims(everything))}
    assert few <= {full.key(cell) for cell in cells.cells_in_order(full, everything)}
    assert 20 <= len(few) <= 28  # for twenty minutes: two runs of DPGA would take as long as six others
    with pytest.raises(ConfigError, match="small, full, chat"):
        cells.preset("tiny")


def test_without_our_data_sets_the_small_preset_has_all_its_files_and_words_of_the_model(tmp_path, monkeypatch):
    monkeypatch.setenv(data_sets.DATA, str(tmp_path))
    monkeypatch.setenv("CAUCUS_MODELS", str(tmp_path))
    monkeypatch.setattr(data_sets, "COMMONEST", 1)
    small = replace(cells.preset("small"), data=(data_sets.DEMO,))
    planned = cells.cells_in_order(small, small.claims(claims.read_claims()))
    overrides = {each for cell in planned for each in small.overrides(cell)}
    (tmp_path / "smollm2").mkdir()
    tokens = {"Ġinvoice": 3, "Ġthe": 0, "Ġappointment": 2, "ment": 1, "ĠParis": 4, "Ġof": 5, "Ġbill": 6}
    (tmp_path / "smollm2" / "tokenizer.json").write_text(json.dumps({"model": {"vocab": tokens}}), "utf-8")
    data_sets.write_files(tmp_path)
    assert (tmp_path / data_sets.ENGLISH).read_text("utf-8").split() == ["appointment", "invoice", "bill"]
    assert {each.partition("{work}/")[2] for each in overrides if "{work}/" in each} == {data_sets.ENGLISH}
    assert not any("{data}" in each or "{here}" in each for each in overrides)


def test_models_that_were_not_fetched_are_named_before_the_first_run(tmp_path, monkeypatch):
    monkeypatch.setenv("CAUCUS_MODELS", str(tmp_path))
    small = cells.preset("small")
    with pytest.raises(ConfigError, match="make models"):
        execution.check_models(small, cells.cells_in_order(small, small.claims(claims.read_claims())))


def test_public_texts_a_vocabulary_and_a_recipients_part_are_written(tmp_path, monkeypatch):
    monkeypatch.setenv(data_sets.DATA, str(tmp_path))
    for folder in ("vocab_english", "banking10", "banking77", "work"):
        (tmp_path / folder).mkdir()
    counted = [f"word{number}\t{9000 - number}" for number in range(data_sets.COMMONEST + 2)]
    (tmp_path / "vocab_english" / "words.tsv").write_text("\n".join(["word\tcount", *counted]) + "\n")
    rows = [f"message {number},label{number % 2}" for number in range(8)]
    for part in ("train", "test"):
        (tmp_path / "banking10" / f"{part}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
        (tmp_path / "banking77" / f"{part}.csv").write_text("text,label\nHello?,label0\nWhere is it?,Others_are?\n")
    data_sets.write_files(tmp_path / "work")
    public = (tmp_path / "work" / data_sets.BANKING67).read_text().splitlines()
    assert public == ["text,topic", "Where is it?,others are"]  # of no class of banking10
    vocabulary = (tmp_path / "work" / data_sets.ENGLISH).read_text().split()
    assert vocabulary == [f"word{data_sets.COMMONEST}", f"word{data_sets.COMMONEST + 1}"]
    private, target = (
        {record.text for record in read_records(tmp_path / "work" / f"banking10_{part}.csv")}
        for part in ("private", "target")
    )
    assert len(private) == 6
    assert target == {"message 0", "message 4"}
    assert not private & target


def test_the_runs_of_a_paper_are_made_claim_by_claim():
    full = cells.preset("full")
    of_paper = [claim for claim in claims.read_claims() if claim.paper.startswith("WASP")]
    needed = [cell for claim in of_paper for cell in cells.cells_in_order(full, [claim])]
    assert cells.cells_in_order(full, of_paper) == list(dict.fromkeys(needed))


def test_runs_that_begin_alike_do_not_start_together():
    small = cells.preset("small")
    measured = small.claims(claims.read_claims())
    order = cells.cells_in_order(small, measured)
    of_claims = [(claim.paper, cells.cells_in_order(small, [claim])) for claim in measured]
    papers = [{paper for paper, needed in of_claims if cell in needed} for cell in order]
    assert all(not one & following for one, following in pairwise(papers[:9]))
