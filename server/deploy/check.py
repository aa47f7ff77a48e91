"""`caucus-coordinator check`: what a run would use and what it lacks, part by part, before anything private is touched.

Every part is built by itself, so that everything that is missing is reported at once. No record is read; of a task's
files only public text is. Remote language models are asked whether they would answer. Of local ones, configuration and
tokenizer are loaded, and the weights are read for their digest but not loaded.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from common.errors import CaucusError, ConfigError
from common.models.encoder import Encoder
from common.system.commands import add_command
from server.app import build_parts
from server.configuration import asked
from server.draft import build, without_auto
from server.failure import WRONG_SETTINGS, summary
from server.llm import providers
from server.llm.base import MODES
from server.llm.spending import Spending
from server.planning.plan import EXPECTED_RECORDS, large_delta
from server.planning.signal import hopeless, signals
from server.setting_checks import FILES, check_file, expected_records, given_paths
from server.tasks.sources import Source

Look = Callable[[], tuple[str, str]]
"""Builds one part and returns its digest (or an empty text) and a description."""

Why = Callable[[Callable[[], None]], str | None]

_SHORT = 16
"""Hex digits of a digest in the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One part of a run.

    Attributes:
        part: Role in the run, such as `encoder`.
        name: Name of the chosen part.
        ok: Whether the run can use it.
        digest: Digest of the part, or empty; parties must have the same encoder.
        detail: Description of the part, or what is missing and what to do.
    """

    part: str
    name: str
    ok: bool
    digest: str = ""
    detail: str = ""


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `check`."""
    parser = add_command(
        commands,
        "check",
        _check,
        summary="list what a run would use and what is missing; exit code 1 if anything is",
        description="Check every part of a run by itself: models, keys, encoder, files. Nothing private is read.",
        example="caucus-coordinator check embedding=biobert",
    )
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="such as embedding=biobert")
    parser.add_argument("--json", action="store_true", help="as JSON")


def _check(chosen: argparse.Namespace) -> Iterator[str]:
    config = asked(list(chosen.overrides))
    findings = preflight(config, build, partial(_plan, config), _why)
    if chosen.json:
        yield json.dumps(for_json(findings), indent=2, ensure_ascii=False)
    else:
        yield from table(findings)
    missing = [finding for finding in findings if not finding.ok]
    if missing:
        raise CaucusError("not ready", expected="every part", got=f"{len(missing)} that a run could not use")


def _plan(config: Any) -> tuple[str, str]:  # noqa: ANN401 Hydra's
    parts = build_parts(config)
    records = expected_records(config)
    warnings = hopeless(signals(parts.plan, parts.method.compared(parts.source.task()), records)).values()
    facts = [f"ε = {parts.epsilon:g}", *warnings, *large_delta(parts.plan.delta, records, EXPECTED_RECORDS)]
    return parts.plan.digest().hex(), "; ".join(facts)


def _why(look: Callable[[], None]) -> str | None:
    try:
        look()
    except (CaucusError, *WRONG_SETTINGS) as error:
        return summary(error)
    return None


def preflight(config: Any, build: Callable[..., Any], plan: Look, why: Why) -> list[Finding]:  # noqa: ANN401
    """Check every part.

    Args:
        config: The composed configuration.
        build: Makes a part from its section.
        plan: Makes the whole run's plan; called only if all other parts are ok.
        why: Runs the check of one part and returns the error in one line, or None.
    """
    parts = _Parts(config, build)
    looks: list[tuple[str, str, Look]] = [
        ("task", str(config.task.get("name", "demo_notes")), parts.task),
        *((setting, path, partial(_file, setting, path)) for setting, path in given_paths(config, FILES)),
        ("encoder", _named(config.embedding), parts.encoder),
        ("method", config.method.name, parts.method),
        ("evaluation", config.evaluation.model, parts.evaluation),
    ]
    used = list(config.llm.models) if config.llm.use is None else list(config.llm.use)
    looks += [
        ("language model", _named(config.llm.models.get(name) or {}, name), partial(parts.model, name)) for name in used
    ]
    if tracking := config.get("tracking"):
        looks.append(("tracking", str(tracking), partial(_installed, str(tracking))))
    findings = [_finding(*look, why) for look in looks]
    if all(finding.ok for finding in findings):
        findings.append(_finding("plan", config.method.name, plan, why))
    return findings


def table(findings: list[Finding]) -> Iterator[str]:
    """One line for each part."""
    widths = [max(len(getattr(finding, name)) for finding in findings) for name in ("part", "name")]
    for finding in findings:
        digest = f"{finding.digest[:_SHORT]:{_SHORT}}"
        state = "ok     " if finding.ok else "MISSING"
        line = f"{state}  {finding.part:{widths[0]}}  {finding.name:{widths[1]}}  {digest}  {finding.detail}"
        yield line.rstrip()


def for_json(findings: list[Finding]) -> dict[str, object]:
    """The findings for `--json`."""
    return {"ready": all(finding.ok for finding in findings), "parts": [asdict(finding) for finding in findings]}


def _finding(part: str, name: str, look: Look, why: Why) -> Finding:
    results: list[tuple[str, str]] = []
    error = why(lambda: results.append(look()))
    digest, detail = results[0] if results else ("", error or "")
    return Finding(part=part, name=name, ok=error is None, digest=digest, detail=detail)


class _Parts:
    """The parts of one configuration, each built once."""

    def __init__(self, config: Any, build: Callable[..., Any]) -> None:  # noqa: ANN401
        self._config, self._build = config, build
        self._task: Source | None = None
        self._encoder: Encoder | None = None

    def task(self) -> tuple[str, str]:
        source: Source = self._build(self._config.task)
        self._task = source
        return "", f"{len(source.task().labels)} labels"

    def encoder(self) -> tuple[str, str]:
        encoder: Encoder = self._build(self._config.embedding)
        digest = encoder.digest
        encoder.encode(["one text"])  # raises if its vectors are not finite
        self._encoder = encoder
        return digest, f"{encoder.dimensions} dimensions"

    def method(self) -> tuple[str, str]:
        self._build(without_auto(self._config).method)
        return "", ""

    def evaluation(self) -> tuple[str, str]:
        self._build(self._config.evaluation)
        return "", ""

    def model(self, name: str) -> tuple[str, str]:
        specs = self._config.llm.models
        offered: dict[str, Any] = {
            model: self._build(specs[model], _partial_=True) if model == name else None for model in specs
        }
        encoder = self._encoder or Encoder.hashed_ngrams()  # a missing encoder is reported already
        built = providers.providers(
            offered,
            use=[name],
            public_texts=lambda: self._source().public_texts(),
            public_examples=lambda: self._source().public_examples(),
            encoder=encoder,
            experiment_seed=self._config.experiment_seed,
            spending=Spending(),
            folder=None,
        )
        built[name].check()
        place = "on somebody else's machine" if built[name].remote else "on this machine"
        declined = [mode for mode in MODES if mode in built[name].declines]
        return built[name].identity, f"{place}; declines {', '.join(declined)}" if declined else place

    def _source(self) -> Source:
        if self._task is None:
            raise ConfigError("public texts", expected="a task that can be read", got="none")
        return self._task


def _file(name: str, path: str) -> tuple[str, str]:
    check_file(name, path)
    return "", ""


def _installed(module: str) -> tuple[str, str]:
    if find_spec(module) is None:
        raise ConfigError("tracking", expected="an installed package", got="none", do="pip install 'caucus[tracking]'")
    return "", ""


def _named(section: Mapping[str, Any], name: str = "") -> str:
    """Name of a section's part: its model if it has one, else its class."""
    model = section.get("model") or section.get("name_or_path")
    kind = str(model or section.get("_target_", "unknown").rpartition(".")[2])
    return f"{name} ({kind})" if name else kind
