"""What the compose file and the units promise, as far as it can be read from them; no container runs here."""

import configparser
import re
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parents[1] / "configs" / "deployment"
SERVICES = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]


def half(name):
    return [service for key, service in SERVICES.items() if key.endswith(f"-{name}")]


def test_one_coordinator_and_three_hospitals_in_halves():
    assert (len(SERVICES), len(half("service")), len(half("relay"))) == (7, 3, 3)


@pytest.mark.parametrize("name", SERVICES)
def test_each_container_is_closed(name):
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service["user"].startswith("0")
    assert ("ports" in service) == (name == "coordinator")


def test_what_holds_records_has_no_network_and_what_has_a_network_holds_none():
    for service in half("service"):
        assert service["network_mode"] == "none"
        assert "networks" not in service
    for relay in half("relay"):
        inside = {volume.split(":")[1] for volume in relay["volumes"]}
        assert inside == {"/hospital/client.yaml", "/hospital/node", "/hospital/run", "/hospital/logs"}
    folders = [volume.split(":")[0] for service in SERVICES.values() for volume in service["volumes"]]
    assert len(folders) == len(set(folders))


def test_the_image_ends_as_an_ordinary_user_and_holds_no_data():
    last = re.findall(r"^USER (.*)$", (FOLDER / "Dockerfile").read_text(), re.MULTILINE)[-1]
    assert last == "10001:10001"


@pytest.mark.parametrize("name", ["caucus-coordinator", "caucus-party"])
def test_each_unit_is_closed(name):
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(FOLDER / f"{name}.service")
    assert unit["Service"]["ProtectSystem"] == "strict"
    assert unit["Service"]["NoNewPrivileges"] == "yes"
    assert unit["Service"]["ExecStart"].startswith(f"/opt/caucus/bin/{name} ")
