"""A circuit opens after failures in a row, lets one try after a pause, and closes again."""

from discreet.peers.circuit import FAILURES, FIRST_PAUSE, LONGEST_PAUSE, CircuitBreaker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def failing(circuit: CircuitBreaker, times: int) -> None:
    for _ in range(times):
        assert circuit.enter()
        circuit.failed()


def test_it_opens_after_failures_in_a_row_only() -> None:
    circuit = CircuitBreaker(clock=Clock())
    failing(circuit, FAILURES - 1)
    circuit.succeeded()
    failing(circuit, FAILURES - 1)
    assert circuit.admits()
    failing(circuit, 1)
    assert not circuit.admits()
    assert not circuit.enter()


def test_one_may_try_after_a_pause_and_closes_it_by_success() -> None:
    clock, changes = Clock(), []
    circuit = CircuitBreaker(clock=clock, changed=changes.append)
    failing(circuit, FAILURES)
    clock.now += FIRST_PAUSE - 0.01
    assert not circuit.admits()
    clock.now += 0.01
    assert circuit.admits()
    assert circuit.enter()
    assert not circuit.admits()
    assert not circuit.enter()
    circuit.succeeded()
    assert circuit.admits()
    assert not circuit.is_open
    assert changes == [True, False]


def test_pauses_double_up_to_the_longest() -> None:
    clock = Clock()
    circuit = CircuitBreaker(clock=clock)
    failing(circuit, FAILURES)
    pauses = []
    for _ in range(8):
        began = clock.now
        while not circuit.admits():
            clock.now += 0.25
        pauses.append(clock.now - began)
        failing(circuit, 1)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert pauses[-1] == LONGEST_PAUSE


def test_who_asked_before_it_opened_does_not_lengthen_the_pause() -> None:
    clock = Clock()
    circuit = CircuitBreaker(clock=clock)
    for _ in range(FAILURES + 3):
        assert circuit.enter()
    for _ in range(FAILURES + 3):
        circuit.failed()
    clock.now += FIRST_PAUSE
    assert circuit.admits()


def test_a_trial_that_nobody_waited_for_can_be_repeated() -> None:
    clock = Clock()
    circuit = CircuitBreaker(clock=clock)
    failing(circuit, FAILURES)
    clock.now += FIRST_PAUSE
    assert circuit.enter()
    circuit.abandoned()
    assert circuit.enter()


def test_answers_that_cannot_be_used_open_it_like_failures() -> None:
    changes: list[bool] = []
    clock = Clock()
    circuit = CircuitBreaker(clock=clock, changed=changes.append)
    for _ in range(FAILURES):
        assert circuit.enter()
        circuit.succeeded()
        circuit.disbelieved()
    assert not circuit.admits()
    assert changes == [True]
    # A trial that is answered with nonsense doubles the pause.
    clock.now += FIRST_PAUSE
    assert circuit.enter()
    circuit.succeeded()
    circuit.disbelieved()
    assert changes == [True, False, True]
    clock.now += FIRST_PAUSE
    assert not circuit.admits()
    clock.now += FIRST_PAUSE
    assert circuit.admits()


def test_a_usable_answer_in_between_begins_the_count_anew() -> None:
    circuit = CircuitBreaker(clock=Clock())
    for _ in range(3 * FAILURES):
        for disbelieve in (True, False):
            assert circuit.enter()
            circuit.succeeded()
            if disbelieve:
                circuit.disbelieved()
    assert circuit.admits()


def test_several_answers_at_once_that_cannot_be_used_all_count() -> None:
    circuit = CircuitBreaker(clock=Clock())
    for _ in range(FAILURES):
        circuit.succeeded()
    for _ in range(FAILURES):
        circuit.disbelieved()
    assert not circuit.admits()
