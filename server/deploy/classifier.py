"""`caucus-coordinator classifier`: a folder with two classifiers of texts, and a card that describes them."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from common.errors import ConfigError
from common.models.encoder import Encoder
from common.phrases import percent
from common.system.commands import Commands, add_command
from common.system.progress import progress
from server.deploy.results import add_run, run_folder
from server.documents.class_sums import TrainedClassifier
from server.documents.metrics import Metrics
from server.documents.run import TRANSFER
from server.evaluation import text_classifier
from server.evaluation.remote_encoder import RemoteEncoder
from server.evaluation.small_model import labels_of, linear_classifier
from server.metrics.accuracy import SoftLabels, sizes
from server.prepare.build import build
from server.prepare.compose import load_settings
from server.report.quality import read_quality
from server.run_folder import read_candidates
from server.settings.sections import Part

FOLDER = "classifier"
_UNPROTECTED = """
Not protected: the accuracy on test texts. It was counted on real texts without noise, so this guarantee says nothing
about these texts.
"""
STUDENT = "texts.json"
CARD = "README.md"
_TEXT = """# Classifiers of texts

Labels: {labels}

| file | learned from | accuracy on test texts |
|---|---|---|
| `{released}` | {released_source} | {released_accuracy} |
| `{student}` | {student_source} | not measured |

{statement} The texts of the run, from which `{student}` was learned, have the same guarantee.
{unprotected}
    {make_encoder}

    from server.evaluation.text_classifier import TextClassifier

    classifier = TextClassifier.load("{released}", encoder)
    classifier.predict(["..."]), classifier.predict_proba(["..."]), classifier.classes_

Each is linear over the vectors of the encoder with the digest {encoder:.16}; another one is refused. The
probabilities are as soft as a model learns most from, and are not calibrated. The classifiers know the labels above and
no others: a text of another subject gets one of them too. Nobody has tested them for any medical use.
"""


def register(commands: Commands) -> None:
    """Add the `classifier` command."""
    parser = add_command(
        commands,
        "classifier",
        _write,
        summary="write the classifiers that class sums make possible, and a card",
        description="Write into RUN/classifier the classifier that the released numbers of a run are, and one trained "
        "on its texts. Both have the run's guarantee; the accuracy on the card has none.",
        example="caucus-coordinator classifier runs/mine",
    )
    add_run(parser)


def _write(chosen: argparse.Namespace) -> Iterator[str]:
    run = run_folder(chosen)
    embedding = load_settings(run).embedding
    with progress("training the classifier"):
        written = list(write_classifiers(run, build(embedding), _in_python(embedding)))
    yield from map(str, written)


def _in_python(encoder: Part) -> list[str]:
    """Return lines of Python code that build the encoder from these settings, for the card."""
    chosen = {name: value for name, value in encoder.settings.items() if value is not None}
    module, _, maker = str(chosen.pop("_target_")).rpartition(".Encoder.")
    arguments = ", ".join(f"{name}={value!r}" for name, value in chosen.items())
    if not module:
        return ["encoder = ...  # as the run's config.yaml has it (embedding)"]
    return [f"from {module} import Encoder", f"encoder = Encoder.{maker}({arguments})"]


def write_classifiers(run: Path, encoder: Encoder | RemoteEncoder, make_encoder: Sequence[str]) -> Iterator[Path]:
    """Write a folder with the classifiers and their card into a run folder; yield the path of each file.

    `make_encoder` has the lines of Python code that build the run's encoder, for the card.

    Raises:
        ConfigError: The run's method releases no numbers that define a classifier.
    """
    released = text_classifier.load_classifier(run)
    texts = [*read_candidates(run), *(public := read_candidates(run, TRANSFER))]
    labels = labels_of(texts)
    if released is None or len(sizes(labels)) < 2:
        what = f"this run has no {TrainedClassifier.FILE}, or not texts of two labels"
        raise ConfigError(what, where=run, do="Name a finished run of method=class_sums")
    student = linear_classifier(encoder.encode([text.text for text in texts]), texts)
    learned = "their probabilities" if isinstance(labels, SoftLabels) else "their labels"
    source = f"the run's texts and {learned}" + (f", and {len(public):,} public texts with theirs" if public else "")
    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    released.save(folder)
    text_classifier.classifier_document(
        student, source, run=released.run, encoder=released.encoder, privacy=released.privacy
    ).save(folder, STUDENT)
    measured = read_quality(Metrics.load_if_there(run) or Metrics()).released
    card = _TEXT.format(
        labels=", ".join(released.labels),
        released=TrainedClassifier.FILE,
        released_source=released.source,
        released_accuracy="not measured" if measured is None else percent(measured),
        student=STUDENT,
        student_source=source,
        statement=released.statement,
        unprotected="" if measured is None else _UNPROTECTED,
        make_encoder="\n    ".join(make_encoder),
        encoder=released.encoder,
    )
    (folder / CARD).write_text(card, encoding="utf-8")
    yield from (folder / name for name in (TrainedClassifier.FILE, STUDENT, CARD))
