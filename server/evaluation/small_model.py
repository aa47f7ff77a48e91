"""Accuracy on held-out texts of a small model trained on the synthetic texts, and the settings of the evaluation."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.domain import Record, is_one_population
from common.errors import ConfigError, DataError, InternalError
from common.labelled_files import named_by, read_texts
from common.models import checkpoints
from common.models.devices import device_here
from common.models.encoder import Encoder
from common.queries.terms import Extractor
from common.system.extras import needs
from server.domain import Candidate, has_label_sets
from server.evaluation.remote_encoder import RemoteEncoder
from server.metrics import accuracy
from server.metrics.accuracy import SoftLabels
from server.metrics.linear import LinearClassifier
from server.settings.evaluation import EvaluationSettings

_MAJORITY = "Share of the most frequent label of the test texts: the accuracy of a model that has learned nothing else."
Metric = Callable[[Sequence[str], Sequence[str]], float]
"""A user's metric: a function of the synthetic texts and their labels that returns a number
(`server/methods/YOUR_OWN.md`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(EvaluationSettings):
    """The settings of the evaluation, with the objects that they describe.

    Attributes:
        embedding: Encoder used only by the small model; if None, the run's encoder is used.
        own: The user's own metrics, keyed by name.
    """

    # What the parts of the settings make, in place of these.
    embedding: Encoder | RemoteEncoder | None = None  # type: ignore[assignment]
    own: Mapping[str, Metric] = field(default_factory=dict)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        EvaluationSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        configured: Mapping[str, object] = self.own
        for name, metric in configured.items():
            if not callable(metric):
                expected = "a function, as {_target_: module.function, _partial_: true}, or an object that is called"
                raise ConfigError(f"evaluation.own.{name}", expected=expected, got=type(metric).__name__)
        if self.domain_adaptation == "deep_coral" and (self.model != "network" or not self.target):
            raise ConfigError(
                "evaluation.domain_adaptation",
                expected="model network and a file of unlabelled target texts",
                got=f"model {self.model}, target {self.target}",
                do="Set evaluation.model=network evaluation.target=PATH",
            )
        if not self.deterministic:
            needs("evaluation.model", "torch", "transformers", extra="transformers")
        device_here(self.device, "evaluation.device")
        device_here(self.language_model.device, "evaluation.language_model.device")
        if self.model == "finetuned":
            from server.metrics import finetuned

            if not self.checkpoint:
                raise ConfigError(
                    "evaluation.checkpoint",
                    expected="a model to fine-tune, by name or path",
                    got="none",
                    do="Set evaluation.checkpoint=bert-base-uncased, or the path of its folder",
                )
            finetuned.check_checkpoint(self.checkpoint)
        if start := self.language_model.start:
            checkpoints.configuration(checkpoints.with_tokenizer(checkpoints.model_folder(start)), "masked", "causal")

    @property
    def uses_endpoint(self) -> bool:
        """Whether the small model's texts are sent to an endpoint, to which no private records may be sent."""
        return self.on_vectors and self.embedding is not None and not self.embedding.runs_here

    @property
    def definition(self) -> str:
        """Definition of the small model's metrics, for reports."""
        definition = accuracy.DEFINITIONS[self.model]
        if self.domain_adaptation == "deep_coral":
            definition += f" Adapted to unlabelled target texts by Deep CORAL, lambda = {self.weight:g}."
        return definition + " All texts as the sequences of their terms." * bool(self.vocabulary)


def with_encoder_model(evaluation: Evaluation) -> Evaluation:
    """Return the same settings with logistic regression on the encoder's vectors as the small model."""
    return replace(evaluation, model="encoder", domain_adaptation="none", target=None)


def metrics(
    candidates: Sequence[Candidate], held_out: Sequence[Record], evaluation: Evaluation, encoder: Encoder
) -> dict[str, Any]:
    """Return the fields of `metrics.json` for the small model, trained on synthetic texts and tested on held-out texts.

    A simulation adds `real_private`, the same model trained on the private records, without adaptation. The result is
    empty if there are no held-out texts. It contains only their number if texts have no labels or may have several
    labels.
    """
    if not held_out:
        return {}
    if has_label_sets(candidates) or is_one_population({record.label for record in held_out}):
        return {"test_records": len(held_out)}
    return {
        "definition": evaluation.definition,
        "test_records": len(held_out),
        "synthetic": score(candidates, held_out, evaluation=evaluation, encoder=encoder),
        "majority_class": majority_class(held_out),
        "real_private": None,
    }


def majority_class(held_out: Sequence[Record]) -> dict[str, Any]:
    """Measure the accuracy of a model that always predicts the most frequent label, on at least one held-out text."""
    most = max(Counter(record.label for record in held_out).values())
    return {"definition": _MAJORITY, "accuracy": most / len(held_out)}


def score(
    train: Sequence[Candidate | Record],
    test: Sequence[Record],
    *,
    evaluation: Evaluation,
    encoder: Encoder | None = None,
) -> dict[str, Any]:
    """Measure accuracy, macro-F1 and the confusion matrix on `test`, after training on `train`; see `predictions`.

    Raises:
        DataError: An unlabelled text to adapt to is a test text.
    """
    predicted, _ = predictions(train, test, evaluation=evaluation, encoder=encoder)
    right = [record.label for record in test]
    return {
        "records": len(train),
        "accuracy": accuracy.accuracy(predicted, right),
        "macro_f1": accuracy.macro_f1(predicted, right),
        "confusion": accuracy.confusion(predicted, right),
    }


def predictions(
    train: Sequence[Candidate | Record],
    test: Sequence[Record],
    *,
    evaluation: Evaluation,
    encoder: Encoder | None = None,
    experiment_seed: int = 0,
) -> tuple[list[str], str | None]:
    """Return a small model's labels for the test texts after training on `train`, and a reason if it was not fitted.

    Training uses the candidates' weights and, where they have any, their label probabilities.

    Raises:
        DataError: As in `score`.
    """
    target = _target(evaluation, test)
    if evaluation.vocabulary:
        with named_by("evaluation.vocabulary"):
            terms = read_texts(evaluation.vocabulary)
        extractor = Extractor(terms)
        train = [replace(text, text=_as_terms(text.text, terms, extractor)) for text in train]
        test, target = (
            [Record(_as_terms(record.text, terms, extractor), record.label) for record in records]
            for records in (test, target)
        )
    used_encoder = evaluation.embedding or encoder
    if evaluation.on_vectors and used_encoder is None:
        raise InternalError("encoder", expected="one, for the model", got="none")
    texts, weights, given = [text.text for text in train], weights_of(train), labels_of(train)
    test_texts = [record.text for record in test]
    if evaluation.deterministic:
        read_by = used_encoder if evaluation.model == "encoder" else None
        return accuracy.predict(texts, given, test_texts, train_weights=weights, encoder=read_by)
    labels: NDArray[Any]
    if isinstance(given, SoftLabels):
        names, labels = given.names, np.array(given.probabilities)
    else:
        names = tuple(sorted(set(given)))
        labels = np.searchsorted(names, given)
    text_weights = None if weights is None else np.array(weights)
    if evaluation.model == "network" and used_encoder is not None:
        from server.metrics import adaptation

        at = adaptation.train_and_predict(
            used_encoder.encode(texts),
            labels,
            used_encoder.encode(test_texts),
            target=used_encoder.encode([record.text for record in target]) if target else None,
            weight=evaluation.weight,
            weights=text_weights,
            epochs=evaluation.epochs or 50,
            experiment_seed=experiment_seed,
        )
    else:
        from server.metrics import finetuned

        at = finetuned.train_and_predict(
            texts,
            labels,
            test_texts,
            checkpoint=evaluation.checkpoint or "",
            epochs=evaluation.epochs or 10,
            device=evaluation.device,
            weights=text_weights,
            experiment_seed=experiment_seed,
        )
    return [names[label] for label in at], None


def labels_of(train: Sequence[Candidate | Record]) -> list[str] | SoftLabels:
    """Return the labels to learn: probabilities if all texts have them, otherwise one label per text."""
    rows = [text.probabilities for text in train if isinstance(text, Candidate) and text.probabilities]
    if not rows or len(rows) < len(train):
        return [text.label for text in train]
    names = tuple(sorted({name for row in rows for name in row}))
    return SoftLabels(names, tuple(tuple(row.get(name, 0.0) for name in names) for row in rows))


def linear_classifier(vectors: NDArray[np.float32], train: Sequence[Candidate]) -> LinearClassifier:
    """Fit a logistic regression (L2, C = 10) to the texts' (n, dim) vectors, or a constant for a single label."""
    labels = labels_of(train)
    if len(names := tuple(accuracy.sizes(labels))) == 1:
        return LinearClassifier(labels=names, weights=np.zeros((1, vectors.shape[1])), intercepts=np.zeros(1))
    weights = [text.weight for text in train]
    return LinearClassifier.of_regression(accuracy.logistic_regression(vectors, labels, weights))


def weights_of(train: Sequence[Candidate | Record]) -> list[float] | None:
    """Return the weights of the texts in training; None for records, which have no weights."""
    return [text.weight for text in train if isinstance(text, Candidate)] or None


def _target(evaluation: Evaluation, test: Sequence[Record]) -> list[Record]:
    """Return the unlabelled texts for domain adaptation; empty if that is off."""
    if evaluation.domain_adaptation == "none":
        return []
    with named_by("evaluation.target"):
        texts = read_texts(evaluation.target or "")
    if {" ".join(text.split()) for text in texts} & {" ".join(record.text.split()) for record in test}:
        raise DataError(
            "unlabelled target texts",
            expected="none of the test texts",
            got="some",
            where=evaluation.target,
            do="Use texts for adaptation that are not in the test set",
        )
    return [Record(text, "") for text in texts]


def _as_terms(text: str, terms: Sequence[str], extractor: Extractor) -> str:
    """Return a text's terms in order, each once. If the text has no terms, return it unchanged."""
    return "; ".join(terms[term] for term in extractor.first(text, len(terms))) or text
