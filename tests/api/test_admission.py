"""What a worker takes on: room that is learned, refusals that stay cheap, batches apart."""

from collections import Counter

from discreet.api.admission import MOST_BATCHES, Admission


class Clock:
    """Time that goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def load(admission: Admission, clock: Clock, *, seconds: float, windows: int) -> None:
    """Keep the worker full for so many windows, with answers that take so long."""
    for _ in range(windows):
        taken = 0
        while admission.enter():
            taken += 1
        clock.now += 0.11
        for _ in range(taken):
            admission.leave(seconds)
    assert admission.in_flight == 0


def test_room_grows_while_answers_are_quick_and_shrinks_when_they_are_not() -> None:
    clock = Clock()
    admission = Admission(most=200, target_seconds=0.03, clock=clock)
    first = admission.bound
    load(admission, clock, seconds=0.005, windows=30)
    assert first < admission.bound == 200, "as many as are allowed, and no more"
    load(admission, clock, seconds=0.3, windows=30)
    assert admission.bound == 64, "a few dozen, however slow they are"
    load(admission, clock, seconds=0.005, windows=60)
    assert admission.bound == 200


def test_a_crowd_that_is_answered_quickly_has_room_within_two_windows() -> None:
    clock = Clock()
    admission = Admission(target_seconds=0.03, clock=clock)
    assert admission.bound == 128
    load(admission, clock, seconds=0.007, windows=2)
    assert admission.bound == 512
    admission = Admission(target_seconds=0.03, clock=clock)
    load(admission, clock, seconds=0.025, windows=2)
    assert admission.bound < 160, "what is nearly too slow is let in step by step"


def test_room_that_nobody_needs_does_not_grow() -> None:
    clock = Clock()
    admission = Admission(clock=clock)
    before = admission.bound
    for _ in range(100):
        assert admission.enter()
        clock.now += 0.2
        admission.leave(0.001)
    assert admission.bound == before


def test_one_slow_moment_halves_the_room_at_most() -> None:
    """A store that pauses for seconds must not shut the door for minutes."""
    clock = Clock()
    admission = Admission(clock=clock)
    before = admission.bound
    load(admission, clock, seconds=4.0, windows=1)
    assert admission.bound >= before / 2


def test_the_bound_may_be_smaller_than_the_usual_floor() -> None:
    admission = Admission(most=2)
    assert [admission.enter() for _ in range(3)] == [True, True, False]
    admission.leave(None)
    assert admission.enter()


def test_refusals_leave_at_a_bounded_pace() -> None:
    clock = Clock()
    admission = Admission(clock=clock)
    assert admission.refusal_delay() == 0.0, "a single one is told at once"
    delays = [admission.refusal_delay() for _ in range(10_000)]
    assert max(delays) <= 2.0, "nobody waits for longer than that"
    in_a_second = sum(delay < 1.0 for delay in delays)
    assert 400 <= in_a_second <= 600
    # Those who are too many leave spread over a second, not all at once.
    many = [delay for delay in delays if delay >= 1.0]
    tenths = Counter(int(10 * delay) for delay in many)
    assert set(tenths) <= set(range(10, 21))
    assert max(tenths.values()) < 1.2 * len(many) / 10
    clock.now += 10.0
    assert admission.refusal_delay() == 0.0


def test_batches_and_other_calls_have_room_of_their_own() -> None:
    admission = Admission(most=1)
    assert admission.enter()
    assert not admission.enter()
    assert all(admission.enter_batch() for _ in range(MOST_BATCHES))
    assert not admission.enter_batch()
    admission.leave_batch()
    assert admission.enter_batch()
    beside = 0
    while admission.enter_beside():
        beside += 1
    assert beside >= 16
    admission.leave_beside()
    assert admission.enter_beside()
