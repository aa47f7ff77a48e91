"""`caucus-coordinator check`: what a run would use and what is missing, before any private data is accessed.

Every part is built separately, so that everything missing is reported at once. No records are read, and only public
text is read from a task's files. Remote language models are asked for one text. For local models, the
configuration and tokenizer are loaded, and the weights are read to compute their digest, but not loaded.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial

from common.errors import CaucusError, ConfigError
from common.models.encoder import Encoder
from common.system.commands import Commands, add_command, as_json
from common.system.progress import progress
from server.failure import WRONG_SETTINGS, summary
from server.llm import providers
from server.llm.base import MODES
from server.llm.spending import Spending
from server.planning.make_plan import EXPECTED_RECORDS, large_delta
from server.planning.signal import hopeless, with_weakest_parts
from server.prepare.automatic import expected_records, resolve_auto
from server.prepare.build import build
from server.prepare.components import build_components, check_tracking
from server.prepare.compose import compose_settings
from server.prepare.files import FILES, check_file, given_paths
from server.prepare.model_checks import try_prompt
from server.settings.schema import Settings
from server.settings.sections import TARGET, Part, setting
from server.tasks.sources import Source

Probe = Callable[[], tuple[str, str]]
"""Function that builds one part, and returns its digest (or an empty text) and a description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFinding:
    """Result of the check for one part of a run.

    Attributes:
        part: Role of the part in the run, such as `encoder`.
        name: Name of the chosen part.
        ok: Whether the run can use it.
        digest: Digest of the part, or an empty text. The encoder's digest must be the same at all parties.
        detail: Description of the part, or what is missing and what to do.
    """

    part: str
    name: str
    ok: bool
    digest: str = ""
    detail: str = ""


def register(commands: Commands) -> None:
    """Add the `check` command."""
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
    settings = compose_settings(chosen.overrides)
    with progress("checking"):
        findings = preflight(settings)
    missing = [finding for finding in findings if not finding.ok]
    if chosen.json:
        yield as_json({"ready": not missing, "parts": [asdict(finding) for finding in findings]})
    else:
        yield from _table(findings)
    if missing:
        got, do = f"{len(missing)} parts that a run could not use", "Mend those that have a problem"
        raise CaucusError("not ready", got=got, do=do)


def _plan(settings: Settings) -> tuple[str, str]:
    parts = build_components(settings)
    records = expected_records(settings)
    estimates = with_weakest_parts(parts.plan, parts.method.compared(parts.source.task()), records)
    warnings = hopeless(estimates).values()
    facts = [f"ε = {parts.epsilon:g}", *warnings, *large_delta(parts.plan.delta, records, EXPECTED_RECORDS)]
    return parts.plan.digest().hex(), "; ".join(facts)


def preflight(settings: Settings) -> list[PartFinding]:
    """Check every part of a run, and the plan if all parts pass. Return a finding for each."""
    parts = _Parts(settings)
    probes: list[tuple[str, str, Probe]] = [
        ("task", str(setting(settings, "task.name") or "demo_notes"), parts.task),
        *((name, path, partial(_checked, check_file, name, path)) for name, path in given_paths(settings, FILES)),
        ("encoder", _named(settings.embedding), parts.encoder),
        ("method", settings.method.name, partial(_checked, lambda: build(resolve_auto(settings).method))),
        ("evaluation", settings.evaluation.model, partial(_checked, build, settings.evaluation)),
    ]
    probes += [
        ("language model", _named(model, name), partial(parts.model, name, model))
        for name, model in settings.llm.used.items()
    ]
    if settings.tracking:
        probes.append(("tracking", settings.tracking, partial(_checked, check_tracking, settings.tracking)))
    findings = [_finding(*probe) for probe in probes]
    if all(finding.ok for finding in findings):
        findings.append(_finding("plan", settings.method.name, partial(_plan, settings)))
    return findings


def _table(findings: list[PartFinding]) -> Iterator[str]:
    part, name = (max(len(getattr(finding, column)) for finding in findings) for column in ("part", "name"))
    for finding in findings:
        state = "ok     " if finding.ok else "MISSING"
        line = f"{state}  {finding.part:{part}}  {finding.name:{name}}  {finding.digest:16.16}  {finding.detail}"
        yield line.rstrip()


def _finding(part: str, name: str, probe: Probe) -> PartFinding:
    try:
        digest, detail = probe()
    except (CaucusError, *WRONG_SETTINGS) as error:
        return PartFinding(part=part, name=name, ok=False, detail=summary(error))
    return PartFinding(part=part, name=name, ok=True, digest=digest, detail=detail)


class _Parts:
    """Probes of the parts, of which later ones use the task and the encoder that earlier ones have built."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._task: Source | None = None
        self._encoder: Encoder | None = None

    def task(self) -> tuple[str, str]:
        source: Source = build(self._settings.task)
        self._task = source
        task = source.task()
        return "", f"{len(task.labels)} labels" if task.labelled else "no labels"

    def encoder(self) -> tuple[str, str]:
        encoder: Encoder = build(self._settings.embedding)
        digest = encoder.digest
        encoder.encode(["one text"])  # raises if its vectors are not finite
        self._encoder = encoder
        return digest, f"{encoder.dimensions} dimensions"

    def model(self, name: str, model: Part) -> tuple[str, str]:
        encoder = self._encoder or Encoder.hashed_ngrams()  # a missing encoder is reported already
        built = providers.providers(
            {name: build(model, partial=True)},
            public_texts=lambda: self._source().public_texts(),
            public_examples=lambda: self._source().public_examples(),
            encoder=encoder,
            experiment_seed=self._settings.experiment_seed,
            spending=Spending(),
            folder=None,
        )
        built[name].check()
        if built[name].remote and self._task is not None:
            try_prompt(built[name], self._task.task())
        place = "on somebody else's machine" if built[name].remote else "on this machine"
        declined = [mode for mode in MODES if mode in built[name].declines]
        return built[name].identity, f"{place}; declines {', '.join(declined)}" if declined else place

    def _source(self) -> Source:
        if self._task is None:
            raise ConfigError("public texts need a task that can be read", do="Mend the task first")
        return self._task


def _checked(check: Callable[..., object], *arguments: object) -> tuple[str, str]:
    """Return that nothing is to be said about a part, unless the check raises an error."""
    check(*arguments)
    return "", ""


def _named(part: Part, name: str = "") -> str:
    """Return the name of a part's model, or the name of the part's class if it has no model."""
    kind = part.model or str(part.settings[TARGET]).rpartition(".")[2]
    return f"{name} ({kind})" if name else kind
