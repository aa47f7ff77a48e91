from types import SimpleNamespace

import pytest

from common.errors import ConfigError
from server.llm.base import MODES
from server.llm.builtin.model import BuiltinModel
from server.methods.aug_pe import AugPe
from server.methods.dp_kps import DpKps
from server.methods.dpga import Dpga
from server.methods.fusegen import FuseGen
from server.methods.pre_text import PreText
from server.methods.rpsg import Rpsg
from server.methods.wasp import Wasp
from server.prepare.build import build
from server.prepare.components import build_components
from server.prepare.compose import compose_settings
from server.prepare.model_checks import advice_on_contrast, refuse_declined
from server.settings.voting import Variation

ALL = {"able": SimpleNamespace(declines=frozenset()), "small": SimpleNamespace(declines=frozenset(MODES))}
FILL_IN = Variation(kind="fill_in")

USED = [
    (Wasp(), {"contrast"}),
    (Wasp(look_ahead=2), {"contrast", "rewriting"}),
    (AugPe(variation=FILL_IN, vocabulary="terms.txt"), {"blanks", "keyphrases"}),
    (PreText(rounds=1, look_ahead=0), set()),
    (Dpga(), {"subtopics", "rewriting", "blanks", "crossing"}),
    (DpKps(vocabulary="terms.txt", ablation="no_llm"), set()),
    (Rpsg(), {"abstracts", "rewriting"}),
    (FuseGen(), set()),
]
"""Methods with the modes that they use, as the contract of methods checks by their requests."""


@pytest.mark.parametrize(("method", "used"), USED, ids=lambda value: getattr(value, "name", None))
def test_a_method_with_models_that_decline_what_it_asks_for_is_refused_beforehand(method, used):
    assert method.modes.keys() == used
    refuse_declined(method, {"able": ALL["able"]})
    if not used - {"contrast"}:
        refuse_declined(method, ALL)
        return
    with pytest.raises(ConfigError) as caught:
        refuse_declined(method, ALL)
    message = str(caught.value)
    assert (caught.value.what, caught.value.where) == (f"method {method.name}", "llm.use")
    assert all(mode in message for mode in used - {"contrast"})
    assert message.count("small") == 2  # what it declines, and to leave it out
    assert "able" not in message


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        (AugPe(), "llm.use, set method.variation.kind=fill_in, or"),
        (Dpga(keywords=0), "set method.rewritten=0 and method.filled=0 and method.crossed=0, or"),
        (Wasp(look_ahead=1), "set method.look_ahead=0, or"),
        (Rpsg(), "out of llm.use, or"),
    ],
)
def test_the_error_names_the_settings_that_avoid_it(method, advice):
    with pytest.raises(ConfigError) as caught:
        refuse_declined(method, ALL)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "chosen",
    [
        ["method=wasp", "method.look_ahead=1"],
        ["method=aug_pe"],
        ["method=aug_pe", "method.variation.kind=fill_in"],
        ["method=pre_text"],
        ["method=dpga"],
    ],
    ids=" ".join,
)
def test_a_setting_that_is_advised_does_avoid_its_mode(chosen):
    modes = build(compose_settings(chosen).method).modes
    assert modes
    for mode, setting in modes.items():
        assert mode not in build(compose_settings([*chosen, setting]).method).modes


def test_only_what_a_run_would_ask_for_is_refused():
    model = {"m": SimpleNamespace(declines=frozenset({"keyphrases", "crossing"}))}
    refuse_declined(AugPe(), model)
    with pytest.raises(ConfigError, match=r"got m, .* crossing;"):
        refuse_declined(Dpga(), model)


def test_a_declined_contrast_is_told_where_the_method_asks_for_it():
    (sentence,) = advice_on_contrast(Wasp(), ALL)
    assert sentence.startswith("small declines")
    assert advice_on_contrast(Wasp(contrast=False), ALL) == advice_on_contrast(AugPe(), ALL) == []


def test_parts_are_refused_with_a_chosen_model_that_declines(monkeypatch):
    monkeypatch.setattr(BuiltinModel, "declines", frozenset({"rewriting"}))
    small = ["task.public_notes=60", "method.samples=60", "evaluation.metrics=[]"]
    build_components(compose_settings(small))
    with pytest.raises(ConfigError, match=r"got broad, .* and narrow, "):
        build_components(compose_settings([*small, "method=aug_pe", "llm.use=[broad,narrow]"]))
