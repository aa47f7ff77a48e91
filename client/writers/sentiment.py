"""Sentiment of a text, with confidence, used to keep a record's tone in its abstractions (RPSG, appendix B.1)."""

from functools import cache
from typing import Any, NamedTuple, Protocol

from common.models import checkpoints
from common.system.extras import needs


class Mood(NamedTuple):
    """The sentiment of one text: a polarity of 1, -1 or 0 (neither), and the judgement's confidence in [0, 1]."""

    polarity: int
    confidence: float


class Sentiment(Protocol):
    """A classifier of sentiment polarity."""

    def judge(self, text: str) -> Mood:
        """Return the sentiment of a text."""


class Vader:
    """VADER (Hutto and Gilbert 2014), which uses a lexicon and rules, and no weights.

    The sign of its compound score c in [-1, 1] is the polarity, and the confidence is (1 + |c|) / 2, so that the
    paper's threshold 0.55 is |c| >= 0.1.

    Raises:
        ConfigError: The vaderSentiment package is not installed.
    """

    def __init__(self) -> None:
        needs("sentiment vader", "vaderSentiment", extra="transformers")

    def judge(self, text: str) -> Mood:
        """Return the sentiment of a text."""
        score = _vader().polarity_scores(text)["compound"]
        return Mood((score > 0) - (score < 0), (1 + abs(score)) / 2)


class Classifier:
    """A transformers classifier with labels that contain "positive" or "negative" (or LABEL_1 and LABEL_0).

    Other labels count as neither. The paper uses siebert/sentiment-roberta-large-english.

    Args:
        name_or_path: A folder, or a name in the local cache; nothing is downloaded, and code that comes with the model
            is not run.
        device: Device, as torch names it.

    Raises:
        ConfigError: There is no such model on this machine.
    """

    def __init__(self, name_or_path: str, device: str = "cpu") -> None:
        self._model, self._tokenizer = checkpoints.load_checkpoint(
            name_or_path, "AutoModelForSequenceClassification", what="sentiment model", device=device
        )

    def judge(self, text: str) -> Mood:
        """Return the sentiment of a text."""
        import torch

        given = self._tokenizer(text, return_tensors="pt", truncation=True).to(self._model.device)
        with torch.inference_mode():
            chances = self._model(given["input_ids"], attention_mask=given["attention_mask"]).logits[0].softmax(-1)
        best = int(chances.argmax())
        return Mood(_polarity(str(self._model.config.id2label[best])), float(chances[best]))


def _polarity(label: str) -> int:
    name = label.lower()
    return (name.startswith("pos") or name == "label_1") - (name.startswith("neg") or name == "label_0")


@cache
def _vader() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()
