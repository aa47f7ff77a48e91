"""The demo corpus: confusable classes, styles that differ, nothing repeated."""

from collections import Counter

from server.tasks.demo_notes import LABELS, held_out_notes, private_notes, public_text


def test_same_seed_same_notes_other_seed_other_notes():
    assert private_notes(1, 5, 7) == private_notes(1, 5, 7)
    assert private_notes(1, 5, 7) != private_notes(1, 5, 8)
    assert private_notes(1, 5, 7) == private_notes(1, 9, 7)[:5]
    assert held_out_notes(5, 7) == held_out_notes(5, 7)
    assert public_text(5, 7) == public_text(9, 7)[:5]
    assert public_text(5, 7) != public_text(5, 8)


def test_a_patient_may_have_several_diagnoses_some_of_which_come_together():
    several = [record for hospital in range(3) for record in private_notes(hospital, 300, 0, diagnoses=3)]
    assert {len(record.labels) for record in several} == {1, 2, 3}
    assert all(len(set(record.labels)) == len(record.labels) for record in several)
    pairs = Counter(frozenset(record.labels) for record in several if len(record.labels) == 2)
    pneumonia, failure, copd, embolism = LABELS
    assert min(pairs[frozenset({pneumonia, copd})], pairs[frozenset({failure, embolism})]) > 2 * max(
        pairs[frozenset({pneumonia, failure})], pairs[frozenset({copd, embolism})]
    )
    assert all(record.more is None for record in private_notes(0, 5, 0))
    assert held_out_notes(5, 7, diagnoses=2) == held_out_notes(5, 7, diagnoses=2)
    assert all(record.more is not None for record in held_out_notes(5, 7, diagnoses=2))


def test_hospitals_tests_and_public_share_no_note():
    groups = [{record.text for record in private_notes(hospital, 300, 0)} for hospital in range(3)]
    groups += [{record.text for record in held_out_notes(300, 0)}, set(public_text(300, 0))]
    assert len(set().union(*groups)) == sum(map(len, groups))
