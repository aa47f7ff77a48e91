"""Each package that a folder imports comes with the installation that the folder is for, or is looked for first."""

import ast
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import packages_distributions

import pytest
from packaging.utils import canonicalize_name

from common.system.packages import NAMES
from tests.support.requirements import EXTRAS, PROJECT, REQUIREMENTS, ROOT, brought, everything
from tests.support.without_packages import run_without

NOT_AT_A_HOSPITAL = {
    "anthropic",
    "openai",
    "pandas",
    "presidio-analyzer",
    "ray",
    "scikit-learn",
    "spacy",
    "torch",
}

INSTALLED_FOR = {
    "protos": (),
    "common": (),
    "client": (),
    "server": ("coordinator",),
    "simulations": ("simulation",),
    "simulations/laboratory": ("dev",),
}
"""Folder to the extras with which its modules can be imported."""

GUARDED = {
    "client/page/app.py": "client/deploy/page.py",
    "common/page/access.py": "client/deploy/page.py",
    "common/page/app.py": "client/deploy/page.py",
    "common/page/render.py": "client/deploy/page.py",
    "client/writers/fine_tuning.py": "client/writers/causal_model.py",
    "client/writers/instructed.py": "client/writers/causal_model.py",
    "common/models/chat.py": "common/models/checkpoints.py",
    "common/models/gguf_file.py": "common/models/checkpoints.py",
    "server/llm/engines/transformers.py": "common/models/checkpoints.py",
    "server/metrics/adaptation.py": "server/evaluation/small_model.py",
    "server/metrics/finetuned.py": "server/evaluation/small_model.py",
    "server/report/tensorboard.py": "server/prepare/components.py",
}
"""Module to the one that looks for its packages: nothing of the first is reached but through the second."""


BASE = brought(PROJECT["dependencies"])
DISTRIBUTIONS = {
    package: {canonicalize_name(name) for name in names} for package, names in packages_distributions().items()
}


@cache
def files():
    listed = subprocess.run(["git", "ls-files", *NAMES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {name for name in listed.splitlines() if name.endswith(".py") and (ROOT / name).exists()}
    return sorted(names - {"common/system/extras.py"})  # which has the functions themselves


@cache
def tree(name):
    return ast.parse((ROOT / name).read_text("utf-8"))


def folder_of(name):
    return max((folder for folder in INSTALLED_FOR if name.startswith(f"{folder}/")), key=len, default=None)


KNOWN = {*NAMES, *sys.stdlib_module_names}


def imports(body):
    """Top-level packages that statements import, those for the sake of types left out."""
    for statement in body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            continue
        names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else []
        names += [statement.module or ""] if isinstance(statement, ast.ImportFrom) and not statement.level else []
        yield from {name.split(".")[0] for name in names} - KNOWN
        for part in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            for within in ("body", "orelse", "finalbody"):
                yield from imports(getattr(part, within, ()))


def test_an_import_is_seen_wherever_it_stands():
    blocks = (
        "try: import a\nexcept E: import b\nelse: import c\nfinally: from d.x import y\n",
        "def f():\n if x: import e",
        "match x:\n case 1: import g\n",
        "class C:\n with x: import h, os",
        "if TYPE_CHECKING: import i\nelse: import j",
    )
    assert "".join(package for block in blocks for package in sorted(imports(ast.parse(block).body))) == "abcdegh"


@cache
def guards(name):
    """The calls of a module that look for packages: extra to the packages, named there or in a constant."""
    constants = {
        node.targets[0].id: node.value
        for node in tree(name).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    packages_of_extra = {}
    for call in ast.walk(tree(name)):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in {"needs", "program_needs"}:
            (extra,) = (ast.literal_eval(word.value) for word in call.keywords if word.arg == "extra")
            operands = [
                constants.get(ast.unparse(operand), operand) for part in call.args[1:] for operand in ast.walk(part)
            ]
            words = [word for operand in operands for word in ast.walk(operand)]
            packages = {word.value for word in words if isinstance(word, ast.Constant)}
            packages_of_extra.setdefault(extra, set()).update(packages)
    return packages_of_extra


@pytest.mark.parametrize("folder", INSTALLED_FOR)
def test_what_a_folder_imports_is_installed_for_it_or_looked_for_first(folder):
    here = BASE.union(*(brought(EXTRAS[extra]) for extra in INSTALLED_FOR[folder]))
    mine = [name for name in files() if folder_of(name) == folder]
    assert mine
    for name in mine:
        more = {package for package in imports(tree(name).body) if not DISTRIBUTIONS[package] & here}
        looked_for = (
            brought(requirement for extra in guards(GUARDED.get(name, name)) for requirement in EXTRAS[extra])
            if more
            else set()
        )
        assert all(DISTRIBUTIONS[package] & looked_for for package in more), (name, more)


def test_each_package_that_is_looked_for_comes_with_the_extra_that_the_message_names():
    looked_for = [
        (name, extra, needed) for name in files() for extra, packages in guards(name).items() for needed in packages
    ]
    assert len(looked_for) > 20
    for name, extra, package in looked_for:
        assert DISTRIBUTIONS[package] & brought(EXTRAS[extra]), (name, package)


def test_a_hospital_gets_no_torch_and_no_client_of_a_remote_model():
    assert not everything(BASE) & NOT_AT_A_HOSPITAL
    assert everything(brought(EXTRAS["dev"])) >= NOT_AT_A_HOSPITAL


def test_a_requirement_has_the_same_range_wherever_it_stands():
    ranges = {}
    for requirement in REQUIREMENTS:
        ranges.setdefault(requirement.name, set()).add(str(requirement.specifier))
        assert {bound.operator for bound in requirement.specifier} == {">=", "<"}, requirement
    assert {name: specifiers for name, specifiers in ranges.items() if len(specifiers) > 1} == {}


HOSPITAL = everything(BASE)
REMOVED = {*re.search(r"uv pip uninstall .*/python (.*)", (ROOT / "Makefile").read_text("utf-8"))[1].split()}
"""What `make hospital` takes out again."""
HIDDEN = sorted(
    package for package, names in DISTRIBUTIONS.items() if not names & (HOSPITAL - REMOVED) and package not in NAMES
)
ALONE = """
import contextlib, importlib, socket, sys
def refuse(*_, **__):
    sys.exit("an import needs the network")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = socket.gethostbyname = refuse
for module in sys.argv[1:]:
    importlib.import_module(module)
sys.argv[1:] = []
with contextlib.redirect_stderr(sys.stdout):
    for command in ("server", "simulations"):
        try:
            importlib.import_module(f"{command}.command").main()
        except SystemExit as end:
            print(end.code)
"""


def test_with_the_base_alone_a_hospital_s_code_loads_and_the_other_programs_say_what_to_install(tmp_path):
    assert {"hf_xet", "hydra", "pandas", "sentence_transformers", "sklearn", "torch", "transformers", "uv"} <= {*HIDDEN}
    mine = [name for name in files() if folder_of(name) in {"client", "common"} and GUARDED.get(name) is None]
    modules = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in mine]
    lines = run_without(HIDDEN, ALONE, tmp_path / "installed", *modules).splitlines()
    missing = "what is installed; expected the package hydra; got none. In the folder of the source: make"
    assert lines == [
        f"caucus-coordinator: {missing} coordinator",
        "2",
        "caucus-simulate: reading the settings",
        f"caucus-simulate: {missing} demo",
        "2",
    ]


def test_nothing_advises_to_install_us_by_a_name_that_is_another_project_s_on_pypi():
    advice = re.compile(r"pip install [^`\n]*\bcaucus\b(?!-)")
    folders = ("client", "common", "configs", "protos", "server", "simulations", ".github")
    kinds = {".py", ".md", ".yaml", ".sh"}
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    texts = [path.read_text("utf-8") for path in [*paths, ROOT / "README.md", ROOT / "Makefile"]]
    assert [text for text in texts if advice.search(text)] == []
