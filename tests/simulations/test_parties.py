from server.configuration import composed
from simulations.parties import deal, with_labels


def _config(tmp_path, *overrides):
    rows = "".join(f"note {i},{'ab'[i % 2]},user {i % 7}\n" for i in range(60))
    (tmp_path / "train.csv").write_text("text,label,user\n" + rows)
    return composed(["task=csv", f"task.train={tmp_path / 'train.csv'}", "federation.parties=3", *overrides])


def test_at_user_level_a_user_stays_at_one_party(tmp_path):
    named = "task.labels={a: null, b: null}"
    for unit, together in (("user", True), ("sample", False)):
        dealt = deal(_config(tmp_path, named, f"privacy.unit={unit}"))
        users = [{record.user for record in private} for private in dealt]
        assert sum(map(len, dealt)) == 60
        assert (sum(map(len, users)) == 7) is together


def test_labels_from_private_records_are_marked(tmp_path):
    assert with_labels(_config(tmp_path)).labels_from_records
    assert "labels_from_records" not in with_labels(_config(tmp_path, "task.labels={a: null, b: null}"))


def test_canaries_are_added_in_turn_and_the_same_each_time(tmp_path):
    named = "task.labels={a: null, b: null}"
    dealt, again = (deal(_config(tmp_path, named, "federation.canaries=4")) for _ in range(2))
    assert dealt == again
    added = [[record.text for record in private if record.text.startswith("The access code")] for private in dealt]
    assert [len(some) for some in added] == [2, 1, 1]
    assert len({text for some in added for text in some}) == 4
