"""How well texts in sections preserve the order and the lengths of real texts' sections: a group of `metrics.json`.

What classifiers learn from sections is measured as for texts with one label, each section being a text under its
heading (`Task.classifier_inputs`). These models have no information on the order of the sections. Two other orders
serve for comparison: one in which each section is independent of the preceding section and has the real texts'
frequencies, and the order of the plan, with all headings in every text.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from common.domain import Record
from common.sections import sections
from server.documents.metrics import Figure, Group
from server.domain import Candidate, Task
from server.evaluation.figures import figure, figure_over_texts
from server.metrics.surface import Floats, independent_steps, length_distance, section_steps, steps_distance

NAME = "sections"
_DEFINITION = (
    "order_distance: total variation between the shares of all steps from the beginning of a text to a section, from a "
    "section to the next and from a section to the end, of the synthetic and the test texts. independent: the same of "
    "an order that does not depend on the section before, with the test texts' frequencies; plan_order: of texts that "
    "have all headings in the order of the plan. Intervals of 95% over the test texts alone (jackknife); a distance "
    "near 0 is biased upward, and so is its interval. "
    "per_text, per_text_real: mean number of sections of a text. length_distance: Wasserstein-1 distance of the whole "
    "texts' lengths in words. words, words_real: mean length."
)


def section_groups(texts: Sequence[Candidate], held_out: Callable[[], Sequence[Record]], task: Task) -> Group:
    """Return the group for `metrics.json`; empty unless the task has sections and there are real texts.

    Args:
        texts: The synthetic texts, as a whole.
        held_out: Reads the real texts, as a whole, that do not belong to any party.
        task: The task.
    """
    real = held_out() if task.sectioned else ()
    if not real:
        return {}
    if not any(text.sections for text in texts):
        return {NAME: Figure(reason="no synthetic text has a section")}
    headings, rows = list(task.labels), len(real)
    ours = section_steps(([part.heading for part in text.sections or ()] for text in texts), headings).sum(axis=0)
    theirs = section_steps(([part.heading for part in sections(record.text, headings)] for record in real), headings)

    def distance(steps: Floats, at: NDArray[np.intp]) -> float:
        return steps_distance(steps, theirs[at].sum(axis=0))

    others = {
        "independent": independent_steps(theirs.sum(axis=0)),
        "plan_order": section_steps([headings], headings)[0],
    }
    whole, real_texts = [text.text for text in texts], [record.text for record in real]
    group: Group = {"definition": _DEFINITION}
    for name, steps in ({"order_distance": ours} | others).items():
        group[name] = figure_over_texts(partial(distance, steps), rows=rows)
    group["length_distance"] = figure(lambda: length_distance(whole, real_texts), rows=rows)
    for ending, members, steps in (("", whole, ours), ("_real", real_texts, theirs.sum(axis=0))):
        group[f"per_text{ending}"] = Figure(value=float(steps[:, :-1].sum() / len(members)), rows=len(members))
        words = float(np.mean([len(text.split()) for text in members]))
        group[f"words{ending}"] = Figure(value=words, rows=len(members))
    return {NAME: group}
