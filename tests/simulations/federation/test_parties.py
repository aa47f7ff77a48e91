from server.prepare.compose import compose_settings
from simulations.federation.parties import deal, parties, with_labels
from simulations.private_evaluation.canaries import canaries


def _config(tmp_path, *overrides):
    rows = "".join(f"note {i},{'ab'[i % 2]},user {i % 7}\n" for i in range(60))
    (tmp_path / "train.csv").write_text("text,label,user\n" + rows)
    return compose_settings(["task=csv", f"task.train={tmp_path / 'train.csv'}", "federation.parties=3", *overrides])


def test_at_user_level_a_user_stays_at_one_party(tmp_path):
    named = "task.labels={a: null, b: null}"
    for unit, together in (("user", True), ("sample", False)):
        dealt = deal(_config(tmp_path, named, f"privacy.unit={unit}"))
        users = [{record.user for record in private} for private in dealt]
        assert sum(map(len, dealt)) == 60
        assert (sum(map(len, users)) == 7) is together
    for private in deal(_config(tmp_path, named, "privacy.unit=user")):
        numbers = [int(record.text.removeprefix("note ")) for record in private]
        assert numbers == sorted(numbers)  # which of a user's records count does not depend on others


def test_labels_from_private_records_are_marked(tmp_path):
    assert with_labels(_config(tmp_path)).labels_from_records
    assert not with_labels(_config(tmp_path, "task.labels={a: null, b: null}")).labels_from_records


def test_taken_labels_with_a_comma_are_said_to_be_wrongly_separated(tmp_path, caplog):
    settings = _config(tmp_path)
    (tmp_path / "train.csv").write_text('text,labels\nx,a;b\ny,"a, b"\nz,"b, a"\n')
    with_labels(settings)
    assert "comma" in caplog.text
    (tmp_path / "train.csv").write_text('text,label\nx,a\ny,"a, b"\n')
    caplog.clear()
    with_labels(settings)
    assert "comma" not in caplog.text


def test_canaries_that_are_in_are_added_in_turn_and_the_same_each_time(tmp_path):
    settings = "task.labels={a: null, b: null}", "federation.canaries=9"
    dealt, again = (deal(_config(tmp_path, *settings)) for _ in range(2))
    assert dealt == again
    tossed = canaries(9, ["a", "b"], 0)
    for party, private in enumerate(dealt):
        added = [record for record in private if "access code" in record.text]
        assert added == [canary.record for canary in tossed[party::3] if canary.inside]
    assert sum(map(len, dealt)) - 60 == sum(canary.inside for canary in tossed)


def test_a_canary_may_be_several_records_and_begin_like_a_held_out_text(tmp_path):
    (tmp_path / "test.csv").write_text("text,label\nmade for a,a\nwritten for b,b\n")
    settings = "task.labels={a: null, b: null}", "federation.canaries=9", f"task.test={tmp_path / 'test.csv'}"
    forms = "federation.canary_form=beginning", "federation.canary_times=3"
    added = [r.text for party in deal(_config(tmp_path, *settings, *forms)) for r in party if r.text.endswith(".")]
    inserted = sum(canary.inside for canary in canaries(9, ["a", "b"], 0))
    assert (len(added), len(set(added))) == (3 * inserted, inserted)
    assert {text.split()[0] for text in added} <= {"made", "written"}


def test_one_party_may_have_a_style(tmp_path):
    named = "task.labels={a: null, b: null}"
    dealt = deal(_config(tmp_path, named, "federation.style_site=1"))
    styled = [[not record.text.startswith("note") for record in private] for private in dealt]
    assert [set(records) for records in styled] == [{False}, {True}, {False}]


def test_a_simulation_waits_for_nothing(tmp_path):
    built = parties(_config(tmp_path, "task.labels={a: null, b: null}", "embedding=hashed_ngrams"), tmp_path)
    assert [party._schedule for party in built.values()] == [None] * 3
