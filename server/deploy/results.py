"""`caucus-coordinator evaluate` and `report`: recompute the figures and the report of a complete or partial run."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from common.errors import ConfigError
from common.labelled_files import named_by
from common.system.commands import Commands, add_command, as_json, command_to_copy
from common.system.progress import progress
from server.documents.codec import strict
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.run import TRANSFER, ZERO_SHOT, RunSummary
from server.evaluation import (
    figures,
    label_sets,
    nearness,
    of_texts,
    sections,
    small_model,
    spans,
    text_classifier,
)
from server.evaluation.small_model import Evaluation
from server.prepare.build import build
from server.prepare.compose import load_settings
from server.report.ending import ending
from server.report.verdict import WITHOUT_GAIN
from server.report.write import owner_if_simulated, write_report
from server.run_folder import read_candidates
from server.settings.evaluation import METRICS
from server.settings.sections import setting
from server.tasks import span_files
from server.tasks.sources import read_test_records


def register(commands: Commands) -> None:
    """Add the `evaluate` and `report` commands."""
    later = add_command(
        commands,
        "evaluate",
        _evaluate,
        summary="evaluate a run's texts on a test file; updates metrics.json and the report",
        description="Evaluate the texts of a run folder, complete or partial, on real texts that are no party's "
        "records. These figures replace those of the same name; all others are kept.",
        example="caucus-coordinator evaluate runs/mine --test test.csv --metrics utility fidelity",
    )
    later.add_argument(
        "--test", type=Path, required=True, help="a file of texts, with labels if the run has any; no party's records"
    )
    later.add_argument("--json", action="store_true", help="print metrics.json in place of the summary")
    later.add_argument(
        "--metrics", nargs="*", metavar="GROUP", help=f"any of {', '.join(METRICS)}; default: those of the run"
    )
    page = add_command(
        commands,
        "report",
        _report,
        summary="rewrite report.html and report.json and print the path of the page",
        description="Rewrite report.html and report.json from the other files of a run folder.",
        example="caucus-coordinator report runs/mine",
    )
    for parser in (later, page):
        add_run(parser)


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the run folder, which `run_folder` reads."""
    parser.add_argument("run", metavar="RUN", type=Path, help="the run folder; FOLDER/runs/NAME after `run`")


def run_folder(chosen: argparse.Namespace) -> Path:
    """Return the run folder named by the command's arguments; raise a ConfigError if it is none."""
    # A sweep's folder has no config.yaml: its own report must not be overwritten.
    run: Path = chosen.run
    if not (run / "config.yaml").is_file():
        raise ConfigError("run folder", expected="one with a config.yaml", got="none", where=run)
    return run


def _report(chosen: argparse.Namespace) -> Iterator[str]:
    yield str(write_report(run_folder(chosen)))


def _evaluate(chosen: argparse.Namespace) -> Iterator[str]:
    run = run_folder(chosen)
    with progress("evaluating"):
        metrics = _measured(run, chosen.test, chosen.metrics)
    if chosen.json:
        yield as_json(strict(metrics.to_json()))
    else:
        publish = command_to_copy("caucus-coordinator", "publish", str(run), "--license", "LICENCE")
        yield from ending(run, lambda judgement: "" if judgement in WITHOUT_GAIN else publish)


def _measured(run: Path, test: Path, chosen: Sequence[str] | None) -> Metrics:
    """Compute the figures on these test texts, add them to the run's `metrics.json`, and return its content.

    Figures of other names are kept, except accuracies of models trained on private records if they were measured on
    different test texts.
    """
    settings = load_settings(run)
    evaluation: Evaluation = build(settings.evaluation)
    if chosen is not None:
        evaluation = replace(evaluation, metrics=tuple(chosen))
    source, texts = build(settings.task), read_candidates(run)
    task = source.task()
    with named_by("--test"):
        held_out = read_test_records(test, task)
    measured = figures.Measured(
        candidates=task.classifier_inputs(texts),
        test=task.classifier_inputs(held_out),
        released=[text.text for text in texts],
        evaluation=evaluation,
        encoder=build(settings.embedding),
        experiment_seed=settings.experiment_seed,
        public=lambda: [example.text for example in source.public_examples()],
        language=task.language,
    )
    if not measured.candidates:
        raise ConfigError("run folder", expected="synthetic texts", got="none yet", where=run)
    before_answers = read_candidates(run, ZERO_SHOT)
    with named_by("--test"):
        spanned = span_files.read_examples(test, task.spans)
    document = text_classifier.load_classifier(run)
    trained = text_classifier.trained_of(document) if document else None
    made = (
        of_texts.run_groups(
            measured,
            without=task.classifier_inputs(before_answers),
            classifier=trained,
            transfer=task.classifier_inputs(read_candidates(run, TRANSFER)),
        )
        | sections.section_groups(texts, lambda: held_out, task)
        | spans.tagger_group(texts, before_answers, spanned, task, experiment_seed=settings.experiment_seed)
    )
    small = small_model.metrics(measured.candidates, measured.test, evaluation, measured.encoder)
    small |= nearness.nearest_texts(measured)
    tested = setting(settings, "task.test")
    if tested and Path(tested).is_file() and Path(tested).read_bytes() == test.read_bytes():
        name = None
        # Stays, as all other references, as a simulation has measured it on these texts.
        small.pop("real_private", None)
    else:
        name = test.name
        made = {title: group | {"test": name} if isinstance(group, dict) else group for title, group in made.items()}
        # As `real_private`, these were measured on other texts.
        small |= dict.fromkeys(("utility_real", "language_real", label_sets.REAL))
    before = Metrics.load_if_there(run) or Metrics()
    missing = of_texts.missing_record_groups(evaluation.metrics, before.content)
    metrics = before.adding(small | {"test": name} | made | missing)
    summary = RunSummary.load(run)
    if not summary.complete:
        metrics = metrics.adding({"note": f"the run is {summary.status}: these are the texts that it had so far"})
    with owner_if_simulated(Privacy.read(run, [], needed=False)):
        metrics.save(run)
    write_report(run)
    return metrics
