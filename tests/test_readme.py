"""The READMEs hold what they say: commands can be typed and compose, settings and files exist, links lead somewhere."""

import importlib.util
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
import yaml

from client.command import MODULES as PARTY
from client.command import main as party
from server.command import MODULES as COORDINATOR
from server.command import main as coordinator
from server.prepare.compose import compose_settings
from server.settings.reading import mapping_of
from tests.support.requirements import PROJECT, ROOT
from tests.support.runs import command, labelled, read, tiny

PACKAGES = ("server", "client", "common", "protos", "configs", "simulations", "tests")

GITHUB = sorted((ROOT / ".github").glob("*.md"))
OURS = [
    path
    for name in PACKAGES
    for path in sorted((ROOT / name).rglob("*.md"))
    if "templates" not in path.parts  # of pages that programs write
]
TEXTS = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in [ROOT / "README.md", *OURS, *GITHUB]}
# The change log is about names that are gone, too.
PAGES = {name: text for name, text in TEXTS.items() if name != ".github/CHANGELOG.md"}

FENCE = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def fenced(page):
    """The lines of all fenced blocks of a page, continued lines joined."""
    return "\n".join(FENCE.findall(PAGES[page])).replace("\\\n", " ").splitlines()


def spans(page):
    """What stands between backticks in a page's prose."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", FENCE.sub("", PAGES[page]))]


def commands(page):
    """Every command of ours in a fenced block or between backticks, as words."""
    lines = [line for line in [*fenced(page), *spans(page)] if "caucus-" in line]
    words = [shlex.split(line, comments=True) for line in lines]
    return [line for line in words if line and line[0].startswith(".venv/bin/caucus-")]


COMMANDS = [(page, words) for page in PAGES for words in commands(page)]


def overrides(words):
    return [word for word in words[1:] if "=" in word and not word.startswith("hydra")]


def first(*wanted):
    """The first command with all these words."""
    return next(words for _, words in COMMANDS if set(wanted) <= {Path(words[0]).name, *words[1:]})


def test_there_are_commands_of_each_program_to_test():
    assert {Path(words[0]).name for _, words in COMMANDS} == {"caucus-simulate", "caucus-coordinator", "caucus-party"}


TABLE = re.compile(r"^(?:\|.*\n)+", re.MULTILINE)


@pytest.mark.parametrize("page", TEXTS)
def test_a_table_has_a_head_and_rows_of_its_width(page):
    for table in TABLE.findall(FENCE.sub("", TEXTS[page])):
        head, rule, *rows = (re.sub(r"`[^`]*`|\\\|", "", row) for row in table.splitlines())
        assert re.fullmatch(r"\|(?:[ :]*-+[ :]*\|)+", rule), head
        assert {row.count("|") for row in rows} == {head.count("|")} == {rule.count("|")}, head


def test_every_command_is_one_that_the_package_installs():
    verbs = {"caucus-coordinator": sum(COORDINATOR.values(), ()), "caucus-party": sum(PARTY.values(), ())}
    for _, words in COMMANDS:
        name = Path(words[0]).name
        assert name in PROJECT["scripts"]
        assert name not in verbs or words[1] in verbs[name], words


@pytest.mark.parametrize("words", [words for _, words in COMMANDS if "simulate" not in words[0]], ids=" ".join)
def test_every_command_has_the_arguments_that_it_takes(words, monkeypatch):
    main, module = (coordinator, "server.command") if "coordinator" in words[0] else (party, "client.command")
    monkeypatch.setattr(f"{module}.run", lambda parser, arguments, **_: parser.parse_args(arguments))
    assert main(words[1:]).lines


@cache
def composes(*chosen):
    """Whether these overrides compose: pages show the same ones again and again."""
    return bool(compose_settings(chosen).run)


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=lambda value: " ".join(value)[:60] if value else "")
def test_every_command_composes(page, words):
    # `llm.use` names models of the first, and an experiment brings settings of its own.
    groups = [override for override in overrides(words) if override.startswith(("llm=", "+experiment="))]
    for override in overrides(words):
        # A sweep composes one value at a time.
        name, _, values = override.partition("=")
        for value in values.split(",") if "--multirun" in words else [values]:
            given = [f"{name}={value}"] if name.startswith("task") is False else []
            assert composes(*given, *[group for group in groups if group not in given])
    assert composes(*([] if "--multirun" in words else overrides(words)))


@pytest.mark.parametrize("page", PAGES)
def test_every_target_of_make_and_every_module_that_is_run_exists(page):
    targets = " ".join(re.findall(r"^([a-z -]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)).split()
    for line in [*fenced(page), *spans(page)]:
        for target in re.findall(r"^make ([a-z-]+)", line):
            assert target in targets, line
        for module in re.findall(r"python -m (\S+)", line):
            origin = importlib.util.find_spec(module).origin
            # Without these lines the module would be imported, say nothing and succeed.
            runs = origin.endswith("__init__.py") or 'if __name__ == "__main__":' in Path(origin).read_text("utf-8")
            assert runs or not module.startswith(PACKAGES), line


SETTING = r"(?:method|llm|federation|privacy|task|embedding|secagg|engine|evaluation|client|tracking)[a-z_.]*"


@cache
def configurations():
    """Configurations that have, together, every setting."""
    files = ["embedding=pretrained", "embedding.name_or_path=x", "task=csv"]
    methods = sorted(path.stem for path in (ROOT / "configs" / "method").glob("*.yaml"))
    named = {"aug_pe_plus": ["method.vocabulary=x"], "dp_kps": ["method.vocabulary=x"]}
    return [mapping_of(compose_settings([*files, f"method={method}", *named.get(method, [])])) for method in methods]


def exists(setting, config):
    for key in setting.split("."):
        if not isinstance(config, dict) or key not in config:
            return False
        config = config[key]
    return True


NAMED = [
    (page, span)
    for page in PAGES
    for span in spans(page)
    if re.fullmatch(SETTING, span) and "." in span and not span.endswith((".json", ".yaml", ".py"))
]


@pytest.mark.parametrize(("page", "setting"), NAMED)
def test_every_setting_that_a_readme_names_exists(page, setting):
    assert any(exists(setting, config) for config in configurations()), setting


OVERRIDE = rf"'?\+?(?:{SETTING}|experiment|embedding@[a-z_.]+)='?.+"


def as_overrides(span):
    """The words of a span, if all of them are settings with values."""
    if not re.fullmatch(OVERRIDE, span):
        return []
    words = shlex.split(span)
    return words if all(re.fullmatch(OVERRIDE, word) for word in words) else []


ABLATIONS = [(page, span) for page in PAGES for span in dict.fromkeys(spans(page)) if as_overrides(span)]


@pytest.mark.parametrize(("page", "ablation"), ABLATIONS)
def test_every_setting_that_a_readme_shows_composes(page, ablation):
    assert composes(*as_overrides(ablation))


def test_the_first_command_runs_as_written_on_a_small_corpus(tmp_path):
    words = first("caucus-simulate", "method=wasp")
    small = ("task.records_per_party=16", "task.test_records=24", "task.public_notes=120", "method.samples=60")
    code, output = command(tmp_path, *words[1:], *small, f"hydra.run.dir={tmp_path}/run")
    assert code == 0, output
    *_, report, as_json, following = output.rstrip().splitlines()
    assert report == f"report:   {tmp_path}/run/report.html"
    assert as_json == f"as JSON:  {tmp_path}/run/report.json"
    assert following.startswith("next:     ")
    assert Path(following.split()[1]).name in {"caucus-simulate", "caucus-coordinator"}
    page = TEXTS["server/report/README.md"].split("## Files of a run")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ((?:`[a-z._/]+`(?:, )?)+) \|", page, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(listed) == 18
    assert {name.rstrip("/") for name in listed} == {path.name for path in (tmp_path / "run").iterdir()}


def test_the_command_for_files_runs_as_written_on_small_files(tmp_path):
    words = first("caucus-simulate", "task=csv")
    files = [setting for setting in labelled(tmp_path / "data") if not setting.startswith("task.labels")]
    written = [word for word in overrides(words) if not word.startswith("task")]
    written = ["federation.records=30" if word == "federation.records=300" else word for word in written]
    folder = tiny(tmp_path / "run", *files, *written)
    assert read(folder, "run.json")["parties"] == 10


def test_the_price_is_printed_as_written(capsys):
    words = first("caucus-coordinator", "plan")
    assert coordinator(words[1:]) == 0
    assert "noise 3.531" in capsys.readouterr().out


def anchors(path):
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS)
def test_every_link_leads_somewhere(page):
    for link in re.findall(r"\]\(([^)]+)\)", TEXTS[page]):
        target, _, anchor = link.partition("#")
        if target.startswith("https://"):
            continue
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), link
        assert not anchor or anchor in anchors(path), link


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_readme_names_exists(page):
    names = rf"(?<![\w/.])(?:{'|'.join(PACKAGES)})/[\w/]+\.(?:py|yaml|proto)\b"
    for name in re.findall(names, PAGES[page]):
        assert (ROOT / name).exists(), name


def test_the_citation_is_of_this_version_and_the_changes_have_its_date():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert f"\n## {citation['version']} - {citation['date-released']}\n" in TEXTS[".github/CHANGELOG.md"]
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
