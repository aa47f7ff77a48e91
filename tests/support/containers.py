"""The image and the containers of `configs/deployment`, built with buildah and started with podman from compose.yaml.

All images and containers are stored in one folder and are removed with it. Image registries may be unreachable, so
debootstrap makes the base image, a Debian with the same Python as in the Dockerfile, and this machine's pip downloads
the wheels beforehand. The Dockerfile is otherwise unchanged.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.support import hosts

ROOT = Path(__file__).parents[2]
DEPLOYMENT = ROOT / "configs" / "deployment"
SERVICES = yaml.safe_load((DEPLOYMENT / "compose.yaml").read_text())["services"]
TOOLS = ("buildah", "podman", "runc", "debootstrap")
PATIENCE = 1800.0
BASE = "localhost/base"
SUBNET, COORDINATOR = "10.211.55.0/24", "10.211.55.2"
"""Network of the containers, and the coordinator's address, to which compose would resolve its service's name."""
OPTIONS = {
    "cap_drop": "cap-drop",
    "environment": "env",
    "mem_limit": "memory",
    "memswap_limit": "memory-swap",
    "network_mode": "network",
    "networks": "network",
    "pids_limit": "pids-limit",
    "ports": "publish",
    "read_only": "read-only",
    "restart": "restart",
    "security_opt": "security-opt",
    "tmpfs": "tmpfs",
    "user": "user",
    "volumes": "volume",
}
"""Podman's options, keyed by the key in compose.yaml."""
LASTING = {"ports", "restart"}


def missing():
    """Return why no containers can be started here; an empty string if they can."""
    if os.geteuid() != 0:
        return "only root builds images and starts containers here"
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"not installed: {', '.join(absent)}" if absent else hosts.missing()


class Containers:
    """A container engine with separate storage, and the folders of the compose file.

    Args:
        folder: A new folder for all files, which take several gigabytes.
    """

    def __init__(self, folder):
        self.folder, self.here = folder, folder / "deployment"
        self.here.mkdir()
        for name in ("compose.yaml", "lay_out.sh"):
            shutil.copy(DEPLOYMENT / name, self.here)
        settings = {
            "storage.conf": f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/images"\nrunroot = "{folder}/run"\n',
            # The limits of an engine's default are more than a closed machine may grant.
            "containers.conf": f'[containers]\ndefault_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]\n'
            f'[network]\nnetwork_config_dir = "{folder}/networks"\n',
            "pip.conf": "[global]\nno-index = true\nfind-links = /wheels\n",
            "uv.conf": 'no-index = true\nfind-links = ["/wheels"]\n',
        }
        for name, content in settings.items():
            (folder / name).write_text(content)
        (folder / "networks").mkdir()
        self._environment = os.environ | {
            "ENGINE": "podman",
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "UV_SYSTEM_CERTS": "true",
        }
        del self._environment["SSL_CERT_DIR"]  # the only tests that download trust what this machine trusts

    def call(self, *words, code=0, given=None):
        """Run one command to its end; return its standard output and its standard error."""
        ended = subprocess.run(
            list(map(str, words)),
            env=self._environment,
            cwd=self.here,
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert code is None or ended.returncode == code, f"{ended.returncode}: {ended.stdout}{ended.stderr}"
        return ended

    def podman(self, *words, **how):
        return self.call("podman", *words, **how)

    def lay_out(self, *words, **how):
        return self.call("./lay_out.sh", *words, **how)

    def make_base(self):
        """Make a Debian image with Python; skip the test if the packages cannot be downloaded."""
        wanted = "--include=python3,python3-venv,python-is-python3,ca-certificates"
        self._or_skip("debootstrap", "--variant=minbase", wanted, "bookworm", self.folder / "base")
        left_out = ("--exclude=./var/cache/apt", "--exclude=./var/lib/apt/lists")  # which no published base has
        self.call("tar", "-C", self.folder / "base", *left_out, "-cf", self.folder / "base.tar", ".")
        self.podman("import", self.folder / "base.tar", BASE)

    def make_wheels(self):
        """Download all wheels for a coordinator's image, as locked; skip the test if they cannot be downloaded."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
        wanted, uv = self.folder / "wanted.txt", Path(sys.executable).with_name("uv")
        lock = ("--constraints", ROOT / "constraints.txt", "--generate-hashes", "--quiet", "--output-file", wanted)
        self._or_skip(uv, "pip", "compile", ROOT / "pyproject.toml", "--extra", "coordinator", *lock)
        download = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", self.folder / "wheels")
        self._or_skip(*download, "--require-hashes", "--requirement", wanted)
        self._or_skip(*download, *project["build-system"]["requires"])

    def _or_skip(self, *words):
        ended = self.call(*words, code=None)
        if ended.returncode:
            pytest.skip(f"{words[0]}: {(ended.stdout + ended.stderr).strip().splitlines()[-1]}")

    def build(self, context, dockerfile, image, *arguments):
        """Build an image as `docker build` does with these arguments, but with our base image and our wheels."""
        places = {"wheels": "/wheels", "pip.conf": "/etc/pip.conf", "uv.conf": "/etc/uv/uv.toml"}
        mounts = [f"--volume={self.folder}/{name}:{place}:ro" for name, place in places.items()]
        chosen = [f"--build-arg={argument}" for argument in (f"BASE={BASE}", *arguments)]
        what = (*chosen, "--file", dockerfile, "--tag", image, context)
        self.call("buildah", "build", "--isolation", "chroot", *mounts, *what)

    def size(self, image):
        return int(self.podman("image", "inspect", "--format", "{{.Size}}", image).stdout)

    def flags(self, name, *, once=False):
        """Return podman's options for a service; with `once`, omit options for long-running services, such as ports."""
        service = {key: value for key, value in SERVICES[name].items() if key not in {"image", "command"}}
        health = service.pop("healthcheck")
        assert set(health) == {"test", "start_period"}
        words = ["--read-only-tmpfs=false"]  # docker mounts none of its own
        if not once:
            words += ["--health-cmd", shlex.join(health["test"][1:]), "--health-start-period", health["start_period"]]
        if "networks" in service:
            words += ["--ip", COORDINATOR] if name == "coordinator" else ["--add-host", f"coordinator:{COORDINATOR}"]
        for key, value in service.items():
            if once and key in LASTING:
                continue
            assert key in OPTIONS, f"{key} of {name} in compose.yaml is not tested"
            for item in value if isinstance(value, list) else [value]:
                words.append(f"--{OPTIONS[key]}={str(item).replace('./', f'{self.here}/', 1)}")
        return words

    def step(self, line, *more, code=0):
        """Run a line printed by lay_out.sh, as `docker compose` would; return its output."""
        words = shlex.split(line)
        given = next(((self.here / word[1:]).read_text() for word in words if word.startswith("<")), None)
        taken = next((self.here / word[1:] for word in words if word.startswith(">")), None)
        engine, compose, verb, *rest = [word for word in words if word[0] not in "<>"]
        assert (engine, compose) == ("podman", "compose")
        name, *command = [word for word in rest if word not in {"-T", "--rm", "-d"}]
        if verb == "up":
            for service_name in (name, *command):
                service = SERVICES[service_name]
                self.podman(
                    "run",
                    "--detach",
                    "--name",
                    service_name,
                    *self.flags(service_name),
                    service["image"],
                    *service["command"],
                )
            return ""
        once = (*self.flags(name, once=True), SERVICES[name]["image"])
        start = {"exec": ("exec", "-i", name), "run": ("run", "--rm", "-i", *once)}
        ended = self.podman(*start[verb], *command, *more, given=given, code=code)
        if taken:
            taken.write_text(ended.stdout)
        return ended.stdout + ended.stderr

    def inside(self, name, *words, **how):
        """Run a command in a running container; return its output."""
        return self.podman("exec", name, *words, **how).stdout

    def state(self, name):
        return json.loads(self.podman("inspect", name).stdout)[0]

    def healthy(self, name):
        """Return whether compose's health check of the container succeeds now."""
        return self.podman("healthcheck", "run", name, code=None).returncode == 0

    def ended(self):
        self.podman("rm", "--all", "--force", "--time", "10", code=None)
        self.podman("network", "rm", "--force", "federation", code=None)
        shutil.rmtree(self.folder, ignore_errors=True)
