"""A device that this machine lacks is named, with the cure, before any weights are read."""

import pytest
import torch

from common.errors import ConfigError
from common.models.devices import device_here
from common.models.encoder import Encoder
from server.evaluation.small_model import Evaluation
from server.llm.local import Local
from server.operators.refinement import Refinement
from server.settings.evaluation import Training

HERE = r"; expected a device of this machine: cpu; got '{}'. Set it to cpu; a GPU needs its driver"


@pytest.fixture
def accelerated(monkeypatch):
    """A function that gives this machine so many GPUs."""

    def give(count):
        device = torch.device("cuda") if count else None
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: device)
        monkeypatch.setattr(torch.accelerator, "device_count", lambda: count)

    return give


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "mps", "meta", "gpu", ""])
def test_without_a_gpu_there_is_the_processor(device, accelerated):
    accelerated(0)
    assert device_here("cpu") == device_here(None) == "cpu"
    assert device_here("cpu:0") == "cpu:0"
    with pytest.raises(ConfigError, match=HERE.format(device)):
        device_here(device)


def test_a_gpu_is_chosen_where_no_device_is_named(accelerated):
    accelerated(2)
    assert [device_here(device) for device in (None, "cuda", "cuda:1", "cpu")] == ["cuda", "cuda", "cuda:1", "cpu"]
    with pytest.raises(ConfigError, match=r"cuda:1; got 'cuda:2'"):
        device_here("cuda:2")


@pytest.mark.parametrize(
    ("setting", "build"),
    [
        ("device", lambda device, folder: Encoder.pretrained(folder, device=device)),
        ("device", lambda device, folder: Encoder.transformer(folder, device=device)),
        ("llm.models.m.device", lambda device, folder: Local(name="m", model=folder, device=device)),
        ("evaluation.device", lambda device, _: Evaluation(device=device)),
        ("evaluation.language_model.device", lambda device, _: Evaluation(language_model=Training(device=device))),
        ("method.refinement.device", lambda device, _: Refinement(device=device)),
    ],
)
def test_every_part_that_computes_checks_its_device_first(setting, build, accelerated, tmp_path):
    accelerated(0)
    with pytest.raises(ConfigError, match=f"^{setting};"):
        build("cuda", tmp_path / "nothing there")


def test_openvino_has_processors_alone(tmp_path):
    with pytest.raises(ConfigError, match=r"llm.models.m.device;"):
        Local(name="m", model=tmp_path, engine="openvino", device="cuda")
