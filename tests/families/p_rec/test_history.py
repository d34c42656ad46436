"""A client's page: eight bytes a record, read piece by piece."""

import pytest

from discreet.errors import StateOverflow, StoreDamaged
from discreet.families.p_rec.history import (
    AnswerRecord,
    ClientAnswer,
    ClientHistory,
    ClientOpinion,
    RunRecord,
    decode_record,
)

LIKED, DISLIKED = ClientOpinion.LIKED, ClientOpinion.DISLIKED
PENDING, SKIPPED = ClientOpinion.PENDING, ClientOpinion.SKIPPED


def history_of(*records: AnswerRecord | RunRecord) -> ClientHistory:
    history = ClientHistory(b"12345678")
    history.read(b"".join(record.encode() for record in records), position=0)
    return history


@pytest.mark.parametrize(
    "record",
    [
        *(AnswerRecord(7, 199, True, opinion) for opinion in ClientOpinion),
        AnswerRecord(2**32 - 1, 0, False),
        AnswerRecord(0, 3, True, LIKED, 199),
        RunRecord(0),
        RunRecord(-(2**55)),
        RunRecord(2**55 - 1),
    ],
)
def test_a_record_survives_being_stored(record: AnswerRecord | RunRecord) -> None:
    assert len(record.encode()) == 8
    assert decode_record(record.encode()) == record


def test_noise_that_does_not_fit_is_refused() -> None:
    with pytest.raises(StateOverflow):
        RunRecord(2**55).encode()


def test_a_record_of_no_kind_that_we_know_is_damaged() -> None:
    with pytest.raises(StoreDamaged):
        decode_record(b"\xc8" + bytes(7))


def test_reading_on_replaces_the_pending_answer() -> None:
    run, first = RunRecord(3), AnswerRecord(0, 1, True)
    history = history_of(run, first)
    assert history.pending == ClientAnswer((first,))
    assert history.settled == 1
    given = first.with_opinion(LIKED)
    second = AnswerRecord(1, 0, True)
    history.read(given.encode() + second.encode(), position=history.settled)
    assert history.records == [run, given, second]
    assert history.runs == 1
    assert history.length == 8 + 3 * 8


def test_answers_are_found_by_their_rounds() -> None:
    first, second = AnswerRecord(5, 1, True, LIKED), AnswerRecord(0, 1, True, DISLIKED)
    history = history_of(RunRecord(0), first, second)
    assert history.find(5) == (1, ClientAnswer((first,)))
    assert history.find(0) == (2, ClientAnswer((second,)))
    assert history.find(1) is None
    assert history.next_round() == 1


def test_the_next_round_is_the_first_without_an_answer() -> None:
    rounds = [AnswerRecord(number, 0, True, LIKED) for number in (0, 1, 3, 2, 6)]
    assert history_of(*rounds).next_round() == 4
    assert history_of().next_round() == 0


def test_a_run_is_what_follows_its_beginning() -> None:
    old, late = AnswerRecord(0, 0, False, LIKED), AnswerRecord(1, 0, True, SKIPPED)
    history = history_of(RunRecord(4), old, RunRecord(-9), late)
    run = history.run()
    assert run is not None
    assert (run.number, run.offset, list(run.answers)) == (2, -9, [ClientAnswer((late,))])
    assert not run.ended
    earlier = history_of(RunRecord(4), old).run()
    assert earlier is not None
    assert earlier.ended
    assert history_of(old).run() is None


def test_which_answers_were_paid_for() -> None:
    answers = [AnswerRecord(number, 0, False, LIKED) for number in range(5)]
    # One unpaid, a run of two, one more unpaid, and another run.
    history = history_of(answers[0], RunRecord(0), *answers[1:4], RunRecord(0), answers[4])
    paid = [history.was_paid(at, horizon=2) for at in (0, 2, 3, 4, 6)]
    assert paid == [False, True, True, False, True]
    # The next answer would still belong to the last run; the one after it would not.
    assert history.was_paid(7, horizon=2)
    history.read(AnswerRecord(5, 0, False, LIKED).encode(), position=7)
    assert not history.was_paid(8, horizon=2)


def list_of(round: int, *opinions: ClientOpinion) -> ClientAnswer:
    """An answer whose objects are 5, 6 and so on."""
    new = ClientAnswer.new(round, range(5, 5 + len(opinions)), True)
    return ClientAnswer(
        tuple(one.with_opinion(of) for one, of in zip(new.records, opinions, strict=True))
    )


def test_a_list_is_one_answer_wherever_it_stands() -> None:
    first, second = list_of(0, LIKED, DISLIKED), list_of(1, PENDING, LIKED, PENDING)
    history = history_of(RunRecord(0), *first.records, *second.records)
    assert history.find(0) == (1, first)
    assert history.find(1) == (3, second)
    assert history.pending == second
    assert history.settled == 3
    run = history.run()
    assert run is not None
    assert list(run.answers) == [first, second]
    # A run of two rounds is over after two answers, however many objects they have.
    assert [history.was_paid(at, horizon=2) for at in (1, 3, 6)] == [True, True, False]
    third = list_of(2, PENDING)
    gone = second.passed_over()
    history.read(gone.encode() + third.encode(), position=history.settled)
    assert history.find(1) == (3, gone)
    assert history.pending == third
    assert history.next_round() == 3


@pytest.mark.parametrize(
    ("opinions", "liked", "disliked", "incomplete", "awaited"),
    [
        ((PENDING, PENDING), None, (), True, True),
        ((DISLIKED, PENDING), None, (5,), True, True),
        ((DISLIKED, DISLIKED), None, (5, 6), False, False),
        # One like counts, the first in the list.
        ((LIKED, LIKED), 5, (), False, False),
        ((DISLIKED, LIKED, PENDING), 6, (5,), True, False),
        # Passed over: disliked if nothing was liked, and only then.
        ((SKIPPED, DISLIKED), None, (5, 6), False, False),
        ((SKIPPED, LIKED, DISLIKED), 6, (7,), False, False),
    ],
)
def test_what_a_list_says(
    opinions: tuple[ClientOpinion, ...],
    liked: int | None,
    disliked: tuple[int, ...],
    incomplete: bool,
    awaited: bool,
) -> None:
    answer = list_of(0, *opinions)
    assert (answer.liked, answer.disliked) == (liked, disliked)
    assert (answer.incomplete, answer.awaited) == (incomplete, awaited)
    assert not answer.passed_over().incomplete


def test_a_run_knows_which_answers_are_judged_and_whether_it_has_ended() -> None:
    history = ClientHistory(b"m" * 8)
    history.read(RunRecord(3).encode(), position=0)
    liked = AnswerRecord(0, 1, True, ClientOpinion.LIKED)
    pending = AnswerRecord(1, 0, True)
    history.read(liked.encode() + pending.encode(), position=1)
    run = history.run()
    assert run is not None
    assert ([one.round for one in run.judged], run.ended) == ([0], False)
    # The pending answer is read again once there is an opinion, and what follows with it.
    ended = AnswerRecord(2, 0, False, ClientOpinion.DISLIKED)
    judged = pending.with_opinion(ClientOpinion.DISLIKED)
    history.read(judged.encode() + ended.encode(), position=2)
    run = history.run()
    assert run is not None
    assert ([one.round for one in run.judged], run.ended) == ([0, 1, 2], True)
    assert run.judged[1].disliked == (0,)
