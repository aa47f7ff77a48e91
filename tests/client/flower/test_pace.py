from client.flower.pace import Pace


def test_without_a_message_a_wait_is_the_longest():
    assert Pace(0.1, 3.0, 0.1).seconds() == 3.0


def test_after_a_message_a_wait_is_a_share_of_the_time_since():
    pace = Pace(0.125, 3.0, 0.1)
    pace.came(now=1000)
    assert [pace.seconds(now) for now in (1000, 1001, 1005, 1030, 9000)] == [0.125, 0.125, 0.5, 3.0, 3.0]
    pace.came()
    assert pace.seconds() == 0.125
