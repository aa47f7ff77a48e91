"""`caucus-coordinator check`: what a run would use and what it lacks, part by part, before anything private is touched.

Every part is built by itself, so that all that is missing is told at once. No record is read; of a task's files public
text alone is. Language models are asked whether they would answer, local ones have configuration and tokenizer loaded
but no weights, which are read for their digest.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common.errors import CaucusError, ConfigError
from common.models.encoder import Encoder
from common.system.commands import add_command
from server.app import Parts, build, composed
from server.failure import WRONG_SETTINGS, summary
from server.llm import providers
from server.llm.spending import Spending

FILES = {
    "task": ("test", "public_text"),
    "method": ("vocabulary", "few_shot"),
    "evaluation": ("target", "vocabulary"),
    "secagg": ("roster",),
}
"""Settings that name a file."""

Look = Callable[[], tuple[str, str]]
"""Builds one part; its digest, if it has one, and what it is."""

Why = Callable[[Callable[[], None]], str | None]

_SHORT = 16
"""Hex digits of a digest that a table shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One part of a run.

    Attributes:
        part: What it is for.
        name: Which one is chosen.
        fine: Whether the run can use it.
        digest: Of what it is, where it has one; parties must have the same encoder.
        said: What it is, or what is missing and what to do.
    """

    part: str
    name: str
    fine: bool
    digest: str = ""
    said: str = ""


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `check`."""
    parser = add_command(
        commands,
        "check",
        _check,
        summary="say what a run would use and what it lacks; exit code 1 if anything",
        description="Look at every part of a run by itself: models, keys, encoder, files. Nothing private is read.",
        example="caucus-coordinator check embedding=biobert",
    )
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="such as embedding=biobert")
    parser.add_argument("--json", action="store_true", help="as JSON")


def _check(chosen: argparse.Namespace) -> Iterator[str]:
    config = composed(list(chosen.overrides))
    findings = preflight(config, build, lambda: Parts(config).plan.digest().hex(), _why)
    if chosen.json:
        yield json.dumps(for_json(findings), indent=2, ensure_ascii=False)
    else:
        yield from table(findings)
    missing = [finding for finding in findings if not finding.fine]
    if missing:
        raise CaucusError("not ready", expected="every part", got=f"{len(missing)} that a run could not use")


def _why(look: Callable[[], None]) -> str | None:
    try:
        look()
    except (CaucusError, *WRONG_SETTINGS) as error:
        return summary(error)
    return None


def preflight(config: Any, build: Callable[..., Any], plan: Callable[[], str], why: Why) -> list[Finding]:  # noqa: ANN401
    """Look at every part.

    Args:
        config: The composed configuration.
        build: Makes a part from its section.
        plan: Makes the whole run's plan and returns its digest; asked only if all else is fine.
        why: Runs a look at one part; what is wrong in one line, or None.
    """
    parts = _Parts(config, build)
    looks: list[tuple[str, str, Look]] = [
        ("task", str(config.task.get("name", "demo_notes")), parts.task),
        *((setting, path, partial(_file, path)) for setting, path in _files(config)),
        ("encoder", _named(config.embedding), parts.encoder),
        ("method", config.method.name, partial(parts.other, "method")),
        ("evaluation", config.evaluation.model, partial(parts.other, "evaluation")),
    ]
    used = list(config.llm.models) if config.llm.use is None else list(config.llm.use)
    looks += [
        ("language model", _named(config.llm.models.get(one) or {}, one), partial(parts.model, one)) for one in used
    ]
    if tracking := config.get("tracking"):
        looks.append(("tracking", str(tracking), partial(_installed, str(tracking))))
    findings = [_finding(*look, why) for look in looks]
    if all(finding.fine for finding in findings):
        findings.append(_finding("plan", config.method.name, lambda: (plan(), f"ε = {config.privacy.epsilon}"), why))
    return findings


def table(findings: list[Finding]) -> Iterator[str]:
    """One line a part."""
    widths = [max(len(getattr(finding, name)) for finding in findings) for name in ("part", "name")]
    for finding in findings:
        digest = f"{finding.digest[:_SHORT]:{_SHORT}}"
        state = "ok     " if finding.fine else "MISSING"
        line = f"{state}  {finding.part:{widths[0]}}  {finding.name:{widths[1]}}  {digest}  {finding.said}"
        yield line.rstrip()


def for_json(findings: list[Finding]) -> dict[str, object]:
    """The same, for programs."""
    return {"ready": all(finding.fine for finding in findings), "parts": [asdict(finding) for finding in findings]}


def _files(config: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    for section, names in FILES.items():
        for name in names:
            if path := config[section].get(name):
                yield f"{section}.{name}", str(path)


def _finding(part: str, name: str, look: Look, why: Why) -> Finding:
    seen: list[tuple[str, str]] = []
    wrong = why(lambda: seen.append(look()))
    digest, said = seen[0] if seen else ("", wrong or "")
    return Finding(part=part, name=name, fine=wrong is None, digest=digest, said=said)


class _Parts:
    """The parts of one configuration, each built once."""

    def __init__(self, config: Any, build: Callable[..., Any]) -> None:  # noqa: ANN401
        self._config, self._build = config, build
        self._task: Any = None
        self._encoder: Encoder | None = None

    def task(self) -> tuple[str, str]:
        self._task = self._build(self._config.task)
        return "", f"{len(self._task.task().labels)} labels"

    def encoder(self) -> tuple[str, str]:
        encoder: Encoder = self._build(self._config.embedding)
        digest = encoder.digest
        encoder.encode(["one text"])  # whether its vectors are finite shows only then
        self._encoder = encoder
        return digest, f"{encoder.dimensions} dimensions"

    def other(self, section: str) -> tuple[str, str]:
        self._build(self._config[section])
        return "", ""

    def model(self, name: str) -> tuple[str, str]:
        specs = self._config.llm.models
        offered: dict[str, Any] = {
            one: self._build(specs[one], _partial_=True) if one == name else None for one in specs
        }
        encoder = self._encoder or Encoder.hashed_ngrams()  # a missing one was told already, and hides nothing else
        built = providers.providers(
            offered, use=[name], public_texts=self._public_texts, encoder=encoder,
            experiment_seed=self._config.experiment_seed, spending=Spending(), folder=None,
        )  # fmt: skip
        built[name].check()
        return built[name].identity, "on somebody else's machine" if built[name].remote else "on this machine"

    def _public_texts(self) -> list[str]:
        if self._task is None:
            raise ConfigError("public texts", expected="a task that can be read", got="none")
        texts: list[str] = self._task.public_texts()
        return texts


def _file(path: str) -> tuple[str, str]:
    if not (Path(path).is_file() and os.access(path, os.R_OK)):
        raise ConfigError("file", expected="one that can be read", got="none", where=path)
    return "", ""


def _installed(module: str) -> tuple[str, str]:
    if find_spec(module) is None:
        raise ConfigError("tracking", expected="an installed package", got="none", do="pip install 'caucus[tracking]'")
    return "", ""


def _named(section: Mapping[str, Any], name: str = "") -> str:
    """What a section's part is called: the model it names, else its class."""
    model = section.get("model") or section.get("name_or_path")
    called = str(model or section.get("_target_", "unknown").rpartition(".")[2])
    return f"{name} ({called})" if name else called
