"""What all writers of a party refuse: settings out of range, plans beyond them, and queries of another kind."""

import pytest

from client.writers.abstracted_seeds import Seeds
from client.writers.abstractors import Extracts, Summariser
from client.writers.fine_tuning import FineTuningWriter
from client.writers.instructed import Instructed
from client.writers.rewriting import Rewriting
from client.writers.sentiment import Classifier, Vader
from common.errors import ConfigError, InternalError
from common.plan.planned import PlannedQuery
from common.queries.histograms import LabelHistogramSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec, RewrittenSpec

LABELS = ("a", "b")


def seeds(**settings):
    return Seeds(abstraction=Extracts(), sentiment=Vader(), **settings)


def rewriting(**settings):
    return Rewriting(rewriter=Extracts(), **settings)


def instructed(**settings):
    return Instructed(**{"name_or_path": "no-such-model", "instruction": "shorten"} | settings)


WRONG = {
    seeds: [{"oversampled": 1}, {"most": 0}, {"similarity": 1.1}, {"flip_penalty": -1}, {"confidence": float("nan")}],
    rewriting: [{"candidates": 0}, {"copied": 2.0}, {"nearest": -1}, {"most": 0}],
    FineTuningWriter: [{"micro_batch": 0}, {"max_steps": 0}],
    instructed: [{"longest": 0}, {"temperature": 0}, {"top_p": 0}, {"top_p": 1.5}, {"instruction": ""}],
}


@pytest.mark.parametrize(("make", "settings"), [(make, settings) for make in WRONG for settings in WRONG[make]])
def test_settings_out_of_range_are_named(make, settings):
    with pytest.raises(ConfigError, match=rf"{next(iter(settings))}; expected"):
        make(**settings)


def texts_of(spec, *, mechanism="none", times=1):
    return PlannedQuery(name="texts", spec=spec, mechanism=mechanism, scale=0.0, times=times)


SEEDS = texts_of(AbstractedSeedsSpec(choices=3, candidates=5), mechanism="gaussian max")
REWRITTEN = texts_of(RewrittenSpec(texts=3, rounds=3), times=2)


@pytest.mark.parametrize(
    ("make", "settings", "query", "named"),
    [
        (seeds, {"most": 2}, SEEDS, "seeds.most;.*at least 3"),
        (seeds, {"oversampled": 4}, SEEDS, "seeds.oversampled;.*at least 5"),
        (seeds, {"names": "no-such-model"}, SEEDS, "model for names"),
        (rewriting, {"most": 5}, REWRITTEN, "rewriting.most;.*at least 6"),  # of all answers of a query together
        (rewriting, {"names": "no-such-model"}, REWRITTEN, "model for names"),
    ],
)
def test_what_a_plan_asks_beyond_the_settings_is_refused_before_any_record_is_seen(make, settings, query, named):
    make().check(query, LABELS)
    with pytest.raises(ConfigError, match=named):
        make(**settings).check(query, LABELS)


@pytest.mark.parametrize(
    ("make", "kind"), [(seeds, AbstractedSeedsSpec), (rewriting, RewrittenSpec), (FineTuningWriter, FineTunedSpec)]
)
def test_a_query_of_another_kind_is_a_bug_of_ours(make, kind):
    with pytest.raises(InternalError, match=kind.kind):
        make().check(PlannedQuery(name="count", spec=LabelHistogramSpec(labels=2)), LABELS)


@pytest.mark.parametrize("make", [Summariser, Classifier, lambda name: instructed(name_or_path=name)])
def test_what_is_no_model_is_refused(make, tmp_path):
    for name in ("no/such-model", str(tmp_path)):
        with pytest.raises(ConfigError, match="model"):
            make(name)
