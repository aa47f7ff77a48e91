"""The grammar of an experiment's rows, and the sweep over them."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

import configs
from common.errors import ConfigError
from server.prepare.compose import plain
from simulations.sweeps.combinations import SweepCallback, planned_overrides, sweep_over
from simulations.sweeps.experiments import experiment_rows, run_names

EXPERIMENT = {
    "rows": {
        "no votes": {"set": ["method=fusegen"]},
        "epsilon $epsilon": {
            "each": {"epsilon": [4, "inf"], "share": [0.5, 0.25]},
            "set": ["method=wasp", "privacy.epsilon=$epsilon", "x=$share"],
            "paper": [[1, 2], None],
            "against": {"theirs": "theirs $epsilon"},
        },
        "theirs $epsilon": {"each": {"epsilon": [4, "inf"]}, "paper": [[3, 4], [5, 6]]},
    }
}


def test_a_row_is_repeated_for_each_of_its_values():
    assert experiment_rows(EXPERIMENT) == {
        "no votes": {"set": ["method=fusegen"]},
        "epsilon 4": {
            "set": ["method=wasp", "privacy.epsilon=4", "x=0.5"],
            "paper": [1, 2],
            "against": {"theirs": "theirs 4"},
        },
        "epsilon inf": {
            "set": ["method=wasp", "privacy.epsilon=inf", "x=0.25"],
            "against": {"theirs": "theirs inf"},
        },
        "theirs 4": {"paper": [3, 4]},
        "theirs inf": {"paper": [5, 6]},
    }
    assert run_names(EXPERIMENT) == ["no votes", "epsilon 4", "epsilon inf"]
    assert experiment_rows(None) == experiment_rows({"columns": ["seconds"]}) == {}


def test_beside_the_rows_the_whole_table_is_repeated():
    experiment = {"each": {"L": [3, 10]}, "rows": {"a $L": {"set": ["parties=$L"]}, "b $L": {"paper": [1]}}}
    assert list(experiment_rows(experiment)) == ["a 3", "b 3", "a 10", "b 10"]
    assert experiment_rows(experiment)["a 10"] == {"set": ["parties=10"]}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"each": {"epsilon": [1, 2], "share": [1]}}, "columns of one length"),
        ({"each": {"epsilon": [1, 2]}, "paper": [[1]]}, "2 lists of figures"),
    ],
)
def test_repetitions_that_do_not_match_are_refused(row, what, monkeypatch, capsys):
    with pytest.raises(ConfigError, match=what):
        experiment_rows({"rows": {"row": row}})
    with pytest.raises(SystemExit) as stop:
        SweepCallback().on_multirun_start(OmegaConf.create({"experiment": {"rows": {"row": row}}}))
    assert stop.value.code == 2
    assert what in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ([], [f"row='Q {top}'" for top in (1, 2, 4, 8, 16)]),
        (["row=Q 1,Q 8"], [r"row=Q\ 1", r"row=Q\ 8"]),
    ],
)
def test_an_experiment_sweeps_over_its_rows_and_then_over_seeds(typed, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(HydraConfig.instance(), "cfg", None)
    with initialize_config_module("configs", version_base="1.3"):
        config = compose(
            "simulation", ["+experiment=wasp_table5", f"hydra.sweep.dir={tmp_path}"], return_hydra_config=True
        )
    config.hydra.overrides.task = ["+experiment=wasp_table5", *typed]
    SweepCallback().on_multirun_start(config)
    OmegaConf.save(config, tmp_path / "multirun.yaml")
    assert planned_overrides(tmp_path) == [
        [row, f"experiment_seed={seed}", "+experiment=wasp_table5"] for row in expected for seed in range(3)
    ]


@pytest.mark.parametrize(
    "path", sorted(Path(configs.__file__).parent.glob("experiment/*.yaml")), ids=lambda path: path.stem
)
def test_a_name_of_a_row_is_one_choice_whatever_it_has(path):
    names = [*run_names(plain(OmegaConf.load(path))["experiment"]), "a, 'b' (c) [d] = {e: $f}"]
    (sweep,) = OverridesParser.create().parse_overrides([f"row={sweep_over(names)}"])
    chosen = OverridesParser.create().parse_overrides([f"row={one}" for one in sweep.sweep_string_iterator()])
    assert [override.value() for override in chosen] == names
