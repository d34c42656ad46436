"""Plain words say neither too little nor too much."""

import math

import pytest

from discreet.hub.words import Facts, surest, tells


def facts(**changes: object) -> Facts:
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
    return Facts(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.2, 0.23, 1.0, 3.0, 50.0])
def test_odds_are_never_understated(epsilon: float) -> None:
    exact = 100 * math.exp(epsilon) / (1 + math.exp(epsilon))
    assert exact <= surest(epsilon) < exact + 1 or surest(epsilon) == 100


def test_perturbed() -> None:
    said = " ".join(tells(facts(sent=40, really=5)))
    assert "each of 10 categories, give or take about 15" in said
    assert "40 items were drawn by lot" in said
    assert "5 of them happen to be in your history" in said
    assert "at most 55 % sure by this release, and at most 60 % by all" in said
    assert "one item at a time" in said
    assert "network address" in said
    assert "short beside" not in said
    assert "short beside" in " ".join(tells(facts(seen=20)))


@pytest.mark.parametrize(
    ("total", "degree"),
    [(0.4, "only a little"), (0.41, "to some degree"), (1.2, "to a large degree")],
)
def test_nobody_is_told_that_much_is_little(total: float, degree: str) -> None:
    assert f"any one item, {degree}:" in " ".join(tells(facts(total=total)))


def test_what_once_left_openly_is_not_promised_anything() -> None:
    def promise(**changes: object) -> str:
        return next(text for text in tells(facts(**changes)) if "sure by this release" in text)

    assert "never sent openly" not in promise()
    assert "any one item that was never sent openly, only" in promise(once_openly=True)
    assert "any one item that was never sent openly, only" in promise(openly=("Drama",), mixed=True)


def test_open_parts_are_not_called_protected() -> None:
    said = tells(facts(openly=("Drama",), mixed=True, sent=45, open_items=5, really=1))
    assert "40 items were drawn" in said[1]
    open_part = next(text for text in said if text.startswith("Exactly"))
    assert "5 items you have seen in Drama and in no other category" in open_part
    assert "cannot be taken back" in open_part


def test_everything_and_nothing() -> None:
    everything = tells(facts(perturbed=0, openly=("a", "b"), sent=3, open_items=3))
    assert everything[0].startswith("Exactly which 3 items you have seen, and that")
    nothing = tells(facts(perturbed=0, hidden=("a", "b"), sent=0))
    assert nothing[0].startswith("Nothing about your history")
    assert len(nothing) == 2


def test_hidden_categories_are_named() -> None:
    said = " ".join(tells(facts(hidden=("Crime", "War"))))
    assert "Nothing about Crime and War" in said
    many = " ".join(tells(facts(hidden=tuple("abcdefgh"))))
    assert "a, b, c, d, e and 3 more categories" in many
