"""constraints.txt, which `make` installs from, agrees with pyproject.toml and with what is installed."""

import re
from importlib.metadata import version

from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.requirements import EXTRAS, PROJECT, REQUIREMENTS, ROOT, brought, everything

ENTRIES = re.findall(
    r"^([\w.-]+)==([\w.]+)(?: ; [^\\]+?)? ?\\?\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)*)",
    (ROOT / "constraints.txt").read_text("utf-8"),
    re.MULTILINE,
)
LOCKED = {canonicalize_name(name): Version(version) for name, version, _ in ENTRIES}


def test_each_package_is_there_once_and_has_a_hash():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert len(ENTRIES) == len(LOCKED) == sum(not line.startswith((" ", "#")) for line in lines) > 150
    assert [name for name, _, hashes in ENTRIES if not hashes] == []


def test_its_versions_are_in_the_ranges_of_pyproject():
    for requirement in REQUIREMENTS:
        assert LOCKED[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_what_is_installed_is_what_it_names():
    needed = everything(brought([*PROJECT["dependencies"], *EXTRAS["dev"]]))
    assert len(needed) > 150
    installed = {name: Version(version(name)).public for name in needed - {"setuptools"}}  # venv brings one too
    assert {
        name: version_here for name, version_here in installed.items() if LOCKED.get(name) != Version(version_here)
    } == {}
