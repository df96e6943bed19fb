from kubeletplugin.sharing.mps_state import DOWN, RESTARTED, DaemonHistory, DaemonState

UP, AGAIN, ILL = DaemonState(run="a/0"), DaemonState(run="a/1"), DaemonState(run="a/1", problem="phase Pending")


def reasons(history: DaemonHistory, *states: DaemonState | None) -> list[list[str]]:
    return [[change.reason for change in history.note({"gpu": state})] for state in states]


def test_a_daemon_that_goes_on_is_no_news() -> None:
    assert reasons(DaemonHistory(), UP, UP) == [[], []]


def test_one_that_is_away_is_told_of_when_it_goes_and_when_it_is_back() -> None:
    assert reasons(DaemonHistory(), UP, None, None, ILL, AGAIN, AGAIN) == [[], [DOWN], [], [], [RESTARTED], []]


def test_one_that_was_started_again_between_two_looks_is_told_of() -> None:
    assert reasons(DaemonHistory(), UP, AGAIN) == [[], [RESTARTED]]


def test_one_that_is_away_at_the_first_look_was_lost_while_nobody_looked() -> None:
    history = DaemonHistory()
    assert reasons(history, None) == [[DOWN]]
    assert history.problems == {"gpu": "its Pod is gone"}
    assert reasons(history, UP) == [[RESTARTED]]
    assert history.problems == {}


def test_the_daemon_of_later_claims_is_another_one() -> None:
    history = DaemonHistory()
    assert reasons(history, UP) == [[]]
    assert history.note({}) == ()
    assert reasons(history, AGAIN) == [[]]


def test_what_was_known_of_one_that_cannot_be_looked_at_holds() -> None:
    history = DaemonHistory()
    assert reasons(history, UP) == [[]]
    assert history.note({}, unseen={"gpu"}) == ()
    assert reasons(history, AGAIN, None) == [[RESTARTED], [DOWN]]
    assert history.note({}, unseen={"gpu"}) == ()
    assert set(history.problems) == {"gpu"}
