"""Answers that are there already need no event loop, and may be awaited again."""

import pytest

from discreet.errors import StoreUnavailable
from discreet.state.ready import Failed, Ready


def test_a_ready_answer_never_suspends() -> None:
    answer = Ready(7)
    for _ in range(2):
        with pytest.raises(StopIteration) as ended:
            answer.__await__().send(None)
        assert ended.value.value == 7


def test_a_failed_answer_raises_where_it_is_awaited() -> None:
    answer = Failed(StoreUnavailable("gone"))
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="gone"):
            answer.__await__().send(None)
