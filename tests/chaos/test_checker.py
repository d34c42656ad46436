"""The checker passes what is right, and finds every kind of fault that is planted in a history."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.checker import violations
from tests.chaos.history import History, Operation
from tests.chaos.report import write_report

ITEMS = frozenset("ab")


def answer(token: str, event_id: str | None = None, client: str = "ada") -> Operation:
    return Operation("recommend", client, 0.0, event_id, 1.0, 200, True, token, ["a"])


def refusal(event_id: str | None = None, retry_under: str | None = None) -> Operation:
    return Operation("recommend", "ada", 0.0, event_id, 1.0, 503, retry_under=retry_under)


def receipt(token: str, duplicate: bool) -> Operation:
    return Operation(
        "feedback", "ada", 0.0, None, 1.0, 200, recommendation_id=token, duplicate=duplicate
    )


def look(release: int, stored: int, model: str = "m") -> Operation:
    return Operation(
        "release", "", 5.0, None, 6.0, 200, release=release, stored=stored, model=model
    )


def judged(*operations: Operation, spent: float, budget: float = 10.0) -> list[str]:
    return violations(operations, spent={"ada": spent}, price=1.0, budget=budget, items=ITEMS)


GOOD = (
    answer("t1"),
    answer("t2", "e"),
    answer("t2", "e"),
    refusal("f"),
    answer("t3", "f"),
    refusal(retry_under="g"),
    answer("t4", "g"),
    refusal(),
    receipt("t1", False),
    receipt("t1", True),
    look(2, 2),
    look(2, 3, "n"),
)


@pytest.mark.parametrize("spent", [4, 5])
def test_what_is_right_passes(spent: float) -> None:
    assert judged(*GOOD, spent=spent) == []


@pytest.mark.parametrize(
    ("operations", "spent", "budget", "words"),
    [
        (GOOD, 3, 10, "debits lost"),
        (GOOD, 6, 10, "debits doubled"),
        (GOOD, 4, 3, "budget exceeded"),
        ((*GOOD, answer("t9", "e")), 5, 10, "different answers under one event id"),
        ((*GOOD, replace(answer("t2", "e"), items=["b"])), 4, 10, "different answers"),
        ((*GOOD, receipt("t1", False)), 4, 10, "counted 2 times"),
        ((*GOOD, replace(answer("t5"), items=["z"])), 5, 10, "does not exist"),
        ((*GOOD, replace(receipt("t1", True), status=410)), 4, 10, "expired before its time"),
        ((*GOOD, look(3, 2)), 4, 10, "answered from release 3 before it was stored"),
        ((*GOOD, look(1, 2), look(2, 2, "n")), 4, 10, "release 2 has 2 different models"),
    ],
)
def test_every_planted_fault_is_found(
    operations: tuple[Operation, ...], spent: float, budget: float, words: str
) -> None:
    found = judged(*operations, spent=spent, budget=budget)
    assert any(words in one for one in found), found


def test_a_retry_that_was_paid_for_again_is_found() -> None:
    """Under the event id that a 503 told, and under the caller's own."""
    assert judged(refusal(retry_under="g"), answer("t", "g"), spent=2)
    assert judged(refusal("mine"), answer("t", "mine"), spent=2)
    assert not judged(refusal("mine"), answer("t"), spent=2)


def test_a_store_that_was_put_back_knows_less_for_a_while() -> None:
    during, before = [("roll back", 5.5, 9.0)], [("roll back", 1.0, 4.0)]
    for faults, found in ((during, 0), (before, 1)):
        broken = violations(
            [look(3, 2)], spent={}, price=1.0, budget=1.0, items=ITEMS, faults=faults
        )
        assert len(broken) == found


def test_a_model_that_only_a_replaced_master_took_is_nobodys() -> None:
    during, before = [("freeze master", 5.5, 9.0)], [("freeze master", 1.0, 4.0)]
    for faults, seen, found in ((during, 1, 0), (during, 2, 1), (before, 1, 1)):
        looks = [look(2, 2), look(seen, 2, "n")]
        broken = violations(looks, spent={}, price=1.0, budget=1.0, items=ITEMS, faults=faults)
        assert len(broken) == found


def test_the_report_tells_what_was_found(tmp_path: Path) -> None:
    history = History()
    history.end(history.begin("recommend", "ada"), 503, {"event_id": "retry-1"})
    history.fault("kill store", history.began)
    write_report(history, ["ada: debits lost"], tmp_path, seed=3)
    text = (tmp_path / "report.md").read_text()
    assert "Violations: 1" in text
    assert "debits lost" in text
    assert "no debit doubled     what was spent is covered" in text
    assert "kill store | 1" in text
    assert (tmp_path / "picture.png").stat().st_size > 1_000
    assert "retry-1" in (tmp_path / "history.jsonl").read_text()
