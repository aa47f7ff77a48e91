"""What image, compose file, units and job file promise, as far as it can be read there; no container runs here."""

import configparser
import importlib.util
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path, PurePosixPath

import pytest
import yaml

from client.command import main as party
from common.system.processes import GRACE

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "configs" / "deployment"
SERVICES = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
UNITS = ("caucus-coordinator", "caucus-party")


def half(name):
    return [service for key, service in SERVICES.items() if key.endswith(f"-{name}")]


@pytest.mark.parametrize("name", SERVICES)
def test_each_container_is_closed(name):
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service["user"].startswith("0")
    assert service["mem_limit"].endswith("g")
    assert ("ports" in service) == (name == "coordinator")


@pytest.mark.parametrize("name", SERVICES)
def test_each_health_check_is_a_module_of_ours_on_a_folder_that_is_mounted(name):
    words = SERVICES[name]["healthcheck"]["test"]
    assert words[:3] == ["CMD", "python", "-m"]
    assert importlib.util.find_spec(words[3])
    assert words[4] in {str(PurePosixPath(volume.split(":")[1])) for volume in SERVICES[name]["volumes"]} | {
        "/hospital"
    }
    assert words[5:] == ([] if name == "coordinator" else [name.partition("-")[2]])


def test_the_coordinator_alone_has_an_image_of_its_own_whose_extra_exists():
    images = {name: service["image"] for name, service in SERVICES.items()}
    assert images == dict.fromkeys(images, "caucus") | {"coordinator": "caucus-coordinator"}
    chosen = re.findall(r"EXTRAS=\[(.*?)\]", (FOLDER / "Dockerfile").read_text() + (FOLDER / "lay_out.sh").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(chosen) == {"coordinator"} <= project["optional-dependencies"].keys()


def test_what_holds_records_has_no_network_and_what_has_a_network_holds_none():
    assert len(half("service")) == len(half("relay")) == 3
    for service in half("service"):
        assert service["network_mode"] == "none"
        assert "networks" not in service
        assert service["memswap_limit"] == service["mem_limit"]
    for relay in half("relay"):
        inside = {volume.split(":")[1] for volume in relay["volumes"]}
        assert inside == {"/hospital/client.yaml", "/hospital/node", "/hospital/run", "/hospital/logs"}
    folders = [volume.split(":")[0] for service in SERVICES.values() for volume in service["volumes"]]
    assert len(folders) == len(set(folders))


def test_the_image_has_an_exact_base_and_ends_as_an_ordinary_user():
    dockerfile = (FOLDER / "Dockerfile").read_text()
    (base,) = re.findall(r"^ARG BASE=(.*)$", dockerfile, re.MULTILINE)
    assert re.fullmatch(r"docker\.io/library/python:3\.11\.\d+-slim-\w+", base)
    assert set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) == {"${BASE}"}
    assert re.findall(r"^ARG EXTRAS=(.*)$", dockerfile, re.MULTILINE) == [""]  # a hospital's, by default
    assert re.findall(r"^USER (.*)$", dockerfile, re.MULTILINE)[-1] == "10001:10001"


def test_the_image_s_context_has_the_packages_and_no_more():
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {name.rstrip("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert allowed == packages | {"pyproject.toml", "constraints.txt", "README.md", "LICENSE"}
    assert [rule for rule in rules if rule[0] != "!"] == ["*", "configs/deployment", "**/__pycache__"]


def unit_of(name):
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(FOLDER / f"{name}.service")
    return unit["Service"]


@pytest.mark.parametrize("name", UNITS)
def test_each_unit_is_closed(name):
    unit = unit_of(name)
    for closed in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "RestrictNamespaces"):
        assert unit[closed] == "yes"
    assert unit["ProtectSystem"] == "strict"
    assert unit["SystemCallFilter"] == "@system-service"
    assert unit["RestartPreventExitStatus"] == "2"  # common/system/commands.py: a wrong setting
    assert ("EnvironmentFile" in unit) == (name == "caucus-coordinator")


HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp", "/dev")
"""What ProtectHome, PrivateTmp and PrivateDevices take away or replace."""


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_sees_every_path_that_it_names_and_can_write_to_its_folder(name):
    unit, text = unit_of(name), (FOLDER / f"{name}.service").read_text()
    program, _, folder = shlex.split(unit["ExecStart"])
    assert program == f"/opt/caucus/bin/{name}"
    assert unit["ReadWritePaths"] == folder
    commands = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#   ")]
    named = re.findall(r"(?<![\w.])/[\w./-]+", "\n".join([*commands, *unit.values()]))
    assert len(named) >= 5
    assert not [path for path in named if any(PurePosixPath(path).is_relative_to(hidden) for hidden in HIDDEN)]
    assert folder in "\n".join(commands)  # what `init` makes is what is started


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize(
    "directives",
    [("verify", "--man=no"), ("security", "--offline=true", "--threshold=30", "--no-pager")],
    ids=lambda it: it[0],
)
def test_systemd_takes_each_unit(name, directives, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / f"{name}.service"
    text = (FOLDER / unit.name).read_text()
    unit.write_text(text.replace(f"/opt/caucus/bin/{name}", "/bin/true"))  # verify wants a program that exists
    ended = subprocess.run(["systemd-analyze", *directives, unit], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


JOB = FOLDER / "caucus-party.sbatch"


def test_the_shell_takes_the_job_file_and_our_command_each_of_its_lines(monkeypatch):
    subprocess.run(["bash", "-n", JOB], check=True)
    monkeypatch.setattr("client.command.run", lambda parser, arguments, **_: parser.parse_args(arguments))
    lines = [line for line in JOB.read_text().splitlines() if "/caucus-party" in line]
    words = [shlex.split(line.lstrip("# ").removeprefix("exec ")) for line in lines]
    assert [line[1] for line in words] == ["init", "roster", "start"]
    for program, *arguments in words:
        assert program in {"~/caucus/bin/caucus-party", "$HOME/caucus/bin/caucus-party"}
        assert party(arguments).lines


def test_a_job_is_alone_and_has_time_to_end_in_order():
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=?(.*)$", JOB.read_text(), re.MULTILINE))
    assert (options["dependency"], options["nodes"], options["ntasks"]) == ("singleton", "1", "1")
    receiver, _, seconds = options["signal"].partition("@")
    assert receiver == "B:TERM"  # to the script itself, which has become our command
    assert int(seconds) >= 4 * GRACE  # as many processes as `start` has at most, one after the other
