"""Break the sources in one place at a time and see that a test notices: `make mutations`.

Each mutation is one exact piece of text, found once in one file, and what stands there instead. The working tree is
copied to a temporary folder; in the copy one mutation at a time is made, the tests named for it are run, and the file
is put back. A mutation that all of them survive is a hole in the tests: exit code 1.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

AUDIT = "tests/statistics/test_audit.py::"
PEERS = "tests/test_peers.py::"
STRUCTURE = AUDIT + "test_each_party_adds_one_share_under_a_key_of_its_own"
QUERIES = "tests/common/queries/test_closed_set.py::"
LOSSES = "tests/client/deploy/test_losses.py::"
LEDGER = "tests/common/ledger/test_ledger.py::"
MECHANISMS = "tests/common/privacy/test_mechanisms.py::"
CLASS_SUMS = "tests/server/methods/test_class_sums.py::"
ANSWER = "tests/client/test_answer.py::"
FINETUNE = "tests/client/writers/test_fine_tuning.py::"
PRICES = "tests/common/privacy/test_fine_tuning.py::"
SURVIVORS = "tests/client/test_survivor_sets.py::"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """What is broken, where, how, and which tests must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def mutation(name, file, old, new, *tests):
    return Mutation(name=name, file=file, old=old, new=new, tests=tests)


MUTATIONS = (
    mutation(
        "a check of what one party was shown serves another that was shown something else",
        "simulations/federation/parties.py",
        "if computed_for != (arguments, named):",
        "if computed_for is None:",
        "tests/simulations/federation/test_shared.py",
        "tests/properties/test_one_plan_for_all.py",
    ),
    mutation(
        "a plan over a part of the roster",
        "client/admission.py",
        "plan.parties != len(roster.keys)",
        "plan.parties > len(roster.keys)",
        "tests/client/test_survivor_sets.py::test_helpers_cannot_be_a_larger_share_of_the_plan_than_of_the_roster",
    ),
    mutation(
        "attempts that ask different questions",
        "client/answer.py",
        "attempts=plan.max_attempts",
        "attempts=1",
        "tests/client/test_survivor_sets.py::test_attempts_at_an_answer_ask_one_question_to_the_last_bit",
    ),
    mutation(
        "a step of training without its noise where nobody was drawn",
        "client/writers/fine_tuning.py",
        "        if scale:\n",
        "        if scale and batch:\n",
        FINETUNE + "test_every_step_is_noised_on_every_weight_with_a_key_of_its_own_whoever_was_drawn",
    ),
    mutation(
        "gradients divided by how many were drawn",
        "client/writers/fine_tuning.py",
        "total * (unit / spec.batch)",
        "total * (unit / max(1, len(batch)))",
        FINETUNE + "test_sums_are_divided_by_the_public_number_whoever_was_drawn",
    ),
    mutation(
        "gradients that are not clipped",
        "client/writers/fine_tuning.py",
        "norms.clamp(min=clip)",
        "clip",
        FINETUNE + "test_rows_are_clipped_and_rounded_without_bias_and_never_longer_than_the_bound",
    ),
    mutation(
        "rounded gradients that are not looked at again",
        "client/writers/fine_tuning.py",
        "<= self._resolution**2)] = 0",
        "<= torch.inf)] = 0",
        FINETUNE + "test_a_row_that_rounding_makes_longer_than_the_bound_is_dropped",
    ),
    mutation(
        "the same records in every step of training",
        "client/writers/fine_tuning.py",
        "records.sampled(rate, secure_bytes(32))",
        "records.sampled(rate, bytes(32))",
        FINETUNE + "test_each_step_draws_records_anew_with_the_rate",
    ),
    mutation(
        "one step of training paid for in place of all",
        "common/plan/planned.py",
        "query.steps * times}",
        "times}",
        PRICES + "test_steps_over_all_units_are_gaussians_of_all_units",
    ),
    mutation(
        "half of sigma, in the plan",
        "common/plan/plan.py",
        "return query.scale / math.sqrt(self.shares(query))",
        "return query.scale / math.sqrt(self.shares(query)) / 2",
        STRUCTURE,
    ),
    mutation(
        "the limits of the opening, whatever the file says now",
        "client/admission.py",
        "if limits != checked:",
        "if not checked:",
        "tests/client/test_admission.py"
        "::test_a_limit_that_is_lowered_holds_from_the_next_question_on_and_nothing_is_charged",
    ),
    mutation(
        "half of sigma, at the sampler",
        "client/answer.py",
        "discrete_gaussian(plan.share_sigma(planned), len(sums), key)",
        "discrete_gaussian(plan.share_sigma(planned) / 2, len(counts), key)",
        AUDIT + "test_canaries_show_half_of_sigma",
    ),
    mutation(
        "a party without records adds no noise",
        "client/answer.py",
        "    if planned.scale == 0:\n        return sums\n",
        "    if planned.scale == 0 or not units.texts:\n        return sums\n",
        STRUCTURE,
    ),
    mutation(
        "sigma / sqrt(U) without secure aggregation",
        "common/plan/plan.py",
        "return self.survivors - self.colluders if self.secure else 1",
        "return self.survivors - self.colluders",
        PEERS + "test_without_secure_aggregation_no_party_adds_a_part_of_the_noise",
    ),
    mutation(
        "dropouts and colluders count on noise that is not there",
        "common/plan/plan.py",
        "return self.survivors - self.colluders if self.secure else 1",
        "return self.parties if self.secure else 1",
        PEERS + "test_with_secure_aggregation_a_share_is_for_those_that_are_certain_and_unknown",
    ),
    mutation(
        "Laplace shares for all parties",
        "client/answer.py",
        "discrete_laplace(planned.scale, len(sums), key, shares=plan.shares(planned))",
        "discrete_laplace(planned.scale, len(counts), key, shares=plan.parties)",
        STRUCTURE,
    ),
    mutation(
        "a Laplace scale rounded down",
        "client/answer.py",
        "discrete_laplace(planned.scale, len(sums)",
        "discrete_laplace(float(int(planned.scale)), len(sums)",
        STRUCTURE,
    ),
    mutation(
        "one noise key for all answers",
        "client/answer.py",
        "    key = secure_bytes(32)\n",
        '    key = globals().setdefault("_KEY", secure_bytes(32))\n',
        STRUCTURE,
    ),
    mutation(
        "noise from an experiment seed",
        "client/answer.py",
        "    key = secure_bytes(32)\n",
        "    key = np.random.default_rng().bytes(32)\n",
        STRUCTURE,
    ),
    mutation(
        "votes doubled",
        "client/contributions/votes.py",
        "np.bincount(column, minlength=count) << (top - 1 - q)",
        "np.bincount(column, minlength=count) << (top - q)",
        PEERS + "test_votes_halve_from_rank_to_rank",
    ),
    mutation(
        "the sensitivity forgets the furthest half",
        "common/queries/votes.py",
        "2 * self.labels_per_record if self.furthest else self.labels_per_record",
        "self.labels_per_record",
        AUDIT + "test_canaries_show_half_of_sigma",
    ),
    mutation(
        "the l2 sensitivity of class sums forgets that a record has several labels",
        "common/queries/class_sums.py",
        "l2_squared=(self.grid**2 + self.count**2) * blocks * self.max_records**2,",
        "l2_squared=(self.grid**2 + self.count**2) * self.max_records**2,",
        "tests/properties/test_several_labels.py",
    ),
    mutation(
        "the sensitivity of the order of sections forgets its end",
        "common/queries/section_order.py",
        "(self.grid,) * (self.labels_per_record + 1)",
        "(self.grid,) * self.labels_per_record",
        "tests/properties/test_sections.py",
    ),
    mutation(
        "the l2 sensitivity of class sums forgets the count",
        "common/queries/class_sums.py",
        "l2_squared=(self.grid**2 + self.count**2) * blocks * self.max_records**2,",
        "l2_squared=self.grid**2 * blocks * self.max_records**2,",
        "tests/properties/test_sensitivity.py::test_one_record_reaches_the_bounds_and_never_exceeds_them",
    ),
    mutation(
        "the l2 sensitivity of a questionnaire counts one term of a record",
        "common/queries/questionnaire.py",
        "[self.term] * self.first",
        "[self.term] * min(1, self.first)",
        "tests/properties/test_sensitivity.py::test_one_record_reaches_the_bounds_and_never_exceeds_them",
    ),
    mutation(
        "a record has two answers to a question",
        "client/contributions/class_sums.py",
        "spec.weight(question) * np.bincount(column,",
        "spec.weight(question) * np.bincount(np.append(column, column),",
        "tests/properties/test_sensitivity.py::test_one_record_reaches_the_bounds_and_never_exceeds_them",
    ),
    mutation(
        "coordinates of class sums rounded to the nearest integer",
        "client/contributions/class_sums.py",
        "np.trunc(coordinates",
        "np.rint(coordinates",
        "tests/client/contributions/test_class_sums.py::test_known_values",
    ),
    mutation(
        "integers that floating point left too long stay so",
        "client/contributions/class_sums.py",
        "    while len(rows := np.flatnonzero((out**2).sum(axis=1) > grid**2)):\n",
        "    while len(rows := np.flatnonzero((out**2).sum(axis=1) > 2 * grid**2)):\n",
        "tests/client/contributions/test_class_sums.py::test_floating_point_that_ends_above_the_bound_is_caught",
    ),
    mutation(
        "the l2 sensitivity of a user's m records grows with sqrt(m)",
        "common/privacy/sensitivity.py",
        "l2_squared=l2_squared * units**2,",
        "l2_squared=l2_squared * units,",
        QUERIES + "test_sensitivities_of_votes_are_the_derived_ones",
    ),
    mutation(
        "a user's records beyond m count",
        "client/answer.py",
        "units = records.limited(planned.spec.max_records, planned.spec.labels_per_record)",
        "units = records",
        PEERS + "test_the_factor_for_users_is_in_the_noise_and_in_what_a_user_may_hold",
    ),
    mutation(
        "one answer forgotten in the composition",
        "common/plan/plan.py",
        "self._release(query, shares, draw=draw, times=times)",
        "self._release(query, shares, draw=draw, times=max(1, times - 1))",
        PEERS + "test_all_answers_and_attempts_are_paid_for",
    ),
    mutation(
        "attempts forgotten in the composition",
        "common/plan/plan.py",
        "draws(query, self.max_attempts).items()",
        "draws(query, 1).items()",
        PEERS + "test_all_answers_and_attempts_are_paid_for",
    ),
    mutation(
        "a plan's claim is believed",
        "client/guard.py",
        "            verify(plan)\n",
        "            pass\n",
        PEERS + "test_all_answers_and_attempts_are_paid_for",
    ),
    mutation(
        "records beyond a number are left out: one that goes lets another in",
        "client/answer.py",
        "sums = contribute.contribution(query, units)",
        "sums = contribute.contribution(\n"
        "        query, units._only(np.arange(len(units.texts)) < plan.max_records_per_party)\n    )",
        ANSWER + "test_records_beyond_the_rings_bound_cut_counts_off_and_take_no_place_from_others",
    ),
    mutation(
        "self-similarity of records that follow each other",
        "client/contributions/counts.py",
        "buckets = (records.digests(closed_set.digest(query)) % np.uint64(spec.buckets)).astype(np.int64)",
        "buckets = np.arange(len(records.texts), dtype=np.int64) // 2 % spec.buckets",
        "tests/properties/test_displacement.py",
    ),
    mutation(
        "a subsample for each answer, accounted for as one",
        "client/answer.py",
        "party.ledger.sample_key(run, draw, secure_bytes(32))",
        "secure_bytes(32)",
        AUDIT + "test_a_subsample_is_drawn_once_or_for_each_answer_as_planned",
    ),
    mutation(
        "records are touched before the charge is written",
        "client/answer.py",
        "    entry = party.ledger.reserve(\n",
        "    contribute.contribution(query, records)\n    entry = party.ledger.reserve(\n",
        ANSWER + "test_the_charge_is_on_disk_before_records_are_touched_or_noise_is_drawn",
    ),
    mutation(
        "another run starts with a fresh budget",
        "client/guard.py",
        "self._of_lifetime([*earlier, *plan",
        "self._of_lifetime([*plan",
        "tests/client/test_guard.py::test_all_runs_together_stay_within_the_partys_total",
    ),
    mutation(
        "a ledger counts the charges of one run",
        "common/ledger/ledger.py",
        "(other.cost for other in charged)",
        "(other.cost for other in charged if other.run == run)",
        LEDGER + "test_a_limit_counts_the_runs_that_may_have_had_the_same_record",
    ),
    mutation(
        "the chain of a ledger is not checked",
        "common/ledger/chain.py",
        "if sequence != number or event.chain != chain:",
        "if sequence != number:",
        "tests/common/ledger/test_file.py::test_an_edited_event_is_named_by_whoever_reads_entries",
    ),
    mutation(
        "an answer leaves whose ledger's head is not noted",
        "client/service.py",
        "self._noted_head.write(self._ledger)",
        "pass",
        "tests/client/test_noted_head.py::test_what_was_answered_is_noted_before_it_leaves",
    ),
    mutation(
        "an answer is stored without an event, so that a copy without it has the noted head",
        "common/ledger/ledger.py",
        "            log.keep(database, entry)\n",
        "",
        LOSSES + "test_a_copy_made_between_charge_and_answer_does_not_answer_again",
    ),
    mutation(
        "a run goes on after the ledger was accepted",
        "common/ledger/ledger.py",
        "                log.end(database, run, when)\n",
        "                log.close_before(database, run, sys.maxsize)\n",
        LOSSES + "test_a_run_that_is_in_no_restored_file_does_not_go_on",
    ),
    mutation(
        "what a restored ledger lacks is not charged",
        "client/deploy/accept.py",
        "[*lost.entries, *number]",
        "[*number]",
        "tests/client/deploy/test_lost_charges.py",
    ),
    mutation(
        "a party service starts over a ledger without its noted head",
        "client/noted_head.py",
        "Ledger(ledger, read_only=read_only, head=noted)",
        "Ledger(ledger, read_only=read_only)",
        "tests/client/test_noted_head.py::test_an_older_copy_of_the_ledger_is_refused",
    ),
    mutation(
        "fresh noise for an answer that is asked for again",
        "client/answer.py",
        '    return _words(party.ledger.keep(run, index, noised.astype("<i8").tobytes()))',
        "    return noised",
        ANSWER + "test_an_interrupted_query_gets_the_same_answer_from_a_new_process",
    ),
    mutation(
        "texts from another run's class sums are said to depend on no record",
        "server/prepare/components.py",
        "        earlier=earlier,\n",
        "",
        CLASS_SUMS + "test_a_run_from_class_sums_asks_nobody_and_has_the_guarantee_of_the_one_that_asked",
    ),
    mutation(
        "class sums are used in another encoder's space",
        "server/prepare/components.py",
        "if encoder.digest != earlier.encoder:",
        "if False:",
        CLASS_SUMS + "test_class_sums_of_another_encoder_or_beside_a_question_are_refused",
    ),
    mutation(
        "the noise of class sums is taken to be that of the fewest parties",
        "server/tools.py",
        "return planned.noise_deviation * plan.surplus(planned, survivors)",
        "return planned.noise_deviation",
        CLASS_SUMS + "test_the_noise_is_that_of_the_parties_that_answered",
    ),
    mutation(
        "a party lets several sets of survivors be opened",
        "common/ledger/ledger.py",
        "elif entry.survivors != parties:",
        "elif False:",
        LEDGER + "test_one_set_of_survivors",
    ),
    mutation(
        "a coordinator makes do with fewer parties than planned",
        "server/federation/exchange.py",
        "        if len(bodies) < needed:\n",
        "        if not bodies:\n",
        PEERS + "test_a_sum_of_fewer_parties_than_planned_is_never_given",
    ),
    mutation(
        "a party unmasks a sum of fewer parties than the noise was planned for",
        "client/secagg.py",
        'check_enough("agree", len(survivors), self._me.setup.quorum)',
        'check_enough("agree", len(survivors), 1)',
        "tests/client/test_secagg.py::test_bad_survivor_sets_are_refused",
    ),
    mutation(
        "hospitals that accepted different plans share masks",
        "common/secagg/messages.py",
        "encoded + run + setup.plan_digest + setup.roster_digest",
        "encoded + run + setup.roster_digest",
        "tests/properties/test_one_plan_for_all.py::test_another_plan",
    ),
    mutation(
        "a question that was opened is opened over other parties",
        "common/ledger/ledger.py",
        "if other.unmasked and other.survivors != parties:",
        "if False:",
        SURVIVORS + "test_a_question_that_was_opened_is_opened_over_no_other_parties",
    ),
    mutation(
        "shares leave before the ledger knows",
        "client/service.py",
        "self._ledger.unmask(envelope.run, envelope.index)",
        "pass",
        SURVIVORS + "test_that_a_question_was_opened_outlives_the_service",
    ),
    mutation(
        "fewer sign than leave no room for another set",
        "common/secagg/messages.py",
        "max((parties + corrupt) // 2, parties + corrupt - holders) + 1",
        "(parties + corrupt) // 2 + 1",
        SURVIVORS + "test_shares_of_a_few_honest_parties_leave_too_few_to_sign_another_set",
    ),
    mutation(
        "noise that a coalition knows counts",
        "client/guard.py",
        "return graph.coalition(self.corrupt, plan.parties)",
        "return 0",
        "tests/client/test_guard.py::test_limits_as_init_writes_them_are_held_against_those_that_masks_are_planned_for",
    ),
    mutation(
        "a reply leaves when it is ready",
        "client/schedule.py",
        "self._sleep(due - taken)",
        "self._sleep(0)",
        "tests/client/test_schedule.py::test_when_replies_leave_shows_neither_how_many_records_there_are_nor_a_refusal",
    ),
    mutation(
        "vectors longer than their count are summed",
        "server/federation/plausible.py",
        "float(np.linalg.norm(row[:-1])), longest",
        "0.0, longest",
        "tests/server/federation/test_plausible.py::test_vectors_longer_than_their_count_are_refused_by_label",
    ),
    mutation(
        "a noisy choice at half of its scale",
        "common/privacy/mechanisms.py",
        "bernoulli_exp((best - steps[candidate]) * denominator, numerator, stream)",
        "bernoulli_exp(2 * (best - steps[candidate]) * denominator, numerator, stream)",
        MECHANISMS + "test_permute_and_flip_over_every_path",
    ),
    mutation(
        "noise of the sparse vector at half of its scale",
        "common/privacy/mechanisms.py",
        "if count + laplace(2 * scale, stream) <= threshold:",
        "if count + laplace(scale, stream) <= threshold:",
        MECHANISMS + "test_noise_of_the_threshold_has_half_the_scale_of_that_of_a_count",
    ),
)


def main() -> None:
    """Print a line for each mutation; arguments choose those whose name holds one of them."""
    chosen = [
        mutation for mutation in MUTATIONS if not sys.argv[1:] or any(word in mutation.name for word in sys.argv[1:])
    ]
    with tempfile.TemporaryDirectory() as name:
        copy = copied(Path(name))
        say("the tests as they are")
        sound = run(copy, sorted({test for mutation in chosen for test in mutation.tests}))
        if sound.returncode:
            sys.exit(f"the tests fail as they are:\n{sound.stdout}{sound.stderr}")
        survivors = 0
        for mutation in chosen:
            started = time.monotonic()
            noticed = caught(copy, mutation)
            survivors += not noticed
            say(f"{mutation.name:72}{time.monotonic() - started:5.0f} s  {noticed or 'SURVIVED'}")
    say(f"{len(chosen) - survivors} of {len(chosen)} caught")
    sys.exit(bool(survivors))


def copied(folder: Path) -> Path:
    """The working tree, without what git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return folder


def caught(folder: Path, mutation: Mutation) -> str:
    """Which test failed first on the mutated copy; empty if none did."""
    path = folder / mutation.file
    before = path.read_text("utf-8")
    if before.count(mutation.old) != 1:
        sys.exit(f"{mutation.name}: its text is in {mutation.file} {before.count(mutation.old)} times, not once")
    path.write_text(before.replace(mutation.old, mutation.new), "utf-8")
    try:
        done = run(folder, mutation.tests)
    finally:
        path.write_text(before, "utf-8")
    # 1: tests were run and some failed. Anything else, such as a test that is not there, is no catch.
    if done.returncode not in (0, 1):
        sys.exit(f"{mutation.name}: its tests cannot be run:\n{done.stdout}{done.stderr}")
    failed = [line.partition("::")[2] for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    return failed[0] if done.returncode and failed else ""


def run(folder: Path, tests) -> subprocess.CompletedProcess[str]:
    """Run these tests on the copy, up to the first that fails."""
    # Bytecode of a file that changed twice within a second would be taken for that of the other version.
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=no", *tests]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
