"""Explanations say neither too little nor too much."""

import math

import pytest

from discreet.hub.explanations import ReleaseFacts, explain, percent


def facts(**changes: object) -> ReleaseFacts:
    given = {
        "epsilon": 0.2,
        "total": 0.4,
        "noise": 15.0,
        "perturbed": 10,
        "hidden": (),
        "openly": (),
        "once_openly": False,
        "mixed": False,
        "seen": 100,
    }
    return ReleaseFacts(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.2, 0.23, 1.0, 3.0, 50.0])
def test_odds_are_never_understated(epsilon: float) -> None:
    exact = 100 * math.exp(epsilon) / (1 + math.exp(epsilon))
    assert exact <= percent(epsilon) < exact + 1 or percent(epsilon) == 100


def test_perturbed() -> None:
    sentences = " ".join(explain(facts(sent=40, in_history=5)))
    assert "each of 10 categories, give or take about 15" in sentences
    assert "40 items were picked at random" in sentences
    assert "5 of them happen to be in your history" in sentences
    assert (
        "someone guessing 50:50 about an item could get to at most 55 % with this list" in sentences
    )
    assert "to at most 60 % with all lists together" in sentences
    assert "one item at a time" in sentences
    assert "network address" in sentences
    assert "short compared" not in sentences
    assert "short compared" in " ".join(explain(facts(seen=20)))


@pytest.mark.parametrize(
    ("total", "degree"),
    [(0.4, "only a little"), (0.41, "to some degree"), (1.2, "to a large degree")],
)
def test_much_is_not_called_little(total: float, degree: str) -> None:
    assert f"any one item, {degree}:" in " ".join(explain(facts(total=total)))


def test_what_was_sent_unprotected_is_promised_nothing() -> None:
    def promise(**changes: object) -> str:
        return next(text for text in explain(facts(**changes)) if "50:50" in text)

    assert "never sent unprotected" not in promise()
    assert "any one item that was never sent unprotected, only" in promise(once_openly=True)
    assert "any one item that was never sent unprotected, only" in promise(
        openly=("Drama",), mixed=True
    )


def test_open_parts_are_not_called_protected() -> None:
    sentences = explain(facts(openly=("Drama",), mixed=True, sent=45, open_items=5, in_history=1))
    assert "40 items were picked" in sentences[1]
    open_part = next(text for text in sentences if text.startswith("Exactly"))
    assert "5 items you have seen in Drama and in no other category" in open_part
    assert "cannot be undone" in open_part


def test_everything_and_nothing() -> None:
    everything = explain(facts(perturbed=0, openly=("a", "b"), sent=3, open_items=3))
    assert everything[0].startswith("Exactly which 3 items you have seen, and that")
    nothing = explain(facts(perturbed=0, hidden=("a", "b"), sent=0))
    assert nothing[0].startswith("Nothing about your history")
    assert len(nothing) == 2


def test_hidden_categories_are_named() -> None:
    sentences = " ".join(explain(facts(hidden=("Crime", "War"))))
    assert "Nothing about Crime and War" in sentences
    many = " ".join(explain(facts(hidden=tuple("abcdefgh"))))
    assert "a, b, c, d, e and 3 more categories" in many
