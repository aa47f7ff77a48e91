"""The questions of a plan in words, in the reader's language, from the sentences beside this file."""

from collections.abc import Mapping

from common.page.words import ENGLISH, catalogue
from common.queries.class_sums import ClassSumsSpec
from common.queries.label_sets import LabelSetsSpec
from common.queries.page import Spec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.section_order import SectionOrderSpec

NUMBERS: Mapping[str, tuple[str, ...]] = {
    ClassSumsSpec.kind: ("sums", "directions"),
    LabelSetsSpec.kind: ("labels_per_record",),
    QuestionnaireSpec.kind: ("sums", "directions"),
    SectionOrderSpec.kind: ("labels_per_record",),
}
"""Settings that the sentence of a kind of query shows, keyed by kind; the other sentences show none."""


def question_in_words(spec: Spec, language: str = ENGLISH) -> str:
    """Return what a query asks, for the person at a hospital who decides about a plan, in the reader's language."""
    say = catalogue(__package__, language)
    sentence: str = getattr(say.asks, spec.kind)
    parts = [sentence.format(*(getattr(spec, name) for name in NUMBERS.get(spec.kind, ())))]
    if isinstance(spec, QuestionnaireSpec):
        if spec.questions:
            form = "; ".join(getattr(say.questions, question.name) for question in spec.questions)
            parts.append(say.questions.form.format(form))
        if spec.first:
            parts.append(say.questions.terms.format(spec.first))
    return f". {say.questions.further} ".join(parts)
